"""The shape of the day: what the load is at each hour as a rule, and how much of its ups and downs that explains."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from hvpa.api.values.duration import DAY, HOUR


class Pattern(NamedTuple):
    """The load's median at each hour of the day (UTC) at which there are values, and the share of its variance that
    the hour explains."""

    hours: dict[int, float]
    explained: float

    @property
    def highest(self) -> int:
        """The hour with the highest load."""
        return max(self.hours, key=lambda hour: self.hours[hour])

    @property
    def lowest(self) -> int:
        """The hour with the lowest load."""
        return min(self.hours, key=lambda hour: self.hours[hour])

    @property
    def is_daily(self) -> bool:
        """Whether the load follows the day: the hour explains more than a third of it."""
        return len(self.hours) == 24 and self.explained > 1 / 3


def pattern(times: Sequence[float], load: Sequence[float]) -> Pattern:
    """The pattern of a load with at least one value."""
    by_hour: dict[int, list[float]] = {}
    for time, value in zip(times, load, strict=True):
        by_hour.setdefault(int(time % DAY // HOUR), []).append(value)
    mean = math.fsum(load) / len(load)
    whole = math.fsum((value - mean) ** 2 for value in load)
    left = math.fsum(
        math.fsum((value - statistics.fmean(values)) ** 2 for value in values) for values in by_hour.values()
    )
    medians = {hour: statistics.median(values) for hour, values in sorted(by_hour.items())}
    return Pattern(medians, 1 - left / whole if whole > 0 else 0.0)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed: of 1, 2, 3 and 4, a half does not exceed 2."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
