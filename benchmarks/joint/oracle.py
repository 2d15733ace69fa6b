"""The limit: what a load costs one who knows it ahead and whose changes take no time, with no demand unmet.

In place: requests are what is used, in each step, on the fewest pods that the bounds allow. Replaced: the one size of
pods that turns out cheapest, and in each step as many of them as are needed. Leaks are left out: who restarts pods
for free has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.joint.kept import GIB_PER_CORE
from benchmarks.joint.policies import MAX_ALLOWED, MIN_ALLOWED, REPLICAS, Resize, Workload
from hvpa.api.values.quantity import parse_cpu, parse_memory

LEVELS: Final = 200
"""So many levels the load is rounded up to, for the search of the best size."""
SIZES: Final = 40
"""So many sizes of each resource are tried, in equal ratios from the least to the most that is allowed."""
GIB: Final = 1024.0**3


class Use(NamedTuple):
    """Cores and GiB of a pod: without work, and for each core of work. Work itself takes a core."""

    base_cpu: float
    base_memory: float
    memory: float


def use_of(workload: Workload) -> Use:
    """What pods of this workload use."""
    base, per_core = parse_memory(workload.base_memory), parse_memory(workload.memory_per_core)
    return Use(parse_cpu(workload.base_cpu) / 1000, base / GIB, per_core / GIB)


def price(cores: float, gib: float) -> float:
    """Cores and GiB in one number."""
    return cores + gib / GIB_PER_CORE


def limit(load: Sequence[float], hours: float, workload: Workload, resize: Resize) -> float:
    """The cost of this load, given in cores of work for each step of `hours`. Raises ValueError where no allowed size
    serves all of it."""
    use = use_of(workload)
    return hours * (_in_place(load, use) if resize == "InPlace" else _best_size(load, use))


def _bounds() -> tuple[tuple[float, float], tuple[float, float]]:
    """Least and most cores, and GiB, of a pod."""
    cpu = [parse_cpu(str(one["cpu"])) / 1000 for one in (MIN_ALLOWED, MAX_ALLOWED)]
    memory = [parse_memory(str(one["memory"])) / GIB for one in (MIN_ALLOWED, MAX_ALLOWED)]
    return (cpu[0], cpu[1]), (memory[0], memory[1])


def _pods(work: float, cpu: float, memory: float, use: Use) -> int:
    """The fewest pods of this size that do this work: 3 cores of work take 4 pods of 1 core that use 150m anyway."""
    needed = max(work / (cpu - use.base_cpu), work * use.memory / (memory - use.base_memory))
    return max(REPLICAS["minReplicas"], math.ceil(needed - 1e-9))


def _in_place(load: Sequence[float], use: Use) -> float:
    (least_cpu, most_cpu), (least_memory, most_memory) = _bounds()
    total = 0.0
    for work in load:
        pods = _pods(work, most_cpu, most_memory, use)
        cpu = max(least_cpu, use.base_cpu + work / pods)
        memory = max(least_memory, use.base_memory + work * use.memory / pods)
        total += pods * price(cpu, memory)
    return total


def _best_size(load: Sequence[float], use: Use) -> float:
    (least_cpu, most_cpu), (least_memory, most_memory) = _bounds()
    top = max(load)
    levels = Counter(math.ceil(work / top * LEVELS) for work in load)
    best = math.inf
    for cpu in _sizes(max(least_cpu, 1.1 * use.base_cpu), most_cpu):
        for memory in _sizes(max(least_memory, 1.1 * use.base_memory), most_memory):
            if _pods(top, cpu, memory, use) <= REPLICAS["maxReplicas"]:
                pods = sum(
                    count * _pods(level * top / LEVELS, cpu, memory, use) for level, count in levels.items()
                )
                best = min(best, pods * price(cpu, memory))
    if best == math.inf:
        raise ValueError(f"no allowed size serves {top:g} cores of work")
    return best


def _sizes(least: float, most: float) -> list[float]:
    ratio = (most / least) ** (1 / (SIZES - 1))
    return [least * ratio**at for at in range(SIZES)]
