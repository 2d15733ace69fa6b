"""Words that several parts of an explanation share: instants, amounts, and what is held back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hvpa.api.hvpa.status import Refusal
from hvpa.api.values.duration import readable_duration
from hvpa.api.values.quantity import Resource, readable_change, readable_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import Blocked
from hvpa.core.path.path import ResourceKey
from hvpa.core.report.summary import change
from hvpa.core.workload.containers import amount as quantity_of


def when(instant: dt.datetime, now: dt.datetime) -> str:
    """An instant, and how far away it is."""
    return (
        f"{readable_timestamp(instant)} (in {readable_duration(instant - now)})" if instant > now else "now"
    )


def readable(resource: Resource, quantity: str) -> str:
    """A quantity for people; as it is where it can't be read."""
    value = quantity_of({resource: quantity}, resource)
    return quantity if value is None else readable_resource(resource, value)


def held(entry: Blocked, now: dt.datetime) -> str:
    """A change that is held back, and until when."""
    what = "replicas" if entry.container is None else f"{entry.container} {entry.resource}"
    until = "" if entry.until is None else f" until {when(entry.until, now)}"
    return f"{what} {' -> '.join(change(entry))}: {entry.reason}{until}"


def refused(record: Refusal) -> str:
    """What the API server refused earlier, and why."""
    changes = []
    for one in record.changes:
        resource: Resource = "cpu" if one.resource == "cpu" else "memory"
        what, pair = "replicas", (str(one.current), str(one.wanted))
        if one.container is not None:
            what = f"{one.container} {resource}"
            pair = readable_change(resource, one.current, one.wanted)
        changes.append(f"{what} {' -> '.join(pair)}")
    times = "" if record.count <= 1 else f", {record.count} times in a row"
    return f"refused at {readable_timestamp(record.time)}{times}: {', '.join(changes)}: {record.message}"


def counted(replicas: int) -> str:
    """A number of replicas."""
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"


def pods(replicas: int, sizes: Mapping[ResourceKey, int]) -> str:
    """So many replicas of these requests."""
    by_container: dict[str, list[str]] = {}
    for key, size in sizes.items():
        text = f"{key.resource} {readable_resource(key.resource, size)}"
        by_container.setdefault(key.container, []).append(text)
    each = "; ".join(f"{name} {', '.join(texts)}" for name, texts in by_container.items())
    return f"{counted(replicas)} of {each}" if each else counted(replicas)
