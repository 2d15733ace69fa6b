"""A decision's events beside those of its step: a change of what blocks, a condition that needs somebody to act."""

from __future__ import annotations

from collections.abc import Iterable

from hvpa.api.hvpa.status import HeldRollout, HvpaStatus, RolledBack
from hvpa.api.values import text
from hvpa.api.values.quantity import Resource, readable_change
from hvpa.core.gates.gates import MAX_STEP, MEASUREMENT
from hvpa.core.model import Event, ObservedState
from hvpa.core.report.remedies import advised, entered
from hvpa.core.report.summary import DecisionParts, blocked_text, rollout_text

PASSING = frozenset({MEASUREMENT, MAX_STEP})
"""Gates that follow a step, for a minute at most: no event."""
_SCALING = ("Ready", "HpaActive", "VpaActive")
_COMPARED = 2048
"""Characters of warnings by which it is told whether they stand in a condition's message, which has an end."""


def events_of(seen: ObservedState, decided: DecisionParts, status: HvpaStatus) -> tuple[Event, ...]:
    """An event for each change of what blocks, and for each condition that begins to need somebody to act. (Steps have
    theirs in `hvpa.core.report.step_events`.)"""
    if status is seen.status:
        return ()
    events = list(_block_events(seen, decided, status))
    if decided.rolled_back is not None:
        events.append(Event("Warning", "RolledBack", text.one_line(_rolled_back(decided.rolled_back))))
    events += _rollout_events(seen.status.rollout, status.rollout)
    if status.conditions is not seen.status.conditions:
        events += _condition_events(seen, status)
    return tuple(events)


def _rolled_back(record: RolledBack) -> str:
    """What was taken back, and why: `cpu 600m -> 1 of app: pod web-1: container app ran out of memory`."""
    changes = []
    for one in record.changes:
        resource: Resource = "cpu" if one.resource == "cpu" else "memory"
        failed, back = readable_change(resource, one.failed, one.previous)
        changes.append(f"{resource} {failed} -> {back} of {one.container}")
    return f"{', '.join(changes)}: {record.message}"


def _block_events(seen: ObservedState, decided: DecisionParts, status: HvpaStatus) -> Iterable[Event]:
    known = {
        (b.reason, b.axis, b.direction, b.container, b.resource) for b in seen.status.last_blocked_scaling
    }
    for entry in decided.blocked:
        if entry.reason in PASSING:
            continue
        if (entry.reason, entry.axis, entry.direction, entry.container, entry.resource) not in known:
            yield Event("Normal", "ScalingBlocked", blocked_text(entry))
    passed = any(reason not in PASSING for reason, *_ in known) and not decided.blocked
    if passed and _scales(seen, status):
        yield Event("Normal", "ScalingUnblocked", "nothing is held back any more")


def _rollout_events(before: HeldRollout | None, after: HeldRollout | None) -> Iterable[Event]:
    if after is not None and (before is None or before.reason != after.reason):
        yield Event("Normal", "RolloutHeld", rollout_text(after))
    if before is not None and after is None:
        yield Event("Normal", "RolloutResumed", "the workload replaces pods again")


def _scales(seen: ObservedState, status: HvpaStatus) -> bool:
    """Whether both axes are scaled as before: what is no longer wanted since scaling has stopped was not unblocked."""
    if list(entered(seen.status, status)):
        return False
    before = {one.type: one.status for one in seen.status.conditions}
    return all(
        one.status == "True" or before.get(one.type) != "True"
        for one in status.conditions
        if one.type in _SCALING
    )


def _condition_events(seen: ObservedState, status: HvpaStatus) -> Iterable[Event]:
    for entry in entered(seen.status, status):
        yield Event("Warning", entry.reason, advised(entry.reason, entry.message))
    told = "; ".join(seen.spec.warnings) if seen.spec is not None and seen.problem is None else ""
    ready_before = next((entry.message for entry in seen.status.conditions if entry.type == "Ready"), "")
    if told and text.one_line(told, _COMPARED).removesuffix("…") not in ready_before:
        yield Event("Warning", "SpecWarning", text.one_line(told))
