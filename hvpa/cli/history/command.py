"""`hvpa history`: what changed of one Hvpa, when and why, newest last. Writes nothing."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.values.duration import DurationError, parse_duration
from hvpa.api.values.text import printable
from hvpa.api.values.timestamp import format_timestamp, readable_timestamp
from hvpa.cli.arguments import add_cluster, instant
from hvpa.cli.errors import DONE
from hvpa.cli.explain.json import indented
from hvpa.cli.history.entries import Entry, RecordedEvent, history
from hvpa.cli.input.live import Reader, read_cluster
from hvpa.kube.client.errors import ApiError
from hvpa.kube.client.pages import Page, read_list
from hvpa.kube.clock import SystemClock

NAME = "history"
HELP = "show what changed of an Hvpa, when and why, newest last; write nothing"
_FORBIDDEN: Final = 403
_KEPT: Final = (
    "Kubernetes keeps Events for an hour, unless kube-apiserver's --event-ttl says otherwise. Of what is older, the"
    " status remembers the last change of each kind."
)


class _Found(NamedTuple):
    """An Hvpa with its Events, and why these could not be read (empty: they were)."""

    hvpa: HvpaObject
    events: Sequence[RecordedEvent] = ()
    problem: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add = parser.add_argument
    add("name", metavar="NAME", help="the Hvpa")
    add("-n", "--namespace", help="the Hvpa's namespace (default: the kubeconfig's)")
    add(
        "--since",
        type=_since,
        metavar="TIME",
        help="only what happened since this RFC 3339 time, or within this duration, such as 30m (default: everything)",
    )
    add("-o", "--output", choices=("text", "json"), default="text", help="default: text")
    add_cluster(add)


def main(args: argparse.Namespace) -> int:
    """Show the history of one Hvpa. Raises CommandError."""
    found = read_cluster(lambda reader: _read(reader, args.name), "hvpa-history", args)
    since = args.since
    if isinstance(since, dt.timedelta):
        since = _before(SystemClock().now(), since)
    entries = history(found.hvpa, found.events, since)
    print(
        _json(found, entries) if args.output == "json" else "\n".join(map(printable, _text(found, entries)))
    )
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


async def _read(reader: Reader, name: str) -> _Found:
    hvpa = await reader.hvpa(name)
    meta = hvpa.metadata
    selector = {"kind": "Hvpa", "name": meta.name, "uid": meta.uid}
    query = {"fieldSelector": ",".join(f"involvedObject.{key}={value}" for key, value in selector.items())}
    events: list[RecordedEvent] = []

    def take(page: Page) -> None:
        events.extend(msgspec.json.decode(item, type=RecordedEvent) for item in page.items or ())

    try:
        await read_list(reader.transport, f"/api/v1/namespaces/{meta.namespace}/events", take, query)
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        return _Found(hvpa, problem=f"Events can't be read: {error}")
    return _Found(hvpa, events)


def _text(found: _Found, entries: Sequence[Entry]) -> Iterable[str]:
    meta = found.hvpa.metadata
    yield f"Hvpa {meta.namespace}/{meta.name}"
    if found.problem:
        yield f"Note: {found.problem}"
    yield ""
    rows = [("TIME", "FROM", "TYPE", "WHAT", "MESSAGE"), *map(_cells, entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for *cells, message in rows:
        padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
        yield "  ".join([*padded, message]).rstrip()
    if not entries:
        yield "(nothing)"
    yield ""
    yield _KEPT


def _cells(one: Entry) -> tuple[str, str, str, str, str]:
    message = " ".join(one.message.split())
    if one.first is not None:
        message += f" ({one.times} times since {readable_timestamp(one.first)})"
    return (readable_timestamp(one.time), one.source, one.type, one.reason, message)


def _json(found: _Found, entries: Sequence[Entry]) -> str:
    """A stable contract, whose types and words are in `docs/history.schema.json`."""
    meta = found.hvpa.metadata
    return indented(
        {
            "namespace": meta.namespace,
            "name": meta.name,
            "problem": found.problem or None,
            "entries": [
                {
                    "time": format_timestamp(one.time),
                    "source": one.source,
                    "type": one.type,
                    "reason": one.reason,
                    "message": one.message,
                    "count": one.times,
                    "first": None if one.first is None else format_timestamp(one.first),
                }
                for one in entries
            ],
        }
    )
