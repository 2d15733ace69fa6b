"""In-place resizes of running pods: which resizes a node allows now, and which wait or fail.

The rules are those of Kubernetes 1.37 (KEP-1287): the API server's refusals (`ValidatePodResize`), and the kubelet's
allocation and its order (`pkg/kubelet/allocation/allocation_manager.go`). The kubelet lowers no memory limit below the
usage (`validateMemoryResizeAction` in `pkg/kubelet/kuberuntime`). Until the limit is put back or usage falls, the rest
of that pod's resize waits. A resize restarts no container (`resizePolicy: NotRequired`). The kubelet handles a resize
`delay` seconds after its request, and an allowed resize takes effect then. A scenario's kubelet may also defer or
refuse resizes for its own reasons (Kubernetes refuses, for example, under a static CPU manager).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from hvpa.api.values.quantity import RESOURCES
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.cluster.nodes import Nodes
from hvpa_lab.simulate.cluster.state import (
    INSTANT,
    Resize,
    ResizeState,
    SimPod,
    Template,
    container_shapes,
    pod_shape,
)
from hvpa_lab.simulate.model import SimulationEvent, WorkloadModel

WHY: Final = {
    "Deferred": "its node has no room for it",
    "Infeasible": "its node never has room for it, or the API server refuses it",
    "Error": "it uses more memory than its new limit",
}
"""The kubelet's message about a resize in each state."""


class Resizes:
    """The resizes of a workload's pods. Resizes that can't be completed at once are reported in `events`, with the
    reasons of the kubelet's Events."""

    def __init__(self, nodes: Nodes, model: WorkloadModel, events: list[SimulationEvent]) -> None:
        self._nodes = nodes
        self._delay = model.resize_delay
        self._deferred = model.resize_deferred
        self._refused = model.resize_refused
        self._events = events
        self.blocked = False
        """Some resizes wait for memory usage to fall."""

    def request(self, pod: SimPod, resources: Template, now: float) -> None:
        """Requests these resources for the pod and replaces an earlier request; `settle` applies it. A pod without a
        node has them at once."""
        before, pod.resize = pod.resize, None
        if before is not None:
            self._free(before)
        if pod.node is None:
            pod.take(resources)
        elif resources != pod.resources:
            pod.resize = resize = Resize(pod, resources, now, due=now + self._delay)
            if is_refused(pod.resources, resources):
                self._fails(resize, now, "the API server refuses it")
            elif before is not None and before.state == "Deferred":
                resize.state, resize.since = before.state, before.since

    def refusal(self, pod: SimPod, resources: Template) -> str:
        """Returns why the API server refuses these resources of a pod: they exceed its node (403 with the cause
        `NodeCapacity`). Empty if it does not refuse them."""
        cpu, memory, *_ = pod_shape(resources)
        exceeded = [] if pod.node is None else self._nodes.exceeded(cpu, memory)
        return f"node didn't have enough allocatable resources: {', '.join(exceeded)}" if exceeded else ""

    def settle(self, pods: Sequence[SimPod], now: float) -> None:
        """Applies all resizes that fit on their nodes, in the order of the kubelet (`sortPendingResizes`)."""
        waiting = _handled(pods, now)
        self.blocked = False
        for resize in waiting:
            self._free(resize)
        waiting.sort(key=_rank)
        before = math.inf
        while len(waiting) < before:
            before = len(waiting)
            waiting = [resize for resize in waiting if not self._allowed(resize, now)]
        for resize in waiting:
            self._waits(resize, "Deferred", now)

    def is_unblocked(self, pods: Sequence[SimPod]) -> bool:
        """Whether a pod now uses less memory than its new limit."""
        return self.blocked and any(
            resize is not None and resize.state == "Error" and not _uses_more(resize)
            for resize in (pod.resize for pod in pods)
        )

    def _allowed(self, resize: Resize, now: float) -> bool:
        """Whether the kubelet is finished with this resize: it is complete, has its room reserved, or is impossible."""
        pod = resize.pod
        if self._refused:
            self._fails(resize, now, "the kubelet refuses it")
            return True
        if self._nodes.exceeded(resize.cpu_request, resize.memory_request):
            self._fails(resize, now, "it is larger than a node")
            return True
        allowed_at = self._deferred + (resize.since if resize.state == "Deferred" else now)
        if _grows(resize) and now < allowed_at - INSTANT:
            resize.due = allowed_at
            return False
        cpu, memory = resize.cpu_request - pod.cpu_request, resize.memory_request - pod.memory_request
        node = self._nodes.node_of(pod)
        if node is not None and not node.fits(cpu, memory):
            return False
        if _uses_more(resize):
            self.blocked = True
            self._waits(resize, "Error", now)
            return True
        before, pod.resize = pod.resources, None
        pod.take(resize.resources)
        for container in pod.containers:
            if resize.resources[container.name] != before[container.name]:
                container.resized(now)
        if node is not None:
            node.take(cpu, memory)
        return True

    def _waits(self, resize: Resize, state: ResizeState, now: float) -> None:
        """Reserves room for the resize: the scheduler counts the larger of a pod's actual and wanted requests."""
        pod, node = resize.pod, self._nodes.node_of(resize.pod)
        if resize.state != state:
            resize.state, resize.since = state, now
            self._report(now, f"Resize{state}", f"{pod.name} can't be resized yet: {WHY[state]}")
        if node is not None:
            resize.held_cpu = max(0, resize.cpu_request - pod.cpu_request)
            resize.held_memory = max(0, resize.memory_request - pod.memory_request)
            node.take(resize.held_cpu, resize.held_memory)

    def _fails(self, resize: Resize, now: float, why: str) -> None:
        resize.state, resize.due = "Infeasible", None
        self._report(now, "ResizeInfeasible", f"{resize.pod.name} can't be resized in place: {why}")

    def _report(self, now: float, reason: str, message: str) -> None:
        self._events.append(SimulationEvent(now, "Event", reason, message))

    def _free(self, resize: Resize) -> None:
        """Frees the room reserved for this resize."""
        node = self._nodes.node_of(resize.pod)
        if node is not None:
            node.take(-resize.held_cpu, -resize.held_memory)
        resize.held_cpu = resize.held_memory = 0


def _handled(pods: Sequence[SimPod], now: float) -> list[Resize]:
    """Returns the resizes that a kubelet has handled by now, and that may become possible."""
    resizes = [pod.resize for pod in pods if pod.resize is not None]
    for resize in resizes:
        if resize.due is not None and resize.due <= now + INSTANT:
            resize.due = None
    return [resize for resize in resizes if resize.due is None and resize.state != "Infeasible"]


def _rank(resize: Resize) -> tuple[bool, bool, float, int]:
    """Sort key: resizes with reserved room first, then resizes that need no more than the pod has, then the oldest."""
    return resize.state != "Error", _grows(resize), resize.since, resize.pod.serial


def _grows(resize: Resize) -> bool:
    pod = resize.pod
    return resize.cpu_request > pod.cpu_request or resize.memory_request > pod.memory_request


def _uses_more(resize: Resize) -> bool:
    """Whether a container, or the pod, uses at least its new, lower memory limit."""
    return any(_below_use(resize))


def message_of(resize: Resize) -> str:
    """Returns the kubelet's message about a resize in its state."""
    if resize.state != "Error":
        return WHY[resize.state]
    problems = [
        f"attempting to set {what} memory limit ({limit}) below current usage ({used})"
        for what, limit, used in _below_use(resize)
    ]
    return f"cannot decrease memory limits: [{', '.join(problems)}]"


def _below_use(resize: Resize) -> Iterator[tuple[str, int, int]]:
    """Yields the pod and each container that use at least their new, lower memory limit, with limit and usage in
    bytes."""
    pod, shapes, limit = resize.pod, container_shapes(resize.resources), resize.shape.memory_limit
    used = sum(container.memory for container in pod.containers)
    if limit < pod.shape.memory_limit and used >= limit:
        yield "pod", int(limit), math.ceil(used)
    for container, shape, wanted in zip(pod.containers, pod.shapes, shapes, strict=True):
        if wanted.memory_limit < shape.memory_limit and container.memory >= wanted.memory_limit:
            yield f'container "{container.name}"', int(wanted.memory_limit), math.ceil(container.memory)


def is_refused(current: Template, wanted: Template) -> bool:
    """Whether the API server refuses this change of a pod's resources: the QoS class must stay the same, and no request
    or limit can be removed (`ValidatePodResize`)."""
    removed = any(
        current[name].requests.keys() - requirements.requests.keys()
        or current[name].limits.keys() - requirements.limits.keys()
        for name, requirements in wanted.items()
    )
    return removed or qos_class(current) != qos_class(wanted)


def qos_class(template: Template) -> Literal["Guaranteed", "Burstable", "BestEffort"]:
    """Returns the QoS class of a pod with these resources (`ComputePodQOS`). If the pod has resources of its own, only
    they count."""
    containers = [template[POD]] if POD in template else template.values()
    if not any(
        amount
        for container in containers
        for amount in (*container.requests.values(), *container.limits.values())
    ):
        return "BestEffort"
    return "Guaranteed" if all(map(_is_guaranteed, containers)) else "Burstable"


def _is_guaranteed(requirements: ResourceRequirements) -> bool:
    return all(
        requirements.limits.get(resource, 0)
        and requirements.requests.get(resource, requirements.limits[resource])
        == requirements.limits[resource]
        for resource in RESOURCES
    )
