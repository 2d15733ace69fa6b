"""Resizes of running pods: which pods have the desired size, which are asked for it now, and which can't have it.

Facts about the `resize` subresource that this follows are in KEP-1287 and, measured, in docs/in-place.md. Requests and
limits are changed and never removed; a pod keeps its QoS class for life; a container restarts where its `resizePolicy`
says so; the kubelet reports a resize that waits as `PodResizePending` (Deferred: no room on the node at present;
Infeasible: never) and one under way as `PodResizeInProgress`.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.hvpa.status import Actuation
from hvpa.api.objects.read_models import Container, Pod, PodCondition, Resources, Workload, condition
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ObservedState, PodResize, RefusedResize, ResourceRequirements
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import Clock, after
from hvpa.core.workload.containers import RESOURCES, amounts, wire

RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"
RESTART: Final = "RestartContainer"
LIMIT_STEP_PERCENT: Final = 80
"""A memory limit falls to this share of what it is, at most, in one resize. The kubelet refuses a limit below what is
used, but between its look and the write usage can grow, and then the container is killed (kubernetes#135670)."""

FIRST_REFUSAL_WAIT: Final = dt.timedelta(minutes=1)
LONGEST_REFUSAL_WAIT: Final = dt.timedelta(hours=1)

_CONDITIONS: Final[Mapping[str, str]] = {
    "in_progress": RESIZE_IN_PROGRESS,
    "deferred": RESIZE_PENDING,
    "infeasible": RESIZE_PENDING,
}
"""The condition of a pod that says since when it is in a state."""

State = Literal["resized", "in_progress", "deferred", "infeasible", "waiting"]
Qos = Literal["Guaranteed", "Burstable", "BestEffort"]


class Resizing(msgspec.Struct, frozen=True, gc=False):
    """Where the pods of a workload stand. `stuck` says why pods can't have the desired size, or have not got it in
    time (empty: there are none): what the next rung is for."""

    status: Actuation
    resizes: tuple[PodResize, ...] = ()
    stuck: str = ""


class PodState(msgspec.Struct, frozen=True, gc=False):
    """Where one pod stands on its way to the desired size, why it is there, and since when by the kubelet (None: the
    kubelet does not say)."""

    pod: Pod
    state: State
    why: str = ""
    since: dt.datetime | None = None


class _Seen(msgspec.Struct, frozen=True, gc=False):
    """One pod: its state, why it is in it, the resize that is due, and whether that restarts a container or lowers
    something. `is_stuck`: nothing more is to be expected of a resize."""

    pod: Pod
    state: State
    why: str = ""
    resize: PodResize | None = None
    restarts: bool = False
    is_lower: bool = False
    is_stuck: bool = False


def resize_pods(
    clock: Clock,
    observed: ObservedState,
    strategy: UpdateStrategy,
    sizes: Mapping[str, ResourceRequirements],
    since: dt.datetime,
) -> Resizing:
    """Compare the workload's pods with the desired `sizes` by container, decided at `since`, and say what to resize
    now: raises first, and of those that restart a container no more at once than may be unavailable."""
    seen = _seen(clock, observed, strategy, sizes, since)
    unavailable = sum(not _is_ready(one.pod) or (one.restarts and one.resize is None) for one in seen)
    room = strategy.most_unavailable(len(seen)) - unavailable
    resizes: list[PodResize] = []
    for one in sorted(seen, key=lambda one: one.is_lower):
        if one.resize is None:
            continue
        if one.restarts and _is_ready(one.pod):
            if room <= 0:
                continue
            room -= 1
        resizes.append(one.resize)
    return Resizing(_status(seen), tuple(resizes), _stuck(seen))


def pod_states(
    clock: Clock,
    observed: ObservedState,
    strategy: UpdateStrategy,
    sizes: Mapping[str, ResourceRequirements],
    since: dt.datetime,
) -> tuple[PodState, ...]:
    """Where each pod of the workload stands, as `resize_pods` counts them."""
    seen = _seen(clock, observed, strategy, sizes, since)
    return tuple([PodState(one.pod, one.state, one.why, _reported_since(one)) for one in seen])


def _reported_since(seen: _Seen) -> dt.datetime | None:
    kind = _CONDITIONS.get(seen.state)
    found = None if kind is None else _fresh(seen.pod, kind)
    return None if found is None else found.last_transition_time


def _seen(
    clock: Clock,
    observed: ObservedState,
    strategy: UpdateStrategy,
    sizes: Mapping[str, ResourceRequirements],
    since: dt.datetime,
) -> list[_Seen]:
    """The workload's pods that run or will run."""
    assert observed.target is not None
    living = [pod for pod in observed.resizable if _is_living(pod) and is_governed(pod, observed.target)]
    refused = {one.uid: one for one in observed.refused_resizes}
    return [
        _unless_refused(clock, _look(clock, strategy, pod, sizes, since), refused.get(pod.metadata.uid))
        for pod in living
    ]


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


def _look(
    clock: Clock,
    strategy: UpdateStrategy,
    pod: Pod,
    sizes: Mapping[str, ResourceRequirements],
    since: dt.datetime,
) -> _Seen:
    changes = {one.name: found for one in pod.spec.containers if (found := _change(pod, one, sizes))}
    restarts = any(_restarts(one, changes.get(one.name) or _gap(pod, one)) for one in pod.spec.containers)
    if changes:
        return _due(pod, changes, restarts)
    if all(_has(pod, one) for one in pod.spec.containers):
        return _Seen(pod, "resized")
    return _under_way(clock, strategy, pod, since, restarts)


def _unless_refused(clock: Clock, seen: _Seen, refused: RefusedResize | None) -> _Seen:
    """A resize that the API server refused is not asked for again for a minute, then two, an hour at most."""
    if seen.resize is None or refused is None or seen.resize.body != refused.body:
        return seen
    wait = min(FIRST_REFUSAL_WAIT * (1 << min(refused.count - 1, 10)), LONGEST_REFUSAL_WAIT)
    if clock.held_until(refused.time, wait) is None:
        return seen
    return _Seen(seen.pod, "infeasible", refused.message, is_stuck=True)


def _due(pod: Pod, changes: Mapping[str, ResourceRequirements], restarts: bool) -> _Seen:
    """A pod that is to be resized, or can't be."""
    after_it = [_with(one, changes.get(one.name)) for one in pod.spec.containers]
    now = qos_class(pod, pod.spec.containers)
    if now == "BestEffort":
        return _Seen(pod, "infeasible", "a pod of QoS class BestEffort can't be resized", is_stuck=True)
    if (then := qos_class(pod, after_it)) != now:
        why = f"its QoS class would change from {now} to {then}, which is fixed for a pod's life"
        return _Seen(pod, "infeasible", why, is_stuck=True)
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
    own = {one.name: amounts(one.resources.requests) for one in pod.spec.containers}
    is_lower = not any(
        value > own[name].get(resource, 0)
        for name, one in changes.items()
        for resource, value in one.requests.items()
    )
    resize = PodResize(pod.metadata.name, pod.metadata.uid, body)
    return _Seen(pod, "waiting", resize=resize, restarts=restarts, is_lower=is_lower)


def _under_way(clock: Clock, strategy: UpdateStrategy, pod: Pod, since: dt.datetime, restarts: bool) -> _Seen:
    """A pod that was asked for the desired size and does not have it yet."""
    pending = _fresh(pod, RESIZE_PENDING)
    if pending is not None and pending.reason == INFEASIBLE:
        return _Seen(pod, "infeasible", pending.message or INFEASIBLE, is_stuck=True)
    running = _fresh(pod, RESIZE_IN_PROGRESS)
    found = pending or running
    state: State = "in_progress" if pending is None else "deferred"
    times = [since, pod.status.start_time, None if found is None else found.last_transition_time]
    begun = max(when for when in times if when is not None)
    late = clock.is_past(after(begun, strategy.timeout))
    why = "the kubelet has not answered" if found is None else found.message
    return _Seen(pod, state, why, restarts=restarts, is_stuck=late)


def _change(
    pod: Pod, container: Container, sizes: Mapping[str, ResourceRequirements]
) -> ResourceRequirements | None:
    """What is to be changed of a container's requests and limits; None for nothing."""
    desired = sizes.get(container.name)
    if desired is None:
        return None
    requests, limits = amounts(container.resources.requests), amounts(container.resources.limits)
    wanted_requests, wanted_limits = dict(desired.requests), dict(desired.limits)
    for resource in RESOURCES:
        limit, request = limits.get(resource), wanted_requests.get(resource)
        if limit is None:
            continue
        wanted_limits[resource] = _next_limit(pod, container, resource, limit, wanted_limits.get(resource))
        if request is not None:
            wanted_limits[resource] = max(wanted_limits[resource], request)
        if qos_class(pod, pod.spec.containers) == "Guaranteed":
            wanted_requests[resource] = wanted_limits[resource]
    found = ResourceRequirements(_differing(requests, wanted_requests), _differing(limits, wanted_limits))
    return found if found.requests or found.limits else None


def _next_limit(pod: Pod, container: Container, resource: Resource, limit: int, wanted: int | None) -> int:
    """The limit that a container gets now on its way to the one that is wanted (None: the one that it has).

    A memory limit falls by a fifth at a time, and the next step waits until the container has the last one.
    Example: from 1000 MB to 500 MB by 800, 640, 512 and 500 MB.
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


def _is_living(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Failed", "Succeeded")


def _is_ready(pod: Pod) -> bool:
    found = condition(pod.status.conditions, "Ready")
    return found is not None and found.status == "True"


def _status(seen: Sequence[_Seen]) -> Actuation:
    counts = Counter(one.state for one in seen)
    return Actuation(
        resized=f"{counts['resized']}/{len(seen)}",
        pods=len(seen),
        in_progress=counts["in_progress"],
        deferred=counts["deferred"],
        infeasible=counts["infeasible"],
        waiting=counts["waiting"],
        message=_first_reason([one for one in seen if one.why and (one.is_stuck or one.state == "deferred")]),
    )


def _stuck(seen: Sequence[_Seen]) -> str:
    return _first_reason([one for one in seen if one.is_stuck])


def _first_reason(seen: Sequence[_Seen]) -> str:
    """Of the first pod by name its reason, and how many more there are."""
    if not seen:
        return ""
    first = min(seen, key=lambda one: one.pod.metadata.name)
    more = f" (and {len(seen) - 1} more pods)" if len(seen) > 1 else ""
    return f"pod {first.pod.metadata.name}{more}: {first.why}"
