"""The room of simulated nodes: which resizes a node allocates, in which order, and which it defers.
`allocator.py` writes the results.

The rules are those of a kubelet of Kubernetes 1.37 (`pkg/kubelet/allocation/allocation_manager.go`): a resize
fits if the pod's new requests are at most the node's allocatable resources without the allocated requests of
its other pods. This also holds for a resize that lowers requests. If CPU and memory are short, the message
names CPU. A request beyond the node's allocatable resources is usually refused by the API server (403, cause
`NodeCapacity`). If the kubelet gets such a request, for example because the node has shrunk, it defers the
resize like any other.

Requests are those of containers and sidecars. A kubelet also counts the largest init container, and pod-level
resources.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.controlplane.manifests import IN_VAIN_ANNOTATION

Json = dict[str, Any]

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"
DEFERRED = "Deferred"


class Amounts(NamedTuple):
    """CPU and memory."""

    cpu: float
    """Millicores; infinity if unlimited."""
    memory: float
    """Bytes; infinity if unlimited."""


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod of a node, with the data that the node's room depends on."""

    namespace: str
    name: str
    uid: str
    node: str
    generation: int
    requests: Amounts
    """The requests of its spec."""
    allocated: Amounts
    """The requests that its kubelet has allocated."""
    waits: bool = False
    """Its spec requests resources that its kubelet has not allocated yet."""
    priority: int = 0
    is_guaranteed: bool = False
    """Its QoS class is `Guaranteed`."""
    reported: Json = field(default_factory=dict)
    """Its condition `PodResizePending`; empty if it has none."""
    statuses: Sequence[Json] = ()
    """If it waits, the statuses of its containers as they are once its requests are allocated."""


class Verdict(NamedTuple):
    """The kubelet's decision about a resize."""

    pod: NodePod
    shortage: str
    """Why the resize is deferred; empty if it is allocated."""


def settle(pods: Sequence[NodePod], room: Amounts, since: Mapping[str, float]) -> list[Verdict]:
    """Returns the decisions about the waiting resizes of a node's pods, in the kubelet's order: first resizes
    that raise no request, then by priority, then pods of the class `Guaranteed`, then the longest wait.
    `room` is the node's allocatable resources, and `since` the time in seconds at which a pod's resize was
    deferred, by the pod's uid."""

    def rank(pod: NodePod) -> tuple[bool, int, bool, float]:
        return _grows(pod), -pod.priority, not pod.is_guaranteed, since.get(pod.uid, math.inf)

    taken = _total(pod.allocated for pod in pods)
    verdicts: list[Verdict] = []
    for pod in sorted((pod for pod in pods if pod.waits), key=rank):
        used = _without(taken, pod.allocated)
        shortage = _shortage(pod.requests, used, room)
        if not shortage:
            taken = _total((used, pod.requests))
        verdicts.append(Verdict(pod, shortage))
    return verdicts


def _grows(pod: NodePod) -> bool:
    return pod.requests.cpu > pod.allocated.cpu or pod.requests.memory > pod.allocated.memory


def _shortage(requested: Amounts, used: Amounts, room: Amounts) -> str:
    """The kubelet's message if this much is not free (`InsufficientResourceError`); empty if it is."""
    for resource, amount, taken, capacity in zip(Amounts._fields, requested, used, room, strict=True):
        if amount > 0 and amount > capacity - taken:
            return (
                f"Node didn't have enough resource: {resource}, requested: {amount:.0f}, used: {taken:.0f}, "
                f"capacity: {capacity:.0f}"
            )
    return ""


def _total(amounts: Iterable[Amounts]) -> Amounts:
    listed = list(amounts)
    return Amounts(sum(each.cpu for each in listed), sum(each.memory for each in listed))


def _without(amounts: Amounts, part: Amounts) -> Amounts:
    return Amounts(amounts.cpu - part.cpu, amounts.memory - part.memory)


def room_of(node: Json) -> Amounts:
    """Returns a node's allocatable resources; a resource that it does not report is unlimited."""
    allocatable = node.get("status", {}).get("allocatable", {})
    return Amounts(
        parse_cpu(allocatable["cpu"]) if "cpu" in allocatable else math.inf,
        parse_memory(allocatable["memory"]) if "memory" in allocatable else math.inf,
    )


def node_pod(pod: Json) -> NodePod | None:
    """Returns what a pod takes of its node; None if it has no node, or has ended."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    if "nodeName" not in spec or status.get("phase") in ("Succeeded", "Failed"):
        return None
    wanted = {container["name"]: _requests(container) for container in spec["containers"]}
    sidecars = [
        _requests(container)
        for container in spec.get("initContainers", ())
        if container.get("restartPolicy") == "Always"
    ]
    statuses = {entry["name"]: entry for entry in status.get("containerStatuses", ())}
    allocated = {
        name: statuses.get(name, {}).get("allocatedResources", requests) for name, requests in wanted.items()
    }
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    waits = _waits(pod, conditions.get(IN_PROGRESS, {}))
    return NodePod(
        metadata["namespace"],
        metadata["name"],
        metadata["uid"],
        spec["nodeName"],
        metadata["generation"],
        _sum([*wanted.values(), *sidecars]),
        _sum([*allocated.values(), *sidecars]),
        waits,
        spec.get("priority", 0),
        status.get("qosClass") == "Guaranteed",
        conditions.get(PENDING, {}),
        [entry | {"allocatedResources": wanted[name]} for name, entry in statuses.items()] if waits else (),
    )


def _waits(pod: Json, in_progress: Json) -> bool:
    """Whether the spec of a running pod has resources that are not allocated. Resizes of pods with the
    annotation of `kubelet.yaml` never are."""
    metadata, status = pod["metadata"], pod.get("status", {})
    if (
        status.get("phase") != "Running"
        or "deletionTimestamp" in metadata
        or IN_VAIN_ANNOTATION in metadata.get("annotations", {})
        or in_progress.get("observedGeneration") == metadata["generation"]
    ):
        return False
    desired = [container.get("resources") for container in pod["spec"]["containers"]]
    return desired != [entry.get("resources") for entry in status.get("containerStatuses", ())]


def _requests(container: Json) -> Json:
    return dict(container.get("resources", {}).get("requests", {}))


def _sum(requests: Iterable[Json]) -> Amounts:
    return _total(
        Amounts(parse_cpu(each.get("cpu", 0)), parse_memory(each.get("memory", 0))) for each in requests
    )
