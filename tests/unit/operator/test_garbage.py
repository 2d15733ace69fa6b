"""Python's search for garbage: what is set aside, and what becomes of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hvpa.operator import garbage
from tests.unit.kube.fake_server import background


class Thing:
    """May be in a cycle, and be watched."""

    itself: Thing | None = None


@asynccontextmanager
async def looked_after(seconds: float) -> AsyncIterator[None]:
    async with background(garbage.look_after(seconds)):
        await asyncio.sleep(0)
        yield


async def test_what_survives_a_whole_search_is_set_aside_and_freed_when_nobody_has_it() -> None:
    things = [Thing() for _ in range(1000)]
    reference = weakref.ref(things[0])
    async with looked_after(3600):
        before = gc.get_freeze_count()
        assert before >= 1000
        assert gc.get_threshold()[0] == garbage.YOUNG
        more = [Thing() for _ in range(1000)]
        gc.collect(1)
        assert gc.get_freeze_count() <= before
        gc.collect()
        assert gc.get_freeze_count() >= before + len(more) // 2
        things.clear()
        assert reference() is None


async def test_a_cycle_that_was_set_aside_goes_with_the_search_that_looks_at_everything() -> None:
    thing = Thing()
    thing.itself = thing
    reference = weakref.ref(thing)
    async with looked_after(0.2):
        del thing
        gc.collect()
        assert reference() is not None
        async with asyncio.timeout(60):
            while reference() is not None:
                await asyncio.sleep(0.01)
        assert gc.get_freeze_count() > 0


async def test_in_the_end_all_is_as_it_was() -> None:
    threshold, callbacks = gc.get_threshold(), list(gc.callbacks)
    async with looked_after(3600):
        assert gc.callbacks != callbacks
    assert gc.get_threshold() == threshold
    assert gc.callbacks == callbacks
    gc.collect()
    assert gc.get_freeze_count() == 0
