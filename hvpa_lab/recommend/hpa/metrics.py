"""The result of each metric of an HPA's spec: its count, and its entry in `status.currentMetrics`.

Source: `computeReplicasForMetric` and `computeStatusFor…` in horizontal.go. The messages are Go's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Metric, MetricName, MetricSource, MetricValue, ObjectReference
from hvpa.recommend.golang import format_milli
from hvpa.recommend.hpa.inputs import MetricsError
from hvpa.recommend.hpa.selector import SelectorError, check_selector, show_selector
from hvpa_lab.recommend.hpa.plan import MetricPlan
from hvpa_lab.recommend.hpa.replicas import (
    Proposal,
    Situation,
    by_external,
    by_external_per_pod,
    by_object,
    by_object_per_pod,
    by_pods_metric,
    by_resource_usage,
    by_utilization,
)

_NO_TARGET: Final = "invalid {} metric source: neither a value target nor an average value target was set"


class MetricResult(NamedTuple):
    """The count of a metric, the metric's name in messages, and its entry in the status."""

    replicas: int
    name: str
    status: Metric


class MetricFault(Exception):
    """A metric gives no count. `reason` and `cause` are for the condition, the whole text is for the event."""

    def __init__(self, reason: str, cause: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.cause = cause


def evaluate(plan: MetricPlan, situation: Situation) -> MetricResult:
    """Returns the metric's result for the pods and readings of this sync. Raises `MetricFault`."""
    match plan.type:
        case "Resource" | "ContainerResource":
            return _resource(plan, situation)
        case "Pods":
            return _pods(plan, situation)
        case "Object":
            return _object(plan, situation)
        case "External":
            return _external(plan, situation)
    text = f'unknown metric source type "{plan.type}"'
    raise MetricFault("InvalidMetricSourceType", text, text)


def _resource(plan: MetricPlan, situation: Situation) -> MetricResult:
    """Evaluates the metric of a container or, for type Resource, of the whole pod
    (`computeStatusForResourceMetricGeneric`). An average value takes precedence over a percentage."""
    source = plan.source
    of_container = plan.type == "ContainerResource"
    container, kind = (source.container, "container resource") if of_container else ("", "resource")
    try:
        proposal, name = _usage(plan, situation, container, kind)
    except MetricsError as error:
        reason = "FailedGetContainerResourceMetric" if of_container else "FailedGetResourceMetric"
        label = f"{source.container} container" if of_container else f"{source.name} resource"
        text = f"failed to get {label} metric value: {error}"
        raise MetricFault(reason, str(error), text) from None
    average = format_milli(proposal.measured, binary=source.name == "memory")
    value = MetricValue(average_value=average, average_utilization=proposal.utilization)
    reported = MetricSource(name=source.name, container=container, current=value)
    field = "container_resource" if of_container else "resource"
    return MetricResult(proposal.replicas, name, Metric(type=plan.type, **{field: reported}))


def _usage(plan: MetricPlan, situation: Situation, container: str, kind: str) -> tuple[Proposal, str]:
    """Returns the count and the metric's name. Raises `MetricsError`."""
    resource = plan.source.name
    if plan.average is None and plan.utilization is None:
        cause = "neither an average utilization target nor an average value (usage) target was set"
        raise MetricsError(f"invalid resource metric source: {cause}")
    measured = "utilization" if plan.average is None else "usage"
    try:
        if plan.average is not None:
            return by_resource_usage(situation, resource, container, plan.average), f"{resource} resource"
        proposal = by_utilization(situation, resource, container, plan.utilization or 0)
    except MetricsError as error:
        raise MetricsError(f"failed to get {resource} {measured}: {error}") from None
    return proposal, f"{resource} {kind} utilization (percentage of request)"


def _pods(plan: MetricPlan, situation: Situation) -> MetricResult:
    metric = plan.source.metric
    try:
        check_selector(metric.selector)
        if plan.average is None:  # Go relies on the API server's validation
            raise MetricsError("invalid pods metric source: no average value target was set")
        proposal = by_pods_metric(situation, metric, plan.average)
    except (MetricsError, SelectorError) as error:
        text = f"failed to get pods metric value: {error}"
        raise MetricFault("FailedGetPodsMetric", str(error), text) from None
    value = MetricValue(average_value=format_milli(proposal.measured))
    reported = MetricSource(metric=metric, current=value)
    return MetricResult(
        proposal.replicas, f"pods metric {metric.name}", Metric(type=plan.type, pods=reported)
    )


def _object(plan: MetricPlan, situation: Situation) -> MetricResult:
    metric = plan.source.metric
    described = plan.source.described_object or ObjectReference()
    returned = ""
    try:
        check_selector(metric.selector)
        kind = plan.source.target.type
        if kind == "Value" and plan.value is not None:
            proposal = by_object(situation, metric, described, plan.value)
            value = MetricValue(value=format_milli(proposal.measured))
            name = f"{described.kind} metric {metric.name}"
        elif kind == "AverageValue" and plan.average is not None:
            returned = f"failed to get {metric.name} object metric: "
            proposal = by_object_per_pod(situation, metric, described, plan.average)
            value = MetricValue(average_value=format_milli(proposal.measured))
            name = _external_name(metric)
        else:
            raise MetricsError(_NO_TARGET.format("object"))
    except (MetricsError, SelectorError) as error:
        text = f"failed to get object metric value: {returned}{error}"
        raise MetricFault("FailedGetObjectMetric", str(error), text) from None
    reported = MetricSource(metric=metric, described_object=described, current=value)
    return MetricResult(proposal.replicas, name, Metric(type=plan.type, object=reported))


def _external(plan: MetricPlan, situation: Situation) -> MetricResult:
    metric = plan.source.metric
    returned = ""
    try:
        if plan.average is not None:
            returned = f"failed to get {metric.name} external metric: "
            proposal = by_external_per_pod(situation, metric, plan.average)
            value = MetricValue(average_value=format_milli(proposal.measured))
        elif plan.value is not None:
            returned = f"failed to get external metric {metric.name}: "
            proposal = by_external(situation, metric, plan.value)
            value = MetricValue(value=format_milli(proposal.measured))
        else:
            raise MetricsError(_NO_TARGET.format("external"))
    except MetricsError as error:
        text = f"failed to get {metric.name} external metric value: {returned}{error}"
        raise MetricFault("FailedGetExternalMetric", str(error), text) from None
    reported = MetricSource(metric=metric, current=value)
    return MetricResult(proposal.replicas, _external_name(metric), Metric(type=plan.type, external=reported))


def _external_name(metric: MetricName) -> str:
    """Returns the metric's name in messages. An object's average value is called external as well."""
    return f"external metric {metric.name}({show_selector(metric.selector)})"
