"""Phrases that several reports share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hvpa.api.hvpa.progress import HeldRollout
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.values.quantity import Resource, readable_change, readable_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import Blocked

CORE: Final = 1000
"""Millicores per core."""


def blocked_text(entry: Blocked) -> str:
    """Return a blocked change in words."""
    what = "replicas" if entry.container is None else f"{entry.container} {entry.resource}"
    until = "" if entry.until is None else f" until {readable_timestamp(entry.until)}"
    return f"{what} {' -> '.join(change(entry))} held by {entry.reason}{until}"


def rollout_text(held: HeldRollout) -> str:
    """Return the reason that holds a rollout, in words."""
    until = "" if held.until is None else f" until {readable_timestamp(held.until)}"
    return f"rollout held by {held.reason}{until}: {held.message}"


def newly_blocked(before: HvpaStatus, blocked: Iterable[Blocked]) -> list[Blocked]:
    """Return the changes that are blocked and were not in the previous status."""
    known = {
        (entry.axis, entry.direction, entry.container, entry.resource, entry.reason)
        for entry in before.last_blocked_scaling
    }
    return [
        entry
        for entry in blocked
        if (entry.axis, entry.direction, entry.container, entry.resource, entry.reason) not in known
    ]


def change(entry: Blocked) -> tuple[str, str]:
    """Return a blocked change's two values for people: from and to."""
    if entry.resource is None:
        return str(entry.current), str(entry.wanted)
    return readable_change(entry.resource, entry.current, entry.wanted)


def with_unit(resource: Resource, amount: int) -> str:
    """Return an amount for a sentence: whole cores with their unit (`1 core`, `13 cores`), all others as quantities,
    which include it (`1500m`, `2Gi`)."""
    shown = readable_resource(resource, amount)
    if resource == "memory" or shown.endswith("m"):
        return shown
    return f"{shown} core" if amount == CORE else f"{shown} cores"
