"""From what is known of a container to a recommendation: percentiles, safety margin, confidence, minimum, and within
what the container's policy allows (vertical-pod-autoscaler 1.8.1, `pkg/recommender/logic/{recommender,estimator}.go`,
`pkg/utils/vpa/capping.go`, `routines/capping_post_processor.go`)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import ContainerRecommendation, Quantity, VpaContainerPolicy
from hvpa.api.values.quantity import CPU, MEMORY, MIB, Resource, parse_quantity
from hvpa.recommend.golang import canonical, format_milli
from hvpa.recommend.vpa.histogram import BucketScheme, DecayingHistogram
from hvpa.recommend.vpa.samples import CPU_BUCKETS, MEMORY_BUCKETS, Aggregate, whole_amount
from hvpa.recommend.vpa.settings import VpaSettings

LOWER_CONFIDENCE: Final = 0.001
"""How many intervals of history are little enough to quarter the lower bound."""


Percentiles = tuple[float, float, float]
"""Which percentiles target, lower and upper bound come from."""


class Amounts(NamedTuple):
    """What is recommended of one resource, in millicores or bytes."""

    target: int
    lower: int
    upper: int


def upper_factor(confidence: float) -> float:
    """What the upper bound is scaled by while the history is short: 1 + 1 / confidence; infinity without history."""
    return 1.0 + 1.0 / confidence if confidence > 0.0 else math.inf


def lower_factor(confidence: float) -> float:
    """What the lower bound is scaled by while the history is short: (1 + 0.001 / confidence) ^ -2; 0 without any."""
    if confidence <= 0.0:
        return 0.0
    ratio = 1.0 + LOWER_CONFIDENCE / confidence
    return 1.0 / (ratio * ratio)


class ResourceEstimator(NamedTuple):
    """The estimates of one resource. `ends` are the amounts (millicores or bytes) at the buckets' ends with the margin
    added; the percentiles of the three amounts are among these. `interval` is the confidence's, in seconds; amounts are
    rounded up to multiples of `scale`, and each is at least a container's share of `least`."""

    ends: tuple[int, ...]
    percentiles: Percentiles
    interval: float
    scale: int
    least: int

    def estimate(self, usage: DecayingHistogram, aggregate: Aggregate, share: float) -> Amounts:
        """The amounts for this usage, for a container with this share of the pod's minimum."""
        confidence = aggregate.confidence(self.interval)
        buckets = (usage.percentile_bucket(fraction) for fraction in self.percentiles)
        target, lower, upper = (0 if bucket is None else self.ends[bucket] for bucket in buckets)
        lower = whole_amount(lower * lower_factor(confidence))
        upper = whole_amount(upper * upper_factor(confidence))
        least = whole_amount(self.least * share)
        return Amounts(*(self._rounded(max(amount, least)) for amount in (target, lower, upper)))

    def _rounded(self, amount: int) -> int:
        return amount if self.scale <= 1 else math.ceil(amount / self.scale) * self.scale


class PodEstimator:
    """The estimates of both resources, with the minimum of the pod shared by its containers."""

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
            # By way of cores, in the order of Go's operations.
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

    def estimate(self, aggregate: Aggregate, containers: int) -> tuple[Amounts, Amounts]:
        """CPU (millicores) and memory (bytes) of a container that is one of so many that get a recommendation."""
        share = 1.0 / containers
        cpu = self._cpu.estimate(aggregate.cpu, aggregate, share)
        return cpu, self._memory.estimate(aggregate.memory, aggregate, share)


# --- what the status shows of it ---
class Cap(NamedTuple):
    """What a policy allows of one resource: the least and most whole amounts (None: no bound), and the quantities that
    stand in for what is beyond. Where the least is above the most, the most counts, as in Go."""

    least: int | None
    least_text: str
    most: int | None
    most_text: str

    def applied(self, resource: Resource, amount: int) -> str:
        """The amount as a quantity, or the bound that it is beyond."""
        if self.least is not None and amount < self.least:
            return self.least_text
        if self.most is not None and amount > self.most:
            return self.most_text
        return _text(resource, amount)


class ContainerCap:
    """A container's policy, ready to be applied: which resources are recommended, and their caps."""

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

    def recommendation(self, container: str, cpu: Amounts, memory: Amounts) -> ContainerRecommendation:
        """The amounts as recommendation: target and bounds capped, the uncapped target as it is."""
        amounts: dict[Resource, Amounts] = {CPU: cpu, MEMORY: memory}
        caps = self._caps
        return ContainerRecommendation(
            container_name=container,
            target={one: cap.applied(one, amounts[one].target) for one, cap in caps.items()},
            lower_bound={one: cap.applied(one, amounts[one].lower) for one, cap in caps.items()},
            upper_bound={one: cap.applied(one, amounts[one].upper) for one, cap in caps.items()},
            uncapped_target={one: _text(one, amounts[one].target) for one in caps},
        )


def _text(resource: Resource, amount: int) -> str:
    """Millicores or bytes as Go prints them: `25m`, `2`, `250Mi`, `274357142`."""
    return format_milli(amount) if resource == CPU else format_milli(amount * 1000, binary=True)


def _cap(resource: Resource, least: Quantity | None, most: Quantity | None) -> Cap:
    """A bound of 0 is none."""
    unit = 1000 if resource == CPU else 1
    low, high = parse_quantity(least or 0) * unit, parse_quantity(most or 0) * unit
    reversed_bounds = low and high and low > high
    return Cap(
        math.ceil(low) if low else None,
        canonical((most if reversed_bounds else least) or 0),
        math.floor(high) if high else None,
        canonical(most or 0),
    )
