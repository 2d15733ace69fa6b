"""The events of a decision: a step with its changes and causes (on the Hvpa and on its workload), a change that is
blocked or no longer blocked, and a condition that needs action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hvpa.api.hvpa.progress import HeldRollout
from hvpa.api.hvpa.status import HvpaStatus, RolledBack
from hvpa.api.values import text
from hvpa.api.values.quantity import RESOURCES, Resource, readable_change, readable_resource
from hvpa.core.gates.approval import NONE, approved
from hvpa.core.gates.gates import MAX_STEP, MEASUREMENT
from hvpa.core.model import (
    Axis,
    Blocked,
    Decision,
    Direction,
    Event,
    Involved,
    JointView,
    ObservedState,
    ReplicaView,
    ScalableObservation,
)
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.estimate import estimate_replicas, leading_metric, readings_of
from hvpa.core.report.parts import DecisionParts
from hvpa.core.report.remedies import advised, entered
from hvpa.core.report.summary import blocked_text, newly_blocked, rollout_text
from hvpa.core.values.clock import Clock
from hvpa.core.values.weight import Bounds, percent
from hvpa.core.workload.containers import amount, present_resources, recommendations

PASSING = frozenset({MEASUREMENT, MAX_STEP})
"""Gates that follow a step for at most a minute: no event."""
SCALED = "Scaled"
"""Reason of a step in more than one direction: on both axes, or up and down."""
_STEP_REASON: Mapping[tuple[Axis, Direction], str] = {
    ("horizontal", "up"): "ScaledOut",
    ("horizontal", "down"): "ScaledIn",
    ("vertical", "up"): "ScaledUp",
    ("vertical", "down"): "ScaledDown",
}
STEP_EVENTS = 2
"""Number of events at the start of a step: on the Hvpa and on its workload."""
_SCALING = ("Ready", "HpaActive", "VpaActive")
_COMPARED = 2048
"""Maximum length of the warnings to search in a condition's message, whose length is limited."""
Changed = tuple[str, Resource, int | None, int]
"""Container, resource, and the request before (None: there was none) and after."""


def events_of(observation: ObservedState, decided: DecisionParts, status: HvpaStatus) -> tuple[Event, ...]:
    """Return an event for each change of a block, and for each condition that begins to need action."""
    if status is observation.status:
        return ()
    events = list(_block_events(observation, decided, status))
    if decided.rolled_back is not None:
        events.append(Event("Warning", "RolledBack", text.one_line(_rolled_back(decided.rolled_back))))
    if decided.undone is not None:
        events.append(Event("Normal", "Undone", text.one_line(_rolled_back(decided.undone))))
    events += _rollout_events(observation.status.rollout, status.rollout)
    if status.conditions is not observation.status.conditions:
        events += _condition_events(observation, status)
    return tuple(events)


def _rolled_back(record: RolledBack) -> str:
    """Return the rolled-back changes and their reason: `cpu 600m -> 1 of app: pod web-1: container app ran out of
    memory`."""
    changes = []
    for change in record.changes:
        resource: Resource = "cpu" if change.resource == "cpu" else "memory"
        failed, back = readable_change(resource, change.failed, change.previous)
        changes.append(f"{resource} {failed} -> {back} of {change.container}")
    return f"{', '.join(changes)}: {record.message}"


def _block_events(observation: ObservedState, decided: DecisionParts, status: HvpaStatus) -> Iterator[Event]:
    for blocked in newly_blocked(observation.status, decided.blocked):
        if blocked.reason not in PASSING:
            yield Event("Normal", "ScalingBlocked", blocked_text(blocked))
    was_blocked = any(blocked.reason not in PASSING for blocked in observation.status.last_blocked_scaling)
    if was_blocked and not decided.blocked and _scales(observation, status):
        yield Event("Normal", "ScalingUnblocked", "no change is held back any more")


def _rollout_events(before: HeldRollout | None, after: HeldRollout | None) -> Iterator[Event]:
    if after is not None and (before is None or before.reason != after.reason):
        yield Event("Normal", "RolloutHeld", rollout_text(after))
    if before is not None and after is None:
        yield Event("Normal", "RolloutResumed", "the workload replaces pods again")


def _scales(observation: ObservedState, status: HvpaStatus) -> bool:
    """Return whether both axes are scaled as before. If scaling has stopped, a change that is no longer wanted was not
    unblocked."""
    held = {condition.type for condition in observation.status.conditions if condition.status == "True"}
    lost = {condition.type for condition in status.conditions if condition.status != "True"}
    return not list(entered(observation.status, status)) and held.isdisjoint(lost.intersection(_SCALING))


def _condition_events(observation: ObservedState, status: HvpaStatus) -> Iterator[Event]:
    for entry in entered(observation.status, status):
        yield Event(
            "Warning",
            entry.reason,
            advised(entry.reason, entry.message, observation.metadata, observation.spec),
        )
    warnings = (
        "; ".join(observation.spec.warnings)
        if observation.spec is not None and observation.problem is None
        else ""
    )
    ready_before = next(
        (entry.message for entry in observation.status.conditions if entry.type == "Ready"), ""
    )
    if warnings and text.one_line(warnings, _COMPARED).removesuffix("…") not in ready_before:
        yield Event("Warning", "SpecWarning", text.one_line(warnings))


# --- steps -----------------------------------------------------------------------------------------------------------
def step_events(
    observation: ScalableObservation, clock: Clock, decision: Decision, bounds: Bounds
) -> tuple[Event, ...]:
    """Return the events of a decision with a step: on the Hvpa and on its workload."""
    reason = _STEP_REASON[decision.applied[0]] if len(decision.applied) == 1 else SCALED
    message = text.one_line(
        "; ".join((_changes_text(observation, decision), *_causes(observation, clock, decision, bounds)))
    )
    workload, meta = observation.workload, observation.workload.metadata
    involved = Involved(workload.api_version, workload.kind, meta.name, meta.uid, meta.resource_version)
    return (
        Event("Normal", reason, message),
        Event("Normal", reason, text.one_line(f"Hvpa {observation.metadata.name}: {message}"), involved),
    )


def _changes_text(observation: ScalableObservation, decision: Decision) -> str:
    """Return the changes of a decision: `replicas 3 -> 5, cpu 200m -> 300m of app`."""
    view, parts = decision.replicas, []
    if view is not None and view.current != view.target:
        parts.append(f"replicas {view.current} -> {view.target}")
    by_container: dict[str, list[str]] = {}
    for container, resource, before, after in _changed_requests(observation, decision):
        old, new = "none", readable_resource(resource, after)
        if before is not None:
            old, new = readable_change(resource, before, after)
        by_container.setdefault(container, []).append(f"{resource} {old} -> {new}")
    parts += [f"{' and '.join(changes)} of {container}" for container, changes in by_container.items()]
    return ", ".join(parts)


def _changed_requests(observation: ScalableObservation, decision: Decision) -> Iterator[Changed]:
    """Yield the requests that a decision changes."""
    for container, now in present_resources(observation.workload.spec.template.spec.containers).items():
        after = decision.containers[container].requests if container in decision.containers else {}
        for resource in RESOURCES:
            if resource in after and after[resource] != now.requests.get(resource):
                yield container, resource, now.requests.get(resource), after[resource]


def _causes(
    observation: ScalableObservation, clock: Clock, decision: Decision, bounds: Bounds
) -> Iterator[str]:
    axes = {axis for axis, _ in decision.applied}
    if "horizontal" in axes:
        yield from _of_replicas(observation, clock, decision, bounds)
    if "vertical" in axes:
        yield from _of_requests(observation, clock, decision)
    if decision.joint is None and decision.weight_ppm is not None:
        yield f"vpaWeight {percent(decision.weight_ppm)}"


def _of_replicas(
    observation: ScalableObservation, clock: Clock, decision: Decision, bounds: Bounds
) -> Iterator[str]:
    view, hpa = decision.replicas, observation.hpa.object
    assert view is not None
    if not bounds.contains(view.current):
        last = "" if bounds.upper is None else f" and maxReplicas {bounds.upper}"
        yield f"{view.current} is outside minReplicas {bounds.lower}{last}"
    raised = bounds.raised
    if raised.lower > bounds.lower and view.target == raised.lower:
        yield f"at least {raised.lower} {bounds.floor_by}"
    if view.current == 0 and view.hpa is not None:
        yield f"HPA: using {view.hpa}"  # it divides by no pods, so its averages are no numbers
        return
    readings = () if hpa is None or view.hpa is None else readings_of(observation, hpa, clock)
    if hpa is not None and estimate_replicas(observation, hpa, readings, clock) is not None:
        metric, value = leading_metric(observation, hpa, readings, clock)
        used = "" if decision.joint is not None else f", using {view.hpa}"
        yield f"HPA: {metric} at {value} % of its target{used}"
    if decision.joint is not None:
        yield from _of_path(view, decision.joint, decision.blocked, raised)


def _of_path(
    view: ReplicaView, joint: JointView, blocked: Iterable[Blocked], bounds: Bounds
) -> Iterator[str]:
    """Yield the reasons for the replicas of a joint step. Example: 6 larger pods would be enough, but MinChange holds
    larger requests back, so 9 pods serve the same demand: `cpu needs 6 replicas; 9 of the current size, as
    larger requests are held by MinChange`."""
    wanted = bounds.clamp(joint.wanted.replicas)
    yield joint.because
    if view.target > wanted:
        held = sorted(
            {block.reason for block in blocked if (block.axis, block.direction) == ("vertical", "up")}
        )
        why = (
            f"because larger requests are held by {text.names(held)}"
            if held
            else "until all pods have the new size"
        )
        yield f"{view.target} of the current size, {why}"
    elif view.target < wanted:
        yield f"HVPA reaches {wanted} in several steps"


def _of_requests(observation: ScalableObservation, clock: Clock, decision: Decision) -> Iterator[str]:
    changes = list(_changed_requests(observation, decision))
    changed = [ResourceKey(name, resource) for name, resource, *_ in changes]
    spec = observation.spec
    approval = approved(observation.metadata.annotations) if spec.mode == "Review" else NONE
    if approval.by and any(
        approval.held_until(clock, key, before or 0, after, spec.review.margin) is None
        for key, (*_, before, after) in zip(changed, changes, strict=True)
    ):
        yield f"approved by {approval.by}"
    starving = sorted(
        {key.container for key in changed if key.resource == "memory"} & set(observation.pods.starving)
    )
    if starving:
        yield f"out of memory: {text.names(starving)}"
    yield from decision.reported
    yield from decision.ended
    items = () if decision.joint is None else decision.joint.items
    usual = {item.key: item.usual for item in items if item.usual is not None}
    targets_of_vpa = {} if observation.vpa.object is None else recommendations(observation.vpa.object)
    targets = {
        key: amount(targets_of_vpa[key.container].target, key.resource)
        for key in changed
        if key.container in targets_of_vpa and key not in usual
    }
    for what, known in (("usual demand of all pods", usual), ("VPA", targets)):
        amounts = [
            f"{key.resource} {readable_resource(key.resource, value)} of {key.container}"
            for key in changed
            if (value := known.get(key)) is not None
        ]
        if amounts:
            yield f"{what}: {', '.join(amounts)}"
