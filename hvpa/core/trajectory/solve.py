"""Both axes solved together (DESIGN 5.4): from usual and present demand to replicas and sizes, before any gate.

Usual demand decides on the size of pods, present demand on how many there are. Nothing here depends on which
recommender spoke first, or on the way here, but for one thing: inside the overlap, what is there stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

from hvpa.api.values.quantity import Resource, readable_resource
from hvpa.api.values.text import names
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.model import JointResource, JointView
from hvpa.core.path.path import Overlaps, Path, Point, ResourceKey
from hvpa.core.recommenders.desired_replicas import Unknown
from hvpa.core.trajectory.demand import MetricRequirement, Requests, Usual, by_sizes, by_targets, pods_needed
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.workload.containers import ContainerResource

ROUNDED: Final = 1000
"""A size that differs by less than one part of so many is the same one: without an overlap, what measurements are
rounded by would replace pods to and fro."""

Sizes = Mapping[ResourceKey, int]
BAND: Final = 2
"""How many times the overlap a size must be off before pods are replaced for it alone: replicas make up for it."""

LOOKED_AT: Final = 256
"""How many counts inside the overlap are tried: each one where there are no more, else evenly spaced ones."""


@dataclass
class Joint:
    """One decision's solution, found once. Set nothing after it was made.

    `replicas` is the count that there is, `container resources` are what a VPA has targets for, `means` what usual
    demand is reckoned from. `found` is what the metrics call for (empty: there is no HPA; None: the HPA has no metrics,
    and nothing may shrink on a guess; `unknown`: nor grow, since it had some a moment ago), `last` the count that was
    recommended last, which stands while what is measured may be of other pods (0: it is not), `held` what the
    replicas must still be enough for where the HPA wants more than that, `holds_in` why nothing is taken away at all.
    `in_place`: sizes follow the present demand.
    """

    path: Path
    items: Sequence[ContainerResource]
    requests: Requests
    margins: Overlaps
    replicas: int
    means: Usual
    found: tuple[MetricRequirement, ...] | None
    held: tuple[MetricRequirement, ...] = ()
    holds_in: str = ""
    unknown: Unknown | None = None
    last: int = 0
    in_place: bool = False

    @cached_property
    def current(self) -> Sizes:
        """The requests as they are."""
        return {one.key: one.current for one in self.items}

    # --- the two demands ---------------------------------------------------------------------------------------------
    @cached_property
    def usual(self) -> dict[ResourceKey, int]:
        """Usual demand."""
        return self.means.demand(self.items, self.requests, self.mean)

    @cached_property
    def mean(self) -> float:
        """The count of pods that the VPA's targets speak of."""
        return self.means.count(self.items, self.requests, self.path.count(self.means.known()))

    @cached_property
    def point(self) -> Point:
        """The point of the usual demand on the path."""
        return self.path.point(self.usual)

    @cached_property
    def settled(self) -> Point:
        """The same, but sizes that are there stay where they are near to those of a count that the overlap allows."""
        path, usual = self.path, self.usual
        if not usual:
            return Point(path.counts.clamp(self.replicas), {}, None, ())
        point = self.point
        served = self._served_usually(point)
        last = path.count_in(usual, self.margins)
        for count in range(point.replicas, last + 1, 1 + (last - point.replicas) // LOOKED_AT):
            sizes = path.sizes(count, usual)
            if all(self._stays(key, size, served[key]) for key, size in sizes.items()):
                return Point(count, self.current, point.binding, path.short(count, usual))
        return point

    def _served_usually(self, point: Point) -> Sizes:
        """The sizes that serve the usual demand at the count that it takes of the pods that there are."""
        binding = point.binding
        assert binding is not None
        work = max(1, self.requests.work(binding, self.current[binding]))
        count = self.path.counts.clamp(max(1, ceil_div(self.usual[binding], work)))
        return self.path.sizes(count, self.usual)

    def _stays(self, key: ResourceKey, size: int, served: int) -> bool:
        """Whether a request need not change for the usual demand. More replicas make up for CPU that is missing; for
        memory they don't, so that it must not be less than what is `served` by more than the overlap."""
        if key.resource == "memory" and not self.is_near(key, served) and served > self.current[key]:
            return False
        return self.is_near(key, size, BAND)

    @cached_property
    def requirements(self) -> tuple[MetricRequirement, ...]:
        """What is to be served now. Where the HPA has no say: what there is; where there is none: the usual demand."""
        if self.found:
            return self.found
        if self.found is not None:
            return tuple(
                MetricRequirement(f"the usual demand of {key.container} {key.resource}", (key,), amount, 0)
                for key, amount in self.usual.items()
            )
        return tuple(
            MetricRequirement("", (key,), self.replicas * self.requests.work(key, size), 0)
            for key, size in self.current.items()
        )

    @cached_property
    def present(self) -> dict[ResourceKey, int]:
        """Present demand, as far as it is known."""
        return by_targets(self.requirements, self.requests)

    # --- solving -----------------------------------------------------------------------------------------------------
    @cached_property
    def wanted(self) -> Point:
        """Where both demands are served, when nothing is blocked."""
        if self.unknown is not None:
            return replace(self.settled, replicas=self.path.counts.clamp(self.last))
        found = self.measured
        return replace(found, replicas=self.path.counts.clamp(max(found.replicas, self.last)))

    @cached_property
    def measured(self) -> Point:
        """The same by what is measured alone."""
        if not self.settled.sizes:
            return Point(self.replicas_for({}, may_grow=False), {}, None, ())
        if self.found is None:
            return self._kept_up()
        return self._resized_in_place() if self.in_place else self._replaced()

    def _kept_up(self) -> Point:
        """Nobody tells what is to be served now: nothing shrinks, and pods grow where they don't serve usual demand.
        What they could serve is no demand: on a vertical stretch they would grow by that for ever."""
        count = max(self.path.counts.clamp(self.replicas), self.settled.replicas)
        sizes = self._kept(self.path.enlarged(count, self.current, self.usual))
        return Point(count, sizes, self.settled.binding, self.path.short(count, self.usual))

    def _replaced(self) -> Point:
        """Sizes follow the usual demand, replicas the present one."""
        served = self.path.present(self.settled, self.present)
        sizes = self._kept(served.sizes)
        return Point(self.replicas_for(sizes, may_grow=True), sizes, served.binding, served.saturated)

    def _resized_in_place(self) -> Point:
        """Both follow the present demand."""
        demand, path = self._served_in_place(), self.path
        count = path.settled(self.replicas, demand, self.margins)
        rest = [pods_needed(one, {}, self.requests) for one in self.requirements if not self._is_scaled(one)]
        count = path.counts.clamp(max([count, *rest]))
        count = max(count, self._held(path.sizes(count, demand)))
        counts = path.counts_of(demand)
        binding = max(counts, key=counts.__getitem__, default=None)
        sizes = path.sizes(count, demand)
        if self.holds_in:
            sizes = {key: max(size, self.current[key]) for key, size in sizes.items()}
        return Point(count, self._kept(sizes), binding, path.short(count, demand))

    def _served_in_place(self) -> dict[ResourceKey, int]:
        """What pods must serve that are resized in place: the present demand. What is not measured grows with what is.
        Memory can't be taken back from a pod that has it, so that it serves its usual demand at least, which knows the
        peaks of a day."""
        growth = [
            Fraction(self.present[key]) / Fraction(mean)
            for key, mean in self.means.measured.items()
            if key in self.present and mean >= 1  # a mean of nothing is told as next to nothing
        ]
        factor = max([Fraction(1), *growth])
        demand = {key: math.ceil(amount * factor) for key, amount in self.usual.items()}
        for key, amount in self.present.items():
            demand[key] = max(self.usual[key], amount) if key.resource == "memory" else amount
        return demand

    def replicas_for(self, sizes: Sizes, *, may_grow: bool) -> int:
        """How many pods of these sizes serve the present demand: more where it takes more, fewer where it would take
        fewer with the overlap to spare. `may_grow`: larger pods come first where the path says so."""
        least = self._count(self.requirements, sizes, may_grow)
        if self.found is None:
            return max(least, self.replicas, self.settled.replicas)
        if self.replicas <= least:
            enough = self._count([one.tolerated() for one in self.requirements], sizes, may_grow)
            return least if self.replicas < enough else self.path.counts.clamp(self.replicas)
        raised = tuple(one.raised(self.margins) for one in self.requirements)
        return min(self.replicas, max(least, self._held(sizes), self._count(raised, sizes, may_grow)))

    def _held(self, sizes: Sizes) -> int:
        """Down to which count the HPA, as it says, would take replicas away."""
        if self.holds_in:
            return self.replicas
        return min(self.replicas, self._count(self.held, sizes, may_grow=False))

    def _count(self, requirements: Sequence[MetricRequirement], sizes: Sizes, may_grow: bool) -> int:
        path = self.path
        if not may_grow or not sizes:
            pods = [pods_needed(one, sizes, self.requests) for one in requirements]
            return path.counts.clamp(max(pods, default=0))
        rest = [pods_needed(one, sizes, self.requests) for one in requirements if not self._is_scaled(one)]
        demand = by_sizes(requirements, sizes, self.requests)
        scaled, _ = path.replicas(self.settled.replicas, sizes, demand)
        return path.counts.clamp(max([scaled, *rest]))

    def _is_scaled(self, requirement: MetricRequirement) -> bool:
        """Whether a requirement speaks of a request that is scaled here."""
        return any(key in self.path.curves for key in requirement.keys)

    def grown(self, replicas: int, sizes: Sizes) -> Sizes:
        """Sizes, not below these, with which `replicas` that are held serve the present demand."""
        return self.path.enlarged(replicas, sizes, self.present)

    def safe(self, sizes: Sizes) -> int:
        """How many of the pods that there are, and of those that are to be, serve the present demand: the smaller ones
        count, since both are there while pods are replaced. Where none is smaller, all of them may go."""
        pods = self.requests.pods
        least = {
            key: min(size, self.current[key], pods[key].least if key in pods else size)
            for key, size in sizes.items()
        }
        if all(least[key] == size for key, size in sizes.items()):
            return self.path.counts.lower
        raised = tuple(one.raised(self.margins) for one in self.requirements)
        return self._count(raised, least, may_grow=False)

    def once_measured(self) -> Joint:
        """The solution if what the HPA has measured so far were true of the workload as it is: what waits for the next
        measurement is the difference."""
        return replace(self, holds_in="", last=0)

    # --- hysteresis --------------------------------------------------------------------------------------------------
    def is_near(self, key: ResourceKey, size: int, times: int = 1) -> bool:
        """Whether the present request is so near to this size that it is left alone: within `times` the overlap, or
        within a thousandth, by which measurements are rounded."""
        current, margin = self.current[key], self.margins[key.resource]
        overlap = max(margin.value, current * margin.percentage // 100)
        return abs(size - current) <= max(times * overlap, current // ROUNDED)

    def _kept(self, sizes: Sizes) -> Sizes:
        return self.current if all(self.is_near(key, size) for key, size in sizes.items()) else sizes

    # --- telling -----------------------------------------------------------------------------------------------------
    def view(self) -> JointView:
        """All of it, to be told."""
        wanted, usual = self.wanted, self.settled
        return JointView(
            path=self.path,
            mean_replicas=self.mean,
            items=tuple(self._told(item) for item in self.items),
            usual=usual if self.usual else None,
            wanted=wanted,
            because=self._because(),
        )

    def _told(self, item: ContainerResource) -> JointResource:
        key = item.key
        amount = self.present.get(key) if self.found else None
        sources = [one.label for one in self.found or () if key in one.keys]
        size = self.wanted.sizes.get(key, item.current)
        return JointResource(
            key=key,
            base=self.path.curves[key].size_bounds.base,
            current=item.current,
            size=size,
            usual=self.usual[key],
            usual_from=self._usual_from(item),
            usual_replicas=self.path.curves[key].count(self.usual[key]),
            present=amount,
            present_from=f"HPA: {names(sources)}" if sources else "",
            present_replicas=None
            if amount is None
            else ceil_div(amount, max(1, self.requests.work(key, size))),
        )

    def _usual_from(self, item: ContainerResource) -> str:
        told = f"VPA: {readable_resource(item.resource, item.target)} each of {self.mean:.2f} pods"
        measured = item.key in self.means.measured
        return "HPA: mean of what it measured" if measured and item.resource == "cpu" else told

    def _because(self) -> str:
        """What bound the count."""
        counts = self.path.counts
        if self.found is None:
            if self.unknown is None and self.wanted.replicas > self.replicas:
                return f"the usual demand takes {self.wanted.replicas} replicas; the HPA has no metrics now"
            if self.unknown is None:
                return "the HPA has no metrics: nothing shrinks"
            until = readable_timestamp(self.unknown.until)
            return f"{self.unknown.why}: {self.wanted.replicas} replicas were recommended last, and are until {until}"
        pods = [(pods_needed(one, self.wanted.sizes, self.requests), one.label) for one in self.requirements]
        most = max(pods, default=(0, ""))
        if most[0] > self.wanted.replicas:
            return (
                f"{most[1]} asks for {most[0]} replicas, and there may be no more than {self.wanted.replicas}"
            )
        if most[0] == self.wanted.replicas:
            return f"{most[1]} asks for {most[0]} replicas"
        if self.wanted.replicas == counts.lower:
            return f"{most[1]} asks for {most[0]} replicas, and there may be no fewer than {counts.lower}"
        if self.holds_in:
            return f"nothing is taken away: {self.holds_in}"
        asked = f"{most[1]} asks for {most[0]} replicas"
        if self._held(self.wanted.sizes) > most[0]:
            return f"{asked} now, and the HPA still remembers more"
        return f"{asked}, which is inside the overlap"


def spare_resource(items: Sequence[ContainerResource]) -> Resource:
    """Which resource serves what metrics measure that are none: CPU, or memory where CPU is not governed."""
    governed = {item.resource for item in items}
    return "memory" if governed == {"memory"} else "cpu"
