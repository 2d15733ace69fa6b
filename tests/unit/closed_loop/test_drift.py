"""Drift and noise do not restart pods (DESIGN 5.2, 6.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.closed_loop import hvpas, loads
from tests.unit.closed_loop.cases import BLENDS, Case, cases, examples, plain
from tests.unit.closed_loop.loads import DAY, HOUR, Load
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import Shape, Use

pytestmark = pytest.mark.long

BEGIN = {"Additive": 12 * HOUR, "Trajectory": 3 * DAY}
"""Until then it settles: the usual demand takes days."""


def check_days(loop: Loop, since: float) -> None:
    """No more vertical steps than days."""
    assert len(loop.vertical(since)) <= (loop.now - since) / DAY, loop.writes


def slight(load: int) -> tuple[Load, ...]:
    """Less than a tenth a day: drift, a daily wave of 5 percent (from 95 to 105), noise."""
    return (loads.drift(load, 0.3), loads.drift(load, -0.3), loads.wave(load, 4.5), loads.noise(load, 4.5))


@pytest.mark.parametrize("blend", BLENDS)
def test_less_than_a_tenth_a_day_is_one_vertical_step_a_day_at_most(blend: str) -> None:
    @examples(2)
    @given(cases(blend, places=("template",)), st.integers(0, 3))
    def check(case: Case, which: int) -> None:
        check_days(case.loop(slight(case.load)[which]).run(BEGIN[blend] + 2 * DAY), BEGIN[blend])

    check()


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("weight", [50, 100])
def test_one_percent_an_hour_is_a_handful_of_rollouts_a_day(blend: str, weight: float) -> None:
    """A day makes 27 percent of it: three steps of a tenth."""
    case = plain(Use(memory_share=0), blend=blend, weight=weight)
    loop = case.loop(loads.drift(2000)).run(2 * DAY)
    assert len(loop.vertical(DAY)) <= 4, loop.writes


@pytest.mark.parametrize("weight", [30, 80])
@pytest.mark.parametrize("percent", [0.0, 1.0])
def test_a_weight_below_100_is_never_walked_all_the_way(weight: int, percent: float) -> None:
    """Three replicas that may not change. The request begins at 500m and goes a part of the way to a target of a bit
    more than a core; then the same part of what the target moves."""
    shape, load = Shape((Use(memory_share=0),), replicas=3), 3000
    off = {"updatePolicy": {"updateMode": "Off"}}
    spec = hvpas.spec(
        shape, weight=weight, metric=hvpas.average_value(1000), hpa={"scaleUp": off, "scaleDown": off}
    )
    loop = Loop(spec, shape, loads.drift(load, percent)).run(600.0)
    begin, target = loop.request("app"), loop.recommended("app")
    assert begin == pytest.approx(500 + (target - 500) * weight / 100, abs=2), loop.writes
    loop.run(2 * DAY)
    moved = (loop.recommended("app") - target) * weight / 100
    assert loop.request("app") <= begin + moved + 5, loop.writes
