"""A clock that a test can shift while the operator runs: HVPA_CLOCK_OFFSET_FILE names a file that contains a number
of seconds. Each time the clock is read, it adds this number to the system's time. `with_faults` runs an operator
with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

from hvpa.kube.clock import SystemClock
from hvpa.reconcile.ports import TimeSource

VARIABLE = "HVPA_CLOCK_OFFSET_FILE"


class ShiftedClock:
    """The system's clock plus a number of seconds from a file. A file that is missing or holds no number shifts
    nothing."""

    def __init__(self, file: Path) -> None:
        """`file` is read whenever the time is read."""
        self._file = file
        self._system = SystemClock()

    def now(self) -> dt.datetime:
        """The present time of the shifted clock, UTC."""
        now = self._system.now()
        try:
            return now + dt.timedelta(seconds=float(self._file.read_text()))
        except (OSError, ValueError, OverflowError):
            return now


def clock_of(environment: Mapping[str, str]) -> TimeSource:
    """The clock to use: the system's, or a shifted clock if HVPA_CLOCK_OFFSET_FILE is set."""
    file = environment.get(VARIABLE)
    return ShiftedClock(Path(file)) if file else SystemClock()
