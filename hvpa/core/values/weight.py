"""The interval whose weight counts at a replica count: `weight_at` for `Additive`, `weight_leaving` for `Trajectory`
(DESIGN 5.1). Weights are vertical, in parts per million: at 300,000, larger pods serve 30 percent of an increase.

Example: intervals up to 3 replicas (weight 20) and from 3 on (weight 80). At 3 replicas `weight_at` returns 20: the
first interval that contains the count decides. `weight_leaving` returns 80: a path leaves 3 by the interval that starts
there.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.text import counted
from hvpa.core.values.tuning import DEFAULT_WEIGHT_PERCENT

FULL = 1_000_000
"""Weight 1 (100 percent) in parts per million."""


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """Replica bounds of the HPA."""

    lower: int = 1
    upper: int | None = None
    """None without an HPA."""
    floor: int = 0
    """Minimum replicas now, from `spec.hpa.schedule` or `spec.forecast`; 0: none."""
    floor_by: str = ""
    """Source of the floor and its end, for messages."""

    @property
    def raised(self) -> Bounds:
        """The bounds with the floor, limited to `upper`. Example: 1 to 10 with a floor of 5 becomes 5 to 10, with a
        floor of 12 it becomes 10 to 10."""
        floor = self.floor if self.upper is None else min(self.floor, self.upper)
        return Bounds(max(self.lower, floor), self.upper)

    def clamp(self, count: int) -> int:
        """Returns the nearest count inside the bounds."""
        if self.upper is not None and count > self.upper:
            count = self.upper
        return max(count, self.lower)

    def contains(self, count: int) -> bool:
        """Whether `count` is inside the bounds."""
        return self.clamp(count) == count


class EffectiveWeight(msgspec.Struct, frozen=True, gc=False):
    """The vertical weight that counts."""

    vertical_ppm: int
    why: str
    """Why this weight counts, for messages."""

    @property
    def percent(self) -> int | float:
        """The vertical weight in percent; an integer if it is whole."""
        return percent(self.vertical_ppm)

    @property
    def horizontal_ppm(self) -> int:
        """1 minus the vertical weight."""
        return FULL - self.vertical_ppm


def percent(ppm: int) -> int | float:
    """Returns parts per million as a percentage; an integer if it is whole."""
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
    """Returns the weights of an Hvpa. Without intervals: all vertical without an HPA, the default weight with
    `Trajectory`, all horizontal with `Additive` (DESIGN 5.1, 5.6)."""
    if not spec.weight_based_scaling_intervals:
        default = DEFAULT_WEIGHT_PERCENT * FULL // 100 if spec.joint else 0
        return (WeightInterval(FULL if vertical_only else default),)
    return tuple(
        WeightInterval(weight, interval.start_replica_count, interval.last_replica_count)
        for weight, interval in zip(spec.weights_ppm, spec.weight_based_scaling_intervals, strict=True)
    )


def is_horizontal(spec: HvpaSpec, vertical_only: bool) -> bool:
    """Returns whether the weight is 0 everywhere."""
    return not any(interval.weight_ppm for interval in weight_intervals(spec, vertical_only))


class AvailableAxes(msgspec.Struct, frozen=True, gc=False):
    """The available axes."""

    vertical_only: bool = False
    """No HPA is configured."""
    vertical_usable: bool = True
    """The VPA has a usable recommendation."""


def weight_at(
    spec: HvpaSpec, replicas: int, desired: int | None, bounds: Bounds, axes: AvailableAxes
) -> EffectiveWeight:
    """Returns the weight at `replicas`; the HPA's desired count is `desired` (None: the HPA is not used).

    The first interval that contains the count decides. In an interval with weight 100 the HPA could never change the
    count, so while it wants another count, the nearest interval below 100 in that direction is used. If the vertical
    axis can't be used, its weight is 0 for scaling out.
    """
    if desired is not None and desired > replicas and not axes.vertical_usable:
        return EffectiveWeight(0, "the vertical axis can't be used: scaling out is all horizontal")
    if not spec.weight_based_scaling_intervals:
        if axes.vertical_only:
            return EffectiveWeight(FULL, "no intervals and no HPA: all vertical")
        return EffectiveWeight(0, "no intervals: all horizontal")
    intervals = weight_intervals(spec, axes.vertical_only)
    index = _first_holding(intervals, replicas, bounds)
    if index is None:
        return EffectiveWeight(0, f"no interval contains {counted(replicas)}: all horizontal")
    if intervals[index].weight_ppm == FULL and desired is not None and desired != replicas:
        other = _neighbour(intervals, replicas, bounds, scales_out=desired > replicas)
        if other is not None:
            why = f"interval {index + 1} has weight 100, the HPA recommends {desired}: using interval {other + 1}"
            return EffectiveWeight(intervals[other].weight_ppm, why)
    why = f"interval {index + 1} of {len(intervals)} contains {counted(replicas)}"
    return EffectiveWeight(intervals[index].weight_ppm, why)


def _first_holding(intervals: tuple[WeightInterval, ...], count: int, bounds: Bounds) -> int | None:
    """Returns the index of the first interval that contains `count`."""
    return next((at for at, interval in enumerate(intervals) if interval.holds(count, bounds)), None)


def _neighbour(
    intervals: tuple[WeightInterval, ...], replicas: int, bounds: Bounds, *, scales_out: bool
) -> int | None:
    """Returns the index of the nearest interval with a weight below 100 that counts at more replicas (`scales_out`) or
    at fewer; None if there is none. Distance is in replicas: the list may have any order.

    Example: in `[100 at 4..4, 0 at 2..3]`, the neighbour of 4 replicas is the second interval for scaling in.
    """
    edges = {replicas + 1 if scales_out else replicas - 1}
    for interval in intervals:
        start = bounds.lower if interval.start is None else interval.start
        last = bounds.upper if interval.last is None else interval.last
        edges.update((start, start - 1) if last is None else (start, start - 1, last, last + 1))
    # The interval that counts changes only at an edge, so checking the edges is enough.
    counts = sorted(edge for edge in edges if (edge > replicas) == scales_out and edge != replicas)
    for count in counts if scales_out else reversed(counts):
        at = _first_holding(intervals, count, bounds)
        if at is not None and intervals[at].weight_ppm < FULL:
            return at
    return None


def weight_leaving(intervals: tuple[WeightInterval, ...], count: int, counts: Bounds) -> int:
    """Returns the weight at which the path leaves `count` replicas towards the next.

    The first interval that contains the count decides (DESIGN 5.1); 0 if there is none. If that interval ends at the
    count and a later interval starts there, the later interval decides. A vertical stretch decides even though it has
    no width.
    """
    holding = [interval for interval in intervals if interval.holds(count, counts)]
    for interval in holding:
        if interval.weight_ppm == FULL or interval.holds(count + 1, counts):
            return interval.weight_ppm
    return holding[0].weight_ppm if holding else 0
