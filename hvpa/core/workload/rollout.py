"""The progress of the workload's last rollout, and the state of its pods."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from msgspec import structs

from hvpa.api.objects.read_models import Condition, Container, Pod, Resources, Workload, condition
from hvpa.api.values.quantity import RESOURCES, QuantityError, Resource
from hvpa.core.model import ObservedState, PodShape, PodsSeen, PodTotal, ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.clock import LAST_INSTANT, Clock, after
from hvpa.core.values.memo import Basis, remembered_while
from hvpa.core.values.tuning import FAILED_FOR
from hvpa.core.workload.containers import SHARED, Texts, amount, amounts, reported, texts
from hvpa.core.workload.own_rollout import partition_of
from hvpa.core.workload.pod_owner import PodsByOwner
from hvpa.core.workload.starving import starving_containers
from hvpa.core.workload.stuck import stuck_pods
from hvpa.recommend.hpa.inputs import HpaSettings, MetricsError
from hvpa.recommend.hpa.pods import lasting, request_of

T = TypeVar("T")

_NOTHING: Mapping[Any, Any] = {}
DEFAULT_DEADLINE = 600
"""Seconds: default `progressDeadlineSeconds` of a Deployment (`SetDefaults_Deployment` in pkg/apis/apps/v1). HVPA uses
it for StatefulSets as well, which have no such field."""
PROGRESSING = "Progressing"
"""A Deployment's condition whose `lastUpdateTime` is the time of the last progress (`syncRolloutStatus` in
pkg/controller/deployment/progress.go)."""
REPLICA_FAILURE = "ReplicaFailure"
"""A Deployment's condition that is True while its pods can't be created (pkg/controller/deployment/sync.go)."""
CREATED_AFTER = dt.timedelta(minutes=1)
"""A controller that created none of its missing pods for this long can't create them. By then, observed pods and the
controller's report also describe the same time."""
MOST_NAMED = 10
"""Maximum number of unready pods named in an explanation."""
METRIC_WINDOW = dt.timedelta(seconds=30)
"""Time from a pod's readiness until the HPA counts its usage (`groupPods` in podautoscaler's replica_calculator.go)."""
STARTS_FOR = dt.timedelta(seconds=HpaSettings().cpu_initialization_period)
"""A pod starts for this long: its usage counts only once it is ready
(`--horizontal-pod-autoscaler-cpu-initialization-period`)."""
READY_WITHIN = dt.timedelta(seconds=HpaSettings().initial_readiness_delay)
"""A pod that became unready within this time after its start has never been ready
(`--horizontal-pod-autoscaler-initial-readiness-delay`)."""
COMPLETED = "Completed"
"""Reason of a container that ended without an error."""
_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)
NO_DEADLINE = 2**31 - 1
"""A `progressDeadlineSeconds` that means no deadline (`HasProgressDeadline` in pkg/controller/deployment/util)."""


def rollout_complete(workload: Workload) -> bool:
    """Whether the last rollout is complete: observed, and every replica is updated, available and no old replica is
    left."""
    return not rollout_gaps(workload)


def rollout_gaps(workload: Workload) -> tuple[str, ...]:
    """Describes what the last rollout lacks; empty if it is complete.

    A StatefulSet with a partition keeps the pods below it on the old revision on purpose, and a workload with
    `OnDelete` never replaces pods itself. HVPA waits for neither.
    """
    spec, status = workload.spec, workload.status
    wanted, available, updated = spec.replicas, status.available_replicas, status.updated_replicas
    expected = _to_update(workload)
    gaps = (
        (_is_behind(workload), "its controller has not seen the latest spec"),
        (status.replicas != wanted, f"{status.replicas} pods exist instead of {wanted}"),
        (available < wanted, f"{available} of {wanted} pods are available"),
        (updated < expected, f"{updated} of {expected} pods are updated"),
    )
    return tuple([text for is_missing, text in gaps if is_missing])


def _to_update(workload: Workload) -> int:
    """Returns how many pods have the newest template after the last rollout."""
    strategy = workload.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return 0
    return max(0, workload.spec.replicas - partition_of(workload))


def _is_behind(workload: Workload) -> bool:
    """Whether the workload's controller has not seen its latest spec."""
    return workload.status.observed_generation < workload.metadata.generation


def rollout_goes_on(workload: Workload, pods: Iterable[Pod], clock: Clock) -> bool:
    """Whether the last rollout is neither complete nor past its progress deadline.

    If all pods exist and are updated, the deadline counts from the creation of the newest pod that is not ready; before
    that, from the creation of the newest pod. Sizes decided in place start no rollout, and a pod that restarts again
    and again is no progress. Example: of 5 updated pods one has been out of memory all day: no rollout is in progress.
    If one of the 5 has the old template and the last pod was created at 10:00, a rollout is in progress until 10:10.
    """
    if rollout_complete(workload):
        return False
    wait, spec, status = _deadline(workload), workload.spec, workload.status
    if wait is None or _is_behind(workload):
        return True
    replaces = status.replicas != spec.replicas or status.updated_replicas < _to_update(workload)
    awaited = [pod for pod in pods if is_living(pod) and (replaces or _ready_condition(pod) is None)]
    created = [created_at for pod in awaited if (created_at := pod.metadata.creation_timestamp) is not None]
    return not created or not clock.is_past(after(max(created), wait))


def _deadline(workload: Workload) -> dt.timedelta | None:
    """Returns how long a rollout may make no progress; None: forever."""
    seconds = workload.spec.progress_deadline_seconds
    if seconds is not None and seconds >= NO_DEADLINE:
        return None
    return dt.timedelta(seconds=DEFAULT_DEADLINE if seconds is None else seconds)


def last_change_is_past(observation: ObservedState, clock: Clock) -> bool:
    """Whether HVPA's last change of the workload, and the last change of its pods' readiness, are CREATED_AFTER ago."""
    changes = (
        observation.horizontal.last_scale_time,
        observation.vertical.last_scale_time,
        observation.pods.last_ready_at,
    )
    return all(clock.held_until(when, CREATED_AFTER) is None for when in changes)


def progress_deadline(observation: ObservedState) -> dt.datetime | None:
    """Returns when the last rollout, which is not complete, is past its progress deadline. After that, another change
    may repair the pods (DESIGN 6.2). None without a time limit: the controller has not seen the workload's latest spec,
    the deadline is switched off, or the last progress is unknown.

    The deadline counts from the creation of the newest unready pod. If all pods are ready, it counts from the progress
    that the Deployment reports, or from a later readiness of a pod or change of replicas by HVPA: the Deployment's
    status follows its pods, and its last progress may be old. It never counts from before HVPA's last change of
    requests. Example: a pod is created at 10:00 and never becomes ready; the deadline is 10:10.
    """
    workload, pods = observation.workload, observation.pods
    assert workload is not None
    wait = _deadline(workload)
    if wait is None or _is_behind(workload):
        return None
    since = pods.newest_unready
    if since is None:
        progress = (entry for entry in workload.status.conditions if entry.type == PROGRESSING)
        since = next((entry.last_update_time for entry in progress), None)
        if since is None:
            return None
        since = max(since, pods.last_ready_at or since, observation.horizontal.last_scale_time or since)
    return after(max(since, observation.vertical.last_scale_time or since), wait)


def is_overdue(observation: ScalableState, clock: Clock) -> bool:
    """Whether the last rollout is past its progress deadline, and no pod lost its readiness within the same time. A pod
    that ran for hours and fails its probe for a minute is no stalled rollout."""
    deadline = progress_deadline(observation)
    if deadline is None or not clock.is_past(deadline):
        return False
    since, wait = observation.pods.unready_since, _deadline(observation.workload)
    return since is None or wait is None or clock.is_past(after(since, wait))


def _basis(
    pods: PodsByOwner, workload: Workload, since: Mapping[str, dt.datetime], sized: bool = False
) -> Basis:
    containers = workload.spec.template.spec.containers
    return Basis((*pods, containers), (since, sized))


@remembered_while(_basis)
def see_pods(
    clock: Clock,
    pods: PodsByOwner,
    workload: Workload,
    since: Mapping[str, dt.datetime],
    sized: bool = False,
) -> PodsSeen:
    """Counts the pods by state, and finds containers that ran out of memory after `since`, their last raise.
    With `sized` it also collects their requests."""
    there = [pod for pod in pods.own if pod.metadata.deletion_timestamp is None]
    ready = [ready_condition for pod in there if (ready_condition := _ready_condition(pod)) is not None]
    ready_since = sorted(
        [readiness.last_transition_time for readiness in ready if readiness.last_transition_time is not None]
    )
    unready = [pod for pod in there if _ready_condition(pod) is None and is_living(pod)]
    starving = starving_containers(clock, there, workload.spec.template.spec.containers, since)
    failed = [pod for pod in there if _failed_recently(pod, clock)]
    created = [pod.metadata.creation_timestamp for pod in unready]
    lost = [
        ready_condition.last_transition_time
        for pod in unready
        if (ready_condition := condition(pod.status.conditions, "Ready"))
    ]
    others = [pod for pod in pods.others if is_living(pod)]
    pods_seen = PodsSeen(
        ready=len(ready),
        running=sum(pod.status.phase == "Running" for pod in there),
        failed=len(failed),
        unproven_until=tuple(sorted([when for pod in there if (when := _unproven_until(pod)) is not None])),
        others_ready=sum(_ready_condition(pod) is not None for pod in others),
        others_running=sum(pod.status.phase == "Running" for pod in others),
        last_ready_at=max(ready_since, default=None),
        counted_from=tuple(sorted([when for pod in there if (when := _counted_from(pod)) is not None])),
        unready=tuple([pod.metadata.name for pod in unready[:MOST_NAMED]]),
        newest_unready=max((created_at for created_at in created if created_at is not None), default=None),
        unready_since=max((lost_at for lost_at in lost if lost_at is not None), default=None),
        running_from=tuple(sorted([_measured_from(pod) for pod in there if pod.status.phase == "Running"])),
        starving=starving or _NOTHING,
        terminating=len(pods.own) - len(there),
        stuck=stuck_pods(pods.own),
        **_template_differences(there, workload.spec.template.spec.containers),
    )
    return (
        structs.replace(pods_seen, ready_since=tuple(ready_since), **_requested_sizes(there))
        if sized
        else pods_seen
    )


def _counted_from(pod: Pod) -> dt.datetime | None:
    """Returns from when the HPA counts the CPU of a pod in its current state; None if it does not (rule: `_is_unready`
    in `hvpa/recommend/hpa/pods.py`)."""
    ready, started = condition(pod.status.conditions, "Ready"), pod.status.start_time
    if pod.status.phase != "Running" or ready is None:
        return None
    changed = ready.last_transition_time or _LONG_AGO
    if ready.status != "False":
        measured = _LONG_AGO if changed == _LONG_AGO else after(changed, METRIC_WINDOW)
        return measured if started is None else min(measured, after(started, STARTS_FOR))
    if started is None or changed < after(started, READY_WITHIN):
        return None
    return after(started, STARTS_FOR)


def _failed_recently(pod: Pod, clock: Clock) -> bool:
    """Whether a container of the pod failed recently."""
    return any([clock.held_until(when, FAILED_FOR) is not None for when in _failure_times(pod)])


def _failure_times(pod: Pod) -> list[dt.datetime]:
    """Returns when containers of a pod failed, as far as the kubelet reports it."""
    return [
        end.finished_at
        for status in pod.status.container_statuses
        for end in (status.last_state.terminated, status.state.terminated)
        if end is not None and end.finished_at is not None and end.reason != COMPLETED
    ]


def _unproven_until(pod: Pod) -> dt.datetime | None:
    """Returns until when the usage of a running pod is no measure of demand: for ten minutes after a container failure,
    and until the HPA counts a new pod, at most ten minutes after its creation. None: it always was a measure."""
    if pod.status.phase != "Running":
        return None
    created, counted = pod.metadata.creation_timestamp, _counted_from(pod)
    known = [after(when, FAILED_FOR) for when in _failure_times(pod)]
    if created is not None:
        known.append(min(after(created, FAILED_FOR), counted or LAST_INSTANT))
    return max(known, default=None)


def _measured_from(pod: Pod) -> dt.datetime:
    """Returns from when a running pod can be measured."""
    started = pod.status.start_time
    return _LONG_AGO if started is None else after(started, METRIC_WINDOW)


def _template_differences(pods: Iterable[Pod], template: Sequence[Container]) -> dict[str, Any]:
    """Returns fields of PodsSeen: the pods' containers, the number of pods, and of pods whose resources differ from the
    template."""
    living = [pod for pod in pods if is_living(pod)]
    wanted = [(container.name, texts(container.resources), container.resources) for container in template]
    known: dict[tuple[Texts, Texts | None], tuple[Resource, ...]] = {}

    def unlike(pod: Pod) -> tuple[tuple[Resource, ...], ...]:
        """Returns the resources, by container of the template, whose requests or limits differ in the pod."""
        pod_resources = {container.name: container.resources for container in pod.spec.containers}
        differences = []
        for name, text, resources in wanted:
            have = pod_resources.get(name)
            key = text, None if have is None else texts(have)
            if key not in known:
                known[key] = tuple(
                    resource
                    for resource in RESOURCES
                    if have is None or not _has_resources(have, resources, (resource,))
                )
            differences.append(known[key])
        return tuple(differences)

    def keys(differences: Iterable[tuple[Resource, ...]]) -> frozenset[ResourceKey]:
        by_name = zip(template, differences, strict=True)
        return frozenset(
            [
                ResourceKey(container.name, resource)
                for container, differing in by_name
                for resource in differing
            ]
        )

    # The local cache stores equal specs once, and most pods of a workload are equal.
    specs = {id(pod.spec): pod for pod in living}
    by_spec = {key: unlike(pod) for key, pod in specs.items()}
    counts = Counter([by_spec[id(pod.spec)] for pod in living])
    return {
        "living": len(living),
        "containers": frozenset(
            [container.name for pod in specs.values() for container in lasting(pod.spec)]
        ),
        "unlike": {keys(differences): counts[differences] for differences in counts if any(differences)}
        or _NOTHING,
    }


def _requested_sizes(pods: Iterable[Pod]) -> dict[str, Any]:
    """Returns fields of PodsSeen: requests and actual resources of the pods that run or will run."""
    living = [pod for pod in pods if is_living(pod)]
    # The local cache stores equal specs once, and most pods of a workload are equal.
    known: dict[Texts, Mapping[Resource, int]] = {}
    by_spec = {key: _of_spec(pod, known) for key, pod in {id(pod.spec): pod for pod in living}.items()}
    containers = defaultdict[str, list[tuple[Mapping[Resource, int], bool]]](list)
    totals = defaultdict[Resource, list[tuple[PodTotal, bool]]](list)
    shapes: dict[object, PodShape] = {}
    for pod in living:
        requests, is_ready = by_spec[id(pod.spec)], _ready_condition(pod) is not None
        for name, size in requests.sizes.items():
            containers[name].append((size, is_ready))
        for resource, total in requests.totals.items():
            totals[resource].append((total, is_ready))
        have, refuses = _actual_sizes(pod, requests.sizes), _refuses_resize(pod)
        group = (id(have), refuses) if have is requests.sizes else (repr(have), refuses)
        count = shapes[group].count if group in shapes else 0
        shapes[group] = PodShape(have, count + 1, refuses)
    sizes = {
        ResourceKey(name, resource): _mean(_of_ready_pods(pairs))
        for name, entries in containers.items()
        for resource in RESOURCES
        if (pairs := [(size[resource], is_ready) for size, is_ready in entries if resource in size])
    }
    return {
        "sizes": sizes,
        "shapes": tuple(shapes.values()),
        "totals": {resource: _total(_of_ready_pods(entries)) for resource, entries in totals.items()},
    }


def _actual_sizes(
    pod: Pod, requested: Mapping[str, Mapping[Resource, int]]
) -> Mapping[str, Mapping[Resource, int]]:
    """Returns the actual resources of a pod by container: less than `requested` if the kubelet has not allocated them
    yet."""
    spec_resources = {container.name: container.resources for container in pod.spec.containers}
    actual = dict(requested)
    for status in pod.status.container_statuses:
        if (
            status.resources is None
            or status.name not in spec_resources
            or status.resources == spec_resources[status.name]
        ):
            continue
        have = amounts(status.resources.limits | status.resources.requests)
        actual[status.name] = {
            key: min(size, have.get(key, size)) for key, size in requested[status.name].items()
        }
    return requested if actual == requested else actual


def _refuses_resize(pod: Pod) -> bool:
    """Whether the kubelet has deferred the pod's resize or can't do it."""
    pending = condition(pod.status.conditions, "PodResizePending")
    return pending is not None and pending.status == "True"


def _of_ready_pods(entries: Sequence[tuple[T, bool]]) -> list[T]:
    """Returns the values of ready pods; of all pods if none is ready."""
    return [request for request, is_ready in entries if is_ready] or [request for request, _ in entries]


def _mean(sizes: Sequence[int]) -> int:
    return ceil_div(sum(sizes), len(sizes))


def _total(totals: Sequence[PodTotal]) -> PodTotal:
    requested, of_init = [
        _mean(some) for some in zip(*[(total.requested, total.of_init) for total in totals], strict=True)
    ]
    return PodTotal(requested, any(total.is_whole for total in totals), of_init)


def is_living(pod: Pod) -> bool:
    """Whether a pod runs or will run."""
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in ("Failed", "Succeeded")


def _ready_condition(pod: Pod) -> Condition | None:
    """Returns the Ready condition if the pod is ready."""
    ready = condition(pod.status.conditions, "Ready")
    return ready if ready is not None and ready.status == "True" else None


class _OfSpec(NamedTuple):
    """Requests of a pod with this spec: by container, and in total."""

    sizes: Mapping[str, Mapping[Resource, int]]
    totals: Mapping[Resource, PodTotal]


def _of_spec(pod: Pod, known: dict[Texts, Mapping[Resource, int]]) -> _OfSpec:
    """`known`: requests by their texts, so that each text is parsed once."""
    sizes: dict[str, Mapping[Resource, int]] = {}
    for container in lasting(pod.spec):
        key = texts(container.resources)
        if key not in known:
            known[key] = amounts(container.resources.limits | container.resources.requests)
        sizes[container.name] = known[key]
    return _OfSpec(sizes, {resource: _pod_total(pod, resource, sizes) for resource in RESOURCES})


def _pod_total(pod: Pod, resource: Resource, sizes: Mapping[str, Mapping[Resource, int]]) -> PodTotal:
    """Returns the pod's request in the HPA's view. If a request is missing, the HPA has no utilization; targets of
    other kinds then use the sum of the other requests."""
    whole = pod.spec.resources
    try:
        milli = request_of(pod, "", resource)
    except (MetricsError, QuantityError):
        return PodTotal(sum(size.get(resource, 0) for size in sizes.values()))
    requested = milli if resource == "cpu" else ceil_div(milli, 1000)
    is_whole = whole is not None and resource in whole.requests and SHARED not in sizes
    of_init = requested - sum(size.get(resource, 0) for size in sizes.values()) if SHARED in sizes else 0
    return PodTotal(min(requested, LARGEST), is_whole, max(0, of_init))


def runs_template(pod: Pod, containers: Sequence[Container]) -> bool:
    """Whether a pod's containers have the template's resources according to the kubelet. A waiting resize has changed
    only the pod's spec."""
    pod_resources = reported(pod)
    return all(
        container.name in pod_resources
        and _has_resources(pod_resources[container.name], container.resources, RESOURCES)
        for container in containers
    )


def _has_resources(have: Resources, wanted: Resources, resources: Iterable[Resource]) -> bool:
    """Whether a pod's container has the template's values of these resources. Values missing in the template may have
    been set by others, such as a LimitRange. A missing request equals the limit, as in Kubernetes."""
    requests = wanted.limits | wanted.requests
    return have == wanted or all(
        amount(present, resource) == amount(expected, resource)
        for expected, present in ((requests, have.limits | have.requests), (wanted.limits, have.limits))
        for resource in resources
        if resource in expected
    )
