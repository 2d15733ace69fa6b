"""What requested CPU and memory cost, and how an amount of money is written: without a currency, which the user
knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CPU_PRICE: Final = 0.031611
"""Default price of one core for one hour: on-demand price of a general purpose machine (GCP N1, us-central1, in US
dollars), the default that OpenCost has too (`configs/default.json`, `CPU`)."""
MEMORY_PRICE: Final = 0.004237
"""Default price of one GiB for one hour, from the same price list (`RAM`): a core costs as much as 7.5 GiB."""
_DECIMALS: Final = ((1.0, 4), (10.0, 3), (1_000.0, 2), (100_000.0, 1))
"""Below an amount: how many decimals it is written with."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per core-hour and per GiB-hour, in one currency of the user's choice."""

    cpu: float = CPU_PRICE
    memory: float = MEMORY_PRICE

    def cost(self, core_hours: float, gib_hours: float) -> float:
        """What these core-hours and GiB-hours cost: with prices 0.03 and 0.004, 100 core-hours and 250 GiB-hours cost
        100 * 0.03 + 250 * 0.004 = 4."""
        return core_hours * self.cpu + gib_hours * self.memory


def money(cost: float, largest: float | None = None) -> str:
    """An amount of money without currency: 0.0402, 12.34, 1,234.5. In a column, `largest` is the largest amount, by
    which all have their decimals: beside 12.34, 0.0402 is 0.04."""
    size = abs(cost) if largest is None else largest
    decimals = next((count for end, count in _DECIMALS if size < end), 0)
    return f"{cost:,.{decimals}f}" if cost else "0"
