"""`Additive`, horizontal: the replicas are moved towards the HPA's count by the weight of the interval (DESIGN 5.2)."""

from __future__ import annotations

from hvpa.core.axes.replicas import MEASURED, HorizontalOutcome, Way, as_recommended_last, begun, go, settling
from hvpa.core.gates.gates import (
    Moment,
)
from hvpa.core.model import Scene
from hvpa.core.recommenders.desired_replicas import Wish
from hvpa.core.values.arithmetic import blend_replicas
from hvpa.core.values.weight import Bounds, Weight


def scale_horizontally(
    seen: Scene, moment: Moment, wish: Wish, weight: Weight, bounds: Bounds, starving: bool
) -> HorizontalOutcome:
    """Decide on the replica count of a workload that has an HPA."""
    assert seen.workload is not None
    if wish.unknown is not None:
        return as_recommended_last(seen, moment, wish, wish.unknown, bounds, starving)
    way = _way(seen, moment, wish, weight, seen.workload.spec.replicas)
    return go(seen, moment, wish, way, bounds, starving)


def _way(seen: Scene, moment: Moment, wish: Wish, weight: Weight, current: int) -> Way:
    """Where the wish leads, not yet cut to the largest step.

    One step per wish, whatever the weight: only after the HPA has measured the settled workload does the same wish
    speak of the count that stands now (DESIGN 5.2). What `maxStep` has left of a step is still to be done.
    """
    if wish.replicas is None or wish.replicas == current:
        return Way(current, current, weight.percent, weight.percent)
    is_begun = begun(seen.horizontal, current)
    spent, measurement = seen.horizontal.spent, MEASURED
    if spent is not None and (spent.replicas, spent.wish) == (current, wish.replicas):
        measurement = settling(seen, moment)
        if (
            measurement.is_awaited
            and spent.goal is not None
            and weight.horizontal_ppm > 0
            and current < spent.goal
        ):
            return Way(spent.goal, spent.goal, spent.weight, weight.percent, is_begun)
    goal = blend_replicas(current, wish.replicas, weight.horizontal_ppm)
    return Way(goal, goal, weight.percent, weight.percent, is_begun, measurement=measurement)
