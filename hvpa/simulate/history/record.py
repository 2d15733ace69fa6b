"""The history of one workload: times, replicas, what each container used in all pods together, and the load if it is
known."""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from hvpa.simulate.load.series import Record

_ROUNDING: Final = 0.5
"""Seconds that a time may be early: times are floats, and some clocks round."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a container used in all pods together, at each time: CPU in cores, memory in bytes."""

    cpu: array[float]
    memory: array[float]


@dataclass(frozen=True, slots=True)
class History:
    """At least two rows in rising order of time, with no value that is negative or not finite. `source` is what
    messages call it; `load` is None where no load was recorded. `notes` is what the reader should know."""

    source: str
    times: array[float]
    replicas: array[float]
    containers: Mapping[str, Used]
    load: array[float] | None = None
    notes: tuple[str, ...] = ()

    def record(self, values: array[float]) -> Record:
        """One of its series, without lines."""
        return Record(self.source, self.times, values, lambda _: 0)

    @property
    def length(self) -> float:
        """From the first row to the end of the last one, in seconds."""
        return self.record(self.replicas).length

    @property
    def start(self) -> dt.datetime:
        """The time of the first row."""
        return dt.datetime.fromtimestamp(self.times[0], dt.UTC)

    def total(self, resource: str) -> array[float]:
        """What all containers used together: `cpu` or `memory`."""
        columns = [getattr(one, resource) for one in self.containers.values()]
        return array("d", map(sum, zip(*columns, strict=True)))

    def last(self, seconds: float) -> History:
        """Its rows of so many last seconds, at least two of them."""
        end = self.times[0] + self.length
        first = min(bisect_left(self.times, end - seconds - _ROUNDING), len(self.times) - 2)
        return replace(
            self,
            times=self.times[first:],
            replicas=self.replicas[first:],
            containers={
                name: Used(one.cpu[first:], one.memory[first:]) for name, one in self.containers.items()
            },
            load=None if self.load is None else self.load[first:],
        )
