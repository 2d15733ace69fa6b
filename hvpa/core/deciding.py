"""`decide`: from an Observation to a Decision. It is pure: the same observation always gives the same decision."""

from __future__ import annotations

from collections.abc import Mapping, Set
from operator import attrgetter
from typing import Any

from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import RolledBack
from hvpa.api.objects.read_models import Hpa
from hvpa.core.actuation.desired import next_desired, scale_patch, sizes_of, template_patch
from hvpa.core.actuation.pods import creation_changes, resize_pods, template_held
from hvpa.core.actuation.refused import template_refusals
from hvpa.core.actuation.rollouts import next_step, with_record
from hvpa.core.actuation.trial import tried
from hvpa.core.additive import scale_horizontally, scale_vertically
from hvpa.core.axes.replicas import ReplicasResult, Way, go, without_past_goal
from hvpa.core.axes.steps import RequestsResult
from hvpa.core.gates.floors import floor_state
from hvpa.core.gates.forecast import next_record, raised_by_forecast
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import (
    LAST_APPLIED,
    Axis,
    Decision,
    Direction,
    Observation,
    ObservedState,
    ReplicaView,
    ResourceRequirements,
    ScalableObservation,
    ScalableState,
    WorkloadPatch,
)
from hvpa.core.recommenders.desired_replicas import (
    DesiredReplicas,
    is_relative,
    measured_replicas,
    metered,
    put_inside,
    switched_replicas,
    trusted_replicas,
)
from hvpa.core.recommenders.estimate import MICRO
from hvpa.core.report.events import STEP_EVENTS, events_of, step_events
from hvpa.core.report.status import next_status, only_scaled
from hvpa.core.report.summary import DecisionParts
from hvpa.core.state import annotation_text, without_pending
from hvpa.core.trajectory.step import JointScaling
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import Basis, Memo, remembered_while
from hvpa.core.values.weight import Axes, Bounds, Weight, weight_at
from hvpa.core.workload.containers import changes, present_resources
from hvpa.core.workload.rollout import progress_deadline, rollout_gaps, rollout_goes_on

_PARTS = attrgetter(*[name for name in ScalableState.__struct_fields__ if name != "hpa"])
"""All parts of the observed state except the HPA."""
_STANDING = attrgetter("configured", "problem", "changes", "in_charge", "read_as_is")
"""The parts of an HPA's standing that a decision depends on; `problem` is a new object in each observation."""


def decide(observation: Observation, memo: Memo | None = None) -> Decision:
    """Return the writes for one Hvpa, its complete next status, and when to decide again. `memo` has earlier results
    about the same Hvpa."""
    if observation.metadata.deletion_timestamp is not None:
        return Decision(status=observation.status)
    clock = Clock(observation.now, observation.changes_at, memo)
    desired, bounds = _desired(observation, clock)
    decision = _decided(clock, observation, desired, bounds)
    if decision.applied and isinstance(observation, ScalableObservation):
        events = (*step_events(observation, clock, decision, bounds), *decision.events)
        decision = structs.replace(decision, events=events)
    if clock.changes_at is None:
        return decision
    return structs.replace(decision, recheck_after=clock.changes_at - observation.now)


def as_far_as(observation: Observation, decision: Decision, axes: Set[Axis]) -> Decision:
    """Return the decision with its step on these axes only, because the step on the other axes was not carried out. Its
    Events and `status.lastScaling` then report the part that was."""
    applied = tuple([step for step in decision.applied if step[0] in axes])
    if applied == decision.applied or not isinstance(observation, ScalableObservation):
        return decision
    assert decision.replicas is not None
    view, containers = decision.replicas, decision.containers
    if "vertical" not in axes:
        containers = present_resources(observation.workload.spec.template.spec.containers)
    if "horizontal" not in axes:
        view = structs.replace(view, target=view.current)
    part = structs.replace(
        decision,
        status=only_scaled(observation.status, decision.status, {axis for axis, _ in applied}),
        replicas=view,
        containers=containers,
        applied=applied,
    )
    clock = Clock(observation.now)
    steps = step_events(observation, clock, part, _desired(observation, clock)[1]) if applied else ()
    return structs.replace(part, events=(*steps, *decision.events[STEP_EVENTS:]))


def _basis(observation: ObservedState, desired: DesiredReplicas, bounds: Bounds) -> Basis:
    return Basis(_PARTS(observation), (desired, bounds, _STANDING(observation.hpa)))


@remembered_while(_basis)
def _decided(clock: Clock, observation: ObservedState, desired: DesiredReplicas, bounds: Bounds) -> Decision:
    """Return the decision without `recheck_after`, which the clock gives."""
    decided, patch = DecisionParts(), None
    context: GateContext | None = None
    if isinstance(observation, ScalableState):
        context = _context(clock, observation, observation.spec)
        decided = _judge_axes(context, observation, desired, bounds)
        if observation.spec.forecast is not None:
            record = next_record(clock, observation, bounds, decided.needed, decided.scaled_to_zero)
            decided = structs.replace(decided, forecast=record)
        decided = _rolled(context, observation, decided)
        if observation.spec.strategy.in_place:
            decided = _fallen_back(context, observation, _actuated(context, observation, decided))
        patch = _patch(context, observation, decided)
    status, view = next_status(observation, clock, decided), None
    if observation.workload is not None:
        counts = (decided.desired.replicas, decided.target, decided.recommended_replicas)
        view = ReplicaView(observation.workload.spec.replicas, *counts)
    applies = observation.spec is not None and observation.spec.mode == "Apply"
    return Decision(
        status=status,
        workload_patch=patch,
        scale_replicas=decided.desired.scale_replicas,
        owned=(*observation.hpa.changes, *observation.vpa.changes),
        events=events_of(observation, decided, status),
        replicas=view,
        estimate=decided.desired.estimate,
        unknown=decided.desired.unknown,
        weight_ppm=None if decided.weight is None else decided.weight.vertical_ppm,
        containers=decided.containers,
        recommended=decided.recommended,
        blocked=decided.blocked,
        steps=decided.steps,
        applied=decided.applied,
        patched=_patched(observation, decided, patch),
        rules=() if context is None else tuple(context.rules.values()),
        rollout_gaps=() if context is None else context.rollout_gaps,
        settles_at=None if context is None else context.settles_at,
        joint=decided.joint,
        called_for=decided.called_for,
        resizes=decided.resizing.resizes if applies and decided.resizing is not None else (),
        creation_sizes=creation_changes(clock, observation, decided.desired_size, decided.resizing),
    )


def _rolled(context: GateContext, observation: ScalableState, decided: DecisionParts) -> DecisionParts:
    """Add the next step of a rollout that began earlier. A size that failed is rolled back, whatever else was
    decided."""
    step = next_step(context, observation)
    if step.rolled_back is None:
        return structs.replace(decided, rollout=step)
    without_sizes = _without_sizes(observation, decided, step.rolled_back)
    sizes = sizes_of(step.previous)
    containers = {
        name: _with_previous(resources, sizes.get(name)) for name, resources in decided.containers.items()
    }
    return structs.replace(
        without_sizes,
        rollout=step,
        rolled_back=step.rolled_back,
        containers=containers,
        changed=frozenset(sizes.keys() & containers.keys()),
    )


def _with_previous(
    resources: ResourceRequirements, previous: ResourceRequirements | None
) -> ResourceRequirements:
    if previous is None:
        return resources
    return ResourceRequirements(
        {**resources.requests, **previous.requests}, {**resources.limits, **previous.limits}
    )


def _actuated(context: GateContext, observation: ScalableState, decided: DecisionParts) -> DecisionParts:
    """Add the resizes of running pods (`InPlace`, `InPlaceOrRollout`)."""
    clock = context.clock
    size = next_desired(clock, observation, decided.target, decided.containers, decided.changed)
    rolled_back = decided.rolled_back
    if rolled_back is None:
        size, rolled_back = tried(context, observation, size)
        if rolled_back is not None:
            decided = _without_sizes(observation, decided, rolled_back)
    resizing = resize_pods(context, observation, size)
    return structs.replace(decided, desired_size=size, rolled_back=rolled_back, resizing=resizing)


def _fallen_back(context: GateContext, observation: ScalableState, decided: DecisionParts) -> DecisionParts:
    """Decide whether a rollout replaces pods that can't be resized, and add the changes that the API server refused."""
    size, resizing = decided.desired_size, decided.resizing
    assert size is not None and resizing is not None
    if context.spec.strategy.type != "InPlaceOrRollout" or not resizing.stuck:
        return decided
    if template_held(context, observation.target, sizes_of(size.containers)):
        return decided
    refused = template_refusals(context.clock, observation, size) if context.applies else ()
    blocked = (*decided.blocked, *refused)
    return structs.replace(decided, blocked=blocked, falls_back=not refused)


def _without_sizes(observation: ObservedState, decided: DecisionParts, failed: RolledBack) -> DecisionParts:
    """Return the decision without its sizes, since failed sizes are rolled back.

    A rollback is a step too, and a step up if it raises a size again. The record of the failed sizes' targets
    (`applied_from`) is dropped; otherwise another client would seem to have set the previous sizes.
    """
    keys = {(change.container, change.resource) for change in failed.changes}
    kept = tuple(
        source
        for source in observation.vertical.applied_from
        if (source.container, source.resource) not in keys
    )
    update: dict[str, object] = {"applied_from": kept, "last_scale_time": failed.time}
    if any(change.previous > change.failed for change in failed.changes):
        update["last_scale_up_time"] = failed.time
    return structs.replace(
        decided,
        vertical=observation.vertical.model_copy(update=update),
        applied=tuple(step for step in decided.applied if step[0] == "horizontal"),
    )


def _judge_axes(
    context: GateContext, observation: ScalableState, desired: DesiredReplicas, bounds: Bounds
) -> DecisionParts:
    """Decide both axes of a workload that exists."""
    spec, current = observation.spec, observation.workload.spec.replicas
    resources = present_resources(observation.workload.spec.template.spec.containers)
    switched = desired.switched
    if current == switched == 0 or (switched is None and _is_left_at_zero(observation, bounds)):
        return DecisionParts(desired, containers=resources, recommended=resources, scaled_to_zero=True)
    if switched is not None:
        way = Way(switched, switched, 0, 0, how="as KEDA scales to 0 and back")
        result = go(observation, context, desired, way, Bounds(switched, switched), starving=False)
        return _joined(observation, desired, None, result, None, resources)
    if (axis := without_past_goal(observation.horizontal, current, desired)) is not observation.horizontal:
        observation = structs.replace(observation, horizontal=axis)
    if spec.joint:
        return _judge_jointly(observation, context, desired, bounds)
    usable = observation.vpa.in_charge and observation.vpa.problem is None
    axes = Axes(observation.vpa.configured and not observation.hpa.configured, usable)
    wanted = None if desired.replicas is None else bounds.raised.clamp(desired.replicas)
    weight = weight_at(spec, current, wanted, bounds, axes)
    horizontal = vertical = None
    if observation.hpa.in_charge:
        starving = bool(observation.pods.starving) or observation.legacy_override
        horizontal = scale_horizontally(observation, context, desired, weight, bounds, starving)
    if usable:
        wants_out = desired.beyond_max and bounds.upper is not None and current >= bounds.upper
        vertical = scale_vertically(observation, context, weight, wants_out)
    decided = _joined(observation, desired, weight, horizontal, vertical, resources)
    measured = [] if desired.unmeasured else [ceil_div(metric.pods, MICRO) for metric in desired.measured]
    return structs.replace(decided, upper=bounds.upper, needed=max(measured, default=None))


def _is_left_at_zero(observation: ScalableState, bounds: Bounds) -> bool:
    """Return whether the target has 0 replicas and HVPA did not set them. If the HPA may scale to 0 (minReplicas 0) and
    HVPA followed it there, HVPA also follows it back."""
    if observation.workload.spec.replicas > 0:
        return False
    applied_from = observation.horizontal.applied_from
    return (
        bounds.lower > 0 or applied_from is None or applied_from.replicas > 0 or not observation.hpa.in_charge
    )


def _context(clock: Clock, observation: ScalableState, spec: HvpaSpec) -> GateContext:
    """Return the context that all gates share."""
    gaps = rollout_gaps(observation.workload)
    if (observation.rollout is not None and observation.rollout.held) or not gaps:
        return GateContext(clock, spec, is_settled=True, rollout_gaps=gaps)
    deadline = progress_deadline(observation)
    return GateContext(clock, spec, deadline is not None and clock.is_past(deadline), deadline, gaps)


def _judge_jointly(
    observation: ScalableState, context: GateContext, desired: DesiredReplicas, bounds: Bounds
) -> DecisionParts:
    """Decide both axes together."""
    spec = observation.spec
    scaling = JointScaling(observation, context, desired, bounds)
    result = scaling.result()
    decided = _joined(
        observation, desired, scaling.weight(), result.horizontal, result.vertical, scaling.resources
    )
    recommended = scaling.bounds.raised.clamp(result.view.wanted.replicas)
    return structs.replace(
        decided,
        recommended_replicas=recommended if result.horizontal is None else result.horizontal.recommended,
        vertical=scaling.known.kept(decided.vertical or observation.vertical),
        joint=result.view,
        called_for=result.called_for,
        needed=None if desired.unmeasured or spec.forecast is None else scaling.joint.needed,
    )


def _joined(
    observation: ScalableState,
    desired: DesiredReplicas,
    weight: Weight | None,
    horizontal: ReplicasResult | None,
    vertical: RequestsResult | None,
    resources: Mapping[str, ResourceRequirements],
) -> DecisionParts:
    """Combine the results of both axes. If the mode is not Apply, only the recommendation and the blocked changes are
    kept."""
    applies = observation.spec.mode == "Apply"
    current = observation.workload.spec.replicas
    results = [result for result in (horizontal, vertical) if result is not None]
    axis = observation.horizontal if horizontal is None or not applies else horizontal.axis
    if axis.correction != desired.correction:
        axis = axis.model_copy(update={"correction": desired.correction})
    steps = [] if weight is None else [f"weight: {weight.percent} percent vertical, {weight.why}"]
    parts = DecisionParts(
        desired=desired,
        weight=weight,
        target=current,
        recommended_replicas=current if horizontal is None else horizontal.recommended,
        containers=resources,
        recommended=resources if vertical is None else vertical.recommended,
        horizontal=axis,
        vertical=without_pending(observation.vertical) if vertical is None else vertical.axis,
        blocked=tuple([entry for result in results for entry in result.blocked]),
        steps=(*steps, *[text for result in results for text in result.steps]),
        young_until=None if vertical is None else vertical.young_until,
        lost_until={} if vertical is None else vertical.lost_until,
        without_request=() if vertical is None else vertical.without_request,
    )
    applied: list[tuple[Axis, Direction]] = []
    if applies and horizontal is not None:
        parts = structs.replace(parts, target=horizontal.target)
        applied += [("horizontal", horizontal.direction)] if horizontal.target != current else []
    if applies and vertical is not None:
        parts = structs.replace(parts, containers=vertical.containers, changed=vertical.changed)
        applied += [("vertical", direction) for direction in vertical.directions]
    return structs.replace(parts, applied=tuple(applied))


def _bounds(observation: ScalableObservation, clock: Clock) -> Bounds:
    """Return minReplicas and maxReplicas, with the floor that `spec.hpa.schedule` or `spec.forecast` sets now."""
    spec, bounds = observation.spec, _bounds_of_hpa(observation)
    if spec.hpa.schedule:
        floor = clock.answer(lambda now: ((state := floor_state(spec, now)), state.until))
        if floor.replicas:
            bounds = structs.replace(bounds, floor=floor.replicas, floor_by=floor.text())
    return bounds if spec.forecast is None else raised_by_forecast(clock, observation, bounds)


def _bounds_of_hpa(observation: ScalableObservation) -> Bounds:
    """Return minReplicas and maxReplicas: those of the template if HVPA creates the HPA, those of the HPA if the spec
    names one."""
    hpa, template = observation.spec.hpa, observation.spec.hpa.template.spec
    if hpa.name is not None and observation.hpa.object is not None:
        named = observation.hpa.object.spec
        least = max(1, named.min_replicas) if observation.spec.joint else named.min_replicas
        return Bounds(least, named.max_replicas)  # a path begins at 1 replica

    if hpa.name is not None or not hpa.deploy or template is None:
        return Bounds()
    return Bounds(template.min_replicas or 1, template.max_replicas)


def _desired(observation: Observation, clock: Clock) -> tuple[DesiredReplicas, Bounds]:
    """Return the HPA's desired replicas and its bounds. Without an HPA, or if the target has 0 replicas, it only
    returns the count to write to `spec.replicas`."""
    if not isinstance(observation, ScalableObservation):
        return DesiredReplicas(None), Bounds()
    bounds, hpa = _bounds(observation, clock), observation.hpa.object
    without = DesiredReplicas(
        None, correction=observation.horizontal.correction, problem=observation.hpa.problem
    )
    if not observation.hpa.in_charge:
        # KEDA creates the HPA that the spec names once it can read the scale, which fails without a count.
        is_missing = observation.spec.hpa.name is not None and observation.spec.replicas is None
        first = bounds.clamp(observation.workload.spec.replicas) if is_missing else None
        return structs.replace(without, scale_replicas=first), bounds
    if hpa is not None and observation.hpa.read_as_is is not None:
        return _with_metered(hpa, measured_replicas(hpa, observation, bounds, clock)), bounds
    if hpa is not None and (switched := switched_replicas(hpa, observation, bounds)) is not None:
        asked = switched or (0 if observation.workload.spec.replicas else None)
        return structs.replace(without, replicas=asked, switched=switched), bounds
    if hpa is None or _is_left_at_zero(observation, bounds):
        inside = put_inside(observation.spec.replicas, observation.workload.spec.replicas, bounds)
        return structs.replace(without, scale_replicas=inside), bounds
    return _with_metered(hpa, trusted_replicas(hpa, observation, bounds, clock)), bounds


def _with_metered(hpa: Hpa, desired: DesiredReplicas) -> DesiredReplicas:
    return structs.replace(desired, metered=metered(hpa), is_relative=is_relative(hpa))


def _patch(context: GateContext, observation: ScalableState, decided: DecisionParts) -> WorkloadPatch | None:
    """Return the write to the workload. If pods can't be resized, HVPA patches the template as soon as a change of
    requests is allowed and no other rollout is in progress."""
    size, resizing = decided.desired_size, decided.resizing
    if size is None or resizing is None:
        patch = _rollout_patch(observation, decided)
        applies = observation.spec.mode == "Apply"
        return with_record(context, observation, patch, decided.rollout) if applies else patch
    if observation.spec.mode != "Apply":
        return None
    step, clock = decided.rollout, context.clock
    is_due = step.rolled_back is not None or (
        decided.falls_back
        and (step.held is not None or not rollout_goes_on(observation.target, observation.resizable, clock))
    )
    patch = template_patch(observation.target, size) if is_due else None
    return with_record(
        context, observation, patch or scale_patch(observation.target, size.replicas), decided.rollout
    )


def _patched(
    observation: ObservedState, decided: DecisionParts, patch: WorkloadPatch | None
) -> tuple[Axis, ...]:
    """Return the axes that a patch of the workload changes; no axis if the patch is about a rollout that began
    earlier."""
    if patch is None or observation.target is None:
        return ()
    axes: dict[Axis, bool] = {axis: True for axis, _ in decided.applied}
    if decided.desired_size is not None:
        spec: Mapping[str, Any] = patch.body["spec"]  # type: ignore[assignment]
        axes = {
            "horizontal": spec.get("replicas", observation.target.spec.replicas)
            != observation.target.spec.replicas,
            "vertical": "template" in spec and decided.rollout.rolled_back is None,
        }
    return tuple([axis for axis, is_changed in axes.items() if is_changed])


def _rollout_patch(observation: ObservedState, decided: DecisionParts) -> WorkloadPatch | None:
    """Return one strategic merge patch for both axes, with the record of the step."""
    if decided.horizontal is None or decided.vertical is None or observation.workload is None:
        return None
    if not decided.applied and decided.rolled_back is None:
        return None
    workload, version = observation.workload, observation.workload.metadata.resource_version
    present = present_resources(workload.spec.template.spec.containers)
    spec: dict[str, object] = {}
    if decided.target != workload.spec.replicas:
        spec["replicas"] = decided.target
    containers = [
        {"name": name, "resources": changes(present[name], decided.containers[name])}
        for name in sorted(decided.changed)
    ]
    if containers:
        spec["template"] = {"spec": {"containers": containers}}
    annotations = {LAST_APPLIED: annotation_text(decided.horizontal, decided.vertical)}
    body = {"metadata": {"resourceVersion": version, "annotations": annotations}, "spec": spec}
    return WorkloadPatch(workload.kind, workload.metadata.name, version, body)
