"""Where one pod stands on its way to the desired size, and the resize that is due.

Facts about the `resize` subresource that this follows are in KEP-1287 and, measured, in docs/in-place.md. Requests and
limits are changed and never removed; a pod keeps its QoS class for life; a container restarts where its `resizePolicy`
says so; the kubelet reports a resize that waits as `PodResizePending` (Deferred: no room on the node at present;
Infeasible: never) and one under way as `PodResizeInProgress`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.objects.read_models import Container, Pod, PodCondition, Resources, Workload, condition
from hvpa.api.values.quantity import Resource, readable_resource
from hvpa.core.actuation.desired import NOTHING
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import MemoryUse, ObservedState, PodResize, RefusedResize, ResourceRequirements
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import Clock, after
from hvpa.core.workload.containers import RESOURCES, amounts, wire
from hvpa.core.workload.rollout import OOM_KILLED

RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"
RESTART: Final = "RestartContainer"
_CONDITIONS: Final[Mapping[str, str]] = {
    "in_progress": RESIZE_IN_PROGRESS,
    "deferred": RESIZE_PENDING,
    "infeasible": RESIZE_PENDING,
}
"""The condition of a pod that says since when it is in a state."""
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
    kubelet or the API server will not have it."""

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
    """Whether a memory limit can't fall as far as it is to, as too much memory is used."""


class Look(NamedTuple):
    """What pods are compared with: desired `sizes` by container, decided at `since`; `larger` are the requests that
    pods have that are ready, by container, as long as others are not; `use` is the memory that they use."""

    context: GateContext
    sizes: Mapping[str, ResourceRequirements]
    since: dt.datetime
    larger: Mapping[str, Mapping[Resource, int]]
    use: MemoryUse | None

    def at(self, pod: Pod, refused: RefusedResize | None) -> PodState:
        """Where a pod stands. Nothing restarts to be larger for a while, and a pod that can't be so is not stuck."""
        if not self.larger or not is_ready(pod):
            return self._compared(pod, self.sizes, refused)
        sizes = dict(self.sizes)
        for name, requests in self.larger.items():
            own = sizes.get(name, NOTHING)
            sizes[name] = ResourceRequirements({**own.requests, **requests}, own.limits)
        found = self._compared(pod, sizes, refused)
        if found.restarts or (found.is_stuck and _changes(pod, sizes, self.use)):
            return self._compared(pod, self.sizes, refused)
        return msgspec.structs.replace(found, is_stuck=False)

    def _compared(
        self, pod: Pod, sizes: Mapping[str, ResourceRequirements], refused: RefusedResize | None
    ) -> PodState:
        changes = _changes(pod, sizes, self.use)
        restarts = any(_restarts(one, changes.get(one.name) or _gap(pod, one)) for one in pod.spec.containers)
        if changes:
            return _unless_refused(self.context.clock, _due(pod, changes, restarts), refused)
        if all(_has(pod, one) for one in pod.spec.containers):
            if (near := self._near_use(pod, sizes)) is not None:
                return PodState(pod, "waiting", near, is_near_use=True)
            return PodState(pod, "resized")
        strategy = self.context.spec.update_strategy
        return _under_way(self.context.clock, strategy, pod, self.since, restarts)

    def _near_use(self, pod: Pod, sizes: Mapping[str, ResourceRequirements]) -> str | None:
        """Why a memory limit stays as it is; None where none does that is to fall. It is looked at again when usage
        counts no longer."""
        if self.use is None:
            return None
        kept = sorted(_changes(pod, sizes, None))
        if not kept:
            return None
        self.context.clock.is_past(after(self.use.time, USE_COUNTS))
        used = readable_resource("memory", self.use.of.get((pod.metadata.name, kept[0]), 0))
        return f"container {kept[0]} uses {used} of memory, too near to the limit that it is to have"


def _changes(
    pod: Pod, sizes: Mapping[str, ResourceRequirements], use: MemoryUse | None
) -> dict[str, ResourceRequirements]:
    """What is to be changed of the pod's containers, by name."""
    used = {} if use is None else use.of
    return {
        one.name: found
        for one in pod.spec.containers
        if (found := _change(pod, one, sizes, used.get((pod.metadata.name, one.name), 0)))
    }


def _unless_refused(clock: Clock, seen: PodState, refused: RefusedResize | None) -> PodState:
    """A resize that the API server refused is not asked for again for a minute, then two, an hour at most."""
    if seen.resize is None or refused is None or seen.resize.body != refused.body:
        return seen
    wait = min(FIRST_REFUSAL_WAIT * (1 << min(refused.count - 1, 10)), LONGEST_REFUSAL_WAIT)
    if clock.held_until(refused.time, wait) is None:
        return seen
    is_too_much = refused.count >= MOST_REFUSALS and not refused.of_any_size
    return PodState(seen.pod, "infeasible", refused.message, is_stuck=True, is_too_much=is_too_much)


def _due(pod: Pod, changes: Mapping[str, ResourceRequirements], restarts: bool) -> PodState:
    """A pod that is to be resized, or can't be."""
    after_it = [_with(one, changes.get(one.name)) for one in pod.spec.containers]
    now = qos_class(pod, pod.spec.containers)
    if now == "BestEffort":
        return PodState(pod, "infeasible", "a pod of QoS class BestEffort can't be resized", is_stuck=True)
    if (then := qos_class(pod, after_it)) != now:
        why = f"its QoS class would change from {now} to {then}, which is fixed for a pod's life"
        return PodState(pod, "infeasible", why, is_stuck=True)
    containers = [
        {
            "name": name,
            "resources": {
                section: wire(found)
                for section, found in (("requests", one.requests), ("limits", one.limits))
                if found
            },
        }
        for name, one in sorted(changes.items())
    ]
    body = {"metadata": {"uid": pod.metadata.uid}, "spec": {"containers": containers}}
    raises, lowers = set[Resource](), set[Resource]()
    for one in pod.spec.containers:
        change = changes.get(one.name, NOTHING)
        for have, wanted in (
            (amounts(one.resources.requests), change.requests),
            (amounts(one.resources.limits), change.limits),
        ):
            for resource, value in wanted.items():
                (raises if value > have.get(resource, 0) else lowers).add(resource)
    lowers_limit = any(
        change.limits["memory"] < (amounts(one.resources.limits).get("memory", 0))
        for one in pod.spec.containers
        if "memory" in (change := changes.get(one.name, NOTHING)).limits
    )
    resize = PodResize(pod.metadata.name, pod.metadata.uid, body, lowers_limit)
    return PodState(
        pod, "waiting", resize=resize, raises=frozenset(raises), lowers=frozenset(lowers), restarts=restarts
    )


def _under_way(
    clock: Clock, strategy: UpdateStrategy, pod: Pod, since: dt.datetime, restarts: bool
) -> PodState:
    """A pod that was asked for the desired size and does not have it yet."""
    pending = _fresh(pod, RESIZE_PENDING)
    if pending is not None and pending.reason == INFEASIBLE:
        return PodState(pod, "infeasible", pending.message or INFEASIBLE, is_stuck=True, is_too_much=True)
    running = _fresh(pod, RESIZE_IN_PROGRESS)
    found = pending or running
    state: State = "in_progress" if pending is None else "deferred"
    times = [since, pod.status.start_time, None if found is None else found.last_transition_time]
    begun = max(when for when in times if when is not None)
    late = clock.is_past(after(begun, strategy.timeout))
    why = "the kubelet has not answered" if found is None else found.message
    return PodState(pod, state, why, restarts=restarts, is_stuck=late)


def _change(
    pod: Pod, container: Container, sizes: Mapping[str, ResourceRequirements], used: int
) -> ResourceRequirements | None:
    """What is to be changed of a container's requests and limits; None for nothing. `used` is its memory (0: not
    known)."""
    desired = sizes.get(container.name)
    if desired is None:
        return None
    requests, limits = amounts(container.resources.requests), amounts(container.resources.limits)
    wanted_requests, wanted_limits = dict(desired.requests), dict(desired.limits)
    for resource in RESOURCES:
        limit, request = limits.get(resource), wanted_requests.get(resource)
        if limit is None:
            continue
        wanted = wanted_limits.get(resource)
        wanted_limits[resource] = _next_limit(pod, container, resource, limit, wanted)
        if resource == "memory" and wanted_limits[resource] < limit:
            wanted_limits[resource] = min(
                limit, max(wanted_limits[resource], ceil_div(used * USE_PERCENT, 100))
            )
        if request is not None:
            wanted_limits[resource] = max(wanted_limits[resource], request)
        if qos_class(pod, pod.spec.containers) == "Guaranteed":
            wanted_requests[resource] = wanted_limits[resource]
    found = ResourceRequirements(_differing(requests, wanted_requests), _differing(limits, wanted_limits))
    return found if found.requests or found.limits else None


def _next_limit(pod: Pod, container: Container, resource: Resource, limit: int, wanted: int | None) -> int:
    """The limit that a container gets now on its way to the one that is wanted (None: the one that it has).

    A memory limit falls by a fifth at a time, and the next step waits until the container has the last one.
    Example: from 1000 MB to 500 MB by 800, 640, 512 and 500 MB. (Where 500 MB are used, 575 MB are the end: `_change`.)
    """
    if wanted is None:
        return limit
    if resource == "cpu" or wanted >= limit:
        return wanted
    if not _has(pod, container):
        return limit
    return max(wanted, ceil_div(limit * LIMIT_STEP_PERCENT, 100))


def _differing(have: Mapping[Resource, int], wanted: Mapping[Resource, int]) -> dict[Resource, int]:
    return {resource: value for resource, value in wanted.items() if have.get(resource) != value}


def _with(container: Container, change: ResourceRequirements | None) -> Container:
    if change is None:
        return container
    own = container.resources
    resources = Resources({**own.requests, **wire(change.requests)}, {**own.limits, **wire(change.limits)})
    return msgspec.structs.replace(container, resources=resources)


def qos_class(pod: Pod, containers: Sequence[Container]) -> Qos:
    """The QoS class of a pod with these containers (`ComputePodQOS` in pkg/apis/core/v1/helper/qos). Requests and
    limits of the pod as a whole alone decide where it has any."""
    every = (
        [pod.spec.resources]
        if pod.spec.resources
        else [one.resources for one in (*containers, *pod.spec.init_containers)]
    )
    have = [(amounts(one.requests), amounts(one.limits)) for one in every]
    if not any(any(found.values()) for one in have for found in one):
        return "BestEffort"
    is_guaranteed = all(
        resource in limits and requests.get(resource, limits[resource]) == limits[resource]
        for requests, limits in have
        for resource in RESOURCES
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _gap(pod: Pod, container: Container) -> ResourceRequirements | None:
    """What a container has been asked to have and does not have yet; None for nothing."""
    had = _had(pod, container)
    if had is None:
        return None
    own = container.resources
    found = ResourceRequirements(
        _differing(amounts(had.requests), amounts(own.requests)),
        _differing(amounts(had.limits), amounts(own.limits)),
    )
    return found if found.requests or found.limits else None


def _has(pod: Pod, container: Container) -> bool:
    """Whether a container has what its pod's spec says. Of one that does not run yet nobody says so: it starts with
    what the spec says."""
    return _gap(pod, container) is None


def present_of(pod: Pod, container: Container) -> ResourceRequirements:
    """What a container has: what the kubelet says, else what the pod's spec says."""
    found = _had(pod, container) or container.resources
    return ResourceRequirements(amounts(found.requests), amounts(found.limits))


def _had(pod: Pod, container: Container) -> Resources | None:
    """What the kubelet says that a container has."""
    return next((one.resources for one in pod.status.container_statuses if one.name == container.name), None)


def _restarts(container: Container, change: ResourceRequirements | None) -> bool:
    if change is None:
        return False
    named = {one.resource_name for one in container.resize_policy if one.restart_policy == RESTART}
    return bool(named & (change.requests.keys() | change.limits.keys()))


def _fresh(pod: Pod, kind: str) -> PodCondition | None:
    """The condition, where it is True and speaks of the spec that the pod has now."""
    found = condition(pod.status.conditions, kind)
    if found is None or found.status != "True":
        return None
    is_old = 0 < found.observed_generation < pod.metadata.generation
    return None if is_old else found


def reported_since(pod: Pod, state: str) -> dt.datetime | None:
    """Since when a pod is in its state, by the kubelet; None where the kubelet does not say."""
    kind = _CONDITIONS.get(state)
    found = None if kind is None else _fresh(pod, kind)
    return None if found is None else found.last_transition_time


def is_ready(pod: Pod) -> bool:
    """Whether the pod's condition `Ready` is True."""
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"


def own_pods(observed: ObservedState) -> list[Pod]:
    """The workload's pods that run or will run."""
    assert observed.target is not None
    return [pod for pod in observed.resizable if _is_living(pod) and is_governed(pod, observed.target)]


def is_governed(pod: Pod, workload: Workload) -> bool:
    """Whether a pod that the workload's selector matches is the workload's: controlled by the workload itself, or by
    one of the ReplicaSets of a Deployment, whose names are the Deployment's with the hash of the template."""
    owner = pod.metadata.controller()
    if owner is None:
        return False
    if owner.uid == workload.metadata.uid:
        return True
    if owner.kind != "ReplicaSet":
        return False
    hashed = pod.metadata.labels.get("pod-template-hash", "")
    return bool(hashed) and owner.name == f"{workload.metadata.name}-{hashed}"


def _is_living(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Failed", "Succeeded")


def ran_out_of_memory(pod: Pod, since: dt.datetime) -> bool:
    """Whether a container ran out of memory since the decision, or shortly before it."""
    ends = [
        ended
        for one in pod.status.container_statuses
        for ended in (one.state.terminated, one.last_state.terminated)
        if ended is not None and ended.reason == OOM_KILLED
    ]
    return any(one.finished_at is not None and one.finished_at >= since - RECENT for one in ends)
