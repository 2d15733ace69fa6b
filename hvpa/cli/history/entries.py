"""The entries of a history: the Events that the API server still has, and the times that the status remembers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import DesiredSize, HvpaStatus, LastScaling
from hvpa.api.objects.read_models import Instant
from hvpa.cli.explain.pods import size_text
from hvpa.cli.explain.words import counted, readable, refused
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.report.remedies import needs_action

Source = Literal["Event", "status"]


class Entry(NamedTuple):
    """Something that happened at `time`; `times` times since `first`, where an Event was repeated."""

    time: dt.datetime
    source: Source
    type: str
    reason: str
    message: str
    times: int = 1
    first: dt.datetime | None = None


# --- Events -------------------------------------------------------------------------------------------------------
class _EventMeta(msgspec.Struct, rename="camel"):
    creation_timestamp: Instant | None = None


class _Series(msgspec.Struct, rename="camel"):
    count: int = 0
    last_observed_time: Instant | None = None


class RecordedEvent(msgspec.Struct, rename="camel"):
    """An Event of the core API, as far as it is shown."""

    metadata: _EventMeta
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: Instant | None = None
    last_timestamp: Instant | None = None
    event_time: Instant | None = None
    series: _Series | None = None

    def entry(self) -> Entry | None:
        """The Event as an entry; None for one without any time."""
        series = self.series or _Series()
        times = (series.last_observed_time, self.last_timestamp, self.event_time)
        last = next((one for one in (*times, self.metadata.creation_timestamp) if one is not None), None)
        if last is None:
            return None
        count = max(1, series.count, self.count or 0)
        first = self.first_timestamp or self.event_time or last
        return Entry(last, "Event", self.type, self.reason, self.message, count, first if count > 1 else None)


# --- the status ---------------------------------------------------------------------------------------------------
def of_status(hvpa: HvpaObject) -> Iterator[Entry]:
    """What the status remembers, which is the last change of each kind."""
    status = hvpa.status
    created = hvpa.metadata.creation_timestamp
    if created is not None:
        yield Entry(created, "status", "Normal", "Created", "the Hvpa was created")
    if status.last_scaling is not None:
        yield from _scaled(status.last_scaling)
    if status.desired is not None:
        yield _decided(status.desired)
    for one in status.conditions:
        if one.last_transition_time is not None:
            kind = "Warning" if needs_action(one) else "Normal"
            message = f"{one.reason}: {one.message}" if one.message else one.reason
            yield Entry(one.last_transition_time, "status", kind, f"{one.type}={one.status}", message)
    yield from _failed(status)


def _scaled(last: LastScaling) -> Iterator[Entry]:
    if last.last_scale_time is None:
        return
    parts = []
    if last.hpa_status is not None:
        parts.append(f"replicas {last.hpa_status.current_replicas} -> {last.hpa_status.desired_replicas}")
    if last.vpa_status is not None and last.vpa_status.recommendation is not None:
        for one in last.vpa_status.recommendation.container_recommendations:
            target = one.target.items()
            amounts = [
                f"{name} {readable('cpu' if name == 'cpu' else 'memory', amount)}" for name, amount in target
            ]
            parts.append(f"{' '.join(amounts)} of {one.container_name}")
    yield Entry(last.last_scale_time, "status", "Normal", "LastScaling", ", ".join(parts) or "the last step")


def _decided(size: DesiredSize) -> Entry:
    sizes = sizes_of(size.containers)
    text = f"{counted(size.replicas)}{f' of {size_text(sizes)}' if sizes else ''}"
    return Entry(size.since, "status", "Normal", "Desired", f"decided: {text}")


def _failed(status: HvpaStatus) -> Iterator[Entry]:
    error = status.last_error
    if error is not None and error.last_update_time is not None:
        message = f"{error.last_operation or 'a write'}: {error.description}"
        yield Entry(error.last_update_time, "status", "Warning", "LastError", message)
    axes = (status.axes.horizontal, status.axes.vertical) if status.axes is not None else ()
    for axis in axes:
        if axis is not None and axis.refused is not None:
            yield Entry(axis.refused.time, "status", "Warning", "Refused", refused(axis.refused))


def history(
    hvpa: HvpaObject, events: Iterable[RecordedEvent], since: dt.datetime | None
) -> tuple[Entry, ...]:
    """All entries from `since` on, newest last."""
    found = [entry for event in events if (entry := event.entry()) is not None]
    found += of_status(hvpa)
    return tuple(
        sorted((one for one in found if since is None or one.time >= since), key=lambda one: one.time)
    )
