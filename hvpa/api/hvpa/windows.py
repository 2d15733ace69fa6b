"""Times by the clock: maintenance windows, the daily one and those by cron expression, and floors of replicas."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, StringConstraints

from hvpa.api.schema.base import Rule, SpecModel, keeps
from hvpa.api.schema.cron import SCHEDULE_RULES, ZONE, ZONE_MESSAGE, ZONE_RULES, schedule_fault
from hvpa.api.schema.fields import FloorDuration, PositiveCount, PositiveDuration

DAY_SECONDS: Final = 86_400
MOST_WINDOWS: Final = 20
"""Longest list of windows or floors. Each takes up to 1.5 ms of CPU when it is read for the first time
(`python -m benchmarks hostile`), and the largest spec must decide within 50 ms."""
_TIME_LENGTH: Final = 11
_TIME_PATTERN: Final = r"^([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])([+-])([01][0-9]|2[0-3])([0-5][0-9])$"
_TIME: Final = re.compile(_TIME_PATTERN.replace("$", r"\Z"), re.ASCII)


def _cel_seconds(field: str) -> str:
    """CEL for the UTC second of day of a well-formed time, up to whole days."""
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
    """A daily window from begin up to, not including, end. It may cross midnight."""

    RULES = (
        Rule(
            f"!self.begin.matches(r'{_TIME_PATTERN}') || !self.end.matches(r'{_TIME_PATTERN}')"
            f" || ({_cel_seconds('begin')} - {_cel_seconds('end')}) % {DAY_SECONDS} != 0",
            lambda window: window.begin_seconds != window.end_seconds,
            "must be another time than begin",
            ".end",
        ),
    )

    begin: _Time
    """Begin: HHMMSS and zone, such as 220000+0100."""
    end: _Time
    """End: HHMMSS and zone, such as 230000+0100."""

    @property
    def begin_seconds(self) -> int:
        """Begin as second of the day in UTC, 0 to 86399."""
        return _second_of_day(self.begin)

    @property
    def end_seconds(self) -> int:
        """End as second of the day in UTC, 0 to 86399."""
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
    """What happens by a cron expression."""

    @cached_property
    def derived(self) -> dict[Any, Any]:
        """What was found out about this schedule. It is kept here, so that it lives as long as the spec, and so that no
        other Hvpa can displace it."""
        return {}


class MaintenanceWindow(_Recurring):
    """A window that opens by a cron expression and stays open for a while."""

    schedule: _Schedule
    """Cron expression of five fields: when the window opens."""
    duration: PositiveDuration
    """How long it stays open (a Go duration, such as 2h)."""
    time_zone: _TimeZone = "UTC"
    """IANA name of the time zone in which the schedule is read."""


class ScheduledFloor(_Recurring):
    """A number of replicas that there are at least, from each start by a cron expression on, for a while."""

    schedule: _Schedule
    """Cron expression of five fields: when the floor begins."""
    duration: FloorDuration
    """How long it lasts (a Go duration, such as 9h; 168h at most)."""
    time_zone: _TimeZone = "UTC"
    """IANA name of the time zone in which the schedule is read."""
    min_replicas: PositiveCount
    """How many replicas there are at least meanwhile, and never more than maxReplicas."""


def _second_of_day(time: str) -> int:
    """UTC second of the day of a well-formed time."""
    hours, minutes, seconds, zone_hours, zone_minutes = (int(time[at : at + 2]) for at in (0, 2, 4, 7, 9))
    zone = (zone_hours * 3600 + zone_minutes * 60) * (1 if time[6] == "+" else -1)
    return (hours * 3600 + minutes * 60 + seconds - zone) % DAY_SECONDS
