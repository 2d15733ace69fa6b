"""The fields of `spec.trajectory`: explicit intervals of the path, and its margins (DESIGN 5.4, 5.5).

`hvpa.core.path.path` interprets the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.schema.base import Rule, SpecModel, keeps
from hvpa.api.schema.fields import PositiveCount, PositiveQuantity, cel_at_most
from hvpa.api.values.quantity import RESOURCES, Resource, parse_cpu, parse_memory, parse_quantity

MOST_INTERVALS: Final = 30
"""Maximum number of intervals. The cost of a decision grows with intervals times containers and must stay below 50 ms
of CPU (`python -m benchmarks hostile`)."""
_MOST_PERCENT: Final = 90
"""Upper limit: demand can't fall below a margin of 100 percent, and base usage is at most 0.9 of a pod's size (DESIGN
5.5)."""


# --- margins ------------------------------------------------------------------------------------------------
_BOUNDED: Final = keeps(
    Rule(
        f"!has(self.percentage) || self.percentage <= {_MOST_PERCENT}",
        lambda params: (params.percentage or 0) <= _MOST_PERCENT,
        f"must not be greater than {_MOST_PERCENT}",
        ".percentage",
    )
)


class ResourceMargins(SpecModel):
    """A part of each resource: the larger of a fixed amount and a percentage if both are set."""

    cpu: Annotated[CpuParams, *_BOUNDED] = CpuParams()
    """CPU."""
    memory: Annotated[MemoryParams, *_BOUNDED] = MemoryParams()
    """Memory."""


# --- intervals ----------------------------------------------------------------------------------------------
class MaxResources(SpecModel):
    """Largest requests of one pod at the end of an interval: `MaxResources(cpu="500m", memory="2Gi")`."""

    # In a manifest `cpu` is the quantity; the property of that name returns millicores.
    model_config = ConfigDict(populate_by_name=False)
    RULES = (
        Rule(
            "has(self.cpu) || has(self.memory)",
            lambda size: size.cpu_quantity is not None or size.memory_quantity is not None,
            "must name at least one resource: cpu or memory",
        ),
    )

    cpu_quantity: PositiveQuantity | None = Field(default=None, alias="cpu")
    """CPU as a quantity."""
    memory_quantity: PositiveQuantity | None = Field(default=None, alias="memory")
    """Memory as a quantity."""

    @cached_property
    def cpu(self) -> int | None:
        """Returns millicores, rounded up."""
        return None if self.cpu_quantity is None else parse_cpu(self.cpu_quantity)

    @cached_property
    def memory(self) -> int | None:
        """Returns bytes, rounded up."""
        return None if self.memory_quantity is None else parse_memory(self.memory_quantity)

    def quantity(self, resource: Resource) -> str | None:
        """Returns the resource's quantity as written."""
        return self.cpu_quantity if resource == "cpu" else self.memory_quantity


class TrajectoryInterval(SpecModel):
    """A stretch of the path, from the end of the previous interval (or from 0) to its own end."""

    max_replicas: PositiveCount
    """Number of replicas at the end of the interval."""
    max_resources: MaxResources
    """Largest requests of one pod at the end of the interval, for all containers together."""
    extrapolation: Literal["linear", "horizontalOnly"] = "linear"
    """How the pod size changes within the interval. linear: each replica adds the same amount to the total.
    horizontalOnly: every pod has the size of the interval's end, from the interval's first replica on."""


def _sizes(intervals: Sequence[TrajectoryInterval], resource: Resource) -> list[Fraction]:
    """Returns the largest requests of a resource, for the intervals that name it."""
    named = (interval.max_resources.quantity(resource) for interval in intervals)
    return [parse_quantity(quantity) for quantity in named if quantity is not None]


def _all_or_none_named(resource: Resource) -> str:
    named = f"has(i.maxResources.{resource})"
    return f"(self.all(i, {named}) || !self.exists(i, {named}))"


def _not_falling(resource: Resource) -> Rule:
    """Returns the rule that an interval with more replicas has no less of the resource than an interval with fewer."""

    def holds(intervals: Sequence[TrajectoryInterval]) -> bool:
        sizes = _sizes(intervals, resource)
        return sizes == sorted(sizes)

    first, second = (f"{interval}.maxResources.{resource}" for interval in "ij")
    return Rule(
        f"self.all(i, !has({first}) || self.all(j, j.maxReplicas <= i.maxReplicas || !has({second})"
        f" || {cel_at_most(first, second)}))",
        holds,
        f"must not fall in maxResources.{resource} from one interval to the next",
    )


_INTERVAL_RULES: Final = (
    Rule(
        "self.map(i, i.maxReplicas).isSorted()"
        " && self.all(i, self.exists_one(j, j.maxReplicas == i.maxReplicas))",
        lambda intervals: all(
            interval.max_replicas < following.max_replicas for interval, following in pairwise(intervals)
        ),
        "must rise in maxReplicas from each interval to the next",
    ),
    Rule(
        " && ".join(map(_all_or_none_named, RESOURCES)),
        lambda intervals: all(
            len(_sizes(intervals, resource)) in (0, len(intervals)) for resource in RESOURCES
        ),
        "must all name the same resources in maxResources",
    ),
    *map(_not_falling, RESOURCES),
)


class Trajectory(SpecModel):
    """The path along which HVPA scales both axes together."""

    intervals: Annotated[
        tuple[TrajectoryInterval, ...], Field(max_length=MOST_INTERVALS), *keeps(*_INTERVAL_RULES)
    ] = ()
    """Explicit intervals of the path, in order of maxReplicas. If missing, weightBasedScalingIntervals define the
    path."""
    overlap: ResourceMargins = ResourceMargins()
    """How far demand must be below the boundary before HVPA removes a replica. Default: 10 percent of the boundary. A
    percentage is at most 90."""
    base_resources_per_replica: ResourceMargins = ResourceMargins()
    """Usage of a pod before it does any work. A percentage refers to the pod's request and is at most 90. Default:
    nothing."""
