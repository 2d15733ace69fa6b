"""The run loop: workers take keys from the queue, reconcile them, and put them back with their next due time."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Generic, TypeVar

from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import CONFLICT, FAILURE, WorkQueue
from hvpa.reconcile.reconciler import ReconcileResult
from hvpa.reconcile.supervision import Supervisor
from hvpa.reconcile.telemetry import Telemetry

T = TypeVar("T")

OVERLOAD_SPREAD = 2.0
"""Keys that have to wait return between the server's time and this factor times it, so that they don't all return at
once."""
YIELD = 0.01
"""Seconds of reconciles without writes after which the loop lets the watches and the lease run."""


class WorkLoop:
    """Runs `workers` tasks over one queue. Time is the event loop's (monotonic), so jumps of the wall clock don't
    matter.

    A worker waits for its permit before it takes a key from the queue. So every decision uses the latest state, and
    each key waits only once.
    """

    def __init__(
        self,
        queue: WorkQueue,
        reconcile: Callable[[Key], Awaitable[ReconcileResult]],
        telemetry: Telemetry,
        workers: int,
        permit: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        supervisor: Supervisor | None = None,
    ) -> None:
        """`permit()` waits until another key may be worked on (`hvpa.kube.client.limits`)."""
        self.discard, self.working = queue.discard, queue.working
        self._queue, self._reconcile, self._telemetry = queue, reconcile, telemetry
        self._workers, self._permit = workers, permit
        self._supervisor = supervisor or Supervisor(telemetry)
        self._in_line: set[asyncio.Task[None]] = set()
        """Workers that wait for a permit."""
        self._yielded = 0.0
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._stopping = False

    def enqueue(self, key: Key, urgent: bool = True) -> None:
        """Makes `key` due at once. A key that is not urgent is taken after urgent keys (for a pass over everything).
        May be called before `run`. Must be called in the event loop's thread."""
        self._queue.add(key, self._now(), urgent)
        self._wake_worker()
        self._set_timer()

    def enqueue_in(self, key: Key, seconds: float) -> None:
        """Makes `key` due in `seconds`, unless it is due earlier."""
        now = self._now()
        self._queue.add_at(key, now + seconds, now)
        self._set_timer()

    async def run(self) -> None:
        """Works until `stop`. Returns when all current reconciles have ended."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._supervisor.keep("work", self._work))

    def stop(self) -> None:
        """Takes no further keys. Current reconciles continue to their end."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._wake_worker()
        for task in self._in_line:
            task.cancel()

    def depth(self) -> int:
        """Returns the number of keys that are due and wait for a worker."""
        return self._queue.depth(self._now())

    def waiting_for_budget(self) -> int:
        """Returns the number of keys that are due and wait because their namespace is over budget."""
        return self._queue.waiting_for_budget(self._now())

    def oldest_age(self) -> float:
        """Returns for how many seconds the oldest key in the queue has been due."""
        return self._queue.oldest_age(self._now())

    async def _work(self) -> None:
        this = asyncio.current_task()
        assert this is not None
        while await self._until_due():
            self._in_line.add(this)
            async with self._permit():
                self._in_line.discard(this)
                key = None if self._stopping else self._queue.take(self._now())
                if key is not None:
                    await self._work_on(key)

    async def _work_on(self, key: Key) -> None:
        started = self._now()
        if self._queue.depth(started):
            self._wake_worker()
        if postponed := self._queue.postponed(key):
            self._telemetry.postponed(key, postponed)
        else:
            self._telemetry.started(key, self._queue.waited(key))
        work, aside = Metered(self._reconcile(key)), 0.0
        try:
            result = await work
            aside = result.aside
            self._set_due(key, result)
        except Exception as error:  # a bug: HVPA retries this Hvpa and continues with the others
            self._supervisor.failed("work", error)
            result = ReconcileResult("crashed")
            self._set_due(key, result)
        finally:
            self._queue.done(key, self._now(), work.seconds + aside)
        self._set_timer()
        ended = self._now()
        self._telemetry.finished(key, result.outcome, ended - started)
        if ended - self._yielded > YIELD:
            await asyncio.sleep(0)
            self._yielded = self._now()

    def _set_due(self, key: Key, result: ReconcileResult) -> None:
        """Sets when the key is due again."""
        now = self._now()
        match result.outcome:
            case "done" | "gone":
                self._queue.succeeded(key, now)
                if result.wait is not None:
                    self._queue.add_at(key, now + result.wait.total_seconds(), now)
            case "conflict":
                self._queue.retry(key, CONFLICT, now)
            case "overloaded":
                wait = 1.0 if result.wait is None else result.wait.total_seconds()
                self._queue.hold(key, now + wait * random.uniform(1.0, OVERLOAD_SPREAD), now)
            case "failed" if result.is_unanswered:
                self._queue.retry_unanswered(key, now)
            case "failed" | "crashed":
                self._queue.retry(key, FAILURE, now)

    async def _until_due(self) -> bool:
        """Waits until a key is due. Returns False if the loop should stop."""
        while not self._stopping:
            if self._queue.depth(self._now()):
                return True
            self._set_timer()
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle
        return False

    def _wake_worker(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    def _set_timer(self) -> None:
        """Sets the timer that wakes a worker when the next delayed key becomes due."""
        due, timer = self._queue.next_due(), self._timer
        if due is None or (timer is not None and not timer.cancelled() and self._timer_due <= due):
            return
        if timer is not None:
            timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake_worker()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class Metered(Generic[T]):
    """Awaits `work` and measures its processor time in `seconds`, without the time of other tasks. The overhead is one
    to two microseconds."""

    def __init__(self, work: Awaitable[T]) -> None:
        self._work = work
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        """Works like `yield from` (PEP 380), and reads the processor time before and after each step."""
        steps = self._work.__await__()
        resume: Callable[[Any], Any] = steps.send
        value: Any = None
        while True:
            began = time.thread_time()
            try:
                waits_for = resume(value)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self.seconds += time.thread_time() - began
            try:
                resume, value = steps.send, (yield waits_for)
            except BaseException as error:  # the work handles cancellation as well
                resume, value = steps.throw, error
