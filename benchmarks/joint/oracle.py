"""The oracle: the lowest cost of a load that is known in advance, with instant changes and no unmet demand.

In place: requests equal usage in each step, on the fewest pods that the bounds allow. Replaced: the single pod size
that turns out cheapest, with as many pods as needed in each step. Leaks are ignored: with free restarts there are none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.joint.kept import GIB_PER_CORE
from benchmarks.joint.policies import MAX_ALLOWED, MIN_ALLOWED, REPLICAS, Resize, WorkloadUse
from hvpa.api.values.quantity import parse_cpu, parse_memory

LEVELS: Final = 200
"""Number of levels that the load is rounded up to, for the search of the best size."""
SIZES: Final = 40
"""Number of sizes of each resource that are tried, in equal ratios from minAllowed to maxAllowed."""
GIB: Final = 1024.0**3


class Use(NamedTuple):
    """Cores and GiB of a pod: without work, and for each core of work. Work itself takes a core."""

    base_cpu: float
    base_memory: float
    memory: float


def use_of(workload: WorkloadUse) -> Use:
    """Return the usage of this workload's pods."""
    base, per_core = parse_memory(workload.base_memory), parse_memory(workload.memory_per_core)
    return Use(parse_cpu(workload.base_cpu) / 1000, base / GIB, per_core / GIB)


def price(cores: float, gib: float) -> float:
    """Return the price of cores and GiB as a number."""
    return cores + gib / GIB_PER_CORE


def limit(load: Sequence[float], hours: float, workload: WorkloadUse, resize: Resize) -> float:
    """Return the lowest cost of this load, given in cores of work for each step of `hours`. Raises ValueError if no
    allowed size serves all of it."""
    use = use_of(workload)
    return hours * (_in_place(load, use) if resize == "InPlace" else _best_size(load, use))


def _bounds() -> tuple[tuple[float, float], tuple[float, float]]:
    """Return minimum and maximum cores, and GiB, of a pod."""
    cpu = [parse_cpu(str(size["cpu"])) / 1000 for size in (MIN_ALLOWED, MAX_ALLOWED)]
    memory = [parse_memory(str(size["memory"])) / GIB for size in (MIN_ALLOWED, MAX_ALLOWED)]
    return (cpu[0], cpu[1]), (memory[0], memory[1])


def _pods(work: float, cpu: float, memory: float, use: Use) -> int:
    """Return the fewest pods of this size for this work. Example: 3 cores of work need 4 pods of 1 core with a base of
    150m."""
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
