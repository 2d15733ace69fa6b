"""A clock that a test lets jump while the operator runs: HVPA_CLOCK_OFFSET_FILE names a file whose content, a number of
seconds, is added to the system's time whenever that is read. `with_faults` runs an operator with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path

from hvpa.kube.clock import SystemClock
from hvpa.reconcile.ports import Clock

VARIABLE = "HVPA_CLOCK_OFFSET_FILE"


class ShiftedClock:
    """The system's clock and a number of seconds that a file holds. A file that is missing or holds no number shifts
    nothing."""

    def __init__(self, file: Path) -> None:
        """`file` is read whenever the time is."""
        self._file = file
        self._system = SystemClock()

    def now(self) -> dt.datetime:
        """The present instant as the shifted clock shows it, UTC."""
        now = self._system.now()
        try:
            return now + dt.timedelta(seconds=float(self._file.read_text()))
        except (OSError, ValueError, OverflowError):
            return now


def clock_of(environment: Mapping[str, str]) -> Clock:
    """The clock to use: the system's, unless HVPA_CLOCK_OFFSET_FILE asks for a shifted one."""
    file = environment.get(VARIABLE)
    return ShiftedClock(Path(file)) if file else SystemClock()
