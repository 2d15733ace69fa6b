"""Drift and noise do not restart pods (DESIGN 5.2, 6.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, Case, cases, examples, plain
from tests.unit.closed_loop.loads import DAY, HOUR, Load
from tests.unit.closed_loop.loop import Loop

pytestmark = pytest.mark.untraced

BEGIN = 12 * HOUR
"""Until then it settles."""


def check_days(loop: Loop, days: int) -> None:
    """No more than one vertical step in any 24 hours."""
    steps = [one.at for one in loop.vertical(since=BEGIN)]
    close = [(at, later) for at, later in zip(steps, steps[1:], strict=False) if later - at < DAY]
    assert close == [], loop.writes


def slight(load: int) -> tuple[Load, ...]:
    """Less than a tenth a day: drift, a daily wave of 5 percent (from 95 to 105), noise."""
    return (
        loads.drift(load, 0.3),
        loads.drift(load, -0.3),
        loads.wave(load, 4.5),
        loads.noise(load, 4.5),
    )


@pytest.mark.parametrize("blend", BLENDS)
def test_less_than_a_tenth_a_day_is_one_vertical_step_a_day_at_most(blend: str) -> None:
    @examples(16)
    @given(cases(blend, places=("template",)), st.integers(0, 3))
    def check(case: Case, which: int) -> None:
        check_days(case.loop(slight(case.load)[which]).run(BEGIN + 3 * DAY), 3)

    check()


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("weight", [50, 100])
def test_one_percent_an_hour_is_a_handful_of_rollouts_a_day(blend: str, weight: float) -> None:
    """A day makes 27 percent of it: three steps of a tenth."""
    case = plain(blend=blend, weight=weight)
    loop = case.loop(loads.drift(2000)).run(BEGIN + 2 * DAY)
    assert len(loop.vertical(BEGIN, BEGIN + DAY)) <= 4, loop.writes
    assert len(loop.vertical(BEGIN + DAY)) <= 4, loop.writes


@pytest.mark.parametrize("percent", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("weight", [30, 50, 80])
def test_a_weight_below_100_is_never_walked_all_the_way(weight: int, percent: float) -> None:
    """The replicas stay; the request begins at 500m and follows a target of a bit more than a core by its weight."""
    case = plain(blend="Additive", weight=weight, load=3000, replicas=3)
    bounds = {"template": {"spec": {"minReplicas": 3, "maxReplicas": 3}}}
    spec = case.loop(loads.constant(0)).spec
    merged = {**spec, "hpa": {"template": {"spec": spec["hpa"]["template"]["spec"] | bounds["template"]["spec"]}}}
    off = {"updatePolicy": {"updateMode": "Off"}}
    merged["hpa"] |= {"scaleUp": off, "scaleDown": off}
    loop = Loop(merged, case.shape, loads.drift(3000, percent))
    loop.run(600.0)
    begin, target = loop.request("app"), loop.recommended("app")
    loop.run(3 * DAY)
    moved = (loop.recommended("app") - target) * weight / 100
    least = min(begin, 500 + (target - 500) * weight / 100)
    assert loop.request("app") <= least + max(moved, 0) + 10, loop.writes
