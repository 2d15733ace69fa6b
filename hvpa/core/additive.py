"""The strategy `Additive` (DESIGN 5.2): how the weight at a replica count (`core/values/weight.py`) blends replicas and
requests with what HPA and VPA recommend."""

from __future__ import annotations

import datetime as dt

from hvpa.core.actuation.pod import awaited, own_pods
from hvpa.core.axes.replicas import ReplicasResult, Way, as_recommended_last, begun, go, settling
from hvpa.core.axes.requests import RequestsAxis
from hvpa.core.axes.steps import RequestsResult, Step
from hvpa.core.gates.gates import NO_CLOCK, GateContext
from hvpa.core.model import ObservedState
from hvpa.core.recommenders.desired_replicas import DesiredReplicas
from hvpa.core.recommenders.estimate import SETTLING
from hvpa.core.values.arithmetic import blend_replicas
from hvpa.core.values.weight import FULL, Bounds, Weight, percent
from hvpa.core.workload.containers import ContainerResource
from hvpa.core.workload.governed import governed


# --- replicas --------------------------------------------------------------------------------------------------------
def scale_horizontally(
    seen: ObservedState,
    context: GateContext,
    desired: DesiredReplicas,
    weight: Weight,
    bounds: Bounds,
    starving: bool,
) -> ReplicasResult:
    """Decide on the replica count of a workload that has an HPA."""
    if desired.unknown is not None:
        return as_recommended_last(seen, context, desired, desired.unknown, bounds, starving)
    return go(seen, context, desired, _way(seen, context, desired, weight), bounds, starving)


def _way(seen: ObservedState, context: GateContext, desired: DesiredReplicas, weight: Weight) -> Way:
    """Where the desired replicas lead, not yet cut to the largest step.

    One step per desired replicas, whatever the weight: only after the HPA has measured the settled workload are the
    same desired replicas those of the present count (DESIGN 5.2). What `maxStep` has left of a step is still to be
    done.
    """
    assert seen.workload is not None
    current, before, measurement = seen.workload.spec.replicas, seen.horizontal.applied_from, None
    if desired.replicas is None or desired.replicas == current:
        return Way(current, current, weight.percent, weight.percent)
    is_begun = begun(seen.horizontal, current)
    if held := _resized_until(seen, context, desired):
        goal = blend_replicas(current, desired.replicas, weight.horizontal_ppm)
        how = "after weighting, while pods are being resized"
        return Way(
            goal, goal, weight.percent, weight.percent, is_begun, how=how, measured_at=held, is_unknown=True
        )
    if before is not None and (before.replicas, before.desired) == (current, desired.replicas):
        measurement, goal = settling(seen, context), before.goal or 0
        if measurement and goal > current and weight.horizontal_ppm > 0:
            return Way(goal, goal, before.weight, weight.percent, is_begun)
    goal = blend_replicas(current, desired.replicas, weight.horizontal_ppm)
    return Way(goal, goal, weight.percent, weight.percent, is_begun, measured_at=measurement)


def _resized_until(seen: ObservedState, context: GateContext, desired: DesiredReplicas) -> dt.datetime | None:
    """Until when replicas wait for pods that are being resized; None where there are none to wait for.

    The HPA divides what a pod uses, as large as it is, by the requests of the pod's spec, which are those that it is to
    have. So the HPA is not followed until pods have them, for a minute at most; and not to fewer pods, as long as
    pods are smaller than their specs: a pod of 1 core that is to have 2 uses 50 percent at most. Targets that are no
    percentage (a queue's) are the same for all sizes.
    """
    waits = context.spec.strategy.in_place and desired.is_relative
    gaps = [awaited(pod) for pod in own_pods(seen)] if waits else []
    if not any(raised or lowered for raised, lowered in gaps):
        return None
    assert seen.workload is not None and desired.replicas is not None
    if desired.replicas < seen.workload.spec.replicas and any(raised for raised, _ in gaps):
        return NO_CLOCK
    return context.clock.held_until(seen.vertical.last_scale_time, SETTLING)


# --- requests --------------------------------------------------------------------------------------------------------
def scale_vertically(
    seen: ObservedState, context: GateContext, weight: Weight, wants_out: bool
) -> RequestsResult:
    """Decide on the requests and limits of a workload that has a VPA with a recommendation.

    `wants_out`: the workload has maxReplicas and the HPA wants more, so that what goes up has full weight, once the HPA
    can have measured that count (it still wants out, DESIGN 5.2).
    """
    axis = RequestsAxis(seen, context, governed(seen), disruptive=not context.spec.strategy.in_place)
    steps = [_step(axis, item, weight.vertical_ppm, wants_out) for item in axis.items]
    return axis.result([(step, axis.hold(step)) for step in steps if step is not None])


def _step(axis: RequestsAxis, item: ContainerResource, usual: int, wants_out: bool) -> Step | None:
    """The change that is wanted of one container resource at the `usual` weight; None where there is none."""
    if (raised := axis.raise_now(item)) is not None:
        return raised
    ppm, measured_at = _weight_of(axis, item, usual, wants_out)
    wanted, moved_from = _blended(axis, item, ppm)
    return axis.step_to(item, wanted, ppm, measured_at=measured_at, moved_from=moved_from)


def _weight_of(
    axis: RequestsAxis, item: ContainerResource, usual: int, wants_out: bool
) -> tuple[int, dt.datetime | None]:
    """The weight of a container resource; and until when a step of it waits for the HPA's measurement.

    Where the HPA still wants out at maxReplicas, what goes up has full weight, once the HPA has measured that
    count. Until then the container resource has its usual weight where that makes a step.
    """
    if not wants_out or item.target <= item.current:
        return usual, None
    measured_at = axis.clock.held_until(axis.seen.horizontal.last_scale_time, SETTLING)
    if measured_at is not None and usual > 0 and _blended(axis, item, usual)[0] > item.current:
        return usual, None
    return FULL, measured_at


def _blended(axis: RequestsAxis, item: ContainerResource, ppm: int) -> tuple[int, int | None]:
    """The request that is wanted at a weight (at full weight where there is none: that is reported as held), and the
    target from which it moves with its target (None: it is blended anew).

    A target that has had its step at this weight moves the request by its own movement, and no more: 750m was
    blended from 1000m at weight 50, the target is 1400m now: 950m, and not 1075m (DESIGN 5.2). Blended anew, a
    target that drifts would pull the request all the way. A step at full weight has left nothing to be taken twice.
    """
    before = axis.record.blended_from(item)
    if before is None or ppm in (0, FULL) or before[1] != percent(ppm):
        return item.blended(ppm or FULL), None
    return item.moved(item.target - before[0], ppm), before[0]
