"""Replicas while pods are being resized in place: the HPA's utilization is of requests that pods do not have yet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from builders import build
from builders.build import at
from hvpa.api.objects.read_models import Pod
from hvpa.core import Decision
from tests.unit.core.actuation.sized_pods import LARGER, REQUESTS, running, size_status
from tests.unit.core.named import named

SMALL = {"requests": REQUESTS}
LARGE = {"requests": LARGER}
DONE = [running(f"web-{number}", LARGER) for number in range(4)]
RAISED = [running("web-0", LARGER, SMALL), *DONE[1:]]
"""One of the pods has 1 core and is to have 2, the others have them."""
LOWERED = [running("web-0", REQUESTS, LARGE), *(running(f"web-{number}", REQUESTS) for number in range(1, 4))]


def decided(
    utilization: int, pods: Sequence[Pod], since: dt.datetime, way: str = "InPlace", weight: int = 0
) -> Decision:
    """What is decided where the HPA has found `utilization` percent, of 50, and 4 pods were resized `since`."""
    size = LARGER if pods is not LOWERED else REQUESTS
    spec: dict[str, Any] = {
        "replicas": -(-4 * utilization // 50),
        "updateStrategy": {"type": way},
        "weightBasedScalingIntervals": [{"vpaWeight": weight}],
    }
    status = size_status(4, {"app": {"requests": size}}, since)
    horizontal = build.hpa(spec["replicas"], utilization, replicas=4)
    hvpa = build.hvpa(spec, status)
    return build.decided(build.objects(hvpa, build.workload(4), horizontal, build.vpa({"app": size}), pods))


@pytest.mark.parametrize(
    ("utilization", "pods", "since", "expected", "until"),
    named(
        {
            "out, for a minute": (100, RAISED, at(seconds=-5), 4, at(seconds=55)),
            "out, when pods are lowered": (100, LOWERED, at(seconds=-5), 4, at(seconds=55)),
            "out, after a minute": (100, RAISED, at(minutes=-1), 8, None),
            "in, when pods are lowered": (25, LOWERED, at(seconds=-5), 4, at(seconds=55)),
            "in, when pods are lowered, after a minute": (25, LOWERED, at(minutes=-1), 2, None),
        }
    ),
)
def test_measurement_holds_replicas_a_minute_for_pods_to_have_their_sizes(
    utilization: int, pods: Sequence[Pod], since: dt.datetime, expected: int, until: dt.datetime | None
) -> None:
    decision = decided(utilization, pods, since)
    assert decision.replicas is not None
    assert decision.replicas.target == expected
    held = [(hold.reason, hold.until) for hold in decision.blocked if hold.axis == "horizontal"]
    assert held == ([] if until is None else [("Measurement", until)])
    if until is not None:
        assert decision.recheck_after == dt.timedelta(seconds=55)


@pytest.mark.parametrize("minutes", [0, 60])
def test_measurement_holds_fewer_replicas_while_pods_are_below_their_specs(minutes: int) -> None:
    decision = decided(25, RAISED, at(minutes=-minutes))
    assert decision.replicas is not None
    assert decision.replicas.target == 4, "a pod of 1 core that is to have 2 uses 50 percent at most"
    assert [(hold.reason, hold.until) for hold in decision.blocked if hold.axis == "horizontal"] == [
        ("Measurement", None)
    ]
    assert any(
        "while pods are being resized; the next measurement is due when the pods have the decided size"
        in step
        for step in decision.steps
    )


@pytest.mark.parametrize(("utilization", "expected"), [(25, 2), (100, 8)])
@pytest.mark.parametrize(("way", "pods"), [("InPlace", DONE), ("Rollout", RAISED)])
def test_measurement_does_not_hold_replicas_where_no_pod_is_being_resized(
    utilization: int, expected: int, way: str, pods: Sequence[Pod]
) -> None:
    decision = decided(utilization, pods, at(seconds=-5), way)
    assert decision.replicas is not None
    assert decision.replicas.target == expected


def test_measurement_of_a_target_that_is_no_percentage_does_not_hold_replicas() -> None:
    """A queue at half of its target; a pod's node has no room for its larger size."""
    target = {"type": "AverageValue", "averageValue": "10"}
    source = {"metric": {"name": "queue"}}
    metrics = {
        "spec": {"metrics": [{"type": "External", "external": {**source, "target": target}}]},
        "status": {
            "currentMetrics": [{"type": "External", "external": {**source, "current": {"averageValue": "5"}}}]
        },
    }
    spec: dict[str, Any] = {
        "replicas": 2,
        "updateStrategy": {"type": "InPlace"},
        "weightBasedScalingIntervals": [{"vpaWeight": 0}],
    }
    status = size_status(4, {"app": {"requests": LARGER}}, at(minutes=-60))
    horizontal = build.hpa(2, replicas=4, change=metrics)
    hvpa = build.hvpa(spec, status)
    vertical = build.vpa({"app": LARGER})
    decision = build.decided(build.objects(hvpa, build.workload(4), horizontal, vertical, RAISED))
    assert decision.replicas is not None
    assert decision.replicas.target == 2


def test_measurement_does_not_wait_for_a_limit_that_is_being_raised() -> None:
    """The HPA divides by requests."""
    raised = {"requests": LARGER, "limits": {"memory": "4Gi"}}
    pods = [running(f"web-{number}", LARGER, raised, limits={"memory": "8Gi"}) for number in range(4)]
    spec: dict[str, Any] = {
        "replicas": 2,
        "updateStrategy": {"type": "InPlace"},
        "weightBasedScalingIntervals": [{"vpaWeight": 0}],
    }
    status = size_status(4, {"app": {"requests": LARGER, "limits": {"memory": "8Gi"}}}, at(minutes=-60))
    hvpa = build.hvpa(spec, status)
    horizontal = build.hpa(2, 25, replicas=4)
    decision = build.decided(
        build.objects(hvpa, build.workload(4), horizontal, build.vpa({"app": LARGER}), pods)
    )
    assert decision.replicas is not None
    assert decision.replicas.target == 2
