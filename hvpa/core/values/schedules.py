"""Cron expressions: the days on which they match, and the next or last start.

Days are found by arithmetic on months and weekdays. croniter, which handles the time of day and clock changes, starts
near such a day, so it never searches years for a distant or impossible day.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from copy import copy
from typing import Any, Final, NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterBadDateError, CroniterError, croniter

from hvpa.api.schema.cron import COUNT_MESSAGE, FIELDS, ZONE, ZONE_MESSAGE, schedule_fault

_RANDOM: Final = re.compile(r"\b[rh]\b", re.IGNORECASE | re.ASCII)
"""croniter's random and hashed fields."""
_EVERY_HOUR: Final = re.compile(r"\s*(@hourly|\S+\s+\*)")
"""Schedules without fixed hours: an alias, or a second field that starts with a star."""
_SOME_DAY: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_DAY: Final = dt.timedelta(days=1)
_YEAR: Final = 365 * _DAY
_MINUTE: Final = dt.timedelta(minutes=1)
_INSTANT: Final = dt.timedelta(microseconds=1)
_NEAR: Final = 2
"""Number of days around an origin that croniter searches from the origin itself: no zone's clock changes by more than a
day."""
_YEARS: Final = 50
"""Number of years to search for a day. The longest wait is for a weekday on 29 February: 40 years around 2100."""
_LENGTHS: Final = ((31,), (28, 29), (31,), (30,), (31,), (30,), (31,), (31,), (30,), (31,), (30,), (31,))
"""Days of each month. Over 400 years each length starts on each weekday."""
DAY_OF_MONTH: Final = 2
MONTH: Final = 3
DAY_OF_WEEK: Final = 4
"""Index of a field in an expression that croniter has expanded."""
_ANY: Final = "*"
_LAST: Final = "l"


class ScheduleError(Exception):
    """The error in a cron expression."""


class Schedule:
    """A cron expression of five fields, or an alias such as @daily, that matches at least one day."""

    def __init__(self, text: str) -> None:
        """Raises ScheduleError, which names the wrong field and its allowed values.

        croniter's random fields (`R`) are refused: a window must be at the same time for all readers.
        """
        fields = text.split()
        if not text.startswith("@") and len(fields) != len(FIELDS):
            raise ScheduleError(f"{COUNT_MESSAGE}; it is {text!r}")
        if (fault := schedule_fault(text)) is not None:
            raise ScheduleError(fault)
        if _RANDOM.search(text):
            why = "must be a fixed time: R and H (a random and a hashed time) are not supported"
            raise ScheduleError(f"{why}; it is {text!r}")
        try:
            # `_days` gives a day to search near, so a search never crosses more than one end of a year.
            self._steps: Any = croniter(text, _SOME_DAY, max_years_between_matches=1)
        except CroniterError as error:
            raise ScheduleError(_wrong_field(fields)) from error
        days = self._days = _Days(self._steps)
        self._every_hour = _EVERY_HOUR.match(text) is not None
        if not days.come_true():
            raise ScheduleError(f"must match at some time: {text!r} names a day that no month has")
        # croniter gives up if one of two sides is far away, even if the other side includes it.
        self._steps.expanded[DAY_OF_MONTH], self._steps.expanded[DAY_OF_WEEK] = days.searched

    def start(self, origin: dt.datetime, *, forward: bool) -> dt.datetime | None:
        """Returns the first start after `origin`, or the last start before it; None if there is none within 50 years.
        `origin` is in the schedule's zone, the result in UTC.

        When clocks are set back, an hour occurs twice. As in cron, a schedule with fixed hours starts only in the first
        of them, and a schedule with `*` or `*/n` hours in both.
        """
        today, step = origin.date(), 1 if forward else -1
        day = self._days.next(today - step * _NEAR * _DAY, step)
        if day is not None and (day - today).days * step <= _NEAR:
            try:
                return self._find_start(origin, forward)
            except CroniterBadDateError:
                day = self._days.next(today + step * (_NEAR + 1) * _DAY, step)
        if day is None:
            return None
        near = dt.datetime.combine(day - step * _NEAR * _DAY, dt.time(), origin.tzinfo)
        return self._find_start(near, forward)

    def _find_start(self, origin: dt.datetime, forward: bool) -> dt.datetime:
        """Returns the start that croniter finds from here. Raises CroniterBadDateError."""
        while True:
            steps = copy(self._steps)  # a search changes it, and another thread may search too
            find = steps.get_next if forward else steps.get_prev
            start: dt.datetime = find(dt.datetime, start_time=origin)
            if self._every_hour or not _is_second_time(start):
                return start.astimezone(dt.UTC)
            origin = _beyond_second_time(start, forward)


def _is_second_time(local: dt.datetime) -> bool:
    """Whether the clock shows this time again because it was set back."""
    return bool(local.fold) and local.utcoffset() != local.replace(fold=0).utcoffset()


def _beyond_second_time(local: dt.datetime, forward: bool) -> dt.datetime:
    """Returns the origin of the next search, past the repeated hour."""
    zone, step = local.tzinfo, _MINUTE if forward else -_MINUTE
    while _is_second_time(local):
        local = (local.astimezone(dt.UTC) + step).astimezone(zone)
    # The search includes the minute that was found, in both directions.
    return (local.astimezone(dt.UTC) + (-_INSTANT if forward else _INSTANT)).astimezone(zone)


class _Days:
    """The days on which an expression matches. As in croniter, a day must match the month field and the weekday field;
    if both are restricted, one of the two is enough. A field with W or # applies to both sides of that "or", so the
    wider side covers everything."""

    def __init__(self, steps: Any) -> None:
        months, self.searched = (
            steps.expanded[MONTH],
            (steps.expanded[DAY_OF_MONTH], steps.expanded[DAY_OF_WEEK]),
        )
        self._months: list[int] = [*range(1, 13)] if _ANY in months else sorted(set(months))
        self._nth: dict[Any, set[Any]] = steps.nth_weekday_of_month
        """`FRI#2` as {5: {2}}."""
        self._nearest: set[int] = steps.nearest_weekday
        """`15W` as {15}."""
        of_month, of_week = self.searched
        self._sides = [self.searched]
        """Days of the month and days of the week, as croniter expands them."""
        if of_month[0] != _ANY and of_week[0] != _ANY:
            self._sides = [(of_month, [_ANY]), ([_ANY], of_week)]
        self._all_sides = bool(self._nth or self._nearest)
        if len(self._sides) > 1 and self._all_sides:
            self.searched = self._sides[1 if self._nth else 0]
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def come_true(self) -> bool:
        """Whether any month of any year has such a day. croniter refuses an expression with W or # if one side never
        matches."""
        lengths = {length for month in self._months for length in _LENGTHS[month - 1]}
        kinds = [(first, length) for length in lengths for first in range(7)]
        are_true = [any(self._of_side(*kind, *side) for kind in kinds) for side in self._sides]
        return all(are_true) if self._all_sides else any(are_true)

    def next(self, day: dt.date, step: int) -> dt.date | None:
        """Returns the first such day from `day` on (`step` 1), or the last such day up to it (-1); None within 50
        years."""
        for year, month in self._walk_months(day, step):
            first = dt.date(year, month, 1)
            length = _LENGTHS[month - 1][-1] if month != 2 or _is_leap(year) else 28
            for number in self._of(first.weekday(), length)[::step]:
                matching = first.replace(day=number)
                if (matching - day).days * step >= 0:
                    return matching
        return None

    def _walk_months(self, day: dt.date, step: int) -> Iterator[tuple[int, int]]:
        for years in range(_YEARS + 1):
            year = day.year + step * years
            if not dt.MINYEAR < year < dt.MAXYEAR:
                return
            for month in self._months[::step]:
                if years or (month - day.month) * step >= 0:
                    yield year, month

    def _of(self, first: int, length: int) -> tuple[int, ...]:
        """Returns the matching days of a month with `length` days whose first day is this weekday (0 is Monday)."""
        known = self._known.get((first, length))
        if known is None:
            days = set[int]().union(*(self._of_side(first, length, *side) for side in self._sides))
            known = self._known[first, length] = tuple(sorted(days))
        return known

    def _of_side(self, first: int, length: int, of_month: list[Any], of_week: list[Any]) -> set[int]:
        return self._in_month(first, length, of_month) & self._in_week(first, length, of_week)

    def _in_month(self, first: int, length: int, days: list[Any]) -> set[int]:
        if self._nearest:
            return {_nearest_weekday(day, first, length) for day in self._nearest}
        if _ANY in days:
            return set(range(1, length + 1))
        return {length if day == _LAST else day for day in days if day == _LAST or day <= length}

    def _in_week(self, first: int, length: int, weekdays: list[Any]) -> set[int]:
        if self._nth:
            pairs = [(weekday, nth) for weekday, every in self._nth.items() for nth in every]
            return set().union(*(_nth_weekday(weekday, nth, first, length) for weekday, nth in pairs))
        if _ANY in weekdays:
            return set(range(1, length + 1))
        return {day for day in range(1, length + 1) if (first + day) % 7 in weekdays}  # 0 is Sunday here


def _nth_weekday(weekday: Any, nth: Any, first: int, length: int) -> list[int]:
    """Returns the nth such weekday of the month (`l`: the last); empty if the month has fewer."""
    days = [day for day in range(1, length + 1) if (first + day) % 7 == weekday]
    if nth == _LAST:
        return days[-1:]
    return days[nth - 1 : nth]


def _nearest_weekday(day: int, first: int, length: int) -> int:
    """Returns the weekday (Monday to Friday) nearest to a day, in the same month."""
    day = min(day, length)
    match (first + day - 1) % 7:
        case 5:  # Saturday
            return day - 1 if day > 1 else day + 2
        case 6:
            return day + 1 if day < length else day - 2
    return day


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _wrong_field(fields: list[str]) -> str:
    """Returns the field that croniter refuses when all other fields are stars."""
    for index, (field, text) in enumerate(zip(FIELDS, fields, strict=False)):
        alone = ["*"] * len(FIELDS)
        alone[index] = text
        if not croniter.is_valid(" ".join(alone)):
            return f"{field.message}; it is {text!r}"
    return f"{COUNT_MESSAGE}; it is {' '.join(fields)!r}"


# --- starts around now ----------------------------------------------------------------------------------------------
class Recurring(Protocol):
    """A window or a floor of a spec. `derived` stores its results as long as the spec has it, so no other Hvpa can
    displace them."""

    @property
    def schedule(self) -> str:
        """Cron expression."""

    @property
    def time_zone(self) -> str:
        """IANA name."""

    @property
    def derived(self) -> dict[Any, Any]:
        """Stored results."""


Starts = tuple[dt.datetime | None, dt.datetime | None]


class Occurrences:
    """The starts of a schedule in a zone. The starts around an instant are stored as long as they are valid."""

    def __init__(self, schedule: Schedule, zone: ZoneInfo) -> None:
        self._schedule, self._zone = schedule, zone
        self._kept: tuple[dt.datetime, dt.datetime, Starts] | None = None
        """The stored starts, and the instants between which they are valid."""

    def around(self, now: dt.datetime) -> Starts:
        """Returns the last start up to now and the first start after it; None if there is none within 50 years."""
        kept = self._kept
        if kept is not None and kept[0] <= now < kept[1]:
            return kept[2]
        # croniter excludes the instant it starts from; a window that opens at this instant is open.
        previous = self._schedule.start((now + _INSTANT).astimezone(self._zone), forward=False)
        following = self._schedule.start(now.astimezone(self._zone), forward=True)
        # Without a following start, the result is stored for a year: long enough that no one notices.
        self._kept = (previous or now, following or now + _YEAR, (previous, following))
        return previous, following


class ParsedSchedule(NamedTuple):
    """A window or floor after parsing."""

    schedule: str | None
    """Error of the schedule; None if it is valid."""
    time_zone: str | None
    """Error of the time zone; None if it is valid."""
    occurrences: Occurrences | None
    """Starts of the schedule."""


def parsed_schedule(recurring: Recurring) -> ParsedSchedule:
    """Returns the parsed schedule and zone of a window or floor. They are parsed once, as long as the spec has it."""
    key = (recurring.schedule, recurring.time_zone)
    known: ParsedSchedule | None = recurring.derived.get(key)
    if known is None:
        known = recurring.derived[key] = _read(*key)
    return known


def _read(text: str, name: str) -> ParsedSchedule:
    zone = zone_of(name)
    unknown = None if zone is not None else f"{ZONE_MESSAGE}; it is {name!r}"
    try:
        schedule = Schedule(text)
    except ScheduleError as error:
        return ParsedSchedule(str(error), unknown, None)
    return ParsedSchedule(None, unknown, None if zone is None else Occurrences(schedule, zone))


def zone_of(name: str) -> ZoneInfo | None:
    """Returns the zone of this name in the IANA time zone database; None if there is none."""
    if ZONE.fullmatch(name) is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # OSError: a folder of zones, such as Europe
        return None
