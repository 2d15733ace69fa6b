"""Intervals of replica counts and their vertical weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import field_validator

from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import Count, Weight

_WHOLE_PPM: Final = 1_000_000
_PPM_PER_PERCENT: Final = 10_000


class ScalingInterval(SpecModel):
    """Vertical weight for an interval of replica counts."""

    RULES = (
        Rule(
            "!has(self.startReplicaCount) || !has(self.lastReplicaCount) || self.lastReplicaCount == 0"
            " || self.startReplicaCount <= self.lastReplicaCount",
            lambda interval: (interval.start_replica_count or 0) <= (interval.last_replica_count or math.inf),
            "must not be less than startReplicaCount",
            ".lastReplicaCount",
        ),
    )

    vpa_weight: Weight = 0
    """Weight of the vertical recommendation: 0 to 100 percent, or a fraction if no weight of the list is above 1."""
    start_replica_count: Count | None = None
    """First number of replicas of the interval. If missing or 0: minReplicas."""
    last_replica_count: Count | None = None
    """Last number of replicas of the interval. If missing or 0: maxReplicas."""

    @field_validator("start_replica_count", "last_replica_count", mode="after")
    @classmethod
    def _zero_is_missing(cls, count: int | None) -> int | None:
        return count or None


def _of_one_unit(intervals: Sequence[ScalingInterval]) -> bool:
    weights = [interval.vpa_weight for interval in intervals]
    return max(weights, default=0) <= 1 or not any(0 < weight < 1 for weight in weights)


INTERVAL_RULES: Final = (
    Rule(
        "!(self.exists(i, i.vpaWeight > 0.0 && i.vpaWeight < 1.0) && self.exists(i, i.vpaWeight > 1.0))",
        _of_one_unit,
        "mixes fractions with percentages: either no weight is above 1, or none is between 0 and 1",
    ),
)
"""Rules for the whole list."""


def weights_in_ppm(intervals: Sequence[ScalingInterval]) -> tuple[int, ...]:
    """Returns the vertical weights in parts per million. Weights are fractions if none is above 1, otherwise
    percentages. Example: 0.6 and 1 are 600000 and 1000000; 60 and 100 are the same."""
    fractions = all(interval.vpa_weight <= 1 for interval in intervals)
    unit = _WHOLE_PPM if fractions else _PPM_PER_PERCENT
    return tuple(
        int((Decimal(str(interval.vpa_weight)) * unit).to_integral_value()) for interval in intervals
    )


class Overlap(NamedTuple):
    """Replica counts that two intervals contain. For these counts, the `later` entry of the list does not apply."""

    earlier: int
    later: int
    first: int
    last: int | None
    """The last count that both contain; None if both are open-ended."""

    def __str__(self) -> str:
        end = "from {0} replicas on" if self.last is None else "at {0} to {1} replicas"
        counts = end.format(self.first, self.last)
        return f"overlaps entry {self.earlier} of the list {counts}: the first matching entry applies"


def interval_overlaps(intervals: Sequence[ScalingInterval], lower: int = 1) -> tuple[Overlap, ...]:
    """Returns the first overlap of each interval with an earlier entry of the list, not counting a shared boundary.

    `lower` is minReplicas, for intervals without a start. Example: 3..7 and 7..10 share a boundary; 3..8 and 7..10
    overlap at 7 to 8 replicas.
    """
    ranges = [
        (interval.start_replica_count or lower, interval.last_replica_count or math.inf)
        for interval in intervals
    ]
    overlapping = []
    for later, (start, last) in enumerate(ranges):
        for earlier in range(later):
            first, end = ranges[earlier]
            if start < end and first < last and max(start, first) < min(last, end):
                until = min(last, end)
                shared = max(start, first), None if until == math.inf else int(until)
                overlapping.append(Overlap(earlier, later, *shared))
                break
    return tuple(overlapping)
