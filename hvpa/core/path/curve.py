"""One container resource's curve: the largest pod of the path at each replica count (DESIGN 5.4, 5.5), and what follows
from it.

Whole numbers only: replicas, and millicores or bytes. A size on the curve is rounded up to whole units, and every
comparison after that is one of integers. The curve never falls, so neither does what `count` replicas serve, and a
bisection finds the count for a demand.
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
"""Sizes have at most 19 digits: some 40 are left behind the point."""
_CLOSE: Final = Decimal("1e-20")
"""A power that is above a whole number by less than this is that number: the error of `_DIGITS` is far smaller."""
_LARGEST_LOG: Final = Decimal(44)
"""Above the natural logarithm of `INT64_MAX`."""
_MOST_BASE: Final = 10
"""A pod's base usage is at most 0.9 of its size: one part of ten is left for work (DESIGN 5.5)."""


@dataclass(frozen=True, slots=True)
class Margin:
    """The larger of a fixed amount (millicores or bytes) and a percentage below 100: `overlap` and
    `baseResourcesPerReplica`."""

    value: int = 0
    percentage: int = 0

    def raised(self, demand: int) -> int:
        """The smallest boundary that, lowered by this margin, still holds `demand`: b - max(value, b * percentage) >=
        demand. No demand needs nothing."""
        if demand <= 0:
            return 0
        return max(demand + self.value, ceil_div(demand * 100, 100 - self.percentage))

    def work(self, size: int) -> int:
        """What a pod of this size has left for work: size - b, with b = max(value, size * percentage), at most 0.9 of
        the size."""
        base = max(self.value, ceil_div(size * self.percentage, 100))
        return max(size - base, ceil_div(size, _MOST_BASE))

    def size(self, work: int) -> int:
        """The smallest size that has this much left for work: the inverse of `work`."""
        return min(_MOST_BASE * (work - 1) + 1, self.raised(work)) if work > 0 else 0


NONE: Final = Margin()


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """What bounds the size of one container resource (the CPU or the memory of one container), in millicores or bytes.

    `base` is the size at the path's first count: `minAllowed`, or the request when the Hvpa first saw the target; 0
    where it is not known. `upper` (`maxAllowed`, or a limit that stays put; at least 1) wins over `lower`
    (`minAllowed`). Sizes between the bounds are multiples of `unit`, rounded up. `reserve` is what a pod uses before it
    does any work.
    """

    base: int = 0
    lower: int = 0
    upper: int | None = None
    unit: int = 1
    reserve: Margin = NONE

    def clamp(self, size: int) -> int:
        """The nearest size inside the bounds."""
        size = max(size, self.lower)
        return size if self.upper is None else min(size, self.upper)


class Level(NamedTuple):
    """From count `first` on: one size, `None` one without an end."""

    first: int
    size: int | None

    def top(self, count: int) -> int | None:
        """The size at `count` replicas."""
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
        """The size at `count` replicas; None where it is beyond every quantity."""
        return _power(self.origin, self.size, self.weight_ppm, self.unit, count)


@lru_cache(maxsize=16_384)  # each takes 7 percent of a decision's time, and a decision asks for 16 of them
def _power(origin: int, size: int, weight_ppm: int, unit: int, count: int) -> int | None:
    exponent = _DIGITS.divide(Decimal(weight_ppm), Decimal(FULL - weight_ppm))
    log = _DIGITS.multiply(exponent, _DIGITS.ln(_DIGITS.divide(Decimal(count), Decimal(origin))))
    if log > _LARGEST_LOG:
        return None
    exact = _DIGITS.multiply(Decimal(size), _DIGITS.exp(log))
    rounded = round_up(int(_DIGITS.subtract(exact, _CLOSE).to_integral_value(ROUND_CEILING)), unit)
    return rounded if rounded <= INT64_MAX else None


class Line(NamedTuple):
    """From count `first` on: the total grows by the same amount with each replica, from that of (`origin`, `low`) to
    that of (`last`, `high`); size = total / count, rounded up to whole units, at most `high` (DESIGN 5.4).

    Example: from 2 replicas of 500m to 4 of 1000m the total grows from 1000m to 4000m: 3 replicas have 2500m,
    834m each.
    """

    first: int
    origin: int
    low: int
    last: int
    high: int
    unit: int

    def top(self, count: int) -> int | None:
        """The size at `count` replicas."""
        width, start = self.last - self.origin, self.origin * self.low
        total = start * width + (count - self.origin) * (self.last * self.high - start)
        return min(self.high, round_up(ceil_div(total, width * count), self.unit))


class FixedSizeStretch(NamedTuple):
    """A stretch of the path, from count `first` to `last` (None: without an end), on which only the count grows: pods
    keep this `size`, whatever the demand (weight 0, `horizontalOnly`)."""

    first: int
    last: int | None
    size: int


_first: Final = attrgetter("first")


@dataclass(frozen=True, slots=True)
class ResourceCurve:
    """One container resource's path: for each replica count of `counts` the largest size, which is that of the last
    piece that begins at or before the count. `vertical_stretches` are the counts, in order, at which the path goes
    straight up to its top there, `fixed_sizes` the stretches with one size. Demand is what the pods do together,
    without `size_bounds.reserve`."""

    counts: Bounds
    size_bounds: SizeBounds
    pieces: tuple[Level | Power | Line, ...]
    vertical_stretches: tuple[int, ...]
    fixed_sizes: tuple[FixedSizeStretch, ...] = ()

    def top(self, count: int) -> int | None:
        """The largest size of the path at `count` replicas, from the path's first count on; None where the path goes up
        without an end."""
        size = self.pieces[max(0, bisect_right(self.pieces, count, key=_first) - 1)].top(count)
        return self.size_bounds.upper if size is None else self.size_bounds.clamp(size)

    def reach(self, count: int) -> int | None:
        """The largest demand that `count` replicas of the path serve: count * (top(count) - base usage). None: any.

        This is the boundary for scaling out: one more takes one more replica, unless it is the last.
        """
        top = self.top(count)
        return None if top is None else count * self.size_bounds.reserve.work(top)

    def edge(self, count: int) -> tuple[int | None, int | None]:
        """How far the path goes at `count` replicas: `top` and `reach`."""
        return self.top(count), self.reach(count)

    def serves(self, count: int, demand: int) -> bool:
        """Whether `count` replicas of the path serve `demand`."""
        reach = self.reach(count)
        return reach is None or demand <= reach

    def count(self, demand: int, least: int = 0) -> int:
        """The smallest replica count, not below `least`, that serves `demand`; the largest of all where none does."""
        low, high = max(self.counts.lower, least), self.counts.upper
        if high is None:
            high = max(low, demand)  # each replica serves one millicore or byte at least
        return low + bisect_left(range(low, high), True, key=lambda count: self.serves(count, demand))

    def size(self, count: int, demand: int) -> int:
        """The size with which `count` replicas serve `demand`: demand / count and the base usage, rounded up to whole
        units, inside the bounds, and not below that of a fixed-size stretch. Where the path has fewer pods for that
        demand it is below the curve, and where `count` is fewer than the path has (they are held), above it."""
        wanted, least = self.size_bounds.reserve.size(ceil_div(demand, count)), self.fixed_size(count)
        if wanted <= max(least, self.size_bounds.lower):
            return self.size_bounds.clamp(least)
        top = self.top(count) if count >= self.counts.lower else None
        rounded = round_up(wanted, self.size_bounds.unit)
        if top is not None and wanted <= top:
            rounded = min(rounded, top)
        return self.size_bounds.clamp(rounded)

    def enough(self, count: int, size: int, demand: int) -> int:
        """This size where `count` pods of it serve `demand`, else the larger one that does."""
        if count * self.size_bounds.reserve.work(size) >= demand:
            return size
        return max(size, self.size(count, demand))

    def fixed_size(self, count: int) -> int:
        """The size that pods keep at `count` replicas; 0 where it follows the demand."""
        for one in self.fixed_sizes:
            if one.first <= count and (one.last is None or count <= one.last):
                return one.size
        return 0

    def fits(self, count: int, demand: int) -> bool:
        """Whether `count` replicas can serve `demand` at all, with pods as large as the bounds allow."""
        upper = self.size_bounds.upper
        return upper is None or demand <= count * self.size_bounds.reserve.work(upper)

    def replicas(self, usual: int, size: int, demand: int) -> int:
        """How many replicas serve a present `demand`, when the usual one is served by `usual` replicas of this `size`:
        replicas come first, sizes follow later.

        But beyond `usual`, the path has no more replicas than those of a vertical stretch before their size is at the
        end of that stretch. So more demand than that many of them serve is a reason for larger pods first, and for
        more of them only beyond its reach (DESIGN 5.4: where replicas can't serve the present demand, the size does).
        The last count is such a stretch. Grows with `demand` without a jump.
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
