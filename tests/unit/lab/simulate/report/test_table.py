"""The result as text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.prices import Prices
from hvpa_lab.simulate.model import PolicyResult
from hvpa_lab.simulate.parallel import plan, simulate_all
from hvpa_lab.simulate.report.compare import compare
from hvpa_lab.simulate.report.figures import RESOURCES, VERDICT, reactions
from hvpa_lab.simulate.report.table import WIDTH, to_text
from hvpa_lab.simulate.report.text import NONE, width
from tests.unit.lab.simulate.report.results import REACTION, compared, policy

EXAMPLES = Path(__file__).resolve().parents[5] / "examples"

WHOLE = """\
day and night: A web shop's week
2d from 2026-11-16T00:00:00Z in steps of 15s; the first 30s not counted; seed 7
cost: requests at 0.03 per core-hour and 0.004 per GiB-hour; compared with 2, hpa

           --- cost ----  unmet demand     time to cover  - pods -  beaten
#  policy  total  diff %  share %  time %  median  worst  restarts      by
1  hvpa    37.42   -17.6     0.02    0.12     30s  1m30s         3       –
2  hpa     45.38       –     0.02    0.12     30s  1m30s        40       1

           CPU core-hours    memory GiB-hours  --- changes of ---        nodes
#  policy  requested   used   requested  used  replicas  requests  OOMs  hours
1  hvpa        1,234  800.2        96.0  48.0        12         2     0  168.0
2  hpa         1,500  800.2        96.0  48.0        12         2     0  168.0

           ---------- the HPA's reaction to a rise, median by phase ----------
#  policy  rises  reactions  tolerance  metric age  HPA period  held  start-up
1  hvpa        1          1        10s         15s        7.5s    0s       30s
2  hpa         1          1        10s         15s        7.5s    0s       30s
held: until replicas or requests went up: gates, maxStep, or they were still enough

Note: the load has a gap
Note: hpa: 3 events are not kept

Conclusion
- hvpa costs 18 % less than hpa at equal unmet demand (0.02 %), with 1.5 restarts a day instead of
  20.0.
- No policy beats this one on cost and unmet demand together: hvpa (37.42, 0.02 % unmet)."""


def test_a_result_is_written_in_full() -> None:
    hpa = policy("hpa", "HPA", core_hours_requested=1500.0, restarts=40, dropped_events=3)
    written = to_text(
        [compared(policy(), hpa, warm_up=30.0, duration=172_830.0, notes=("the load has a gap",))]
    )
    assert written == WHOLE


def test_without_rises_notes_and_description_little_is_left() -> None:
    written = to_text([compared(policy(reactions=()), description="")]).splitlines()
    assert written[:3] == [
        "day and night",
        "1m from 2026-11-16T00:00:00Z in steps of 15s; seed 7",
        "cost: requests at 0.03 per core-hour and 0.004 per GiB-hour",
    ]
    assert len(written) == 14
    assert written[-1] == "- hvpa costs 37.42 and leaves 0.02 % of the demand unmet."


def test_each_scenario_has_its_tables() -> None:
    written = to_text([compared(), compared(name="flash crowd", description="")])
    assert written.count("\n\nflash crowd\n1m from") == 1
    assert written.count("CPU core-hours") == 2


def cells(column: str, *policies: PolicyResult) -> list[str]:
    """The cells of a figure."""
    figures = [
        figure for figure in (*VERDICT, *RESOURCES) if f"{figure.group} {figure.name}".strip() == column
    ]
    (figure,) = figures
    return figure.cells(compared(*policies).standings)


def test_without_rises_there_is_no_time_to_cover() -> None:
    bare = policy(cover_median_seconds=None, cover_max_seconds=None, reactions=())
    assert (cells("time to cover median", bare), cells("time to cover worst", bare)) == ([NONE], [NONE])


def test_a_time_that_had_not_ended_is_at_least_that_long() -> None:
    worst = replace(REACTION, cover_seconds=90.0)
    ended, endless = (
        policy(str(covered), reactions=(REACTION, replace(worst, covered=covered)))
        for covered in (True, False)
    )
    assert cells("time to cover worst", ended, endless) == ["1m30s", "≥1m30s"]


def test_differences_have_a_sign_and_the_baseline_has_none() -> None:
    policies = [
        policy("half", core_hours_requested=40.0, gib_hours_requested=0.0),
        policy("base", "HPA+VPA", core_hours_requested=80.0, gib_hours_requested=0.0),
        policy("more", core_hours_requested=100.0, gib_hours_requested=0.0),
    ]
    assert cells("cost diff %", *policies) == ["-50.0", NONE, "+25.0"]


def test_the_first_three_that_beat_a_policy_are_named() -> None:
    policies = [policy(str(at), core_hours_requested=100.0 + 10 * at) for at in range(5)]
    assert cells("beaten by", *policies) == [NONE, "1", "1 2", "1 2 3", "1 2 3 …"]


def test_phases_that_were_not_reached_do_not_count() -> None:
    unanswered = replace(REACTION, metric_age=None, hpa_period=None, gates=None, start_up=None, total=None)
    slow = replace(REACTION, metric_age=25.0, total=90.0)
    assert reactions(policy(reactions=(REACTION, unanswered, slow)), longest=True) == [
        "3",
        "2",
        "10s / 10s",
        "20s / 25s",
        "7.5s / 7.5s",
        "0s / 0s",
        "30s / 30s",
    ]
    assert reactions(policy(reactions=(unanswered,)), longest=True)[2:5] == ["10s / 10s", NONE, NONE]


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=60), min_size=1, max_size=3))
def test_rows_are_aligned_whatever_the_names(names: list[str]) -> None:
    written = to_text([compared(*(policy(name) for name in names), description="")])
    assert written.isprintable() or set(written) & {"\n"}
    written.encode()
    lines = written.split("\n")
    begin = lines.index("") + 2
    rows = lines[begin : begin + 1 + len(names)]
    assert len({width(row) for row in rows}) == 1
    assert all(width(row) <= WIDTH for row in rows)


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    [path for path in sorted(EXAMPLES.glob("*/*.yaml")) if "\nworkload:" in path.read_text()],
    ids=lambda path: path.parent.name,
)
def test_every_example_is_written_in_a_hundred_columns(path: Path) -> None:
    planned = plan([path], 0)
    (whole,) = planned.scenarios
    short = replace(whole, duration=min(whole.duration, whole.step * 120), warm_up=0.0)
    (simulated,) = simulate_all(planned._replace(scenarios=(short,)), 1, lambda done, total: None)
    lines = to_text([compare(simulated, Prices())]).splitlines()
    assert max(map(width, lines)) <= WIDTH
    assert "Conclusion" in lines
