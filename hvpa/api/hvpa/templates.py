"""Templates of the HorizontalPodAutoscaler and the VerticalPodAutoscaler that the operator owns."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

import msgspec
from pydantic import AfterValidator, Field, WithJsonSchema, field_validator
from pydantic.alias_generators import to_snake

from hvpa.api.hvpa.metrics import MetricSpec, Wire
from hvpa.api.hvpa.selector import TemplateMeta
from hvpa.api.schema.base import OpenModel, Rule, SpecModel, dotted_path, fault
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
"""Limits of autoscaling/v2 (k8s.io/kubernetes/pkg/apis/autoscaling/validation)."""
MAX_RESOURCES: Final = 10
"""Maximum number of resources in a bound of a container policy. Only CPU and memory have an effect."""


PASSED_ON_BYTES: Final = 16_384
"""Maximum size, as JSON with their names, of the fields of a template that HVPA does not know."""
_Owned = Annotated[Any, WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True})]
"""A field that HVPA sets itself. The template must not set it: `_owned`."""
M = TypeVar("M", bound=OpenModel)


def _owned(name: str, by: str = "HVPA sets it") -> Rule:
    """Returns the rule that the template leaves a field alone."""
    return Rule(
        f"!has(self.{name})",
        lambda model: getattr(model, to_snake(name)) is None,
        f"must not be set: {by}",
        f".{name}",
    )


def _is_small(template: M) -> M:
    fields = template.passed_on()
    sent = [{path[-1]: value} for path, value in fields.items()]
    if sent and (size := len(msgspec.json.encode(sent))) > PASSED_ON_BYTES:
        names = dotted_path(next(iter(fields)))
        why = f"fields that HVPA does not know ({names}, …) may have {PASSED_ON_BYTES} bytes as JSON"
        raise fault(f"{why}; they have {size}")
    return template


# --- HorizontalPodAutoscaler --------------------------------------------------------------------------------
class ScalingPolicy(SpecModel):
    """A rate limit for the HorizontalPodAutoscaler."""

    type: Literal["Pods", "Percent"]
    """Unit of `value`: Pods, or Percent of the current number of replicas."""
    value: PositiveCount
    """Largest change within the period."""
    period_seconds: Annotated[PositiveCount, Field(le=LONGEST_PERIOD_SECONDS)]
    """Length of the period in seconds."""


class ScalingRules(OpenModel):
    """How the HorizontalPodAutoscaler scales in one direction."""

    stabilization_window_seconds: Annotated[Count, Field(le=LONGEST_WINDOW_SECONDS)] | None = None
    """Length of the stabilization window in seconds: how far back the HorizontalPodAutoscaler considers its
    recommendations."""
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    """Which policy applies if there are several. Disabled turns off scaling in this direction."""
    policies: Annotated[tuple[ScalingPolicy, ...], Field(max_length=LIST_LENGTH)] = ()
    """Rate limits."""
    tolerance: NonNegativeQuantity | None = None
    """How far the metric may be off its target before the HorizontalPodAutoscaler scales, as a fraction: 0.1 is 10
    percent."""


class Behavior(OpenModel):
    """How the HorizontalPodAutoscaler scales, as in autoscaling/v2. HVPA applies its own limits in addition."""

    scale_up: ScalingRules | None = None
    """Scaling out."""
    scale_down: ScalingRules | None = None
    """Scaling in."""


class HpaTemplateSpec(OpenModel):
    """Spec of the HorizontalPodAutoscaler. The operator sets its target. Other fields are passed on to the
    HorizontalPodAutoscaler if the API server knows them."""

    RULES = (_owned("scaleTargetRef"),)

    min_replicas: Count | None = None
    """Minimum number of replicas. Default: 1. If HVPA creates the HorizontalPodAutoscaler, the value must be at most
    maxReplicas, and 0 needs a metric of type Object or External, and Kubernetes 1.37."""
    max_replicas: Count = Field(default=0, json_schema_extra={"default": None})
    """Maximum number of replicas. Required if HVPA creates the HorizontalPodAutoscaler. 0 counts as missing."""
    metrics: Annotated[tuple[MetricSpec, ...], Field(max_length=LIST_LENGTH)] = ()
    """Metrics to scale by. The metric that requires the most replicas wins. Default: CPU utilization of 80 percent."""
    behavior: Behavior | None = None
    """Stabilization and rate limits of the HorizontalPodAutoscaler. If missing, it has neither: this Hvpa has its
    own."""
    scale_target_ref: _Owned = None
    """Must not be set: HVPA sets it."""

    @property
    def is_in_order(self) -> bool:
        """Whether minReplicas is at most maxReplicas."""
        return (self.min_replicas or 0) <= self.max_replicas

    @property
    def can_leave_zero(self) -> bool:
        """Whether minReplicas is not 0, or a metric can be measured without pods."""
        return self.min_replicas != 0 or any(metric.type in ("Object", "External") for metric in self.metrics)

    def to_v2(self) -> Wire:
        """Returns the template as an autoscaling/v2 spec, without the fields that it does not set."""
        wire: Wire = {"maxReplicas": self.max_replicas} | self.to_wire()
        if self.metrics:
            wire["metrics"] = [metric.to_v2() for metric in self.metrics]
        return wire


class HpaTemplate(SpecModel):
    """Template of the HorizontalPodAutoscaler that HVPA creates."""

    metadata: TemplateMeta = TemplateMeta()
    """Labels and annotations."""
    spec: Annotated[HpaTemplateSpec, AfterValidator(_is_small)] | None = None
    """Bounds, metrics and behavior."""

    @field_validator("spec", mode="after")
    @classmethod
    def _without_bounds_there_is_none(cls, spec: HpaTemplateSpec | None) -> HpaTemplateSpec | None:
        """Drops a spec with `maxReplicas: 0`, which gardener's tools wrote for a template that was never filled in."""
        return spec if spec is not None and spec.max_replicas > 0 else None


# --- VerticalPodAutoscaler ----------------------------------------------------------------------------------
_BOOSTS: Final = "a VerticalPodAutoscaler applies it even with updateMode Off, and HVPA has spec.startupBoost"
_Amounts = Annotated[dict[Name, PlainQuantity], Field(max_length=MAX_RESOURCES), NoNulls]


class ContainerPolicy(OpenModel):
    """Bounds of the recommendation for a container. Other fields are passed on to the VerticalPodAutoscaler if the API
    server knows them."""

    RULES = (
        _owned("startupBoost", _BOOSTS),
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
    """The container's name, or * for all containers without a policy of their own."""
    mode: Literal["Auto", "Off"] | None = None
    """Off: no recommendation for this container. Default: Auto."""
    min_allowed: _Amounts = Field(default_factory=dict)
    """Smallest request by resource."""
    max_allowed: _Amounts = Field(default_factory=dict)
    """Largest request by resource."""
    controlled_resources: Annotated[tuple[Resource, ...], Field(max_length=MAX_RESOURCES)] | None = None
    """Resources to scale. Default: CPU and memory."""
    controlled_values: Literal["RequestsAndLimits", "RequestsOnly"] | None = None
    """Whether limits change with the requests. Default: RequestsAndLimits."""
    startup_boost: _Owned = None
    """Must not be set: use spec.startupBoost."""


class ResourcePolicy(OpenModel):
    """Bounds of the recommendations (`resourcePolicy` of a VerticalPodAutoscaler)."""

    container_policies: Annotated[tuple[ContainerPolicy, ...], Field(max_length=LIST_LENGTH)] = ()
    """Policies by container."""

    def to_wire(self) -> Wire:
        """Returns the policy in the form of autoscaling.k8s.io/v1, with only the fields that were set."""
        policies = [
            policy.model_dump(by_alias=True, exclude_unset=True, mode="json")
            for policy in self.container_policies
        ]
        return {**self.others, "containerPolicies": policies}


class VpaTemplateSpec(OpenModel):
    """Spec of the VerticalPodAutoscaler. The operator sets its target and its update mode. Other fields, such as
    recommenders, are passed on to the VerticalPodAutoscaler if the API server knows them."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        _owned("targetRef"),
        _owned(
            "updatePolicy",
            "HVPA sets updateMode Off, and a VerticalPodAutoscaler that is Off has no other use",
        ),
        _owned("startupBoost", _BOOSTS),
    )

    resource_policy: ResourcePolicy | None = None
    """Bounds of the recommendations."""
    target_ref: _Owned = None
    """Must not be set: HVPA sets it."""
    update_policy: _Owned = None
    """Must not be set: HVPA sets updateMode Off."""
    startup_boost: _Owned = None
    """Must not be set: use spec.startupBoost."""


class VpaTemplate(SpecModel):
    """Template of the VerticalPodAutoscaler that HVPA creates."""

    metadata: TemplateMeta = TemplateMeta()
    """Labels and annotations."""
    spec: Annotated[VpaTemplateSpec, AfterValidator(_is_small)] | None = None
    """Resource policy, and other fields of the VerticalPodAutoscaler."""
