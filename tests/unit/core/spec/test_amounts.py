"""Amounts that were surely meant otherwise: the unit that is missing or wrong is named."""

from __future__ import annotations

from typing import Any

import pytest

from hvpa.core.spec.amounts import review_amounts

POLICY = "spec.vpa.template.spec.resourcePolicy.containerPolicies[0]"


def policies(**fields: Any) -> dict[str, Any]:
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [fields]}}}}}


def metric(kind: str, **source: Any) -> dict[str, Any]:
    return {"hpa": {"template": {"spec": {"metrics": [{"type": "Resource", kind: source}]}}}}


def change(**minimum: Any) -> dict[str, Any]:
    return {"vpa": {"scaleUp": {"minChange": minimum}}}


METRIC = "spec.hpa.template.spec.metrics[0]"
LEAST, MOST = f"{POLICY}.minAllowed", f"{POLICY}.maxAllowed"
PATH = {"intervals": [{"maxReplicas": 3, "maxResources": {"memory": "2m"}}]}
WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    (policies(minAllowed={"memory": "128m"}), f"{LEAST}[memory]", "128 thousandths of a byte", "128Mi"),
    (policies(maxAllowed={"memory": "2u"}), f"{MOST}[memory]", "2 millionths of a byte", "2Mi"),
    (policies(maxAllowed={"memory": 512}), f"{MOST}[memory]", "512 bytes", "512Mi"),
    (policies(maxAllowed={"memory": "512k"}), f"{MOST}[memory]", "512,000 bytes", "check the unit"),
    (policies(maxAllowed={"memory": "128Ti"}), f"{MOST}[memory]", "than a machine has", "check the unit"),
    (policies(minAllowed={"cpu": 100}), f"{LEAST}[cpu]", "100 cores", "100m"),
    (policies(maxAllowed={"cpu": "500"}), f"{MOST}[cpu]", "500 cores", "500m"),
    (policies(maxAllowed={"cpu": "2Gi"}), f"{MOST}[cpu]", "2,147,483,648 cores", "measured in cores"),
    (metric("resource", name="cpu", targetAverageValue=300),
     f"{METRIC}.resource.targetAverageValue", "300 cores", "300m"),
    (metric("containerResource", name="memory", target={"averageValue": "400m"}),
     f"{METRIC}.containerResource.target.averageValue", "400 thousandths of a byte", "400Mi"),
    ({"trajectory": PATH}, "spec.trajectory.intervals[0].maxResources.memory", "2 thousandths of a byte", "2Mi"),
    ({"trajectory": {"overlap": {"cpu": {"value": 100}}}}, "spec.trajectory.overlap.cpu.value", "100 cores", "100m"),
    (change(memory={"value": "200"}), "spec.vpa.scaleUp.minChange.memory.value", "200 bytes", "200Mi"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "path", "reason", "remedy"), WRONG, ids=[path for _, path, *_ in WRONG])
def test_a_wrong_unit_is_named(spec: dict[str, Any], path: str, reason: str, remedy: str) -> None:
    (remark,) = review_amounts(spec)
    assert remark.path == path
    assert reason in remark.reason
    assert remedy in remark.remedy


@pytest.mark.parametrize(
    "spec",
    [
        policies(minAllowed={"cpu": "10m", "memory": "32Mi"}, maxAllowed={"cpu": 128, "memory": "1Ti"}),
        policies(minAllowed={"cpu": 0, "memory": "0m"}),
        metric("resource", name="cpu", target={"type": "Utilization", "averageUtilization": 300}),
        metric("resource", name="cpu", targetAverageUtilization=300),
        metric("external", metricName="queue", targetAverageValue=300),
        change(cpu={}, memory={"value": 1}, replicas={"value": 300}),
        {"trajectory": {"overlap": {"cpu": {"percentage": 90}}}},
        {"hpa": {"template": {"metadata": {"labels": {"minAllowed": "128m", "resource": "cpu"}}}}},
    ],
)
def test_amounts_that_may_be_meant_get_no_remark(spec: dict[str, Any]) -> None:
    assert review_amounts(spec) == ()
