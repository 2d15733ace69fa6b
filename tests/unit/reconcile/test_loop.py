"""The workers."""

from __future__ import annotations

import asyncio
import datetime as dt

import pytest

from hvpa.reconcile.loop import WorkLoop
from hvpa.reconcile.ports import Key
from hvpa.reconcile.queue import WorkQueue
from hvpa.reconcile.reconciler import Result
from tests.unit.reconcile.fakes import FakeTelemetry

A, B, C = (Key("ns", name) for name in "abc")


class Work:
    """Remembers what ran, and lets a test decide when each reconcile ends and how."""

    def __init__(self) -> None:
        self.started: list[Key] = []
        self.gates: dict[Key, asyncio.Event] = {}
        self.results: dict[Key, list[Result]] = {}
        self.changed = asyncio.Event()

    async def __call__(self, key: Key) -> Result:
        self.started.append(key)
        self.changed.set()
        if key in self.gates:
            await self.gates[key].wait()
        results = self.results.get(key)
        return results.pop(0) if results else Result("done")

    async def until(self, started: list[Key]) -> None:
        async with asyncio.timeout(2.0):
            while self.started != started:
                self.changed.clear()
                await self.changed.wait()


@pytest.mark.asyncio
async def test_a_slow_hvpa_does_not_hold_up_another() -> None:
    work, telemetry = Work(), FakeTelemetry()
    loop = WorkLoop(WorkQueue(), work, telemetry, workers=2)
    work.gates[A] = asyncio.Event()
    running = asyncio.create_task(loop.run())
    for key in (A, B, C):
        loop.enqueue(key)
    await work.until([A, B, C])
    assert ("finished", C, "done") in telemetry.told or telemetry.told
    loop.enqueue(A)
    await asyncio.sleep(0)
    assert work.started == [A, B, C]
    work.gates[A].set()
    await work.until([A, B, C, A])
    loop.stop()
    await running


@pytest.mark.asyncio
async def test_a_key_comes_back_when_its_reconcile_asked_for_it() -> None:
    work = Work()
    loop = WorkLoop(WorkQueue(), work, FakeTelemetry(), workers=1)
    work.results[A] = [Result("done", dt.timedelta(milliseconds=20)), Result("conflict"), Result("done")]
    running = asyncio.create_task(loop.run())
    loop.enqueue(A)
    await work.until([A, A, A])
    loop.stop()
    await running


@pytest.mark.asyncio
async def test_an_overloaded_server_is_not_asked_again_too_early() -> None:
    work = Work()
    loop = WorkLoop(WorkQueue(), work, FakeTelemetry(), workers=1)
    work.results[A] = [Result("overloaded", dt.timedelta(milliseconds=50))]
    running = asyncio.create_task(loop.run())
    begin = asyncio.get_running_loop().time()
    loop.enqueue(A)
    await work.until([A])
    await asyncio.sleep(0.005)
    loop.enqueue(A)
    await work.until([A, A])
    assert asyncio.get_running_loop().time() - begin >= 0.05
    loop.stop()
    await running


@pytest.mark.asyncio
async def test_stopping_waits_for_what_is_under_way_and_starts_nothing_new() -> None:
    work = Work()
    loop = WorkLoop(WorkQueue(), work, FakeTelemetry(), workers=2)
    work.gates[A] = asyncio.Event()
    running = asyncio.create_task(loop.run())
    loop.enqueue(A)
    await work.until([A])
    loop.stop()
    loop.enqueue(B)
    await asyncio.sleep(0.01)
    assert not running.done()
    assert loop.depth() == 1
    work.gates[A].set()
    await running
    assert work.started == [A]
