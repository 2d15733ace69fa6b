"""`Additive`, horizontal: the replicas are moved towards the HPA's count by the weight of the interval (DESIGN 5.2)."""

from __future__ import annotations

from hvpa.core.axes.replicas import MEASURED, ReplicasResult, Way, as_recommended_last, begun, go, settling
from hvpa.core.gates.gates import (
    GateContext,
)
from hvpa.core.model import ObservedState
from hvpa.core.recommenders.desired_replicas import DesiredReplicas
from hvpa.core.values.arithmetic import blend_replicas
from hvpa.core.values.weight import Bounds, Weight


def scale_horizontally(
    seen: ObservedState,
    context: GateContext,
    desired: DesiredReplicas,
    weight: Weight,
    bounds: Bounds,
    starving: bool,
) -> ReplicasResult:
    """Decide on the replica count of a workload that has an HPA."""
    assert seen.workload is not None
    if desired.unknown is not None:
        return as_recommended_last(seen, context, desired, desired.unknown, bounds, starving)
    way = _way(seen, context, desired, weight, seen.workload.spec.replicas)
    return go(seen, context, desired, way, bounds, starving)


def _way(
    seen: ObservedState, context: GateContext, desired: DesiredReplicas, weight: Weight, current: int
) -> Way:
    """Where the desired replicas lead, not yet cut to the largest step.

    One step per desired replicas, whatever the weight: only after the HPA has measured the settled workload does the
    same desired replicas speak of the count that stands now (DESIGN 5.2). What `maxStep` has left of a step is still to
    be done.
    """
    if desired.replicas is None or desired.replicas == current:
        return Way(current, current, weight.percent, weight.percent)
    is_begun = begun(seen.horizontal, current)
    applied_from, measurement = seen.horizontal.applied_from, MEASURED
    if applied_from is not None and (applied_from.replicas, applied_from.desired) == (
        current,
        desired.replicas,
    ):
        measurement = settling(seen, context)
        if (
            measurement
            and applied_from.goal is not None
            and weight.horizontal_ppm > 0
            and current < applied_from.goal
        ):
            return Way(applied_from.goal, applied_from.goal, applied_from.weight, weight.percent, is_begun)
    goal = blend_replicas(current, desired.replicas, weight.horizontal_ppm)
    return Way(goal, goal, weight.percent, weight.percent, is_begun, measured_at=measurement)
