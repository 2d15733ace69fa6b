"""The path: a map from total demand to replicas and the size of each pod that never falls (DESIGN 5.4, 5.5).

Nothing here knows who measured a demand, what is set now, or what may be changed: the answer depends on the path and
the demand alone. Demands are totals over all pods, in millicores and bytes, without the base usage of each pod
(`baseResourcesPerReplica`); sizes are requests, with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa.core.path.curve import NONE, Margin, ResourceCurve
from hvpa.core.values.weight import Bounds

DEFAULT_OVERLAP: Final = Margin(percentage=10)
"""How far below a boundary demand must be before replicas are taken away, by default (DESIGN 5.5)."""


class ResourceKey(NamedTuple):
    """One container's one resource."""

    container: str
    resource: Resource


Demand = Mapping[ResourceKey, int]
"""What all pods do together, by container resource (each has a curve): millicores and bytes."""
Sizes = Mapping[ResourceKey, int]
"""Requests of a pod: millicores and bytes."""
Overlaps = Mapping[Resource, Margin]
"""How far a boundary is lowered for scaling in, by resource. Missing: not at all."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where demand is served: so many replicas, each with these requests.

    `binding` is the container resource that asks for that many replicas, the first of them; None where none has a
    demand. `saturated` are the container resources that can't be served even so: replicas and size are at their ends.
    """

    replicas: int
    sizes: Sizes
    binding: ResourceKey | None
    saturated: tuple[ResourceKey, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """One path for each container resource over the same replica counts."""

    counts: Bounds
    curves: Mapping[ResourceKey, ResourceCurve]

    def asked(self, demand: Demand, least: int = 0) -> tuple[int, ResourceKey | None]:
        """The replicas that serve `demand`, `least` at the fewest: the largest count over container resources; and the
        first container resource that asks for it (None: there is none). Only one that asks for more than those before
        it has its count searched for."""
        replicas, binding = max(least, self.counts.lower), next(iter(demand), None)
        for key, amount in demand.items():
            if not self.curves[key].serves(replicas, amount):
                found = self.curves[key].count(amount, replicas)
                replicas, binding = found, key if found > replicas else binding
        return replicas, binding

    def count(self, demand: Demand) -> int:
        """The replicas that serve `demand`: the largest count over container resources. For scaling out."""
        return self.asked(demand)[0]

    def count_in(self, demand: Demand, overlaps: Overlaps, out: int = 0) -> int:
        """The replicas down to which `demand` lets the path scale in: as `count`, with every boundary lowered by the
        overlap of its resource, max(value, percentage of it). Never below `count`, which is `out` where it is known."""
        raised = {key: overlaps.get(key.resource, NONE).raised(amount) for key, amount in demand.items()}
        return self.asked(raised, out)[0]

    def settled(self, current: int, demand: Demand, overlaps: Overlaps) -> tuple[int, ResourceKey | None]:
        """The replicas from `current` on: more where they don't serve `demand`, fewer where they would with the overlap
        to spare, else `current`. And the container resource that asks for most."""
        count, binding = self.asked(demand)
        if current > count:
            count = min(current, self.count_in(demand, overlaps, count))
        return count, binding

    def sizes(self, replicas: int, demand: Demand) -> dict[ResourceKey, int]:
        """The requests with which `replicas` serve `demand`: demand / replicas plus base usage, rounded up to whole
        units, inside the bounds of each container resource. Serves for a count that is held as well: the size takes up
        the rest."""
        return {key: self.curves[key].size(replicas, amount) for key, amount in demand.items()}

    def short(self, replicas: int, demand: Demand) -> tuple[ResourceKey, ...]:
        """The container resources of which `replicas` can't serve the demand, however large their pods may be."""
        return tuple(key for key, amount in demand.items() if not self.curves[key].fits(replicas, amount))

    def point(self, demand: Demand) -> Point:
        """`path(demand)`: the replicas, rounded up, and the sizes that go with them."""
        replicas, binding = self.asked(demand)
        return Point(replicas, self.sizes(replicas, demand), binding, self.short(replicas, demand))

    def replicas(self, usual: int, sizes: Sizes, demand: Demand) -> tuple[int, ResourceKey | None]:
        """How many replicas serve a present `demand`, where the usual one is served by `usual` replicas of these sizes
        (`ResourceCurve.replicas`), and the container resource that asks for that many."""
        counts = {key: self.curves[key].replicas(usual, sizes[key], amount) for key, amount in demand.items()}
        binding = max(counts, key=counts.__getitem__, default=None)
        return (self.counts.lower if binding is None else counts[binding]), binding

    def vertical_from(self, usual: int, demand: Demand) -> int | None:
        """The first count from `usual` on, below the last one, at which the path goes straight up and serves the whole
        demand; None where there is none."""
        stretches = {one for key in demand for one in self.curves[key].vertical_stretches}
        for count in sorted(stretches):
            if usual <= count != self.counts.upper and all(
                self.curves[key].serves(count, amount) for key, amount in demand.items()
            ):
                return count
        return None

    def present(self, usual: Point, demand: Demand) -> Point:
        """Where a present `demand` is served, when `usual` is the point of the usual demand: by more or fewer replicas,
        and by larger pods only where the path has a vertical stretch, or ends."""
        replicas, binding = self.replicas(usual.replicas, usual.sizes, demand)
        larger = self.enlarged(replicas, usual.sizes, demand)
        return Point(replicas, larger, binding, self.short(replicas, demand))

    def enlarged(self, replicas: int, sizes: Sizes, demand: Demand) -> dict[ResourceKey, int]:
        """These sizes, and larger ones where `replicas` of them don't serve `demand`."""
        return {
            key: self.curves[key].enough(replicas, size, demand[key]) if key in demand else size
            for key, size in sizes.items()
        }
