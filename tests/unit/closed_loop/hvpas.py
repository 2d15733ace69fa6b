"""The Hvpas of the closed loops, as changes of the usual one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.unit.closed_loop.workload import Shape

MOST = 20
"""maxReplicas."""


def utilization(percent: int, container: str = "", resource: str = "cpu") -> dict[str, Any]:
    return _metric({"type": "Utilization", "averageUtilization": percent}, container, resource)


def average_value(millicores: int, container: str = "") -> dict[str, Any]:
    return _metric({"type": "AverageValue", "averageValue": f"{millicores}m"}, container)


def _metric(target: Mapping[str, Any], container: str, resource: str = "cpu") -> dict[str, Any]:
    if container:
        source = {"name": resource, "container": container, "target": target}
        return {"type": "ContainerResource", "containerResource": source}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def spec(
    shape: Shape,
    blend: str = "Additive",
    weight: float = 50,
    metric: Mapping[str, Any] | None = None,
    hpa: Mapping[str, Any] | None = None,
    vpa: Mapping[str, Any] | None = None,
    most: int = MOST,
    **rest: Any,
) -> dict[str, Any]:
    """An Hvpa of one weight; `hpa` and `vpa` are further fields of its axes."""
    policies = [
        {
            "containerName": use.name,
            "mode": "Auto" if use.governed else "Off",
            "controlledResources": list(shape.controlled),
        }
        for use in shape.uses
    ]
    template = {
        "minReplicas": 1,
        "maxReplicas": most,
        "metrics": [dict(metric if metric is not None else utilization(60))],
    }
    return {
        "blend": blend,
        "weightBasedScalingIntervals": [{"vpaWeight": weight}],
        "hpa": {"template": {"spec": template}, **(hpa or {})},
        "vpa": {
            "template": {
                "metadata": {"labels": {"of": "web"}},
                "spec": {"resourcePolicy": {"containerPolicies": policies}},
            },
            **(vpa or {}),
        },
        **rest,
    }
