"""Who else sets the fields that are scaled, and when, as `metadata.managedFields` says."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from hvpa.api.objects.read_models import ManagedFields, Workload
from hvpa.core.model import FIELD_MANAGER, Axis

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def manager_of(workload: Workload, axis: Axis) -> str:
    """The field manager, other than us, that last set the axis's fields, as `metadata.managedFields` tells."""
    owners = list(_owners(workload.metadata.managed_fields, axis))
    if not owners:
        return "an unknown client"
    return max(owners, key=lambda entry: entry.time or _EPOCH).manager


def replicas_set_at(workload: Workload) -> dt.datetime | None:
    """When another client last set the replicas; None where none did, or no time is known."""
    found = [entry.time for entry in _owners(workload.metadata.managed_fields, "horizontal") if entry.time]
    return max(found, default=None)


def _owners(entries: Iterable[ManagedFields], axis: Axis) -> Iterable[ManagedFields]:
    for entry in entries:
        owns = entry.owns_replicas() if axis == "horizontal" else entry.owns_resources()
        if owns and entry.manager != FIELD_MANAGER:
            yield entry
