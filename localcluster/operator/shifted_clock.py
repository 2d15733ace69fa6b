"""A clock that a test can change while the operator runs: HVPA_CLOCK_OFFSET_FILE names a file with a number of seconds,
which the clock adds to the system's time at each reading. `with_faults` runs an operator with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

from hvpa.kube.clock import SystemClock
from hvpa.reconcile.ports import Clock

VARIABLE = "HVPA_CLOCK_OFFSET_FILE"


class ShiftedClock:
    """The system's clock plus the seconds in a file. A missing or invalid file adds nothing."""

    def __init__(self, file: Path) -> None:
        """Every reading of the time reads `file`."""
        self._file = file
        self._system = SystemClock()

    def now(self) -> dt.datetime:
        """Return the current time of the shifted clock, UTC."""
        now = self._system.now()
        try:
            return now + dt.timedelta(seconds=float(self._file.read_text()))
        except (OSError, ValueError, OverflowError):
            return now


def clock_of(environment: Mapping[str, str]) -> Clock:
    """Return the system's clock, or a shifted clock if HVPA_CLOCK_OFFSET_FILE is set."""
    file = environment.get(VARIABLE)
    return ShiftedClock(Path(file)) if file else SystemClock()
