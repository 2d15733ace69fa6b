"""The metrics that the HorizontalPodAutoscaler scales by, in either of their two forms.

Both the old form (autoscaling/v2beta1: `targetAverageUtilization`, `metricName`, …) and that of
autoscaling/v2 (`target: {type, …}`) are accepted, entry by entry; `MetricSpec.to_v2` gives the latter.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator
from pydantic.alias_generators import to_snake

from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.schema.base import SpecModel, cel, fault, rules
from hvpa.api.schema.fields import Name, NonNegativeQuantity, PositiveCount, PositiveQuantity, Text

Wire = dict[str, Any]
TargetType = Literal["Utilization", "Value", "AverageValue"]

VALUES_OF_TYPE: dict[str, str] = {
    "Utilization": "averageUtilization",
    "Value": "value",
    "AverageValue": "averageValue",
}
"""The field of a v2 target that each target type stands for."""
_TARGET_MESSAGE = "must be set for target type {}, and only then"


class MetricIdentifier(SpecModel):
    """Names a custom or external metric (autoscaling/v2)."""

    name: Name
    """The metric's name."""
    selector: LabelSelector | None = None
    """Narrows the metric down to series with these labels."""


class _TargetValues(SpecModel):
    """The values of a v2 target; which one is set must fit its type."""

    value: PositiveQuantity | None = None
    """Target of the metric as a whole (type Value)."""
    average_value: PositiveQuantity | None = None
    """Target per pod (type AverageValue)."""
    average_utilization: PositiveCount | None = None
    """Target per pod, as a percentage of the request (type Utilization)."""

    def _check_values(self, target_type: str | None) -> None:
        for owner, field in VALUES_OF_TYPE.items():
            if (getattr(self, to_snake(field)) is not None) != (owner == target_type):
                raise fault(_TARGET_MESSAGE.format(owner), field)


_TARGET_RULES = [
    cel(f"has(self.{field}) == ({{}}self.type == '{owner}')", _TARGET_MESSAGE.format(owner), f".{field}")
    for owner, field in VALUES_OF_TYPE.items()
]


class MetricTarget(_TargetValues):
    """The target of a metric (autoscaling/v2)."""

    model_config = rules(*(entry | {"rule": str(entry["rule"]).format("")} for entry in _TARGET_RULES))

    type: TargetType
    """What the target speaks of: Utilization, Value or AverageValue."""

    @model_validator(mode="after")
    def _value_fits_type(self) -> Self:
        self._check_values(self.type)
        return self


class DescribedObject(SpecModel):
    """An object of the Hvpa's namespace that a metric describes."""

    api_version: Text | None = None
    """The object's API version."""
    kind: Name
    """The object's kind."""
    name: Name
    """The object's name."""


class ObjectTarget(_TargetValues):
    """`target` of an Object metric: in autoscaling/v2 the target itself, in v2beta1 the described object."""

    model_config = rules(
        *(entry | {"rule": str(entry["rule"]).format("has(self.type) && ")} for entry in _TARGET_RULES),
        cel(
            "has(self.type) ? !has(self.kind) && !has(self.name) && !has(self.apiVersion)"
            " : has(self.kind) && has(self.name)",
            "must be a target with a type (v2), or an object with kind and name (v2beta1)",
        ),
    )

    type: Literal["Value", "AverageValue"] | None = None
    """What the target speaks of (autoscaling/v2): Value or AverageValue."""
    api_version: Text | None = None
    """API version of the described object (v2beta1)."""
    kind: Name | None = None
    """Kind of the described object (v2beta1)."""
    name: Name | None = None
    """Name of the described object (v2beta1)."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        self._check_values(self.type)
        reference = (self.kind, self.name, self.api_version)
        if any(reference) if self.type else self.kind is None or self.name is None:
            raise fault("must be a target with a type (v2), or an object with kind and name (v2beta1)")
        return self


# --- the five sources ---
_RESOURCE_FORMS = "set exactly one of target (v2), targetAverageUtilization and targetAverageValue (v2beta1)"
_PODS_FORMS = "set metric and target (v2), or metricName and targetAverageValue (v2beta1)"
_OBJECT_FORMS = (
    "set metric, describedObject and target.type (v2), or metricName, target.name and targetValue (v2beta1)"
)
_EXTERNAL_FORMS = (
    "set metric and target (v2), or metricName and one of targetValue and targetAverageValue (v2beta1)"
)


class ResourceMetric(SpecModel):
    """CPU or memory of the pods, all containers together."""

    model_config = rules(
        cel(
            "[has(self.target), has(self.targetAverageUtilization), has(self.targetAverageValue)]"
            ".exists_one(set, set)",
            _RESOURCE_FORMS,
        ),
        cel(
            "!has(self.target) || self.target.type != 'Value'",
            "must be Utilization or AverageValue",
            ".target.type",
        ),
    )

    name: Name
    """The resource: cpu or memory."""
    target: MetricTarget | None = None
    """Target in the form of autoscaling/v2: Utilization or AverageValue."""
    target_average_utilization: PositiveCount | None = None
    """Target per pod as a percentage of its request (v2beta1)."""
    target_average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        targets = (self.target, self.target_average_utilization, self.target_average_value)
        if sum(target is not None for target in targets) != 1:
            raise fault(_RESOURCE_FORMS)
        if self.target is not None and self.target.type == "Value":
            raise fault("must be Utilization or AverageValue", "target", "type")
        return self


class ContainerResourceMetric(ResourceMetric):
    """CPU or memory of one container of the pods."""

    container: Name
    """The container's name."""


class PodsMetric(SpecModel):
    """A custom metric of the pods, averaged over them."""

    model_config = rules(
        cel(
            "has(self.metric) ? has(self.target) && !has(self.metricName) && !has(self.targetAverageValue)"
            " && !has(self.selector)"
            " : has(self.metricName) && has(self.targetAverageValue) && !has(self.target)",
            _PODS_FORMS,
        ),
        cel(
            "!has(self.target) || self.target.type == 'AverageValue'", "must be AverageValue", ".target.type"
        ),
    )

    metric: MetricIdentifier | None = None
    """The metric (autoscaling/v2)."""
    target: MetricTarget | None = None
    """Target in the form of autoscaling/v2: AverageValue."""
    metric_name: Name | None = None
    """The metric's name (v2beta1)."""
    selector: LabelSelector | None = None
    """Narrows the metric down to series with these labels (v2beta1)."""
    target_average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        new = (self.metric, self.target)
        old = (self.metric_name, self.target_average_value, self.selector)
        if not (_whole(new, old) or (_whole(old[:2], new))):
            raise fault(_PODS_FORMS)
        if self.target is not None and self.target.type != "AverageValue":
            raise fault("must be AverageValue", "target", "type")
        return self


class ObjectMetric(SpecModel):
    """A custom metric that describes one object, such as an Ingress."""

    model_config = rules(
        cel(
            "has(self.metric)"
            " ? has(self.describedObject) && has(self.target.type)"
            " && !has(self.metricName) && !has(self.targetValue) && !has(self.averageValue)"
            " && !has(self.selector)"
            " : has(self.metricName) && !has(self.target.type) && !has(self.describedObject)"
            " && (has(self.averageValue) || has(self.targetValue))",
            _OBJECT_FORMS,
        ),
        cel(
            "has(self.averageValue) || !has(self.targetValue) || !(self.targetValue in [dyn('0'), dyn(0)])",
            "must be greater than 0",
            ".targetValue",
        ),
    )

    metric: MetricIdentifier | None = None
    """The metric (autoscaling/v2)."""
    described_object: DescribedObject | None = None
    """The object that the metric describes (autoscaling/v2)."""
    target: ObjectTarget
    """The target: Value or AverageValue (autoscaling/v2); or the object that the metric describes (v2beta1)."""
    metric_name: Name | None = None
    """The metric's name (v2beta1)."""
    selector: LabelSelector | None = None
    """Narrows the metric down to series with these labels (v2beta1)."""
    target_value: NonNegativeQuantity | None = None
    """Target of the metric as a whole (v2beta1); not used where `averageValue` is set."""
    average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        new = (self.metric, self.described_object, self.target.type)
        old = (self.metric_name, self.average_value or self.target_value, self.selector)
        if not (_whole(new, old) or _whole(old[:2], new)):
            raise fault(_OBJECT_FORMS)
        if self.average_value is None and self.target_value == "0":
            raise fault("must be greater than 0", "targetValue")
        return self


class ExternalMetric(SpecModel):
    """A metric that has nothing to do with the cluster's objects, such as the length of a queue."""

    model_config = rules(
        cel(
            "has(self.metric) ? has(self.target) && !has(self.metricName) && !has(self.metricSelector)"
            " && !has(self.targetValue) && !has(self.targetAverageValue)"
            " : has(self.metricName) && !has(self.target)"
            " && has(self.targetValue) != has(self.targetAverageValue)",
            _EXTERNAL_FORMS,
        ),
        cel(
            "!has(self.target) || self.target.type != 'Utilization'",
            "must be Value or AverageValue",
            ".target.type",
        ),
    )

    metric: MetricIdentifier | None = None
    """The metric (autoscaling/v2)."""
    target: MetricTarget | None = None
    """Target in the form of autoscaling/v2: Value or AverageValue."""
    metric_name: Name | None = None
    """The metric's name (v2beta1)."""
    metric_selector: LabelSelector | None = None
    """Narrows the metric down to series with these labels (v2beta1)."""
    target_value: PositiveQuantity | None = None
    """Target of the metric as a whole (v2beta1)."""
    target_average_value: PositiveQuantity | None = None
    """Target per pod (v2beta1)."""

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        new = (self.metric, self.target)
        values = (self.target_value, self.target_average_value)
        old = (self.metric_name, self.target_value or self.target_average_value, self.metric_selector)
        if not (_whole(new, old) or (_whole(old[:2], new) and None in values)):
            raise fault(_EXTERNAL_FORMS)
        if self.target is not None and self.target.type == "Utilization":
            raise fault("must be Value or AverageValue", "target", "type")
        return self


_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_SOURCE_MESSAGE = "must be set for metric type {}, and only then"


class MetricSpec(SpecModel):
    """One metric. `type` names the source, and exactly that source is set."""

    model_config = rules(
        *(
            cel(f"has(self.{source}) == (self.type == '{kind}')", _SOURCE_MESSAGE.format(kind), f".{source}")
            for kind, source in _SOURCES.items()
        )
    )

    type: Literal["Resource", "ContainerResource", "Pods", "Object", "External"]
    """Which of the sources this is."""
    resource: ResourceMetric | None = None
    """CPU or memory of the pods (type Resource)."""
    container_resource: ContainerResourceMetric | None = None
    """CPU or memory of one container (type ContainerResource)."""
    pods: PodsMetric | None = None
    """A custom metric of the pods (type Pods)."""
    object: ObjectMetric | None = None
    """A custom metric of another object (type Object)."""
    external: ExternalMetric | None = None
    """A metric from outside of the cluster (type External)."""

    @model_validator(mode="after")
    def _source_fits_type(self) -> Self:
        for kind, field in _SOURCES.items():
            if (getattr(self, to_snake(field)) is not None) != (kind == self.type):
                raise fault(_SOURCE_MESSAGE.format(kind), field)
        return self

    def to_v2(self) -> Wire:
        """The metric as autoscaling/v2 writes it."""
        field = _SOURCES[self.type]
        return {"type": self.type, field: _to_v2(self.to_wire()[field])}


def _whole(form: tuple[SpecModel | str | None, ...], other: tuple[SpecModel | str | None, ...]) -> bool:
    """Whether one form is complete and the other absent."""
    return None not in form and not any(part is not None for part in other)


_OLD_TARGETS = {
    "averageValue": "AverageValue",
    "targetAverageValue": "AverageValue",
    "targetAverageUtilization": "Utilization",
    "targetValue": "Value",
}
"""Fields of v2beta1 that hold a target, and its type; of two, the first counts."""


def _to_v2(source: Wire) -> Wire:
    """A source as autoscaling/v2 writes it: `metricName: queue, targetAverageValue: 5` is `metric: {name: queue},
    target: {type: AverageValue, averageValue: 5}`. One in the form of v2 is returned as it is."""
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
