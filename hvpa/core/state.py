"""What earlier decisions left behind: each axis's clock, what it set, and what that was blended from.

The record stands twice, in an annotation of the workload (written in one patch with the change itself) and in the
Hvpa's status. The newer one counts, so a crash between the two writes loses nothing (DESIGN 8).
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from functools import lru_cache

from hvpa.api.status import Axes, HorizontalAxis, HvpaStatus, VerticalAxis, to_wire

CLOCK_SKEW = dt.timedelta(minutes=1)
"""A recorded time further ahead than this is from a clock that was wrong, and holds nothing back."""
INSTANT = dt.timedelta(microseconds=1)
"""The shortest time that is told apart."""
_NO_AXES = Axes()
_LAST_INSTANT = dt.datetime.max.replace(tzinfo=dt.UTC)


def recorded_axes(
    status: HvpaStatus, annotation: str | None, now: dt.datetime
) -> tuple[HorizontalAxis, VerticalAxis]:
    """Both axes as last recorded. A status of gardener's controller knows one time for both; an annotation that can't
    be read counts as absent, and a time from a clock that was wrong is newer than none."""
    written = _read(annotation)
    known = status.axes
    if known is None and written is None:
        legacy = status.last_scaling.last_scale_time if status.last_scaling is not None else None
        return HorizontalAxis(last_scale_time=legacy), VerticalAxis(last_scale_time=legacy)
    known = known or _NO_AXES
    written = written or _NO_AXES
    return (
        _newer_horizontal(known.horizontal or HorizontalAxis(), written.horizontal, now),
        _newer_vertical(known.vertical or VerticalAxis(), written.vertical, now),
    )


@lru_cache(maxsize=8192)
def _read(annotation: str | None) -> Axes | None:
    if not annotation:
        return None
    try:
        return Axes.model_validate_json(annotation)
    except ValueError:
        return None


def _is_newer(one: dt.datetime | None, other: dt.datetime | None, now: dt.datetime) -> bool:
    if one is None or is_ahead(one, now):
        return False
    return other is None or is_ahead(other, now) or one > other


def _newer_horizontal(
    known: HorizontalAxis, written: HorizontalAxis | None, now: dt.datetime
) -> HorizontalAxis:
    if written is None or not _is_newer(written.last_scale_time, known.last_scale_time, now):
        return known
    return written.model_copy(update={"mailbox": known.mailbox})


def _newer_vertical(known: VerticalAxis, written: VerticalAxis | None, now: dt.datetime) -> VerticalAxis:
    if written is None or not _is_newer(written.last_scale_time, known.last_scale_time, now):
        return known
    return without_pending(written)


def without_pending(axis: VerticalAxis) -> VerticalAxis:
    """The axis without changes that wait."""
    return axis.model_copy(update={"pending": ()}) if axis.pending else axis


def annotation_text(horizontal: HorizontalAxis, vertical: VerticalAxis) -> str:
    """The annotation's text: what must be known after a crash, without what only the status needs."""
    axes = Axes(
        horizontal=horizontal.model_copy(update={"mailbox": None}),
        vertical=without_pending(vertical),
    )
    wire: Mapping[str, object] = to_wire(axes)
    return json.dumps(wire, separators=(",", ":"), sort_keys=True)


def held_until(last: dt.datetime | None, duration: dt.timedelta, now: dt.datetime) -> dt.datetime | None:
    """Until when a step at `last` holds the next one back; None when it does not (any more)."""
    if last is None or is_ahead(last, now):
        return None
    until = after(last, duration)
    return until if now < until else None


def is_ahead(recorded: dt.datetime, now: dt.datetime) -> bool:
    """Whether a recorded time is from a clock that was wrong."""
    return recorded - now > CLOCK_SKEW


def step_time(last: dt.datetime | None, now: dt.datetime) -> dt.datetime:
    """The time to record for a step made `now`: always later than the `last` one, though another operator's clock may
    have been a little ahead. Of two records the later one must be the later step."""
    if last is None or last < now or is_ahead(last, now):
        return now
    return last + INSTANT


def after(when: dt.datetime, duration: dt.timedelta) -> dt.datetime:
    """`when` plus `duration`, or the last instant there is where that is later (a duration may be 292 years)."""
    try:
        return when + duration
    except OverflowError:
        return _LAST_INSTANT
