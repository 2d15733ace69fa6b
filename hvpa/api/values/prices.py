"""Prices of requested CPU and memory, and amounts of money as text, without a currency, which the user knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hvpa.api.values.documents import PlainError, SourceText

CPU_PRICE: Final = 0.031611
"""Default price of a core-hour: on-demand price of a general purpose machine (GCP N1, us-central1, in US dollars). It
is also OpenCost's default (`configs/default.json`, `CPU`)."""
MEMORY_PRICE: Final = 0.004237
"""Default price of a GiB-hour, from the same price list (`RAM`). A core costs as much as 7.5 GiB."""
_DECIMALS: Final = ((1.0, 4), (10.0, 3), (1_000.0, 2), (100_000.0, 1))
"""Upper end of an amount, and the number of decimals below it."""


_CPU: Final = "CPU"
_MEMORY: Final = "RAM"
"""The fields of OpenCost's files (`configs/default.json`)."""
_DISCOUNTS: Final = ("discount", "negotiatedDiscount")
_LONGEST_CURRENCY: Final = 10


class PricesError(ValueError):
    """A file without usable prices: the field, if known, and the reason."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a core-hour and a GiB-hour, in a currency of the user's choice."""

    cpu: float = CPU_PRICE
    memory: float = MEMORY_PRICE
    currency: str = ""
    """The name of the currency, if a file of prices has it."""

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


def read_prices(text: str) -> Prices:
    """Returns the prices of a file in OpenCost's format: `{"CPU": "0.031611", "RAM": "0.004237"}`, in JSON or YAML, per
    core-hour and GiB-hour. Prices of other things are ignored. Raises PricesError."""
    try:
        documents = SourceText(text).documents()
    except PlainError as error:
        raise PricesError(
            error.reason if error.line is None else f"line {error.line}: {error.reason}"
        ) from None
    content = documents[0].content if len(documents) == 1 else None
    if not isinstance(content, dict):
        raise PricesError('must be one object, such as {"CPU": "0.031611", "RAM": "0.004237"}')
    for field in _DISCOUNTS:
        if str(content.get(field, "")).strip(" 0.%"):
            raise PricesError(f"{field}: is not supported; write the prices after the discount")
    currency = content.get("currencyCode", "")
    if not isinstance(currency, str) or len(currency) > _LONGEST_CURRENCY:
        raise PricesError("currencyCode: must be a short text, such as EUR")
    return Prices(_price(content, _CPU), _price(content, _MEMORY), currency)


def _price(content: Mapping[str, Any], field: str) -> float:
    if field not in content:
        raise PricesError(f"{field}: is required: the price of a {'core' if field == _CPU else 'GiB'}-hour")
    value = content[field]
    try:
        price = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        price = math.nan
    if not math.isfinite(price) or price < 0:
        example = CPU_PRICE if field == _CPU else MEMORY_PRICE
        raise PricesError(f"{field}: must be a number of at least 0, such as {example}")
    return price + 0.0
