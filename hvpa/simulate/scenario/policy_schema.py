"""The form of a scenario's policies: the ways to scale that are compared."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from hvpa.api.hvpa.templates import HpaTemplateSpec, VpaTemplateSpec
from hvpa.api.schema.base import SpecModel, fault
from hvpa.api.schema.fields import NoNulls
from hvpa.simulate.scenario.fields import Amounts, Label, PlainText, Replicas


class HpaAlone(HpaTemplateSpec):
    """Spec of an HPA (autoscaling/v2) that scales the workload itself."""

    @model_validator(mode="after")
    def _has_a_maximum(self) -> Self:
        if self.max_replicas == 0:
            raise fault("is required, and greater than 0", "maxReplicas")
        return self


def _mode(value: object) -> object:
    if value not in ("Recreate", "InPlaceOrRecreate", "Off"):
        raise ValueError("must be Recreate, InPlaceOrRecreate or Off: what others do is not simulated")
    return value


class VpaUpdates(SpecModel):
    """What the VPA's updater does."""

    update_mode: Annotated[Literal["Recreate", "InPlaceOrRecreate", "Off"], BeforeValidator(_mode)] = (
        "Recreate"
    )


class VpaAlone(VpaTemplateSpec):
    """Spec of a VPA (autoscaling.k8s.io/v1) that acts on the workload itself."""

    update_policy: VpaUpdates = VpaUpdates()

    def to_wire(self) -> dict[str, object]:
        """As autoscaling.k8s.io/v1 writes it."""
        wire: dict[str, object] = {"updatePolicy": {"updateMode": self.update_policy.update_mode}}
        if self.resource_policy is not None:
            wire["resourcePolicy"] = self.resource_policy.to_wire()
        return wire


class FixedContainer(SpecModel):
    """Requests and limits in place of those that the workload begins with."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class FixedSize(SpecModel):
    """A size that stays; the workload's own where nothing is set."""

    replicas: Replicas | None = None
    containers: Annotated[dict[Label, FixedContainer], NoNulls] = Field(default_factory=dict)


def _manifest(value: object) -> object:
    if not isinstance(value, dict) and (not isinstance(value, str) or not value):
        raise ValueError("must be the name of a file, or a manifest")
    return value


class PolicyModel(SpecModel):
    """One way to scale."""

    name: Annotated[PlainText, Field(min_length=1, max_length=100)]
    hvpa: Annotated[Any, BeforeValidator(_manifest)] = None
    hpa: HpaAlone | None = None
    vpa: VpaAlone | None = None
    fixed: FixedSize | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = (self.hvpa is not None, self.hpa is not None or self.vpa is not None, self.fixed is not None)
        if sum(kinds) != 1:
            raise fault("needs exactly one of hvpa, hpa or vpa (or both of these), and fixed")
        return self
