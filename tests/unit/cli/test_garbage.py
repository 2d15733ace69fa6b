"""Python's search for garbage: what is set aside, and what becomes of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from hvpa.cli import garbage


class Thing:
    """May be in a cycle, and be watched."""

    itself: Thing | None = None


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.callbacks.remove(garbage._set_aside)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_what_survives_a_whole_search_is_set_aside_and_freed_when_nobody_has_it() -> None:
    things = [Thing() for _ in range(1000)]
    seen = weakref.ref(things[0])
    garbage.begin()
    garbage.begin()  # does no harm
    before = gc.get_freeze_count()
    assert before >= 1000
    assert gc.get_threshold()[0] == garbage.YOUNG
    more = [Thing() for _ in range(1000)]
    gc.collect(1)
    assert gc.get_freeze_count() <= before
    gc.collect()
    assert gc.get_freeze_count() >= before + len(more) // 2
    things.clear()
    assert seen() is None


async def test_a_cycle_that_was_set_aside_goes_with_the_search_that_looks_at_everything() -> None:
    thing = Thing()
    thing.itself = thing
    seen = weakref.ref(thing)
    garbage.begin()
    del thing
    gc.collect()
    assert seen() is not None
    looking = asyncio.create_task(garbage.look_at_everything(0.01))
    async with asyncio.timeout(10):
        while seen() is not None:
            await asyncio.sleep(0.01)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert gc.get_freeze_count() > 0
