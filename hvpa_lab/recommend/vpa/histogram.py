"""The histograms of the VPA recommender: their buckets grow exponentially, and samples lose weight with age
(vertical-pod-autoscaler 1.8.1, `pkg/recommender/util/{histogram,histogram_options,decaying_histogram}.go`).

Weights are calculated in the same order of floating point operations as in Go. Times are float seconds since the Unix
epoch. Times in whole seconds, as in metrics, give exactly the numbers of Go's durations.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import Final

from hvpa.recommend.golang import exp2, power

MAX_DECAY_EXPONENT: Final = 100
"""The reference time moves before a weight is scaled by more than 2 to this power."""
ZERO_TIME: Final = -62_135_596_800.0
"""Go's zero time, 1 January of year 1 in UTC. Go rounds times relative to it."""


class BucketScheme:
    """The buckets of values. The first covers [0, `first`), and each next bucket is `ratio` times as wide. The last
    bucket starts at `maximum` or above and has no end. A bucket with a weight below `epsilon` counts as empty. All four
    values are positive, and `ratio` is above 1."""

    __slots__ = ("_by_value", "_first", "_log_ratio", "count", "ends", "epsilon", "starts")

    def __init__(self, maximum: float, first: float, ratio: float, epsilon: float) -> None:
        self.epsilon = epsilon
        self._first = first
        self._log_ratio = math.log(ratio)
        self._by_value = (ratio - 1, first)
        self.count = math.ceil(math.log(maximum * (ratio - 1) / first + 1) / self._log_ratio) + 1
        starts = (first * (power(ratio, bucket) - 1) / (ratio - 1) for bucket in range(1, self.count))
        self.starts = (0.0, *starts)
        self.ends = (*self.starts[1:], self.starts[-1])
        """The end of each bucket. For the last bucket, which has no end, its start."""

    def find(self, value: float) -> int:
        """Returns the bucket of a value of at least 0: floor(log(value / first * (ratio - 1) + 1) / log(ratio)).

        At the exact start of a bucket, rounding may give the previous bucket, as in Go.
        """
        if value < self._first:
            return 0
        growth, first = self._by_value
        bucket = int(math.log(value * growth / first + 1) / self._log_ratio)
        return bucket if bucket < self.count else self.count - 1


class DecayingHistogram:
    """A distribution of samples. A sample's weight halves with each `half_life` (seconds) of its age.

    Old weights do not shrink; new weights grow instead, by 2 to the power of (time - reference) / half-life. Before
    this gets too large, the reference moves and all weights are scaled down.
    """

    __slots__ = (
        "_factor",
        "_factor_at",
        "_sums",
        "half_life",
        "high",
        "low",
        "reference",
        "scheme",
        "total",
        "weights",
    )

    def __init__(self, scheme: BucketScheme, half_life: float) -> None:
        self.scheme = scheme
        self.half_life = half_life
        self.weights = [0.0] * scheme.count
        self.total = 0.0
        self.low = scheme.count - 1
        """The first bucket that is not empty; the last bucket if all are empty."""
        self.high = 0
        """The last bucket that is not empty; the first bucket if all are empty."""
        self.reference = ZERO_TIME
        self._sums: list[float] | None = None
        self._factor_at = math.nan
        self._factor = 1.0

    def add(self, value: float, weight: float, at: float) -> None:
        """Adds a sample with a non-negative weight."""
        weight *= self.decay_factor(at)
        bucket = self.scheme.find(value)
        self.weights[bucket] += weight
        self.total += weight
        self._sums = None
        if self.weights[bucket] >= self.scheme.epsilon:
            if bucket < self.low:
                self.low = bucket
            if bucket > self.high:
                self.high = bucket

    def subtract(self, value: float, weight: float, at: float) -> None:
        """Removes a sample that was added before. The rest never becomes negative; less than epsilon counts as 0."""
        weight *= self.decay_factor(at)
        bucket = self.scheme.find(value)
        self.total = _less(self.total, weight, self.scheme.epsilon)
        self.weights[bucket] = _less(self.weights[bucket], weight, self.scheme.epsilon)
        self._narrow()

    def percentile_bucket(self, fraction: float) -> int | None:
        """Returns the first bucket up to which the buckets have at least this fraction of the total weight; None
        without samples."""
        if self.weights[self.low] < self.scheme.epsilon:
            return None
        if self._sums is None:
            self._sums = list(accumulate(self.weights[self.low : self.high + 1]))
        return min(self.low + bisect_left(self._sums, fraction * self.total), self.high)

    def decay_factor(self, at: float) -> float:
        """Returns the factor for the weight of a sample at this time. Moves the reference time if necessary."""
        if at == self._factor_at:
            return self._factor
        if at > self.reference + MAX_DECAY_EXPONENT * self.half_life:
            self.shift_reference(at)
        self._factor_at = at
        self._factor = exp2((at - self.reference) / self.half_life)
        return self._factor

    def shift_reference(self, at: float) -> None:
        """Moves the reference time to this time, rounded to whole half-lives since year 1, and scales all weights."""
        periods, rest = divmod(at - ZERO_TIME, self.half_life)
        if rest + rest >= self.half_life:
            periods += 1
        reference = periods * self.half_life + ZERO_TIME
        factor = math.ldexp(1.0, math.floor((self.reference - reference) / self.half_life + 0.5))
        for bucket in range(self.low, self.high + 1):
            self.weights[bucket] *= factor
        self.total *= factor
        self._narrow()
        self.reference = reference
        self._factor_at = math.nan

    def _narrow(self) -> None:
        """Moves `low` and `high` past buckets that have become empty."""
        weights, epsilon, last = self.weights, self.scheme.epsilon, self.scheme.count - 1
        while weights[self.low] < epsilon and self.low < last:
            self.low += 1
        while weights[self.high] < epsilon and self.high > 0:
            self.high -= 1
        self._sums = None


def _less(weight: float, removed: float, epsilon: float) -> float:
    rest = weight - removed
    return 0.0 if rest < epsilon else rest
