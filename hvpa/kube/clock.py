"""The real clock: the only place that reads the wall clock."""

from __future__ import annotations

import datetime as dt


class SystemClock:
    """`hvpa.reconcile.ports.Clock` of the running system."""

    def now(self) -> dt.datetime:
        """The present instant, UTC."""
        return dt.datetime.now(dt.UTC)
