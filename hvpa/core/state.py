"""The record that earlier decisions left: each axis's times, the values it set, and the targets they were blended from.

The record is stored twice: in an annotation of the workload (in the same patch as the change) and in the Hvpa's status.
The newer record counts, so a crash between the two writes loses nothing (DESIGN 8).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable

import msgspec

from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.hvpa.status import (
    Axes,
    FailedChange,
    FastRaise,
    HorizontalAxis,
    HvpaStatus,
    MemoryOverride,
    VerticalAxis,
    to_wire,
)
from hvpa.api.schema.base import read_json
from hvpa.api.values.quantity import MEMORY
from hvpa.core.values.clock import Clock
from hvpa.core.values.memo import remembered

INSTANT = dt.timedelta(microseconds=1)
"""The smallest difference between two times."""


def recorded_axes(
    status: HvpaStatus, annotation: str | None, clock: Clock
) -> tuple[HorizontalAxis, VerticalAxis]:
    """Return the last record of both axes. A status of gardener's controller has the same time for both. HVPA ignores
    an annotation that it can't read. A time in the future, from a wrong clock, counts as older than any other time, but
    as newer than no time."""
    written = _read(annotation) if annotation else None
    known = status.axes
    if known is None and written is None:
        legacy = status.last_scaling.last_scale_time if status.last_scaling is not None else None
        return HorizontalAxis(last_scale_time=legacy), VerticalAxis(
            last_scale_time=legacy, last_scale_up_time=legacy
        )
    known, written = known or Axes(), written or Axes()
    horizontal, vertical = known.horizontal or HorizontalAxis(), known.vertical or VerticalAxis()
    if written.horizontal is not None and _is_newer(written.horizontal, horizontal, clock):
        horizontal = written.horizontal.model_copy(update={"correction": horizontal.correction})
    if written.vertical is not None and _is_newer(written.vertical, vertical, clock):
        vertical = without_pending(written.vertical).model_copy(update={"history": vertical.history})
    return horizontal, vertical


@remembered
def _read(annotation: str) -> Axes | None:
    try:
        return read_json(Axes, annotation.encode())
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _is_newer(
    written: HorizontalAxis | VerticalAxis, known: HorizontalAxis | VerticalAxis, clock: Clock
) -> bool:
    written_at, known_at = written.last_scale_time, known.last_scale_time
    if written_at is None or known_at is None:
        return written_at is not None
    if clock.is_ahead(written_at) != clock.is_ahead(known_at):
        return clock.is_ahead(known_at)
    return written_at > known_at


def without_pending(axis: VerticalAxis) -> VerticalAxis:
    """Return the axis without changes that wait."""
    return axis.model_copy(update={"pending": ()})


def annotation_text(horizontal: HorizontalAxis, vertical: VerticalAxis) -> str:
    """Return the text of the annotation: the record that must survive a crash, without fields that only the status
    needs."""
    wire = {
        "horizontal": to_wire(horizontal.model_copy(update={"correction": None, "refused": None})),
        "vertical": to_wire(without_pending(vertical).model_copy(update={"refused": None, "history": ()})),
    }
    return json.dumps(wire, separators=(",", ":"), sort_keys=True)


def held_until(last: dt.datetime | None, duration: dt.timedelta, now: dt.datetime) -> dt.datetime | None:
    """Return until when a step at `last` delays the next step; None if it does not (any more)."""
    return Clock(now).held_until(last, duration)


def step_time(last: dt.datetime | None, clock: Clock) -> dt.datetime:
    """Return the time to record for a step made now: always later than `last`, even if another operator's clock was
    slightly ahead. The later of two records must be the later step."""
    now = clock.stamp()
    if last is None or last < now or clock.is_ahead(last):
        return now
    return last + INSTANT


def last_raise(axis: VerticalAxis) -> dt.datetime | None:
    """Returns when a request was last raised, by the fast signal or otherwise."""
    times = [raised.time for raised in axis.fast_raises]
    return max(
        [*times, *([] if axis.last_scale_up_time is None else [axis.last_scale_up_time])], default=None
    )


def before_fast(raises: Iterable[FastRaise], container: str, resource: str, request: int) -> int | None:
    """Returns the request before the fast signal raised it to this one; None if the fast signal did not set it."""
    key = (container, resource, request)
    found = (known.before for known in raises if (known.container, known.resource, known.request) == key)
    return next(found, None)


def restored(raises: Iterable[FastRaise], failed: Iterable[FailedChange]) -> tuple[FastRaise, ...]:
    """Returns the raises after the sizes that failed were rolled back: what is left of a raise is taken back later."""
    previous = {(change.container, change.resource, change.failed): change.previous for change in failed}
    found = []
    for known in raises:
        request = previous.get((known.container, known.resource, known.request), known.request)
        before = known.before if known.before is not None and known.before < request else None
        found.append(known.model_copy(update={"request": request, "before": before}))
    return tuple(found)


def with_rescues(
    axis: VerticalAxis, containers: Iterable[str], size: DesiredSize, clock: Clock
) -> VerticalAxis:
    """Return the record with raises in place of memory that was decided earlier, of containers that ran out of it. An
    OOM from before is one with less memory than that."""
    requests = {one.name: one.requests.get(MEMORY) for one in size.containers}
    known = {override.container: override for override in axis.overrides}
    for name in containers:
        known[name] = MemoryOverride(container=name, time=clock.stamp(), memory=requests[name])
    return axis.model_copy(update={"overrides": tuple(known[name] for name in sorted(known))})
