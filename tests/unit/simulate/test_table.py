"""The result as text."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hvpa.simulate.figures import CPU, FIGURES, best, reactions
from hvpa.simulate.table import LONGEST_NAME, to_text
from hvpa.simulate.text import NONE, width
from tests.unit.simulate.results import REACTION, policy, result

WHOLE = """\
day and night: A web shop's week
1m from 2026-11-16T00:00:00Z in steps of 15s; the first 30s not counted; seed 7

              ---- CPU core-hours -----  --- memory GiB-hours ---  unmet demand    ---- pods ----  --- changes of ---\
  nodes  reaction to a rise
policy  kind  requested   used  slack %  requested  used  slack %  core-s  time %  OOMs  restarts  replicas  requests\
  hours     median  longest
hvpa    Hvpa      1,234  800.2     35.2       96.0  48.0     50.0    17.2    0.12     0         3        12         2\
  168.0        42s    1m36s
hpa     HPA       1,500  800.2     35.2       96.0  48.0     50.0    17.2    0.12     2         3        12         2\
  168.0        42s    1m36s

              ----------------------------- reaction to a rise, median / longest ------------------------------
policy  kind  rises  answered  tolerance  metric age   HPA period    gates   start-up          total      unmet
hvpa    Hvpa      1         1  10s / 10s   15s / 15s  7.5s / 7.5s  0s / 0s  30s / 30s  32.5s / 32.5s  45s / 45s
hpa     HPA       1         1  10s / 10s   15s / 15s  7.5s / 7.5s  0s / 0s  30s / 30s  32.5s / 32.5s  45s / 45s

Note: the load has a gap
Note: hpa: 3 events are not kept"""


def test_a_result_is_told_in_full() -> None:
    hpa = policy("hpa", "HPA", core_hours_requested=1500.0, ooms=2, dropped_events=3)
    told = to_text([result(policy(), hpa, warm_up=30.0, notes=("the load has a gap",))])
    assert told == WHOLE


def test_without_rises_notes_and_description_little_is_left() -> None:
    told = to_text([result(policy(reactions=()), description="")]).splitlines()
    assert told[:2] == ["day and night", "1m from 2026-11-16T00:00:00Z in steps of 15s; seed 7"]
    assert len(told) == 6


def test_each_scenario_has_a_table() -> None:
    told = to_text([result(), result(name="flash crowd", description="")])
    assert told.count("\n\nflash crowd\n1m from") == 1
    assert told.count("CPU core-hours") == 2


def test_what_is_not_known_is_no_figure() -> None:
    told = to_text([result(policy(reaction_median=None, reaction_max=None, reactions=()))])
    assert told.splitlines()[-1].split()[-2:] == [NONE, NONE]


def test_phases_that_were_not_reached_do_not_count() -> None:
    unanswered = replace(REACTION, metric_age=None, hpa_period=None, gates=None, start_up=None, total=None)
    slow = replace(REACTION, metric_age=25.0, total=90.0)
    assert reactions(policy(reactions=(REACTION, unanswered, slow))) == [
        "3",
        "2",
        "10s / 10s",
        "20s / 25s",
        "7.5s / 7.5s",
        "0s / 0s",
        "30s / 30s",
        "1m1s / 1m30s",
        "45s / 45s",
    ]
    assert reactions(policy(reactions=(unanswered,)))[2:5] == ["10s / 10s", NONE, NONE]


def test_the_least_is_best_where_policies_differ() -> None:
    requested, used = (one for one in FIGURES if one.group == CPU and one.name in ("requested", "used"))
    costs = [policy(core_hours_requested=cost, core_hours_used=cost) for cost in (3.0, 1.0, 1.0)]
    assert best(result(*costs), requested) == {1, 2}
    assert best(result(*costs), used) == set()
    assert best(result(costs[1], costs[2]), requested) == set()


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), min_size=1, max_size=3))
def test_rows_are_aligned_whatever_the_names(names: list[str]) -> None:
    told = to_text([result(*(policy(name) for name in names), name=names[0], notes=(names[-1],))])
    assert told.isprintable() or set(told) & {"\n"}
    told.encode()
    lines = told.split("\n")
    rows = lines[3 : 5 + len(names)]
    assert len({width(row) for row in rows[1:]}) == 1
    assert all(width(row) <= LONGEST_NAME * 2 + 150 for row in rows)
