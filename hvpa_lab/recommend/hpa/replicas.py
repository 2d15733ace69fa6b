"""The number of replicas that a metric requires.

Source: replica_calculator.go and metrics/utilization.go, with the same order of operations. Sums are Go's int64, ratios
are float64. All functions raise `MetricsError` with Go's message if there is no count. Amounts are in milli-units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hvpa.api.objects.read_models import MetricName, ObjectReference
from hvpa.recommend.golang import MAX_INT32, MAX_INT64, ceil32, ceil64, int32, int64, quotient, ratio
from hvpa.recommend.hpa.inputs import MetricsClient, MetricsError, PodReading, Scale
from hvpa.recommend.hpa.pods import NO_PODS, Groups, TargetPods, requests_of, runs_and_is_ready
from hvpa.recommend.hpa.selector import SelectorError, check_selector, show_selector
from hvpa_lab.recommend.hpa.plan import Tolerance


class Situation(NamedTuple):
    """Input for all metrics of a sync."""

    namespace: str
    scale: Scale
    target: TargetPods
    metrics: MetricsClient
    tolerance: Tolerance


class Proposal(NamedTuple):
    """The count that a metric requires, and the measured amount."""

    replicas: int
    measured: int
    utilization: int | None = None
    """Measured utilization in percent, for a target in percent."""


def by_utilization(situation: Situation, resource: str, container: str, target: int) -> Proposal:
    """For a target in percent of the requests (`GetResourceReplicas`). Example: 3 ready pods at 120 percent with a
    target of 80 percent need 1.5 × 3 = 4.5, so 5 replicas."""
    readings = _resource_readings(situation, resource, container)
    groups = situation.target.group(readings, resource)
    requests = requests_of(situation.target.pods, container, resource)
    used = sum(readings[name].value for name in groups.ready)
    requested = sum(requests[name] for name in groups.ready)
    utilization = _utilization(used, requested)
    usage = ratio(utilization, target)

    def again(missing: Sequence[str], unready: Sequence[str]) -> float:
        more = sum(quotient(int64(requests[name] * max(100, target)), 100) for name in missing)
        total = requested + sum(requests[name] for name in (*missing, *unready))
        return ratio(_utilization(used + more if usage < 1.0 else used, total), target)

    raw = quotient(int64(used), len(groups.ready))
    return Proposal(_settled(situation, groups, usage, again), raw, utilization)


def by_resource_usage(situation: Situation, resource: str, container: str, target: int) -> Proposal:
    """For a target in cores or bytes per pod (`GetRawResourceReplicas`)."""
    return _by_usage(situation, _resource_readings(situation, resource, container), target, resource)


def by_pods_metric(situation: Situation, metric: MetricName, target: int) -> Proposal:
    """For a custom metric of the pods, with a target per pod (`GetMetricReplicas`)."""
    try:
        readings = situation.metrics.pods(metric)
        if not readings:
            raise MetricsError("no metrics returned from custom metrics API")
    except MetricsError as error:
        raise MetricsError(f"unable to get metric {metric.name}: {error}") from None
    return _by_usage(situation, readings, target, "")


def by_object(situation: Situation, metric: MetricName, described: ObjectReference, target: int) -> Proposal:
    """For an object's metric, with a target for the metric as a whole (`GetObjectMetricReplicas`)."""
    measured = _object_value(situation, metric, described)
    return Proposal(_by_ratio(situation, ratio(measured, target)), measured)


def by_object_per_pod(
    situation: Situation, metric: MetricName, described: ObjectReference, target: int
) -> Proposal:
    """For an object's metric, divided by the number of pods (`GetObjectPerPodMetricReplicas`)."""
    measured = _object_value(situation, metric, described)
    pods = situation.scale.current
    replicas = pods
    if not situation.tolerance.covers(ratio(measured, float(target) * float(pods))):
        replicas = ceil32(ratio(measured, target))
    return Proposal(replicas, ceil64(ratio(measured, pods)))


def by_external(situation: Situation, metric: MetricName, target: int) -> Proposal:
    """For the sum of an external metric, with a target for the metric as a whole (`GetExternalMetricReplicas`)."""
    measured = 0
    for value in _external_values(situation, metric):
        if value > 0 and measured > MAX_INT64 - value:
            measured = MAX_INT64
            break
        measured = int64(measured + value)
    return Proposal(_by_ratio(situation, ratio(measured, target)), measured)


def by_external_per_pod(situation: Situation, metric: MetricName, target: int) -> Proposal:
    """For the sum of an external metric, divided by the number of pods (`GetExternalPerPodMetricReplicas`). As in Go, a
    negative sum counts as an overflow."""
    measured = 0
    for value in _external_values(situation, metric):
        measured = int64(measured + value)
        if measured < 0:
            measured = MAX_INT64
            break
    pods = situation.scale.current
    replicas = pods
    if not situation.tolerance.covers(ratio(measured, float(target) * float(pods))):
        wanted = ratio(measured, target)
        replicas = MAX_INT32 if wanted > MAX_INT32 else ceil32(wanted)
    average = MAX_INT64 if float(measured) >= MAX_INT64 else ceil64(ratio(measured, pods))
    return Proposal(replicas, average)


def _by_usage(
    situation: Situation, readings: Mapping[str, PodReading], target: int, resource: str
) -> Proposal:
    """For an amount per pod (`calcPlainMetricReplicas`)."""
    groups = situation.target.group(readings, resource)
    measured = quotient(int64(groups.total), groups.left)
    usage = ratio(measured, target)

    def again(missing: Sequence[str], unready: Sequence[str]) -> float:
        total = groups.total + (target * len(missing) if usage < 1.0 else 0)
        return ratio(quotient(int64(total), groups.left + len(missing) + len(unready)), target)

    return Proposal(_settled(situation, groups, usage, again), measured)


def _settled(
    situation: Situation, groups: Groups, usage: float, again: Callable[[Sequence[str], Sequence[str]], float]
) -> int:
    """Returns the count for this usage ratio.

    If pods are unready or have no reading, `again` calculates a second, conservative ratio. It includes the missing and
    unready pods that weaken the change. If the second ratio is near 1 or reverses the direction, the count does not
    change; otherwise it gives the count.
    """
    current = situation.scale.replicas
    unready = groups.unready if usage > 1.0 else ()
    if not unready and not groups.missing:
        return current if situation.tolerance.covers(usage) else ceil32(usage * len(groups.ready))
    missing = groups.missing if usage < 1.0 or usage > 1.0 else ()
    second = again(missing, unready)
    if situation.tolerance.covers(second) or (usage < 1.0 < second) or (second < 1.0 < usage):
        return current
    wanted = ceil32(second * (groups.left + len(missing) + len(unready)))
    turned = (second < 1.0 and wanted > current) or (second > 1.0 and wanted < current)
    return current if turned else wanted


def _utilization(used: int, requested: int) -> int:
    """Returns percent, truncated (`GetResourceUtilizationRatio`)."""
    requested = int64(requested)
    if requested == 0:
        raise MetricsError("no metrics returned matched known pods")
    return int32(quotient(int64(used * 100), requested))


def _by_ratio(situation: Situation, usage: float) -> int:
    """`getUsageRatioReplicaCount`. From 0 replicas, the count is the usage ratio, rounded up."""
    if situation.scale.replicas == 0:
        return ceil32(usage)
    if situation.tolerance.covers(usage):
        return situation.scale.replicas
    if not situation.target.pods:
        raise MetricsError(f"unable to calculate ready pods: {NO_PODS}")
    wanted = usage * sum(runs_and_is_ready(pod) for pod in situation.target.pods)
    return MAX_INT32 if wanted > MAX_INT32 else ceil32(wanted)


def _resource_readings(situation: Situation, resource: str, container: str) -> Mapping[str, PodReading]:
    try:
        return situation.metrics.resource(resource, container)
    except MetricsError as error:
        raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from None


def _object_value(situation: Situation, metric: MetricName, described: ObjectReference) -> int:
    try:
        return situation.metrics.object(metric, described)
    except MetricsError as error:
        where = f"{described.kind} {situation.namespace}/{described.name}"
        raise MetricsError(f"unable to get metric {metric.name} on {where}: {error}") from None


def _external_values(situation: Situation, metric: MetricName) -> Sequence[int]:
    try:
        check_selector(metric.selector)
    except SelectorError as error:
        raise MetricsError(str(error)) from None
    try:
        values = situation.metrics.external(metric)
        if not values:
            raise MetricsError("no metrics returned from external metrics API")
    except MetricsError as error:
        name = f"{situation.namespace}/{metric.name}/{show_selector(metric.selector)}"
        raise MetricsError(f"unable to get external metric {name}: {error}") from None
    return values
