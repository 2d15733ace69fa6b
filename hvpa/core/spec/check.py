"""What a spec can get wrong and no schema can check: cron expressions and names of time zones that are well formed.

Their form is checked by the models (`hvpa.api.schema.cron`), as by the API server.
"""

from __future__ import annotations

from collections.abc import Iterator

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.schema.base import FieldError
from hvpa.core.values.schedules import Recurring, Schedule, ScheduleError, read, zone_of


def spec_problems(spec: HvpaSpec) -> tuple[FieldError, ...]:
    """What is wrong with the schedules and time zones of floors and maintenance windows, each with its path."""
    problems: list[FieldError] = []
    for index, floor in enumerate(spec.hpa.schedule):
        problems += _problems(f"spec.hpa.schedule[{index}]", floor)
    for index, window in enumerate(spec.maintenance_windows):
        problems += _problems(f"spec.maintenanceWindows[{index}]", window)
    return tuple(problems)


def _problems(path: str, one: Recurring) -> Iterator[FieldError]:
    found = read(one)
    if found.schedule is not None:
        yield FieldError(f"{path}.schedule", found.schedule)
    if found.time_zone is not None:
        yield FieldError(f"{path}.timeZone", found.time_zone)


def schedule_problem(text: str) -> str | None:
    """Why this is no expression of five fields, and no alias such as @daily, that comes true at some time; None if it
    is."""
    try:
        Schedule(text)
    except ScheduleError as error:
        return str(error)
    return None


def is_time_zone(name: str) -> bool:
    """Whether the IANA time zone database has a zone of this name."""
    return zone_of(name) is not None
