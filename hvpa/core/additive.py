"""The strategy `Additive` (DESIGN 5.2): the weight at a replica count (`core/values/weight.py`) blends the present
replicas and requests with the recommendations of the HPA and the VPA."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import structs

from hvpa.api.values.quantity import RESOURCES
from hvpa.core.actuation.pod import awaited, own_pods
from hvpa.core.axes.first_requests import first_requests, present_requests
from hvpa.core.axes.replicas import ReplicasResult, Way, as_recommended_last, begun, go, settling
from hvpa.core.axes.requests import RequestsAxis
from hvpa.core.axes.steps import RequestsResult, ResourceStep
from hvpa.core.gates.gates import NO_CLOCK, GateContext
from hvpa.core.model import ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.desired_replicas import DesiredReplicas
from hvpa.core.values.arithmetic import blend_replicas, ceil_div
from hvpa.core.values.tuning import SETTLING
from hvpa.core.values.weight import FULL, Bounds, EffectiveWeight, percent
from hvpa.core.workload.containers import ContainerResource, present_resources
from hvpa.core.workload.governed import governed


# --- replicas --------------------------------------------------------------------------------------------------------
def scale_horizontally(
    observation: ScalableState,
    context: GateContext,
    desired: DesiredReplicas,
    weight: EffectiveWeight,
    bounds: Bounds,
    starving: bool,
) -> ReplicasResult:
    """Decide the replica count of a workload that has an HPA."""
    if desired.unknown is not None:
        return as_recommended_last(observation, context, desired, desired.unknown, bounds, starving)
    return go(observation, context, desired, _way(observation, context, desired, weight), bounds, starving)


def _way(
    observation: ScalableState, context: GateContext, desired: DesiredReplicas, weight: EffectiveWeight
) -> Way:
    """Return the count that the desired replicas lead to, before `maxStep` limits the step.

    HVPA takes one step for each value of the desired replicas, whatever the weight. The same value is blended again
    only after the HPA has measured the settled workload (DESIGN 5.2). The part of a step that `maxStep` cut off still
    follows.
    """
    current, before, measurement = (
        observation.workload.spec.replicas,
        observation.horizontal.applied_from,
        None,
    )
    if desired.replicas is None or desired.replicas == current:
        return Way(current, current, weight.percent, weight.percent)
    is_begun = begun(observation.horizontal, current)
    if held := _resized_until(observation, context, desired):
        goal = blend_replicas(current, desired.replicas, weight.horizontal_ppm)
        how = "after weighting, while pods are being resized"
        return Way(
            goal, goal, weight.percent, weight.percent, is_begun, how=how, measured_at=held, is_unknown=True
        )
    if before is not None and (before.replicas, before.desired) == (current, desired.replicas):
        measurement, goal = settling(observation, context), before.goal or 0
        if measurement and goal > current and weight.horizontal_ppm > 0:
            return Way(goal, goal, before.weight, weight.percent, is_begun)
    wanted, how = desired.replicas, "after weighting"
    if wanted < current and (needed := min(current, _for_cpu(observation, desired))) > wanted:
        wanted, how = needed, f"after weighting, as fewer than {needed} lack CPU, which no metric measures"
    goal = blend_replicas(current, wanted, weight.horizontal_ppm)
    return Way(goal, goal, weight.percent, weight.percent, is_begun, how=how, measured_at=measurement)


def _for_cpu(observation: ScalableState, desired: DesiredReplicas) -> int:
    """Return the fewest pods with enough CPU if the HPA measures memory alone; otherwise 0.

    A larger memory request lowers the percentage, so the HPA removes pods, and each of the others has more work. Their
    CPU must have grown as much. Example: memory grew from 1Gi to 4Gi, CPU from 500m to 1 core. For 4 pods of the HPA, 8
    have enough CPU.
    """
    if desired.replicas is None or not desired.of_memory_alone:
        return 0
    containers = {container for _, container in desired.metered or ()}
    now = present_requests(observation, present_resources(observation.workload.spec.template.spec.containers))
    first = first_requests(observation, now)
    keys = [key for key in first if now[key] and ("" in containers or key.container in containers)]
    before, after = _total(first, keys), _total(now, keys)
    if not min(*before, *after):
        return 0
    return ceil_div(desired.replicas * after.memory * before.cpu, before.memory * after.cpu)


class _Size(NamedTuple):
    """The requests of a pod in millicores and bytes."""

    cpu: int
    memory: int


def _total(requests: Mapping[ResourceKey, int], keys: Iterable[ResourceKey]) -> _Size:
    return _Size(*[sum([requests[key] for key in keys if key.resource == name]) for name in RESOURCES])


def _resized_until(
    observation: ScalableState, context: GateContext, desired: DesiredReplicas
) -> dt.datetime | None:
    """Return until when replicas wait for pods that are being resized; None if no pod is being resized.

    The HPA divides usage by the requests in the pod's spec, which a pod that is being resized does not have yet. HVPA
    follows the HPA once the pods have these requests, or after a minute. It does not scale in while a pod is smaller
    than its spec: a pod that has 1 core and whose spec has 2 uses at most 50 percent. A target that is not a percentage
    (a queue length) does not depend on the size.
    """
    waits = context.spec.strategy.in_place and desired.is_relative
    assert desired.replicas is not None
    is_less = desired.replicas < observation.workload.spec.replicas
    gaps = [awaited(pod) for pod in own_pods(observation)] if waits else []
    if not any(raised or lowered for raised, lowered in gaps):
        return None
    if is_less and any(raised for raised, _ in gaps):
        return NO_CLOCK
    return context.clock.held_until(observation.vertical.last_scale_time, SETTLING)


# --- requests --------------------------------------------------------------------------------------------------------
def scale_vertically(
    observation: ScalableState, context: GateContext, weight: EffectiveWeight, wants_out: bool
) -> RequestsResult:
    """Decide the requests and limits of a workload whose VPA has a recommendation.

    `wants_out`: the HPA recommends more than maxReplicas, so raises have full weight once it can have measured
    maxReplicas and still does (DESIGN 5.2).
    """
    items = governed(observation)
    axis = RequestsAxis(
        observation,
        context,
        items,
        saturated=[item.key for item in items if wants_out and item.resource == "cpu"],
        weightless=weight.vertical_ppm == 0,
    )
    steps = [_step(axis, item, weight.vertical_ppm, wants_out) for item in axis.items]
    return axis.result([(step, axis.hold(step)) for step in steps if step is not None])


def _step(axis: RequestsAxis, item: ContainerResource, usual: int, wants_out: bool) -> ResourceStep | None:
    """Return the change of a container resource at the `usual` weight; None if it stays."""
    if (raised := axis.raise_now(item)) is not None:
        return raised
    before = axis.before_fast(item) if item.resource == "cpu" else None
    start = item if before is None else structs.replace(item, request=before)
    ppm, measured_at = _weight_of(axis, start, usual, wants_out)
    wanted, moved_from = _blended(axis, start, ppm)
    if before is not None:
        return axis.with_fast(item, axis.without_raise(item, before, (wanted, ppm, moved_from)))
    step = axis.step_to(item, wanted, ppm, measured_at=measured_at, moved_from=moved_from)
    return axis.with_fast(item, step)


def _weight_of(
    axis: RequestsAxis, item: ContainerResource, usual: int, wants_out: bool
) -> tuple[int, dt.datetime | None]:
    """Return the weight of a container resource, and until when its step waits for the HPA's measurement.

    If the HPA recommends more than maxReplicas, raises have full weight once the HPA has measured that count. Until
    then the container resource has its usual weight, if that makes a step.
    """
    if not wants_out or item.target <= item.current:
        return usual, None
    measured_at = axis.clock.held_until(axis.observation.horizontal.last_scale_time, SETTLING)
    if measured_at is not None and usual > 0 and _blended(axis, item, usual)[0] > item.current:
        return usual, None
    return FULL, measured_at


def _blended(axis: RequestsAxis, item: ContainerResource, ppm: int) -> tuple[int, int | None]:
    """Return the wanted request at a weight, and the target that it moves with (None: it is blended again).

    At weight 0 it is the request at full weight, which is then reported as held. A target that has had its step at this
    weight moves the request only by its own change × weight: 750m was blended from 1000m at weight 50, and the target
    is now 1400m. The request becomes 750m + 400m × 0.5 = 950m, and not 1075m (DESIGN 5.2). Otherwise a drifting target
    would pull the request all the way. A step at full weight leaves nothing to repeat.

    Such a request is at least the target × weight. If it would fall below that, something else has changed the request
    (a limit, an OOM, a rollback) since the target had its step, and it is blended again.
    """
    before = axis.record.blended_from(item)
    if before is None or ppm in (0, FULL) or before[1] != percent(ppm):
        return item.blended(ppm or FULL), None
    moved = item.moved(item.target - before[0], ppm)
    fits = moved >= item.current or moved * FULL >= item.target * ppm
    return (moved, before[0]) if fits else (item.blended(ppm), None)
