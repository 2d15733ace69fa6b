"""Templates of the HPA and the VPA: what is written to the cluster of them."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.api.hvpa.metrics import MetricSpec
from hvpa.api.hvpa.templates import HpaTemplateSpec, ResourcePolicy

SELECTOR = {"matchLabels": {"verb": "GET"}}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}


def target(kind: str, **value: Any) -> dict[str, Any]:
    """A v2 target."""
    return {"type": kind, **value}


METRICS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a utilization": (
        "resource",
        {"name": "cpu", "targetAverageUtilization": 50},
        {"name": "cpu", "target": target("Utilization", averageUtilization=50)},
    ),
    "an average value": (
        "resource",
        {"name": "memory", "targetAverageValue": "1Gi"},
        {"name": "memory", "target": target("AverageValue", averageValue="1Gi")},
    ),
    "a container": (
        "containerResource",
        {"name": "cpu", "container": "app", "targetAverageUtilization": 50},
        {"name": "cpu", "container": "app", "target": target("Utilization", averageUtilization=50)},
    ),
    "pods": (
        "pods",
        {"metricName": "packets", "targetAverageValue": 5},
        {"metric": {"name": "packets"}, "target": target("AverageValue", averageValue="5")},
    ),
    "pods with a selector": (
        "pods",
        {"metricName": "packets", "targetAverageValue": 5, "selector": SELECTOR},
        {
            "metric": {"name": "packets", "selector": SELECTOR},
            "target": target("AverageValue", averageValue="5"),
        },
    ),
    "an object": (
        "object",
        {"metricName": "requests", "target": INGRESS, "targetValue": "2k"},
        {
            "metric": {"name": "requests"},
            "describedObject": INGRESS,
            "target": target("Value", value="2k"),
        },
    ),
    "an object by average": (
        "object",
        {"metricName": "requests", "target": INGRESS, "targetValue": "0", "averageValue": "3"},
        {
            "metric": {"name": "requests"},
            "describedObject": INGRESS,
            "target": target("AverageValue", averageValue="3"),
        },
    ),
    "an external metric": (
        "external",
        {"metricName": "queue", "metricSelector": SELECTOR, "targetValue": 30},
        {"metric": {"name": "queue", "selector": SELECTOR}, "target": target("Value", value="30")},
    ),
    "an external metric by average": (
        "external",
        {"metricName": "queue", "targetAverageValue": 30},
        {"metric": {"name": "queue"}, "target": target("AverageValue", averageValue="30")},
    ),
}


def metric(source: str, content: dict[str, Any]) -> dict[str, Any]:
    """A metric with its type."""
    return {"type": source[0].upper() + source[1:], source: content}


@pytest.mark.parametrize(("source", "old", "new"), METRICS.values(), ids=METRICS.keys())
def test_a_metric_of_the_old_form_becomes_one_of_autoscaling_v2(
    source: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert MetricSpec.model_validate(metric(source, old)).to_v2() == metric(source, new)


@pytest.mark.parametrize(("source", "old", "new"), METRICS.values(), ids=METRICS.keys())
def test_a_metric_of_autoscaling_v2_stays_as_it_is(
    source: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert MetricSpec.model_validate(metric(source, new)).to_v2() == metric(source, new)


def test_a_template_says_no_more_than_it_must() -> None:
    assert HpaTemplateSpec.model_validate({"maxReplicas": 3}).to_v2() == {"maxReplicas": 3}


def test_a_template_is_written_whole() -> None:
    behavior = {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "tolerance": "50m",
            "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}],
        },
        "scaleDown": {"selectPolicy": "Disabled"},
    }
    resource = metric("resource", METRICS["a utilization"][2])
    wire = {"minReplicas": 1, "maxReplicas": 3, "metrics": [resource], "behavior": behavior}
    assert HpaTemplateSpec.model_validate(wire).to_v2() == wire


def test_behavior_of_one_direction_leaves_the_other_out() -> None:
    wire = {"maxReplicas": 3, "behavior": {"scaleUp": {"tolerance": 0, "policies": []}}}
    assert HpaTemplateSpec.model_validate(wire).to_v2()["behavior"] == {"scaleUp": {"tolerance": "0"}}


def test_a_resource_policy_is_written_as_it_was_read() -> None:
    wire = {
        "containerPolicies": [
            {"containerName": "*", "mode": "Off"},
            {
                "containerName": "app",
                "minAllowed": {"cpu": 1, "memory": "1Gi"},
                "maxAllowed": {"cpu": "2"},
                "controlledResources": [],
                "controlledValues": "RequestsOnly",
            },
        ]
    }
    assert ResourcePolicy.model_validate(wire).to_wire() == wire
