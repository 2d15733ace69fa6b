"""The scales of a path's plot: round steps of CPU and memory, and short words for amounts. Numbers only, no drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from hvpa.api.values.quantity import Resource, format_resource

_DECIMAL_STEPS: Final = (1, 2, 5, 10)
_UNITS: Final = ((1024**4, "Ti"), (1024**3, "Gi"), (1024**2, "Mi"), (1024, "Ki"))
_WHOLE: Final = 100
"""From here on an amount is told in whole units."""


def step(resource: Resource, span: float, most: int) -> int:
    """The smallest round step (millicores, bytes) of which no more than `most` are in `span`: 1, 2 or 5 with zeros, for
    memory a power of two."""
    least = max(1.0, span / most)
    if resource == "memory":
        return 1 << math.ceil(math.log2(least))
    power = 1
    while power * _DECIMAL_STEPS[-1] < least:
        power *= 10
    return next(power * one for one in _DECIMAL_STEPS if power * one >= least)


def multiples(resource: Resource, span: float, most: int) -> Sequence[int]:
    """Round amounts from nothing up to `span`, no more than `most` and the 0."""
    by = step(resource, span, most)
    return range(0, int(span) + 1, by)


def short(resource: Resource, amount: int) -> str:
    """An amount in a few characters: three digits are enough to read a plot."""
    if resource == "cpu":
        many = amount >= _WHOLE * 100 and amount % 1000
        return f"{amount / 1000:.1f}" if many else format_resource("cpu", amount)
    for unit, suffix in _UNITS:
        if amount >= unit:
            value = amount / unit
            told = f"{value:.0f}" if value >= _WHOLE else f"{value:.2f}".rstrip("0").rstrip(".")
            return f"{told}{suffix}"
    return str(amount)
