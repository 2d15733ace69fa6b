"""Keeps Python's cyclic garbage collector from stopping the operator. The state of 10,000 Hvpas is more than a million
objects. A full collection takes about a second, and nothing else runs in that time.

Objects that survive a full collection are long-lived and not part of cyclic garbage. They are frozen (`gc.freeze`), so
that later collections skip them. They are still freed when nothing refers to them. Only objects that become part of
cyclic garbage after the freeze have to wait for the rare collection of everything.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Literal

YOUNG = 10_000
"""New objects between two collections of the youngest generation. There is little cyclic garbage: Python's default of
700 uses a twentieth of the CPU of a step for it."""
EVERYTHING = 3600.0
"""Seconds between two collections of everything."""


async def look_after(seconds: float = EVERYTHING) -> None:
    """Freezes all objects now, and the survivors after each full collection. Every `seconds` it collects everything.
    Runs until it is cancelled, and then restores the garbage collector's settings."""
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
