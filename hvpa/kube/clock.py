"""The real clock: the only module that reads the wall clock."""

from __future__ import annotations

import datetime as dt


class SystemClock:
    """`hvpa.reconcile.ports.TimeSource` of the running system."""

    def now(self) -> dt.datetime:
        """The current time, UTC."""
        return dt.datetime.now(dt.UTC)
