"""Small scenarios for tests."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hvpa_lab.simulate.model import ContainerModel, Policy, Scenario, WorkloadModel

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
MIB = 1024 * 1024
CPU_METRIC = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "400m"}},
}
HPA = {"minReplicas": 2, "maxReplicas": 10, "metrics": [CPU_METRIC]}
VPA: dict[str, Any] = {}


@dataclass(frozen=True)
class Shape:
    """A load by a function of the seconds since the start."""

    value: Callable[[float], float]

    def at(self, seconds: float) -> float:
        return self.value(seconds)


def constant(value: float) -> Shape:
    return Shape(lambda _: value)


def step(before: float, at: float, after: float) -> Shape:
    return Shape(lambda seconds: before if seconds < at else after)


def container(**changes: Any) -> ContainerModel:
    """500m and 512Mi; a unit of load takes 10m and 1Mi, a replica alone 20m and 100Mi."""
    values: dict[str, Any] = {
        "name": "app",
        "requests": {"cpu": 500, "memory": 512 * MIB},
        "limits": {},
        "cpu_base": 20.0,
        "cpu_per_unit": 10.0,
        "memory_base": 100.0 * MIB,
        "memory_per_unit": 1.0 * MIB,
    }
    return ContainerModel(**(values | changes))


def workload(*containers: ContainerModel, **changes: Any) -> WorkloadModel:
    values: dict[str, Any] = {
        "kind": "Deployment",
        "name": "web",
        "namespace": "default",
        "replicas": 3,
        "containers": containers or (container(),),
        "start_up": 30.0,
    }
    return WorkloadModel(**(values | changes))


def scenario(**changes: Any) -> Scenario:
    """An hour of constant load, 90 units, which three pods at 320m each serve."""
    values: dict[str, Any] = {
        "name": "test",
        "description": "",
        "start": START,
        "duration": 3600.0,
        "step": 15.0,
        "load": constant(90.0),
        "workload": workload(),
        "policies": (),
    }
    return Scenario(**(values | changes))


def hvpa(weight: int = 50, template: Mapping[str, object] = HPA, **spec: Any) -> dict[str, object]:
    """An Hvpa that deploys both recommenders."""
    body: dict[str, Any] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "hpa": {
            "deploy": True,
            "selector": {"matchLabels": {"role": "hpa"}},
            "template": {"metadata": {"labels": {"role": "hpa"}}, "spec": dict(template)},
        },
        "vpa": {
            "deploy": True,
            "selector": {"matchLabels": {"role": "vpa"}},
            "template": {"metadata": {"labels": {"role": "vpa"}}},
        },
        "weightBasedScalingIntervals": [
            {"vpaWeight": weight, "startReplicaCount": 1, "lastReplicaCount": 10}
        ],
    }
    for name, value in spec.items():
        body[name] = body.get(name, {}) | value if isinstance(value, dict) else value
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web"},
        "spec": body,
    }


class Policies:
    """One policy of each kind."""

    hvpa = Policy("Hvpa", "Hvpa", hvpa=hvpa())
    hpa = Policy("HPA", "HPA", hpa=HPA)
    vpa = Policy("VPA", "VPA", vpa=VPA)
    both = Policy("both", "HPA+VPA", hpa=HPA, vpa=VPA)
    fixed = Policy("fixed", "Fixed")
