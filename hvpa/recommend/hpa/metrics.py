"""The metrics of an HPA's spec, each asked for its count and told in `status.currentMetrics`.

Source: `computeReplicasForMetric` and `computeStatusFor…` in horizontal.go; the messages are Go's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hvpa.api.objects.autoscalers import Metric, MetricName, MetricSource, MetricValue, ObjectReference
from hvpa.recommend.golang.quantities import format_milli
from hvpa.recommend.hpa.inputs import MetricsError
from hvpa.recommend.hpa.plan import MetricPlan
from hvpa.recommend.hpa.replicas import (
    Situation,
    by_external,
    by_external_per_pod,
    by_object,
    by_object_per_pod,
    by_pods_metric,
    by_resource_usage,
    by_utilization,
)
from hvpa.recommend.hpa.selector import SelectorError, check_selector, show_selector

_NO_TARGET: Final = "invalid {} metric source: neither a value target nor an average value target was set"


class Answer(NamedTuple):
    """The count that a metric asks for, how messages call the metric, and its entry in the status."""

    replicas: int
    name: str
    status: Metric


class MetricFault(Exception):
    """A metric that gives no count. `reason` and `cause` are for the condition, the whole text for the event."""

    def __init__(self, reason: str, cause: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.cause = cause


def ask(plan: MetricPlan, here: Situation) -> Answer:
    """The metric's answer for the pods and readings of this sync. Raises `MetricFault`."""
    match plan.type:
        case "Resource":
            return _ask_resource(plan, here)
        case "ContainerResource":
            return _ask_container(plan, here)
        case "Pods":
            return _ask_pods(plan, here)
        case "Object":
            return _ask_object(plan, here)
        case "External":
            return _ask_external(plan, here)
    text = f'unknown metric source type "{plan.type}"'
    raise MetricFault("InvalidMetricSourceType", text, text)


def _ask_resource(plan: MetricPlan, here: Situation) -> Answer:
    source = plan.source
    try:
        replicas, value, name = _resource(plan, here, "", "resource")
    except MetricsError as error:
        text = f"failed to get {source.name} resource metric value: {error}"
        raise MetricFault("FailedGetResourceMetric", str(error), text) from None
    return Answer(
        replicas, name, Metric(type=plan.type, resource=MetricSource(name=source.name, current=value))
    )


def _ask_container(plan: MetricPlan, here: Situation) -> Answer:
    source = plan.source
    try:
        replicas, value, name = _resource(plan, here, source.container, "container resource")
    except MetricsError as error:
        text = f"failed to get {source.container} container metric value: {error}"
        raise MetricFault("FailedGetContainerResourceMetric", str(error), text) from None
    told = MetricSource(name=source.name, container=source.container, current=value)
    return Answer(replicas, name, Metric(type=plan.type, container_resource=told))


def _resource(plan: MetricPlan, here: Situation, container: str, kind: str) -> tuple[int, MetricValue, str]:
    """Count, measurement and name (`computeStatusForResourceMetricGeneric`); an average value goes before a percentage.

    Raises `MetricsError`.
    """
    resource = plan.source.name
    binary = resource == "memory"
    if plan.average is not None:
        try:
            found = by_resource_usage(here, resource, container, plan.average)
        except MetricsError as error:
            raise MetricsError(f"failed to get {resource} usage: {error}") from None
        value = MetricValue(average_value=format_milli(found.measured, binary))
        return found.replicas, value, f"{resource} resource"
    if plan.utilization is None:
        what = "neither an average utilization target nor an average value (usage) target was set"
        raise MetricsError(f"invalid resource metric source: {what}")
    try:
        found = by_utilization(here, resource, container, plan.utilization)
    except MetricsError as error:
        raise MetricsError(f"failed to get {resource} utilization: {error}") from None
    value = MetricValue(
        average_value=format_milli(found.measured, binary), average_utilization=found.utilization
    )
    return found.replicas, value, f"{resource} {kind} utilization (percentage of request)"


def _ask_pods(plan: MetricPlan, here: Situation) -> Answer:
    metric = plan.source.metric
    try:
        check_selector(metric.selector)
        if plan.average is None:  # Go relies on the API server's validation
            raise MetricsError("invalid pods metric source: no average value target was set")
        found = by_pods_metric(here, metric, plan.average)
    except (MetricsError, SelectorError) as error:
        text = f"failed to get pods metric value: {error}"
        raise MetricFault("FailedGetPodsMetric", str(error), text) from None
    value = MetricValue(average_value=format_milli(found.measured))
    told = MetricSource(metric=metric, current=value)
    return Answer(found.replicas, f"pods metric {metric.name}", Metric(type=plan.type, pods=told))


def _ask_object(plan: MetricPlan, here: Situation) -> Answer:
    metric = plan.source.metric
    described = plan.source.described_object or ObjectReference()
    returned = ""
    try:
        check_selector(metric.selector)
        kind = plan.source.target.type
        if kind == "Value" and plan.value is not None:
            found = by_object(here, metric, described, plan.value)
            value = MetricValue(value=format_milli(found.measured))
            name = f"{described.kind} metric {metric.name}"
        elif kind == "AverageValue" and plan.average is not None:
            returned = f"failed to get {metric.name} object metric: "
            found = by_object_per_pod(here, metric, described, plan.average)
            value = MetricValue(average_value=format_milli(found.measured))
            name = _external_name(metric)
        else:
            raise MetricsError(_NO_TARGET.format("object"))
    except (MetricsError, SelectorError) as error:
        text = f"failed to get object metric value: {returned}{error}"
        raise MetricFault("FailedGetObjectMetric", str(error), text) from None
    told = MetricSource(metric=metric, described_object=described, current=value)
    return Answer(found.replicas, name, Metric(type=plan.type, object=told))


def _ask_external(plan: MetricPlan, here: Situation) -> Answer:
    metric = plan.source.metric
    returned = ""
    try:
        if plan.average is not None:
            returned = f"failed to get {metric.name} external metric: "
            found = by_external_per_pod(here, metric, plan.average)
            value = MetricValue(average_value=format_milli(found.measured))
        elif plan.value is not None:
            returned = f"failed to get external metric {metric.name}: "
            found = by_external(here, metric, plan.value)
            value = MetricValue(value=format_milli(found.measured))
        else:
            raise MetricsError(_NO_TARGET.format("external"))
    except MetricsError as error:
        text = f"failed to get {metric.name} external metric value: {returned}{error}"
        raise MetricFault("FailedGetExternalMetric", str(error), text) from None
    told = MetricSource(metric=metric, current=value)
    return Answer(found.replicas, _external_name(metric), Metric(type=plan.type, external=told))


def _external_name(metric: MetricName) -> str:
    """How messages call it; an object's average value is called external, too."""
    return f"external metric {metric.name}({show_selector(metric.selector)})"
