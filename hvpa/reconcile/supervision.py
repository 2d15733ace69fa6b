"""Keeps tasks running for the lifetime of the process. An exception in a task ends no other task: it is logged with its
traceback and counted, and the task starts again after a back-off."""

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
"""Back-off between two runs of a failed task. The cap is a tenth of the kubelet's between restarts of a container."""
STEADY: Final = 60.0
"""Seconds without a failure after which a task counts as working again."""
REPEATED: Final = 3
"""Number of failures of a task, less than STEADY apart, from which /readyz reports a problem."""


@dataclass(slots=True)
class _Failures:
    """Failures of a task in a row."""

    count: int = 0
    last: float = 0.0
    """Time of the last failure."""
    kind: str = ""
    """Type of the last exception."""


class Supervisor:
    """Keeps tasks running, all in one event loop."""

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
        """Failures by task. Task names are constants of the code, or contain the name of a resource."""

    async def keep(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        on_failure: Callable[[Exception], None] = lambda error: None,
        backoff: Backoff | None = None,
    ) -> None:
        """Runs `work` until it returns. After an exception, calls `on_failure`, waits for the back-off, and runs `work`
        again."""
        while True:
            try:
                await work()
                return
            except Exception as error:
                failures = self.failed(name, error)
                on_failure(error)
            await asyncio.sleep((backoff or self._backoff).delay(failures, self._rng))

    def failed(self, name: str, error: Exception) -> int:
        """Logs and counts an exception of the task `name`. Returns the number of exceptions in a row, each less than
        STEADY after the previous exception."""
        known, now = self._failures.setdefault(name, _Failures()), self._monotonic()
        known.count = known.count + 1 if now - known.last < STEADY else 1
        known.last, known.kind = now, type(error).__name__
        self._telemetry.task_failed(name)
        log.error("task failed; restarting it", task=name, failures=known.count, exc_info=error)
        return known.count

    def problems(self) -> Mapping[str, str]:
        """Returns why tasks fail repeatedly, by task. Exception texts are left out, because anybody may read this."""
        now = self._monotonic()
        return {
            name: f"keeps failing: {failure.kind}"
            for name, failure in self._failures.items()
            if failure.count >= REPEATED and now - failure.last < STEADY
        }
