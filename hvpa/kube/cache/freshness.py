"""How fresh one store is: when its list or watch last succeeded, since when it fails, and why.

A quiet watch is a fresh one: bookmarks count, about one a minute, and so does the regular end of a watch. What a store
holds is used however old it is; that it is old is logged, and reported by /readyz and by a metric.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from hvpa.kube.client.errors import ApiError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

STALE = 60.0
"""Seconds for which list and watch have to fail until the store counts as out of date: longer than an API server takes
to restart."""


class Freshness:
    """Of the store of one resource in one scope (a namespace, or empty for all)."""

    def __init__(
        self,
        plural: str,
        scope: str,
        monotonic: Callable[[], float] = time.monotonic,
        stale_after: float = STALE,
    ) -> None:
        self.succeeded_at: float | None = None
        """When list or watch last succeeded, by `monotonic`; None: never yet."""
        self.problem: str | None = None
        """Why list or watch fails, in a few words without names and addresses; None when neither does."""
        self._plural = plural
        self._scope = scope
        self._monotonic = monotonic
        self._stale_after = stale_after
        self.stale = False
        """Whether the store is out of date, as far as is known."""
        self._failing_since: float | None = None

    def succeeded(self) -> None:
        """A list was complete, a watch brought an event or a bookmark, or the server ended it in the regular way."""
        now = self._monotonic()
        if self.stale:
            log.info(
                "cache is up to date again",
                resource=self._plural,
                scope=self._scope or "all",
                seconds=self._seconds(now),
            )
        self.succeeded_at = now
        self.problem = self._failing_since = None
        self.stale = False

    def failed(self, error: Exception, *, had_worked: bool = False) -> None:
        """List or watch failed; `had_worked`: after it had been open for long, only quiet."""
        now = self._monotonic()
        self.problem = _in_short(error)
        if self._failing_since is None or had_worked:
            self._failing_since = now
        if not self.stale and now - self._failing_since >= self._stale_after:
            self.stale = True
            log.warning(
                "cache is out of date: neither list nor watch succeeds",
                resource=self._plural,
                scope=self._scope or "all",
                error=str(error),
                seconds=self._seconds(now),
            )

    def _seconds(self, now: float) -> int | None:
        """Seconds since the last success; None where there was none."""
        return None if self.succeeded_at is None else round(now - self.succeeded_at)


def _in_short(error: Exception) -> str:
    if isinstance(error, ApiError):
        return f"{error.status} {error.reason}".rstrip()
    return "no response that can be used"
