"""Usage of each container per unit of the load and per replica, from a workload's history.

Where a load was recorded, CPU is fitted to it and to the replicas:

    CPU of all pods = base * replicas + perUnit * load

12 replicas with 300 requests per second that use 1.8 + 3 cores have a base of 150m and 10m per request. Where no load
was recorded, or where CPU does not follow it, CPU itself is the load, in cores: what a pod uses without any load can't
be separated then, and counts as none. Memory is fitted in the same way to replicas and load.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.simulate.history.record import History, Used
from hvpa.simulate.history.regression import Line, fitted

_ABOVE: Final = 0.95
"""Share of the measurements of memory that what a simulated pod uses is not below."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one container uses. CPU in cores and memory in bytes: `cpu` and `memory` are the lines through the history;
    `memory_above` is what a replica used beyond that line in 95 percent of the measurements, at most."""

    cpu: Line
    memory: Line
    memory_above: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What was learnt. `load` has a value for each row of the history: what was recorded, or cores (`is_cpu`). `notes`
    say what can't be relied on; `is_poor` whether that is much."""

    load: array[float]
    is_cpu: bool
    containers: Mapping[str, Usage]
    notes: tuple[str, ...]

    @property
    def is_poor(self) -> bool:
        """Whether some line says little about what it was fitted to."""
        return any(one.cpu.is_poor or one.memory.is_poor for one in self.containers.values())

    @property
    def cpu_base(self) -> float:
        """Cores that a pod uses without any load."""
        return math.fsum(one.cpu.per_replica for one in self.containers.values())

    @property
    def memory_base(self) -> float:
        """Bytes that a pod uses without any load."""
        return math.fsum(one.memory.per_replica for one in self.containers.values())


def fit(history: History, *, by_load: bool = False) -> Fit:
    """What the history says about usage. `by_load`: the recorded load is kept, whether CPU follows it or not."""
    notes: list[str] = []
    load = _recorded(history, notes)
    lines: dict[str, Line] = {}
    if load is not None:
        lines = {name: fitted(history.replicas, load, used.cpu) for name, used in history.containers.items()}
        whole = fitted(history.replicas, load, history.total("cpu"))
        if whole.is_poor and not by_load:
            notes.append(
                f"CPU does not follow the load, which explains {_percent(whole.explained)} of it:"
                " CPU itself is taken as the load"
            )
            load = None
        elif not whole.is_distinct:
            notes.append(
                "replicas always rose and fell as the load did: what a pod uses without any load can't be separated,"
                " and counts as none"
            )
    is_cpu = load is None
    if load is None:
        load = history.total("cpu")
        lines = {name: _share(used, load) for name, used in history.containers.items()}
    found = {name: _usage(history, load, used, lines[name]) for name, used in history.containers.items()}
    for name, one in found.items():
        notes += _doubts(name, one)
    return Fit(load, is_cpu, found, tuple(notes))


def _recorded(history: History, notes: list[str]) -> array[float] | None:
    """The load that was recorded, if it ever was above 0."""
    if history.load is None:
        notes.append(
            "no load was given: CPU itself is taken as the load, and what a pod uses without any load counts as none"
        )
        return None
    if not any(history.load):
        notes.append("the load is 0 throughout: CPU itself is taken as the load")
        return None
    return history.load


def _share(used: Used, cpu: Sequence[float]) -> Line:
    """A container's part of the pods' CPU, which is the load."""
    whole = math.fsum(cpu)
    zeros = [0.0] * len(cpu)
    line = fitted(zeros, cpu, used.cpu)
    return line._replace(per_unit=math.fsum(used.cpu) / whole if whole else 0.0, is_distinct=True)


def _usage(history: History, load: Sequence[float], used: Used, cpu: Line) -> Usage:
    memory = memory_line(history.replicas, load, used.memory)
    above = sorted(
        (own - memory.at(count, units)) / count
        for count, units, own in zip(history.replicas, load, used.memory, strict=True)
        if count > 0
    )
    most = above[min(len(above) - 1, math.ceil(_ABOVE * len(above)) - 1)] if above else 0.0
    return Usage(cpu, memory, max(0.0, most))


def memory_line(replicas: Sequence[float], load: Sequence[float], memory: Sequence[float]) -> Line:
    """The line of memory. Where replicas and load always rose and fell together, all of it is the replicas', if these
    explain as much: memory that nothing takes away is the rule."""
    line = fitted(replicas, load, memory)
    if line.is_distinct:
        return line
    alone = fitted(replicas, [0.0] * len(load), memory)
    return alone if alone.explained >= line.explained else line


def _doubts(name: str, usage: Usage) -> list[str]:
    """What the lines of a container do not account for."""
    return [
        f"container {name}: replicas and load explain {_percent(line.explained)} of its {what}, and the fit is off by"
        f" {_percent(line.error)} as a rule"
        for what, line in (("CPU", usage.cpu), ("memory", usage.memory))
        if line.is_poor
    ]


def _percent(share: float) -> str:
    return f"{max(0.0, share) * 100:.0f} percent"
