"""The workloads and the ways to scale them of `python -m benchmarks joint`, as a scenario's fields.

What belongs here: what is compared, and what makes it fair; the reasons are in `benchmarks/joint/command.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

Fields = dict[str, Any]
"""A part of a scenario, as YAML has it."""
Resize = Literal["Recreate", "InPlace"]
CONTAINER: Final = "app"
REQUEST: Final = {"cpu": "1", "memory": "2Gi"}
"""What each policy begins with, and what the HPA alone keeps."""
MIN_ALLOWED: Final = {"cpu": "100m", "memory": "128Mi"}
MAX_ALLOWED: Final = {"cpu": "4", "memory": "16Gi"}
REPLICAS: Final = {"minReplicas": 2, "maxReplicas": 30}
BASELINE: Final = "HPA+VPA"
"""What the others are compared with."""
POLICY: Final = "Trajectory 50"
"""What is judged: joint scaling with weight 50, and defaults otherwise."""


# --- workloads ------------------------------------------------------------------------------------------------------
class Workload(NamedTuple):
    """What a replica uses: for each core of work that much memory, and without any work the base. `by_memory` says that
    memory is a metric of its HPA; `known_base`, that the base is one to speak of, so that its owner knows it; `slow`,
    that it starts, stops and gives back memory slowly (`SLOW`)."""

    name: str
    memory_per_core: str
    base_cpu: str
    base_memory: str
    by_memory: bool
    known_base: bool
    slow: bool = False


_LITTLE: Final = ("20m", "150Mi")
_MUCH: Final = ("150m", "600Mi")
WORKLOADS: Final = (  # 64Mi and 4Gi for 1.5 cores
    Workload("cpu", "43690667", *_LITTLE, False, False),
    Workload("cpu-base", "43690667", *_MUCH, False, True),
    Workload("memory", "2863311531", *_LITTLE, True, False),
    Workload("memory-base", "2863311531", *_MUCH, True, True),
)


RESIZE_DELAY: Final = "5s"
"""From a resize's request until the pod has it: more than a kubelet takes that has nothing else to do."""


SLOW: Final = {"startUp": "500m", "kept": 0.5, "terminationGrace": "30s"}
"""What slow pods are: half a core is used until a pod is ready, half of the memory that the load took is kept when the
load falls, and a deleted pod keeps its place for Kubernetes' default of 30 seconds. The first costs each pod that is
started, the second whoever follows the memory down, the third whoever replaces pods."""


def workload_field(workload: Workload, resize: Resize, leak: str) -> Fields:
    """The scenario's field `workload`; `leak` is the memory that a pod loses in an hour. A core of work is a unit of
    the load."""
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
    """How much more than is used is asked for: what an HPA lets a pod of `REQUEST` use (millicores; memory in the same
    proportion), and the share that a VPA puts on top of what it saw."""

    target: int
    margin: float

    @property
    def memory(self) -> int:
        """The memory in Mi that an HPA lets a pod use: 1600 with 800 millicores."""
        return 2 * self.target

    @property
    def share(self) -> Headroom:
        """The same margin where pods are sized by what an HPA lets them use of their request."""
        return Headroom(round(1000 / (1 + self.margin)), self.margin)

    @property
    def name(self) -> str:
        """How it is called."""
        return f"{self.target}m"


DEFAULT_TARGET: Final = 800
DEFAULT_MARGIN: Final = 0.15


def headroom(target: int) -> Headroom:
    """The headroom of this target: the VPA's share is as much larger or smaller as the HPA's 1 / target."""
    return Headroom(target, round((1 + DEFAULT_MARGIN) * DEFAULT_TARGET / target - 1, 4))


# --- policies -------------------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """What a policy is made for."""

    workload: Workload
    headroom: Headroom
    resize: Resize


class PolicyCase(NamedTuple):
    """A way to scale, how its pods are resized, and the targets of the headrooms that the evidence has of it (none: it
    is run by `--only` alone)."""

    name: str
    resize: Resize
    build: Callable[[Case], Fields]
    targets: tuple[int, ...] = ()

    @property
    def full_name(self) -> str:
        """Name and resize."""
        return f"{self.name}/{self.resize}"


def _absolute(case: Case, room: Headroom) -> Fields:
    """An HPA by AverageValue."""
    metrics = [_metric("cpu", {"type": "AverageValue", "averageValue": f"{room.target}m"})]
    if case.workload.by_memory:
        metrics.append(_metric("memory", {"type": "AverageValue", "averageValue": f"{room.memory}Mi"}))
    return {**REPLICAS, "metrics": metrics}


def _relative(case: Case, by_memory: bool) -> Fields:
    """An HPA by Utilization."""
    percent = {"cpu": case.headroom.target // 10}
    if by_memory:
        percent["memory"] = case.headroom.memory * 100 // 2048
    metrics = [_metric(one, {"type": "Utilization", "averageUtilization": of}) for one, of in percent.items()]
    return {**REPLICAS, "metrics": metrics}


def _metric(resource: str, target: Fields) -> Fields:
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _resource_policy(bounds: Fields) -> Fields:
    return {"containerPolicies": [{"containerName": CONTAINER, **bounds}]}


def _vpa(case: Case, **policy: Any) -> Fields:
    """A VPA that acts; limits keep the proportion of the template. `policy`: further fields of the container's."""
    bounds = {"minAllowed": dict(MIN_ALLOWED), "maxAllowed": dict(MAX_ALLOWED), **policy}
    spec: Fields = {"resourcePolicy": _resource_policy(bounds)}
    if case.resize == "InPlace":
        spec["updatePolicy"] = {"updateMode": "InPlaceOrRecreate"}
    return spec


def _hvpa(case: Case, blend: Fields, least: bool = True) -> Fields:
    """An Hvpa with its defaults, but for what all have in common: bounds, targets, the hold before scaling in, limits.
    Without `least`, there is no minAllowed."""
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
    """`spec.hpa`, with five minutes before scaling in."""
    template = {"spec": _absolute(case, room)}
    return {"deploy": True, "template": template, "scaleDown": {"stabilizationDuration": "5m"}}


def _weights(weight: int) -> Fields:
    return {"weightBasedScalingIntervals": [{"vpaWeight": weight, "lastReplicaCount": 30}]}


def _additive(weight: int) -> Callable[[Case], Fields]:
    return lambda case: {"hvpa": _hvpa(case, {"blend": "Additive", **_weights(weight)})}


def _trajectory(case: Case, fields: Fields) -> Fields:
    """`spec.trajectory`: where replicas have a base to speak of, its owner says so."""
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
"""A path written out: it begins with the pods that all begin with, and ends at the bounds."""


def _by_intervals(case: Case) -> Fields:
    return {"hvpa": _hvpa(case, _trajectory(case, {"intervals": [dict(one) for one in PATH]}))}


LINE: Final = (700, 800, 900)
"""Targets of the headrooms through which the line of HPA and VPA is drawn."""
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
"""All of them. A path by weights begins at the requests that are found, but `from 100m` at minAllowed, which is a floor
and no pod that one would run. An HPA by itself resizes nothing: it stands with those that recreate."""
