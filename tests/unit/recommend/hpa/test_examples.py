"""The worked examples of the HPA's documents, over several syncs of one HPA."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.recommend.hpa.controller import HpaSettings
from tests.unit.recommend.hpa.world import Loop, told

FOUR_PODS_A_MINUTE: dict[str, Any] = {"type": "Pods", "value": 4, "periodSeconds": 60}
TEN_PERCENT_A_MINUTE: dict[str, Any] = {"type": "Percent", "value": 10, "periodSeconds": 60}


def cpu(target: int) -> list[dict[str, Any]]:
    resource = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}
    return [{"type": "Resource", "resource": resource}]


def behavior(**rules: Any) -> dict[str, Any]:
    return {"maxReplicas": 1000, "behavior": rules}


@pytest.mark.parametrize(("usage", "replicas"), [(200, 8), (50, 2), (105, 4), (95, 4), (112, 5)])
def test_the_formula(usage: int, replicas: int) -> None:
    """ceil(replicas * usage / target), but not within 10 percent; what was recommended before doesn't count."""
    loop = Loop({"metrics": cpu(100)}, 4, HpaSettings(downscale_stabilization=0), request="100m")
    loop.sync(100)
    assert loop.counts(usage, 1) == [replicas]


def test_2_4_8_10() -> None:
    """515m on average, 20m requested, target 20 percent: 258 are wanted, and the count doubles until the maximum.
    The load is gone after the first step; what was recommended within five minutes keeps it going."""
    loop = Loop({"minReplicas": 2, "maxReplicas": 10, "metrics": cpu(20)}, 2, request="20m")
    first = loop.sync(515)
    (metric,) = first.status.current_metrics or []
    assert metric.resource is not None
    assert (metric.resource.current.average_value, metric.resource.current.average_utilization) == (
        "515m",
        2575,
    )
    assert (first.replicas, first.status.desired_replicas) == (4, 4)
    assert told(first, "ScalingLimited").reason == "ScaleUpLimit"
    message = "New size: 4; reason: cpu resource utilization (percentage of request) above target"
    assert first.events == (("Normal", "SuccessfulRescale", message),)
    second = loop.sync(0)
    assert (second.replicas, told(second, "ScalingLimited").reason) == (8, "ScaleUpLimit")
    third = loop.sync(0)
    assert (third.replicas, told(third, "ScalingLimited").reason) == (10, "TooManyReplicas")
    # 300 s after it, the first recommendation still counts; after that the present one does
    assert loop.counts(0, 18) == [10] * 18
    assert loop.counts(0, 2) == [2, 2]


def test_4_pods_or_10_percent_a_minute() -> None:
    """From 80 towards 10: 8, then 10 percent of the present count, and 4 a minute below 40."""
    rules = {"policies": [FOUR_PODS_A_MINUTE, TEN_PERCENT_A_MINUTE], "stabilizationWindowSeconds": 0}
    loop = Loop(behavior(scaleDown=rules) | {"minReplicas": 10}, 80)
    counts = loop.counts(0, 20, wait=60.0)
    assert counts[:9] == [72, 64, 57, 51, 45, 40, 36, 32, 28]
    assert counts[9:14] == [24, 20, 16, 12, 10]


def test_default_behavior() -> None:
    """4 pods or 100 percent in 15 s up, all down, once nothing higher was recommended for 300 s."""
    loop = Loop(behavior(), 1)
    assert loop.counts(5000, 4, wait=15.0) == [5, 10, 20, 40]
    loop = Loop(behavior() | {"maxReplicas": 20}, 20)
    assert loop.counts(0, 20) == [20] * 20
    assert loop.counts(0, 1) == [1]
