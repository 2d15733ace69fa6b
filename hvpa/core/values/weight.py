"""Which interval's weight counts at a replica count: `weight_at` for `Additive`, `weight_leaving` for `Trajectory`
(DESIGN 5.1). Weights are vertical, in parts per million: 300,000 serves 30 percent of an increase by larger pods.

Example: intervals up to 3 replicas (weight 20) and from 3 on (weight 80). At 3 replicas `weight_at` has 20: the first
interval that holds the count decides. `weight_leaving` has 80: a path leaves 3 by the interval that begins there."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.text import counted
from hvpa.core.values.tuning import DEFAULT_WEIGHT_PERCENT

FULL = 1_000_000
"""Weight 1 (100 percent) in parts per million."""


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """Replica bounds of the horizontal axis: the HPA's; `upper` is None where there is no HPA. `floor` are the replicas
    that `spec.hpa.schedule` or `spec.forecast` asks for at least now (0: none), `floor_by` says until when, and by
    which of them."""

    lower: int = 1
    upper: int | None = None
    floor: int = 0
    floor_by: str = ""

    @property
    def raised(self) -> Bounds:
        """The bounds of the count that is set: from the floor on, as far as `upper` lets it. Example: 1 to 10 with a
        floor of 5 is 5 to 10, with one of 12 it is 10 to 10."""
        floor = self.floor if self.upper is None else min(self.floor, self.upper)
        return Bounds(max(self.lower, floor), self.upper)

    def clamp(self, count: int) -> int:
        """The nearest count inside the bounds."""
        if self.upper is not None and count > self.upper:
            count = self.upper
        return max(count, self.lower)

    def contains(self, count: int) -> bool:
        """Whether `count` is inside the bounds."""
        return self.clamp(count) == count


class Weight(msgspec.Struct, frozen=True, gc=False):
    """The vertical weight that counts, and the interval it is from (an index, None where none matched)."""

    vertical_ppm: int
    interval: int | None
    why: str

    @property
    def percent(self) -> int | float:
        """The vertical weight as a percentage; a whole number where it is one."""
        return percent(self.vertical_ppm)

    @property
    def horizontal_ppm(self) -> int:
        """1 minus the vertical weight."""
        return FULL - self.vertical_ppm


def percent(ppm: int) -> int | float:
    """Parts per million as a percentage; a whole number where it is one."""
    whole, rest = divmod(ppm, FULL // 100)
    return whole if rest == 0 else ppm * 100 / FULL


class WeightInterval(NamedTuple):
    """Vertical weight (parts per million) from `start` to `last` replicas; missing: minReplicas and maxReplicas."""

    weight_ppm: int
    start: int | None = None
    last: int | None = None

    def holds(self, count: int, counts: Bounds) -> bool:
        """Whether `count` is inside."""
        last = counts.upper if self.last is None else self.last
        return (self.start or counts.lower) <= count and (last is None or count <= last)


def weight_intervals(spec: HvpaSpec, vertical_only: bool) -> tuple[WeightInterval, ...]:
    """The weights of an Hvpa. Without any: all vertical where there is no HPA; else with `Trajectory` the default
    weight, with `Additive` all horizontal (DESIGN 5.1, 5.6)."""
    if not spec.weight_based_scaling_intervals:
        default = DEFAULT_WEIGHT_PERCENT * FULL // 100 if spec.joint else 0
        return (WeightInterval(FULL if vertical_only else default),)
    return tuple(
        WeightInterval(weight, interval.start_replica_count, interval.last_replica_count)
        for weight, interval in zip(spec.weights_ppm, spec.weight_based_scaling_intervals, strict=True)
    )


class Axes(msgspec.Struct, frozen=True, gc=False):
    """Which axes there are: `vertical_only` where no HPA is configured, `vertical_usable` where the VPA has a
    recommendation that counts."""

    vertical_only: bool = False
    vertical_usable: bool = True


def weight_at(spec: HvpaSpec, replicas: int, desired: int | None, bounds: Bounds, axes: Axes) -> Weight:
    """The weight at `replicas`, when the HPA wants `desired` replicas (None: the HPA is not used).

    The first interval that contains the count decides. Inside an interval with weight 100 the HPA could never leave, so
    while it wants another count, the nearest interval below 100 on the side it wants to go to is used instead. A
    vertical axis that can't be used does not hold back scaling out: its weight counts as 0 for that.
    """
    if desired is not None and desired > replicas and not axes.vertical_usable:
        return Weight(0, None, "the vertical axis can't be used: scaling out is all horizontal")
    if not spec.weight_based_scaling_intervals:
        if axes.vertical_only:
            return Weight(FULL, None, "no intervals and no HPA: all vertical")
        return Weight(0, None, "no intervals: all horizontal")
    intervals = weight_intervals(spec, axes.vertical_only)
    index = _first_holding(intervals, replicas, bounds)
    if index is None:
        return Weight(0, None, f"no interval contains {counted(replicas)}: all horizontal")
    if intervals[index].weight_ppm == FULL and desired is not None and desired != replicas:
        other = _neighbour(intervals, replicas, bounds, scales_out=desired > replicas)
        if other is not None:
            why = f"interval {index + 1} has weight 100, the HPA wants {desired}: using interval {other + 1}"
            return Weight(intervals[other].weight_ppm, other, why)
    why = f"interval {index + 1} of {len(intervals)} contains {counted(replicas)}"
    return Weight(intervals[index].weight_ppm, index, why)


def _first_holding(intervals: tuple[WeightInterval, ...], count: int, bounds: Bounds) -> int | None:
    """The index of the first interval of the list that holds `count`."""
    return next((at for at, one in enumerate(intervals) if one.holds(count, bounds)), None)


def _neighbour(
    intervals: tuple[WeightInterval, ...], replicas: int, bounds: Bounds, *, scales_out: bool
) -> int | None:
    """The index of the nearest interval with a weight below 100 that counts at more replicas (`scales_out`), or at
    fewer; None if there is none. Distance is by replica counts: the list may have any order.

    Example: in `[100 at 4..4, 0 at 2..3]`, the neighbour of 4 replicas is the second interval for scaling in.
    """
    edges = {replicas + 1 if scales_out else replicas - 1}
    for one in intervals:
        start = bounds.lower if one.start is None else one.start
        last = bounds.upper if one.last is None else one.last
        edges.update((start, start - 1) if last is None else (start, start - 1, last, last + 1))
    # The interval that counts changes only at an edge: between two edges there is nothing nearer to be found.
    counts = sorted(edge for edge in edges if (edge > replicas) == scales_out and edge != replicas)
    for count in counts if scales_out else reversed(counts):
        at = _first_holding(intervals, count, bounds)
        if at is not None and intervals[at].weight_ppm < FULL:
            return at
    return None


def weight_leaving(intervals: tuple[WeightInterval, ...], count: int, counts: Bounds) -> int:
    """The weight at which the path leaves `count` replicas towards the next.

    It is that of the first interval that holds the count (DESIGN 5.1), 0 where none does. Where that one ends at the
    count and a later one begins there, they share a boundary and the later one counts, as an interval reaches to the
    start of the next; a vertical stretch has no width and counts all the same.
    """
    holding = [one for one in intervals if one.holds(count, counts)]
    for one in holding:
        if one.weight_ppm == FULL or one.holds(count + 1, counts):
            return one.weight_ppm
    return holding[0].weight_ppm if holding else 0
