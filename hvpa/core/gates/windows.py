"""Maintenance windows: whether a window is open, and when the next window opens (DESIGN 3.1, 3.2).

The daily window has a fixed offset from UTC. Cron windows have a time zone: croniter steps through local time, so a
start that a daylight-saving change skips happens at the end of the gap.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.values.clock import after
from hvpa.core.values.schedules import Recurring, parsed_schedule

DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WindowState:
    """State of all maintenance windows together."""

    open: bool
    opens_at: dt.datetime | None = None
    """If no window is open: when the next window opens; None: never."""
    closes_at: dt.datetime | None = field(default=None, compare=False)
    """If a window is open: when it closes."""


def window_state(spec: HvpaSpec, now: dt.datetime) -> WindowState:
    """Returns the state of all windows of a spec together."""
    openings: list[dt.datetime] = []
    for previous, following, duration in _starts_around(spec, now):
        if previous is not None and now < (end := after(previous, duration)):
            return WindowState(True, closes_at=end)
        if following is not None:
            openings.append(following)
    return WindowState(False, min(openings, default=None))


def _starts_around(
    spec: HvpaSpec, now: dt.datetime
) -> Iterable[tuple[dt.datetime | None, dt.datetime | None, dt.timedelta]]:
    """Yields for each window its last start up to now, its next start, and its duration."""
    if (daily := spec.maintenance_time_window) is not None:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        begin = midnight + dt.timedelta(seconds=daily.begin_seconds)
        begin -= DAY if begin > now else dt.timedelta()
        yield begin, begin + DAY, dt.timedelta(seconds=(daily.end_seconds - daily.begin_seconds) % 86_400)
    for window in spec.maintenance_windows:
        yield *starts(window, now), window.duration


def starts(recurring: Recurring, now: dt.datetime) -> tuple[dt.datetime | None, dt.datetime | None]:
    """Returns the last start of a window or floor up to now, and the first start after it; None if there is none, or if
    the schedule is invalid."""
    occurrences = parsed_schedule(recurring).occurrences
    return (None, None) if occurrences is None else occurrences.around(now)
