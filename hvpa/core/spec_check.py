"""What a spec can get wrong and no schema can tell: cron expressions and names of time zones."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from hvpa.api.base import FieldError
from hvpa.api.spec import HvpaSpec

_CRON_FIELDS: Final = 5
"""Minute, hour, day of month, month, day of week, as for a CronJob; croniter knows seconds and years too."""
_RANDOM: Final = re.compile(r"\b[rh]\b", re.IGNORECASE | re.ASCII)
"""croniter's random and hashed fields."""
_SOME_DAY: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""Where the search for a first match starts; any day does."""
_ZONE_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*", re.ASCII)


def spec_problems(spec: HvpaSpec) -> tuple[FieldError, ...]:
    """What is wrong with the maintenance windows' schedules and time zones, each with its path."""
    problems = []
    for index, window in enumerate(spec.maintenance_windows):
        path = f"spec.maintenanceWindows[{index}]"
        if not is_schedule(window.schedule):
            message = f"{window.schedule!r} is not a cron expression of five fields"
            problems.append(FieldError(f"{path}.schedule", message))
        if not is_time_zone(window.time_zone):
            message = f"{window.time_zone!r} is not the name of a time zone, such as Europe/Berlin"
            problems.append(FieldError(f"{path}.timeZone", message))
    return tuple(problems)


@lru_cache(maxsize=1024)
def is_schedule(text: str) -> bool:
    """Whether this is an expression of five fields, or an alias such as @daily, and comes true at some time.

    croniter's random fields (`R`) are none: a window must be at the same time for whoever asks.
    """
    if not text.startswith("@") and (len(text.split()) != _CRON_FIELDS or _RANDOM.search(text)):
        return False
    if not croniter.is_valid(text):
        return False
    try:
        croniter(text, _SOME_DAY).get_next()
    except CroniterError:  # the 30th of February
        return False
    return True


@lru_cache(maxsize=1024)
def is_time_zone(name: str) -> bool:
    """Whether the IANA time zone database has a zone of this name."""
    if _ZONE_NAME.fullmatch(name) is None:
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError, ValueError):  # OSError: a folder of zones, such as Europe
        return False
    return True
