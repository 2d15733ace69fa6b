"""Both axes solved together (DESIGN 5.4): from present and usual demand to replicas and sizes, before any gate.

What a metric measures has a point on the path for every demand. Everything else follows the VPA alone, and asks for no
replicas. Nothing here depends on which recommender changed first, or on what was set in between, but for one thing:
inside the overlap, replicas and sizes stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from hvpa.core.path.path import Overlaps, Path, Point, ResourceKey, Sizes
from hvpa.core.recommenders.desired_replicas import Unknown
from hvpa.core.trajectory.capacity import Capacity
from hvpa.core.trajectory.demand import MetricRequirement, Requests, by_sizes, by_targets, pods_needed
from hvpa.core.values.arithmetic import LARGEST, ceil_div, is_same_size
from hvpa.core.values.tuning import LOWER_OVERLAPS, MOST_OF_SHARED, PINNED_PERCENT, ROUNDED, VPA_PERCENT
from hvpa.core.workload.containers import ContainerResource

WithoutNode = Literal["", "room", "size"]
"""What pods that serve do for others that find no node: nothing yet, or all do; they leave room; or serve alone."""


@dataclass
class Joint:
    """One decision's solution, found once. Set nothing after it was made.

    `replicas` are those of the workload, `items` the container resources that a metric measures, `apart` the others
    that a VPA has targets for, `usual` the means of what was measured. `found` is what the metrics call for (None: the
    HPA has no metrics, and nothing may shrink on a guess; `unknown`: nor grow, since it had some a moment ago),
    `urgent` the same with more CPU for saturated pods, `kept_for` the demand below which no replicas go, and in place
    the one that sizes are for: that of the last minutes. `held` is the demand that the HPA still counts, `last` the
    count that was recommended last, which stands while what is measured may be of other pods (0: it is not),
    `holds_in` why nothing is taken away at all, `keeps` why no replicas are, whatever the sizes.
    `unproven` pods failed lately or are new, and count as full if fewer would do; `fails`: so many failed that what is
    measured is no reason for smaller pods. `in_place`: sizes follow the present demand. `keeps_pods`: the workload's
    controller replaces no pod for another size. `serving` are the pods that serve or are measured (0: not known).
    `without_node`: what pods that serve do for those that find no node. `raised`: sizes were raised a moment ago, and
    what is measured is of pods that were smaller.
    """

    path: Path
    items: Sequence[ContainerResource]
    apart: Sequence[ContainerResource]
    requests: Requests
    margins: Overlaps
    replicas: int
    usual: Mapping[ResourceKey, int]
    capacity: Capacity
    found: tuple[MetricRequirement, ...] | None
    urgent: tuple[MetricRequirement, ...] = ()
    kept_for: tuple[MetricRequirement, ...] = ()
    held: tuple[MetricRequirement, ...] = ()
    holds_in: str = ""
    keeps: str = ""
    unproven: int = 0
    fails: bool = False
    unknown: Unknown | None = None
    last: int = 0
    in_place: bool = False
    keeps_pods: bool = False
    serving: int = 0
    without_node: WithoutNode = ""
    raised: bool = False

    @cached_property
    def current(self) -> Sizes:
        """The requests as they are, of what a metric measures."""
        return {one.key: one.current for one in self.items}

    # --- demand ------------------------------------------------------------------------------------------------------
    @cached_property
    def called_for(self) -> tuple[MetricRequirement, ...]:
        """What is to be served now, with more CPU for saturated pods; empty while the HPA has no metrics."""
        return self.urgent or self.found or ()

    @cached_property
    def present(self) -> dict[ResourceKey, int]:
        """Present demand of each container resource, as far as it is known."""
        return by_targets(self.found or (), self.requests)

    @cached_property
    def sized_for(self) -> dict[ResourceKey, int]:
        """The demand that sizes are for: in place that of the last minutes, else the usual one. If it is not known, the
        present requests of all pods."""
        work = self.requests.work
        return {
            key: self.known.get(key, self.replicas * work(key, size)) for key, size in self.current.items()
        }

    @cached_property
    def known(self) -> Mapping[ResourceKey, int]:
        """The same as far as it is known."""
        return {**self.usual, **by_targets(self.kept_for, self.requests)} if self.in_place else self.usual

    # --- solving -----------------------------------------------------------------------------------------------------
    @cached_property
    def wanted(self) -> Point:
        """Where demand is served, when nothing is blocked."""
        measured = self.measured
        if self.unknown is not None:
            return replace(measured, replicas=self.path.counts.clamp(self.last), sizes=self.current)
        return replace(measured, replicas=self.path.counts.clamp(max(measured.replicas, self.last)))

    @cached_property
    def measured(self) -> Point:
        """The same by what is measured alone."""
        point, kept = self.settled, self.found is None
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
        """The point of the path for the demand that sizes are for: fewer replicas only where the overlap is to spare,
        sizes that are near enough as they are."""
        demand, path = self.sized_for, self.path
        if not self.in_place:
            replicas, binding = path.asked(demand)
            if self.keeps_pods:  # sizes for as many as it takes: pods that stay small don't become fewer
                replicas = max(replicas, self._count(self.called_for, self.current))
        else:
            settled, binding = path.settled(self.replicas, demand, self.margins)
            rest = [pods_needed(one, {}, self.requests) for one in self.kept_for if not one.keys]
            stretch = path.vertical_from(settled, demand)
            replicas = path.counts.clamp(max([settled, *rest])) if stretch is None else settled
            replicas = max(replicas, self.held_down_to(path.sizes(replicas, demand)))
            raised = {key: self.margins[key.resource].raised(amount) for key, amount in demand.items()}
            replicas = max(replicas, min(self.replicas, self._for_cpu(raised)))
        replicas = max(replicas, self._for_cpu(demand))
        return Point(replicas, self.sizes_at(replicas), binding, path.short(replicas, self.known))

    def _for_cpu(self, demand: Mapping[ResourceKey, int]) -> int:
        """The fewest pods whose CPU is enough if no metric measures it: as many as this demand for memory takes with
        pods as they were at first sight, or less as far as their CPU has grown since."""
        requests, found = self.requests, 0
        for key, amount in demand.items():
            cpu = ResourceKey(key.container, "cpu")
            if key.resource == "cpu" or cpu in self.current:
                continue
            first, now = requests.first.get(cpu, 0), requests.now.get(cpu, 0)
            size = requests.at_first([key])
            size = size * now // first if now > first > 0 else size
            found = max(found, ceil_div(amount, max(1, requests.work(key, size))))
        return self.path.counts.clamp(found)

    def sizes_at(self, replicas: int) -> Sizes:
        """The sizes with which so many replicas serve. In place, CPU is not lowered below the size with which those
        pods serve that do, at least half of them, until others have started; but it is if others find no node, which
        it may be in the way of. If they find none without it either, pods that serve are raised to that size.

        Example: 2 pods of 388m serve 776m. For 800m the path has 3 of 267m: the 2 keep 388m until the third serves. If
        that finds no node, they have 267m for a minute, and then 400m.
        """
        sizes = self._on_path(replicas)
        if self.awaits(replicas):
            sizes = {**sizes, **self._of_serving(sizes, replicas)}
        keeps = self.in_place and (self.holds_in or self.raised or self.fails or self._lacks(sizes))
        return self._kept(self._not_below(sizes) if keeps else sizes)

    def awaits(self, replicas: int) -> bool:
        """Whether some of so many replicas have yet to serve, and the others have more CPU until then."""
        return self.in_place and self.without_node != "room" and 0 < self.serving < replicas

    def _of_serving(self, sizes: Sizes, replicas: int) -> Sizes:
        """CPU of these sizes, for the time until all replicas serve."""
        served = self._on_path(max(self.serving, ceil_div(replicas, 2)))
        most = served if self.without_node == "size" else self.current
        return {
            key: max(size, min(most[key], served[key]))
            for key, size in sizes.items()
            if key.resource == "cpu"
        }

    def _lacks(self, sizes: Sizes) -> bool:
        """Whether some pods refuse their resize, and all with these sizes, as far as they take them, don't serve."""
        if not any(shape.refuses for shape in self.capacity.shapes):
            return False
        counts = [
            self.capacity.needed(one, sizes, self.requests, resized=True) for one in self.kept_for if one.keys
        ]
        return max(counts, default=0) > sum(shape.count for shape in self.capacity.shapes)

    def _on_path(self, replicas: int) -> Sizes:
        """The path's sizes for so many replicas. What no demand is known of keeps its size: a size that follows from
        what all pods request would grow with itself, as long as there are more pods than the path has."""
        found = self.path.sizes(replicas, self.sized_for)
        return self._bounded(
            {key: size if key in self.known else self.current[key] for key, size in found.items()}
        )

    def _bounded(self, sizes: Sizes) -> Sizes:
        """The sizes, bounded by the VPA's targets if a metric measures containers without a target as well. CPU is at
        least the use that the VPA saw, or the target if that use was at the limit. Memory is not lowered below that
        use, but not raised to it: pods would be fewer, and their CPU short. Both are at most `MOST_OF_SHARED` targets;
        what is called for beyond that may be the use of the other containers, and becomes replicas."""
        shared = {key for one in self.found or () if one.is_shared for key in one.keys}
        found = dict(sizes)
        for key in shared & sizes.keys():
            target, current = self.requests.targets[key], self.current[key]
            least = used = target * 100 // VPA_PERCENT
            if key.resource == "memory":
                least = min(used, current)
            elif used * 100 >= self.requests.limits.get(key, LARGEST) * PINNED_PERCENT:
                least = target
            found[key] = max(least, min(sizes[key], max(current, MOST_OF_SHARED * target)))
        return found

    @cached_property
    def exact(self) -> Sizes:
        """The requests that the path has for what is wanted, whether or not those that there are are near to them."""
        return self._on_path(self.settled.replicas)

    # --- replicas ----------------------------------------------------------------------------------------------------
    @property
    def needed(self) -> int | None:
        """The replicas that the present demand takes, however many there are; None where it is not measured."""
        if not self.found or self.unknown is not None:
            return None
        if not self.in_place:
            return self.once_replaced._count(self.found, self.wanted.sizes)
        rest = [pods_needed(one, {}, self.requests) for one in self.found if not one.keys]
        return self.path.counts.clamp(max([self.path.count(self.present), *rest]))

    def replicas_for(self, sizes: Sizes) -> int:
        """How many pods serve the present demand: those that there are with the sizes they have, new ones with these
        sizes. Fewer than there are only where they would do with the overlap to spare, for all that was called for of
        late."""
        demands = self.kept_for if self.in_place else self.called_for
        least = self._count(demands, sizes)
        if self.replicas <= least:
            enough = self._count([one.tolerated() for one in demands], sizes)
            return least if self.replicas < enough else self.path.counts.clamp(self.replicas)
        serving = min(self.replicas, max(least, self.safe(sizes)) + self.unproven)
        return self.replicas if self.keeps else max(least, serving, self.held_down_to(sizes))

    def safe(self, sizes: Sizes) -> int:
        """Down to which count the pods, with the sizes that they have and keep, serve all that was called for of late,
        with the overlap to spare. In place that is no more than `settled` has, which has found it to spare."""
        raised = [one.raised(self.margins) for one in self.kept_for]
        demand = by_sizes([one for one in raised if one.keys], sizes, self.requests)
        count = max(self._for_cpu(demand), self._served(raised, sizes))
        if self.in_place:
            count = min(count, max(self.settled.replicas, self._served(self.kept_for, sizes)))
        return min(self.replicas, self.path.counts.clamp(count))

    def _served(self, requirements: Sequence[MetricRequirement], sizes: Sizes) -> int:
        """How many of the pods serve the requirements with the sizes that they have and keep."""
        return max(
            [self.capacity.needed(one, sizes, self.requests, resized=False) for one in requirements],
            default=0,
        )

    def held_down_to(self, sizes: Sizes) -> int:
        """Down to which count the HPA's desired replicas let replicas be taken away. In place, what was called for of
        late does that."""
        if self.holds_in:
            return self.replicas
        if self.in_place:
            return 0
        counts = [pods_needed(one, sizes, self.requests) for one in self.held]
        return min(self.replicas, self.path.counts.clamp(max(counts, default=0)))

    def _count(self, requirements: Sequence[MetricRequirement], sizes: Sizes) -> int:
        """How many pods serve the requirements, new ones of these sizes. Where pods are replaced and the path is
        vertical, larger pods come first, unless they may be `_bounded`."""
        counts = {one: self.pods_for(one, sizes) for one in requirements}
        demand = by_sizes([one for one in requirements if one.keys], sizes, self.requests)
        stays = self.keeps_pods or any(one.is_shared for one in requirements)
        stretch = None if stays else self.path.vertical_from(self.settled.replicas, demand)
        if stretch is not None:
            grows = [one for one in requirements if not (one.keys and self.in_place)]
            counts |= {one: min(counts[one], stretch) for one in grows}
        return self.path.counts.clamp(max([self._for_cpu(demand), *counts.values()]))

    def pods_for(self, one: MetricRequirement, sizes: Sizes) -> int:
        """How many pods serve a requirement, new ones of these sizes."""
        return self.capacity.needed(one, sizes, self.requests, resized=self.in_place)

    def grown(self, replicas: int, sizes: Sizes) -> Sizes:
        """Sizes, not below these, with which `replicas` that are held serve the present demand."""
        return self._bounded(self.path.enlarged(replicas, sizes, self.present))

    @property
    def once_replaced(self) -> Joint:
        """The solution if all pods had the sizes that are wanted."""
        return replace(self, capacity=Capacity())

    @property
    def once_started(self) -> Joint:
        """The solution if all pods served: without CPU that is kept for those that start."""
        return replace(self, serving=0)

    def once_measured(self) -> Joint:
        """The solution if what the HPA has measured so far were true of the workload as it is: what waits for the next
        measurement is the difference."""
        return replace(self, holds_in="", keeps="", last=0, unproven=0, fails=False)

    # --- rest --------------------------------------------------------------------------------------------------------
    @cached_property
    def _requests_now(self) -> Sizes:
        return {one.key: one.current for one in (*self.items, *self.apart)}

    def is_near(self, key: ResourceKey, size: int) -> bool:
        """Whether the present request is so near to this size that it is left alone."""
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
