"""What a metric is called, what it describes, and what its target is, in the words of autoscaling/v2."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import model_validator
from pydantic.alias_generators import to_snake

from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.schema.base import SpecModel, cel, fault, rules
from hvpa.api.schema.fields import Name, PositiveCount, PositiveQuantity, Text

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
