"""Errors in a spec that a schema can't detect: invalid cron expressions and names of time zones that are well formed.

The models check their form (`hvpa.api.schema.cron`), as the API server does.
"""

from __future__ import annotations

from collections.abc import Iterator

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.schema.base import FieldError
from hvpa.core.values.schedules import Recurring, parsed_schedule


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
