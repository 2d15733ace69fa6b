"""Other clients that set the scaled fields, and when, from `metadata.managedFields`."""

from __future__ import annotations

import datetime as dt

from hvpa.api.objects.read_models import ManagedFields, Workload
from hvpa.core.model import FIELD_MANAGER, Axis

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def manager_of(workload: Workload, axis: Axis) -> str:
    """Returns the field manager, except HVPA, that last set the axis's fields."""
    last = _last_manager(workload, axis)
    return "an unknown client" if last is None else last.manager


def replicas_set_at(workload: Workload) -> dt.datetime | None:
    """Returns when another client last set the replicas; None if none did, or the time is unknown."""
    last = _last_manager(workload, "horizontal")
    return None if last is None else last.time


def _last_manager(workload: Workload, axis: Axis) -> ManagedFields | None:
    others = [entry for entry in workload.metadata.managed_fields if entry.manager != FIELD_MANAGER]
    owners = [
        entry
        for entry in others
        if (entry.owns_replicas() if axis == "horizontal" else entry.owns_resources())
    ]
    return max(owners, key=lambda entry: entry.time or _EPOCH, default=None)
