"""Builds the path of an Hvpa (`hvpa.core.path.path`) from its spec, its bounds and its first requests (the requests
when HVPA first saw the target)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.trajectory import Trajectory, TrajectoryInterval
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.path.build import ResourceInterval, path_of_intervals, path_of_weights
from hvpa.core.path.curve import NONE, Margin, SizeBounds
from hvpa.core.path.path import DEFAULT_OVERLAP, Path, ResourceKey
from hvpa.core.values.arithmetic import UNIT, ceil_div
from hvpa.core.values.tuning import LEAST_SIZE
from hvpa.core.values.weight import Bounds, weight_intervals
from hvpa.core.workload.containers import ContainerResource

_NOTHING = Trajectory()


def trajectory_of(spec: HvpaSpec) -> Trajectory:
    """Return the spec's trajectory with all defaults."""
    return spec.trajectory or _NOTHING


def overlaps_by_resource(spec: HvpaSpec) -> dict[Resource, Margin]:
    """Return the overlap by resource: how far a boundary is lowered for scaling in, and by how much a size must differ
    to be changed."""
    margins = trajectory_of(spec).overlap
    return {resource: _margin(getattr(margins, resource), DEFAULT_OVERLAP) for resource in RESOURCES}


def reserves(spec: HvpaSpec, first: Mapping[ResourceKey, int]) -> dict[ResourceKey, Margin]:
    """Return the base usage of each request; a container resource without base usage is missing. Containers share a
    pod's `value` in proportion to their first requests."""
    margins, totals = trajectory_of(spec).base_resources_per_replica, _totals(first)
    margin_by_key: dict[ResourceKey, Margin] = {}
    for key, size in first.items():
        margin = _margin(getattr(margins, key.resource), NONE)
        if margin != NONE:
            share = _share(margin.value, size, totals[key.resource])
            margin_by_key[key] = Margin(share, margin.percentage)
    return margin_by_key


def path_of(
    spec: HvpaSpec,
    items: Sequence[ContainerResource],
    first: Mapping[ResourceKey, int],
    counts: Bounds,
    vertical_only: bool,
) -> Path:
    """Return the path of these container resources. `first`: their first requests."""
    reserve, intervals = reserves(spec, first), trajectory_of(spec).intervals
    bounds_of = tuple((item.key, _size_bounds(item, first[item.key], intervals, reserve)) for item in items)
    if not intervals:
        return path_of_weights(weight_intervals(spec, vertical_only), counts, bounds_of)
    totals = _totals(first)
    return path_of_intervals(
        counts,
        tuple(
            (key, bounds, _resource_intervals(spec, key, first[key], totals[key.resource]))
            for key, bounds in bounds_of
        ),
    )


def _resource_intervals(
    spec: HvpaSpec, key: ResourceKey, first: int, total: int
) -> tuple[ResourceInterval, ...]:
    """Return the intervals of a container resource. Containers share the pod's maximum in proportion to their first
    requests."""
    return tuple(
        ResourceInterval(
            interval.max_replicas,
            max(1, _share(maximum, first, total)),
            interval.extrapolation == "horizontalOnly",
        )
        for interval in trajectory_of(spec).intervals
        if (maximum := getattr(interval.max_resources, key.resource)) is not None
    )


def _size_bounds(
    item: ContainerResource,
    first: int,
    intervals: Sequence[TrajectoryInterval],
    reserve: Mapping[ResourceKey, Margin],
) -> SizeBounds:
    """Return the bounds of a size. A size is never 0, which has no utilization; `intervals` may have small sizes."""
    bounds, resource = item.bounds, item.resource
    least = 1 if intervals else max(1, min(first, LEAST_SIZE[resource]))
    ends = [bound for bound in (bounds.upper, bounds.fixed_limit) if bound is not None]
    return SizeBounds(
        base=max(first, bounds.lower or 0),
        lower=bounds.lower or least,
        upper=max(1, min(ends)) if ends else None,
        unit=UNIT[resource],
        reserve=reserve.get(item.key, NONE),
    )


def _totals(first: Mapping[ResourceKey, int]) -> Counter[Resource]:
    """Return the pod's first requests by resource."""
    totals = Counter[Resource]()
    for key, size in first.items():
        totals[key.resource] += size
    return totals


def _share(amount: int, first: int, total: int) -> int:
    """Return a container's share of an amount of the whole pod, rounded up: amount × first request / first request of
    the pod. Example: 1000m × 250m / 500m = 500m."""
    return ceil_div(amount * first, max(1, total))


def _margin(params: CpuParams | MemoryParams, otherwise: Margin) -> Margin:
    if params.value is None and params.percentage is None:
        return otherwise
    return Margin(params.value or 0, params.percentage or 0)
