"""Where one pod stands on its way to the desired size, and the resize that is due. Memory limits are lowered in steps
(`LIMIT_STEP_PERCENT`).

Facts about the `resize` subresource that this follows are in KEP-1287 and, measured, in docs/in-place.md. Requests and
limits are changed and never removed; a pod keeps its QoS class for life; a container restarts where its `resizePolicy`
asks for it; the kubelet reports a resize that waits as `PodResizePending` (Deferred: no room on the node at present;
Infeasible: never) and one under way as `PodResizeInProgress`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from operator import or_
from typing import Final, Literal, NamedTuple

import msgspec

from hvpa.api.objects.read_models import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    Resources,
    condition,
)
from hvpa.api.values.quantity import RESOURCES, Resource, readable_resource
from hvpa.core.actuation.desired import NOTHING, Sizes, by_section, differing, moved, read, recorded, resized
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import MemoryUse, ObservedState, PodResize, RefusedResize, ResourceRequirements
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import after, doubled
from hvpa.core.workload.containers import changes
from hvpa.core.workload.starving import OOM_KILLED

RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"
RESTART: Final = "RestartContainer"
LIMIT_STEP_PERCENT: Final = 80
"""A memory limit falls to this share of what it is, at most, in one resize. The kubelet refuses a limit below what is
used, but between its look and the write usage can grow, and then the container is killed (kubernetes#135670)."""
USE_PERCENT: Final = 115
"""A memory limit falls to this share of what is used, at least: the margin that the VPA recommender adds to usage
(`--recommendation-margin-fraction` 0.15)."""
USE_COUNTS: Final = dt.timedelta(minutes=1)
"""How long what was measured counts: metrics-server measures every 15 seconds, and usage can grow."""
RECENT: Final = dt.timedelta(minutes=10)
"""A container that ran out of memory within this time before a decision may be what the decision was made for."""
FIRST_REFUSAL_WAIT: Final = dt.timedelta(minutes=1)
LONGEST_REFUSAL_WAIT: Final = dt.timedelta(hours=1)
MOST_REFUSALS: Final = 3
"""A resize that was refused so often in a row (over three minutes) is too much: a LimitRange, a quota, the node."""

State = Literal["resized", "in_progress", "deferred", "infeasible", "waiting"]
Qos = Literal["Guaranteed", "Burstable", "BestEffort"]


class PodState(msgspec.Struct, frozen=True, gc=False):
    """One pod: its state, why it is in it, the resize that is due, what that raises and lowers, and whether it restarts
    a container. `is_stuck`: nothing more is to be expected of a resize; `is_too_much`: of this size, that is: the
    kubelet or the API server will not have it; `is_near_use`: too much memory is used for the limit that it is to
    have."""

    pod: Pod
    state: State
    why: str = ""
    resize: PodResize | None = None
    raises: frozenset[Resource] = frozenset()
    lowers: frozenset[Resource] = frozenset()
    restarts: bool = False
    is_stuck: bool = False
    is_too_much: bool = False
    is_near_use: bool = False


class Look(NamedTuple):
    """What pods are compared with: desired `sizes` by container, decided at `since`; `larger` are the requests that
    pods have that are ready, as long as others are not."""

    context: GateContext
    sizes: Sizes
    since: dt.datetime
    larger: Sizes
    use: MemoryUse | None
    refused: Mapping[str, Sequence[RefusedResize]]

    @classmethod
    def of(
        cls, context: GateContext, seen: ObservedState, sizes: Sizes, since: dt.datetime, larger: Sizes
    ) -> Look:
        """The look at the pods of what is seen."""
        return cls(context, sizes, since, larger, seen.memory_use, by_pod(seen.refused_resizes))

    def at(self, pod: Pod) -> PodState:
        """Where a pod stands. Nothing restarts to be larger for a while, and a pod that can't be so is not stuck."""
        if not self.larger or not is_ready(pod):
            return self._compared(pod, self.sizes)
        raised = {
            name: by_section(or_, self.sizes.get(name, NOTHING), one) for name, one in self.larger.items()
        }
        sizes = {**self.sizes, **raised}
        found = self._compared(pod, sizes)
        if found.restarts or (found.is_stuck and found.resize is None and self._changes(pod, sizes)):
            return self._compared(pod, self.sizes)
        return msgspec.structs.replace(found, is_stuck=False)

    def _compared(self, pod: Pod, sizes: Sizes) -> PodState:
        due = self._changes(pod, sizes)
        gaps = _gaps(pod)
        restarts = any(_restarts(one, due.get(one.name) or gaps[one.name]) for one in pod.spec.containers)
        if due:
            return self._unless_refused(_due(pod, due, restarts))
        if any(gap != NOTHING for gap in gaps.values()):
            return self._under_way(pod, restarts)
        if why := self._near_use(pod, sizes):
            return PodState(pod, "waiting", why, is_near_use=True)
        return PodState(pod, "resized")

    def _changes(self, pod: Pod, sizes: Sizes, *, in_use: bool = True) -> Sizes:
        """What is to be changed of the pod's containers, whatever they use of memory where not `in_use`."""
        used = {} if self.use is None or not in_use else self.use.of
        found = {
            one.name: _change(pod, one, sizes[one.name], used.get((pod.metadata.name, one.name), 0))
            for one in pod.spec.containers
            if one.name in sizes
        }
        return {name: one for name, one in found.items() if one != NOTHING}

    def _near_use(self, pod: Pod, sizes: Sizes) -> str:
        """Why a memory limit stays as it is; empty where none does that is to fall. It is looked at again when usage
        counts no longer."""
        if self.use is None or not (kept := sorted(self._changes(pod, sizes, in_use=False))):
            return ""
        self.context.clock.is_past(after(self.use.time, USE_COUNTS))
        used = readable_resource("memory", self.use.of.get((pod.metadata.name, kept[0]), 0))
        return f"container {kept[0]} uses {used} of memory, too near to the limit that it is to have"

    def _unless_refused(self, found: PodState) -> PodState:
        """A resize that the API server refused is not asked for again for a minute, then two, an hour at most. The pod
        stays infeasible until the API server takes it."""
        if found.resize is None:
            return found
        known = self.refused.get(found.pod.metadata.uid, ())
        refused = next((one for one in known if one.body == found.resize.body), None)
        if refused is None:
            return found
        is_too_much = refused.count >= MOST_REFUSALS and not refused.of_any_size
        stuck = PodState(found.pod, "infeasible", refused.message, is_stuck=True, is_too_much=is_too_much)
        if self.context.clock.held_until(refused.time, refusal_wait(refused)) is not None:
            return stuck
        again = {
            "resize": found.resize,
            "raises": found.raises,
            "lowers": found.lowers,
            "restarts": found.restarts,
        }
        return msgspec.structs.replace(stuck, **again)

    def _under_way(self, pod: Pod, restarts: bool) -> PodState:
        """A pod that was asked for the desired size and does not have it yet."""
        pending = _fresh(pod, RESIZE_PENDING)
        if pending is not None and pending.reason == INFEASIBLE:
            return PodState(pod, "infeasible", pending.message or INFEASIBLE, is_stuck=True, is_too_much=True)
        found = pending or _fresh(pod, RESIZE_IN_PROGRESS)
        times = [self.since, pod.status.start_time, None if found is None else found.last_transition_time]
        begun = max(when for when in times if when is not None)
        late = self.context.clock.is_past(after(begun, self.context.spec.update_strategy.timeout))
        why = "the kubelet has not answered" if found is None else found.message
        state: State = "in_progress" if pending is None else "deferred"
        return PodState(pod, state, why, restarts=restarts, is_stuck=late)


def _due(pod: Pod, due: Sizes, restarts: bool) -> PodState:
    """A pod that is to be resized, or can't be."""
    now = qos_class(pod, pod.spec.containers)
    if now == "BestEffort":
        return PodState(pod, "infeasible", "a pod of QoS class BestEffort can't be resized", is_stuck=True)
    then = qos_class(pod, resized(pod.spec.containers, recorded(due)))
    if then != now:
        why = f"its QoS class would change from {now} to {then}, which is fixed for a pod's life"
        return PodState(pod, "infeasible", why, is_stuck=True)
    containers = [{"name": name, "resources": changes(NOTHING, one)} for name, one in sorted(due.items())]
    body = {"metadata": {"uid": pod.metadata.uid}, "spec": {"containers": containers}}
    have = {one.name: read(one.resources) for one in pod.spec.containers}
    raises, lowers = moved(have, due)
    limits = {name: ResourceRequirements({}, one.limits) for name, one in due.items()}
    resize = PodResize(pod.metadata.name, pod.metadata.uid, body, "memory" in moved(have, limits)[1])
    return PodState(pod, "waiting", resize=resize, raises=raises, lowers=lowers, restarts=restarts)


def _change(pod: Pod, container: Container, desired: ResourceRequirements, used: int) -> ResourceRequirements:
    """What is to be changed of a container's requests and limits now. `used` is its memory (0: not known).

    A memory limit falls by a fifth at a time, and the next step waits until the container has the last one.
    Example: from 1000 MB to 500 MB by 800, 640, 512 and 500 MB; where 500 MB are used, 575 MB are the end.
    """
    have = read(container.resources)
    requests, limits = dict(desired.requests), dict(desired.limits)
    is_guaranteed = bool(have.limits) and qos_class(pod, pod.spec.containers) == "Guaranteed"
    for resource, limit in have.limits.items():
        wanted = limits.get(resource, limit)
        if resource == "memory" and wanted < limit:
            is_there = _gap(_reported(pod, container), container) == NOTHING
            step = ceil_div(limit * LIMIT_STEP_PERCENT, 100) if is_there else limit
            wanted = min(limit, max(wanted, step, ceil_div(used * USE_PERCENT, 100)))
        limits[resource] = max(wanted, requests.get(resource, 0))
        if is_guaranteed:
            requests[resource] = limits[resource]
    return differing(have, ResourceRequirements(requests, limits))


def qos_class(pod: Pod, containers: Sequence[Container]) -> Qos:
    """The QoS class of a pod with these containers (`ComputePodQOS` in pkg/apis/core/v1/helper/qos). Requests and
    limits of the pod as a whole alone decide where it has any."""
    every = [one.resources for one in (*containers, *pod.spec.init_containers)]
    have = [read(one) for one in ([pod.spec.resources] if pod.spec.resources else every)]
    if not any(any(one.requests.values()) or any(one.limits.values()) for one in have):
        return "BestEffort"
    is_guaranteed = all(
        resource in one.limits and one.requests.get(resource, one.limits[resource]) == one.limits[resource]
        for one in have
        for resource in RESOURCES
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _gaps(pod: Pod) -> Sizes:
    """By container: the requested size if the container does not have it yet, else NOTHING. A container that does not
    run yet starts with the size in the spec."""
    resources = _all_reported(pod)
    return {one.name: _gap(resources[one.name], one) for one in pod.spec.containers}


def _gap(present: Resources, container: Container) -> ResourceRequirements:
    return NOTHING if present == container.resources else differing(read(present), read(container.resources))


def awaited(pod: Pod) -> tuple[frozenset[Resource], frozenset[Resource]]:
    """Which resources the kubelet has yet to raise, and to lower, of what the pod's spec names."""
    return moved(present_sizes(pod), _gaps(pod))


def present_sizes(pod: Pod) -> dict[str, ResourceRequirements]:
    """By container: the resources that it has, by the kubelet; else by the pod's spec."""
    return {name: read(resources) for name, resources in _all_reported(pod).items()}


def _all_reported(pod: Pod) -> dict[str, Resources]:
    """The same as they are written."""
    statuses = {one.name: one.resources for one in pod.status.container_statuses}
    return {one.name: statuses.get(one.name) or one.resources for one in pod.spec.containers}


def _reported(pod: Pod, container: Container) -> Resources:
    resources = next(
        (one.resources for one in pod.status.container_statuses if one.name == container.name), None
    )
    return resources or container.resources


def _restarts(container: Container, change: ResourceRequirements) -> bool:
    named = {one.resource_name for one in container.resize_policy if one.restart_policy == RESTART}
    return bool(named & (change.requests.keys() | change.limits.keys()))


def _fresh(pod: Pod, kind: str) -> PodCondition | None:
    """The condition, where it is True and of the spec that the pod has now."""
    found = condition(pod.status.conditions, kind)
    if found is None or found.status != "True":
        return None
    is_old = 0 < found.observed_generation < pod.metadata.generation
    return None if is_old else found


def reported_since(pod: Pod, state: str) -> dt.datetime | None:
    """Since when a pod is in its state, by the kubelet; None where it does not report that."""
    kinds = {"in_progress": RESIZE_IN_PROGRESS, "deferred": RESIZE_PENDING, "infeasible": RESIZE_PENDING}
    found = _fresh(pod, kinds[state]) if state in kinds else None
    return None if found is None else found.last_transition_time


def is_ready(pod: Pod) -> bool:
    """Whether the pod's condition `Ready` is True."""
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"


def own_pods(observed: ObservedState) -> list[Pod]:
    """The workload's pods that run or will run."""
    return _living(observed.resizable)


def other_pods(observed: ObservedState) -> list[Pod]:
    """Pods that run or will run, and are not the workload's, though its selector matches them."""
    return _living(observed.others)


def _living(pods: Sequence[Pod]) -> list[Pod]:
    return [
        pod
        for pod in pods
        if pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Failed", "Succeeded")
    ]


def ends(status: ContainerStatus, since: dt.datetime) -> set[str]:
    """Why a container ended since then."""
    both = (status.state.terminated, status.last_state.terminated)
    return {
        one.reason
        for one in both
        if one is not None and one.finished_at is not None and one.finished_at >= since
    }


def by_pod(refused: Sequence[RefusedResize]) -> dict[str, list[RefusedResize]]:
    """Refused resizes by the pods' uids. A pod may have several: of its size, and of a larger one that it was to have
    until others are ready."""
    found: dict[str, list[RefusedResize]] = {}
    for one in refused:
        found.setdefault(one.uid, []).append(one)
    return found


def refusal_wait(refused: RefusedResize) -> dt.timedelta:
    """How long a resize is not asked for again."""
    return doubled(FIRST_REFUSAL_WAIT, refused.count - 1, LONGEST_REFUSAL_WAIT)


def ran_out_of_memory(pod: Pod, since: dt.datetime) -> bool:
    """Whether a container ran out of memory since the decision, or shortly before it."""
    return any(OOM_KILLED in ends(one, since - RECENT) for one in pod.status.container_statuses)
