"""Both axes solved together (DESIGN 5.4): from usual and present demand to replicas and sizes, before any gate.

Usual demand decides on the size of pods, present demand on how many there are. Nothing here depends on which
recommender changed first, or on what was set in between, but for one thing: inside the overlap, replicas and sizes stay
as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

from hvpa.core.path.path import Overlaps, Path, Point, ResourceKey, Sizes
from hvpa.core.recommenders.desired_replicas import Unknown
from hvpa.core.trajectory.demand import MetricRequirement, Requests, Usual, by_sizes, by_targets, pods_needed
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.workload.containers import ContainerResource

ROUNDED: Final = 1000
"""A size that differs by less than one part of so many is the same one: without an overlap, pods would be replaced
again and again for what measurements are rounded by."""
BAND: Final = 2
"""How many times the overlap a size must be off before pods are replaced for it alone: replicas make up for it.
With once the overlap, pods bound by memory cost 1.05 instead of 0.99 of an HPA and a VPA (decision 0014)."""
LOOKED_AT: Final = 256
"""How many counts inside the overlap are tried: each one where there are no more, else evenly spaced ones."""
MOST_OF_USUAL: Final = 4
"""Replicas are added for memory that ran out up to so many times the usual demand (decision 0052)."""


@dataclass
class Joint:
    """One decision's solution, found once. Set nothing after it was made.

    `replicas` are those of the workload, `items` the container resources that a VPA has targets for, `means` what usual
    demand is reckoned from. `found` is what the metrics call for (empty: there is no HPA; None: the HPA has no metrics,
    and nothing may shrink on a guess; `unknown`: nor grow, since it had some a moment ago), `last` the count that was
    recommended last, which stands while what is measured may be of other pods (0: it is not), `held` what the
    replicas must still be enough for where the HPA wants more than that, `holds_in` why nothing is taken away at all.
    `urgent` is `found`, with more CPU for pods that are saturated: replicas are added for it, and pods grow in place.
    `in_place`: sizes follow the present demand. `ran_out`: the memory in bytes that pods had which ran out of it
    lately. `apart`: memory that ran out and that no metric measures; it follows the VPA's
    target, and asks for no replicas (decision 0060).
    """

    path: Path
    items: Sequence[ContainerResource]
    requests: Requests
    margins: Overlaps
    replicas: int
    means: Usual
    found: tuple[MetricRequirement, ...] | None
    urgent: tuple[MetricRequirement, ...] = ()
    held: tuple[MetricRequirement, ...] = ()
    holds_in: str = ""
    unknown: Unknown | None = None
    last: int = 0
    in_place: bool = False
    ran_out: Mapping[ResourceKey, int] = field(default_factory=dict)
    apart: Sequence[ContainerResource] = ()

    @cached_property
    def current(self) -> Sizes:
        """The requests as they are."""
        return {one.key: one.current for one in self.items}

    @cached_property
    def measured_keys(self) -> frozenset[ResourceKey]:
        """What a metric measures, or has measured before."""
        found = {key for one in self.found or () for key in one.keys}
        return frozenset(found | self.means.measured.keys())

    # --- the two demands ---------------------------------------------------------------------------------------------
    @cached_property
    def mean(self) -> float:
        """How many pods of the VPA's targets make up the usual demand."""
        return self.means.count(self.items, self.requests, self.path.count(self.means.known()))

    @cached_property
    def usual(self) -> dict[ResourceKey, int]:
        """Usual demand."""
        return self.means.demand(self.items, self.requests, self.mean)

    @cached_property
    def settled(self) -> Point:
        """The point of the usual demand on the path; the present sizes where they are near to those of a count that the
        overlap allows."""
        path, usual = self.path, self.usual
        point = path.point(usual)
        if point.binding is None:
            return point
        work = max(1, self.requests.work(point.binding, self.current[point.binding]))
        # The sizes that serve the usual demand at the count that it takes of the pods as they are.
        served = path.sizes(path.counts.clamp(ceil_div(usual[point.binding], work)), usual)
        last = path.count_in(usual, self.margins, point.replicas)
        for count in range(point.replicas, last + 1, 1 + (last - point.replicas) // LOOKED_AT):
            sizes = path.sizes(count, usual)
            if all(self._stays(key, size, served[key]) for key, size in sizes.items()):
                return Point(count, self.current, point.binding, path.short(count, usual))
        return point

    def _stays(self, key: ResourceKey, size: int, served: int) -> bool:
        """Whether a request need not change for the usual demand. More replicas make up for CPU that is missing; for
        memory they don't, so that it must not be less than what is `served` by more than the overlap."""
        if key.resource == "memory" and not self.is_near(key, served) and served > self.current[key]:
            return False
        return self.is_near(key, size, BAND)

    @cached_property
    def requirements(self) -> tuple[MetricRequirement, ...]:
        """What is to be served now: what the metrics call for; the usual demand where there is no HPA; what the pods
        can serve where the HPA has no metrics."""
        if self.found:
            return self.found
        demand = self.usual
        if self.found is None:
            demand = {
                key: self.replicas * self.requests.work(key, size) for key, size in self.current.items()
            }
        return tuple(
            MetricRequirement(f"the usual demand of {key.container} {key.resource}", (key,), amount, 0)
            for key, amount in demand.items()
        )

    @cached_property
    def present(self) -> dict[ResourceKey, int]:
        """Present demand, as far as it is known."""
        return by_targets(self.requirements, self.requests)

    @cached_property
    def urgent_demand(self) -> dict[ResourceKey, int]:
        """Present demand, with more CPU for pods that are saturated."""
        is_same = self.called_for is self.requirements
        return self.present if is_same else by_targets(self.called_for, self.requests)

    @cached_property
    def called_for(self) -> tuple[MetricRequirement, ...]:
        """What is to be served now, with more CPU for pods that are saturated, and with what pods had that ran out of
        memory, up to twice what is usual: more pods are no help to those that need as much each.

        Example: 3 pods of 3 GB ran out of memory at their limits of 4500 MB. They had 13.5 GB, which take 5 pods; where
        5 GB are usual, 10 GB and 4 pods (docs/decisions/0052 has what it is worth)."""
        found = self.urgent or self.requirements
        ran_out = [
            MetricRequirement(
                f"memory that {key.container} ran out of",
                (key,),
                min(amount, MOST_OF_USUAL * self.usual[key]),
                0,
            )
            for key, amount in self.ran_out.items()
        ]
        return (*found, *ran_out) if ran_out else found

    # --- solving -----------------------------------------------------------------------------------------------------
    @cached_property
    def wanted(self) -> Point:
        """Where both demands are served, when nothing is blocked."""
        if self.unknown is not None:
            return replace(self.settled, replicas=self.path.counts.clamp(self.last))
        replicas = self.path.counts.clamp(max(self.measured.replicas, self.last))
        return replace(self.measured, replicas=replicas)

    @cached_property
    def measured(self) -> Point:
        """The same by what is measured alone."""
        if self.found is None:
            return self._kept_up()
        return self._resized_in_place() if self.in_place and self.items else self._replaced()

    def _kept_up(self) -> Point:
        """While the present demand is not measured: nothing shrinks, and pods grow where they don't serve usual demand.
        What they could serve is no demand: on a vertical stretch they would grow by that for ever."""
        count = max(self.path.counts.clamp(self.replicas), self.settled.replicas)
        sizes = self._kept(self.path.enlarged(count, self.current, self.usual))
        return Point(count, sizes, self.settled.binding, self.path.short(count, self.usual))

    def _replaced(self) -> Point:
        """Sizes follow the usual demand, replicas the present one."""
        served = self.path.present(self.settled, self.present)
        sizes = self._kept(served.sizes)
        return replace(served, replicas=self.replicas_for(sizes, may_grow=True), sizes=sizes)

    def _resized_in_place(self) -> Point:
        """Both follow the present demand."""
        demand, path = self._served_in_place(), self.path
        rest = [pods_needed(one, {}, self.requests) for one in self.requirements if not one.keys]
        settled, binding = path.settled(self.replicas, demand, self.margins)
        count = path.counts.clamp(max([settled, *rest]))
        count = max(count, self.held_down_to(path.sizes(count, demand)))
        sizes = path.sizes(count, demand)
        if self.holds_in:
            sizes = {key: max(size, self.current[key]) for key, size in sizes.items()}
            count = max(path.counts.clamp(self.replicas), min(count, self._enough(sizes, demand)))
        return Point(count, self._kept(sizes), binding, path.short(count, demand))

    @cached_property
    def exact(self) -> Sizes:
        """The requests that the path has for what is wanted, whether or not those that there are are near to them."""
        if self.in_place and self.found:
            return self.path.sizes(self.wanted.replicas, self._served_in_place())
        return self.path.sizes(self.settled.replicas, self.usual)

    def _enough(self, sizes: Sizes, demand: Mapping[ResourceKey, int]) -> int:
        """The replicas with which pods of these sizes serve the demand.

        Example: 3 pods of 800m would serve 2400m; where they are 1800m, and nothing is taken away, 2 are enough."""
        counts = [ceil_div(demand[key], max(1, self.requests.work(key, sizes[key]))) for key in demand]
        return max(counts + [pods_needed(one, sizes, self.requests) for one in self.called_for], default=0)

    def _served_in_place(self) -> dict[ResourceKey, int]:
        """What pods must serve that are resized in place: the present demand. What is not measured grows with what is.
        Memory comes too late for a jump of the load, so that its peaks are provided for."""
        demand: dict[ResourceKey, int] = {}
        for item in self.items:
            key, amount = item.key, self.urgent_demand.get(item.key)
            if amount is None:
                demand[key] = math.ceil(self.usual[key] * self._growth)
            else:
                demand[key] = max(self._peaks(item), amount) if key.resource == "memory" else amount
        return demand

    def _peaks(self, item: ContainerResource) -> int:
        """The requests of memory with which the limits hold the peaks that the VPA knows, as far as all pods together
        had such a peak of late; without limits, the usual demand likewise.

        Example: a target of 1500Mi for each of 4 pods is 6000Mi; with limits of 1.5 times the requests, 4000Mi of
        requests are enough."""
        if not item.limit or item.limit <= item.current:
            return self.means.within_peaks(item.key, self.usual[item.key])
        peaks = math.ceil(self.requests.work(item.key, item.target) * self.mean)
        peaks = self.means.within_peaks(item.key, peaks)
        return ceil_div(peaks * item.current, item.limit)

    @cached_property
    def _growth(self) -> Fraction | int:
        """How many times its usual one the present demand is, of what has grown most; 1 where nothing has."""
        grown = [
            Fraction(self.present[key]) / Fraction(mean)
            for key, mean in self.means.measured.items()
            if self.present.get(key, 0) > mean >= 1  # a mean of nothing is next to nothing
        ]
        return max(grown, default=1)

    @property
    def needed(self) -> int | None:
        """The replicas that the present demand takes, however many there are; None where it is not measured."""
        if not self.found or self.unknown is not None:
            return None
        sizes = self.wanted.sizes
        if not (self.in_place and self.items):
            return self._count(self.requirements, sizes, may_grow=True)
        rest = [pods_needed(one, {}, self.requests) for one in self.requirements if not one.keys]
        return self.path.counts.clamp(max([self.path.count(self._served_in_place()), *rest]))

    def replicas_for(self, sizes: Sizes, *, may_grow: bool) -> int:
        """How many pods of these sizes serve the present demand: more where it takes more, fewer where it would take
        fewer with the overlap to spare. `may_grow`: larger pods come first where the path says so."""
        least = self._count(self.called_for, sizes, may_grow)
        if self.found is None:
            return max(least, self.replicas, self.settled.replicas)
        if self.replicas <= least:
            enough = self._count([one.tolerated() for one in self.called_for], sizes, may_grow)
            return least if self.replicas < enough else self.path.counts.clamp(self.replicas)
        enough = self._enough(sizes, self._served_in_place()) if self.in_place and self.items else 0
        return min(
            self.replicas,
            max(least, self.held_down_to(sizes), self._count(self._raised, sizes, may_grow), enough),
        )

    @property
    def _raised(self) -> list[MetricRequirement]:
        return [one.raised(self.margins) for one in self.requirements]

    def held_down_to(self, sizes: Sizes) -> int:
        """Down to which count the HPA's desired replicas let replicas be taken away."""
        if self.holds_in:
            return self.replicas
        return min(self.replicas, self._count(self.held, sizes, may_grow=False))

    def _count(self, requirements: Iterable[MetricRequirement], sizes: Sizes, may_grow: bool) -> int:
        """How many pods of these sizes serve the requirements."""
        counts: list[int] = []
        if may_grow:
            demand = by_sizes(requirements, sizes, self.requests)
            counts = [self.path.replicas(self.settled.replicas, sizes, demand)[0]]
            requirements = [one for one in requirements if not one.keys]
        counts += [pods_needed(one, sizes, self.requests) for one in requirements]
        return self.path.counts.clamp(max(counts, default=0))

    def grown(self, replicas: int, sizes: Sizes) -> Sizes:
        """Sizes, not below these, with which `replicas` that are held serve the present demand."""
        return self.path.enlarged(replicas, sizes, self.present)

    def safe(self, sizes: Sizes) -> int:
        """How many pods serve the present demand while pods are replaced by others of these sizes: the smaller ones
        count, since both are there. Where no pod is smaller, all of them may go."""
        pods = self.requests.pods
        least = {
            key: min(size, self.current[key], pods[key].least if key in pods else size)
            for key, size in sizes.items()
        }
        return self.path.counts.lower if least == sizes else self._count(self._raised, least, may_grow=False)

    def once_measured(self) -> Joint:
        """The solution if what the HPA has measured so far were true of the workload as it is: what waits for the next
        measurement is the difference."""
        return replace(self, holds_in="", last=0)

    @cached_property
    def _requests_now(self) -> Sizes:
        return {one.key: one.current for one in (*self.items, *self.apart)}

    # --- hysteresis --------------------------------------------------------------------------------------------------
    def is_near(self, key: ResourceKey, size: int, times: int = 1) -> bool:
        """Whether the present request is so near to this size that it is left alone: within `times` the overlap, or
        within a thousandth, by which measurements are rounded."""
        current, margin = self._requests_now[key], self.margins[key.resource]
        overlap = max(margin.value, current * margin.percentage // 100)
        return abs(size - current) <= max(times * overlap, current // ROUNDED)

    def _kept(self, sizes: Sizes) -> Sizes:
        return self.current if all(self.is_near(key, size) for key, size in sizes.items()) else sizes
