"""Condition `Ready`: True only where the workload is what the recommendations and the user's own limits ask for
(docs/decisions/0024). Everything that keeps it from that is in the message, and the first of it is the reason."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from hvpa.api.hvpa.spec import Mode
from hvpa.api.hvpa.status import Refusal
from hvpa.api.objects.read_models import Progress, Workload
from hvpa.api.values import text
from hvpa.api.values.quantity import format_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.gates import CONTESTED, REFUSED
from hvpa.core.model import Axis, Finding, ObservedState, StuckPods
from hvpa.core.report.summary import DecisionParts, blocked_text, saturation
from hvpa.core.values.clock import Clock
from hvpa.core.workload.governed import cut_short, recommended
from hvpa.core.workload.rollout import PROGRESSING, REPLICA_FAILURE, progress_deadline, rollout_gaps
from hvpa.core.workload.stuck import UNSCHEDULABLE

RECONCILED: Final = "Reconciled"
"""The workload is what the recommendations ask for."""
HELD_BACK: Final = "HeldBack"
"""A gate of the user's own, or one that opens within minutes, holds back what the recommendations ask for."""
SATURATED: Final = "Saturated"
"""More is needed than the user's bounds allow."""
HPA_INACTIVE: Final = "HpaInactive"
"""The HPA's recommendation is not used although one is configured."""
VPA_INACTIVE: Final = "VpaInactive"
"""The VPA's recommendation is not used although one is configured."""
NOT_RESIZED: Final = "PodsNotResized"
"""Pods can't have the desired size, or have not got it in time (spec.updateStrategy)."""
DEADLINE_EXCEEDED: Final = "ProgressDeadlineExceeded"
"""The reason of a Deployment's `Progressing=False` (pkg/controller/deployment/util)."""
CREATED_AFTER: Final = dt.timedelta(minutes=1)
"""A StatefulSet that has made none of its missing pods for so long can't make them."""

Told = tuple[bool, Finding]
"""A condition: whether it holds, and why."""


def ready(
    seen: ObservedState, clock: Clock, decided: DecisionParts, hpa: Told, vpa: Told, contested: Told
) -> tuple[bool, Finding]:
    """Whether the workload is what it should be, given the conditions `HpaActive`, `VpaActive` and `Contested`."""
    if (why := unscaled(seen)) is not None:
        return False, why
    assert seen.spec is not None, "`unscaled` has looked at it"
    if decided.scaled_to_zero:
        return True, Finding("ScaledToZero", "the target has 0 replicas and is left alone")
    applies = seen.spec.mode == "Apply"
    problems = [
        *(_obstacles(seen, clock, decided, contested) if applies else ()),
        *_inactive(seen, hpa, vpa),
    ]
    if problems:
        return False, Finding(problems[0].reason, text.joined(one.message for one in problems))
    held = "; ".join(blocked_text(entry) for entry in decided.blocked)
    if not applies:
        return True, Finding(seen.spec.mode, _only_recommended(seen.spec.mode, held))
    if limits := _limits(seen, decided):
        return True, Finding(SATURATED, "; ".join((*limits, *([held] if held else ()))))
    if held:
        return True, Finding(HELD_BACK, held)
    return True, Finding(RECONCILED, "the workload follows its recommendations")


def unscaled(seen: ObservedState) -> Finding | None:
    """Why nothing of the target is scaled; None where it can be."""
    if seen.problem is not None or seen.spec is None:
        return seen.problem or Finding("InvalidSpec", "the spec can't be read")
    if seen.hpa.configured or seen.vpa.configured:
        return None
    return Finding("NoRecommender", "neither spec.hpa nor spec.vpa is to be deployed or names an object")


def _only_recommended(mode: Mode, held: str) -> str:
    """The message of a mode that changes nothing: what status.recommended is, and which part of it gates would hold
    back. (In mode Paused the mode itself is the gate.)"""
    told = f"mode {mode}: nothing is changed; status.recommended is what is recommended before gates"
    if mode == "Paused":
        return told
    return f"{told}; in mode Apply, gates would now hold back " + (held or "nothing of it")


def _obstacles(
    seen: ObservedState, clock: Clock, decided: DecisionParts, contested: Told
) -> Iterable[Finding]:
    """What somebody else, the API server or the workload itself does against it."""
    if contested[0]:
        yield Finding(CONTESTED, contested[1].message)
    if refused := refusals(seen, decided):
        yield Finding(REFUSED, _refused_text(refused, decided))
    yield from _failures(seen, clock)
    if decided.resizing is not None and decided.resizing.stuck:
        yield Finding(NOT_RESIZED, decided.resizing.stuck)


def _inactive(seen: ObservedState, hpa: Told, vpa: Told) -> Iterable[Finding]:
    """Recommenders that are configured and can't be used."""
    for name, reason, configured, (holds, why) in (
        ("HPA", HPA_INACTIVE, seen.hpa.configured, hpa),
        ("VPA", VPA_INACTIVE, seen.vpa.configured, vpa),
    ):
        if configured and not holds:
            yield Finding(reason, f"the {name}'s recommendation is not used, {why.reason}: {why.message}")


# --- limits ----------------------------------------------------------------------------------------------------------
def _limits(seen: ObservedState, decided: DecisionParts) -> tuple[str, ...]:
    """The user's bounds that leave less than is needed, in words."""
    if decided.joint is not None:
        return saturation(decided.joint)
    return (*_replica_limit(decided), *_size_limits(seen))


def _replica_limit(decided: DecisionParts) -> Iterable[str]:
    upper = decided.upper
    if decided.desired.beyond_max and upper is not None and (decided.target or 0) >= upper:
        yield f"the HPA asks for more replicas than maxReplicas, {upper}"


def _size_limits(seen: ObservedState) -> Iterable[str]:
    """Requests that are as large as they may be while the VPA's target is not below that."""
    if not seen.vpa.in_charge or seen.vpa.problem is not None:
        return
    for item in recommended(seen):
        upper = item.bounds.upper
        if upper is not None and item.current >= upper and item.target >= upper:
            most = format_resource(item.resource, upper)
            yield f"{item.container} {item.resource}: the VPA's target is not below maxAllowed, {most}"
    if short := cut_short(seen):
        yield short


# --- what the API server refused -------------------------------------------------------------------------------------
def refusals(seen: ObservedState, decided: DecisionParts) -> tuple[tuple[Axis, Refusal], ...]:
    """The axes on which a change is held back because the API server refused it, and its message."""
    held = {entry.axis for entry in decided.blocked if entry.reason == REFUSED}
    records: tuple[tuple[Axis, Refusal | None], ...] = (
        ("horizontal", seen.horizontal.refused),
        ("vertical", seen.vertical.refused),
    )
    return tuple([(axis, record) for axis, record in records if axis in held and record is not None])


def refusal_text(axis: Axis, record: Refusal) -> str:
    """What was refused, with the API server's message."""
    what = "replicas" if axis == "horizontal" else "requests"
    return f"the API server refused to change {what}: {record.message}"


def _refused_text(refused: tuple[tuple[Axis, Refusal], ...], decided: DecisionParts) -> str:
    parts = [refusal_text(axis, record) for axis, record in refused]
    retries = [
        entry.until for entry in decided.blocked if entry.reason == REFUSED and entry.until is not None
    ]
    return text.joined([*parts, *(f"retrying at {readable_timestamp(when)}" for when in sorted({*retries}))])


# --- the workload's own failures -------------------------------------------------------------------------------------
def _failures(seen: ObservedState, clock: Clock) -> tuple[Finding, ...]:
    """What keeps the workload from running the pods that its spec asks for; the most important one first."""
    workload = seen.workload
    assert workload is not None
    if workload.spec.replicas == 0:
        return ()
    name, found = f"{workload.kind} {workload.metadata.name}", list[Finding]()
    is_held = (
        seen.rollout is not None and seen.rollout.held
    )  # by the operator, as the condition ScalingBlocked says
    gaps = () if is_held else rollout_gaps(workload)
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
