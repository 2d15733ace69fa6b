"""The real clock: the only place that reads the wall clock.

For tests, and for nothing else, the environment variable HVPA_CLOCK_OFFSET_FILE names a file whose content, a number of
seconds, is added to the system's time whenever that is read. So a test lets the clock jump while the operator runs.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from pathlib import Path

from hvpa.reconcile.ports import Clock

VARIABLE = "HVPA_CLOCK_OFFSET_FILE"


class SystemClock:
    """`hvpa.reconcile.ports.Clock` of the running system."""

    def now(self) -> dt.datetime:
        """The present instant, UTC."""
        return dt.datetime.now(dt.UTC)


class ShiftedClock:
    """The system's clock and a number of seconds that a file holds, for tests. A file that is missing or holds no
    number shifts nothing."""

    def __init__(self, file: Path) -> None:
        """`file` is read whenever the time is."""
        self._file = file

    def now(self) -> dt.datetime:
        """The present instant as the shifted clock shows it, UTC."""
        try:
            return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=float(self._file.read_text()))
        except (OSError, ValueError, OverflowError):
            return dt.datetime.now(dt.UTC)


def clock_of(environment: Mapping[str, str] = os.environ) -> Clock:
    """The clock to use: the system's, unless HVPA_CLOCK_OFFSET_FILE asks for a shifted one."""
    file = environment.get(VARIABLE)
    return ShiftedClock(Path(file)) if file else SystemClock()
