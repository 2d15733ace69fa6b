"""The daily pattern of a load: its median at each hour, and how much of its variance the hour explains."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hvpa.api.values.duration import DAY, HOUR


class Rise(NamedTuple):
    """A rise of the load between two values."""

    factor: float
    """The value, as a multiple of the one before it."""
    seconds: float
    """Seconds between the two values."""
    time: float
    """When it ended, in seconds since 1970."""


class Pattern(NamedTuple):
    """The pattern of a load."""

    hours: dict[int, float]
    """The load's median at each hour of the day (UTC) that has values."""
    explained: float
    """Share of the load's variance that the hour explains."""
    steepest: Rise | None = None
    """The largest rise; None if the load never rises. Values below a tenth of the largest count as a tenth."""

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
        """Whether the load has a daily pattern: the hour explains more than a third of its variance."""
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
    return Pattern(medians, 1 - left / whole if whole > 0 else 0.0, _steepest(times, load))


def _steepest(times: Sequence[float], load: Sequence[float]) -> Rise | None:
    least = max(load) / 10
    rises = [
        Rise(value / max(before, least), time - since, time)
        for (since, before), (time, value) in pairwise(zip(times, load, strict=True))
        if value > max(before, least)
    ]
    return max(rises, default=None)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed. Example: 2 for half of 1, 2, 3, 4."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
