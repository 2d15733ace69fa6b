"""`hvpa history`: the changes of an Hvpa, with times and reasons, newest last. Writes nothing.

The sources are the Events that the API server still has, and the times in the status.
"""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import HvpaStatus, LastScaling
from hvpa.api.objects.read_models import Instant, Meta
from hvpa.api.values.duration import DurationError, parse_duration
from hvpa.api.values.text import counted, printable
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.arguments import add_cluster, add_hvpa, add_operator, add_output, instant
from hvpa.cli.errors import DONE
from hvpa.cli.explain.words import readable, refused, size_text
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.cli.input.operator import DEFAULT_LEASE, OperatorState, operator_state
from hvpa.cli.output import Json, indented, table, timestamp
from hvpa.core.actuation.desired import sizes_of
from hvpa.core.report.remedies import needs_action
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.pages import ListPage, read_list
from hvpa.kube.client.paths import escaped_path
from hvpa.kube.clock import SystemClock
from hvpa.kube.objects.resources import HVPAS
from hvpa.reconcile.ports import Key

_FORBIDDEN: Final = 403
_KEPT: Final = (
    "Kubernetes keeps Events for an hour by default (kube-apiserver --event-ttl). The status stores only the last "
    "change of each kind."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add_hvpa(add)
    since = "oldest change to show: an RFC 3339 time, or a duration before now, such as 30m (default: all changes)"
    add("--since", type=_since, metavar="TIME", help=since)
    add_output(add)
    add_cluster(add)
    add_operator(add)


def main(args: argparse.Namespace) -> int:
    """Show the history of an Hvpa. Raises CommandError."""
    hvpa, entries, problem, operator = read_cluster(lambda reader: _read(reader, args), "hvpa-history", args)
    since = args.since
    if isinstance(since, dt.timedelta):
        since = _before(SystemClock().now(), since)
    entries = [entry for entry in entries if since is None or entry.time >= since]
    if args.output == "json":
        print(indented(as_json(hvpa, entries, problem, operator)))
    else:
        notes = [note for note in (operator.text(SystemClock().now()), problem) if note]
        print(_text(hvpa, entries, notes))
    return DONE


def _since(text: str) -> dt.timedelta | dt.datetime:
    """`--since`: a duration or a time."""
    try:
        return parse_duration(text)
    except DurationError:
        return instant(text)


def _before(now: dt.datetime, duration: dt.timedelta) -> dt.datetime | None:
    try:
        return now - duration
    except OverflowError:  # before the calendar's first year
        return None


class HistoryEntry(NamedTuple):
    """An occurrence at `time`; a repeated Event has `times` occurrences since `first`."""

    time: dt.datetime
    source: Literal["Event", "spec", "status"]
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
    """The used fields of an Event of the core API."""

    metadata: _EventMeta
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: Instant | None = None
    last_timestamp: Instant | None = None
    event_time: Instant | None = None
    series: _Series | None = None

    def entry(self) -> HistoryEntry | None:
        """The Event as an entry; None if it has no time."""
        series = self.series or _Series()
        last = series.last_observed_time or self.last_timestamp or self.event_time
        last = last or self.metadata.creation_timestamp
        if last is None:
            return None
        count = max(1, series.count, self.count or 0)
        first = self.first_timestamp or self.event_time or last
        return HistoryEntry(
            last, "Event", self.type, self.reason, self.message, count, first if count > 1 else None
        )


def entries_of(hvpa: HvpaObject, events: Iterable[RecordedEvent]) -> list[HistoryEntry]:
    """The entries of an Hvpa from these Events and its status, oldest first."""
    entries = [*(recorded for event in events if (recorded := event.entry()) is not None), *of_status(hvpa)]
    return sorted(entries, key=lambda entry: entry.time)


async def _read(
    reader: Reader, args: argparse.Namespace
) -> tuple[HvpaObject, list[HistoryEntry], str, OperatorState]:
    """The Hvpa with its history, why its Events can't be read (empty if they can), and the state of the operator."""
    hvpa = await reader.hvpa(args.name)
    key = Key(str(reader.namespace), args.name)
    operator = await operator_state(reader.transport, args.operator_lease or DEFAULT_LEASE, key)
    events, problem = await read_events(reader, hvpa.metadata)
    entries = [*entries_of(hvpa, events), *await _read_modes(reader, hvpa.metadata)]
    return hvpa, sorted(entries, key=lambda entry: entry.time), problem, operator


class _Manager(msgspec.Struct, rename="camel"):
    manager: str = ""
    operation: str = ""
    time: Instant | None = None
    fields: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class _ManagedMeta(msgspec.Struct, rename="camel"):
    managed_fields: list[_Manager] = []


class _Mode(msgspec.Struct):
    mode: str = "Apply"


class _Managed(msgspec.Struct):
    metadata: _ManagedMeta
    spec: _Mode = msgspec.field(default_factory=_Mode)


async def _read_modes(reader: Reader, meta: Meta) -> list[HistoryEntry]:
    """The clients that set spec.mode, and the last write of each, from `metadata.managedFields`."""
    try:
        response = await reader.transport.request("GET", HVPAS.path(meta.namespace, meta.name))
        managed = msgspec.json.decode(response, type=_Managed)
    except (ApiError, msgspec.MsgspecError):  # a client that may list may still not be allowed to get
        return []
    return [
        HistoryEntry(
            manager.time,
            "spec",
            "Normal",
            "Mode",
            f"mode {managed.spec.mode}, set by {manager.manager} ({manager.operation})",
        )
        for manager in managed.metadata.managed_fields
        if manager.time is not None and "f:mode" in (manager.fields.get("f:spec") or {})
    ]


async def read_events(reader: Reader, meta: Meta) -> tuple[Sequence[RecordedEvent], str]:
    """The Events of an Hvpa, and why they can't be read (empty if they can)."""
    selector = {"kind": "Hvpa", "name": meta.name, "uid": meta.uid}
    query = {"fieldSelector": ",".join(f"involvedObject.{key}={value}" for key, value in selector.items())}
    events: list[RecordedEvent] = []

    def collect(page: ListPage) -> None:
        events.extend(msgspec.json.decode(item, type=RecordedEvent) for item in page.items or ())

    try:
        path = escaped_path("api", "v1", "namespaces", meta.namespace, "events")
        await read_list(reader.transport, path, collect, query)
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        return (), f"Events can't be read: {error}"
    return events, ""


# --- the status ---------------------------------------------------------------------------------------------------
def of_status(hvpa: HvpaObject) -> Iterator[HistoryEntry]:
    """The entries of the status: the last change of each kind."""
    status, created = hvpa.status, hvpa.metadata.creation_timestamp
    if created is not None:
        yield HistoryEntry(created, "status", "Normal", "Created", "the Hvpa was created")
    if status.last_scaling is not None and status.last_scaling.last_scale_time is not None:
        message = ", ".join(_scaled(status.last_scaling)) or "the last step"
        yield HistoryEntry(status.last_scaling.last_scale_time, "status", "Normal", "LastScaling", message)
    if (size := status.desired) is not None:
        sizes = sizes_of(size.containers)
        message = f"decided: {counted(size.replicas)}{f' of {size_text(sizes)}' if sizes else ''}"
        yield HistoryEntry(size.since, "status", "Normal", "Desired", message)
    for condition in status.conditions:
        if condition.last_transition_time is not None:
            kind = "Warning" if needs_action(condition) else "Normal"
            message = f"{condition.reason}: {condition.message}" if condition.message else condition.reason
            yield HistoryEntry(
                condition.last_transition_time,
                "status",
                kind,
                f"{condition.type}={condition.status}",
                message,
            )
    yield from _failed(status)


def _scaled(last: LastScaling) -> Iterator[str]:
    if last.hpa_status is not None:
        yield f"replicas {last.hpa_status.current_replicas} -> {last.hpa_status.desired_replicas}"
    if last.vpa_status is not None and last.vpa_status.recommendation is not None:
        for container in last.vpa_status.recommendation.container_recommendations:
            amounts = [f"{name} {readable(name, amount)}" for name, amount in container.target.items()]
            yield f"{' '.join(amounts)} of {container.container_name}"


def _failed(status: HvpaStatus) -> Iterator[HistoryEntry]:
    error = status.last_error
    if error is not None and error.last_update_time is not None:
        message = f"{error.last_operation or 'a write'}: {error.description}"
        yield HistoryEntry(error.last_update_time, "status", "Warning", "LastError", message)
    axes = (status.axes.horizontal, status.axes.vertical) if status.axes is not None else ()
    for axis in axes:
        if axis is not None and axis.refused is not None:
            yield HistoryEntry(axis.refused.time, "status", "Warning", "Refused", refused(axis.refused))


# --- the output ---------------------------------------------------------------------------------------------------
def _text(hvpa: HvpaObject, entries: Sequence[HistoryEntry], notes: Sequence[str]) -> str:
    lines = [f"Hvpa {hvpa.metadata.namespace}/{hvpa.metadata.name}"]
    lines += [f"Note: {note}" for note in notes]
    lines += ["", *table([("TIME", "FROM", "TYPE", "WHAT", "MESSAGE"), *map(_cells, entries)])]
    lines += ["", _KEPT] if entries else ["(nothing)", "", _KEPT]
    return "\n".join(map(printable, lines))


def _cells(entry: HistoryEntry) -> Sequence[str]:
    message = " ".join(entry.message.split())
    if entry.first is not None:
        message += f" ({entry.times} times since {readable_timestamp(entry.first)})"
    return (readable_timestamp(entry.time), entry.source, entry.type, entry.reason, message)


def as_json(
    hvpa: HvpaObject, entries: Iterable[HistoryEntry], problem: str, operator: OperatorState | None = None
) -> Json:
    """The history as JSON: a stable contract with its types and words in `docs/history.schema.json`."""
    return {
        "namespace": hvpa.metadata.namespace,
        "name": hvpa.metadata.name,
        "problem": problem or None,
        "operator": None if operator is None else operator.as_json(),
        "entries": [
            {
                "time": timestamp(entry.time),
                "source": entry.source,
                "type": entry.type,
                "reason": entry.reason,
                "message": entry.message,
                "count": entry.times,
                "first": timestamp(entry.first),
            }
            for entry in entries
        ],
    }
