"""Limits concurrent writes, and handles requests of the API server to wait.

**A decision never waits.** Hvpas wait in the work queue, each at most once, and HVPA decides when it takes them out.
So even under overload, each write is based on the newest observation. A reconcile therefore gets its permit *before*
it reads and decides, and keeps it until its last write. If the server has requested a pause in the meantime, the
write is not delayed but refused (`Overloaded`), and the Hvpa is reconciled again later. The writes of a reconcile are
sequential, so the number of permits limits the number of concurrent writes.

Permits are given in the order of requests; an Event needs a permit, too. Lists and watches have their own back-off
(`reflector`). Leases are not limited: losing a lease helps no client.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import random
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from hvpa.kube.client.errors import DEFAULT_RETRY_AFTER, ApiError
from hvpa.reconcile.ports import Key, Overloaded
from hvpa.reconcile.telemetry import Telemetry

MAX_IN_FLIGHT = 16
"""Default of `--max-in-flight`; docs/operations.md gives the reason."""
GROW_AFTER = 100
"""Responses without overload after which the limit grows by one permit again, about a second's worth."""
SHORTEST_PAUSE = 0.1
"""Minimum pause in seconds, if the server requests less (or 0, as some proxies do)."""
SPREAD = 1.5
"""A pause is 1 to SPREAD times the requested time, so that replicas don't return together."""
WIDESPREAD = 3
"""Number of Hvpas that are asked to wait in a row, without any other response, after which all Hvpas wait."""


class Limiter:
    """Gives out at most `max_in_flight` permits.

    When the API server requests a pause, no new reconcile begins for that time, and the limit is halved. It grows
    again by one per GROW_AFTER responses (additive increase, multiplicative decrease, as in TCP). Example: 16, 8
    after a pause, 9 after 100 responses.

    It belongs to an event loop and uses that loop's time. Each step is O(1).
    """

    def __init__(
        self,
        max_in_flight: int = MAX_IN_FLIGHT,
        telemetry: Telemetry | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._max = max_in_flight
        self.limit = max_in_flight
        """Current maximum number of permits."""
        self.in_flight = 0
        """Writes in flight."""
        self._telemetry = telemetry or Telemetry()
        self._rng = rng or random.Random()
        self._permits = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._answers = 0
        self._refused_keys: set[Key | None] = set()
        """Hvpas that were asked to wait since the last response of another kind."""
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[None]:
        """Wait for a permit, and return it at the end. Safe to cancel: the permit is always returned."""
        if self._waiting or not self._is_free():
            await self._wait()
        else:
            self._permits += 1
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def write(self, key: Key | None = None) -> Iterator[None]:
        """Wraps each write within a permit; `key` is the Hvpa.

        Raises Overloaded, without sending anything, if the server has requested a pause.
        """
        if self._paused_until and (left := self._paused_until - _now()) > 0.0:
            raise Overloaded("the API server has asked to wait", dt.timedelta(seconds=left))
        self.in_flight += 1
        try:
            yield
        except ApiError as error:
            self._refused(error, key)
            raise
        else:
            self._answered()
        finally:
            self.in_flight -= 1

    def pause(self, seconds: float) -> None:
        """Pause for the time that the API server requested. Cuts the limit once per pause, because all other writes
        in flight get the same response."""
        now = _now()
        self._telemetry.throttled()
        if now >= self._paused_until:
            self.limit = max(1, self.limit // 2)
        self._answers = 0
        pause = max(seconds, SHORTEST_PAUSE) * self._rng.uniform(1.0, SPREAD)
        self._paused_until = max(self._paused_until, now + pause)
        self._arm(self._paused_until)

    # --- permits ------------------------------------------------------------------------------------------------------
    async def _wait(self) -> None:
        began = _now()
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancel() and not waiter.cancelled():  # the permit was given in the same moment
                self._leave()
            raise
        self._telemetry.permit_waited(_now() - began)

    def _leave(self) -> None:
        self._permits -= 1
        self._give()

    def _give(self) -> None:
        """Give the free permits to waiting callers."""
        while self._waiting and (self._waiting[0].done() or self._is_free()):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._permits += 1
                waiter.set_result(None)

    def _is_free(self) -> bool:
        """Whether a permit may be given out now. During a pause, schedules the next attempt."""
        if self._permits >= self.limit:
            return False
        if self._paused_until and _now() < self._paused_until:
            self._arm(self._paused_until)
            return False
        self._paused_until = 0.0
        return True

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self._give)

    # --- responses ----------------------------------------------------------------------------------------------------
    def _refused(self, error: ApiError, key: Key | None) -> None:
        if not error.overloaded:
            self._answered()
            return
        self._refused_keys.add(key)
        if concerns_all(error) or len(self._refused_keys) >= WIDESPREAD:
            self.pause(DEFAULT_RETRY_AFTER if error.retry_after is None else error.retry_after)

    def _answered(self) -> None:
        self._refused_keys.clear()
        if self.limit == self._max:
            return
        self._answers += 1
        if self._answers >= GROW_AFTER:
            self._answers = 0
            self.limit += 1
            self._give()


def concerns_all(error: ApiError) -> bool:
    """Whether a single response makes the whole operator pause.

    API Priority and Fairness, other limits of the API server, and proxies respond in plain text. A metav1.Status may
    concern a single object (for example from an admission webhook). If all Hvpas waited for it, a single Hvpa could
    stop the others, so it counts only when WIDESPREAD Hvpas get it in a row.
    """
    return error.overloaded and not error.reason


def _now() -> float:
    return asyncio.get_running_loop().time()
