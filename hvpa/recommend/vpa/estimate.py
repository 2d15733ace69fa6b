"""From what is known of a container to recommended amounts: percentiles, safety margin, confidence, minimum
(vertical-pod-autoscaler 1.7.3, `pkg/recommender/logic/{recommender,estimator}.go`)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from hvpa.recommend.vpa.histogram import DecayingHistogram
from hvpa.recommend.vpa.samples import Aggregate, cpu_buckets, memory_buckets, whole_amount
from hvpa.recommend.vpa.settings import VpaSettings

MIB: Final = 1024 * 1024
LOWER_CONFIDENCE: Final = 0.001
"""How many intervals of history are little enough to quarter the lower bound."""


class Amounts(NamedTuple):
    """What is recommended of one resource, in millicores or bytes."""

    target: int
    lower: int
    upper: int


class Percentiles(NamedTuple):
    """Which percentiles the three amounts come from."""

    target: float
    lower: float
    upper: float


def upper_factor(confidence: float) -> float:
    """What the upper bound is scaled by while the history is short: 1 + 1 / confidence; infinity without history."""
    return 1.0 + 1.0 / confidence if confidence > 0.0 else math.inf


def lower_factor(confidence: float) -> float:
    """What the lower bound is scaled by while the history is short: (1 + 0.001 / confidence) ^ -2; 0 without any."""
    if confidence <= 0.0:
        return 0.0
    ratio = 1.0 + LOWER_CONFIDENCE / confidence
    return 1.0 / (ratio * ratio)


class ResourceEstimator:
    """The estimates of one resource. `ends` are the amounts (millicores or bytes) at the buckets' ends; a percentile is
    one of these, so the `margin`, a fraction, is added to them beforehand. `interval` is the confidence's, in seconds;
    amounts are rounded up to multiples of `scale`."""

    def __init__(
        self, ends: tuple[int, ...], percentiles: Percentiles, margin: float, interval: float, scale: int
    ) -> None:
        self._amounts = tuple(end + whole_amount(end * margin) for end in ends)
        self._percentiles = percentiles
        self._interval = interval
        self._scale = scale

    def estimate(self, usage: DecayingHistogram, aggregate: Aggregate, least: int) -> Amounts:
        """The amounts for this usage, each of them at least `least`."""
        confidence = aggregate.confidence(self._interval)
        target, lower, upper = (self._at(usage, fraction) for fraction in self._percentiles)
        return Amounts(
            self._rounded(max(target, least)),
            self._rounded(max(whole_amount(lower * lower_factor(confidence)), least)),
            self._rounded(max(whole_amount(upper * upper_factor(confidence)), least)),
        )

    def _at(self, usage: DecayingHistogram, fraction: float) -> int:
        bucket = usage.percentile_bucket(fraction)
        return 0 if bucket is None else self._amounts[bucket]

    def _rounded(self, amount: int) -> int:
        scale = self._scale
        return amount if scale <= 1 else math.ceil(amount / scale) * scale


class PodEstimator:
    """The estimates of both resources, with the minimum of the pod shared by its containers."""

    def __init__(self, settings: VpaSettings) -> None:
        self._cpu = ResourceEstimator(
            tuple(whole_amount(end * 1000.0) for end in cpu_buckets().ends),
            Percentiles(
                settings.target_cpu_percentile,
                settings.lower_bound_cpu_percentile,
                settings.upper_bound_cpu_percentile,
            ),
            settings.safety_margin,
            settings.confidence_interval_cpu,
            settings.round_cpu_millicores,
        )
        self._memory = ResourceEstimator(
            tuple(whole_amount(end) for end in memory_buckets().ends),
            Percentiles(
                settings.target_memory_percentile,
                settings.lower_bound_memory_percentile,
                settings.upper_bound_memory_percentile,
            ),
            settings.safety_margin,
            settings.confidence_interval_memory,
            settings.round_memory_bytes,
        )
        # By way of cores, in the order of Go's operations.
        self._least_cpu = whole_amount(settings.pod_min_cpu_millicores * 0.001 * 1000.0)
        self._least_memory = whole_amount(settings.pod_min_memory_mb * MIB)

    def estimate(self, aggregate: Aggregate, containers: int) -> tuple[Amounts, Amounts]:
        """CPU (millicores) and memory (bytes) of a container that is one of so many that get a recommendation."""
        share = 1.0 / containers
        return (
            self._cpu.estimate(aggregate.cpu, aggregate, whole_amount(self._least_cpu * share)),
            self._memory.estimate(aggregate.memory, aggregate, whole_amount(self._least_memory * share)),
        )
