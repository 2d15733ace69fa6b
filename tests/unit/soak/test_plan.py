"""The schedule of a soak: the same for the same seed, another for another, with some of everything."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from tests.e2e.soak.plan import LEAST, LINE_FAULTS, MOST, USERS_ACTS, delay_of, recommendations_of, schedule

LONG = schedule(7, 1200, 50)


def test_the_seed_alone_decides() -> None:
    assert schedule(7, 1200, 50) == LONG
    assert schedule(8, 1200, 50) != LONG
    assert delay_of(7, "a", 5) == delay_of(7, "a", 5) != delay_of(7, "b", 5)
    assert 0 <= delay_of(7, "a", 5) < 5


def test_a_long_soak_has_some_of_everything_in_order_of_time() -> None:
    kinds = Counter(act.kind for act in LONG)
    assert set(kinds) == {*LINE_FAULTS, *USERS_ACTS, "replicas", "target", "dead", "signal", "restart"}
    assert {act.text for act in LONG if act.kind == "signal"} == {"SIGKILL", "SIGSTOP", "SIGTERM"}
    assert {act.text for act in LONG if act.kind == "restart"} == {"in order", "killed"}
    assert all(act.at <= other.at for act, other in pairwise(LONG))


def test_operators_that_share_the_work_are_hit_alike_and_all_else_stays() -> None:
    shared = schedule(7, 1200, 50, shards=8)
    for kinds in (LINE_FAULTS, ("dead",)):
        assert {act.who for act in shared if act.kind in kinds} == {0, 1, 2, 3}
        assert {act.who for act in LONG if act.kind in kinds} == {0, 1, 2}
    assert {act.who for act in shared if act.kind == "signal"} == {0, 1, 2}
    assert {act.who for act in LONG if act.kind == "signal"} == {0}
    others = {*USERS_ACTS, "replicas", "target", "restart"}
    assert [act for act in shared if act.kind in others] == [act for act in LONG if act.kind in others]


def test_a_short_soak_has_a_restart_too() -> None:
    for seed in range(20):
        acts = schedule(seed, 20, 5)
        assert [act.kind for act in acts].count("restart") == 1
        assert all(act.at < 20 for act in acts)


def test_no_recommendation_is_repeated_and_all_are_within_bounds() -> None:
    for who in range(50):
        desired = [act.number for act in LONG if (act.kind, act.who) == ("replicas", who)]
        targets = [act.number for act in LONG if (act.kind, act.who) == ("target", who)]
        assert all(number != other for number, other in pairwise(desired))
        assert all(LEAST <= number <= MOST for number in desired)
        assert len(set(targets)) == len(targets)


def test_what_is_governed_is_undone_once_at_most() -> None:
    undone = Counter(act.who for act in LONG if act.kind in ("set", "workload"))
    assert set(undone.values()) == {1}


def test_rounds_of_the_same_work_repeat_no_recommendation() -> None:
    scheduled = {act.number for act in LONG if act.kind == "target"}
    rounds = [recommendations_of(number, 50) for number in range(10)]
    for previous, other in pairwise(rounds):
        assert all(first.number != second.number for first, second in zip(previous, other, strict=True))
    for acts in rounds:
        assert Counter(act.who for act in acts) == dict.fromkeys(range(50), 2)
        assert all(LEAST <= act.number <= MOST for act in acts if act.kind == "replicas")
        assert scheduled.isdisjoint(act.number for act in acts if act.kind == "target")
