"""Maintenance windows: is one open, and when does the next one open? (DESIGN 3.1, 3.2)

The daily window has a fixed offset from UTC. Cron windows are in a time zone: croniter steps through local time, so a
start that a daylight-saving change skips happens when the gap ends.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, croniter

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.values.clock import after

DAY = dt.timedelta(days=1)
REMEMBERED = 4096
"""Schedules of which the starts around now are kept. When there are more, it starts anew."""
_known: dict[tuple[str, str], tuple[dt.datetime, dt.datetime]] = {}
_EVERY_HOUR = re.compile(r"\s*(@hourly|\S+\s+\*)")
"""Schedules whose hours are not fixed: an alias, or a second field that begins with a star."""


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
        yield *starts(window.schedule, window.time_zone, now), window.duration


def starts(schedule: str, time_zone: str, now: dt.datetime) -> tuple[dt.datetime | None, dt.datetime | None]:
    """The last start up to now, and the first one after it. Kept until the latter: finding them takes up to a
    millisecond, and a spec may have a hundred windows."""
    known = _known.get((schedule, time_zone))
    if known is not None and known[0] <= now < known[1]:
        return known
    zone = ZoneInfo(time_zone)
    # get_prev excludes the instant it starts from; a window that opens at this very instant is open.
    just_after = (now + dt.timedelta(microseconds=1)).astimezone(zone)
    previous = _start(schedule, just_after, forward=False)
    following = _start(schedule, now.astimezone(zone), forward=True)
    if previous is not None and following is not None:
        if len(_known) >= REMEMBERED:
            _known.clear()
        _known[schedule, time_zone] = (previous, following)
    return previous, following


def _start(schedule: str, origin: dt.datetime, *, forward: bool) -> dt.datetime | None:
    """The next or previous start of a schedule in local time; None where there is none (30 February).

    When clocks are set back, an hour happens twice. As cron does, a schedule with fixed hours starts in the first of
    them only, one with `*` or `*/n` hours in both.
    """
    steps = croniter(schedule, origin)
    every_hour = _EVERY_HOUR.match(schedule) is not None
    while True:
        try:
            start: dt.datetime = steps.get_next(dt.datetime) if forward else steps.get_prev(dt.datetime)
        except CroniterBadDateError:
            return None
        is_second_time = start.fold and start.utcoffset() != start.replace(fold=0).utcoffset()
        if every_hour or not is_second_time:
            return start.astimezone(dt.UTC)
