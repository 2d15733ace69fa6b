"""The path of one Hvpa: from its spec, its bounds and where it began, to what `hvpa.core.path.path` answers from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.trajectory import ResourceMargins, Trajectory
from hvpa.api.values.quantity import Resource, parse_quantity
from hvpa.core.path.build import ResourceInterval, path_of_intervals, path_of_weights, weight_intervals
from hvpa.core.path.curve import NONE, Margin, SizeBounds
from hvpa.core.path.path import DEFAULT_OVERLAP, Path, ResourceKey
from hvpa.core.values.arithmetic import UNIT, ceil_div
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.containers import RESOURCES, ContainerResource

_NOTHING = Trajectory()


def trajectory_of(spec: HvpaSpec) -> Trajectory:
    """What the spec says of the path, with all defaults."""
    return spec.trajectory or _NOTHING


def overlaps(spec: HvpaSpec) -> dict[Resource, Margin]:
    """How far a boundary is lowered for scaling in, and how far off a size must be to be changed, by resource."""
    margins = trajectory_of(spec).overlap
    return {resource: _margin(_params(margins, resource), DEFAULT_OVERLAP) for resource in RESOURCES}


def reserves(spec: HvpaSpec, first: Mapping[ResourceKey, int]) -> dict[ResourceKey, Margin]:
    """What of each request is base usage. Containers share a pod's `value` by their requests at first sight; none is
    named where there is none."""
    margins = trajectory_of(spec).base_resources_per_replica
    found: dict[ResourceKey, Margin] = {}
    for key in first:
        margin = _margin(_params(margins, key.resource), NONE)
        if margin != NONE:
            found[key] = Margin(ceil_div(margin.value * first[key], _total(first, key)), margin.percentage)
    return found


def path_of(
    spec: HvpaSpec,
    items: Sequence[ContainerResource],
    first: Mapping[ResourceKey, int],
    counts: Bounds,
    vertical_only: bool,
) -> Path:
    """The path on which these container resources are scaled. `first` are their requests at first sight."""
    reserve = reserves(spec, first)
    size_bounds_of = tuple(
        (item.key, _size_bounds(item, first[item.key], reserve.get(item.key, NONE))) for item in items
    )
    intervals = trajectory_of(spec).intervals
    if not intervals:
        return path_of_weights(weight_intervals(spec, vertical_only), counts, size_bounds_of)
    return path_of_intervals(
        counts, tuple((key, size_bounds, _written(spec, key, first)) for key, size_bounds in size_bounds_of)
    )


def _written(
    spec: HvpaSpec, key: ResourceKey, first: Mapping[ResourceKey, int]
) -> tuple[ResourceInterval, ...]:
    """The intervals of a container resource's resource: the pod's maxima, shared by containers as their requests at
    first sight."""
    found: list[ResourceInterval] = []
    for one in trajectory_of(spec).intervals:
        written = one.max_resources.quantity(key.resource)
        if written is None:
            return ()
        amount = parse_quantity(written) * (1000 if key.resource == "cpu" else 1)
        share = amount * first[key] / _total(first, key)
        size = max(1, -(-share.numerator // share.denominator))
        found.append(ResourceInterval(one.max_replicas, size, one.extrapolation == "horizontalOnly"))
    return tuple(found)


def _size_bounds(item: ContainerResource, first: int, reserve: Margin) -> SizeBounds:
    bounds = item.bounds
    upper = bounds.upper
    if bounds.fixed_limit is not None:
        upper = bounds.fixed_limit if upper is None else min(upper, bounds.fixed_limit)
    return SizeBounds(
        base=bounds.lower if bounds.lower is not None else first,
        lower=bounds.lower or 0,
        upper=upper,
        unit=UNIT[item.resource],
        reserve=reserve,
    )


def _total(first: Mapping[ResourceKey, int], of: ResourceKey) -> int:
    """What a pod requested of this container resource's resource at first sight, all containers together."""
    return max(1, sum(size for key, size in first.items() if key.resource == of.resource))


def _params(margins: ResourceMargins, resource: Resource) -> CpuParams | MemoryParams:
    return margins.cpu if resource == "cpu" else margins.memory


def _margin(params: CpuParams | MemoryParams, otherwise: Margin) -> Margin:
    if params.value is None and params.percentage is None:
        return otherwise
    return Margin(params.value or 0, params.percentage or 0)
