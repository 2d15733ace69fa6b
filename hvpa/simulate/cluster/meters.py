"""What the usage of containers is kept in, and how CPU is divided where there is not enough: no pods, no time here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

LEAST_WEIGHT: Final = 2.0
"""CPU weight of a container without a request: the kernel's least `cpu.shares` (Kubernetes: `MinShares`)."""

ROUNDING: Final = 1e-9
"""Relative difference that floats make up for: usage within it of a limit is not beyond the limit."""


class Meter:
    """Usage of one container in each pod of a group.

    What it uses: `base` (millicores), `per_unit` of load, `memory_base` (bytes), `memory_per_unit`, `leak` (bytes per
    second since `since`). What bounds it: `limit` (millicores), `memory_limit` (bytes), `weight` (its CPU request).
    What comes out: `demand` and `rate` (millicores needed and used), `memory` (bytes), and since the meter's start
    `total` (millicore-seconds).
    """

    __slots__ = (
        "base", "demand", "index", "leak", "limit", "memory", "memory_base", "memory_limit", "memory_per_unit",
        "per_unit", "rate", "request", "since", "total", "weight",
    )  # fmt: skip

    def __init__(self) -> None:
        self.index = 0
        self.base = self.per_unit = self.memory_base = self.memory_per_unit = self.leak = self.since = 0.0
        self.limit = self.memory_limit = math.inf
        self.weight = LEAST_WEIGHT
        self.request = 0
        self.demand = self.rate = self.memory = self.total = 0.0


IDLE: Final = Meter()
"""The meter of containers that do not run; never written to."""


def share_out(capacity: float, wants: Sequence[tuple[float, float, int]]) -> list[float]:
    """Divide CPU as the kernel's scheduler does: in proportion to weights, what one does not want going to the others.

    `wants` are (amount wanted, weight, how many there are of this kind); the result is what each one of a kind gets.
    """
    grants = [0.0] * len(wants)
    left, waiting = capacity, list(range(len(wants)))
    while waiting:
        level = left / sum(wants[i][1] * wants[i][2] for i in waiting)
        content = [i for i in waiting if wants[i][0] <= level * wants[i][1]]
        for i in content or waiting:
            grants[i] = wants[i][0] if content else level * wants[i][1]
            left -= grants[i] * wants[i][2]
        waiting = [i for i in waiting if i not in content] if content else []
    return grants
