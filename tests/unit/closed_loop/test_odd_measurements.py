"""Metrics that are wrong for a minute, a load that stops, and clocks that jump: nothing is scaled for good on them."""

from __future__ import annotations

import pytest

from tests.unit.closed_loop import loads
from tests.unit.closed_loop.cases import BLENDS, Case, plain
from tests.unit.closed_loop.loads import DAY, HOUR
from tests.unit.closed_loop.workload import Use

pytestmark = pytest.mark.long

BEGIN = 2 * DAY
"""Until then it settles."""
LOAD = 2000


def case(blend: str) -> Case:
    return plain(Use(cpu=500), blend=blend, load=LOAD, replicas=4)


def wrong_for_a_minute(now: float, times: float) -> float:
    """What the metrics show. A thousandth more in the five minutes before has the loop's HPA look, as HPAs always do,
    and remember what it desired."""
    if BEGIN <= now < BEGIN + 60:
        return times
    return 1.001 if BEGIN - 300 <= now < BEGIN else 1.0


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("times", [10.0, 0.1])
def test_a_metric_that_is_wrong_by_a_factor_of_ten_for_a_minute_is_forgotten(
    blend: str, times: float
) -> None:
    """`Additive` follows its HPA at once in both directions, as gardener's controller does."""
    loop = case(blend).loop(loads.constant(LOAD))
    loop.shown = lambda now: wrong_for_a_minute(now, times)
    loop.run(BEGIN)
    before, sizes = loop.deployment.replicas, loop.requests()
    loop.run(BEGIN + HOUR)
    later = [write for write in loop.writes if write.at >= BEGIN]
    assert loop.requests() == sizes, later
    assert [write for write in later if write.is_vertical] == []
    if times > 1:
        assert max(write.replicas[1] for write in later) > before
    assert abs(loop.deployment.replicas - before) <= 1, later
    if blend == "Trajectory" and times < 1:
        assert later == []


@pytest.mark.parametrize("blend", BLENDS)
def test_a_load_that_stops_leaves_the_least_count_and_one_that_returns_is_served(blend: str) -> None:
    loop = case(blend).loop(loads.step(LOAD, 0, BEGIN, BEGIN + DAY)).run(BEGIN)
    loop.run(BEGIN + DAY)
    assert loop.deployment.replicas == 1, loop.writes
    loop.run(BEGIN + DAY + HOUR)
    assert loop.deployment.replicas * 1.2 >= loop.serves(), loop.writes
    assert loop.errors == []


@pytest.mark.parametrize("blend", BLENDS)
@pytest.mark.parametrize("seconds", [3 * DAY, -HOUR])
def test_a_clock_that_jumps_for_ten_minutes_and_back_scales_nothing(blend: str, seconds: float) -> None:
    loop = case(blend).loop(loads.constant(LOAD))
    loop.ahead = lambda now: seconds if BEGIN <= now < BEGIN + 600 else 0.0
    loop.shown = lambda now: (
        1.02 if BEGIN <= now < BEGIN + 900 else 1.0
    )  # so that there is something to look at
    loop.run(BEGIN)
    before, sizes = loop.deployment.replicas, loop.requests()
    loop.run(BEGIN + HOUR)
    for since, until in ((BEGIN, BEGIN + 600), (BEGIN + 900, BEGIN + HOUR)):
        assert [record for record in loop.decisions if since <= record.at < until]
    assert (loop.deployment.replicas, loop.requests()) == (before, sizes), [
        write for write in loop.writes if write.at >= BEGIN
    ]
    assert loop.errors == []
