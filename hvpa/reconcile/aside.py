"""Makes large decisions (`hvpa.reconcile.size`) in a separate thread, so that they don't block the event loop with its
watches, leases, probes and other decisions. Decisions are pure functions of frozen objects, so the thread makes no
difference."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

SWITCH: Final = 0.001
"""Thread switch interval in seconds (Python's default is 5 ms). A large decision delays the event loop by up to this
time whenever the loop has work."""


class Aside:
    """A single thread that makes large decisions one after the other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="decide")
        sys.setswitchinterval(SWITCH)

    async def __call__(self, work: Callable[[], T], /) -> tuple[T, float]:
        """See `hvpa.reconcile.size.RunsAside`."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, _timed, work)

    def close(self) -> None:
        """Starts no further decisions. The current decision continues to its end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.thread_time()
    result = work()
    return result, time.thread_time() - began
