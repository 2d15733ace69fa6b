"""`decide`: from an Observation to a Decision. It is pure: the same observation always gives the same decision."""

from __future__ import annotations

from collections.abc import Mapping, Set
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import RolledBack
from hvpa.api.objects.read_models import Hpa
from hvpa.core.actuation.desired import next_desired, scale_patch, sizes_of, template_patch
from hvpa.core.actuation.pod import present_sizes
from hvpa.core.actuation.pods import (
    Resizing,
    creation_changes,
    end_boosts,
    resize_pods,
    template_held,
)
from hvpa.core.actuation.refused import template_refusals
from hvpa.core.actuation.removal import pod_costs
from hvpa.core.actuation.replacing import replacement, with_write
from hvpa.core.actuation.rollouts import is_trial_after, next_step, with_record
from hvpa.core.actuation.startup import Boosts
from hvpa.core.actuation.trial import tried
from hvpa.core.actuation.undo import undo_of, undone
from hvpa.core.additive import scale_horizontally, scale_vertically
from hvpa.core.axes.replicas import ReplicasResult, Way, go, without_past_goal
from hvpa.core.axes.steps import RequestsResult
from hvpa.core.gates.fallback import raised_by_fallback
from hvpa.core.gates.floors import floor_state
from hvpa.core.gates.forecast import next_record, raised_by_forecast
from hvpa.core.gates.gates import GateContext
from hvpa.core.gates.ooms import raised_by_ooms
from hvpa.core.gates.verdict import rollback_metrics
from hvpa.core.model import (
    LAST_APPLIED,
    Axis,
    Decision,
    Direction,
    JointView,
    Observation,
    ObservedState,
    PodCost,
    ReplicaView,
    ResourceRequirements,
    ScalableObservation,
    ScalableState,
    WorkloadPatch,
)
from hvpa.core.recommenders.desired_replicas import (
    DesiredReplicas,
    is_of_memory_alone,
    is_relative,
    is_switching_off,
    measured_replicas,
    metered,
    put_inside,
    switched_replicas,
    trusted_replicas,
)
from hvpa.core.recommenders.estimate import MICRO
from hvpa.core.report.events import STEP_EVENTS, events_of, step_events
from hvpa.core.report.parts import AxesResult, DecisionParts
from hvpa.core.report.status import next_status, only_scaled
from hvpa.core.state import annotation_text, before_fast, restored, with_rescues, without_pending
from hvpa.core.trajectory.history import Remembered, first_seen
from hvpa.core.trajectory.step import JointScaling
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import Clock
from hvpa.core.values.lately import Demands
from hvpa.core.values.memo import Basis, Memo, remembered_while
from hvpa.core.values.weight import FULL, AvailableAxes, Bounds, EffectiveWeight, is_horizontal, weight_at
from hvpa.core.workload.containers import changes, present_resources
from hvpa.core.workload.pod_level import for_api
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
    """Return the decision without what the present instant adds: `recheck_after`, and the Events of a step."""
    parts, patch, view = DecisionParts(), None, None
    costs: tuple[PodCost, ...] = ()
    context: GateContext | None = None
    if isinstance(observation, ScalableState):
        context = _context(clock, observation, observation.spec)
        parts = _parts(context, observation, _judge_axes(context, observation, desired, bounds), bounds)
        patch = _patch(context, observation, parts)
        patch = None if patch is None else for_api(observation.target, patch)
        parts = structs.replace(parts, judged_by=_judged_by(observation, parts, patch))
        if patch is not None and "template" in patch.body["spec"] and parts.desired_size is not None:  # type: ignore[operator]
            generation = observation.target.metadata.generation
            size = with_write(parts.desired_size, generation, clock.stamp())
            parts = structs.replace(parts, desired_size=size)
        if context.applies and parts.desired_size is not None:
            costs = pod_costs(context, observation, parts.desired_size, patch)
    axes, resizing = parts.axes, parts.resizing
    status = next_status(observation, clock, parts)
    if observation.workload is not None:
        counts = (axes.desired.replicas, axes.target, axes.recommended_replicas)
        view = ReplicaView(observation.workload.spec.replicas, *counts)
    acts = undo_of(observation) is not None or (observation.spec is not None and observation.spec.applies)
    return Decision(
        status=status,
        workload_patch=patch,
        scale_replicas=axes.desired.scale_replicas,
        owned=(*observation.hpa.changes, *observation.vpa.changes),
        events=events_of(observation, parts, status),
        replicas=view,
        estimate=axes.desired.estimate,
        unknown=axes.desired.unknown,
        weight_ppm=None if axes.weight is None else axes.weight.vertical_ppm,
        containers=axes.containers,
        recommended=axes.recommended,
        blocked=parts.blocked,
        steps=axes.steps,
        reported=axes.reported,
        ended=axes.ended,
        applied=axes.applied,
        patched=_patched(observation, parts, patch),
        rules=() if context is None else tuple(context.rules.values()),
        rollout_gaps=() if context is None else context.rollout_gaps,
        settles_at=None if context is None else context.settles_at,
        joint=axes.joint,
        called_for=axes.called_for,
        resizes=parts.resizes if acts else (),
        costs=costs,
        creation_sizes=creation_changes(clock, observation, parts.desired_size, resizing),
        judged_by=parts.judged_by,
    )


def _judged_by(
    observation: ScalableState, parts: DecisionParts, patch: WorkloadPatch | None
) -> tuple[RollbackMetric, ...]:
    """Return the metrics that judge a trial that begins or goes on."""
    size = parts.desired_size
    in_place = size is not None and size.canary is not None
    is_trial = in_place or is_trial_after(observation, patch, parts.rollout)
    return rollback_metrics(observation.spec) if is_trial else ()


def _parts(
    context: GateContext, observation: ScalableState, axes: AxesResult, bounds: Bounds
) -> DecisionParts:
    """Return the results of both axes with their effect on rollouts and running pods. A size that failed is rolled
    back, whatever else was decided."""
    forecast = None
    if observation.spec.forecast is not None:
        forecast = next_record(context.clock, observation, bounds, axes.needed, axes.scaled_to_zero)
    rollout = next_step(context, observation)
    rolled_back = rollout.rolled_back
    if rolled_back is not None:
        axes = _without_sizes(observation, axes, rolled_back, sizes_of(rollout.previous))
    if not observation.spec.strategy.in_place:
        ends, boosts = end_boosts(context, observation)
        return DecisionParts(
            axes, axes.blocked, rollout, rolled_back, forecast=forecast, resizes=ends, boosts=boosts
        )
    size = next_desired(context.clock, observation, axes.target, axes.containers, axes.changed)
    back = None
    if (undo := undo_of(observation)) is not None:
        size, back = undone(context, observation, undo, size)
        axes = axes if back is None else _without_sizes(observation, axes, back)
        if back is not None and size.replicas > observation.workload.spec.replicas:
            horizontal = axes.horizontal or observation.horizontal
            axes = structs.replace(axes, horizontal=horizontal.model_copy(update={"applied_from": None}))
    elif rolled_back is None:
        size, rolled_back = tried(context, observation, size, axes.vertical)
        if rolled_back is not None:
            axes = _without_sizes(observation, axes, rolled_back)
    resizing = resize_pods(context, observation, size)
    if resizing.rescues and context.applies:
        vertical = with_rescues(axes.vertical or observation.vertical, resizing.rescues, size, context.clock)
        axes = structs.replace(axes, vertical=vertical)
    memory = replacement(context, observation, size, resizing, axes.vertical or observation.vertical)
    falls_back = memory.is_due or _may_fall_back(context, observation, size, resizing)
    refused = template_refusals(context.clock, observation, size) if falls_back and context.applies else ()
    return DecisionParts(
        axes=axes,
        blocked=(*axes.blocked, *refused, *memory.blocked),
        rollout=rollout,
        rolled_back=rolled_back,
        undone=back,
        desired_size=size,
        resizing=resizing,
        falls_back=falls_back and not refused,
        forecast=forecast,
        resizes=resizing.resizes,
        boosts=resizing.boosts,
    )


def _may_fall_back(
    context: GateContext, observation: ScalableState, size: DesiredSize, resizing: Resizing
) -> bool:
    """Return whether a rollout may replace pods that can't be resized."""
    if context.spec.strategy.type != "InPlaceOrRollout" or not resizing.stuck:
        return False
    return not (
        _lacks_only_fast_sizes(context, observation, size)
        or template_held(context, observation.target, sizes_of(size.containers))
    )


def _lacks_only_fast_sizes(context: GateContext, observation: ScalableState, size: DesiredSize) -> bool:
    """Return whether pods lack only requests that the fast signal set. A short load does not justify a rollout."""
    sizes = sizes_of(size.containers)
    boosts = Boosts.of(observation, sizes)
    lacked = [
        (name, resource, request)
        for pod in observation.resizable
        for name, have in boosts.without(pod, present_sizes(pod), context.clock).items()
        for resource, request in sizes.get(name, have).requests.items()
        if have.requests.get(resource) != request
    ]
    return bool(lacked) and all(
        before_fast(observation.vertical.fast_raises, *key) is not None for key in lacked
    )


def _without_sizes(
    observation: ObservedState,
    axes: AxesResult,
    failed: RolledBack,
    previous: Mapping[str, ResourceRequirements] | None = None,
) -> AxesResult:
    """Return the result without its sizes, since failed sizes are rolled back (to `previous`, if a rollout ends so).

    A rollback is a step too, and a step up if it raises a size again. The record of the failed sizes' targets
    (`applied_from`) is dropped; otherwise another client would seem to have set the previous sizes.
    """
    keys = {(change.container, change.resource) for change in failed.changes}
    kept = tuple(
        source
        for source in observation.vertical.applied_from
        if (source.container, source.resource) not in keys
    )
    update: dict[str, object] = {
        "applied_from": kept,
        "last_scale_time": failed.time,
        "fast_raises": restored(observation.vertical.fast_raises, failed.changes),
    }
    if any(change.previous > change.failed for change in failed.changes):
        update["last_scale_up_time"] = failed.time
    containers, changed = axes.containers, axes.changed
    if previous is not None:
        containers = {name: _restored(size, previous.get(name)) for name, size in containers.items()}
        changed = frozenset(previous.keys() & containers.keys())
    return structs.replace(
        axes,
        containers=containers,
        changed=changed,
        vertical=observation.vertical.model_copy(update=update),
        applied=tuple(step for step in axes.applied if step[0] == "horizontal"),
    )


def _restored(resources: ResourceRequirements, previous: ResourceRequirements | None) -> ResourceRequirements:
    if previous is None:
        return resources
    return ResourceRequirements(
        {**resources.requests, **previous.requests}, {**resources.limits, **previous.limits}
    )


def _judge_axes(
    context: GateContext, observation: ScalableState, desired: DesiredReplicas, bounds: Bounds
) -> AxesResult:
    """Decide both axes of a workload that exists."""
    spec, current = observation.spec, observation.workload.spec.replicas
    resources = present_resources(observation.workload.spec.template.spec.containers)
    switched = desired.switched
    if current == switched == 0 or (switched is None and _is_left_at_zero(observation, bounds)):
        return AxesResult(desired, containers=resources, recommended=resources, scaled_to_zero=True)
    if switched is not None:
        way = Way(switched, switched, 0, 0, how="as the HPA or KEDA scales to 0 and back")
        result = go(observation, context, desired, way, Bounds(switched, switched), starving=False)
        return _joined(observation, desired, _Solution(None, result, _usual_size(observation, context)))
    if (axis := without_past_goal(observation.horizontal, current, desired)) is not observation.horizontal:
        observation = structs.replace(observation, horizontal=axis)
    if spec.joint:
        return _judge_jointly(observation, context, desired, bounds)
    usable = observation.vpa.in_charge and observation.vpa.problem is None
    axes = AvailableAxes(observation.vpa.configured and not observation.hpa.configured, usable)
    wanted = None if desired.replicas is None else bounds.raised.clamp(desired.replicas)
    weight = weight_at(spec, current, wanted, bounds, axes)
    horizontal = vertical = None
    if observation.hpa.in_charge:
        starving = bool(observation.pods.starving) or observation.legacy_override
        horizontal = scale_horizontally(observation, context, desired, weight, bounds, starving)
    if usable:
        wants_out = desired.beyond_max and bounds.upper is not None and current >= bounds.upper
        vertical = scale_vertically(observation, context, weight, wants_out)
    measured = [] if desired.unmeasured else [ceil_div(metric.pods, MICRO) for metric in desired.measured]
    needed = max(measured, default=None)
    known = first_seen(observation, resources) if desired.of_memory_alone else None
    solution = _Solution(weight, horizontal, vertical, bounds.upper, needed, demand_record=known)
    return _joined(observation, desired, solution)


def _usual_size(observation: ScalableState, context: GateContext) -> RequestsResult | None:
    """Return the requests for pods that are switched on again: the VPA's recommendation, unless all weights are 0. The
    last pods had the size for the end of a load, and a change costs nothing while there are no pods."""
    vpa, has_pods = observation.vpa, observation.workload.spec.replicas > 0
    if has_pods or not vpa.in_charge or vpa.problem is not None:
        return None
    if is_horizontal(observation.spec, vertical_only=not observation.hpa.configured):
        return None
    return scale_vertically(observation, context, EffectiveWeight(FULL, "there are no pods"), wants_out=False)


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
) -> AxesResult:
    """Decide both axes together."""
    scaling = JointScaling(observation, context, desired, bounds)
    result = scaling.result()
    needed = None if desired.unmeasured or observation.spec.forecast is None else scaling.joint.needed
    solution = _Solution(
        weight=scaling.weight(),
        horizontal=result.horizontal,
        vertical=result.vertical,
        needed=needed,
        joint=result.view,
        called_for=result.called_for,
        wanted=scaling.bounds.raised.clamp(result.view.wanted.replicas),
        demand_record=scaling.known,
    )
    return _joined(observation, desired, solution)


class _Solution(NamedTuple):
    """The results of both axes, before the mode counts."""

    weight: EffectiveWeight | None
    horizontal: ReplicasResult | None
    vertical: RequestsResult | None
    upper: int | None = None
    """As in `AxesResult`; also the next fields."""
    needed: int | None = None
    joint: JointView | None = None
    called_for: Demands | None = None
    wanted: int | None = None
    """The recommended replicas if there is no horizontal result (None: the present ones)."""
    demand_record: Remembered | None = None
    """The record of demand to add to the vertical axis."""


def _joined(observation: ScalableState, desired: DesiredReplicas, solution: _Solution) -> AxesResult:
    """Combine the results of both axes. If the mode is not Apply, only the recommendation and the blocked changes are
    kept."""
    weight, horizontal, vertical = solution.weight, solution.horizontal, solution.vertical
    applies = observation.spec.applies
    current = observation.workload.spec.replicas
    resources = present_resources(observation.workload.spec.template.spec.containers)
    results = [result for result in (horizontal, vertical) if result is not None]
    wanted = solution.wanted if horizontal is None else horizontal.recommended
    scaled = horizontal if applies else None
    sized = vertical if applies else None
    axis = observation.horizontal if scaled is None else scaled.axis
    if axis.correction != desired.correction:
        axis = axis.model_copy(update={"correction": desired.correction})
    sizes = without_pending(observation.vertical) if vertical is None else vertical.axis
    applied: list[tuple[Axis, Direction]] = []
    if scaled is not None and scaled.target != current:
        applied.append(("horizontal", scaled.direction))
    if sized is not None:
        applied += [("vertical", direction) for direction in sized.directions]
    steps = [] if weight is None else [f"weight: {weight.percent} percent vertical, {weight.why}"]
    return AxesResult(
        desired=desired,
        weight=weight,
        target=current if scaled is None else scaled.target,
        recommended_replicas=current if wanted is None else wanted,
        containers=resources if sized is None else sized.containers,
        recommended=resources if vertical is None else vertical.recommended,
        changed=frozenset() if sized is None else sized.changed,
        horizontal=axis,
        vertical=sizes if solution.demand_record is None else solution.demand_record.kept(sizes),
        blocked=tuple([entry for result in results for entry in result.blocked]),
        steps=(*steps, *[text for result in results for text in result.steps]),
        reported=() if sized is None else sized.reported,
        ended=() if sized is None else sized.ended,
        applied=tuple(applied),
        young_until=None if vertical is None else vertical.young_until,
        lost_until={} if vertical is None else vertical.lost_until,
        without_request=() if vertical is None else vertical.without_request,
        joint=solution.joint,
        called_for=solution.called_for,
        upper=solution.upper,
        needed=solution.needed,
    )


def _bounds(observation: ScalableObservation, clock: Clock) -> Bounds:
    """Return minReplicas and maxReplicas, with the floor that `spec.hpa.schedule`, `spec.forecast`,
    `spec.hpa.fallback` or pods that ran out of memory set now."""
    spec, bounds = observation.spec, _bounds_of_hpa(observation)
    if spec.hpa.schedule:
        floor = clock.answer(lambda now: ((state := floor_state(spec, now)), state.until))
        if floor.replicas:
            bounds = structs.replace(bounds, floor=floor.replicas, floor_by=floor.text())
    bounds = raised_by_fallback(clock, observation, raised_by_forecast(clock, observation, bounds))
    return raised_by_ooms(observation, bounds)


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
    trusted = _with_metered(hpa, trusted_replicas(hpa, observation, bounds, clock))
    if is_switching_off(hpa, observation):
        trusted = structs.replace(trusted, scale_replicas=None)
    return trusted, bounds


def _with_metered(hpa: Hpa, desired: DesiredReplicas) -> DesiredReplicas:
    return structs.replace(
        desired, metered=metered(hpa), is_relative=is_relative(hpa), of_memory_alone=is_of_memory_alone(hpa)
    )


def _patch(context: GateContext, observation: ScalableState, parts: DecisionParts) -> WorkloadPatch | None:
    """Return the write to the workload. If pods can't be resized, HVPA patches the template as soon as a change of
    requests is allowed and no other rollout is in progress."""
    size, resizing = parts.desired_size, parts.resizing
    if size is None or resizing is None:
        patch = _rollout_patch(observation, parts)
        applies = observation.spec.applies
        return with_record(context, observation, patch, parts.rollout) if applies else patch
    if not context.applies and undo_of(observation) is None:
        return None
    step, clock = parts.rollout, context.clock
    is_due = step.rolled_back is not None or (
        parts.falls_back
        and (step.held is not None or not rollout_goes_on(observation.target, observation.resizable, clock))
    )
    patch = template_patch(observation.target, size) if is_due and context.applies else None
    return with_record(
        context, observation, patch or scale_patch(observation.target, size.replicas), parts.rollout
    )


def _patched(
    observation: ObservedState, parts: DecisionParts, patch: WorkloadPatch | None
) -> tuple[Axis, ...]:
    """Return the axes that a patch of the workload changes; no axis if the patch is about a rollout that began
    earlier."""
    if patch is None or observation.target is None:
        return ()
    axes: dict[Axis, bool] = {axis: True for axis, _ in parts.axes.applied}
    if parts.desired_size is not None:
        spec: Mapping[str, Any] = patch.body["spec"]  # type: ignore[assignment]
        axes = {
            "horizontal": spec.get("replicas", observation.target.spec.replicas)
            != observation.target.spec.replicas,
            "vertical": "template" in spec and parts.rollout.rolled_back is None,
        }
    return tuple([axis for axis, is_changed in axes.items() if is_changed])


def _rollout_patch(observation: ObservedState, parts: DecisionParts) -> WorkloadPatch | None:
    """Return one strategic merge patch for both axes, with the record of the step."""
    if parts.axes.horizontal is None or parts.axes.vertical is None or observation.workload is None:
        return None
    if not parts.axes.applied and parts.rolled_back is None:
        return None
    workload, version = observation.workload, observation.workload.metadata.resource_version
    present = present_resources(workload.spec.template.spec.containers)
    spec: dict[str, object] = {}
    if parts.axes.target != workload.spec.replicas:
        spec["replicas"] = parts.axes.target
    containers = [
        {"name": name, "resources": changes(present[name], parts.axes.containers[name])}
        for name in sorted(parts.axes.changed)
    ]
    if containers:
        spec["template"] = {"spec": {"containers": containers}}
    annotations = {LAST_APPLIED: annotation_text(parts.axes.horizontal, parts.axes.vertical)}
    body = {"metadata": {"resourceVersion": version, "annotations": annotations}, "spec": spec}
    return WorkloadPatch(workload.kind, workload.metadata.name, version, body)
