"""The history of one workload: times, replicas, usage by container, and the load if it is known."""

from __future__ import annotations

import datetime as dt
from array import array
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from hvpa_lab.simulate.load.series import RecordedSeries

_ROUNDING: Final = 0.5
"""Seconds by which a time may be early: times are floats, and some clocks round."""


@dataclass(frozen=True, slots=True)
class Used:
    """Usage of a container at each time, summed over the pods."""

    cpu: array[float]
    """Cores."""
    memory: array[float]
    """Bytes."""


@dataclass(frozen=True, slots=True)
class History:
    """The history: at least two rows in order of time. All values are finite and not negative."""

    source: str
    """The history's name in messages."""
    times: array[float]
    """Unix seconds."""
    replicas: array[float]
    containers: Mapping[str, Used]
    load: array[float] | None = None
    """None if no load was recorded."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    throttled_starts: Mapping[str, float] = field(default_factory=dict)
    """By container: the median share of the CPU periods in which its starts were throttled, if known."""

    def record(self, values: array[float]) -> RecordedSeries:
        """A `RecordedSeries` of these values, without line numbers."""
        return RecordedSeries(self.source, self.times, values, lambda _: 0)

    @property
    def length(self) -> float:
        """Seconds from the first row to the end of the last row."""
        return self.record(self.replicas).length

    @property
    def start(self) -> dt.datetime:
        """The time of the first row."""
        return dt.datetime.fromtimestamp(self.times[0], dt.UTC)

    def total(self, resource: str) -> array[float]:
        """Usage of all containers together, by time. `resource` is `cpu` (cores) or `memory` (bytes)."""
        columns = [getattr(used, resource) for used in self.containers.values()]
        return array("d", map(sum, zip(*columns, strict=True)))

    def last(self, seconds: float) -> History:
        """The history's last `seconds`, with at least two rows."""
        end = self.times[0] + self.length
        first = min(bisect_left(self.times, end - seconds - _ROUNDING), len(self.times) - 2)
        return replace(
            self,
            times=self.times[first:],
            replicas=self.replicas[first:],
            containers={
                name: Used(used.cpu[first:], used.memory[first:]) for name, used in self.containers.items()
            },
            load=None if self.load is None else self.load[first:],
        )
