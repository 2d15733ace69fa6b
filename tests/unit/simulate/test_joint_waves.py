"""Joint scaling under loads that never rest: what comes and goes is a matter of replicas, not of sizes."""

from __future__ import annotations

import random

import pytest

from tests.unit.simulate import build
from tests.unit.simulate.joint_build import DAY, GIB, Shape, joint, run, wave, workload

pytestmark = pytest.mark.untraced

FIVE_PODS = Shape(5, 1000, GIB)


@pytest.mark.parametrize("weight", [0, 50])
def test_a_daily_wave_moves_replicas_and_after_the_first_day_no_sizes(weight: int) -> None:
    one = run(joint(weight), wave(2.0, 8.0), days=2, begin=FIVE_PODS)
    assert one.steps("Requests", DAY) == []
    assert len(one.steps("Replicas", DAY)) >= 4
    assert one.result.totals.unmet_share < 0.001
    assert one.result.totals.ooms == 0


@pytest.mark.parametrize("weight", [0, 80])
@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_noise_replaces_no_pods(weight: int, spread: float) -> None:
    """Each minute another load: within HPA's tolerance and the overlap nothing moves, beyond it replicas do."""
    source = random.Random(1)
    loads = [5.0 * (1 + spread * (2 * source.random() - 1)) for _ in range(24 * 60)]
    one = run(joint(weight), build.Shape(lambda at: loads[int(at // 60)]), days=1, begin=FIVE_PODS)
    assert one.steps("Requests", DAY / 2) == []
    assert spread > 0.1 or one.steps("Replicas", DAY / 2) == []
    assert one.result.totals.unmet_core_seconds == 0


def test_a_random_walk_is_always_served() -> None:
    source, load, loads = random.Random(7), 5.0, []
    for _ in range(3 * 24 * 12):
        load = min(20.0, max(1.0, load * (1 + 0.1 * (2 * source.random() - 1))))
        loads.append(load)
    one = run(joint(50), build.Shape(lambda at: loads[int(at // 300)]), days=3, begin=FIVE_PODS)
    assert one.result.totals.unmet_share < 0.001
    assert len(one.steps("Requests", DAY / 2)) <= 6


def test_pods_that_are_resized_in_place_follow_the_wave_and_none_restarts() -> None:
    resized = joint(50, updateStrategy={"type": "InPlace"})
    one = run(resized, wave(2.0, 8.0), days=2, begin=FIVE_PODS, workload=workload(resize="InPlace"))
    sizes = {shape.cpu for when, shape in one.shapes if when >= DAY}
    assert max(sizes) >= 1.3 * min(sizes)
    assert one.result.totals.restarts == 0
    assert one.result.totals.unmet_share < 0.001
