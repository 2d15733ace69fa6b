"""Joint scaling: the path of an Hvpa, its margins, and the form in which a user writes it out (DESIGN 5.4, 5.5).

What belongs here: what stands in `spec.trajectory`. What a path means is `hvpa.core.path.path`'s to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.schema.base import SpecModel, cel, fault, rules
from hvpa.api.schema.fields import LIST_LENGTH, PositiveCount, PositiveQuantity, cel_at_most
from hvpa.api.values.quantity import Resource, parse_cpu, parse_memory, parse_quantity

_RESOURCES: Final[tuple[Resource, ...]] = ("cpu", "memory")
_MOST_PERCENT: Final = 90
"""A margin of 100 percent is never cleared, and base usage is at most 0.9 of a pod's size (DESIGN 5.5)."""

_TOO_MUCH = f"must not be greater than {_MOST_PERCENT}"
_NO_RESOURCE = "must name at least one resource: cpu or memory"
_NOT_RISING = "must rise in maxReplicas from each interval to the next"
_NOT_THE_SAME = "must all name the same resources in maxResources"


def _fallen(resource: Resource) -> str:
    return f"must not fall in maxResources.{resource} from one interval to the next"


def _same_rule(resource: Resource) -> str:
    named = f"has(i.maxResources.{resource})"
    return f"(self.all(i, {named}) || !self.exists(i, {named}))"


def _not_falling_rule(resource: Resource) -> str:
    """Of each two intervals: the one with more replicas has no less of the resource."""
    first, second = (f"{one}.maxResources.{resource}" for one in "ij")
    return (
        f"self.all(i, !has({first}) || self.all(j, j.maxReplicas <= i.maxReplicas || !has({second})"
        f" || {cel_at_most(first, second)}))"
    )


_INTERVAL_RULES: Final = [
    cel(
        "self.map(i, i.maxReplicas).isSorted()"
        " && self.all(i, self.exists_one(j, j.maxReplicas == i.maxReplicas))",
        _NOT_RISING,
    ),
    cel(" && ".join(_same_rule(resource) for resource in _RESOURCES), _NOT_THE_SAME),
    *(cel(_not_falling_rule(resource), _fallen(resource)) for resource in _RESOURCES),
]
"""What the API server checks of the list as a whole; `_check_intervals` is the same in Python."""


# --- margins ------------------------------------------------------------------------------------------------
_Params = TypeVar("_Params", CpuParams, MemoryParams)


def _bounded(params: _Params) -> _Params:
    if params.percentage is not None and params.percentage > _MOST_PERCENT:
        raise fault(_TOO_MUCH, "percentage")
    return params


_BOUNDED = (
    AfterValidator(_bounded),
    Field(
        json_schema_extra={
            "x-kubernetes-validations": [
                cel(f"!has(self.percentage) || self.percentage <= {_MOST_PERCENT}", _TOO_MUCH, ".percentage")
            ]
        }
    ),
)


class ResourceMargins(SpecModel):
    """A part of each resource: the larger of a fixed amount and a percentage, where both are set."""

    cpu: Annotated[CpuParams, *_BOUNDED] = CpuParams()
    """CPU."""
    memory: Annotated[MemoryParams, *_BOUNDED] = MemoryParams()
    """Memory."""


# --- intervals ----------------------------------------------------------------------------------------------
class MaxResources(SpecModel):
    """The largest requests of one pod at the end of an interval: `MaxResources(cpu="500m", memory="2Gi")`."""

    model_config = ConfigDict(
        populate_by_name=False,  # `cpu` is the amount as a user writes it, and the property is what it comes to
        **rules(cel("has(self.cpu) || has(self.memory)", _NO_RESOURCE)),
    )

    cpu_quantity: PositiveQuantity | None = Field(default=None, alias="cpu")
    """CPU, as a quantity."""
    memory_quantity: PositiveQuantity | None = Field(default=None, alias="memory")
    """Memory, as a quantity."""

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.cpu_quantity is None and self.memory_quantity is None:
            raise fault(_NO_RESOURCE)
        return self

    @cached_property
    def cpu(self) -> int | None:
        """Millicores, rounded up."""
        return None if self.cpu_quantity is None else parse_cpu(self.cpu_quantity)

    @cached_property
    def memory(self) -> int | None:
        """Bytes, rounded up."""
        return None if self.memory_quantity is None else parse_memory(self.memory_quantity)

    def quantity(self, resource: Resource) -> str | None:
        """The resource's quantity as it was written."""
        return self.cpu_quantity if resource == "cpu" else self.memory_quantity


class TrajectoryInterval(SpecModel):
    """A stretch of the path, from the end of the one before it (or from nothing) to its own."""

    max_replicas: PositiveCount
    """Number of replicas at its end."""
    max_resources: MaxResources
    """Largest requests of one pod at its end, all containers together."""
    extrapolation: Literal["linear", "horizontalOnly"] = "linear"
    """How it gets there. linear: each replica adds the same amount to the total; horizontalOnly: each pod is
    as large as at the end, from the first one on."""


class Trajectory(SpecModel):
    """The path that both axes are scaled along together."""

    intervals: Annotated[
        tuple[TrajectoryInterval, ...],
        Field(max_length=LIST_LENGTH, json_schema_extra={"x-kubernetes-validations": _INTERVAL_RULES}),
    ] = ()
    """The path written out, in order of maxReplicas. Where it is missing, weightBasedScalingIntervals draw it."""
    overlap: ResourceMargins = ResourceMargins()
    """How far below the boundary demand must be before a replica is taken away. 10 percent of the boundary where
    neither is set; a percentage is 90 at most."""
    base_resources_per_replica: ResourceMargins = ResourceMargins()
    """What each pod uses before it does any work; a percentage is of the pod's request, 90 at most. Nothing where
    neither is set."""

    @field_validator("intervals", mode="after")
    @classmethod
    def _intervals_in_order(cls, intervals: tuple[TrajectoryInterval, ...]) -> tuple[TrajectoryInterval, ...]:
        _check_intervals(intervals)
        return intervals


def _check_intervals(intervals: Sequence[TrajectoryInterval]) -> None:
    """Raise the `fault` of a list that does not rise, or whose intervals do not name the same resources."""
    if any(before.max_replicas >= after.max_replicas for before, after in pairwise(intervals)):
        raise fault(_NOT_RISING)
    for resource in _RESOURCES:
        named = [one.max_resources.quantity(resource) for one in intervals]
        sizes = [parse_quantity(quantity) for quantity in named if quantity is not None]
        if 0 < len(sizes) < len(named):
            raise fault(_NOT_THE_SAME)
        if sizes != sorted(sizes):
            raise fault(_fallen(resource))
