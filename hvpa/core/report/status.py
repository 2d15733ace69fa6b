"""The complete next status."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from operator import or_
from typing import Any, Final, get_args

from msgspec import structs

from hvpa.api.hvpa.actuation import StrategyType
from hvpa.api.hvpa.scaling import ScaleType
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import (
    Axes,
    BlockedScaling,
    ContainerTarget,
    HpaScalingStatus,
    HvpaStatus,
    LastError,
    LastScaling,
    PreviousSize,
    Recommended,
    Replacing,
    StatusCondition,
    StatusUpdatePolicy,
    VpaRecommendationStatus,
    VpaScalingStatus,
)
from hvpa.api.values import text
from hvpa.api.values.quantity import format_resource
from hvpa.core.actuation.desired import NOTHING, by_section, recorded, size_of_new_pods, template_has
from hvpa.core.actuation.undo import undo_of
from hvpa.core.gates.forecast import unused
from hvpa.core.gates.verdict import records_to_keep
from hvpa.core.model import Axis, Blocked, ObservedState, ScalableState, UnscalableState
from hvpa.core.report.conditions import conditions, refusals
from hvpa.core.report.fast import fast_status
from hvpa.core.report.parts import DecisionParts
from hvpa.core.report.saved import original_size, without_axes
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import RESIZES_AGAIN
from hvpa.core.values.weight import FULL, percent
from hvpa.core.workload.containers import present_resources, wire
from hvpa.core.workload.selector import selector_text

_LONGEST: Final = 1024
"""Maximum length of a stored message, in characters."""
WRITE_FAILED: Final = "WriteFailed"
"""A write got no answer, or an error."""
CRASHED: Final = "DecisionFailed"
"""The decision itself raised an error: a defect of the operator."""


def next_status(observation: ObservedState, clock: Clock, decided: DecisionParts) -> HvpaStatus:
    """Return the status as it will be after this decision's writes."""
    before, next_conditions = observation.status, conditions(observation, clock, decided)
    if isinstance(observation, UnscalableState):
        return _updated(
            before, {"conditions": next_conditions, "last_error": None, **_not_scaled(observation)}
        )
    spec, workload = observation.spec, observation.workload
    weight = decided.axes.weight.vertical_ppm if decided.axes.weight is not None else None
    hpa, vpa = spec.hpa, spec.vpa
    fields: dict[str, object] = {
        "replicas": workload.status.replicas,
        "target_selector": selector_text(workload.spec.selector),
        "hpa_scale_up_update_policy": _policy(hpa.scale_up),
        "hpa_scale_down_update_policy": _policy(hpa.scale_down),
        "vpa_scale_up_update_policy": _policy(vpa.scale_up),
        "vpa_scale_down_update_policy": _policy(vpa.scale_down),
        "hpa_weight": before.hpa_weight if weight is None else percent(FULL - weight),
        "vpa_weight": before.vpa_weight if weight is None else percent(weight),
        "override_scale_up_stabilization": bool(observation.pods.starving) or observation.legacy_override,
        "last_blocked_scaling": tuple([_blocked(entry) for entry in decided.blocked]),
        "last_scaling": _last_scaling(observation, clock, decided)
        if decided.axes.applied
        else before.last_scaling,
        "previous_size": _previous_size(observation, clock, decided),
        "original_size": original_size(observation, clock, decided.axes),
        "last_error": _refused(observation, decided),
        "conditions": next_conditions,
        "recommended": _recommended(observation, decided),
        "update_strategy": _strategy(spec, before),
        "replacing": _replacing(observation, clock, decided),
        "desired": decided.desired_size,
        "boosts": decided.boosts,
        "rollout": decided.rollout.held,
        "rolled_back": decided.rolled_back or before.rolled_back,
        "actuation": None if decided.resizing is None else decided.resizing.status,
        "canary_metrics": records_to_keep(
            before.canary_metrics, observation.canary_metrics, is_trial=bool(decided.judged_by)
        ),
        "forecast": decided.forecast,
        "fast_signal": fast_status(observation, clock),
        "axes": Axes(
            horizontal=decided.axes.horizontal or observation.horizontal,
            vertical=decided.axes.vertical or observation.vertical,
        ),
    }
    return _updated(before, fields)


def _strategy(spec: HvpaSpec, before: HvpaStatus) -> StrategyType | None:
    """Return the update strategy, if the spec does not name it or names another."""
    is_other = before.replacing is not None and not spec.strategy.in_place
    return spec.strategy.type if (spec.joint and spec.update_strategy.is_default) or is_other else None


def _replacing(observation: ScalableState, clock: Clock, decided: DecisionParts) -> Replacing | None:
    """Return since when a rollout replaces pods that could not be resized. It begins when the template has the size, so
    that a restart of the operator loses nothing."""
    size, resizing = decided.desired_size, decided.resizing
    if decided.falls_back and resizing is not None and resizing.stuck and size is not None:
        if not observation.spec.applies or not template_has(observation.target, size):
            return None
        return Replacing(since=clock.stamp(), message=text.one_line(resizing.stuck, _LONGEST))
    known = observation.status.replacing
    return None if known is None or clock.held_until(known.since, RESIZES_AGAIN) is None else known


def _not_scaled(observation: UnscalableState) -> dict[str, object]:
    """Return the fields for a target that is not scaled, without a recommendation. A deleted target has no replica
    count; nor has a shared target, since its changes trigger no reconcile."""
    target = observation.target
    is_shared = observation.problem.reason == "TargetShared"
    return {
        "replicas": None if target is None or is_shared else target.status.replicas,
        "target_selector": None if target is None else selector_text(target.spec.selector),
        "hpa_weight": None,
        "vpa_weight": None,
        "last_blocked_scaling": (),
        "recommended": None,
        "rollout": None,
        "fast_signal": None,
        "forecast": observation.status.forecast
        and unused(observation.status.forecast, "not used: HVPA scales nothing"),
    }


def _updated(before: HvpaStatus, fields: Mapping[str, object]) -> HvpaStatus:
    """Return the status with these fields; the same object if nothing changes."""
    changed = {name: value for name, value in fields.items() if getattr(before, name) != value}
    return before.model_copy(update=changed) if changed else before


def only_scaled(before: HvpaStatus, decided: HvpaStatus, axes: Collection[Axis]) -> HvpaStatus:
    """Return the decided status with a `lastScaling` of only these axes, because the step was carried out only on
    them."""
    last = decided.last_scaling
    undone: tuple[Axis, ...] = tuple([axis for axis in get_args(Axis) if axis not in axes])
    decided = _updated(decided, {"original_size": without_axes(before, decided, undone)})
    # `desired` keeps a size although no pod has it yet.
    if "vertical" not in axes and decided.desired is None:
        decided = _updated(decided, {"previous_size": before.previous_size})
    if last is None or not axes:
        return _updated(decided, {"last_scaling": before.last_scaling})
    fields: dict[str, object] = {}
    if "vertical" not in axes:
        fields["vpa_status"] = None
    if "horizontal" not in axes and last.hpa_status is not None:
        current = last.hpa_status.current_replicas
        fields["hpa_status"] = HpaScalingStatus(current_replicas=current, desired_replicas=current)
    return _updated(decided, {"last_scaling": last.model_copy(update=fields)})


def unapplied_status(before: HvpaStatus, decided: HvpaStatus, axes: Collection[Axis]) -> HvpaStatus:
    """Return the decided status if the change of the workload on these axes was not written: it keeps the previous
    record of them."""
    if decided.desired is not None:
        names = ("axes", "last_scaling", "previous_size", "original_size", "desired", "actuation")
        return _updated(decided, {name: getattr(before, name) for name in names})
    if not axes:
        return decided
    known, then = before.axes or Axes(), decided.axes or Axes()
    kept = Axes(
        horizontal=known.horizontal if "horizontal" in axes else then.horizontal,
        vertical=known.vertical if "vertical" in axes else then.vertical,
    )
    fields: dict[str, object] = {
        "axes": None if kept == Axes() else kept,
        "last_scaling": before.last_scaling,
        "original_size": without_axes(before, decided, axes),
    }
    if "vertical" in axes:
        fields["previous_size"] = before.previous_size
    return _updated(decided, fields)


def failed_status(
    before: HvpaStatus, status: HvpaStatus, operation: str, error: str, now: dt.datetime
) -> HvpaStatus:
    """Return the status with the error of a failed write: `lastError`, and `Ready=False`. An error that was already in
    the status `before` keeps its first time."""
    when, last = now.replace(microsecond=0), before.last_error
    if last is None or (last.description, last.last_operation) != (error, operation):
        last = LastError(description=error, last_update_time=when, last_operation=operation)
    known, old = _ready(status), _ready(before)
    since = old.last_transition_time if old is not None and old.status == "False" else when
    ready = StatusCondition(
        type="Ready",
        status="False",
        reason=CRASHED if operation == "Decide" else WRITE_FAILED,
        message=text.one_line(f"{operation}: {error}"),
        last_transition_time=since,
        observed_generation=None if known is None else known.observed_generation,
    )
    others = tuple([condition for condition in status.conditions if condition.type != "Ready"])
    return _updated(status, {"last_error": last, "conditions": (ready, *others)})


def _ready(status: HvpaStatus) -> StatusCondition | None:
    return next((condition for condition in status.conditions if condition.type == "Ready"), None)


def _refused(observation: ObservedState, decided: DecisionParts) -> LastError | None:
    """Return the error of a change that the API server refused and that is still wanted; the later error if both axes
    have one."""
    records = [record for _, record in refusals(observation, decided)]
    last = max(records, key=lambda record: record.time, default=None)
    if last is None:
        return None
    when = last.time.replace(microsecond=0)
    return LastError(description=last.message, last_update_time=when, last_operation="PatchWorkload")


def still_failing(status: HvpaStatus, before: HvpaStatus) -> HvpaStatus:
    """Return the next status before writes that failed last time are retried: the error and `Ready` stay."""
    ready = _ready(before)
    reported = tuple(
        [ready if ready and condition.type == "Ready" else condition for condition in status.conditions]
    )
    return _updated(status, {"last_error": before.last_error, "conditions": reported})


def _policy(direction: ScaleType) -> StatusUpdatePolicy:
    return StatusUpdatePolicy(update_mode=direction.update_policy.update_mode)


def _blocked(entry: Blocked) -> BlockedScaling:
    fields: dict[str, Any] = structs.asdict(entry)
    for name in ("current", "wanted"):
        value: int = fields[name]
        fields[name] = str(value) if entry.resource is None else format_resource(entry.resource, value)
    if entry.container is None or entry.resource is None:
        hpa = HpaScalingStatus(current_replicas=entry.current, desired_replicas=entry.wanted)
        return BlockedScaling(**fields, hpa_status=hpa)
    target = ContainerTarget(container_name=entry.container, target={entry.resource: fields["wanted"]})
    return BlockedScaling(**fields, vpa_status=_targets([target]))


def _targets(targets: Sequence[ContainerTarget]) -> VpaScalingStatus:
    return VpaScalingStatus(recommendation=VpaRecommendationStatus(container_recommendations=tuple(targets)))


def _last_scaling(observation: ScalableState, clock: Clock, decided: DecisionParts) -> LastScaling:
    targets = [
        ContainerTarget(container_name=name, target=wire(decided.axes.containers[name].requests))
        for name in sorted(decided.axes.changed)
    ]
    current = observation.workload.spec.replicas
    return LastScaling(
        last_scale_time=clock.stamp().replace(microsecond=0),
        hpa_status=HpaScalingStatus(current_replicas=current, desired_replicas=decided.axes.target),
        vpa_status=_targets(targets) if targets else None,
    )


def _previous_size(observation: ScalableState, clock: Clock, decided: DecisionParts) -> PreviousSize | None:
    """Return the size before a change of requests; the known size if this decision does not change them. During a
    trial of a size, it is that of the pods that do not try it."""
    axis, known, size = decided.axes.vertical, observation.status.previous_size, observation.status.desired
    is_step = any(changed == "vertical" for changed, _ in decided.axes.applied)
    if axis is None or not is_step:
        is_back = (
            undo_of(observation) is not None and decided.resizing is not None and decided.resizing.is_done
        )
        if known is None or known.restored is not None or not is_back:
            return known
        return known.model_copy(update={"restored": clock.stamp().replace(microsecond=0)})
    present = present_resources(observation.workload.spec.template.spec.containers)
    tried = {} if size is None or size.canary is None else size_of_new_pods(size)
    names = sorted({*decided.axes.changed, *tried} & present.keys())
    return PreviousSize(
        time=axis.last_scale_time,
        replicas=observation.workload.spec.replicas,
        containers=recorded(
            {name: by_section(or_, present[name], tried.get(name, NOTHING)) for name in names}
        ),
    )


def _recommended(observation: ObservedState, decided: DecisionParts) -> Recommended:
    """Return the values to set if no gate blocked them."""
    containers = recorded(decided.axes.recommended) if observation.vpa.configured else ()
    return Recommended(replicas=decided.axes.recommended_replicas, containers=containers)
