"""The run loop: workers that take keys from the queue, reconcile them, and put them back when they are due again."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable

from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import CONFLICT, FAILURE, WorkQueue
from hvpa.reconcile.reconciler import Result
from hvpa.reconcile.telemetry import Telemetry

OVERLOAD_SPREAD = 2.0
"""Keys that were told to wait come back between the server's time and this many times it, so not all at once."""


class WorkLoop:
    """`workers` tasks over one queue. Time is the event loop's (monotonic), so jumps of the wall clock don't matter."""

    def __init__(
        self,
        queue: WorkQueue,
        reconcile: Callable[[Key], Awaitable[Result]],
        telemetry: Telemetry,
        workers: int,
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._telemetry = telemetry
        self._workers = workers
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._stopping = False

    def enqueue(self, key: Key) -> None:
        """Make `key` due at once. May be called before `run`; must be called in the event loop's thread."""
        self._queue.add(key, self._now())
        self._wake()
        self._arm()

    async def run(self) -> None:
        """Work until `stop`; returns when every reconcile under way has ended."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    def stop(self) -> None:
        """Take no further keys; reconciles under way go on to their end."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._wake()

    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return self._queue.depth(self._now())

    def oldest_age(self) -> float:
        """Seconds for which the first key in the queue has been due."""
        return self._queue.oldest_age(self._now())

    async def _work(self) -> None:
        while (key := await self._next()) is not None:
            started = self._now()
            try:
                result = await self._reconcile(key)
            finally:
                self._queue.done(key, self._now())
            self._telemetry.finished(key, result.outcome, self._now() - started)
            self._settle(key, result)

    def _settle(self, key: Key, result: Result) -> None:
        """Decide when the key is due again."""
        now = self._now()
        match result.outcome:
            case "done" | "gone":
                self._queue.forget(key)
                if result.wait is not None:
                    self._queue.add_at(key, now + result.wait.total_seconds(), now)
            case "conflict":
                self._queue.retry(key, CONFLICT, now)
            case "overloaded":
                wait = result.wait.total_seconds() if result.wait is not None else 1.0
                self._queue.hold(key, now + wait * random.uniform(1.0, OVERLOAD_SPREAD), now)
            case "failed" | "crashed":
                self._queue.retry(key, FAILURE, now)
        self._arm()

    async def _next(self) -> Key | None:
        while not self._stopping:
            key = self._queue.take(self._now())
            if key is not None:
                if self._queue.depth(self._now()):
                    self._wake()
                return key
            self._arm()
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle
        return None

    def _wake(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    def _arm(self) -> None:
        """Have a worker woken when the next delayed key becomes due."""
        due = self._queue.next_due()
        if due is None or (
            self._timer is not None and not self._timer.cancelled() and self._timer_due <= due
        ):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
