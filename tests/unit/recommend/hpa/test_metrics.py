"""What the five kinds of metrics say: their entries in the status, names and errors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hvpa.recommend.hpa.controller import HpaResult, Scale
from tests.unit.recommend.hpa.world import SELECTOR, Given, make_pods, readings, sync_once, told

PODS = make_pods("ready", "ready")
SCALE = Scale(2, 2, SELECTOR)
QPS = {"name": "qps"}
WRONG = {"name": "qps", "selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}
SOME = {"kind": "Service", "name": "front", "apiVersion": "v1"}
GIVEN = Given(
    [600, 800],
    resources={
        ("cpu", "app"): readings([600, 800]),
        ("memory", ""): readings([2**30 * 1000] * 2),
        ("cpu", ""): readings([600, 800]),
    },
    custom=[2000, 4000],
    value=5000,
    values=[1000, 4000],
)


def sync(*metrics: dict[str, Any], given: Given = GIVEN) -> HpaResult:
    return sync_once({"metrics": list(metrics)}, given, PODS, SCALE)


def metric(kind: str, target: dict[str, Any], **source: Any) -> dict[str, Any]:
    return {"type": kind, kind[0].lower() + kind[1:]: {**source, "target": target}}


def percent(value: int) -> dict[str, Any]:
    return {"type": "Utilization", "averageUtilization": value}


def average(value: str) -> dict[str, Any]:
    return {"type": "AverageValue", "averageValue": value}


def plain(value: str) -> dict[str, Any]:
    return {"type": "Value", "value": value}


DOWN = "unable to fetch metrics from {} metrics API: down"
NEITHER = "neither a value target nor an average value target was set"
NO_CPU = "unable to get metrics for resource cpu: no metrics returned from resource metrics API"


@pytest.mark.parametrize(
    ("asked", "reason", "cause", "text"),
    [
        (
            metric("Resource", percent(50), name="cpu"),
            "FailedGetResourceMetric",
            f"failed to get cpu utilization: {NO_CPU}",
            "failed to get cpu resource metric value: {}",
        ),
        (
            metric("Resource", average("1"), name="cpu"),
            "FailedGetResourceMetric",
            f"failed to get cpu usage: {NO_CPU}",
            "failed to get cpu resource metric value: {}",
        ),
        (
            metric("Resource", plain("1"), name="cpu"),
            "FailedGetResourceMetric",
            "invalid resource metric source: neither an average utilization target nor an average value (usage) target "
            "was set",
            "failed to get cpu resource metric value: {}",
        ),
        (
            metric("ContainerResource", percent(50), name="cpu", container="app"),
            "FailedGetContainerResourceMetric",
            f"failed to get cpu utilization: {NO_CPU}",
            "failed to get app container metric value: {}",
        ),
        (
            metric("Pods", average("1"), metric=QPS),
            "FailedGetPodsMetric",
            f"unable to get metric qps: {DOWN.format('custom')}",
            "failed to get pods metric value: {}",
        ),
        (
            metric("Pods", plain("1"), metric=QPS),
            "FailedGetPodsMetric",
            "invalid pods metric source: no average value target was set",
            "failed to get pods metric value: {}",
        ),
        (
            metric("Pods", average("1"), metric=WRONG),
            "FailedGetPodsMetric",
            '"Like" is not a valid label selector operator',
            "failed to get pods metric value: {}",
        ),
        (
            metric("Object", plain("1"), metric=QPS, describedObject=SOME),
            "FailedGetObjectMetric",
            f"unable to get metric qps: Service on shop front/{DOWN.format('custom')}",
            "failed to get object metric value: {}",
        ),
        (
            metric("Object", average("1"), metric=QPS, describedObject=SOME),
            "FailedGetObjectMetric",
            f"unable to get metric qps: Service on shop front/{DOWN.format('custom')}",
            "failed to get object metric value: failed to get qps object metric: {}",
        ),
        (
            metric("Object", percent(1), metric=QPS, describedObject=SOME),
            "FailedGetObjectMetric",
            f"invalid object metric source: {NEITHER}",
            "failed to get object metric value: {}",
        ),
        (
            metric("Object", {"type": "Value", "averageValue": "1"}, metric=QPS),
            "FailedGetObjectMetric",
            f"invalid object metric source: {NEITHER}",
            "failed to get object metric value: {}",
        ),
        (
            metric("Object", plain("1"), metric=WRONG, describedObject=SOME),
            "FailedGetObjectMetric",
            '"Like" is not a valid label selector operator',
            "failed to get object metric value: {}",
        ),
        (
            metric("External", plain("1"), metric=QPS),
            "FailedGetExternalMetric",
            f"unable to get external metric shop/qps/nil: {DOWN.format('external')}",
            "failed to get qps external metric value: failed to get external metric qps: {}",
        ),
        (
            metric("External", average("1"), metric=QPS),
            "FailedGetExternalMetric",
            f"unable to get external metric shop/qps/nil: {DOWN.format('external')}",
            "failed to get qps external metric value: failed to get qps external metric: {}",
        ),
        (
            metric("External", percent(1), metric=QPS),
            "FailedGetExternalMetric",
            f"invalid external metric source: {NEITHER}",
            "failed to get qps external metric value: {}",
        ),
        (
            {"type": "Weather"},
            "InvalidMetricSourceType",
            'unknown metric source type "Weather"',
            "{}",
        ),
        (
            {"type": "Resource"},
            "FailedGetResourceMetric",
            "invalid resource metric source: neither an average utilization target nor an average value (usage) target "
            "was set",
            "failed to get  resource metric value: {}",
        ),
    ],
)
def test_a_metric_without_a_value(asked: dict[str, Any], reason: str, cause: str, text: str) -> None:
    outcome = sync(asked, given=Given())
    assert outcome.replicas is None
    assert msgspec.to_builtins(outcome.status.current_metrics) == [{}]
    active = told(outcome, "ScalingActive")
    assert (active.status, active.reason) == ("False", reason)
    assert active.message == f"the HPA was unable to compute the replica count: {cause}"
    last = f"invalid metrics (1 invalid out of 1), first error is: {text.format(cause)}"
    assert outcome.events == (("Warning", reason, cause), ("Warning", "FailedComputeMetricsReplicas", last))


def test_never_down_with_an_invalid_metric() -> None:
    """The first invalid metric is told, and which of how many."""
    wrong = metric("External", plain("1"), metric=QPS), {"type": "Weather"}
    outcome = sync(metric("Resource", percent(90), name="cpu"), *wrong, given=Given([100, 100]))
    assert outcome.replicas is None
    assert told(outcome, "ScalingActive").reason == "FailedGetExternalMetric"
    assert [event[1] for event in outcome.events] == [
        "FailedGetExternalMetric",
        "InvalidMetricSourceType",
        "FailedComputeMetricsReplicas",
    ]
    assert outcome.events[-1][2].startswith(
        "invalid metrics (2 invalid out of 3), first error is: failed to get qps"
    )
    assert [entry.type for entry in outcome.status.current_metrics or ()] == ["Resource", "", ""]
