"""Which changes of an object can change a decision. All other changes enqueue no Hvpa."""

from __future__ import annotations

import datetime as dt
from typing import Final

from hvpa.api.objects.read_models import Condition, Hpa, Meta, Pod, Vpa, Workload, condition
from hvpa.core.actuation.kubelet import RESIZE_IN_PROGRESS, RESIZE_PENDING
from hvpa.core.recommenders.history import bound_ratios
from hvpa.core.recommenders.stale import must_change
from hvpa.kube.objects.stored_hvpa import StoredHvpa

SILENT_PERIODS: Final = 2
"""A recommender writes once per period. After a longer pause its recommendation may have been reported as stale
(after three periods, see `hvpa.core.recommenders.stale`)."""


def _meta(meta: Meta) -> tuple[object, ...]:
    """The metadata that can change a decision, for every kind."""
    owners, gone = meta.owner_references, meta.deletion_timestamp
    return (meta.uid, meta.generation, gone, meta.labels, meta.annotations, owners)


def hvpa_spec_changed(old: StoredHvpa, new: StoredHvpa) -> bool:
    """Whether anything except the status changed (`spec.replicas` is part of the spec)."""
    return old.spec_hash != new.spec_hash or _meta(old.metadata) != _meta(new.metadata)


def workload_changed(old: Workload, new: Workload) -> bool:
    """Whether spec or status changed."""
    return old.spec != new.spec or old.status != new.status or _meta(old.metadata) != _meta(new.metadata)


def hpa_changed(old: Hpa, new: Hpa) -> bool:
    """Whether spec, status, labels or owners changed."""
    return old.status != new.status or _spec_or_meta_changed(old, new)


def _spec_or_meta_changed(old: Hpa | Vpa, new: Hpa | Vpa) -> bool:
    return bytes(old.raw_spec) != bytes(new.raw_spec) or _meta(old.metadata) != _meta(new.metadata)


def vpa_changed(old: Vpa, new: Vpa, period: dt.timedelta) -> bool:
    """Whether a change of a VPA can change a decision.

    It can if spec, targets, length of the history, conditions, labels or owners changed, if the recommender is back
    after a silence, or if its next silence starts or stops to count. The bounds themselves change all the time and
    are ignored.
    """
    return (
        _was_silent(old, new, period)
        or _targets(old) != _targets(new)
        or bound_ratios(old) != bound_ratios(new)
        or old.status.conditions != new.status.conditions
        or _spec_or_meta_changed(old, new)
        or must_change(old) != must_change(new)
    )


def _was_silent(old: Vpa, new: Vpa, period: dt.timedelta) -> bool:
    before, now = old.metadata.written_at(), new.metadata.written_at()
    return before is not None and now is not None and now - before > SILENT_PERIODS * period


def _targets(vpa: Vpa) -> list[tuple[object, ...]]:
    recommendation = vpa.status.recommendation
    entries = (recommendation.container_recommendations or ()) if recommendation is not None else ()
    return [(entry.container_name, entry.target, entry.uncapped_target) for entry in entries]


def pod_changed(old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod's phase, readiness, terminated containers, resources, labels, deletion, resize progress, or the
    reason why it can't be scheduled or started changed. A pod that is starting normally counts as absent."""
    return _pod(old) != _pod(new)


def _pod(pod: Pod | None) -> tuple[object, ...] | None:
    if pod is None:
        return None
    status = pod.status
    containers = (*status.container_statuses, *status.init_container_statuses)
    ended = [
        (container.name, container.state, container.last_state)
        for container in containers
        if container.state.terminated is not None
        or container.last_state.terminated is not None
        or container.state.waiting is not None
    ]
    unscheduled = [
        pod_condition
        for pod_condition in status.conditions
        if pod_condition.type == "PodScheduled" and pod_condition.status == "False"
    ]
    if status.phase in ("", "Pending") and not ended and not unscheduled:
        return None
    ready: Condition | None = condition(status.conditions, "Ready")
    return (
        pod.metadata.uid,
        pod.metadata.deletion_timestamp is not None,
        pod.metadata.labels,
        status.phase,
        status.reason,
        status.message,
        None if ready is None else (ready.status, ready.last_transition_time),
        ended,
        unscheduled,
        pod.spec,
        status.running_since,
        [(container.started, container.resources) for container in containers],
        status.resources,
        [
            pod_condition
            for pod_condition in status.conditions
            if pod_condition.type in (RESIZE_PENDING, RESIZE_IN_PROGRESS)
        ],
    )
