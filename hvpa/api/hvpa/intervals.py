"""Intervals of replica counts and their vertical weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Final

from pydantic import field_validator

from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import Count, Weight

_WHOLE_PPM: Final = 1_000_000
_PPM_PER_PERCENT: Final = 10_000


class ScalingInterval(SpecModel):
    """How much of a change is vertical while the number of replicas is in this interval."""

    RULES = (
        Rule(
            "!has(self.startReplicaCount) || !has(self.lastReplicaCount) || self.lastReplicaCount == 0"
            " || self.startReplicaCount <= self.lastReplicaCount",
            lambda one: (one.start_replica_count or 0) <= (one.last_replica_count or math.inf),
            "must not be less than startReplicaCount",
            ".lastReplicaCount",
        ),
    )

    vpa_weight: Weight = 0
    """Weight of the vertical recommendation: 0 to 100 percent, or a fraction where no weight of the list is above 1."""
    start_replica_count: Count | None = None
    """First number of replicas of the interval; minReplicas where it is missing or 0."""
    last_replica_count: Count | None = None
    """Last number of replicas of the interval; maxReplicas where it is missing or 0."""

    @field_validator("start_replica_count", "last_replica_count", mode="after")
    @classmethod
    def _zero_is_missing(cls, count: int | None) -> int | None:
        return count or None


def _of_one_unit(intervals: Sequence[ScalingInterval]) -> bool:
    weights = [interval.vpa_weight for interval in intervals]
    return max(weights, default=0) <= 1 or not any(0 < weight < 1 for weight in weights)


def _in_order(intervals: Sequence[ScalingInterval]) -> bool:
    starts = [i.start_replica_count for i in intervals if i.start_replica_count is not None]
    return starts == sorted(starts)


INTERVAL_RULES: Final = (
    Rule(
        "!(self.exists(i, i.vpaWeight > 0.0 && i.vpaWeight < 1.0) && self.exists(i, i.vpaWeight > 1.0))",
        _of_one_unit,
        "mixes fractions with percentages: either no weight is above 1, or none is between 0 and 1",
    ),
    Rule(
        "self.filter(i, has(i.startReplicaCount) && i.startReplicaCount > 0)"
        ".map(i, i.startReplicaCount).isSorted()",
        _in_order,
        "must be in order of startReplicaCount",
    ),
)
"""Rules of the list as a whole."""


def weights_in_ppm(intervals: Sequence[ScalingInterval]) -> tuple[int, ...]:
    """Vertical weights in parts per million. Where none is above 1 they are fractions, else percentages."""
    fractions = all(interval.vpa_weight <= 1 for interval in intervals)
    unit = _WHOLE_PPM if fractions else _PPM_PER_PERCENT
    return tuple(
        int((Decimal(str(interval.vpa_weight)) * unit).to_integral_value()) for interval in intervals
    )


OVERLAPS: Final = "overlaps the interval before it: the first that holds the number of replicas counts"


def overlapping(intervals: Sequence[ScalingInterval]) -> list[int]:
    """The index of each interval that shares more than a boundary with the one before it (which counts there)."""
    bounds = ((one.last_replica_count, two.start_replica_count) for one, two in pairwise(intervals))
    return [
        index
        for index, (last, start) in enumerate(bounds, start=1)
        if start is None or last is None or start < last
    ]
