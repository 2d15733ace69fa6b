"""The run loop: workers that take keys from the queue, reconcile them, and put them back when they are due again."""

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
from hvpa.reconcile.reconciler import Result
from hvpa.reconcile.supervision import Supervisor
from hvpa.reconcile.telemetry import Telemetry

T = TypeVar("T")

OVERLOAD_SPREAD = 2.0
"""Keys that have to wait come back between the server's time and this many times it, so not all at once."""
YIELD = 0.01
"""Seconds after which a run of reconciles that had nothing to write lets the watches and the lease run."""


class WorkLoop:
    """`workers` tasks over one queue. Time is the event loop's (monotonic), so jumps of the wall clock don't matter.

    A worker waits for its permit first and takes a key from the queue then: what waits, waits undecided, and only once.
    """

    def __init__(
        self,
        queue: WorkQueue,
        reconcile: Callable[[Key], Awaitable[Result]],
        telemetry: Telemetry,
        workers: int,
        permit: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        supervisor: Supervisor | None = None,
    ) -> None:
        """`permit()` waits until one more key may be worked on (`hvpa.kube.client.limits`)."""
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
        """Make `key` due at once; not urgent: behind what is urgent (a pass over everything). May be called before
        `run`; must be called in the event loop's thread."""
        self._queue.add(key, self._now(), urgent)
        self._wake()
        self._arm()

    def enqueue_in(self, key: Key, seconds: float) -> None:
        """Make `key` due in so many seconds, or earlier where it is due earlier anyway."""
        now = self._now()
        self._queue.add_at(key, now + seconds, now)
        self._arm()

    async def run(self) -> None:
        """Work until `stop`; returns when every reconcile under way has ended."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._supervisor.keep("work", self._work))

    def stop(self) -> None:
        """Take no further keys; reconciles under way go on to their end."""
        self._stopping = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._wake()
        for task in self._in_line:
            task.cancel()

    def depth(self) -> int:
        """Keys that are due and wait for a worker."""
        return self._queue.depth(self._now())

    def waiting_for_budget(self) -> int:
        """Keys that are due and wait because their namespace is over budget."""
        return self._queue.waiting_for_budget(self._now())

    def oldest_age(self) -> float:
        """Seconds for which the key in the queue that waits for longest has been due."""
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
            self._wake()
        if postponed := self._queue.postponed(key):
            self._telemetry.postponed(key, postponed)
        else:
            self._telemetry.started(key, self._queue.waited(key))
        work, aside = Metered(self._reconcile(key)), 0.0
        try:
            result = await work
            aside = result.aside
            self._settle(key, result)
        except Exception as error:  # a fault of the program: the Hvpa is tried again, and others meanwhile
            self._supervisor.failed("work", error)
            result = Result("crashed")
            self._settle(key, result)
        finally:
            self._queue.done(key, self._now(), work.seconds + aside)
        self._arm()
        ended = self._now()
        self._telemetry.finished(key, result.outcome, ended - started)
        if ended - self._yielded > YIELD:
            await asyncio.sleep(0)
            self._yielded = self._now()

    def _settle(self, key: Key, result: Result) -> None:
        """Decide when the key is due again."""
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
        """Wait until a key is due; False when the loop is to stop."""
        while not self._stopping:
            if self._queue.depth(self._now()):
                return True
            self._arm()
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle
        return False

    def _wake(self) -> None:
        while self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                return

    def _arm(self) -> None:
        """Have a worker woken when the next delayed key becomes due."""
        due, timer = self._queue.next_due(), self._timer
        if due is None or (timer is not None and not timer.cancelled() and self._timer_due <= due):
            return
        if timer is not None:
            timer.cancel()
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class Metered(Generic[T]):
    """Awaits `work`; `seconds` is the thread's processor time that it took so far, waiting aside. Costs a microsecond
    or two."""

    def __init__(self, work: Awaitable[T]) -> None:
        self._work = work
        self.seconds = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        """As `yield from` (PEP 380), with a look at the clock around each step."""
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
            except BaseException as error:  # cancellation, too, is the work's to handle
                resume, value = steps.throw, error
