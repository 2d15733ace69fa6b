"""Histories whose cause is known."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence

from hvpa_lab.simulate.history.record import History, Used

START = 1_767_571_200.0  # 2026-01-05T00:00:00Z
STEP = 300.0
DAY_ROWS = 288


def wave(row: int) -> float:
    """A load between 50 and 350 that comes back every day."""
    return 200 - 150 * math.cos(2 * math.pi * row / DAY_ROWS)


def history(
    rows: int = 2 * DAY_ROWS,
    *,
    load: Callable[[int], float] | None = wave,
    replicas: Callable[[int], float] = lambda row: 2 + wave(row) // 60 + row // 7 % 2,
    cpu: Callable[[float, float], float] = lambda count, units: 0.15 * count + 0.01 * units,
    memory: Callable[[float, float], float] = lambda count, units: 4e8 * count + 1e6 * units,
    containers: Sequence[str] = ("app",),
) -> History:
    """`cpu` and `memory` are of replicas and load; containers share them evenly."""
    counts = [float(replicas(row)) for row in range(rows)]
    units = [(load or wave)(row) for row in range(rows)]
    used = Used(
        array("d", (cpu(*pair) / len(containers) for pair in zip(counts, units, strict=True))),
        array("d", (memory(*pair) / len(containers) for pair in zip(counts, units, strict=True))),
    )
    return History(
        "usage.csv",
        array("d", (START + row * STEP for row in range(rows))),
        array("d", counts),
        dict.fromkeys(containers, used),
        None if load is None else array("d", units),
    )
