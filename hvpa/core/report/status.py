"""Telling what was decided: the complete next status."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from hvpa.api.hvpa.scaling import ScaleType
from hvpa.api.hvpa.status import (
    Axes,
    BlockedScaling,
    ContainerTarget,
    HorizontalAxis,
    HpaScalingStatus,
    HvpaStatus,
    LastError,
    LastScaling,
    Recommended,
    RecommendedContainer,
    StatusCondition,
    StatusUpdatePolicy,
    VerticalAxis,
    VpaRecommendationStatus,
    VpaScalingStatus,
)
from hvpa.api.values import text
from hvpa.core.model import Axis, Blocked, ObservedState, ResourceRequirements
from hvpa.core.report.conditions import conditions
from hvpa.core.report.readiness import refusals
from hvpa.core.report.summary import DecisionParts, wire, written
from hvpa.core.values.clock import Clock
from hvpa.core.values.weight import FULL, percent
from hvpa.core.workload.selector import selector_text

WRITE_FAILED: Final = "WriteFailed"
"""A write got no answer, or an error."""
CRASHED: Final = "DecisionFailed"
"""The decision itself raised an error: a defect of the operator."""


def next_status(seen: ObservedState, clock: Clock, decided: DecisionParts) -> HvpaStatus:
    """The status as it is once this decision's writes are done."""
    before, spec, workload = seen.status, seen.spec, seen.workload
    told = conditions(seen, clock, decided)
    if spec is None or workload is None:
        return _updated(before, {"conditions": told, "last_error": None, **_not_scaled(seen)})
    weight = decided.weight.vertical_ppm if decided.weight is not None else None
    hpa, vpa = spec.hpa, spec.vpa
    fields: dict[str, object] = {
        "replicas": workload.status.replicas,
        "target_selector": selector_text(workload.spec.selector),
        "hpa_scale_up_update_policy": _policy(before.hpa_scale_up_update_policy, hpa.scale_up),
        "hpa_scale_down_update_policy": _policy(before.hpa_scale_down_update_policy, hpa.scale_down),
        "vpa_scale_up_update_policy": _policy(before.vpa_scale_up_update_policy, vpa.scale_up),
        "vpa_scale_down_update_policy": _policy(before.vpa_scale_down_update_policy, vpa.scale_down),
        "hpa_weight": before.hpa_weight if weight is None else percent(FULL - weight),
        "vpa_weight": before.vpa_weight if weight is None else percent(weight),
        "override_scale_up_stabilization": bool(seen.pods.starving) or seen.legacy_override,
        "last_blocked_scaling": tuple([_blocked(entry) for entry in decided.blocked]),
        "last_scaling": _last_scaling(seen, clock, decided) if decided.applied else before.last_scaling,
        "last_error": _refused(seen, decided),
        "conditions": told,
        "recommended": _recommended(seen, decided),
        "axes": _axes(before.axes, decided.horizontal or seen.horizontal, decided.vertical or seen.vertical),
    }
    return _updated(before, fields)


def _not_scaled(seen: ObservedState) -> dict[str, object]:
    """The fields of a target that is not scaled: nothing is recommended for it, and of one that is gone no number is
    left; nor of one that is shared, since its changes wake nobody."""
    target = seen.target
    is_shared = seen.problem is not None and seen.problem.reason == "TargetShared"
    return {
        "replicas": None if target is None or is_shared else target.status.replicas,
        "target_selector": None if target is None else selector_text(target.spec.selector),
        "hpa_weight": None,
        "vpa_weight": None,
        "last_blocked_scaling": (),
        "recommended": None,
    }


def _updated(before: HvpaStatus, fields: Mapping[str, object]) -> HvpaStatus:
    """The status with these fields; the very same one where they are what they were."""
    changed = {}
    for name, value in fields.items():
        old = getattr(before, name)
        if old is not value and old != value:  # models compare slowly, and most often they are one
            changed[name] = value
    return before.model_copy(update=changed) if changed else before


def _axes(before: Axes | None, horizontal: HorizontalAxis, vertical: VerticalAxis) -> Axes:
    if before is not None:
        same_horizontal = before.horizontal is horizontal or before.horizontal == horizontal
        if same_horizontal and (before.vertical is vertical or before.vertical == vertical):
            return before
    return Axes(horizontal=horizontal, vertical=vertical)


def unapplied_status(before: HvpaStatus, decided: HvpaStatus, axes: Collection[Axis]) -> HvpaStatus:
    """The status that was decided on, where the change of the workload on these axes was not written: all but what
    would be remembered of that change."""
    if not axes:
        return decided
    known, then = before.axes or Axes(), decided.axes or Axes()
    kept = Axes(
        horizontal=known.horizontal if "horizontal" in axes else then.horizontal,
        vertical=known.vertical if "vertical" in axes else then.vertical,
    )
    fields = {"axes": None if kept == Axes() else kept, "last_scaling": before.last_scaling}
    return _updated(decided, fields)


def failed_status(
    before: HvpaStatus, status: HvpaStatus, operation: str, error: str, now: dt.datetime
) -> HvpaStatus:
    """The status with the error of a write that failed on top: `lastError`, and `Ready=False`. The error that stands in
    the status `before` keeps its first time."""
    when, last = now.replace(microsecond=0), before.last_error
    if last is None or (last.description, last.last_operation) != (error, operation):
        last = LastError(description=error, last_update_time=when, last_operation=operation)
    known, old = _ready(status), _ready(before)
    is_old = old is not None and old.status == "False"
    ready = StatusCondition(
        type="Ready",
        status="False",
        reason=CRASHED if operation == "Decide" else WRITE_FAILED,
        message=text.one_line(f"{operation}: {error}"),
        last_transition_time=old.last_transition_time if old is not None and is_old else when,
        observed_generation=None if known is None else known.observed_generation,
    )
    others = tuple([one for one in status.conditions if one.type != "Ready"])
    return _updated(status, {"last_error": last, "conditions": (ready, *others)})


def _ready(status: HvpaStatus) -> StatusCondition | None:
    return next((one for one in status.conditions if one.type == "Ready"), None)


def _refused(seen: ObservedState, decided: DecisionParts) -> LastError | None:
    """The error of a change that the API server refused and that is still wanted: of both axes, the later one."""
    found = [record for _, record in refusals(seen, decided)]
    if not found:
        return None
    last = max(found, key=lambda record: record.time)
    when = last.time.replace(microsecond=0)
    return LastError(description=last.message, last_update_time=when, last_operation="PatchWorkload")


def still_failing(status: HvpaStatus, before: HvpaStatus) -> HvpaStatus:
    """The next status while writes are to come that failed before: the error and `Ready` stay as they are reported."""
    ready = _ready(before)
    reported = tuple([ready if ready and one.type == "Ready" else one for one in status.conditions])
    return _updated(status, {"last_error": before.last_error, "conditions": reported})


def _policy(before: StatusUpdatePolicy | None, direction: ScaleType) -> StatusUpdatePolicy:
    mode = direction.update_policy.update_mode
    return (
        before if before is not None and before.update_mode == mode else StatusUpdatePolicy(update_mode=mode)
    )


def _blocked(entry: Blocked) -> BlockedScaling:
    horizontal = entry.axis == "horizontal"
    recommendation = None
    if not horizontal and entry.container is not None and entry.resource is not None:
        target = ContainerTarget(
            container_name=entry.container, target={entry.resource: written(entry, entry.wanted)}
        )
        recommendation = VpaScalingStatus(
            recommendation=VpaRecommendationStatus(container_recommendations=(target,))
        )
    return BlockedScaling(
        reason=entry.reason,
        axis=entry.axis,
        direction=entry.direction,
        container=entry.container,
        resource=entry.resource,
        current=written(entry, entry.current),
        wanted=written(entry, entry.wanted),
        until=entry.until,
        hpa_status=HpaScalingStatus(current_replicas=entry.current, desired_replicas=entry.wanted)
        if horizontal
        else None,
        vpa_status=recommendation,
    )


def _last_scaling(seen: ObservedState, clock: Clock, decided: DecisionParts) -> LastScaling:
    assert seen.workload is not None
    targets = tuple(
        ContainerTarget(container_name=name, target=wire(decided.containers[name].requests))
        for name in sorted(decided.changed)
    )
    return LastScaling(
        last_scale_time=clock.stamp().replace(microsecond=0),
        hpa_status=HpaScalingStatus(
            current_replicas=seen.workload.spec.replicas, desired_replicas=decided.target
        ),
        vpa_status=VpaScalingStatus(recommendation=VpaRecommendationStatus(container_recommendations=targets))
        if targets
        else None,
    )


def _recommended(seen: ObservedState, decided: DecisionParts) -> Recommended:
    """What would be set if nothing were blocked; of what was told before, what still holds is the same object."""
    assert seen.workload is not None
    before = seen.status.recommended or Recommended()
    known = {one.name: one for one in before.containers}
    containers: Iterable[tuple[str, ResourceRequirements]] = (
        decided.recommended.items() if seen.vpa.configured else ()
    )
    told = tuple([_container(known.get(name), name, one) for name, one in containers])
    current = seen.workload.spec.replicas
    replicas = current if decided.recommended_replicas is None else decided.recommended_replicas
    if replicas == before.replicas and told == before.containers:
        return before
    return Recommended(replicas=replicas, containers=told)


def _container(
    before: RecommendedContainer | None, name: str, one: ResourceRequirements
) -> RecommendedContainer:
    requests, limits = wire(one.requests), wire(one.limits)
    if before is not None and before.requests == requests and before.limits == limits:
        return before
    return RecommendedContainer(name=name, requests=requests, limits=limits)
