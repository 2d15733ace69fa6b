"""Keeps Python's search for garbage in cycles from halting the operator: what is held of 10,000 Hvpas is more than a
million objects, and to walk over them takes about a second, in which nothing else happens.

What survives a whole search is what is held for long, and has no cycles; it is set aside (`gc.freeze`) and not walked
over again. It is freed all the same when nothing refers to it any more. Only what has become garbage in a cycle *after*
it was set aside has to wait for the rare search that looks at everything.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Literal

YOUNG = 10_000
"""Objects that are made between two searches among the youngest. There is little garbage in cycles: with Python's
default of 700, a twentieth of the CPU of a step goes into looking for it."""
EVERYTHING = 3600.0
"""Seconds between two searches that look at everything."""


async def look_after(seconds: float = EVERYTHING) -> None:
    """Set aside what is there and, after each whole search from now on, what that has left; every so many seconds look
    at everything. For ever: when it is cancelled, all is as it was."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, *before[1:])
    gc.callbacks.append(_set_aside)
    try:
        while True:
            gc.unfreeze()
            gc.collect()
            await asyncio.sleep(seconds)
    finally:
        gc.callbacks.remove(_set_aside)
        gc.set_threshold(*before)
        gc.unfreeze()


def _set_aside(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()
