"""A floor on the replicas while most pods run out of memory (docs/decisions/0101)."""

from __future__ import annotations

from msgspec import structs

from hvpa.core.model import ScalableObservation
from hvpa.core.values.tuning import OOMS_FACTOR, OOMS_PERCENT
from hvpa.core.values.weight import FULL, Bounds, weight_intervals, weight_leaving


def raised_by_ooms(observation: ScalableObservation, bounds: Bounds) -> Bounds:
    """Returns the bounds with three times the present count as the floor, if a container ran out of memory and more
    pods failed than half of that count.

    While all pods fail, the HPA has no metrics. Whichever pod starts gets the whole load, and is killed as well, even
    if the load has fallen meanwhile. Example: 2 of 3 pods failed within the last ten minutes. 3 replicas become 9.
    Once 5 of these have failed, they become 27.
    """
    spec, pods, present = observation.spec, observation.pods, observation.workload.spec.replicas
    if not pods.starving or pods.failed * 100 <= present * OOMS_PERCENT or not observation.hpa.in_charge:
        return bounds
    if (
        not spec.joint
        and weight_leaving(weight_intervals(spec, vertical_only=False), present, bounds) == FULL
    ):
        return bounds
    floor = OOMS_FACTOR * present
    if floor <= max(bounds.lower, bounds.floor):
        return bounds
    why = f"while {pods.failed} of {present} pods fail and run out of memory"
    return structs.replace(bounds, floor=floor, floor_by=why)
