"""The workers, in virtual time (see conftest.py)."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import random
import time
from typing import Any

import pytest

from hvpa.kube.client.limits import Limiter
from hvpa.reconcile.loop import Metered, WorkLoop
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import BURST, SPACING, WorkQueue
from hvpa.reconcile.reconciler import ReconcileResult
from tests.unit.kube.virtual import VirtualLoop
from tests.unit.reconcile.fakes import FakeTelemetry

pytestmark = pytest.mark.asyncio
A, B, C = (Key("ns", name) for name in "abc")


class Work:
    """Remembers what ran, and lets a test decide when each reconcile ends and how."""

    def __init__(self) -> None:
        self.started: list[Key] = []
        self.gates: dict[Key, asyncio.Event] = {}
        self.results: dict[Key, list[ReconcileResult]] = {}
        self.changed = asyncio.Event()

    async def __call__(self, key: Key) -> ReconcileResult:
        self.started.append(key)
        self.changed.set()
        if key in self.gates:
            await self.gates[key].wait()
        results = self.results.get(key)
        return results.pop(0) if results else ReconcileResult("done")

    async def until(self, started: str) -> None:
        """Wait until these keys have been started, in this order."""
        async with asyncio.timeout(30.0):
            while "".join(key.name for key in self.started) != started:
                self.changed.clear()
                await self.changed.wait()


class Running:
    """A loop over `work` that runs within the context, and ends with it."""

    def __init__(self, workers: int = 1, limiter: Limiter | None = None, work: Any = None) -> None:
        self.work = Work()
        permit = contextlib.nullcontext if limiter is None else limiter.permit
        self.loop = WorkLoop(WorkQueue(), work or self.work, FakeTelemetry(), workers, permit)

    async def __aenter__(self) -> tuple[WorkLoop, Work]:
        self.task = asyncio.create_task(self.loop.run())
        return self.loop, self.work

    async def __aexit__(self, *error: object) -> None:
        self.loop.stop()
        async with asyncio.timeout(30.0):
            await self.task


async def test_a_slow_hvpa_does_not_hold_up_another() -> None:
    async with Running(workers=2) as (loop, work):
        work.gates[A] = asyncio.Event()
        for key in (A, B, C):
            loop.enqueue(key)
        await work.until("abc")
        loop.enqueue(A)
        await asyncio.sleep(0)
        assert work.started == [A, B, C]
        work.gates[A].set()
        await work.until("abca")


async def test_a_key_comes_back_when_its_reconcile_asked_for_it() -> None:
    async with Running() as (loop, work):
        work.results[A] = [
            ReconcileResult("done", dt.timedelta(milliseconds=20)),
            ReconcileResult("conflict"),
            ReconcileResult("done"),
        ]
        loop.enqueue(A)
        await work.until("aaa")


async def test_what_is_due_in_a_while_is_looked_at_then_or_with_what_comes_before() -> None:
    async with Running() as (loop, work):
        loop.enqueue_in(A, 0.05)
        loop.enqueue_in(B, 0.02)
        await asyncio.sleep(0)
        assert work.started == []
        loop.enqueue(A)
        await work.until("ab")
        await asyncio.sleep(0.1)
        assert work.started == [A, B]


async def test_an_overloaded_server_is_not_asked_again_too_early() -> None:
    async with Running() as (loop, work):
        work.results[A] = [ReconcileResult("overloaded", dt.timedelta(milliseconds=50))]
        begin = asyncio.get_running_loop().time()
        loop.enqueue(A)
        await work.until("a")
        await asyncio.sleep(0.005)
        loop.enqueue(A)
        await work.until("aa")
        assert asyncio.get_running_loop().time() - begin >= 0.05


async def test_stopping_waits_for_what_is_under_way_and_starts_nothing_new() -> None:
    running = Running(workers=2)
    async with running as (loop, work):
        work.gates[A] = asyncio.Event()
        loop.enqueue(A)
        await work.until("a")
        loop.stop()
        loop.enqueue(B)
        await asyncio.sleep(0.01)
        assert not running.task.done()
        assert loop.depth() == 1
        work.gates[A].set()
    assert work.started == [A]


async def test_what_waits_for_a_permit_is_not_decided_yet_and_waits_once() -> None:
    limiter = Limiter(2, rng=random.Random(1))
    async with Running(2, limiter) as (loop, work):
        limiter.pause(0.1)
        for key in (A, B, A, B, A):
            loop.enqueue(key)
        await asyncio.sleep(0.05)
        assert work.started == []
        assert loop.depth() == 2
        loop.discard(lambda key: key == A)  # as good as any other change of mind
        await work.until("b")


async def test_stopping_does_not_wait_for_permits() -> None:
    limiter = Limiter(1)
    async with Running(2, limiter) as (loop, work):
        limiter.pause(1000.0)
        loop.enqueue(A)
        await asyncio.sleep(0.01)
    assert work.started == []


async def test_what_is_urgent_is_worked_on_before_a_pass_over_everything() -> None:
    async with Running() as (loop, work):
        for key in (A, B):
            loop.enqueue(key, urgent=False)
        loop.enqueue(C)
        await work.until("cab")


async def test_a_reconcile_of_what_was_given_up_ends_and_is_forgotten() -> None:
    async with Running() as (loop, work):
        work.gates[A] = asyncio.Event()
        work.results[A] = [ReconcileResult("done", dt.timedelta(0)), ReconcileResult("failed")]
        loop.enqueue(A)
        await work.until("a")
        loop.enqueue(A)
        loop.discard(lambda key: key == A)
        assert loop.working(lambda key: key == A)
        work.gates[A].set()
        loop.enqueue(B)
        await work.until("ab")
        assert not loop.working(lambda key: key == A)
        assert loop.depth() == 0


async def test_one_that_takes_long_to_decide_leaves_time_for_the_others() -> None:
    count = {A: 0, B: 0}

    async def work(key: Key) -> ReconcileResult:
        count[key] += 1
        if key == A:
            burn(0.02)
        return ReconcileResult("done", dt.timedelta(0))  # at once again

    async with Running(2, work=work) as (loop, _):
        begin = asyncio.get_running_loop().time()
        for key in (A, B):
            loop.enqueue(key)
        async with asyncio.timeout(30.0):
            while count[B] < 10:
                await asyncio.sleep(0.01)
        lasted = asyncio.get_running_loop().time() - begin
    assert count[A] <= 1 + (BURST - 1) * SPACING / 0.2 + lasted / 0.2 + 1


async def test_a_long_queue_of_what_needs_no_write_lets_others_run_meanwhile() -> None:
    async def work(key: Key) -> ReconcileResult:
        burn(0.0005)
        return ReconcileResult("done")

    running = Running(2, work=work)
    for number in range(400):
        running.loop.enqueue(Key("ns", str(number)))
    async with running as (loop, _):
        rounds = 0
        while loop.depth() or not rounds:
            await asyncio.sleep(0)
            rounds += 1
    assert rounds >= 5


def burn(seconds: float) -> None:
    """Compute for so long."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualLoop):
        loop.compute(seconds)


async def test_computing_is_measured_and_waiting_is_not() -> None:
    async def work() -> int:
        burn(0.02)
        await asyncio.sleep(0.05)
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(1.0)
        burn(0.02)
        return 7

    metered, began = Metered(work()), time.thread_time()
    assert await metered == 7
    assert 0.04 <= metered.seconds <= time.thread_time() - began


async def test_what_fails_or_is_cancelled_does_so_within_the_measured_work() -> None:
    errors: list[BaseException] = []

    async def work(error: Exception | None) -> None:
        try:
            await asyncio.sleep(0.01)
            if error is not None:
                raise error
            await asyncio.sleep(1000.0)
        except BaseException as caught:
            errors.append(caught)
            raise

    with pytest.raises(ValueError, match="no"):
        await Metered(work(ValueError("no")))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await Metered(work(None))
    assert [type(error) for error in errors] == [ValueError, asyncio.CancelledError]


async def test_a_fault_that_the_reconcile_lets_through_ends_no_worker_and_the_key_is_tried_again() -> None:
    tries: list[Key] = []

    async def work(key: Key) -> ReconcileResult:
        tries.append(key)
        if key == A and tries.count(A) < 3:
            raise RecursionError
        return ReconcileResult("done")

    async with Running(work=work) as (loop, _):
        loop.enqueue(A)
        loop.enqueue(B)
        await asyncio.sleep(60)
    assert tries.count(A) == 3
    assert B in tries


async def test_once_the_api_server_is_back_all_that_waited_for_it_are_worked_on_within_seconds() -> None:
    """Whatever their number, and however long the outage: found were 117 s after an outage of 60 s."""
    keys = [Key("ns", f"h-{number}") for number in range(20)]
    loop_time = asyncio.get_running_loop().time
    end = loop_time() + 60.0
    done: dict[Key, float] = {}
    tries = 0

    async def work(key: Key) -> ReconcileResult:
        nonlocal tries
        tries += 1
        if loop_time() < end:
            return ReconcileResult("failed", is_unanswered=True)
        done[key] = loop_time() - end
        return ReconcileResult("done")

    async with Running(work=work) as (loop, _):
        for key in keys:
            loop.enqueue(key)
        await asyncio.sleep(90)
    assert len(done) == 20
    assert max(done.values()) < 12.0
    assert tries < 20 * 5 + 60 * 5 * 2, "the server that fails is not asked much more than 5 times a second"


async def test_what_fails_for_a_reason_of_its_own_is_not_tried_sooner_when_others_succeed() -> None:
    tries: list[Key] = []

    async def work(key: Key) -> ReconcileResult:
        tries.append(key)
        if key == A:
            return ReconcileResult("failed")
        return (
            ReconcileResult("failed", is_unanswered=True)
            if len(tries) % 2
            else ReconcileResult("done", dt.timedelta(seconds=1))
        )

    async with Running(work=work) as (loop, _):
        loop.enqueue(A)
        loop.enqueue(B)
        await asyncio.sleep(600)
    assert tries.count(A) < 30
    assert tries.count(B) > 100
