"""Reads the metrics that judge canaries (`rollbackOnMetrics`) in the background, so that no decision waits for a
metrics API that hangs.

Each Hvpa with such metrics has one task. Outside of a trial it reads once a minute, so that the values from before a
trial are known when one begins.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.core.model import MetricValue
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.service_metric import Plurals, read_metric
from hvpa.reconcile.ports import Key, TimeSource
from hvpa.reconcile.supervision import Supervisor

TRIAL_PERIOD: Final = 15.0
"""Seconds between two readings during a trial, as the HPA controller reads its metrics."""
PERIOD: Final = 60.0
"""Seconds between two readings otherwise."""
SPREAD: Final = 0.1
"""Part of a period by which readings are spread, so that those of many Hvpas do not run at once."""
MOST_OF_NAMESPACE: Final = 4
"""How many metrics are read at once for the Hvpas of a namespace."""
MOST: Final = 64
"""How many metrics are read at once in total."""
MOST_TIME: Final = 10.0
"""Seconds for a reading of a metric, of up to three requests."""


@dataclass(slots=True, eq=False)
class _Watched:
    metrics: tuple[RollbackMetric, ...]
    often: bool
    values: tuple[MetricValue, ...] | None = None
    """The newest values; None before the first reading."""
    begins: asyncio.Event = field(default_factory=asyncio.Event)
    """A trial begins: the next reading must not wait."""
    task: asyncio.Task[None] | None = None


class ServiceMetrics:
    """Reads the metrics of Hvpas. All methods are called in one event loop."""

    def __init__(
        self, transport: Transport, clock: TimeSource, enqueue: Callable[[Key], None], supervisor: Supervisor
    ) -> None:
        """`enqueue` makes an Hvpa decide on new values during a trial."""
        self._transport, self._clock = transport, clock
        self._enqueue, self._supervisor = enqueue, supervisor
        self._watched: dict[Key, _Watched] = {}
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        """By namespace."""
        self._all = asyncio.Semaphore(MOST)
        self._plurals: Plurals = {}

    def values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...] | None:
        """See `hvpa.reconcile.ports.Cluster`."""
        known = self._watched.get(key)
        if known is not None and known.metrics == tuple(metrics):
            if often and not known.often:
                known.begins.set()
            known.often = often
            return known.values
        if known is not None and known.task is not None:
            known.task.cancel()
            del self._watched[key]
        if metrics:
            watched = self._watched[key] = _Watched(tuple(metrics), often)
            work = self._supervisor.keep("service metrics", lambda: self._read_on(key, watched))
            watched.task = asyncio.create_task(work)
        return None

    def stop(self) -> None:
        """Reads no further values."""
        for key in list(self._watched):
            self.values(key, (), often=False)

    async def _read_on(self, key: Key, watched: _Watched) -> None:
        turns = self._turns.setdefault(key.namespace, asyncio.Semaphore(MOST_OF_NAMESPACE))
        while True:
            readings = [self._read(turns, key.namespace, metric) for metric in watched.metrics]
            watched.values = tuple(await asyncio.gather(*readings))
            if watched.often:
                self._enqueue(key)
            watched.begins.clear()
            try:
                period = TRIAL_PERIOD if watched.often else PERIOD
                async with asyncio.timeout(period * random.uniform(1 - SPREAD, 1)):
                    await watched.begins.wait()
            except TimeoutError:
                continue

    async def _read(self, turns: asyncio.Semaphore, namespace: str, metric: RollbackMetric) -> MetricValue:
        async with turns, self._all:
            try:
                async with asyncio.timeout(MOST_TIME):
                    now = self._clock.now()
                    return await read_metric(self._transport, namespace, metric, now, self._plurals)
            except TimeoutError:
                return MetricValue(problem=f"no answer within {MOST_TIME:.0f} s")
