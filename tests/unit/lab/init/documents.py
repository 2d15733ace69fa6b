"""A workload of the shop, what scales it, and a history of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.unit.cli.support import Doc

START = 1_767_571_200  # 2026-01-05T00:00:00Z
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
APP = {"name": "app", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "3Gi"}}}
LIMITED = {"name": "app", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "2"}}}
"""A container whose CPU is limited."""


def meta(name: str = "web", **more: Any) -> Doc:
    return {"name": name, "namespace": "shop", **more}


def workload(*containers: Doc, kind: str = "Deployment", **spec: Any) -> Doc:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers or (APP,))}}
    whole = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta(), "spec": whole}


def rollout() -> Doc:
    """The same workload as an Argo Rollout."""
    return {**workload(), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}


def resource(name: str, **target: Any) -> Doc:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


CPU_70 = resource("cpu", averageUtilization=70)


def hpa(*metrics: Doc, name: str = "web", **spec: Any) -> Doc:
    whole = {"scaleTargetRef": TARGET, "minReplicas": 2, "maxReplicas": 12, "metrics": list(metrics), **spec}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta(name),
        "spec": whole,
    }


def vpa(mode: str | None = "Off", *policies: Doc, **updates: Any) -> Doc:
    spec: Doc = {"targetRef": TARGET}
    if mode is not None:
        spec["updatePolicy"] = {"updateMode": mode, **updates}
    if policies:
        spec["resourcePolicy"] = {"containerPolicies": list(policies)}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": meta(),
        "spec": spec,
    }


def keda(**spec: Any) -> Doc:
    whole = {"scaleTargetRef": {"name": "web"}, "triggers": [], **spec}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": meta(), "spec": whole}


def load_at(at: int) -> float:
    return 200 - 150 * math.cos(2 * math.pi * (at % 86400) / 86400)


def usage(
    days: float = 1, *, every: int = 300, load: bool = True, replicas: Callable[[int], int] | None = None
) -> str:
    """A history in CSV: pods use 150m and 400Mi, and 10m and 2Mi more for each request per second."""
    rows = ["time,replicas,cpu,memory" + ",load" * load]
    for number in range(round(days * 86400 / every)):
        at = START + number * every
        units = load_at(at)
        count = 2 + round(units / 60) + number // 5 % 2 if replicas is None else replicas(at)
        cpu, memory = 0.15 * count + 0.01 * units, (400 * count + 2 * units) * 2**20
        rows.append(f"{at},{count},{cpu:.4f},{memory:.0f}" + f",{units:.3f}" * load)
    return "\n".join(rows) + "\n"
