"""Maintenance windows: is one open, and when does the next one open? (DESIGN 3.1, 3.2)

The daily window has a fixed offset from UTC. Cron windows are in a time zone: croniter steps through local time, so a
start that a daylight-saving change skips happens when the gap ends.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.values.clock import after
from hvpa.core.values.schedules import Recurring, read

DAY = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WindowState:
    """Whether a window is open now, and when that one closes; if none is, when the next one opens (None: never)."""

    open: bool
    opens_at: dt.datetime | None = None
    closes_at: dt.datetime | None = field(default=None, compare=False)


def window_state(spec: HvpaSpec, now: dt.datetime) -> WindowState:
    """The state of all windows of a spec together."""
    openings: list[dt.datetime] = []
    for previous, following, duration in _around(spec, now):
        if previous is not None and now < (end := after(previous, duration)):
            return WindowState(True, closes_at=end)
        if following is not None:
            openings.append(following)
    return WindowState(False, min(openings, default=None))


def _around(
    spec: HvpaSpec, now: dt.datetime
) -> Iterable[tuple[dt.datetime | None, dt.datetime | None, dt.timedelta]]:
    """Of each window the last start up to now, the next one, and how long it is."""
    if (daily := spec.maintenance_time_window) is not None:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        begin = midnight + dt.timedelta(seconds=daily.begin_seconds)
        begin -= DAY if begin > now else dt.timedelta()
        yield begin, begin + DAY, dt.timedelta(seconds=(daily.end_seconds - daily.begin_seconds) % 86_400)
    for window in spec.maintenance_windows:
        yield *starts(window, now), window.duration


def starts(one: Recurring, now: dt.datetime) -> tuple[dt.datetime | None, dt.datetime | None]:
    """The last start of a window or a floor up to now, and the first one after it; None if there is none, as of a
    schedule that can't be read."""
    occurrences = read(one).occurrences
    return (None, None) if occurrences is None else occurrences.around(now)
