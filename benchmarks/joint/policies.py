"""The workloads and policies of `python -m benchmarks joint`, as a scenario's fields.

This module contains the compared policies, and the settings that make them comparable; `benchmarks/joint/command.py`
has the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

Fields = dict[str, Any]
"""A part of a scenario, in the form of its YAML."""
Resize = Literal["Recreate", "InPlace"]
CONTAINER: Final = "app"
REQUEST: Final = {"cpu": "1", "memory": "2Gi"}
"""Initial requests of each policy; the HPA alone keeps them."""
MIN_ALLOWED: Final = {"cpu": "100m", "memory": "128Mi"}
MAX_ALLOWED: Final = {"cpu": "4", "memory": "16Gi"}
REPLICAS: Final = {"minReplicas": 2, "maxReplicas": 30}
BASELINE: Final = "HPA+VPA"
"""The baseline of the comparison."""
POLICY: Final = "Trajectory 50"
"""The judged policy: joint scaling with weight 50, and defaults otherwise."""


# --- workloads ------------------------------------------------------------------------------------------------------
class WorkloadUse(NamedTuple):
    """The usage of a replica."""

    name: str
    memory_per_core: str
    """Memory for each core of work."""
    base_cpu: str
    """CPU without work."""
    base_memory: str
    """Memory without work."""
    by_memory: bool
    """Whether memory is a metric of its HPA."""
    known_base: bool
    """Whether the base is significant, so that its owner knows it."""
    slow: bool = False
    """Whether it starts, stops and releases memory slowly (`SLOW`)."""


_LITTLE: Final = ("20m", "150Mi")
_MUCH: Final = ("150m", "600Mi")
WORKLOADS: Final = (  # 64Mi and 4Gi for 1.5 cores
    WorkloadUse("cpu", "43690667", *_LITTLE, False, False),
    WorkloadUse("cpu-base", "43690667", *_MUCH, False, True),
    WorkloadUse("memory", "2863311531", *_LITTLE, True, False),
    WorkloadUse("memory-base", "2863311531", *_MUCH, True, True),
)


RESIZE_DELAY: Final = "5s"
"""Time from a resize's request until the pod has it; longer than an idle kubelet takes."""


SLOW: Final = {"startUp": "500m", "kept": 0.5, "terminationGrace": "30s"}
"""Settings of slow pods: they use half a core until they are ready, keep half of the load's memory when the load falls,
and keep their place for Kubernetes' default of 30 seconds after deletion. The first affects every started pod, the
second policies that follow the memory down, the third policies that replace pods."""


def workload_field(workload: WorkloadUse, resize: Resize, leak: str) -> Fields:
    """Return the scenario's field `workload`; `leak` is the memory that a pod loses per hour. A core of work is a unit
    of the load."""
    cpu: Fields = {"base": workload.base_cpu, "perUnit": "1"}
    memory: Fields = {"base": workload.base_memory, "perUnit": workload.memory_per_core, "leakPerHour": leak}
    if workload.slow:
        cpu["startUp"], memory["kept"] = SLOW["startUp"], SLOW["kept"]
    use = {"cpu": cpu, "memory": memory}
    container = {"name": CONTAINER, "requests": dict(REQUEST), "limits": {"memory": "3Gi"}, **use}
    field: Fields = {"name": "web", "replicas": 3, "startUp": "30s", "containers": [container]}
    if workload.slow:
        field["terminationGrace"] = SLOW["terminationGrace"]
    return {**field, "resize": resize, **({"resizeDelay": RESIZE_DELAY} if resize == "InPlace" else {})}


# --- headroom -------------------------------------------------------------------------------------------------------
class Headroom(NamedTuple):
    """Reserve above the usage."""

    target: int
    """Millicores that an HPA lets a pod of `REQUEST` use; memory in the same proportion."""
    margin: float
    """Share that a VPA adds to the usage."""

    @property
    def memory(self) -> int:
        """Memory in Mi that an HPA lets a pod use: 1600 with 800 millicores."""
        return 2 * self.target

    @property
    def share(self) -> Headroom:
        """The same margin for pods that are sized by their HPA's target: 870m for a margin of 15 percent."""
        return Headroom(round(1000 / (1 + self.margin)), self.margin)

    @property
    def name(self) -> str:
        """Its name in reports."""
        return f"{self.target}m"


DEFAULT_TARGET: Final = 800
DEFAULT_MARGIN: Final = 0.15


def headroom(target: int) -> Headroom:
    """Return the headroom of this target; 1 + the VPA's margin is proportional to 1 / target."""
    return Headroom(target, round((1 + DEFAULT_MARGIN) * DEFAULT_TARGET / target - 1, 4))


# --- policies -------------------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """The input for building a policy."""

    workload: WorkloadUse
    headroom: Headroom
    resize: Resize


class PolicyCase(NamedTuple):
    """A way to scale, its kind of resizes, and the targets of its headrooms in the evidence (empty: it only runs with
    `--only`)."""

    name: str
    resize: Resize
    build: Callable[[Case], Fields]
    targets: tuple[int, ...] = ()

    @property
    def full_name(self) -> str:
        """Name and resize."""
        return f"{self.name}/{self.resize}"


def _absolute(case: Case, room: Headroom) -> Fields:
    """Return an HPA with AverageValue targets."""
    metrics = [_metric("cpu", {"type": "AverageValue", "averageValue": f"{room.target}m"})]
    if case.workload.by_memory:
        metrics.append(_metric("memory", {"type": "AverageValue", "averageValue": f"{room.memory}Mi"}))
    return {**REPLICAS, "metrics": metrics}


def _relative(case: Case, by_memory: bool) -> Fields:
    """Return an HPA with Utilization targets."""
    percent = {"cpu": case.headroom.target // 10}
    if by_memory:
        percent["memory"] = case.headroom.memory * 100 // 2048
    metrics = [
        _metric(resource, {"type": "Utilization", "averageUtilization": of})
        for resource, of in percent.items()
    ]
    return {**REPLICAS, "metrics": metrics}


def _metric(resource: str, target: Fields) -> Fields:
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _resource_policy(bounds: Fields) -> Fields:
    return {"containerPolicies": [{"containerName": CONTAINER, **bounds}]}


def _vpa(case: Case, **policy: Any) -> Fields:
    """Return a VPA that acts; limits keep the template's proportion. `policy`: further fields of the container's
    policy."""
    bounds = {"minAllowed": dict(MIN_ALLOWED), "maxAllowed": dict(MAX_ALLOWED), **policy}
    spec: Fields = {"resourcePolicy": _resource_policy(bounds)}
    if case.resize == "InPlace":
        spec["updatePolicy"] = {"updateMode": "InPlaceOrRecreate"}
    return spec


def _hvpa(case: Case, blend: Fields, least: bool = True) -> Fields:
    """Return an Hvpa with its defaults, except for the settings that all policies share: bounds, targets, the delay
    before scaling in, limits. Without `least`, there is no minAllowed."""
    bounds: Fields = {"maxAllowed": dict(MAX_ALLOWED)}
    if least:
        bounds["minAllowed"] = dict(MIN_ALLOWED)
    spec: Fields = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "hpa": _hvpa_hpa(case, case.headroom.share if blend["blend"] == "Trajectory" else case.headroom),
        "vpa": {
            "deploy": True,
            "template": {"spec": {"resourcePolicy": _resource_policy(bounds)}},
            "limitsRequestsGapScaleParams": {"memory": {"percentage": 50}},
        },
        **blend,
    }
    if case.resize == "InPlace":
        spec["updateStrategy"] = {"type": "InPlaceOrRollout"}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web"},
        "spec": spec,
    }


def _hvpa_hpa(case: Case, room: Headroom) -> Fields:
    """Return `spec.hpa`, with five minutes before scaling in."""
    template = {"spec": _absolute(case, room)}
    return {"deploy": True, "template": template, "scaleDown": {"stabilizationDuration": "5m"}}


def _weights(weight: int) -> Fields:
    return {"weightBasedScalingIntervals": [{"vpaWeight": weight, "lastReplicaCount": 30}]}


def _additive(weight: int) -> Callable[[Case], Fields]:
    return lambda case: {"hvpa": _hvpa(case, {"blend": "Additive", **_weights(weight)})}


def _trajectory(case: Case, fields: Fields) -> Fields:
    """Return `spec.trajectory`, with the base usage if it is significant: an owner knows it."""
    if case.workload.known_base:
        base = {"cpu": {"value": case.workload.base_cpu}, "memory": {"value": case.workload.base_memory}}
        fields = {**fields, "baseResourcesPerReplica": base}
    return {"blend": "Trajectory", **({"trajectory": fields} if fields else {})}


def _by_weight(weight: int, least: bool = True) -> Callable[[Case], Fields]:
    return lambda case: {"hvpa": _hvpa(case, {**_trajectory(case, {}), **_weights(weight)}, least)}


PATH: Final = (
    {"maxReplicas": 4, "maxResources": dict(REQUEST)},
    {"maxReplicas": 12, "maxResources": {"cpu": "2", "memory": "4Gi"}},
    {"maxReplicas": 30, "maxResources": dict(MAX_ALLOWED)},
)
"""An explicit path: it begins with the initial pods of all policies, and ends at the bounds."""


def _by_intervals(case: Case) -> Fields:
    return {"hvpa": _hvpa(case, _trajectory(case, {"intervals": [dict(interval) for interval in PATH]}))}


LINE: Final = (700, 800, 900)
"""Targets of the headrooms on the line of HPA and VPA."""
_ONE: Final = (DEFAULT_TARGET,)
_RESIZED: Final[Mapping[str, tuple[Callable[[Case], Fields], tuple[int, ...]]]] = {
    BASELINE: (lambda case: {"hpa": _absolute(case, case.headroom), "vpa": _vpa(case)}, LINE),
    "HPA on CPU, VPA on memory": (
        lambda case: {"hpa": _relative(case, False), "vpa": _vpa(case, controlledResources=["memory"])},
        _ONE,
    ),
    "VPA": (lambda case: {"vpa": _vpa(case)}, _ONE),
    POLICY: (_by_weight(50, least=False), _ONE),
    "Additive 50": (_additive(50), ()),
    "Trajectory 0": (_by_weight(0, least=False), ()),
    "Trajectory 80": (_by_weight(80, least=False), ()),
    "Trajectory 50 from 100m": (_by_weight(50), ()),
    "Trajectory intervals": (_by_intervals, ()),
}
_KINDS: Final[tuple[Resize, ...]] = ("Recreate", "InPlace")
POLICIES: Final = (
    PolicyCase("HPA", "Recreate", lambda case: {"hpa": _relative(case, case.workload.by_memory)}, _ONE),
    *(
        PolicyCase(name, resize, build, targets)
        for resize in _KINDS
        for name, (build, targets) in _RESIZED.items()
    ),
)
"""All policies. A path by weights begins at the initial requests, except `from 100m`, which begins at minAllowed: a
floor, not a realistic pod. An HPA by itself resizes nothing, and is listed with the policies that recreate pods."""
