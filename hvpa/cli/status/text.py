"""The state of an Hvpa as text: a head, and a table with one row for each pod."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from hvpa.api.hvpa.status import BlockedScaling
from hvpa.api.values.duration import readable_duration
from hvpa.api.values.text import printable
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.cli.explain.pods import STATES, PodRow, differences_text, size_text
from hvpa.cli.explain.words import readable, when
from hvpa.cli.status.view import View

COLUMNS: Final = ("POD", "READY", "RESTARTS", "PRESENT", "DESIRED", "STATE", "SINCE", "WHY")
_GAP: Final = "  "
_LABEL: Final = 11
"""Width of the labels of the head."""
NEW_PODS: Final = {
    True: "created with the desired size",
    False: "created with the template's size and resized once they run, without config/size-at-creation",
}
"""Which size new pods get, by whether the policy of config/size-at-creation is there."""


def to_text(view: View, now: dt.datetime) -> str:
    """The state as text, without a line break at the end. What others wrote can't break a line of it, nor move the
    terminal's cursor."""
    lines = [*_head(view, now), "", *(_table(view, now) or ["No pods."])]
    return "\n".join(printable(line) for line in lines)


def _head(view: View, now: dt.datetime) -> Iterable[str]:
    yield f"Hvpa {view.namespace}/{view.name}, target {view.target}, mode {view.mode}, {view.strategy}"
    for note in view.notes:
        yield _labelled("Note", note)
    for one in view.conditions:
        if one.type == "Ready" or (one.type in ("Paused", "Contested") and one.status == "True"):
            since = _since(one.last_transition_time, now)
            yield _labelled(one.type, f"{one.status}{since}, {one.reason}: {one.message}")
    for entry in view.blocked:
        yield _labelled("Held back", _held(entry, now))
    yield _labelled("Replicas", _replicas(view))
    decided = size_text(view.desired) if view.desired else "no other size than the template's was decided"
    yield _labelled("Desired", f"{decided}{_since(view.since, now)}")
    if view.actuation is not None:
        yield _labelled("Resized", _actuation(view))
        yield _labelled("New pods", NEW_PODS[view.actuation.size_at_creation])


def _labelled(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _since(instant: dt.datetime | None, now: dt.datetime) -> str:
    return "" if instant is None else f" since {readable_timestamp(instant)} ({_age(instant, now)})"


def _age(instant: dt.datetime, now: dt.datetime) -> str:
    return readable_duration(max(now - instant, dt.timedelta(0)))


def _held(entry: BlockedScaling, now: dt.datetime) -> str:
    what, pair = "replicas", [entry.current or "?", entry.wanted or "?"]
    if entry.container is not None:
        resource = entry.resource or ""
        what = f"{entry.container} {resource}"
        pair = [readable("cpu" if resource == "cpu" else "memory", one) for one in pair]
    until = "" if entry.until is None else f" until {when(entry.until, now)}"
    return f"{what} {' -> '.join(pair)}: {entry.reason}{until}"


def _replicas(view: View) -> str:
    if view.replicas is None:
        return "the workload is not there, or is not supported"
    text = f"{view.replicas}, {view.ready} ready"
    if view.desired_replicas in (None, view.replicas):
        return text
    return f"{text}; desired {view.desired_replicas}"


def _actuation(view: View) -> str:
    """What the operator counted last."""
    found = view.actuation
    assert found is not None
    counts = (
        ("in progress", found.in_progress),
        ("deferred", found.deferred),
        ("infeasible", found.infeasible),
        ("waiting", found.waiting),
    )
    parts = [found.resized or "0/0", *(f"{count} {name}" for name, count in counts if count)]
    return ", ".join(parts) + (f": {found.message}" if found.message else "")


def _table(view: View, now: dt.datetime) -> list[str]:
    if not view.pods:
        return []
    rows = [COLUMNS, *(_cells(one, now) for one in view.pods)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    return [_line(row, widths) for row in rows]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(row: PodRow, now: dt.datetime) -> Sequence[str]:
    """A row. `<5m` in column SINCE: for less than that, as nothing says since when."""
    since = "-" if row.since is None else f"{'' if row.exact else '<'}{_age(row.since, now)}".replace(" ", "")
    present, desired = size_text(row.present), size_text(row.desired)
    differences = differences_text(row)
    why = row.why or (STATES[row.state] if row.state in ("unknown", "old") else "")
    if present == desired and differences:
        why = "; ".join(part for part in (why, differences) if part)
    ready = "yes" if row.ready else "no"
    return (row.name, ready, str(row.restarts), present, desired, row.state.replace("_", " "), since, why)
