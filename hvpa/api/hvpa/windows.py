"""Recurring times: the daily maintenance window, maintenance windows by cron expression, and minimum replicas by
schedule and by forecast (`spec.forecast`, docs/decisions/0036)."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from hvpa.api.schema.base import Rule, SpecModel, keeps
from hvpa.api.schema.cron import SCHEDULE_RULES, ZONE, ZONE_MESSAGE, ZONE_RULES, schedule_fault
from hvpa.api.schema.fields import FloorDuration, Percent, PositiveCount, PositiveDuration

DAY_SECONDS: Final = 86_400
MOST_WINDOWS: Final = 20
"""Maximum number of windows or floors. Each takes up to 1.5 ms of CPU when it is first read (`python -m benchmarks
hostile`), and a decision for the largest spec must take at most 50 ms."""
_TIME_LENGTH: Final = 11
_TIME_PATTERN: Final = r"^([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])([+-])([01][0-9]|2[0-3])([0-5][0-9])$"
_TIME: Final = re.compile(_TIME_PATTERN.replace("$", r"\Z"), re.ASCII)


def _cel_seconds(field: str) -> str:
    """Returns CEL for the UTC second of the day of a well-formed time, plus or minus whole days."""
    hours, minutes, seconds, zone_hours, zone_minutes = (
        f"int(self.{field}.substring({at}, {at + 2}))" for at in (0, 2, 4, 7, 9)
    )
    sign = f"(self.{field}.substring(6, 7) == '+' ? 1 : -1)"
    zone = f"{sign} * ({zone_hours} * 3600 + {zone_minutes} * 60)"
    return f"({hours} * 3600 + {minutes} * 60 + {seconds} - {zone})"


_Time = Annotated[
    str,
    StringConstraints(strict=True, max_length=_TIME_LENGTH),
    *keeps(
        Rule(
            f"self.matches(r'{_TIME_PATTERN}')",
            lambda text: _TIME.match(text) is not None,
            "must be a time of day and a zone, HHMMSS+HHMM or HHMMSS-HHMM, such as 220000+0100",
        )
    ),
]


class MaintenanceTimeWindow(SpecModel):
    """A daily window from begin (inclusive) to end (exclusive). It may cross midnight."""

    RULES = (
        Rule(
            f"!self.begin.matches(r'{_TIME_PATTERN}') || !self.end.matches(r'{_TIME_PATTERN}')"
            f" || ({_cel_seconds('begin')} - {_cel_seconds('end')}) % {DAY_SECONDS} != 0",
            lambda window: window.begin_seconds != window.end_seconds,
            "must not be the same time as begin",
            ".end",
        ),
    )

    begin: _Time
    """Start of the window: HHMMSS and zone, such as 220000+0100."""
    end: _Time
    """End of the window: HHMMSS and zone, such as 230000+0100."""

    @property
    def begin_seconds(self) -> int:
        """Returns begin as second of the day in UTC, 0 to 86399."""
        return _second_of_day(self.begin)

    @property
    def end_seconds(self) -> int:
        """Returns end as second of the day in UTC, 0 to 86399."""
        return _second_of_day(self.end)


def _schedule(text: str) -> str:
    fault = schedule_fault(text)
    if fault is not None:
        raise ValueError(fault)
    return text


def _zone(name: str) -> str:
    if ZONE.fullmatch(name) is None:
        raise ValueError(f"{ZONE_MESSAGE}; it is {name!r}")
    return name


_Schedule = Annotated[
    str,
    StringConstraints(strict=True, min_length=1, max_length=200),
    AfterValidator(_schedule),
    Field(json_schema_extra={"x-kubernetes-validations": SCHEDULE_RULES}),
]
_TimeZone = Annotated[
    str,
    StringConstraints(strict=True, min_length=1, max_length=100),
    AfterValidator(_zone),
    Field(json_schema_extra={"x-kubernetes-validations": ZONE_RULES}),
]


class _Recurring(SpecModel):
    """Base of entries with a cron schedule."""

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """Cache for results calculated from this schedule. It lives as long as the spec, and no other Hvpa can evict
        it."""
        return {}


class MaintenanceWindow(_Recurring):
    """A maintenance window that opens by a cron expression."""

    schedule: _Schedule
    """Cron expression with five fields: when the window opens."""
    duration: PositiveDuration
    """How long the window stays open (a Go duration, such as 2h)."""
    time_zone: _TimeZone = "UTC"
    """Time zone of the schedule (IANA name)."""


class ScheduledFloor(_Recurring):
    """Minimum number of replicas for a time, which starts by a cron expression."""

    schedule: _Schedule
    """Cron expression with five fields: when the minimum starts to apply."""
    duration: FloorDuration
    """How long the minimum applies (a Go duration, such as 9h; at most 168h)."""
    time_zone: _TimeZone = "UTC"
    """Time zone of the schedule (IANA name)."""
    min_replicas: PositiveCount
    """Minimum number of replicas during this time. maxReplicas still applies."""


def _second_of_day(time: str) -> int:
    """Returns the UTC second of the day of a well-formed time."""
    hours, minutes, seconds, zone_hours, zone_minutes = (int(time[at : at + 2]) for at in (0, 2, 4, 7, 9))
    zone = (zone_hours * 3600 + zone_minutes * 60) * (1 if time[6] == "+" else -1)
    return (hours * 3600 + minutes * 60 + seconds - zone) % DAY_SECONDS


class Forecast(SpecModel):
    """Minimum number of replicas by time of day, from the replicas that were needed at the same time on previous days.
    HVPA uses it only while its error in the last 24 hours is at most 20 percent."""

    history: Literal["1d", "2d", "3d", "4d", "5d", "6d", "7d"] = "3d"
    """Number of previous days that the forecast uses: 1d to 7d."""
    quantile: Percent = 50
    """Which of the previous days to use for a time of day: 50 is the median, 0 is the day that needed the fewest
    replicas, 100 is the day that needed the most."""

    @property
    def days(self) -> int:
        """Returns the number of days."""
        return int(self.history.removesuffix("d"))
