"""Which vertical weight counts at a replica count (DESIGN 5.1). Weights are in parts per million."""

from __future__ import annotations

import msgspec

from hvpa.api.hvpa.intervals import ScalingInterval
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.values.weight import FULL, Bounds, Weight


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
    intervals = spec.weight_based_scaling_intervals
    if not intervals:
        if axes.vertical_only:
            return Weight(FULL, None, "no intervals and no HPA: all vertical")
        return Weight(0, None, "no intervals: all horizontal")
    weights = spec.weights_ppm
    for index, interval in enumerate(intervals):
        if not _contains(interval, replicas, bounds):
            continue
        if weights[index] == FULL and desired is not None and desired != replicas:
            side = range(index - 1, -1, -1) if desired < replicas else range(index + 1, len(intervals))
            for neighbour in side:
                if weights[neighbour] < FULL:
                    other = f"the HPA wants {desired}: using interval {neighbour + 1}"
                    return Weight(
                        weights[neighbour], neighbour, f"interval {index + 1} has weight 100, {other}"
                    )
        return Weight(
            weights[index], index, f"interval {index + 1} of {len(intervals)} contains {replicas} replicas"
        )
    return Weight(0, None, f"no interval contains {replicas} replicas: all horizontal")


def _contains(interval: ScalingInterval, replicas: int, bounds: Bounds) -> bool:
    start = interval.start_replica_count or bounds.lower
    last = interval.last_replica_count or bounds.upper
    return start <= replicas and (last is None or replicas <= last)
