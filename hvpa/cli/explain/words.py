"""Words that several parts of an explanation share: times, amounts, and changes that are held back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from hvpa.api.hvpa.status import Refusal
from hvpa.api.values.duration import format_duration, readable_duration
from hvpa.api.values.quantity import RESOURCES, Resource, readable_change, readable_resource
from hvpa.api.values.text import counted
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import Blocked, ResourceRequirements
from hvpa.core.path.path import ResourceKey
from hvpa.core.report.summary import change
from hvpa.core.rules import DEFAULT
from hvpa.core.workload.containers import amount as quantity_of


def when(instant: dt.datetime, now: dt.datetime) -> str:
    """A time, and the duration until then."""
    if instant <= now:
        return "now"
    return f"{readable_timestamp(instant)} (in {readable_duration(instant - now)})"


def at(instant: dt.datetime | None, before: str) -> str:
    """A time, preceded by `before`; empty if unknown."""
    return "" if instant is None else f"{before}{readable_timestamp(instant)}"


def kind(resource: str | None) -> Resource:
    """The resource with this name in a status, which another client may have written."""
    return "cpu" if resource == "cpu" else "memory"


def readable(resource: str | None, quantity: str | int | float) -> str:
    """A quantity for people; unchanged if it can't be parsed."""
    value = quantity_of({kind(resource): quantity}, kind(resource))
    return str(quantity) if value is None else readable_resource(kind(resource), value)


def change_text(container: str | None, resource: str | None, pair: tuple[str, str]) -> str:
    """A change of replicas (without a container) or of a request, such as `app cpu 500m -> 1`."""
    what = "replicas" if container is None else f"{container} {resource}"
    return f"{what} {' -> '.join(pair)}"


def held(entry: Blocked, now: dt.datetime) -> str:
    """A change that is held back, with its end and the values of the gate."""
    until = "" if entry.until is None else f" until {when(entry.until, now)}"
    text = f"{change_text(entry.container, entry.resource, change(entry))}: {entry.reason}{until}"
    if (figures := entry.figures) is None:
        return text
    known = [] if figures.least is None else [f"least {amount_text(entry.resource, figures.least)}"]
    known += [] if figures.wait is None else [f"wait {format_duration(figures.wait)}"]
    return f"{text}, {', '.join(known)} ({figures.source})"


def by_default(source: str) -> str:
    """The mark of a value that no field sets."""
    return f" ({source})" if source == DEFAULT else ""


def amount_text(resource: str | None, amount: int) -> str:
    """Replicas, or a request for people."""
    return readable_resource(kind(resource), amount) if resource in RESOURCES else str(amount)


def refused(record: Refusal) -> str:
    """A change that the API server refused earlier, and the reason."""
    changes = []
    for refused_change in record.changes:
        pair = str(refused_change.current), str(refused_change.wanted)
        if refused_change.container is not None:
            pair = readable_change(
                kind(refused_change.resource), refused_change.current, refused_change.wanted
            )
        changes.append(change_text(refused_change.container, kind(refused_change.resource), pair))
    times = "" if record.count <= 1 else f", {record.count} times in a row"
    return f"refused at {readable_timestamp(record.time)}{times}: {', '.join(changes)}: {record.message}"


def pods(replicas: int, sizes: Mapping[ResourceKey, int]) -> str:
    """A number of replicas with these requests."""
    by_container: dict[str, list[str]] = {}
    for key, size in sizes.items():
        text = f"{key.resource} {readable_resource(key.resource, size)}"
        by_container.setdefault(key.container, []).append(text)
    pod_text = "; ".join(f"{name} {', '.join(texts)}" for name, texts in by_container.items())
    return f"{counted(replicas)} of {pod_text}" if pod_text else counted(replicas)


def size_text(resources: Mapping[str, ResourceRequirements]) -> str:
    """Requests by container, for people: `cpu 500m memory 1Gi`; with the container's name if there are several."""
    parts = []
    for name, requirements in resources.items():
        known = [what for what in RESOURCES if what in requirements.requests]
        text = " ".join(f"{what} {readable_resource(what, requirements.requests[what])}" for what in known)
        parts.append(f"{name}: {text or 'none'}" if len(resources) > 1 else text or "none")
    return ", ".join(parts)
