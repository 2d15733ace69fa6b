"""Templates of the HPA and the VPA: what is written to the cluster of them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hvpa.api.hvpa.metrics import MetricSpec
from hvpa.api.hvpa.templates import HpaTemplateSpec, ResourcePolicy

METRICS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = yaml.safe_load("""\
a utilization:
  - resource
  - {name: cpu, targetAverageUtilization: 50}
  - {name: cpu, target: {type: Utilization, averageUtilization: 50}}
an average value:
  - resource
  - {name: memory, targetAverageValue: 1Gi}
  - {name: memory, target: {type: AverageValue, averageValue: 1Gi}}
a container:
  - containerResource
  - {name: cpu, container: app, targetAverageUtilization: 50}
  - {name: cpu, container: app, target: {type: Utilization, averageUtilization: 50}}
pods:
  - pods
  - {metricName: packets, targetAverageValue: 5}
  - {metric: {name: packets}, target: {type: AverageValue, averageValue: "5"}}
pods with a selector:
  - pods
  - {metricName: packets, targetAverageValue: 5, selector: {matchLabels: {verb: GET}}}
  - metric: {name: packets, selector: {matchLabels: {verb: GET}}}
    target: {type: AverageValue, averageValue: "5"}
an object:
  - object
  - {metricName: requests, target: &main {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main}, targetValue: 2k}
  - {metric: {name: requests}, describedObject: *main, target: {type: Value, value: 2k}}
an object by average:
  - object
  - {metricName: requests, target: *main, targetValue: "0", averageValue: "3"}
  - {metric: {name: requests}, describedObject: *main, target: {type: AverageValue, averageValue: "3"}}
an external metric:
  - external
  - {metricName: queue, metricSelector: {matchLabels: {verb: GET}}, targetValue: 30}
  - {metric: {name: queue, selector: {matchLabels: {verb: GET}}}, target: {type: Value, value: "30"}}
an external metric by average:
  - external
  - {metricName: queue, targetAverageValue: 30}
  - {metric: {name: queue}, target: {type: AverageValue, averageValue: "30"}}
""")
"""The source, and how the old form and autoscaling/v2 write the same metric."""


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


def test_min_allowed_max_allowed_and_controlled_values_are_written_as_read() -> None:
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
