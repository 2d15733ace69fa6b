"""What a spec can get wrong and no schema can check: cron expressions and names of time zones that are well formed.

Their form is checked by the models (`hvpa.api.schema.cron`), as by the API server.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.windows import MaintenanceWindow, ScheduledFloor
from hvpa.api.schema.base import FieldError
from hvpa.api.schema.cron import COUNT_MESSAGE, FIELDS, ZONE, ZONE_MESSAGE, schedule_fault

_RANDOM: Final = re.compile(r"\b[rh]\b", re.IGNORECASE | re.ASCII)
"""croniter's random and hashed fields."""
_SOME_DAY: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""Where the search for a first match starts; any day does."""


def spec_problems(spec: HvpaSpec) -> tuple[FieldError, ...]:
    """What is wrong with the schedules and time zones of floors and maintenance windows, each with its path."""
    problems: list[FieldError] = []
    for index, floor in enumerate(spec.hpa.schedule):
        problems += _problems(f"spec.hpa.schedule[{index}]", floor)
    for index, window in enumerate(spec.maintenance_windows):
        problems += _problems(f"spec.maintenanceWindows[{index}]", window)
    return tuple(problems)


def _problems(path: str, one: ScheduledFloor | MaintenanceWindow) -> Iterator[FieldError]:
    if (problem := schedule_problem(one.schedule)) is not None:
        yield FieldError(f"{path}.schedule", problem)
    if not is_time_zone(one.time_zone):
        yield FieldError(f"{path}.timeZone", f"{ZONE_MESSAGE}; it is {one.time_zone!r}")


@lru_cache(maxsize=1024)
def schedule_problem(text: str) -> str | None:
    """Why this is no expression of five fields, and no alias such as @daily, that comes true at some time; None where
    it is one. Names the field that is wrong, and what may stand in it.

    croniter's random fields (`R`) are none: a window must be at the same time for whoever asks.
    """
    fields = text.split()
    if not text.startswith("@") and len(fields) != len(FIELDS):
        return f"{COUNT_MESSAGE}; it is {text!r}"
    if (fault := schedule_fault(text)) is not None:
        return fault
    if _RANDOM.search(text):
        return f"must be the same time for all: R and H (a random and a hashed time) are not known; it is {text!r}"
    if not croniter.is_valid(text):
        return _wrong_field(fields)
    try:
        croniter(text, _SOME_DAY).get_next()
    except CroniterError:  # the 30th of February
        return f"must come true at some time: {text!r} names a day that no month has"
    return None


def _wrong_field(fields: list[str]) -> str:
    """Which field croniter refuses by itself, the others being stars."""
    for index, (field, found) in enumerate(zip(FIELDS, fields, strict=False)):
        alone = ["*"] * len(FIELDS)
        alone[index] = found
        if not croniter.is_valid(" ".join(alone)):
            return f"{field.message}; it is {found!r}"
    return f"{COUNT_MESSAGE}; it is {' '.join(fields)!r}"


@lru_cache(maxsize=1024)
def is_time_zone(name: str) -> bool:
    """Whether the IANA time zone database has a zone of this name."""
    if ZONE.fullmatch(name) is None:
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # OSError: a folder of zones, such as Europe
        return False
    return True
