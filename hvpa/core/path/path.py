"""The path maps total demand to replicas and to a pod size that never falls (DESIGN 5.4, 5.5).

The result depends only on the path and the demand, not on the source of the demand, the current state, or allowed
changes. Demands are totals over all pods, in millicores and bytes, without each pod's base usage
(`baseResourcesPerReplica`). Sizes are requests and include it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa.core.path.curve import NONE, Margin, ResourceCurve
from hvpa.core.values.weight import Bounds

DEFAULT_OVERLAP: Final = Margin(percentage=10)
"""Default margin below a boundary that demand must reach before HVPA removes replicas (DESIGN 5.5)."""


class ResourceKey(NamedTuple):
    """A resource of a container."""

    container: str
    resource: Resource


Demand = Mapping[ResourceKey, int]
"""Work of all pods together, by container resource (each has a curve): millicores and bytes."""
Sizes = Mapping[ResourceKey, int]
"""Requests of a pod: millicores and bytes."""
Overlaps = Mapping[Resource, Margin]
"""Margin that lowers a boundary for scaling in, by resource. Missing: no margin."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the path."""

    replicas: int
    """Replica count."""
    sizes: Sizes
    """Requests of each replica."""
    binding: ResourceKey | None
    """The first container resource that needs this many replicas; None without a demand."""
    saturated: tuple[ResourceKey, ...]
    """Container resources whose demand exceeds the largest count and size."""


@dataclass(frozen=True, slots=True)
class Path:
    """The path: a curve for each container resource, over the same replica counts."""

    counts: Bounds
    curves: Mapping[ResourceKey, ResourceCurve]

    def asked(self, demand: Demand, least: int = 1) -> tuple[int, ResourceKey | None]:
        """Returns the replicas that serve `demand`, at least `least`, and the first container resource that needs that
        many (None: there is none). The count is the largest over all container resources. A count is only searched for
        if a container resource needs more replicas than those before it."""
        replicas, binding = max(least, self.counts.lower), next(iter(demand), None)
        for key, amount in demand.items():
            if not self.curves[key].serves(replicas, amount):
                count = self.curves[key].count(amount, replicas)
                replicas, binding = count, key if count > replicas else binding
        return replicas, binding

    def count(self, demand: Demand) -> int:
        """Returns the replicas for scaling out: the largest count over container resources that serves `demand`."""
        return self.asked(demand)[0]

    def count_in(self, demand: Demand, overlaps: Overlaps, out: int = 1) -> int:
        """Returns the replicas for scaling in: like `count`, with each boundary lowered by the overlap of its resource,
        max(value, percentage). Never below `count`; pass `count` as `out` if it is known. Example: pods of 1000m serve
        2800m with 3 replicas; with an overlap of 10 % scaling in stops at 4, since 2800m / 0.9 = 3112m."""
        raised = {key: overlaps.get(key.resource, NONE).raised(amount) for key, amount in demand.items()}
        return self.asked(raised, out)[0]

    def settled(self, current: int, demand: Demand, overlaps: Overlaps) -> tuple[int, ResourceKey | None]:
        """Returns the replicas that follow `current`, and the container resource that needs most: more if `current`
        does not serve `demand`, fewer if they serve it with the overlap to spare, otherwise `current`."""
        count, binding = self.asked(demand)
        if current > count:
            count = min(current, self.count_in(demand, overlaps, count))
        return count, binding

    def sizes(self, replicas: int, demand: Demand) -> dict[ResourceKey, int]:
        """Returns the requests with which `replicas` serve `demand`: demand / replicas plus base usage, rounded up to
        whole units, within the bounds. If the count is held, the size makes up for it."""
        return {key: self.curves[key].size(replicas, amount) for key, amount in demand.items()}

    def short(self, replicas: int, demand: Demand) -> tuple[ResourceKey, ...]:
        """Returns the container resources whose demand `replicas` can't serve with the largest pods."""
        return tuple(key for key, amount in demand.items() if not self.curves[key].fits(replicas, amount))

    def point(self, demand: Demand) -> Point:
        """Returns `path(demand)`: the replicas, rounded up, and their sizes."""
        replicas, binding = self.asked(demand)
        return Point(replicas, self.sizes(replicas, demand), binding, self.short(replicas, demand))

    def replicas(self, usual: int, sizes: Sizes, demand: Demand) -> tuple[int, ResourceKey | None]:
        """Returns how many replicas serve the current `demand`, if `usual` replicas of these sizes serve the usual
        demand (`ResourceCurve.replicas`), and the container resource that needs that many."""
        counts = {key: self.curves[key].replicas(usual, sizes[key], amount) for key, amount in demand.items()}
        binding = max(counts, key=counts.__getitem__, default=None)
        return (self.counts.lower if binding is None else counts[binding]), binding

    def vertical_from(self, usual: int, demand: Demand) -> int | None:
        """Returns the first count from `usual` on, below the last count, at which a vertical stretch serves the whole
        demand; None if there is none."""
        stretches = {stretch for key in demand for stretch in self.curves[key].vertical_stretches}
        for count in sorted(stretches):
            if usual <= count != self.counts.upper and all(
                self.curves[key].serves(count, amount) for key, amount in demand.items()
            ):
                return count
        return None

    def present(self, usual: Point, demand: Demand) -> Point:
        """Returns the point for the current `demand`, given the point of the usual demand: more or fewer replicas, and
        larger pods only at a vertical stretch or at the end of the path."""
        replicas, binding = self.replicas(usual.replicas, usual.sizes, demand)
        larger = self.enlarged(replicas, usual.sizes, demand)
        return Point(replicas, larger, binding, self.short(replicas, demand))

    def enlarged(self, replicas: int, sizes: Sizes, demand: Demand) -> dict[ResourceKey, int]:
        """Returns these sizes, enlarged if `replicas` of them do not serve `demand`."""
        return {
            key: self.curves[key].enough(replicas, size, demand[key]) if key in demand else size
            for key, size in sizes.items()
        }
