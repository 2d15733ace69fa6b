"""Where one pod stands on its way to the desired size, and the resize that is due. Memory limits are lowered in steps
(`LIMIT_STEP_PERCENT`).

Facts about the `resize` subresource that this follows are in KEP-1287 and, measured, in docs/in-place.md. Requests and
limits are changed and never removed; a pod keeps its QoS class for life; a container restarts where its `resizePolicy`
asks for it; the kubelet reports a resize that waits as `PodResizePending` (Deferred: no room on the node at present;
Infeasible: never) and one under way as `PodResizeInProgress`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from operator import or_
from typing import Final, Literal, NamedTuple

import msgspec

from hvpa.api.objects.read_models import Container, ContainerStatus, Pod, PodCondition, condition
from hvpa.api.values.quantity import RESOURCES, Resource, readable_resource
from hvpa.core.actuation.desired import NOTHING, Sizes, by_section, differing, moved
from hvpa.core.gates.backoff import refusal_wait
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import MemoryUse, ObservedState, PodResize, RefusedResize, ResourceRequirements
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import after
from hvpa.core.workload.containers import changes, read_all, reported
from hvpa.core.workload.rollout import is_living
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
    """What pods are compared with: desired `sizes` by container, decided at `since`."""

    context: GateContext
    sizes: Sizes
    since: dt.datetime
    use: MemoryUse | None
    refused: Mapping[str, Sequence[RefusedResize]]

    @classmethod
    def of(cls, context: GateContext, seen: ObservedState, sizes: Sizes, since: dt.datetime) -> Look:
        """The look at the pods of what is seen."""
        return cls(context, sizes, since, seen.memory_use, by_pod(seen.refused_resizes))

    def at(self, pod: Pod) -> PodState:
        """Where a pod stands."""
        sizes = _of_spec(pod)
        gaps = _gaps(pod, sizes)
        due = self._changes(pod, sizes, gaps)
        to_come = {**gaps, **due}
        restarts = any(
            _restarts(one, to_come.get(one.name, NOTHING)) for one in pod.spec.containers if one.resize_policy
        )
        if due:
            return self._unless_refused(_due(pod, sizes, due, restarts))
        if gaps:
            return self._under_way(pod, restarts)
        if self.use is not None and (kept := sorted(self._changes(pod, sizes, gaps, in_use=False))):
            # It is looked at again when usage counts no longer.
            self.context.clock.is_past(after(self.use.time, USE_COUNTS))
            used = readable_resource("memory", self.use.of.get((pod.metadata.name, kept[0]), 0))
            why = f"container {kept[0]} uses {used} of memory, too near to the limit that it is to have"
            return PodState(pod, "waiting", why, is_near_use=True)
        return PodState(pod, "resized")

    def _changes(self, pod: Pod, sizes: Sizes, gaps: Sizes, *, in_use: bool = True) -> Sizes:
        """What is to be changed of a pod's containers that have these sizes by its spec, but for `gaps` that they do
        not have yet; whatever they use of memory where not `in_use`. The same object for containers that are alike."""
        used = {} if self.use is None or not in_use else self.use.of
        is_guaranteed = qos_class(pod, sizes.values()) == "Guaranteed"
        known, found = dict[object, ResourceRequirements](), {}
        for name, have in sizes.items():
            if name not in self.sizes:
                continue
            wanted, is_there = self.sizes[name], name not in gaps
            of_memory = used.get((pod.metadata.name, name), 0)
            key = (id(have), id(wanted), of_memory, is_there)
            if key not in known:
                known[key] = _change(have, wanted, of_memory, is_there=is_there, is_guaranteed=is_guaranteed)
            if known[key] != NOTHING:
                found[name] = known[key]
        return found

    def _unless_refused(self, found: PodState) -> PodState:
        """A resize that the API server refused is not asked for again for a minute, then two, an hour at most. The pod
        stays infeasible until the API server takes it."""
        if found.resize is None:
            return found
        known = self.refused.get(found.pod.metadata.uid, ())
        refused = next((one for one in known if one.body == found.resize.body), None)
        if refused is None:
            return found
        stuck = msgspec.structs.replace(
            found,
            state="infeasible",
            why=refused.message,
            is_stuck=True,
            is_too_much=refused.count >= MOST_REFUSALS and not refused.of_any_size,
        )
        if self.context.clock.held_until(refused.time, refusal_wait(refused.count)) is None:
            return stuck
        return msgspec.structs.replace(stuck, resize=None, restarts=False)

    def _under_way(self, pod: Pod, restarts: bool) -> PodState:
        """A pod that was asked for the desired size and does not have it yet."""
        pending = _fresh(pod, RESIZE_PENDING)
        if pending is not None and pending.reason == INFEASIBLE:
            return PodState(pod, "infeasible", pending.message or INFEASIBLE, is_stuck=True, is_too_much=True)
        found = pending or _fresh(pod, RESIZE_IN_PROGRESS)
        times = [self.since, pod.status.start_time, None if found is None else found.last_transition_time]
        begun = max(when for when in times if when is not None)
        late = self.context.clock.is_past(after(begun, self.context.spec.strategy.timeout))
        why = "the kubelet has not answered" if found is None else found.message
        state: State = "in_progress" if pending is None else "deferred"
        return PodState(pod, state, why, restarts=restarts, is_stuck=late)


def _due(pod: Pod, have: Sizes, due: Sizes, restarts: bool) -> PodState:
    """A pod that is to be resized, or can't be. Of containers that have the same and are to have the same, one is
    looked at."""
    kinds = {(id(one), id(due.get(name))): name for name, one in have.items()}.values()
    first = {name: due[name] for name in kinds if name in due}
    now = qos_class(pod, have.values())
    if now == "BestEffort":
        return PodState(pod, "infeasible", "a pod of QoS class BestEffort can't be resized", is_stuck=True)
    then = qos_class(pod, [by_section(or_, have[name], first.get(name, NOTHING)) for name in kinds])
    if then != now:
        why = f"its QoS class would change from {now} to {then}, which is fixed for a pod's life"
        return PodState(pod, "infeasible", why, is_stuck=True)
    written = {id(one): changes(NOTHING, one) for one in first.values()}
    containers = [{"name": name, "resources": written[id(due[name])]} for name in sorted(due)]
    body = {"metadata": {"uid": pod.metadata.uid}, "spec": {"containers": containers}}
    raises, lowers = moved(have, first)
    limits = {name: ResourceRequirements({}, one.limits) for name, one in first.items()}
    resize = PodResize(pod.metadata.name, pod.metadata.uid, body, "memory" in moved(have, limits)[1])
    return PodState(pod, "waiting", resize=resize, raises=raises, lowers=lowers, restarts=restarts)


def _change(
    have: ResourceRequirements,
    desired: ResourceRequirements,
    used: int,
    *,
    is_there: bool,
    is_guaranteed: bool,
) -> ResourceRequirements:
    """What is to be changed now of the requests and limits that a container's spec has. `used` is its memory (0: not
    known), `is_there`: the container has what its spec names, `is_guaranteed`: its pod is.

    A memory limit falls by a fifth at a time, and the next step waits until the container has the last one.
    Example: from 1000 MB to 500 MB by 800, 640, 512 and 500 MB; where 500 MB are used, 575 MB are the end.
    """
    requests, limits = dict(desired.requests), dict(desired.limits)
    for resource, limit in have.limits.items():
        wanted = limits.get(resource, limit)
        if resource == "memory" and wanted < limit:
            step = ceil_div(limit * LIMIT_STEP_PERCENT, 100) if is_there else limit
            wanted = min(limit, max(wanted, step, ceil_div(used * USE_PERCENT, 100)))
        limits[resource] = max(wanted, requests.get(resource, 0))
        if is_guaranteed:
            requests[resource] = limits[resource]
    return differing(have, ResourceRequirements(requests, limits))


def qos_class(pod: Pod, containers: Iterable[ResourceRequirements]) -> Qos:
    """The QoS class of a pod whose containers have these sizes (`ComputePodQOS` in pkg/apis/core/v1/helper/qos).
    Requests and limits of the pod as a whole alone decide where it has any."""
    others = {one.name: one.resources for one in pod.spec.init_containers}
    whole = pod.spec.resources
    have = [*containers, *read_all(others).values()] if whole is None else read_all({"": whole}).values()
    if not any(any(one.requests.values()) or any(one.limits.values()) for one in have):
        return "BestEffort"
    is_guaranteed = all(
        resource in one.limits and one.requests.get(resource, one.limits[resource]) == one.limits[resource]
        for one in have
        for resource in RESOURCES
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _gaps(pod: Pod, wanted: Sizes) -> Sizes:
    """Of the containers that do not have the size that the pod's spec names yet: what of it they do not have. A
    container that does not run yet starts with that size."""
    present = present_sizes(pod)
    found = {name: differing(present[name], one) for name, one in wanted.items() if present[name] != one}
    return {name: one for name, one in found.items() if one != NOTHING}


def _of_spec(pod: Pod) -> Sizes:
    return read_all({one.name: one.resources for one in pod.spec.containers})


def awaited(pod: Pod) -> tuple[frozenset[Resource], frozenset[Resource]]:
    """Which resources the kubelet has yet to raise, and to lower, of what the pod's spec names."""
    return moved(present_sizes(pod), _of_spec(pod))


def present_sizes(pod: Pod) -> dict[str, ResourceRequirements]:
    """By container: the resources that it has, by the kubelet; else by the pod's spec."""
    return read_all(reported(pod))


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
    return [pod for pod in observed.resizable if is_living(pod)]


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


def ran_out_of_memory(pod: Pod, since: dt.datetime) -> bool:
    """Whether a container ran out of memory since the decision, or shortly before it."""
    return any(OOM_KILLED in ends(one, since - RECENT) for one in pod.status.container_statuses)
