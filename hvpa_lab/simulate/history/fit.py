"""Fits the usage of each container per unit of the load and per replica to a workload's history.

If a load was recorded, CPU (cores) is fitted to load and replicas:

    CPU of all pods = base * replicas + perUnit * load

Example: a base of 150m and 10m per request per second are 1.8 + 3 cores for 12 replicas with 300 requests per second.
If no load was recorded, or if CPU does not follow it, the load is the CPU usage itself, in cores. The base can't be
separated then and counts as 0. Memory (bytes) is fitted to replicas and load in the same way.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa_lab.simulate.history.record import History, Used
from hvpa_lab.simulate.history.regression import FittedLine, fitted

_ABOVE: Final = 0.95
"""Share of memory measurements that a simulated pod's memory covers."""


@dataclass(frozen=True, slots=True)
class FittedUsage:
    """The fitted usage of one container."""

    cpu: FittedLine
    """Cores of all pods."""
    memory: FittedLine
    """Bytes of all pods."""
    memory_above: float
    """Bytes per replica above `memory` that 95 percent of the measurements do not exceed."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The fitted usage of a workload."""

    load: array[float]
    """The load at each row of the history."""
    is_cpu: bool
    """Whether `load` is the CPU usage in cores, not a recorded load."""
    containers: Mapping[str, FittedUsage]
    notes: tuple[str, ...]
    """Parts of the result that are unreliable."""

    @property
    def is_poor(self) -> bool:
        """Whether the line of any container is a poor fit."""
        return any(usage.cpu.is_poor or usage.memory.is_poor for usage in self.containers.values())

    @property
    def cpu_base(self) -> float:
        """Cores that a pod uses without any load."""
        return math.fsum(usage.cpu.per_replica for usage in self.containers.values())

    @property
    def memory_base(self) -> float:
        """Bytes that a pod uses without any load."""
        return math.fsum(usage.memory.per_replica for usage in self.containers.values())


def fit(history: History, *, by_load: bool = False) -> Fit:
    """The usage that fits the history. `by_load`: use the recorded load even if CPU does not follow it."""
    notes: list[str] = []
    load = _recorded(history, notes)
    lines: dict[str, FittedLine] = {}
    if load is not None:
        lines = {name: fitted(history.replicas, load, used.cpu) for name, used in history.containers.items()}
        whole = fitted(history.replicas, load, history.total("cpu"))
        if whole.is_poor and not by_load:
            notes.append(
                f"CPU usage does not follow the load, which explains only {_percent(whole.explained)} of it: CPU "
                "usage is used as the load"
            )
            load = None
        elif not whole.is_distinct:
            notes.append(
                "replicas were always proportional to the load: the base usage of a pod can't be separated and is "
                "assumed to be 0"
            )
    is_cpu = load is None
    if load is None:
        load = history.total("cpu")
        lines = {name: _share(used, load) for name, used in history.containers.items()}
    usages = {name: _usage(history, load, used, lines[name]) for name, used in history.containers.items()}
    for name, usage in usages.items():
        notes += _doubts(name, usage)
    return Fit(load, is_cpu, usages, tuple(notes))


def _recorded(history: History, notes: list[str]) -> array[float] | None:
    """The recorded load, if it was ever above 0."""
    if history.load is None:
        notes.append(
            "no load was given: CPU usage is used as the load, and the base usage of a pod is assumed to be 0"
        )
        return None
    if not any(history.load):
        notes.append("the load is 0 throughout: CPU usage is used as the load")
        return None
    return history.load


def _share(used: Used, cpu: Sequence[float]) -> FittedLine:
    """The CPU line of a container if the load is the pods' CPU: the container's share of it."""
    whole = math.fsum(cpu)
    zeros = [0.0] * len(cpu)
    line = fitted(zeros, cpu, used.cpu)
    return line._replace(per_unit=math.fsum(used.cpu) / whole if whole else 0.0, is_distinct=True)


def _usage(history: History, load: Sequence[float], used: Used, cpu: FittedLine) -> FittedUsage:
    memory = memory_line(history.replicas, load, used.memory)
    above = sorted(
        (measured - memory.at(count, units)) / count
        for count, units, measured in zip(history.replicas, load, used.memory, strict=True)
        if count > 0
    )
    most = above[min(len(above) - 1, math.ceil(_ABOVE * len(above)) - 1)] if above else 0.0
    return FittedUsage(cpu, memory, max(0.0, most))


def memory_line(replicas: Sequence[float], load: Sequence[float], memory: Sequence[float]) -> FittedLine:
    """The line of memory (bytes). If replicas and load always rose and fell together, all memory counts as base if
    that explains as much: most workloads keep their memory when the load falls."""
    line = fitted(replicas, load, memory)
    if line.is_distinct:
        return line
    alone = fitted(replicas, [0.0] * len(load), memory)
    return alone if alone.explained >= line.explained else line


def _doubts(name: str, usage: FittedUsage) -> list[str]:
    """A note for each poor line of a container."""
    return [
        f"container {name}: replicas and load explain {_percent(line.explained)} of its {label}, with a typical "
        f"error of {_percent(line.error)}"
        for label, line in (("CPU", usage.cpu), ("memory", usage.memory))
        if line.is_poor
    ]


def _percent(share: float) -> str:
    return f"{max(0.0, share) * 100:.0f} percent"
