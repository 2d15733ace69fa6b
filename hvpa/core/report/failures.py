"""The workload's own failures: pods that can't be created, scheduled or started, and rollouts that don't go on. They
are no matter of scaling, but they keep the workload from being what was set, so `Ready` passes them on."""

from __future__ import annotations

import datetime as dt
from typing import Final

from hvpa.api.objects.read_models import Progress, Workload
from hvpa.api.values import text
from hvpa.core.model import Finding, ObservedState, StuckPods
from hvpa.core.values.clock import Clock
from hvpa.core.workload.rollout import PROGRESSING, REPLICA_FAILURE, progress_deadline, rollout_gaps
from hvpa.core.workload.stuck import UNSCHEDULABLE

DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
"""The reason of a Deployment's `Progressing=False` (pkg/controller/deployment/util)."""
CREATED_AFTER: Final = dt.timedelta(minutes=1)
"""A StatefulSet that has made none of its missing pods for so long can't make them."""


def failures(seen: ObservedState, clock: Clock) -> tuple[Finding, ...]:
    """What keeps the workload from running the pods that its spec asks for; the most telling one first."""
    assert seen.workload is not None
    if seen.workload.spec.replicas == 0:
        return ()
    stuck = [_stuck(one) for one in seen.pods.stuck if _is_due(one, clock)]
    found = (_not_created(seen), _missing(seen, clock), *stuck, _paused(seen), _overdue(seen, clock))
    return tuple([one for one in found if one is not None])


def _name(workload: Workload) -> str:
    return f"{workload.kind} {workload.metadata.name}"


def _is_due(one: StuckPods, clock: Clock) -> bool:
    if one.since is not None and not clock.is_past(one.since):
        return False
    return one.until is None or not clock.is_past(one.until)


def _stuck(one: StuckPods) -> Finding:
    reason = "PodsUnschedulable" if one.reason == UNSCHEDULABLE else "PodsNotStarting"
    pods = f"pod {one.pod}" if one.count == 1 else f"{one.count} pods, such as {one.pod}"
    why = "can't be scheduled" if one.reason == UNSCHEDULABLE else f"can't start, {one.reason}"
    return Finding(reason, f"{pods} {why}: {one.message}" if one.message else f"{pods} {why}")


def _not_created(seen: ObservedState) -> Finding | None:
    """Pods of a Deployment that the API server refuses (a quota, a LimitRange, a webhook)."""
    assert seen.workload is not None
    failed = _condition(seen.workload, REPLICA_FAILURE)
    if failed is None or failed.status != "True":
        return None
    reason = text.reason(failed.reason, "FailedCreate")
    return Finding(REPLICA_FAILURE, f"{_name(seen.workload)} can't create pods, {reason}: {failed.message}")


def _missing(seen: ObservedState, clock: Clock) -> Finding | None:
    """Pods that a StatefulSet has not created, although nothing that is to be seen keeps it from that. Its status has
    no condition of it, and Events are not read."""
    workload, pods = seen.workload, seen.pods
    assert workload is not None
    status, wanted = workload.status, workload.spec.replicas
    if workload.kind != "StatefulSet" or status.replicas >= wanted or pods.unready or pods.terminating:
        return None
    if status.observed_generation < workload.metadata.generation:
        return None
    changes = (seen.horizontal.last_scale_time, seen.vertical.last_scale_time, pods.last_ready_at)
    if any(clock.held_until(when, CREATED_AFTER) is not None for when in changes):
        return None
    why = f"{_name(workload)} has {status.replicas} of {wanted} pods and creates no more"
    return Finding(
        "PodsNotCreated", f"{why}: its Events say why, such as a quota or a webhook that refuses them"
    )


def _overdue(seen: ObservedState, clock: Clock) -> Finding | None:
    """A rollout that is past its progress deadline."""
    workload = seen.workload
    assert workload is not None
    gaps = rollout_gaps(workload)
    if not gaps:
        return None
    progressing = _condition(workload, PROGRESSING)
    if progressing is not None and progressing.reason == DEADLINE_EXCEEDED:
        return Finding(DEADLINE_EXCEEDED, progressing.message or f"{_name(workload)}: {'; '.join(gaps)}")
    deadline = progress_deadline(seen)
    if deadline is None or not clock.is_past(deadline):
        return None
    return Finding(DEADLINE_EXCEEDED, f"the rollout of {_name(workload)} does not go on: {'; '.join(gaps)}")


def _paused(seen: ObservedState) -> Finding | None:
    """A Deployment that is paused, so that new requests reach no pod."""
    workload = seen.workload
    assert workload is not None
    if not workload.spec.paused or not rollout_gaps(workload):
        return None
    return Finding(
        "DeploymentPaused", f"{_name(workload)} is paused (spec.paused): its pods are not replaced"
    )


def _condition(workload: Workload, kind: str) -> Progress | None:
    return next((one for one in workload.status.conditions if one.type == kind), None)
