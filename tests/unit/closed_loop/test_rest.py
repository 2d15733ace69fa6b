"""At constant load with noise nothing is written (issue 37): what every decision must hold to is checked on the way."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.unit.closed_loop.test_capacity import STRATEGIES, hvpa, pods, simulated
from tests.unit.lab.simulate import build
from tests.unit.lab.simulate.joint_build import HOUR, metric

pytestmark = pytest.mark.long


def noisy(units: float, percent: float, seed: int) -> build.Shape:
    """Constant load with noise of so many percent to both sides, another value every 15 s."""
    draw = random.Random(seed)
    values = [units * draw.uniform(1 - percent / 100, 1 + percent / 100) for _ in range(4 * 60 * 24)]
    return build.Shape(lambda time: values[int(time // 15) % len(values)])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weight", [0, 50, 100])
@pytest.mark.parametrize("percent", [3, 10])
def test_at_constant_load_with_noise_nothing_is_written(strategy: str, weight: int, percent: int) -> None:
    simulation = simulated(
        hvpa(weight, metric(70), strategy=strategy),
        noisy(5.2, percent, seed=weight + percent),
        12,
        9,
        pods(strategy, 600),
        step=15.0,
    )
    late = [event for event in simulation.result.events if event.time >= 7 * HOUR]
    assert [event for event in late if event.kind in ("Replicas", "Requests")] == []
    assert [event for event in simulation.result.events if event.kind == "Violation"] == []


@pytest.mark.parametrize("units", [3.3, 4.9])
def test_in_place_no_pod_stays_that_larger_ones_have_replaced(units: float) -> None:
    """With noise of 10 percent. If the count waits for room beyond the sizes that were set for it, a pod too many
    stays: 6.5 and 8.9 cores, and at 3.3 units noise changes the sizes 149 times in six hours."""
    simulation = simulated(
        hvpa(50, metric(70), strategy="InPlace"),
        noisy(units, 10, seed=7),
        12,
        9,
        pods("InPlace", 600),
        step=15.0,
    )
    late = [event for event in simulation.result.events if event.time >= 7 * HOUR]
    assert [event for event in late if event.kind in ("Replicas", "Requests")] == []
    assert simulation.end.cores < 1.1 * units / 0.7


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weight", [0, 50, 100])
def test_no_step_down_is_taken_back_within_its_own_stabilization(strategy: str, weight: int) -> None:
    """The load falls to a third at 2 h, with noise of 5 percent. No step raises replicas or sizes again within five
    minutes, nor sizes of replaced pods within the six hours that lowering them takes."""
    falling, low = noisy(5.2, 5, weight), noisy(1.7, 5, weight + 1)
    load = build.Shape(lambda time: (falling if time < 2 * HOUR else low).at(time))
    simulation = simulated(
        hvpa(weight, metric(70), strategy=strategy), load, 12, 9, pods(strategy, 600), step=15.0
    )
    shapes = [timed_shape for timed_shape in simulation.shapes if timed_shape[0] >= 2 * HOUR]
    for read, wait in ((0, 300.0), (1, 6 * HOUR if strategy == "Rollout" else 300.0)):
        steps = [(when, after[read] - before[read]) for (_, before), (when, after) in pairwise(shapes)]
        lowered = [when for when, by in steps if by < 0]
        raised = [when for when, by in steps if by > 0]
        assert not [(down, up) for down in lowered for up in raised if down < up < down + wait]
    assert simulation.end.cores < 0.6 * simulation.at(2 * HOUR - 15).cores
