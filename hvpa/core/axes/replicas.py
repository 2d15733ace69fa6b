"""The replicas of a step, for both strategies: limited by `maxStep`, bounds and gates (DESIGN 6)."""

from __future__ import annotations

import datetime as dt

from msgspec import Struct, structs

from hvpa.api.hvpa.status import AppliedReplicas, HorizontalAxis
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.backoff import Contest, judge_contest, refused_until
from hvpa.core.gates.gates import (
    CONTESTED,
    MAX_STEP,
    NO_CLOCK,
    OUTSIDE_BOUNDS,
    STABILIZATION_WINDOW,
    Change,
    GateContext,
    Hold,
    first_hold,
)
from hvpa.core.model import Blocked, Direction, ObservedState, ScalableState, Unknown
from hvpa.core.recommenders.desired_replicas import DesiredReplicas, last_recommended
from hvpa.core.rules import GateFigures, Wait
from hvpa.core.state import step_time
from hvpa.core.values.clock import after
from hvpa.core.values.tuning import SETTLING, STEP_PERIOD
from hvpa.core.values.weight import Bounds

_STEP = Wait(STEP_PERIOD).figures


class ReplicasResult(Struct, frozen=True):
    """The result of a decision on the replica count."""

    current: int
    target: int
    """The count that HVPA applies now."""
    recommended: int
    """The count without any gate."""
    axis: HorizontalAxis
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def direction(self) -> Direction:
        """Direction of the change."""
        return _direction(self.current, self.target)


def scale_to(
    observation: ScalableState,
    context: GateContext,
    desired: DesiredReplicas,
    goal: int,
    bounds: Bounds,
    starving: bool,
) -> ReplicasResult:
    """Decides on the replica count if the count that serves the demand (`goal`) is known."""
    is_begun = begun(observation.horizontal, observation.workload.spec.replicas)
    way = Way(goal, goal, 0, 0, is_begun, how="needed by the demand")
    return go(observation, context, desired, way, bounds, starving)


def as_recommended_last(
    observation: ScalableState,
    context: GateContext,
    desired: DesiredReplicas,
    unknown: Unknown,
    bounds: Bounds,
    starving: bool,
) -> ReplicasResult:
    """Decides on the replica count while the demand is unknown. The last recommendation still counts, and a change
    towards it waits for the measurement, up as well as down. If another client removed replicas that HVPA had set, HVPA
    restores them at once, as usual (docs/decisions/0005)."""
    current, last = observation.workload.spec.replicas, bounds.clamp(last_recommended(observation))
    goal = restored(observation, last)
    measured_at = None if goal else unknown.until
    goal = goal or last
    how, is_begun = f"recommended last, because {unknown.why}", begun(observation.horizontal, current)
    way = Way(goal, goal, 0, 0, is_begun, how=how, measured_at=measured_at, is_unknown=True)
    result = go(observation, context, desired, way, bounds, starving)
    return structs.replace(result, recommended=bounds.raised.clamp(last))


def go(
    observation: ScalableState,
    context: GateContext,
    desired: DesiredReplicas,
    way: Way,
    bounds: Bounds,
    starving: bool,
) -> ReplicasResult:
    """Moves the count towards the goal as far as `maxStep`, bounds and gates allow. A count below a scheduled floor is
    outside the bounds."""
    current, axis = observation.workload.spec.replicas, observation.horizontal
    undone = context.applies and axis.applied_from is not None and axis.applied_from.replicas != current
    contest = judge_contest(undone, axis.set_back, axis.last_scale_time, context.clock)
    way, bounds = _limited_way(observation, context, way, bounds), bounds.raised
    full, note = way.step, way.text(current, desired)
    nothing = ReplicasResult(current, current, full, axis, (), (note,))
    if full == current and way.next_at is not None:
        return _with_hold(
            structs.replace(nothing, recommended=way.goal), way.goal, Hold(MAX_STEP, way.next_at, _STEP)
        )
    reported = full
    if way.weight_now == 100 and desired.replicas is not None and full == current:
        reported = bounds.clamp(desired.replicas)
    if reported == current:
        return nothing
    change = _change(observation, context, contest, reported, way)
    passes = frozenset({STABILIZATION_WINDOW}) if starving and reported > current else frozenset[str]()
    hold = first_hold(change, context, passes)
    inside = bounds.clamp(current)
    if hold is None:
        wanted = full if desired.replicas is None else desired.replicas
        goal = way.goal if way.goal > full else None
        applied_from = AppliedReplicas(replicas=full, desired=wanted, weight=way.weight, goal=goal)
        return _with_step(nothing, applied_from, context, contest)
    if inside != current and first_hold(change, context, OUTSIDE_BOUNDS) is None:
        applied_from = _applied_from_inside(axis.applied_from, inside, way)
        nothing = _with_step(nothing, applied_from, context, contest)
        nothing = structs.replace(nothing, steps=(note, f"replicas: {inside}, inside bounds, at once"))
    elif hold.reason == CONTESTED:
        nothing = structs.replace(nothing, axis=axis.model_copy(update={"set_back": contest.record}))
    return nothing if nothing.target == reported else _with_hold(nothing, reported, hold)


def _applied_from_inside(before: AppliedReplicas | None, inside: int, way: Way) -> AppliedReplicas:
    """Returns the record of a count that HVPA brings inside its bounds. If the goal is beyond the bounds, the record
    keeps it."""
    if way.begun and before is not None and before.goal is not None and before.goal > inside:
        return before.model_copy(update={"replicas": inside})
    return AppliedReplicas(replicas=inside, desired=inside, weight=way.weight_now)


def restored(observation: ScalableState, last: int) -> int:
    """Returns the replicas that HVPA set and another client has removed since, limited to the last recommendation
    (`last`); otherwise 0."""
    applied_from = observation.horizontal.applied_from
    replicas = 0 if applied_from is None else min(applied_from.replicas, last)
    return replicas if replicas > observation.workload.spec.replicas else 0


def _with_step(
    result: ReplicasResult, applied_from: AppliedReplicas, context: GateContext, contest: Contest
) -> ReplicasResult:
    """Returns the result with a step, and records the step in the axis."""
    when = step_time(result.axis.last_scale_time, context.clock)
    axis = HorizontalAxis(
        last_scale_time=when,
        applied_from=applied_from,
        set_back=contest.after_step(when),
        correction=result.axis.correction,
    )
    return structs.replace(result, target=applied_from.replicas, axis=axis)


def _with_hold(result: ReplicasResult, wanted: int, hold: Hold) -> ReplicasResult:
    """Returns the result with a step that a gate holds back."""
    direction = _direction(result.current, wanted)
    blocked = Blocked(
        "horizontal", direction, hold.reason, result.current, wanted, until=hold.until, figures=hold.figures
    )
    note = f"replicas: {wanted} held back by {hold.text()}"
    return structs.replace(result, blocked=(blocked,), steps=(*result.steps, note))


def _direction(current: int, wanted: int) -> Direction:
    return "up" if wanted > current else "down"


def begun(axis: HorizontalAxis, current: int) -> bool:
    """Whether the last step still stands and `maxStep` limited it."""
    applied_from = axis.applied_from
    return applied_from is not None and applied_from.replicas == current and applied_from.goal is not None


def without_past_goal(axis: HorizontalAxis, current: int, desired: DesiredReplicas) -> HorizontalAxis:
    """Returns the axis without the goal of steps that have ended because the HPA no longer scales out. A later request
    of the HPA, even for the same count, starts again."""
    if desired.replicas is None or desired.replicas > current or not begun(axis, current):
        return axis
    assert axis.applied_from is not None
    applied_from = AppliedReplicas(replicas=current, desired=current, weight=axis.applied_from.weight)
    return axis.model_copy(update={"applied_from": applied_from})


def settling(observation: ObservedState, context: GateContext) -> dt.datetime | None:
    """Returns until when the HPA has not measured the effect of the last changes: until the rollout is complete or
    past its progress deadline, plus 60 seconds (DESIGN 5.2). NO_CLOCK: until the rollout is complete, without a time
    limit."""
    if not context.is_settled:
        return NO_CLOCK if context.settles_at is None else after(context.settles_at, SETTLING)
    changes = (
        observation.horizontal.last_scale_time,
        observation.vertical.last_scale_time,
        observation.pods.last_ready_at,
        context.settles_at,
    )
    held = [until for when in changes if (until := context.clock.held_until(when, SETTLING)) is not None]
    return max(held, default=None)


class Way(Struct, frozen=True):
    """The way from the current count to the goal."""

    goal: int
    """The count that the desired replicas lead to, after weighting."""
    step: int
    """The count to apply now; less than `goal` if `maxStep` limits it."""
    weight: float
    """Vertical weight of the blend, in percent."""
    weight_now: float
    """Vertical weight at the current count, in percent; may differ from `weight`."""
    begun: bool = False
    """Earlier steps have covered a part of the way."""
    next_at: dt.datetime | None = None
    """When the next step of `maxStep` is due."""
    how: str = "after weighting"
    """How the goal was found, for messages."""
    measured_at: dt.datetime | None = None
    """When the next measurement is due if the change waits for it; None if it does not wait."""
    is_unknown: bool = False
    """The demand is unknown, so the change waits."""

    def text(self, current: int, desired: DesiredReplicas) -> str:
        """Describes the way in words."""
        asks = f"recommends {desired.replicas}" if desired.replicas is not None else "has no recommendation"
        text = f"replicas: {current} now, the HPA {asks}; {self.goal} {self.how}"
        if self.measured_at is not None:
            is_open = self.measured_at == NO_CLOCK
            due = (
                "when the pods have the decided size"
                if is_open
                else f"at {readable_timestamp(self.measured_at)}"
            )
            if self.is_unknown:
                return f"{text}; the next measurement is due {due}"
            return f"{text}; this recommendation's step is done; the next measurement is due {due}"
        if self.step == self.goal:
            return f"{text}, as vpaWeight is 100" if current == self.goal and self.weight_now == 100 else text
        if self.step == current and self.next_at is not None:
            return f"{text}, the next step of maxStep at {readable_timestamp(self.next_at)}"
        return f"{text}, {self.step} by maxStep, the rest later"


def _limited_way(observation: ScalableState, context: GateContext, way: Way, bounds: Bounds) -> Way:
    """Limits the way by `maxStep`, then by the bounds (DESIGN 6.5). If another client set the count, the steps start
    again; after a step of HVPA the next step waits for `STEP_PERIOD`. A goal below a scheduled floor becomes the
    floor."""
    current, axis, raised = observation.workload.spec.replicas, observation.horizontal, bounds.raised
    most, goal = observation.spec.hpa.scale_up.max_step, raised.clamp(way.goal)
    if goal > bounds.clamp(way.goal):
        way = structs.replace(way, how=f"at least {bounds.floor_by}", measured_at=None)
    if most is None or goal <= current:
        return way if goal == way.goal else structs.replace(way, goal=goal, step=goal)
    ours = axis.applied_from is not None and axis.applied_from.replicas == current
    next_at = context.clock.held_until(axis.last_scale_time, STEP_PERIOD) if ours else None
    step = min(goal, most.limit(current)) if next_at is None else current
    return structs.replace(way, goal=goal, step=raised.clamp(step), next_at=next_at)


def _change(
    observation: ScalableState, context: GateContext, contest: Contest, reported: int, way: Way
) -> Change:
    """Returns the step in the form that gates check. `minChange` applies to the whole way, not to a part of it."""
    current = observation.workload.spec.replicas
    rules = context.rules["horizontal", _direction(current, reported)]
    least = rules.min_change["replicas"]
    weightless = reported != way.step
    whole = reported if weightless else way.goal
    smallest = least.of(current)
    is_small = abs(whole - current) < smallest
    return Change(
        rules=rules,
        last_scale_time=observation.horizontal.last_scale_time,
        weightless=weightless,
        contested_until=contest.until(up=reported > current),
        refused_until=refused_until(observation.horizontal.refused, context.clock, current, reported),
        measured_at=way.measured_at,
        small_until=NO_CLOCK if is_small and not way.begun else None,
        least=GateFigures(least=smallest, source=least.source),
    )
