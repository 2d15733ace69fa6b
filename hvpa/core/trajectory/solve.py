"""Solves both axes together (DESIGN 5.4): from present and usual demand to replicas and sizes, before any gate.

A measured resource has a point on the path for every demand. All other resources follow the VPA alone and need no
replicas. The solution does not depend on which recommender changed first, nor on earlier values, with one exception:
inside the overlap, replicas and sizes stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from hvpa.core.model import Unknown
from hvpa.core.path.path import Overlaps, Path, Point, ResourceKey, Sizes
from hvpa.core.trajectory.capacity import Capacity
from hvpa.core.trajectory.demand import MetricRequirement, Requests, by_sizes, by_targets, pods_needed
from hvpa.core.values.arithmetic import LARGEST, ceil_div, is_same_size
from hvpa.core.values.tuning import LOWER_OVERLAPS, MOST_OF_SHARED, PINNED_PERCENT, ROUNDED, VPA_PERCENT
from hvpa.core.workload.containers import ContainerResource

WithoutNode = Literal["", "room", "size"]
"""How serving pods react to pods that find no node. Empty: they don't, at least not yet; `room`: they leave room;
`size`: they serve alone with a larger size."""


@dataclass
class Joint:
    """The solution of a decision, computed once. Set no attribute after creation."""

    path: Path
    items: Sequence[ContainerResource]
    """The container resources that a metric measures."""
    apart: Sequence[ContainerResource]
    """The other container resources with a VPA target."""
    requests: Requests
    groups: Sequence[tuple[ResourceKey, ...]]
    """The container resources that each metric of the HPA covers together."""
    margins: Overlaps
    replicas: int
    """The workload's present replicas."""
    usual: Mapping[ResourceKey, int]
    """The means of the measurements."""
    capacity: Capacity
    required: tuple[MetricRequirement, ...] | None
    """Present demand by metric. None: the HPA has no metrics, so HVPA scales neither in nor down; if `unknown` is set,
    nor out or up, since the HPA had metrics until recently."""
    urgent: tuple[MetricRequirement, ...] = ()
    """Like `required`, with more CPU for saturated pods."""
    recent: tuple[MetricRequirement, ...] = ()
    """The demand for which replicas are kept; in place also the demand for sizes, the highest of the recent minutes."""
    held: tuple[MetricRequirement, ...] = ()
    """The demand that the HPA still counts and that only limits scale-in."""
    holds_in: str = ""
    """Why HVPA does not scale in (in place: nor lower sizes); empty if it may."""
    keeps: str = ""
    """Why HVPA removes no replicas, whatever the sizes; empty if it may."""
    saturated: frozenset[ResourceKey] = frozenset()
    """The container resources whose pods use all that they have."""
    unproven: int = 0
    """Number of pods that are new or failed recently; they count as full if fewer pods would do."""
    fails: bool = False
    """Whether so many pods failed that the measurement is no reason for smaller pods."""
    unknown: Unknown | None = None
    """Why demand is unknown for now."""
    last: int = 0
    """The last recommended count, which counts while the measurement may be of other pods (0: it is not)."""
    in_place: bool = False
    """Whether sizes follow the present demand."""
    keeps_pods: bool = False
    """Whether the workload's controller does not replace pods when their size changes."""
    serving: int = 0
    """Pods that serve or are measured (0: unknown)."""
    without_node: WithoutNode = ""
    raised: bool = False
    """Whether sizes were raised so recently that the measurement is of smaller pods."""

    @cached_property
    def current(self) -> Sizes:
        """The present requests of the measured container resources."""
        return {item.key: item.current for item in self.items}

    @cached_property
    def first(self) -> Sizes:
        """The requests with which the path begins."""
        return {key: self.requests.at_first([key]) for key in self.current}

    # --- demand ------------------------------------------------------------------------------------------------------
    @cached_property
    def called_for(self) -> tuple[MetricRequirement, ...]:
        """The present demand to serve, with more CPU for saturated pods; empty while the HPA has no metrics."""
        return self.urgent or self.required or ()

    @cached_property
    def present(self) -> dict[ResourceKey, int]:
        """The present demand of each container resource, if known."""
        return by_targets(self.required or (), self.requests)

    @cached_property
    def sized_for(self) -> dict[ResourceKey, int]:
        """The demand that sizes follow: in place the highest of the recent minutes, otherwise the usual demand. If it
        is unknown, the present requests of all pods."""
        work = self.requests.work
        return {
            key: self.known.get(key, self.replicas * work(key, size)) for key, size in self.current.items()
        }

    @cached_property
    def known(self) -> Mapping[ResourceKey, int]:
        """The same, only if known."""
        return {**self.usual, **by_targets(self.recent, self.requests)} if self.in_place else self.usual

    def in_total(self, demand: Mapping[ResourceKey, int]) -> dict[ResourceKey, int]:
        """Return a demand as the path counts it. A metric requires pods for the total of its containers, so each
        container gets the part of the total that its first request is of all their first requests. With its own part,
        the container that has outgrown its first request most would set the count alone.

        Example: an app and an agent have a demand of 5740Mi and 460Mi. With first requests of 1604Mi and 88Mi, the path
        counts 5878Mi and 323Mi.
        """
        parts: dict[ResourceKey, int] = {}
        for keys in self.groups:
            works = {key: self.requests.work(key, self.first[key]) for key in keys if key in demand}
            amount, total = sum(demand[key] for key in works), max(1, sum(works.values()))
            for key, work in works.items():  # rounded down: the sum of rounded parts may be a unit too large
                parts[key] = max(parts.get(key, 0), amount * work // total)
        return {**demand, **parts}

    # --- solving -----------------------------------------------------------------------------------------------------
    @cached_property
    def wanted(self) -> Point:
        """The point that serves the demand if no gate blocks it."""
        measured = self.measured
        if self.unknown is not None:
            return replace(measured, replicas=self.path.counts.clamp(self.last), sizes=self.current)
        return replace(measured, replicas=self.path.counts.clamp(max(measured.replicas, self.last)))

    @cached_property
    def measured(self) -> Point:
        """The same, from measurements alone."""
        point, kept = self.settled, self.required is None
        if kept:
            replicas = self.path.counts.clamp(max(self.replicas, point.replicas))
            return replace(point, replicas=replicas, sizes=self._not_below(self.sizes_at(replicas)))
        if self.in_place:
            return point
        served = self.path.present(point, self.present)
        sizes = self._bounded(served.sizes)
        return replace(served, replicas=self.replicas_for(sizes), sizes=sizes)

    @cached_property
    def settled(self) -> Point:
        """The point of the path for the demand that sizes follow. It has fewer replicas only if the overlap stays free,
        and keeps sizes that are close enough."""
        demand, path = self.in_total(self.sized_for), self.path
        if not self.in_place:
            replicas, binding = path.asked(demand)
            if self.keeps_pods:  # pods that stay small are not removed, so the sizes are for all needed pods
                replicas = max(replicas, self._count(self.called_for, self.current))
        else:
            settled, binding = path.settled(self.replicas, demand, self.margins)
            rest = [
                pods_needed(requirement, {}, self.requests)
                for requirement in self.recent
                if not requirement.keys
            ]
            stretch = path.vertical_from(settled, demand)
            replicas = path.counts.clamp(max([settled, *rest])) if stretch is None else settled
            replicas = max(replicas, self.held_down_to(path.sizes(replicas, self.sized_for)))
            raised = {key: self.margins[key.resource].raised(amount) for key, amount in demand.items()}
            replicas = max(replicas, min(self.replicas, self._for_cpu(raised)))
        replicas = max(replicas, self._for_cpu(demand))
        return Point(replicas, self.sizes_at(replicas), binding, path.short(replicas, self.known))

    def _for_cpu(self, demand: Mapping[ResourceKey, int]) -> int:
        """Return the fewest pods with enough CPU if no metric measures CPU: the count for this memory demand (shared by
        first requests) with the first memory requests, scaled by the growth of the CPU request since then.

        Example: a demand of 16Gi with first requests of 1Gi and 500m gives 16 pods; if CPU is now 1000m, 8 pods.
        """
        requests, fewest = self.requests, 0
        for key, amount in demand.items():
            cpu = ResourceKey(key.container, "cpu")
            if key.resource == "cpu" or cpu in self.current:
                continue
            first, now = requests.first.get(cpu, 0), requests.now.get(cpu, 0)
            size = self._at_first(key, demand)
            size = size * now // first if now > first > 0 else size
            fewest = max(fewest, ceil_div(amount, max(1, requests.work(key, size))))
        return self.path.counts.clamp(fewest)

    def _at_first(self, key: ResourceKey, demand: Mapping[ResourceKey, int]) -> int:
        """Return the first request of a container resource, as the demand counts it. If a metric measures whole pods,
        the containers that HVPA does not govern have a smaller part of its demand once the others have grown.

        Example: the app had 1Gi beside a sidecar of 1Gi, half of the demand; with 3Gi it has three quarters. So its
        first request counts as 1.5Gi.
        """
        requests = self.requests
        if key not in self._shared:
            return requests.at_first([key])
        keys = [other for other in demand if other.resource == key.resource]
        governed, whole = sum(map(requests.measured, keys)), requests.of_pod(key.resource, "")
        first, whole_at_first = requests.at_first(keys), requests.of_pod_at_first(key.resource, "")
        return requests.at_first([key]) * governed * whole_at_first // max(1, first * whole)

    def sizes_at(self, replicas: int) -> Sizes:
        """Return the sizes with which this many replicas serve.

        In place, no size is lowered below that with which the serving pods, counted as at least half of the replicas,
        can serve alone until the others have started. It is lowered if the others find no node, since the size may be
        in their way. If they still find no node, the serving pods are raised to that size.

        Example: 2 pods of 388m serve 776m. For 800m the path has 3 pods of 267m: the 2 pods keep 388m until the third
        serves. If that finds no node, they have 267m for a minute, and then 400m.
        """
        sizes = self._on_path(replicas)
        if self.awaits(replicas):
            sizes = {**sizes, **self._of_serving(sizes, replicas)}
        keeps = self.in_place and (self.holds_in or self.raised or self.fails or self._lacks(sizes))
        return self._kept(self._not_below(sizes) if keeps else sizes)

    def awaits(self, replicas: int) -> bool:
        """Return whether some of the replicas have yet to serve, and the others keep their size until then."""
        return self.in_place and self.without_node != "room" and 0 < self.serving < replicas

    def _of_serving(self, sizes: Sizes, replicas: int) -> Sizes:
        """Return the sizes until all replicas serve."""
        served = self._on_path(max(self.serving, ceil_div(replicas, 2)))
        most = served if self.without_node == "size" else self.current
        return {key: max(size, min(most[key], served[key])) for key, size in sizes.items()}

    def _lacks(self, sizes: Sizes) -> bool:
        """Return whether some pods refuse their resize and all pods together would serve too little with these
        sizes."""
        if not any(shape.refuses for shape in self.capacity.shapes):
            return False
        counts = [
            self.capacity.needed(requirement, sizes, self.requests, resized=True)
            for requirement in self.recent
            if requirement.keys
        ]
        return max(counts, default=0) > sum(shape.count for shape in self.capacity.shapes)

    def _on_path(self, replicas: int) -> Sizes:
        """Return the path's sizes for this many replicas. A resource with unknown demand keeps its size: a size derived
        from all pods' requests would grow by itself as long as there are more pods than the path has."""
        on_path = self.path.sizes(replicas, self.sized_for)
        return self._bounded(
            {key: size if key in self.known else self.current[key] for key, size in on_path.items()}
        )

    @cached_property
    def _shared(self) -> Set[ResourceKey]:
        """The container resources whose metric also measures containers that HVPA does not govern."""
        return {
            key for requirement in self.required or () if requirement.is_shared for key in requirement.keys
        }

    def _bounded(self, sizes: Sizes) -> Sizes:
        """Return the sizes, bounded by the VPA's targets if a metric also measures containers without a target.

        CPU is at least the usage that the VPA saw, or the target if that usage was at the limit. Memory is not lowered
        below that usage, but not raised to it either: there would be fewer pods, which would lack CPU. Both are at most
        `MOST_OF_SHARED` targets, or the present request if that is larger. Demand beyond that may belong to the other
        containers, and adds replicas instead.
        """
        limited = dict(sizes)
        for key in self._shared & sizes.keys():
            target, current = self.requests.targets[key], self.current[key]
            least = used = target * 100 // VPA_PERCENT
            if key.resource == "memory":
                least = min(used, current)
            elif used * 100 >= self.requests.limits.get(key, LARGEST) * PINNED_PERCENT:
                least = target
            limited[key] = max(least, min(sizes[key], max(current, MOST_OF_SHARED * target)))
        return limited

    @cached_property
    def exact(self) -> Sizes:
        """The requests of the path, even if the present requests are close to them."""
        return self._on_path(self.settled.replicas)

    # --- replicas ----------------------------------------------------------------------------------------------------
    @property
    def needed(self) -> int | None:
        """The replicas that the present demand needs, whatever the present count; None if it is not measured."""
        if not self.required or self.unknown is not None:
            return None
        if not self.in_place:
            return self.once_replaced._count(self.required, self.wanted.sizes)
        rest = [
            pods_needed(requirement, {}, self.requests)
            for requirement in self.required
            if not requirement.keys
        ]
        return self.path.counts.clamp(max([self.path.count(self.in_total(self.present)), *rest]))

    def replicas_for(self, sizes: Sizes) -> int:
        """Return how many pods serve the present demand: present pods with their sizes, and new pods with these sizes.
        It is below the present count only if fewer pods would serve all recent demand and leave the overlap free."""
        demands = self.recent if self.in_place else self.called_for
        least = self._count(demands, sizes)
        if self.replicas <= least:
            enough = self._count([requirement.tolerated() for requirement in demands], sizes)
            return least if self.replicas < enough else self.path.counts.clamp(self.replicas)
        serving = min(self.replicas, max(least, self.safe(sizes)) + self.unproven)
        return self.replicas if self.keeps else max(least, serving, self.held_down_to(sizes))

    def safe(self, sizes: Sizes) -> int:
        """Return the lowest count at which the pods, with the sizes that they have and keep, serve all recent demand
        and leave the overlap free. In place it is at most the count of `settled`, which already leaves the overlap
        free, if that many pods serve."""
        raised = [requirement.raised(self.margins) for requirement in self.recent]
        count = max(self._for_cpu(self._by_sizes(raised, self.first)), self._served(raised, sizes))
        if self.in_place:
            count = min(count, max(self.settled.replicas, self._served(self.recent, sizes)))
        return min(self.replicas, self.path.counts.clamp(count))

    def _served(self, requirements: Sequence[MetricRequirement], sizes: Sizes) -> int:
        """Return how many of the pods serve the requirements with the sizes that they have and keep."""
        return max(
            [
                self.capacity.needed(requirement, sizes, self.requests, resized=False)
                for requirement in requirements
            ],
            default=0,
        )

    def held_down_to(self, sizes: Sizes) -> int:
        """Return the lowest count that the HPA's desired replicas allow. In place, the recent demand has this
        effect."""
        if self.holds_in:
            return self.replicas
        if self.in_place:
            return 0
        counts = [pods_needed(requirement, sizes, self.requests) for requirement in self.held]
        return min(self.replicas, self.path.counts.clamp(max(counts, default=0)))

    def _count(self, requirements: Sequence[MetricRequirement], sizes: Sizes) -> int:
        """Return how many pods serve the requirements; new pods have these sizes. If pods are replaced and the path is
        vertical, pods become larger first, unless their size may be `_bounded`."""
        counts = {requirement: self.pods_for(requirement, sizes) for requirement in requirements}
        demand = self._by_sizes(requirements, sizes)
        stays = self.keeps_pods or any(requirement.is_shared for requirement in requirements)
        stretch = None if stays else self.path.vertical_from(self.settled.replicas, demand)
        if stretch is not None:
            grows = [requirement for requirement in requirements if not (requirement.keys and self.in_place)]
            counts |= {requirement: min(counts[requirement], stretch) for requirement in grows}
        for_cpu = self._for_cpu(self._by_sizes(requirements, self.first))
        return self.path.counts.clamp(max([for_cpu, *counts.values()]))

    def _by_sizes(self, requirements: Sequence[MetricRequirement], sizes: Sizes) -> dict[ResourceKey, int]:
        return by_sizes(
            [requirement for requirement in requirements if requirement.keys], sizes, self.requests
        )

    def pods_for(self, requirement: MetricRequirement, sizes: Sizes) -> int:
        """Return how many pods serve a requirement; new pods have these sizes."""
        return self.capacity.needed(requirement, sizes, self.requests, resized=self.in_place)

    def grown(self, replicas: int, sizes: Sizes) -> Sizes:
        """Return sizes, not below these, with which `replicas` serve the present demand when more are held back."""
        return self._bounded(self.path.enlarged(replicas, sizes, self.present))

    @property
    def once_replaced(self) -> Joint:
        """The solution if all pods had the wanted sizes."""
        return replace(self, capacity=Capacity())

    @property
    def once_started(self) -> Joint:
        """The solution if all pods served: without CPU that pods keep until others have started."""
        return replace(self, serving=0)

    def once_measured(self) -> Joint:
        """Return the solution if the last measurements were those of the present workload. The difference waits for the
        next measurement."""
        return replace(self, holds_in="", keeps="", last=0, unproven=0, fails=False)

    # --- rest --------------------------------------------------------------------------------------------------------
    @cached_property
    def _requests_now(self) -> Sizes:
        return {item.key: item.current for item in (*self.items, *self.apart)}

    def is_near(self, key: ResourceKey, size: int) -> bool:
        """Return whether the present request is so close to this size that it stays."""
        current, margin = self._requests_now[key], self.margins[key.resource]
        overlap = max(margin.value, current * margin.percentage // 100)
        return (
            -max(LOWER_OVERLAPS * overlap, current // ROUNDED)
            <= size - current
            <= max(overlap, current // ROUNDED)
        )

    def _kept(self, sizes: Sizes) -> Sizes:
        if all(self.is_near(key, size) for key, size in sizes.items()):
            return self.current
        current = self.current
        return {
            key: current[key] if is_same_size(current[key], size) else size for key, size in sizes.items()
        }

    def _not_below(self, sizes: Sizes) -> Sizes:
        return {key: max(size, self.current[key]) for key, size in sizes.items()}
