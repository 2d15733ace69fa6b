"""`Additive` with the intervals that users write: it comes to rest, and the HPA reaches the workload by way of the
operator only (DESIGN 7.5, 7.7, 8)."""

from __future__ import annotations

from typing import Any

import pytest

from builders import build
from tests.unit.closed_loop import hvpas, loads
from tests.unit.closed_loop.loads import DAY, HOUR, Load
from tests.unit.closed_loop.loop import Loop
from tests.unit.closed_loop.workload import Shape, Use

pytestmark = pytest.mark.long

SETTLED = 2 * HOUR
UTILIZATION, AVERAGE_VALUE = hvpas.utilization(50), hvpas.average_value(1000)


def rows(*intervals: tuple[float, int, int]) -> list[dict[str, Any]]:
    return [
        {"vpaWeight": weight, "startReplicaCount": first, "lastReplicaCount": last}
        for weight, first, last in intervals
    ]


INTERVALS: dict[str, Any] = {
    "all horizontal": None,
    "a fifth vertical": [{"vpaWeight": 20}],
    "half and half": [{"vpaWeight": 50}],
    "all vertical": [{"vpaWeight": 100}],
    "gardener's first example": rows((0, 1, 2), (0.6, 3, 7), (0, 7, 10)),
    "gardener's second example": rows((1, 1, 1), (0.6, 2, 4), (0, 5, 10)),
}


def additive(intervals: Any, load: Load, metric: Any = UTILIZATION, replicas: int = 1, **rest: Any) -> Loop:
    """The loop over pods of one core, of which there may be ten."""
    tolerance = rest.pop("tolerance", 0.1)
    shape = Shape((Use(cpu=1000, memory_share=0),), replicas, controlled=("cpu",))
    spec = hvpas.spec(shape, metric=metric, most=10, **rest)
    return Loop({**spec, "weightBasedScalingIntervals": intervals}, shape, load, tolerance=tolerance)


def check_rest(loop: Loop, since: float) -> None:
    """Nothing is written from then on."""
    written = [*loop.status_writes, *loop.desired_replicas_writes, *(write.at for write in loop.writes)]
    assert [at for at in written if at >= since] == [], loop.writes
    assert len(loop.writes) < 40


@pytest.mark.parametrize("metric", [UTILIZATION, AVERAGE_VALUE], ids=["utilization", "average value"])
@pytest.mark.parametrize("intervals", INTERVALS.values(), ids=INTERVALS)
def test_at_constant_load_writes_stop(intervals: Any, metric: dict[str, Any]) -> None:
    """An HPA on utilization and a VPA on the same CPU do not chase each other."""
    check_rest(additive(intervals, loads.constant(4700), metric).run(SETTLED + 6 * HOUR), SETTLED)


@pytest.mark.parametrize("name", ["half and half", "gardener's first example"])
def test_after_a_peak_it_comes_to_rest_again(name: str) -> None:
    peak = loads.step(1000, 6000, HOUR, 2 * HOUR)
    check_rest(additive(INTERVALS[name], peak).run(DAY), 20 * HOUR)


def test_an_hpa_of_another_tolerance_and_the_operator_do_not_write_against_each_other() -> None:
    # The HPA scales at 2 percent off, the operator holds 10 percent for enough: 1.06 x 4 pods call for 5 or for 4.
    loop = additive(None, loads.constant(2120), replicas=4, tolerance=0.02).run(SETTLED + HOUR)
    assert loop.deployment.replicas == 4
    check_rest(loop, SETTLED)
    active = next(condition for condition in loop.hvpa.status.conditions if condition.type == "HpaActive")
    assert active.reason == "StaleDesiredReplicas"


def test_outside_a_window_the_hpa_cannot_reach_the_workload() -> None:
    """The HPA writes its desired replicas into `spec.replicas`, and that is all."""
    policy = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    window = {"begin": "120000+0000", "end": "130000+0000"}
    loop = additive(
        None, loads.constant(3000), hpa={"scaleUp": policy, "scaleDown": policy}, maintenanceTimeWindow=window
    )
    assert build.NOW.hour == 10
    loop.run(2 * HOUR - 60)
    assert loop.writes == []
    assert loop.run(2 * HOUR + 60).deployment.replicas == 6
