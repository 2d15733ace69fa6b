"""The metrics that the HorizontalPodAutoscaler scales by.

Each metric may have the old form (autoscaling/v2beta1: `targetAverageUtilization`, `metricName`, …) or the form of
autoscaling/v2 (`target: {type, …}`). `MetricSpec.to_v2` returns the latter.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic.alias_generators import to_snake

from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import (
    ContainerName,
    Name,
    NonNegativeQuantity,
    PositiveCount,
    PositiveQuantity,
    Text,
)

Wire = dict[str, Any]
TargetType = Literal["Utilization", "Value", "AverageValue"]

VALUES_OF_TYPE: dict[str, str] = {
    "Utilization": "averageUtilization",
    "Value": "value",
    "AverageValue": "averageValue",
}
"""The field of a v2 target for each target type."""


def _set_by_type(what: str, field_of: dict[str, str], condition: str = "") -> tuple[Rule, ...]:
    """Returns rules that require each field exactly if `type` is its type. The CEL `condition` is for an optional
    `type`."""

    def rule(kind: str, field: str) -> Rule:
        return Rule(
            f"has(self.{field}) == ({condition}self.type == '{kind}')",
            lambda model: (getattr(model, to_snake(field)) is not None) == (model.type == kind),
            f"must be set for {what} type {kind}, and only then",
            f".{field}",
        )

    return tuple(rule(kind, field) for kind, field in field_of.items())


def _is_one_form(new: tuple[object, ...], old: tuple[object, ...], selector: object = None) -> bool:
    """Whether a source has all fields of one form and none of the other. `selector` belongs to the old form."""
    if old.count(None) == len(old) and selector is None:
        return None not in new
    return None not in old and new.count(None) == len(new)


class MetricIdentifier(SpecModel):
    """Names a custom or external metric (autoscaling/v2)."""

    name: Name
    """The metric's name."""
    selector: LabelSelector | None = None
    """Restricts the metric to series with these labels."""


class _TargetValues(SpecModel):
    """The values of a v2 target. The value that is set must match the type."""

    value: PositiveQuantity | None = None
    """Target of the metric as a whole (type Value)."""
    average_value: PositiveQuantity | None = None
    """Target per pod (type AverageValue)."""
    average_utilization: PositiveCount | None = None
    """Target per pod, as a percentage of the request (type Utilization)."""


class MetricTarget(_TargetValues):
    """The target of a metric (autoscaling/v2)."""

    RULES = _set_by_type("target", VALUES_OF_TYPE)

    type: TargetType
    """Type of the target: Utilization, Value or AverageValue."""


class DescribedObject(SpecModel):
    """The object that a metric describes, in the Hvpa's namespace."""

    api_version: Text | None = None
    """The object's API version."""
    kind: Name
    """The object's kind."""
    name: Name
    """The object's name."""


class ObjectTarget(_TargetValues):
    """`target` of an Object metric. In autoscaling/v2 it is the target value, in v2beta1 the described object."""

    RULES = (
        *_set_by_type("target", VALUES_OF_TYPE, condition="has(self.type) && "),
        Rule(
            "has(self.type) ? !has(self.kind) && !has(self.name) && !has(self.apiVersion)"
            " : has(self.kind) && has(self.name)",
            lambda target: _is_one_form((target.type,), (target.kind, target.name), target.api_version),
            "must be a target with a type (v2), or an object with kind and name (v2beta1)",
        ),
    )

    type: Literal["Value", "AverageValue"] | None = None
    """Type of the target (autoscaling/v2): Value or AverageValue."""
    api_version: Text | None = None
    """API version of the described object (v2beta1)."""
    kind: Name | None = None
    """Kind of the described object (v2beta1)."""
    name: Name | None = None
    """Name of the described object (v2beta1)."""


# --- the five sources ---
def _target_type(comparison: str, types: tuple[str, ...]) -> Rule:
    """Returns the rule that a v2 target has a type of this list."""
    return Rule(
        f"!has(self.target) || self.target.type {comparison}",
        lambda source: source.target is None or source.target.type in types,
        f"must be {' or '.join(types)}",
        ".target.type",
    )


class ResourceMetric(SpecModel):
    """CPU or memory of the pods, for all containers together."""

    RULES = (
        Rule(
            "[has(self.target), has(self.targetAverageUtilization), has(self.targetAverageValue)]"
            ".exists_one(set, set)",
            lambda source: (
                [source.target, source.target_average_utilization, source.target_average_value].count(None)
                == 2
            ),
            "set exactly one of target (v2), targetAverageUtilization and targetAverageValue (v2beta1)",
        ),
        _target_type("!= 'Value'", ("Utilization", "AverageValue")),
    )

    name: Name
    """The resource: cpu or memory."""
    target: MetricTarget | None = None
    """Target in the form of autoscaling/v2: Utilization or AverageValue."""
    target_average_utilization: PositiveCount | None = None
    """Target per pod as a percentage of its request (v2beta1)."""
    target_average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""


class ContainerResourceMetric(ResourceMetric):
    """CPU or memory of a single container."""

    container: ContainerName
    """The container's name."""


class PodsMetric(SpecModel):
    """A custom metric of the pods, averaged over them."""

    RULES = (
        Rule(
            "has(self.metric) ? has(self.target) && !has(self.metricName) && !has(self.targetAverageValue)"
            " && !has(self.selector)"
            " : has(self.metricName) && has(self.targetAverageValue) && !has(self.target)",
            lambda source: _is_one_form(
                (source.metric, source.target),
                (source.metric_name, source.target_average_value),
                source.selector,
            ),
            "set metric and target (v2), or metricName and targetAverageValue (v2beta1)",
        ),
        _target_type("== 'AverageValue'", ("AverageValue",)),
    )

    metric: MetricIdentifier | None = None
    """The metric (autoscaling/v2)."""
    target: MetricTarget | None = None
    """Target in the form of autoscaling/v2: AverageValue."""
    metric_name: Name | None = None
    """The metric's name (v2beta1)."""
    selector: LabelSelector | None = None
    """Restricts the metric to series with these labels (v2beta1)."""
    target_average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""


class ObjectMetric(SpecModel):
    """A custom metric that describes one object, such as an Ingress."""

    RULES = (
        Rule(
            "has(self.metric)"
            " ? has(self.describedObject) && has(self.target.type)"
            " && !has(self.metricName) && !has(self.targetValue) && !has(self.averageValue)"
            " && !has(self.selector)"
            " : has(self.metricName) && !has(self.target.type) && !has(self.describedObject)"
            " && (has(self.averageValue) || has(self.targetValue))",
            lambda source: _is_one_form(
                (source.metric, source.described_object, source.target.type),
                (source.metric_name, source.average_value or source.target_value),
                source.selector,
            ),
            "set metric, describedObject and target.type (v2),"
            " or metricName, target.name and targetValue (v2beta1)",
        ),
        Rule(
            "has(self.averageValue) || !has(self.targetValue) || !(self.targetValue in [dyn('0'), dyn(0)])",
            lambda source: source.average_value is not None or source.target_value != "0",
            "must be greater than 0",
            ".targetValue",
        ),
    )

    metric: MetricIdentifier | None = None
    """The metric (autoscaling/v2)."""
    described_object: DescribedObject | None = None
    """The object that the metric describes (autoscaling/v2)."""
    target: ObjectTarget
    """In autoscaling/v2: the target, with type Value or AverageValue. In v2beta1: the object that the metric
    describes."""
    metric_name: Name | None = None
    """The metric's name (v2beta1)."""
    selector: LabelSelector | None = None
    """Restricts the metric to series with these labels (v2beta1)."""
    target_value: NonNegativeQuantity | None = None
    """Target of the metric as a whole (v2beta1). Ignored if `averageValue` is set."""
    average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""


class ExternalMetric(SpecModel):
    """A metric that does not belong to an object of the cluster, such as the length of a queue."""

    RULES = (
        Rule(
            "has(self.metric) ? has(self.target) && !has(self.metricName) && !has(self.metricSelector)"
            " && !has(self.targetValue) && !has(self.targetAverageValue)"
            " : has(self.metricName) && !has(self.target)"
            " && has(self.targetValue) != has(self.targetAverageValue)",
            lambda source: (
                None in (source.target_value, source.target_average_value)
                and _is_one_form(
                    (source.metric, source.target),
                    (source.metric_name, source.target_value or source.target_average_value),
                    source.metric_selector,
                )
            ),
            "set metric and target (v2), or metricName and one of targetValue and targetAverageValue (v2beta1)",
        ),
        _target_type("!= 'Utilization'", ("Value", "AverageValue")),
    )

    metric: MetricIdentifier | None = None
    """The metric (autoscaling/v2)."""
    target: MetricTarget | None = None
    """Target in the form of autoscaling/v2: Value or AverageValue."""
    metric_name: Name | None = None
    """The metric's name (v2beta1)."""
    metric_selector: LabelSelector | None = None
    """Restricts the metric to series with these labels (v2beta1)."""
    target_value: PositiveQuantity | None = None
    """Target of the metric as a whole (v2beta1)."""
    target_average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""


_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


class MetricSpec(SpecModel):
    """A metric. `type` names its source. Exactly that source must be set."""

    RULES = _set_by_type("metric", _SOURCES)

    type: Literal["Resource", "ContainerResource", "Pods", "Object", "External"]
    """Type of the source."""
    resource: ResourceMetric | None = None
    """CPU or memory of the pods (type Resource)."""
    container_resource: ContainerResourceMetric | None = None
    """CPU or memory of a single container (type ContainerResource)."""
    pods: PodsMetric | None = None
    """A custom metric of the pods (type Pods)."""
    object: ObjectMetric | None = None
    """A custom metric of another object (type Object)."""
    external: ExternalMetric | None = None
    """A metric from outside the cluster (type External)."""

    def to_v2(self) -> Wire:
        """Returns the metric in the form of autoscaling/v2."""
        field = _SOURCES[self.type]
        return {"type": self.type, field: _to_v2(self.to_wire()[field])}


_OLD_TARGETS = {
    "averageValue": "AverageValue",
    "targetAverageValue": "AverageValue",
    "targetAverageUtilization": "Utilization",
    "targetValue": "Value",
}
"""Fields of v2beta1 that hold a target, with the target's type. If two are set, the first applies."""


def _to_v2(source: Wire) -> Wire:
    """Returns a source in the form of autoscaling/v2. Example: `metricName: queue, targetAverageValue: 5` becomes
    `metric: {name: queue}, target: {type: AverageValue, averageValue: 5}`. A source that already has this form is
    returned unchanged."""
    old = next((field for field in _OLD_TARGETS if field in source), None)
    if old is None:
        return source
    wire: Wire = {field: source[field] for field in ("name", "container") if field in source}
    if "metricName" in source:
        selector = source.get("selector", source.get("metricSelector"))
        wire["metric"] = {"name": source["metricName"]} | ({} if selector is None else {"selector": selector})
    if "target" in source:
        wire["describedObject"] = source["target"]
    kind = _OLD_TARGETS[old]
    return wire | {"target": {"type": kind, VALUES_OF_TYPE[kind]: source[old]}}
