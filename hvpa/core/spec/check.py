"""Errors in a spec that a schema can't detect: invalid cron expressions and names of time zones that are well formed.

The models check their form (`hvpa.api.schema.cron`), as the API server does.
"""

from __future__ import annotations

from collections.abc import Iterator

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.schema.base import FieldError
from hvpa.core.values.schedules import Recurring, Schedule, ScheduleError, parsed_schedule, zone_of


def spec_problems(spec: HvpaSpec) -> tuple[FieldError, ...]:
    """Return the errors in schedules and time zones of floors and maintenance windows, each with its path."""
    problems: list[FieldError] = []
    for index, floor in enumerate(spec.hpa.schedule):
        problems += _problems(f"spec.hpa.schedule[{index}]", floor)
    for index, window in enumerate(spec.maintenance_windows):
        problems += _problems(f"spec.maintenanceWindows[{index}]", window)
    return tuple(problems)


def _problems(path: str, recurring: Recurring) -> Iterator[FieldError]:
    parsed = parsed_schedule(recurring)
    if parsed.schedule is not None:
        yield FieldError(f"{path}.schedule", parsed.schedule)
    if parsed.time_zone is not None:
        yield FieldError(f"{path}.timeZone", parsed.time_zone)


def schedule_problem(text: str) -> str | None:
    """Return why this is neither a cron expression of five fields nor an alias such as @daily that occurs at some time;
    None if it is."""
    try:
        Schedule(text)
    except ScheduleError as error:
        return str(error)
    return None


def is_time_zone(name: str) -> bool:
    """Return whether the IANA time zone database has a zone of this name."""
    return zone_of(name) is not None
