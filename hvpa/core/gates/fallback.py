"""A floor on the replicas while the HPA has lost its metrics (`spec.hpa.fallback`)."""

from __future__ import annotations

import datetime as dt

from msgspec import structs

from hvpa.api.objects.read_models import Hpa, condition
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.gates.forecast import outlook_of
from hvpa.core.model import ScalableObservation
from hvpa.core.values.clock import Clock, after
from hvpa.core.values.weight import Bounds

DISABLED = "ScalingDisabled"
"""Reason of the HPA's `ScalingActive=False` if the workload has 0 replicas (podautoscaler/horizontal.go)."""


def lost_since(hpa: Hpa | None) -> dt.datetime | None:
    """Returns since when an HPA has had no metrics; None if it has some, or never reported anything."""
    active = None if hpa is None else condition(hpa.status.conditions, "ScalingActive")
    if active is None or active.status == "True" or active.reason == DISABLED:
        return None
    return active.last_transition_time


def raised_by_fallback(clock: Clock, observation: ScalableObservation, bounds: Bounds) -> Bounds:
    """Returns the bounds with the fallback's floor, if it is above the other floors.

    Example: `replicas: 6` and `after: 5m`. Five minutes after the last measurement, 4 replicas become 6, and 9 stay.
    """
    fallback, since = observation.spec.hpa.fallback, lost_since(observation.hpa.object)
    if fallback is None or since is None or not observation.hpa.in_charge:
        return bounds
    if not clock.is_past(after(since, fallback.after)):
        return bounds
    floor = fallback.replicas
    if floor == "AsUsual":
        floor = outlook_of(clock, observation, Bounds(bounds.lower, bounds.upper)).foreseen or 0
    if not isinstance(floor, int) or floor <= max(bounds.lower, bounds.floor):
        return bounds
    why = f"since the HPA lost its metrics at {readable_timestamp(since)}, by spec.hpa.fallback"
    return structs.replace(bounds, floor=floor, floor_by=why)
