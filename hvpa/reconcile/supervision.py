"""Tasks that run for as long as the process does: an exception of one ends no other. It is logged with its traceback
and counted, and the task begins again after a back-off."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from hvpa.reconcile.queue import Backoff
from hvpa.reconcile.telemetry import Telemetry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

RESTART: Final = Backoff(base=0.25, cap=30.0)
"""Between two runs of a task that failed; the cap is a tenth of what kubelet waits between restarts of a container."""
STEADY: Final = 60.0
"""Seconds without a failure after which a task counts as working again."""
REPEATED: Final = 3
"""Failures of a task, less than STEADY apart, from which on it is a problem that /readyz reports."""


@dataclass(slots=True)
class _Failures:
    """How often in a row a task failed, when last, and with which type of exception."""

    count: int = 0
    last: float = 0.0
    kind: str = ""


class Supervisor:
    """Keeps tasks going. All in one event loop."""

    def __init__(
        self,
        telemetry: Telemetry | None = None,
        backoff: Backoff = RESTART,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._telemetry = telemetry or Telemetry()
        self._backoff = backoff
        self._monotonic = monotonic
        self._rng = random.Random()
        self._failures: dict[str, _Failures] = {}
        """By task; each name is a constant of the code, or has one in it for each resource."""

    async def keep(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        on_failure: Callable[[Exception], None] = lambda error: None,
        backoff: Backoff | None = None,
    ) -> None:
        """Run `work` until it returns, again after each exception, which `on_failure` gets before the back-off."""
        while True:
            try:
                await work()
                return
            except Exception as error:
                failures = self.failed(name, error)
                on_failure(error)
            await asyncio.sleep((backoff or self._backoff).delay(failures, self._rng))

    def failed(self, name: str, error: Exception) -> int:
        """Log and count an exception of the task `name`; returns how many there were in a row, each less than STEADY
        after the one before."""
        known, now = self._failures.setdefault(name, _Failures()), self._monotonic()
        known.count = known.count + 1 if now - known.last < STEADY else 1
        known.last, known.kind = now, type(error).__name__
        self._telemetry.task_failed(name)
        log.error("a task failed, and begins again", task=name, failures=known.count, exc_info=error)
        return known.count

    def problems(self) -> Mapping[str, str]:
        """Why tasks fail that do so again and again, by task. Without texts of exceptions: anybody may read it."""
        now = self._monotonic()
        return {
            name: f"fails again and again: {one.kind}"
            for name, one in self._failures.items()
            if one.count >= REPEATED and now - one.last < STEADY
        }
