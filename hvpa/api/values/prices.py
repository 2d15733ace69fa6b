"""Prices of requested CPU and memory, and amounts of money as text, without a currency, which the user knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CPU_PRICE: Final = 0.031611
"""Default price of a core-hour: on-demand price of a general purpose machine (GCP N1, us-central1, in US dollars). It
is also OpenCost's default (`configs/default.json`, `CPU`)."""
MEMORY_PRICE: Final = 0.004237
"""Default price of a GiB-hour, from the same price list (`RAM`). A core costs as much as 7.5 GiB."""
_DECIMALS: Final = ((1.0, 4), (10.0, 3), (1_000.0, 2), (100_000.0, 1))
"""Upper end of an amount, and the number of decimals below it."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a core-hour and a GiB-hour, in a currency of the user's choice."""

    cpu: float = CPU_PRICE
    memory: float = MEMORY_PRICE

    def cost(self, core_hours: float, gib_hours: float) -> float:
        """Returns the cost. Example: at prices 0.03 and 0.004, 100 core-hours and 250 GiB-hours cost 100 * 0.03 + 250 *
        0.004 = 4."""
        return core_hours * self.cpu + gib_hours * self.memory


def money(cost: float, largest: float | None = None) -> str:
    """Returns an amount of money as text, without currency: 0.0402, 12.34, 1,234.5. In a column, `largest` is the
    largest amount and sets the decimals of all: next to 12.34, 0.0402 becomes 0.04."""
    size = abs(cost) if largest is None else largest
    decimals = next((count for end, count in _DECIMALS if size < end), 0)
    return f"{cost:,.{decimals}f}" if cost else "0"
