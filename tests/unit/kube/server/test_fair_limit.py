"""Who gives way to a newcomer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hvpa.kube.server.fair_limit import FairLimit


def test_the_oldest_idle_item_of_an_owner_over_its_limit_gives_way_first() -> None:
    busy = {"a1"}
    limit: FairLimit[str] = FairLimit(10, 3, lambda item: item not in busy)
    assert [limit.add(item, "a") for item in ("a1", "a2", "a3", "a4", "a5")] == [None, None, None, "a2", "a3"]
    assert limit.add("b1", "b") is None
    limit.used("a4")
    assert limit.add("a6", "a") == "a5"


def test_without_idle_items_the_oldest_in_use_gives_way() -> None:
    limit: FairLimit[str] = FairLimit(10, 2, lambda item: False)
    assert [limit.add(item, "a") for item in ("a1", "a2", "a3")] == [None, None, "a1"]


def test_at_the_total_the_owner_that_holds_the_most_gives_way() -> None:
    limit: FairLimit[str] = FairLimit(4, 3, lambda item: True)
    for item in ("b1", "a1", "a2", "a3"):
        limit.add(item, item[0])
    assert [limit.add(item, item[0]) for item in ("c1", "d1", "e1")] == ["a1", "a2", "b1"]


def test_what_is_gone_counts_no_longer() -> None:
    limit: FairLimit[str] = FairLimit(2, 1, lambda item: True)
    assert limit.least_missed() is None
    limit.add("a1", "a")
    limit.discard("a1")
    limit.discard("a1")
    limit.used("a1")
    assert len(limit) == 0
    assert limit.add("a2", "a") is None
    assert (limit.least_missed(), list(limit)) == ("a2", ["a2"])


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), max_size=60),
    st.integers(1, 6),
    st.integers(1, 4),
)
def test_limits_hold_and_no_newcomer_and_no_needless_item_in_use_gives_way(
    arrivals: list[tuple[str, bool]], total: int, per_owner: int
) -> None:
    idle: dict[int, bool] = {}
    limit: FairLimit[int] = FairLimit(total, per_owner, idle.__getitem__)
    owners: dict[int, str] = {}
    for number, (owner, is_idle) in enumerate(arrivals):
        idle[number], owners[number] = is_idle, owner
        before = set(limit)
        victim = limit.add(number, owner)
        held = list(limit)
        assert number in held
        assert len(held) <= total
        assert max(sum(owners[item] == name for item in held) for name in "abcdef") <= per_owner
        if victim is None:
            continue
        assert victim not in held
        is_over = sum(owners[item] == owner for item in before) >= per_owner
        others = [item for item in before if not is_over or owners[item] == owner]
        assert victim in others
        assert idle[victim] or not any(idle[item] for item in others)
