"""How many Hvpas have writes under way, and what becomes of them when the API server asks to wait.

**A decision never waits.** What has to wait waits in the work queue, where each Hvpa stands once, and is decided when
it is taken out: so whatever the overload, what is written was decided on the newest observation. Therefore a permit is
taken for a whole reconcile, *before* it reads and decides, and kept until its last write; a write that finds that the
server has asked to wait meanwhile is not kept back but refused (`Overloaded`), and its Hvpa is decided anew later.
Writes of one reconcile come one after another, so permits that are out bound requests under way.

Permits are given in the order of requests, and an Event needs one, too. Lists and watches have back-off of their own
(`reflector`), and leases are not limited at all: losing one helps no client.
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
"""Default of `--max-in-flight`; docs/operations.md says why."""
GROW_AFTER = 100
"""Responses without a complaint after which one more permit is given out, after a cut: about a second's worth."""
SHORTEST_PAUSE = 0.1
"""Seconds, for a server that asks for less (or for 0, as some proxies do)."""
SPREAD = 1.5
"""A pause is between what the server asked for and this many times it, so that replicas don't come back together."""
WIDESPREAD = 3
"""Hvpas that are asked to wait one after the other, with no other response in between: it is not about them."""


class Limiter:
    """At most `max_in_flight` permits at once. When the API server asks to wait, nothing new begins for that long, and
    permits are cut to half of them; they grow again by one per GROW_AFTER responses (additive increase, multiplicative
    decrease, as in TCP).

    All in one event loop, whose time is used. Each step is O(1).
    """

    def __init__(
        self,
        max_in_flight: int = MAX_IN_FLIGHT,
        telemetry: Telemetry | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._max = max_in_flight
        self.limit = max_in_flight
        """How many permits are given out at once now."""
        self.in_flight = 0
        """Writes that are under way."""
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
        """Waits for a permit, and gives it back at the end. Safe to cancel: what was given is given back."""
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
        """Around each write, within a permit; `key` is the Hvpa that it is for. Raises Overloaded, with nothing sent,
        when the server has asked to wait."""
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
        """The API server wants nothing of us for so long. Cuts the permits, but once per pause: what else was under way
        then gets the same response."""
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
            if not waiter.cancel() and not waiter.cancelled():  # it was given to us at that time
                self._leave()
            raise
        self._telemetry.permit_waited(_now() - began)

    def _leave(self) -> None:
        self._permits -= 1
        self._give()

    def _give(self) -> None:
        """Give out what permits there are, to those who wait."""
        while self._waiting and (self._waiting[0].done() or self._is_free()):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._permits += 1
                waiter.set_result(None)

    def _is_free(self) -> bool:
        """Whether a permit may be given out now; where only time is in the way, sees to it that it is tried again."""
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

    # --- what the server says -----------------------------------------------------------------------------------------
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
    """Whether a response by itself asks all of the operator to wait. API Priority and Fairness, other limits of the API
    server and proxies answer in plain text. A metav1.Status may be about one object (an admission webhook's, say): were
    all to wait for it, one Hvpa could stop the others. So it counts when WIDESPREAD Hvpas get it in a row."""
    return error.overloaded and not error.reason


def _now() -> float:
    return asyncio.get_running_loop().time()
