"""The recommendation for a container: percentiles, safety margin, confidence, minimum, and the limits of the
container's policy (vertical-pod-autoscaler 1.8.1, `pkg/recommender/logic/{recommender,estimator}.go`,
`pkg/utils/vpa/capping.go`, `routines/capping_post_processor.go`)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import ContainerRecommendation, Quantity, VpaContainerPolicy
from hvpa.api.values.quantity import CPU, MEMORY, MIB, Resource, parse_quantity
from hvpa.recommend.golang import canonical, format_milli
from hvpa_lab.recommend.vpa.histogram import BucketScheme, DecayingHistogram
from hvpa_lab.recommend.vpa.samples import CPU_BUCKETS, MEMORY_BUCKETS, Aggregate, whole_amount
from hvpa_lab.recommend.vpa.settings import VpaSettings

LOWER_CONFIDENCE: Final = 0.001
"""With a history of this many confidence intervals, the lower bound is a quarter of its percentile."""


Percentiles = tuple[float, float, float]
"""Percentiles of the target, the lower bound and the upper bound."""


class Estimate(NamedTuple):
    """Recommended amounts of a resource, in millicores or bytes."""

    target: int
    lower: int
    upper: int


def upper_factor(confidence: float) -> float:
    """Factor for the upper bound while the history is short: 1 + 1 / confidence; infinite without history. Example: 1.5
    at confidence 2 (two days)."""
    return 1.0 + 1.0 / confidence if confidence > 0.0 else math.inf


def lower_factor(confidence: float) -> float:
    """Factor for the lower bound while the history is short: (1 + 0.001 / confidence) ^ -2; 0 without history."""
    if confidence <= 0.0:
        return 0.0
    ratio = 1.0 + LOWER_CONFIDENCE / confidence
    return 1.0 / (ratio * ratio)


class ResourceEstimator(NamedTuple):
    """The estimates of a resource."""

    ends: tuple[int, ...]
    """Amounts (millicores or bytes) at the ends of the buckets, including the margin. The percentiles are always among
    them."""
    percentiles: Percentiles
    interval: float
    """Confidence interval in seconds."""
    scale: int
    """Amounts are rounded up to multiples of this."""
    least: int
    """Minimum of the pod. Each amount is at least the container's share of it."""

    def estimate(self, usage: DecayingHistogram, aggregate: Aggregate, share: float) -> Estimate:
        """Returns the amounts for this usage, for a container with this share of the pod's minimum."""
        confidence = aggregate.confidence(self.interval)
        buckets = (usage.percentile_bucket(fraction) for fraction in self.percentiles)
        target, lower, upper = (0 if bucket is None else self.ends[bucket] for bucket in buckets)
        lower = whole_amount(lower * lower_factor(confidence))
        upper = whole_amount(upper * upper_factor(confidence))
        least = whole_amount(self.least * share)
        return Estimate(*(self._rounded(max(amount, least)) for amount in (target, lower, upper)))

    def _rounded(self, amount: int) -> int:
        return amount if self.scale <= 1 else math.ceil(amount / self.scale) * self.scale


class PodEstimator:
    """The estimates of both resources. The pod's minimum is divided among its containers."""

    def __init__(self, settings: VpaSettings) -> None:
        def ends(buckets: BucketScheme, unit: float) -> tuple[int, ...]:
            amounts = (whole_amount(end * unit) for end in buckets.ends)
            return tuple(amount + whole_amount(amount * settings.safety_margin) for amount in amounts)

        self._cpu = ResourceEstimator(
            ends(CPU_BUCKETS, 1000.0),
            (
                settings.target_cpu_percentile,
                settings.lower_bound_cpu_percentile,
                settings.upper_bound_cpu_percentile,
            ),
            settings.confidence_interval_cpu,
            settings.round_cpu_millicores,
            # Converted through cores, in the order of Go's operations.
            whole_amount(settings.pod_min_cpu_millicores * 0.001 * 1000.0),
        )
        self._memory = ResourceEstimator(
            ends(MEMORY_BUCKETS, 1.0),
            (
                settings.target_memory_percentile,
                settings.lower_bound_memory_percentile,
                settings.upper_bound_memory_percentile,
            ),
            settings.confidence_interval_memory,
            settings.round_memory_bytes,
            whole_amount(settings.pod_min_memory_mb * MIB),
        )

    def estimate(self, aggregate: Aggregate, containers: int) -> tuple[Estimate, Estimate]:
        """Returns CPU (millicores) and memory (bytes) of a container. `containers` is the number of containers with a
        recommendation."""
        share = 1.0 / containers
        cpu = self._cpu.estimate(aggregate.cpu, aggregate, share)
        return cpu, self._memory.estimate(aggregate.memory, aggregate, share)


# --- what the status shows of it ---
class Cap(NamedTuple):
    """The limits of a policy for a resource. If the minimum is above the maximum, the maximum applies, as in Go."""

    least: int | None
    """Minimum; None if there is no limit."""
    least_text: str
    """The quantity that replaces smaller amounts."""
    most: int | None
    """Maximum; None if there is no limit."""
    most_text: str
    """The quantity that replaces larger amounts."""

    def applied(self, resource: Resource, amount: int) -> str:
        """Returns the amount as a quantity, or the limit that it exceeds."""
        if self.least is not None and amount < self.least:
            return self.least_text
        if self.most is not None and amount > self.most:
            return self.most_text
        return _text(resource, amount)


class ContainerCap:
    """A container's policy in a form ready for use: the resources with recommendations, and their limits."""

    __slots__ = ("_caps",)

    def __init__(self, policy: VpaContainerPolicy, settings: VpaSettings) -> None:
        controlled = policy.controlled_resources
        everywhere: dict[Resource, Quantity | None] = {
            CPU: settings.max_allowed_cpu,
            MEMORY: settings.max_allowed_memory,
        }
        self._caps = {
            resource: _cap(resource, policy.min_allowed.get(resource), policy.max_allowed.get(resource, most))
            for resource, most in everywhere.items()
            if controlled is None or resource in controlled
        }

    def recommendation(self, container: str, cpu: Estimate, memory: Estimate) -> ContainerRecommendation:
        """Returns the recommendation: target and bounds within the limits, and the uncapped target."""
        estimates: dict[Resource, Estimate] = {CPU: cpu, MEMORY: memory}
        caps = self._caps
        return ContainerRecommendation(
            container_name=container,
            target={
                resource: cap.applied(resource, estimates[resource].target) for resource, cap in caps.items()
            },
            lower_bound={
                resource: cap.applied(resource, estimates[resource].lower) for resource, cap in caps.items()
            },
            upper_bound={
                resource: cap.applied(resource, estimates[resource].upper) for resource, cap in caps.items()
            },
            uncapped_target={resource: _text(resource, estimates[resource].target) for resource in caps},
        )


def _text(resource: Resource, amount: int) -> str:
    """Formats millicores or bytes as Go does: `25m`, `2`, `250Mi`, `274357142`."""
    return format_milli(amount) if resource == CPU else format_milli(amount * 1000, binary=True)


def _cap(resource: Resource, least: Quantity | None, most: Quantity | None) -> Cap:
    """Returns the limits. A limit of 0 counts as none."""
    unit = 1000 if resource == CPU else 1
    low, high = parse_quantity(least or 0) * unit, parse_quantity(most or 0) * unit
    reversed_bounds = low and high and low > high
    return Cap(
        math.ceil(low) if low else None,
        canonical((most if reversed_bounds else least) or 0),
        math.floor(high) if high else None,
        canonical(most or 0),
    )
