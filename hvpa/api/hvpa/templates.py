"""Templates of the HorizontalPodAutoscaler and the VerticalPodAutoscaler that the operator owns."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from hvpa.api.hvpa.metrics import MetricSpec, Wire
from hvpa.api.hvpa.selector import TemplateMeta
from hvpa.api.schema.base import Rule, SpecModel
from hvpa.api.schema.fields import (
    LIST_LENGTH,
    ContainerChoice,
    Count,
    Name,
    NonNegativeQuantity,
    NoNulls,
    PlainQuantity,
    PositiveCount,
    cel_at_most,
)
from hvpa.api.values.quantity import Resource, parse_quantity

LONGEST_WINDOW_SECONDS: Final = 3600
LONGEST_PERIOD_SECONDS: Final = 1800
"""Limits that autoscaling/v2 sets (k8s.io/kubernetes/pkg/apis/autoscaling/validation)."""
MAX_RESOURCES: Final = 10
"""Most resources in one bound of a container policy; there are two that count."""


# --- HorizontalPodAutoscaler --------------------------------------------------------------------------------
class ScalingPolicy(SpecModel):
    """A rate that the HorizontalPodAutoscaler keeps to."""

    type: Literal["Pods", "Percent"]
    """Whether `value` counts pods or percent of the present count."""
    value: PositiveCount
    """How much may change within the period."""
    period_seconds: Annotated[PositiveCount, Field(le=LONGEST_PERIOD_SECONDS)]
    """Length of the period in seconds."""


class ScalingRules(SpecModel):
    """How the HorizontalPodAutoscaler scales in one direction."""

    stabilization_window_seconds: Annotated[Count, Field(le=LONGEST_WINDOW_SECONDS)] | None = None
    """How far back recommendations are remembered, in seconds."""
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    """Which policy counts where there are several; Disabled switches the direction off."""
    policies: Annotated[tuple[ScalingPolicy, ...], Field(max_length=LIST_LENGTH)] = ()
    """Rates to keep to."""
    tolerance: NonNegativeQuantity | None = None
    """How far the metric may be off its target (as a fraction: 0.1 is 10 percent) without any scaling."""


class Behavior(SpecModel):
    """How the HorizontalPodAutoscaler scales, as in autoscaling/v2. Where it is set, it comes on top of what
    this Hvpa holds back."""

    scale_up: ScalingRules | None = None
    """Scaling out."""
    scale_down: ScalingRules | None = None
    """Scaling in."""


class HpaTemplateSpec(SpecModel):
    """Spec of the HorizontalPodAutoscaler; its target is set by the operator."""

    min_replicas: Count | None = None
    """Smallest number of replicas; 1 where it is missing. Greater than 0, and not greater than maxReplicas, where the
    HorizontalPodAutoscaler is deployed."""
    max_replicas: Count = Field(default=0, json_schema_extra={"default": None})
    """Largest number of replicas. Required where the HorizontalPodAutoscaler is deployed; 0 counts as missing."""
    metrics: Annotated[tuple[MetricSpec, ...], Field(max_length=LIST_LENGTH)] = ()
    """What to scale by; the metric that asks for the most replicas wins. CPU at 80 percent where none is given."""
    behavior: Behavior | None = None
    """How to scale. Where it is missing the HorizontalPodAutoscaler does not hold back at all: this Hvpa does."""

    @property
    def is_in_order(self) -> bool:
        """Whether minReplicas is not greater than maxReplicas."""
        return (self.min_replicas or 0) <= self.max_replicas

    def to_v2(self) -> Wire:
        """The parts of an autoscaling/v2 spec that the template holds; what it leaves open is left out."""
        wire: Wire = {"maxReplicas": self.max_replicas} | self.to_wire()
        if self.metrics:
            wire["metrics"] = [metric.to_v2() for metric in self.metrics]
        return wire


class HpaTemplate(SpecModel):
    """The HorizontalPodAutoscaler that is deployed."""

    metadata: TemplateMeta = TemplateMeta()
    """Its labels and annotations."""
    spec: HpaTemplateSpec | None = None
    """Its bounds, metrics and behavior."""

    @field_validator("spec", mode="after")
    @classmethod
    def _without_bounds_there_is_none(cls, spec: HpaTemplateSpec | None) -> HpaTemplateSpec | None:
        """gardener's tools wrote `maxReplicas: 0` for a template that was never filled in."""
        return spec if spec is not None and spec.max_replicas > 0 else None


# --- VerticalPodAutoscaler ----------------------------------------------------------------------------------
_Amounts = Annotated[dict[Name, PlainQuantity], Field(max_length=MAX_RESOURCES), NoNulls]


class ContainerPolicy(SpecModel):
    """Bounds of the recommendation for one container."""

    RULES = (
        Rule(
            "!has(self.minAllowed) || !has(self.maxAllowed) || self.minAllowed.all(r, !(r in self.maxAllowed)"
            f" || {cel_at_most('self.minAllowed[r]', 'self.maxAllowed[r]')})",
            lambda policy: all(
                parse_quantity(policy.min_allowed[resource]) <= parse_quantity(policy.max_allowed[resource])
                for resource in policy.min_allowed.keys() & policy.max_allowed.keys()
            ),
            "must not be greater than maxAllowed",
            ".minAllowed",
        ),
    )

    container_name: ContainerChoice | None = None
    """The container's name, or * for all that have no policy of their own."""
    mode: Literal["Auto", "Off"] | None = None
    """Off: nothing is recommended for this container. Auto where it is missing."""
    min_allowed: _Amounts = Field(default_factory=dict)
    """Smallest request by resource."""
    max_allowed: _Amounts = Field(default_factory=dict)
    """Largest request by resource."""
    controlled_resources: Annotated[tuple[Resource, ...], Field(max_length=MAX_RESOURCES)] | None = None
    """Resources that are scaled; both CPU and memory where it is missing."""
    controlled_values: Literal["RequestsAndLimits", "RequestsOnly"] | None = None
    """Whether limits follow the requests. RequestsAndLimits where it is missing."""


class ResourcePolicy(SpecModel):
    """Bounds of the recommendations (`resourcePolicy` of a VerticalPodAutoscaler)."""

    container_policies: Annotated[tuple[ContainerPolicy, ...], Field(max_length=LIST_LENGTH)] = ()
    """Policies by container."""

    def to_wire(self) -> Wire:
        """As autoscaling.k8s.io/v1 writes it: only what was set."""
        policies = [
            policy.model_dump(by_alias=True, exclude_unset=True, mode="json")
            for policy in self.container_policies
        ]
        return {"containerPolicies": policies}


class VpaTemplateSpec(SpecModel):
    """Spec of the VerticalPodAutoscaler; its target and its update mode are set by the operator."""

    resource_policy: ResourcePolicy | None = None
    """Bounds of the recommendations."""


class VpaTemplate(SpecModel):
    """The VerticalPodAutoscaler that is deployed."""

    metadata: TemplateMeta = TemplateMeta()
    """Its labels and annotations."""
    spec: VpaTemplateSpec | None = None
    """Its resource policy."""
