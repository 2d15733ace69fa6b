"""HVPA's own estimate of an HPA's count from the same measurements, as a whole and by metric (DESIGN 4)."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import Struct, structs

from hvpa.api.objects.read_models import (
    DEFAULT_METRICS,
    Hpa,
    HpaBehavior,
    HpaScalingRules,
    Metric,
    MetricSource,
    MetricValue,
)
from hvpa.api.values.quantity import QuantityError, Resource, parse_quantity
from hvpa.core.model import ObservedState, ScalableObservation, ScalableState, Settings
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import PINNED_PERCENT, VPA_PERCENT
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import amount_of, present_resources
from hvpa.core.workload.rollout import STARTS_FOR

_NO_SOURCE = MetricSource()
OF_RESOURCES: Final = ("Resource", "ContainerResource")
"""Types of metrics that measure a resource."""
MICRO = 1_000_000
"""Fractions of pods are counted in millionths."""
MOST_PODS = 2**31 * MICRO
"""Maximum demand of a metric: counts of pods have 32 bits."""


class MetricDemand(Struct, frozen=True):
    """The demand of a single metric (DESIGN 4, "fractional count")."""

    label: str
    pods: int
    """Pods that the metric needs, in millionths, of the size that its target is meant for."""
    absolute: bool
    """Whether the target is an `AverageValue`, which is meant for pods as they were when it was set; other targets are
    meant for the measured pods."""
    tolerance: int = 0
    """A demand that differs from the present count by less than this changes nothing, in parts per million."""
    resource: Resource | None = None
    """The measured resource (None: not a resource)."""
    container: str = ""
    """The measured container ("": all containers)."""
    requested: int | None = None
    """Total request of these pods, in millicores or bytes, if they were measured."""
    per_pod: int | None = None
    """The target as an amount of a resource per pod."""
    counted: int = 0
    """Number of measured pods."""
    utilization: int = 0
    """The target in percent of the requests."""
    used: int | None = None
    """Mean usage of the measured pods."""

    def scaled(self, pods: int) -> MetricDemand:
        """Return the demand for another number of pods (millionths). If the demand was 0 before, it is for pods of the
        present size."""
        requested = None
        if self.requested is not None and self.pods > 0:
            requested = ceil_div(self.requested * pods, self.pods)
        return structs.replace(self, pods=pods, requested=requested, counted=ceil_div(pods, MICRO))


class Reading(NamedTuple):
    """A metric's measurement. `have` / `wanted` = value / target."""

    metric: Metric
    source: MetricSource
    tolerances: tuple[Fraction, Fraction]
    """Tolerances upwards and downwards."""
    current: MetricValue
    have: int
    wanted: int
    of_limit: Fraction | None = None
    """Mean usage relative to `PINNED_PERCENT` of the pods' CPU limits; None if they have none, if the HPA may not scale
    up, and for `Trajectory`."""

    @property
    def is_tolerated(self) -> bool:
        """Whether the value is so close to the target that the HPA keeps the count."""
        tolerance = self.tolerances[0 if self.have > self.wanted else 1]
        return abs(self.have - self.wanted) * tolerance.denominator <= self.wanted * tolerance.numerator

    @property
    def is_absolute(self) -> bool:
        """Whether the target is an amount per pod (AverageValue)."""
        target = self.source.target
        return target.average_utilization is None and target.average_value is not None

    @property
    def is_of_status(self) -> bool:
        """Whether the value is a total that the HPA divides by `status.replicas`."""
        return self.metric.type in ("Object", "External") and self.source.target.average_value is not None

    @property
    def label(self) -> str:
        """The metric in words."""
        return f"{self._name} (at the limit)" if (self.of_limit or 0) >= 1 else self._name

    @property
    def _name(self) -> str:
        if self.metric.type == "ContainerResource":
            return f"{self.source.name} of {self.source.container}"
        return self.source.name or f"{self.metric.type} {self.source.metric.name}"


Readings = Sequence[Reading | None]
"""The measurement of each metric of an HPA; None if a metric has no value, or a value of other pods than the present
pods."""


def readings_of(observation: ScalableObservation, hpa: Hpa, clock: Clock) -> Readings:
    """Return the measurement of each metric.

    The status lists the metrics in the order of the spec (`computeReplicasForMetrics` in podautoscaler/horizontal.go);
    the order distinguishes metrics that differ only in their label selector.
    """
    measured, behavior = hpa.status.current_metrics or [], hpa.spec.behavior or HpaBehavior()
    by_name = {_identity(measured_metric): measured_metric for measured_metric in reversed(measured)}
    tolerances = (
        _tolerance(behavior.scale_up, observation.settings),
        _tolerance(behavior.scale_down, observation.settings),
    )
    are_new = measured_from(observation, clock) is not None
    readings: list[Reading | None] = []
    for index, metric in enumerate(hpa.spec.metrics or DEFAULT_METRICS):
        identity, source = _identity(metric), metric.source() or _NO_SOURCE
        in_place = index < len(measured) and _identity(measured[index]) == identity
        entry = measured[index] if in_place else by_name.get(identity)
        value = None if entry is None else entry.source()
        ratio = None if value is None else _ratio(source.target, value.current)
        if value is None or ratio is None:
            readings.append(None)
            continue
        reading = Reading(metric, source, tolerances, value.current, *ratio)
        if behavior.scale_up is None or behavior.scale_up.select_policy != "Disabled":
            reading = _limited(reading, observation)
        readings.append(None if are_new and not reading.is_of_status else reading)
    return readings


def _limited(reading: Reading, observation: ScalableObservation) -> Reading:
    """Return the reading with `of_limit`. Example: pods with a limit of 500m that use 490m are at 1, with 245m at 1/2.
    `Trajectory` has `boosted` for pods at their limits."""
    source = reading.source
    if observation.spec.joint or source.name != "cpu" or reading.metric.type not in OF_RESOURCES:
        return reading
    used = amount_of("cpu", reading.current.average_value)
    resources = present_resources(observation.workload.spec.template.spec.containers)
    names = {source.container} if source.container else {*resources, *observation.pods.containers}
    limits = [resources[name].limits.get("cpu", 0) if name in resources else 0 for name in names]
    if not used or not limits or not all(limits):  # no containers: a workload without a template
        return reading
    return reading._replace(of_limit=Fraction(used * 100, sum(limits) * PINNED_PERCENT))


def measured_from(observation: ScalableObservation, clock: Clock) -> dt.datetime | None:
    """Return when the first pod can have been measured, if every pod is too young for that now (joint decisions only).
    Example: pods that became ready at 10:00:05 and 10:00:09 give 10:00:35.

    A pod is too young only while it starts. A time further ahead comes from a wrong clock.
    """
    counted = observation.pods.counted_from if observation.spec.joint else ()
    if not counted or clock.is_past(counted[0]):
        return None
    return clock.held_until(counted[0] - STARTS_FOR, STARTS_FOR)


def estimate_replicas(
    observation: ScalableObservation, hpa: Hpa, readings: Readings, clock: Clock
) -> int | None:
    """Return the largest count over the measured metrics: the present count within tolerance, otherwise ratio × counted
    pods, rounded up. While a metric has no value, the result is not below the present count; None if no metric has a
    value.

    Source: the HPA's algorithm, `GetResourceReplicas` and its siblings in podautoscaler/replica_calculator.go.
    """
    proposals = [_proposal(reading, observation, hpa, clock) for reading in readings if reading is not None]
    if not proposals:
        return None
    return max(*proposals, observation.workload.spec.replicas) if None in readings else max(proposals)


def leading_metric(
    observation: ScalableObservation, hpa: Hpa, readings: Readings, clock: Clock
) -> tuple[str, int]:
    """Return the metric with the largest count, in words, and its value in percent of its target: 91 % with a target of
    50 % gives 182. At least one metric must have a value (`estimate_replicas` is not None)."""
    known = [reading for reading in readings if reading is not None]
    leading = max(
        known,
        key=lambda reading: (_proposal(reading, observation, hpa, clock), reading.have / reading.wanted),
    )
    return leading.label, ceil_div(leading.have * 100, leading.wanted)


def is_never_stale(readings: Readings) -> bool:
    """Return whether each metric gives a count of its own: measured, absolute, and outside its tolerance. Inside the
    tolerance, a metric keeps any present count (DESIGN 4)."""
    return all(
        reading is not None and reading.is_absolute and not reading.is_tolerated for reading in readings
    )


def least_by_limits(observation: ScalableState, readings: Readings) -> int:
    """Return the replicas that the pods' CPU limits require; 0 if the HPA sees their demand (docs/decisions/0075).

    That is if pods reach their limits within the HPA's tolerance. At their limits their demand counts as 15 percent
    more, as for the VPA, and no pods are removed that would bring the others as close to them.

    Example: request and limit are 500m, and the target is 95 percent. Pods use at most 500m, which is 5 percent above
    the target, and the HPA tolerates 10. 20 pods that use 500m become 23. If they use 400m, 18 stay, and use 444m each.
    """
    return max([_by_limit(reading, observation) for reading in readings if reading is not None], default=0)


def _by_limit(reading: Reading, observation: ScalableState) -> int:
    present, outside = observation.workload.spec.replicas, 1 + reading.tolerances[0]
    if not reading.of_limit or Fraction(reading.have, reading.wanted) / reading.of_limit > outside:
        return 0
    if reading.of_limit >= 1:
        return ceil_div(present * VPA_PERCENT, 100)
    return min(present, math.ceil(present * reading.of_limit * outside))


def metric_demands(
    observation: ScalableObservation, readings: Readings, clock: Clock
) -> tuple[tuple[MetricDemand, ...], bool]:
    """Return the demand of each measured metric, and whether a metric has no value."""
    known = [reading for reading in readings if reading is not None]
    demands = [_demand(reading, _counted_pods(reading, observation, clock)) for reading in known]
    return tuple(demands), None in readings


def unproven(observation: ObservedState, clock: Clock) -> int:
    """Return how many pods failed recently or are new."""
    return len(observation.pods.unproven_until) - clock.count_past(observation.pods.unproven_until)


def with_unproven(observation: ScalableState, called: int, clock: Clock) -> int:
    """Return the required pods if each pod that failed recently or is new counts as full, but no more than the present
    count.

    Example: 6 of 10 pods ran out of memory. The mean usage of all pods is a fifth of their target, so 2 pods are
    required; with these 6, it is 8.
    """
    return max(called, min(called + unproven(observation, clock), observation.workload.spec.replicas))


def _counted_pods(reading: Reading, observation: ScalableObservation, clock: Clock) -> int:
    """Return the workload's pods that the HPA counted for a metric.

    - For CPU: pods that are ready, or were ready and lost it (a short interruption removes no pod).
    - For `Value`: ready pods.
    - For `AverageValue` of Object and External: `status.replicas`.
    - For other metrics: running pods.

    If no pod is known, the workload's own number counts. Source: `groupPods` and `getReadyPodsCount` in
    podautoscaler/replica_calculator.go.
    """
    status, pods = observation.workload.status, observation.pods
    if reading.is_of_status:
        return status.replicas or observation.workload.spec.replicas
    if reading.source.name == "cpu":
        known, counted = pods.counted_from, len(pods.counted_from) or status.ready_replicas
    elif reading.metric.type in ("Object", "External"):
        known, counted = pods.counted_from, pods.ready or status.ready_replicas
    else:
        known, counted = pods.running_from, pods.running or status.replicas
    # A joint decision waits for the first measurement of new pods: otherwise the older pods' usage would count for them
    # too and add more pods. `Additive` does not wait: without new pods it would go back and forth. It waits if the
    # estimate bounds the count because pods have more CPU for their start.
    waits = observation.spec.joint or observation.pods.boosted is not None
    counted = (clock.count_past(known) if waits else 0) or counted
    return counted or observation.workload.spec.replicas


def _demand(reading: Reading, counted: int) -> MetricDemand:
    source, target = reading.source, reading.source.target
    resource: Resource | None = None
    if reading.metric.type in OF_RESOURCES and source.name in ("cpu", "memory"):
        resource = "cpu" if source.name == "cpu" else "memory"
    requested = per_pod = None
    used = None if resource is None else amount_of(resource, reading.current.average_value)
    if resource is not None and reading.is_absolute:
        per_pod = amount_of(resource, target.average_value)
    elif resource is not None and target.average_utilization:
        requested = None if used is None else ceil_div(used * counted * 100, target.average_utilization)
    return MetricDemand(
        label=reading.label,
        pods=max(0, min(ceil_div(reading.have * counted * MICRO, reading.wanted), MOST_PODS)),
        absolute=reading.is_absolute,
        tolerance=int(reading.tolerances[0] * FULL),
        resource=resource,
        container=source.container,
        requested=requested,
        per_pod=per_pod,
        counted=counted,
        utilization=target.average_utilization or 0,
        used=used,
    )


def _proposal(reading: Reading, observation: ScalableObservation, hpa: Hpa, clock: Clock) -> int:
    """Return the count for a metric. The HPA finds pods by labels alone, so pods of other owners count here too.
    Example: a Job's pod has the labels of a Deployment with 4 pods; the HPA counts 5."""
    if reading.is_tolerated:
        return max(observation.workload.spec.replicas, _by_limit(reading, observation))
    counted, pods = _counted_pods(reading, observation, clock), observation.pods
    if not observation.spec.joint:
        # At most the number of pods at the time of the measurement.
        counted = min(counted, hpa.status.current_replicas or counted)
    if not reading.is_of_status:
        of_ready = reading.source.name == "cpu" or reading.metric.type in ("Object", "External")
        counted += pods.others_ready if of_ready else pods.others_running
    return max(_by_limit(reading, observation), ceil_div(reading.have * counted, reading.wanted))


def _identity(metric: Metric) -> tuple[object, ...]:
    source = metric.source() or _NO_SOURCE
    return (metric.type, source.name, source.container, source.metric.name, source.described_object)


def _ratio(target: MetricValue, current: MetricValue) -> tuple[int, int] | None:
    """Return measured / wanted as numerator and denominator; None if either is missing or does not parse."""
    if target.average_utilization:
        have = current.average_utilization
        return None if have is None else (have, target.average_utilization)
    pairs = ((target.average_value, current.average_value), (target.value, current.value))
    with suppress(QuantityError):
        for wanted, value in pairs:
            if wanted is not None and value is not None and (divisor := parse_quantity(wanted)) > 0:
                measured = parse_quantity(value)
                return measured.numerator * divisor.denominator, measured.denominator * divisor.numerator
    return None


def _tolerance(rules: HpaScalingRules | None, settings: Settings) -> Fraction:
    if rules is not None and rules.tolerance is not None:
        with suppress(QuantityError):
            return max(Fraction(0), parse_quantity(rules.tolerance))
    return Fraction(settings.hpa_tolerance_ppm, FULL)
