"""Older API versions of HPAs and VPAs, as dumps and repositories hold them, become the versions that are read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Hpa
from hvpa.cli.input.versions import OLDER, hpa_of_v1, hpa_of_v2beta1
from tests.unit.cli.support import Doc, Shell, of_kind

DETAILS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
SELECTOR = {"matchLabels": {"queue": "orders"}}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web"}
TARGETS: list[tuple[str, Doc, Doc]] = [
    ("Resource", {"name": "cpu", "targetAverageUtilization": 70},
     {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}),
    ("Resource", {"name": "memory", "targetAverageValue": "1Gi"},
     {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}),
    ("ContainerResource", {"name": "cpu", "container": "app", "targetAverageUtilization": 60},
     {"name": "cpu", "container": "app", "target": {"type": "Utilization", "averageUtilization": 60}}),
    ("Pods", {"metricName": "rps", "selector": SELECTOR, "targetAverageValue": "100"},
     {"metric": {"name": "rps", "selector": SELECTOR}, "target": {"type": "AverageValue", "averageValue": "100"}}),
    ("Object", {"target": INGRESS, "metricName": "rps", "targetValue": "2k"},
     {"metric": {"name": "rps"}, "describedObject": INGRESS, "target": {"type": "Value", "value": "2k"}}),
    ("Object", {"target": INGRESS, "metricName": "rps", "targetValue": "0", "averageValue": "50"},
     {"metric": {"name": "rps"}, "describedObject": INGRESS, "target": {"type": "AverageValue", "averageValue": "50"}}),
    ("External", {"metricName": "depth", "metricSelector": SELECTOR, "targetValue": "30"},
     {"metric": {"name": "depth", "selector": SELECTOR}, "target": {"type": "Value", "value": "30"}}),
    ("External", {"metricName": "depth", "targetAverageValue": "30"},
     {"metric": {"name": "depth"}, "target": {"type": "AverageValue", "averageValue": "30"}}),
]  # fmt: skip
MEASURED: list[tuple[str, Doc, Doc]] = [
    ("Resource", {"name": "cpu", "currentAverageUtilization": 90, "currentAverageValue": "450m"},
     {"name": "cpu", "current": {"averageUtilization": 90, "averageValue": "450m"}}),
    ("Object", {"target": INGRESS, "metricName": "rps", "currentValue": "3k"},
     {"metric": {"name": "rps"}, "describedObject": INGRESS, "current": {"value": "3k"}}),
    ("External", {"metricName": "depth", "currentValue": "0", "currentAverageValue": "7"},
     {"metric": {"name": "depth"}, "current": {"value": "0", "averageValue": "7"}}),
]  # fmt: skip


def metric(kind: str, details: Doc) -> Doc:
    """A metric of this type."""
    return {"type": kind, DETAILS[kind]: details}


@pytest.mark.parametrize(("kind", "old", "new"), TARGETS)
def test_a_target_of_v2beta1_is_that_of_v2(kind: str, old: Doc, new: Doc) -> None:
    hpa = hpa_of_v2beta1({"apiVersion": "autoscaling/v2beta1", "spec": {"metrics": [metric(kind, old)]}})
    assert hpa["apiVersion"] == "autoscaling/v2"
    assert hpa["spec"]["metrics"] == [metric(kind, new)]


@pytest.mark.parametrize(("kind", "old", "new"), MEASURED)
def test_a_measured_value_of_v2beta1_is_that_of_v2(kind: str, old: Doc, new: Doc) -> None:
    hpa = hpa_of_v2beta1({"spec": {"maxReplicas": 3}, "status": {"currentMetrics": [metric(kind, old)]}})
    assert hpa["status"]["currentMetrics"] == [metric(kind, new)]


def in_v1(**annotations: Any) -> Doc:
    """An HPA of autoscaling/v1 with these annotations."""
    whole = {
        f"autoscaling.alpha.kubernetes.io/{name}": json.dumps(value) for name, value in annotations.items()
    }
    spec = {"maxReplicas": 5, "targetCPUUtilizationPercentage": 80}
    status = {"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 95}
    return {
        "apiVersion": "autoscaling/v1",
        "metadata": {"annotations": whole},
        "spec": spec,
        "status": status,
    }


CPU_OF_V2 = metric("Resource", {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}})


def test_v1_has_its_target_in_a_field_and_the_rest_in_annotations() -> None:
    memory = metric("Resource", {"name": "memory", "targetAverageValue": "1Gi"})
    current = metric("Resource", {"name": "memory", "currentAverageValue": "900Mi"})
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    conditions = [{"type": "ScalingActive", "status": "True"}]
    names = {
        "metrics": [memory],
        "current-metrics": [current],
        "conditions": conditions,
        "behavior": behavior,
    }
    hpa = hpa_of_v1(in_v1(**names))
    of_memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    assert hpa["spec"] == {
        "maxReplicas": 5,
        "metrics": [metric("Resource", of_memory), CPU_OF_V2],
        "behavior": behavior,
    }
    assert hpa["status"] == {
        "currentReplicas": 2,
        "desiredReplicas": 3,
        "currentMetrics": [
            metric("Resource", {"name": "memory", "current": {"averageValue": "900Mi"}}),
            metric("Resource", {"name": "cpu", "current": {"averageUtilization": 95}}),
        ],
        "conditions": conditions,
    }


def test_the_cpu_of_v1_is_not_measured_twice() -> None:
    current = metric("Resource", {"name": "cpu", "currentAverageUtilization": 95, "currentAverageValue": "1"})
    (current_metric,) = hpa_of_v1(in_v1(**{"current-metrics": [current]}))["status"]["currentMetrics"]
    assert current_metric["resource"]["current"] == {"averageUtilization": 95, "averageValue": "1"}


def test_v1_without_a_target_has_no_metrics() -> None:
    assert hpa_of_v1({"spec": {"maxReplicas": 3}})["spec"] == {"maxReplicas": 3}


@pytest.mark.parametrize("version", ["autoscaling/v1", "autoscaling/v2beta1", "autoscaling/v2beta2"])
def test_an_hpa_of_an_older_version_explains_as_the_same_of_v2(
    shell: Shell, gardener: list[Doc], version: str
) -> None:
    hpa = of_kind(gardener, "HorizontalPodAutoscaler")
    expected = shell.explain(gardener)
    status, spec = {**hpa["status"]}, {**hpa["spec"]}
    older: Doc = {**hpa, "apiVersion": version, "spec": spec, "status": status}
    if version == "autoscaling/v2beta1":
        spec["metrics"] = [downgraded(metric, "target") for metric in spec["metrics"]]
        status["currentMetrics"] = [downgraded(metric, "current") for metric in status["currentMetrics"]]
    elif version == "autoscaling/v1":
        notes = {"metrics": spec.pop("metrics"), "current-metrics": status.pop("currentMetrics")}
        notes["metrics"] = [downgraded(metric, "target") for metric in notes["metrics"]]
        notes["current-metrics"] = [downgraded(metric, "current") for metric in notes["current-metrics"]]
        notes["conditions"] = status.pop("conditions")
        texts = {
            f"autoscaling.alpha.kubernetes.io/{name}": json.dumps(value) for name, value in notes.items()
        }
        older["metadata"] = {**hpa["metadata"], "annotations": texts}
    assert shell.explain([older if document is hpa else document for document in gardener]) == expected


def downgraded(v2_metric: Doc, field: str) -> Doc:
    """A Resource metric as v2beta1 has it."""
    values = {key: value for key, value in v2_metric["resource"][field].items() if key != "type"}
    named = {f"{field}{key[0].upper()}{key[1:]}": value for key, value in values.items()}
    return metric("Resource", {"name": v2_metric["resource"]["name"], **named})


def test_a_vpa_of_v1beta2_explains_as_the_same_of_v1(shell: Shell, gardener: list[Doc]) -> None:
    vpa = of_kind(gardener, "VerticalPodAutoscaler")
    older = {**vpa, "apiVersion": "autoscaling.k8s.io/v1beta2"}
    assert shell.explain([older if document is vpa else document for document in gardener]) == shell.explain(
        gardener
    )


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "resource", "name", "target", "metricName", "selector", "averageValue", "x"]
            ),
            inner | st.sampled_from(["Resource", "Pods", "Object"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(OLDER)), JUNK, JUNK, JUNK)
def test_whatever_stands_there_is_read_or_refused_by_the_read_model(
    key: tuple[str, str], metrics: Any, current: Any, note: Any
) -> None:
    notes = {
        f"autoscaling.alpha.kubernetes.io/{name}": json.dumps(note) for name in ("metrics", "conditions")
    }
    content = {
        "metadata": {"name": "a", "annotations": notes},
        "spec": {"metrics": metrics, "targetCPUUtilizationPercentage": note},
        "status": {"currentMetrics": current},
    }
    hpa = OLDER[key](content)
    try:
        msgspec.json.decode(msgspec.json.encode(hpa), type=Hpa)
    except msgspec.MsgspecError:
        return
