"""The curve of a container resource: the largest pod of the path at each replica count (DESIGN 5.4, 5.5).

All values are integers: replicas, and millicores or bytes. A size on the curve is rounded up to whole units, and all
later comparisons use integers. The curve never falls, so the demand that `count` replicas serve never falls either, and
a bisection finds the count for a demand.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from hvpa.api.schema.fields import INT64_MAX
from hvpa.core.values.arithmetic import ceil_div, round_up
from hvpa.core.values.weight import FULL, Bounds

_DIGITS: Final = Context(prec=60)
"""Sizes have at most 19 digits, which leaves about 40 digits after the point."""
_CLOSE: Final = Decimal("1e-20")
"""A power less than this above a whole number is that number: the error of `_DIGITS` is far smaller."""
_LARGEST_LOG: Final = Decimal(44)
"""Above the natural logarithm of `INT64_MAX`."""
_MOST_BASE: Final = 10
"""A pod's base usage is at most 0.9 of its size, so a tenth is left for work (DESIGN 5.5)."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The larger of a fixed amount (millicores or bytes) and a percentage below 100: `overlap` and
    `baseResourcesPerReplica`."""

    value: int = 0
    percentage: int = 0

    def raised(self, demand: int) -> int:
        """Returns the smallest boundary b that still serves `demand` after this margin lowers it: b - max(value, b *
        percentage) >= demand. A demand of 0 needs 0. Example: with 10 %, a demand of 900 needs 1000."""
        if demand <= 0:
            return 0
        return max(demand + self.value, ceil_div(demand * 100, 100 - self.percentage))

    def work(self, size: int) -> int:
        """Returns the part of a pod's size that is left for work: size - b, with b = max(value, size * percentage), at
        most 0.9 of the size. Example: 1000m with 10 % leaves 900m."""
        base = max(self.value, ceil_div(size * self.percentage, 100))
        return max(size - base, ceil_div(size, _MOST_BASE))

    def size(self, work: int) -> int:
        """Returns the smallest size that leaves this much for work: the inverse of `work`."""
        return min(_MOST_BASE * (work - 1) + 1, self.raised(work)) if work > 0 else 0


NONE: Final = Margin()


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """Bounds of the size of a container resource, in millicores or bytes."""

    base: int = 0
    """Size at the path's first count: `minAllowed`, or the request when HVPA first saw the target; 0 if unknown."""
    lower: int = 0
    """`minAllowed`."""
    upper: int | None = None
    """`maxAllowed`, or a fixed limit; at least 1. It wins over `lower`."""
    unit: int = 1
    """Sizes between the bounds are rounded up to multiples of this."""
    reserve: Margin = NONE
    """A pod's usage before it does any work."""

    def clamp(self, size: int) -> int:
        """Returns the nearest size inside the bounds."""
        size = max(size, self.lower)
        return size if self.upper is None else min(size, self.upper)


class Level(NamedTuple):
    """A constant size from count `first` on. `size` None: unlimited."""

    first: int
    size: int | None

    def top(self, count: int) -> int | None:
        """Returns the size at `count` replicas."""
        return self.size


class Power(NamedTuple):
    """From count `first` on: size = `size` * (count / origin) ** (w / (1 - w)), rounded up to whole units.

    It solves d(ln size) : d(ln count) = w : (1 - w) from the point (`origin`, `size`), with w in parts per million
    (DESIGN 5.4).

    Example: 500m at 4 replicas. With w = 0.5 the exponent is 1, so 16 replicas have 2000m. With w = 0.25 it is a third.
    """

    first: int
    origin: int
    size: int
    weight_ppm: int
    unit: int

    def top(self, count: int) -> int | None:
        """Returns the size at `count` replicas; None if it exceeds every quantity."""
        return _power(self.origin, self.size, self.weight_ppm, self.unit, count)


@lru_cache(maxsize=16_384)  # an uncached call costs 7 % of a decision's time; a decision makes 16
def _power(origin: int, size: int, weight_ppm: int, unit: int, count: int) -> int | None:
    exponent = _DIGITS.divide(Decimal(weight_ppm), Decimal(FULL - weight_ppm))
    log = _DIGITS.multiply(exponent, _DIGITS.ln(_DIGITS.divide(Decimal(count), Decimal(origin))))
    if log > _LARGEST_LOG:
        return None
    exact = _DIGITS.multiply(Decimal(size), _DIGITS.exp(log))
    rounded = round_up(int(_DIGITS.subtract(exact, _CLOSE).to_integral_value(ROUND_CEILING)), unit)
    return rounded if rounded <= INT64_MAX else None


class Line(NamedTuple):
    """From count `first` on: the total grows by the same amount with each replica, from the total of (`origin`, `low`)
    to the total of (`last`, `high`). size = total / count, rounded up to whole units, at most `high` (DESIGN 5.4).

    Example: from 2 replicas of 500m to 4 of 1000m the total grows from 1000m to 4000m: 3 replicas have 2500m, 834m
    each.
    """

    first: int
    origin: int
    low: int
    last: int
    high: int
    unit: int

    def top(self, count: int) -> int | None:
        """Returns the size at `count` replicas."""
        width, start = self.last - self.origin, self.origin * self.low
        total = start * width + (count - self.origin) * (self.last * self.high - start)
        return min(self.high, round_up(ceil_div(total, width * count), self.unit))


class FixedSizeStretch(NamedTuple):
    """A stretch of the path on which only the count grows, from `first` to `last` (None: without an end). Pods keep
    `size` at any demand (weight 0, `horizontalOnly`)."""

    first: int
    last: int | None
    size: int


_first: Final = attrgetter("first")


@dataclass(frozen=True, slots=True)
class ResourceCurve:
    """The path of a container resource. Demand is the work of all pods together, without `size_bounds.reserve`."""

    counts: Bounds
    size_bounds: SizeBounds
    pieces: tuple[Level | Power | Line, ...]
    """The largest size at a count is the size of the last piece that starts at or before the count."""
    vertical_stretches: tuple[int, ...]
    """Counts, in order, at which the path grows straight up to its top at that count."""
    fixed_sizes: tuple[FixedSizeStretch, ...] = ()
    """Stretches with a constant size."""

    def top(self, count: int) -> int | None:
        """Returns the largest size of the path at `count` replicas, from the path's first count on; None if it is
        unlimited."""
        size = self.pieces[max(0, bisect_right(self.pieces, count, key=_first) - 1)].top(count)
        return self.size_bounds.upper if size is None else self.size_bounds.clamp(size)

    def reach(self, count: int) -> int | None:
        """Returns the largest demand that `count` replicas of the path serve: count * (top(count) - base usage). None:
        any.

        This is the boundary for scaling out: a unit more needs another replica, except at the last count.
        """
        top = self.top(count)
        return None if top is None else count * self.size_bounds.reserve.work(top)

    def edge(self, count: int) -> tuple[int | None, int | None]:
        """Returns the end of the path at `count` replicas: `top` and `reach`."""
        return self.top(count), self.reach(count)

    def serves(self, count: int, demand: int) -> bool:
        """Whether `count` replicas of the path serve `demand`."""
        reach = self.reach(count)
        return reach is None or demand <= reach

    def count(self, demand: int, least: int = 1) -> int:
        """Returns the smallest replica count, at least `least`, that serves `demand`; the largest count if none
        does."""
        low, high = max(self.counts.lower, least), self.counts.upper
        if high is None:
            high = max(low, demand)  # each replica serves at least one millicore or byte
        return low + bisect_left(range(low, high), True, key=lambda count: self.serves(count, demand))

    def size(self, count: int, demand: int) -> int:
        """Returns the size with which `count` replicas serve `demand`: demand / count plus base usage, rounded up to
        whole units, within the bounds, and at least the size of a fixed-size stretch. Example: 2500m and 3 replicas
        give 834m.

        The size is below the curve if the path has fewer pods for this demand. It is above the curve if `count` is held
        below the path's count.
        """
        wanted, least = self.size_bounds.reserve.size(ceil_div(demand, count)), self.fixed_size(count)
        if wanted <= max(least, self.size_bounds.lower):
            return self.size_bounds.clamp(least)
        top = self.top(count) if count >= self.counts.lower else None
        rounded = round_up(wanted, self.size_bounds.unit)
        if top is not None and wanted <= top:
            rounded = min(rounded, top)
        return self.size_bounds.clamp(rounded)

    def enough(self, count: int, size: int, demand: int) -> int:
        """Returns `size` if `count` pods of it serve `demand`, otherwise the larger size that does."""
        if count * self.size_bounds.reserve.work(size) >= demand:
            return size
        return max(size, self.size(count, demand))

    def fixed_size(self, count: int) -> int:
        """Returns the constant size at `count` replicas; 0 if the size follows the demand."""
        for stretch in self.fixed_sizes:
            if stretch.first <= count and (stretch.last is None or count <= stretch.last):
                return stretch.size
        return 0

    def fits(self, count: int, demand: int) -> bool:
        """Whether `count` replicas can serve `demand` with pods of the largest allowed size."""
        upper = self.size_bounds.upper
        return upper is None or demand <= count * self.size_bounds.reserve.work(upper)

    def replicas(self, usual: int, size: int, demand: int) -> int:
        """Returns how many replicas serve the current `demand`, if `usual` replicas of this `size` serve the usual
        demand. Replicas change first, sizes follow later.

        At a vertical stretch the path grows its pods before it adds replicas. Demand beyond the capacity of that many
        replicas therefore makes pods larger, and adds replicas only beyond the reach of the stretch (DESIGN 5.4: the
        size serves what replicas can't serve). The last count is such a stretch. The result grows with `demand` without
        a jump.
        """
        work = self.size_bounds.reserve.work
        size = max(1, size)
        needed = ceil_div(demand, work(size))
        if needed <= usual:
            return self.counts.clamp(needed)
        for vertical_stretch in self.vertical_stretches:
            if needed <= vertical_stretch:
                break
            if self.serves(vertical_stretch, demand):
                needed = vertical_stretch
                break
            size = max(size, self.top(vertical_stretch) or size)
            needed = ceil_div(demand, work(size))
        return self.counts.clamp(max(needed, usual))
