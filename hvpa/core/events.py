"""The events that a decision is worth: its steps, a change of what blocks, a new reason of a bad condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hvpa.api import text
from hvpa.api.status import HvpaStatus
from hvpa.core.gates import MEASUREMENT
from hvpa.core.judgement import Judgement, blocked_text, wire
from hvpa.core.model import Axis, Direction, Event, Scene

_EXPECTED = frozenset(
    {"NotConfigured", "NotReady", "HpaCreated", "VpaCreated", "HpaAwaited", "VpaAwaited", "NoMetrics"}
    | {"NoRecommendation", "NoPods"}
)
"""Reasons for an inactive axis that are part of a normal start, or told by another condition: no event."""
_TOLD = frozenset(
    {"StaleWish", "UnknownContainer", "MissingRequest", "PodLevelResources", "ScaledToZero", "Saturated"}
)
"""Reasons that are worth an event although the condition is as it should be."""
SCALED = "Scaled"
"""The reason of a step in more than one direction: on both axes, or up and down."""
_STEP_REASON: Mapping[tuple[Axis, Direction], str] = {
    ("horizontal", "up"): "ScaledOut",
    ("horizontal", "down"): "ScaledIn",
    ("vertical", "up"): "ScaledUp",
    ("vertical", "down"): "ScaledDown",
}

_COMPARED = 2048
"""Characters of warnings by which it is told whether they stand in a condition's message, which has an end."""


def events_of(seen: Scene, judged: Judgement, status: HvpaStatus) -> tuple[Event, ...]:
    """One event for a step, for each change of what blocks, and for each new reason of a bad condition."""
    if status is seen.status:
        return ()
    events = [*_step_events(seen, judged), *_block_events(seen, judged)]
    if status.conditions is not seen.status.conditions:
        events += _condition_events(seen, status)
    return tuple(events)


def _step_events(seen: Scene, judged: Judgement) -> Iterable[Event]:
    """One event for one patch."""
    if seen.workload is None or not judged.applied:
        return
    reason = _STEP_REASON[judged.applied[0]] if len(judged.applied) == 1 else SCALED
    changes = [f"{name}: {_requests(judged, name)}" for name in sorted(judged.changed)]
    if judged.target != seen.workload.spec.replicas:
        changes.insert(0, f"replicas {seen.workload.spec.replicas} to {judged.target}")
    yield Event("Normal", reason, text.told("; ".join(changes)))


def _requests(judged: Judgement, container: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in wire(judged.containers[container].requests).items())


def _block_events(seen: Scene, judged: Judgement) -> Iterable[Event]:
    known = {
        (b.reason, b.axis, b.direction, b.container, b.resource) for b in seen.status.last_blocked_scaling
    }
    for entry in judged.blocked:
        if entry.reason == MEASUREMENT:
            continue  # what follows each step, for a minute
        if (entry.reason, entry.axis, entry.direction, entry.container, entry.resource) not in known:
            yield Event("Normal", "ScalingBlocked", blocked_text(entry))
    if any(reason != MEASUREMENT for reason, *_ in known) and not judged.blocked:
        yield Event("Normal", "ScalingUnblocked", "nothing is held back any more")


def _condition_events(seen: Scene, status: HvpaStatus) -> Iterable[Event]:
    before = {entry.type: entry.reason for entry in seen.status.conditions}
    for entry in status.conditions:
        bad = entry.status == ("True" if entry.type in ("Contested", "Paused") else "False")
        if entry.type == "ScalingBlocked" or before.get(entry.type) == entry.reason:
            continue
        if (bad and entry.reason not in _EXPECTED) or entry.reason in _TOLD:
            yield Event("Warning", entry.reason, entry.message)
    told = "; ".join(seen.spec.warnings) if seen.spec is not None and seen.problem is None else ""
    ready_before = next((entry.message for entry in seen.status.conditions if entry.type == "Ready"), "")
    if told and text.told(told, _COMPARED).removesuffix("…") not in ready_before:
        yield Event("Warning", "SpecWarning", text.told(told))
