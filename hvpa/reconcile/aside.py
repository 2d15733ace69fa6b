"""Large decisions (`hvpa.reconcile.size`) are made in a thread of their own, so that the event loop goes on: watches,
leases, probes and everybody else's decisions. Decisions are pure functions of frozen objects, so it makes no difference
where they are made."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

SWITCH: Final = 0.001
"""Seconds after which a thread lets another one go on (Python's default is 5 ms): a large decision keeps the event loop
waiting for so long each time that it has something to do."""


class Aside:
    """One thread: large decisions are made one after the other."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="decide")
        sys.setswitchinterval(SWITCH)

    async def __call__(self, work: Callable[[], T], /) -> tuple[T, float]:
        """See `hvpa.reconcile.size.RunsAside`."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, _timed, work)

    def close(self) -> None:
        """Make no further decisions; the one under way goes on to its end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.thread_time()
    result = work()
    return result, time.thread_time() - began
