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
    workload = seen.workload
    assert workload is not None
    if workload.spec.replicas == 0:
        return ()
    name, gaps, found = f"{workload.kind} {workload.metadata.name}", rollout_gaps(workload), []
    failed = _condition(workload, REPLICA_FAILURE)
    if failed is not None and failed.status == "True":
        reason = text.reason(failed.reason, "FailedCreate")
        found.append(Finding(REPLICA_FAILURE, f"{name} can't create pods, {reason}: {failed.message}"))
    if _is_missing_pods(workload, seen, clock):
        why = f"{name} has {workload.status.replicas} of {workload.spec.replicas} pods and creates no more"
        hint = "its Events say why, such as a quota or a webhook that refuses them"
        found.append(Finding("PodsNotCreated", f"{why}: {hint}"))
    found += [_stuck(one) for one in seen.pods.stuck if _is_due(one, clock)]
    if workload.spec.paused and gaps:
        why = f"{name} is paused (spec.paused): its pods are not replaced"
        found.append(Finding("DeploymentPaused", why))
    if gaps:
        progressing = _condition(workload, PROGRESSING)
        if progressing is not None and progressing.reason == DEADLINE_EXCEEDED:
            found.append(Finding(DEADLINE_EXCEEDED, progressing.message or f"{name}: {'; '.join(gaps)}"))
        elif (deadline := progress_deadline(seen)) is not None and clock.is_past(deadline):
            found.append(
                Finding(DEADLINE_EXCEEDED, f"the rollout of {name} does not go on: {'; '.join(gaps)}")
            )
    return tuple(found)


def _is_due(one: StuckPods, clock: Clock) -> bool:
    if one.since is not None and not clock.is_past(one.since):
        return False
    return one.until is None or not clock.is_past(one.until)


def _stuck(one: StuckPods) -> Finding:
    reason = "PodsUnschedulable" if one.reason == UNSCHEDULABLE else "PodsNotStarting"
    pods = f"pod {one.pod}" if one.count == 1 else f"{one.count} pods, such as {one.pod}"
    why = "can't be scheduled" if one.reason == UNSCHEDULABLE else f"can't start, {one.reason}"
    return Finding(reason, f"{pods} {why}: {one.message}" if one.message else f"{pods} {why}")


def _is_missing_pods(workload: Workload, seen: ObservedState, clock: Clock) -> bool:
    """Whether a StatefulSet has not created pods, although nothing that is to be seen keeps it from that. Its status
    has no condition of it, and Events are not read."""
    status, pods = workload.status, seen.pods
    if workload.kind != "StatefulSet" or status.replicas >= workload.spec.replicas:
        return False
    if pods.unready or pods.terminating or status.observed_generation < workload.metadata.generation:
        return False
    changes = (seen.horizontal.last_scale_time, seen.vertical.last_scale_time, pods.last_ready_at)
    return all(clock.held_until(when, CREATED_AFTER) is None for when in changes)


def _condition(workload: Workload, kind: str) -> Progress | None:
    return next((one for one in workload.status.conditions if one.type == kind), None)
