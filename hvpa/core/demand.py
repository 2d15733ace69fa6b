"""The two speeds of demand, by container and resource (DESIGN 4 and 5.4): usual demand, of which a VPA's targets tell,
and present demand, of which an HPA's metrics tell. Totals over all pods, in millicores and bytes, without base usage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from hvpa.api.quantity import Resource
from hvpa.core.blend import ceil_div
from hvpa.core.estimate import MICRO, MetricDemand
from hvpa.core.model import PodSize
from hvpa.core.path import Overlaps, SlotKey
from hvpa.core.path_curve import Margin
from hvpa.core.slots import RESOURCES, Slot
from hvpa.core.weights import FULL

_CLOSE: Final = 1e-6


class Claim(Struct, frozen=True):
    """What one metric calls for: `required` (millicores or bytes) of the requests of `keys` together, without their
    base usage. One that speaks of no request asks for `pods` (millionths) instead. What there is may be less by
    `tolerance` (parts per million of what there is)."""

    label: str
    keys: tuple[SlotKey, ...]
    required: int
    pods: int
    tolerance: int = 0

    def tolerated(self) -> Claim:
        """The smallest that there may be without a reason for more."""
        whole = FULL + self.tolerance
        return structs.replace(
            self, required=ceil_div(self.required * FULL, whole), pods=ceil_div(self.pods * FULL, whole)
        )

    def raised(self, margins: Overlaps) -> Claim:
        """The smallest claim that the boundary for scaling in, lowered by its resource's margin, still holds."""
        if not self.keys:
            margin = Margin(percentage=margins["cpu"].percentage)
            return structs.replace(self, pods=margin.raised(self.pods))
        return structs.replace(self, required=margins[self.keys[0].resource].raised(self.required))


class Requests(Struct, frozen=True):
    """The requests that demand is measured by: as they are `now`, as they were at first sight (`first`), and as the
    pods have them (`pods`, which may be behind), each by container and resource; and what of a request is base usage.
    """

    now: Mapping[SlotKey, int]
    first: Mapping[SlotKey, int]
    pods: Mapping[SlotKey, PodSize]
    reserve: Mapping[SlotKey, Margin]

    def covered(self, resource: Resource, container: str) -> tuple[SlotKey, ...]:
        """The requests that a metric of this resource speaks of (`container` "": of all containers)."""
        return tuple(
            key
            for key, request in self.now.items()
            if key.resource == resource and container in ("", key.container) and request > 0
        )

    def work(self, key: SlotKey, size: int) -> int:
        """What a pod of this size has left for work."""
        margin = self.reserve.get(key)
        return size if margin is None else margin.work(size)


class Usual(Struct, frozen=True):
    """What usual demand is reckoned from: means of what was measured, by container and resource, and the mean of the
    replica counts that the VPA's targets speak of."""

    measured: Mapping[SlotKey, float]
    replicas: float = 0.0

    def known(self) -> dict[SlotKey, int]:
        """The means, rounded up."""
        return {key: math.ceil(mean - _CLOSE) for key, mean in self.measured.items()}

    def count(self, slots: Iterable[Slot], requests: Requests, usual: int) -> float:
        """How many pods the VPA's targets speak of: as many as it takes of them to use what was measured (of CPU, or of
        memory where CPU is not measured), since all targets change together when pods are of another size.

        That holds as far as targets tell of work. Those of idle pods don't (the recommender has a least target), and
        HPA and VPA may keep different headrooms; so it is a number between the mean count and `usual`, the one that
        serves what was measured."""
        for resource in RESOURCES:
            pairs = [
                (self.measured[slot.key], requests.work(slot.key, slot.target))
                for slot in slots
                if slot.resource == resource and slot.key in self.measured
            ]
            if (work := sum(one for _, one in pairs)) > 0:
                told = sum(mean for mean, _ in pairs) / work
                return min(max(told, min(usual, self.replicas)), max(usual, self.replicas))
        return self.replicas

    def demand(self, slots: Sequence[Slot], requests: Requests, count: float) -> dict[SlotKey, int]:
        """What the pods usually need together: the mean of what was measured; else VPA target times the `count` that it
        speaks of. Of memory the larger of both: the VPA knows a day's peaks, and containers that ran out of it."""
        known, found = self.known(), dict[SlotKey, int]()
        for slot in slots:
            key = slot.key
            told = math.ceil(requests.work(key, slot.target) * count - _CLOSE)
            if key in known:
                told = max(known[key], told) if key.resource == "memory" else known[key]
            found[key] = told
        return found


def claims(demands: Iterable[MetricDemand], requests: Requests, spare: Resource) -> tuple[Claim, ...]:
    """What the metrics call for, in requests. Metrics that are no resource speak of `spare` (CPU, or memory where CPU
    is not governed)."""
    return tuple(_claim(one, requests, spare) for one in demands)


def _claim(demand: MetricDemand, requests: Requests, spare: Resource) -> Claim:
    keys = requests.covered(demand.resource or spare, demand.container)
    reference = _reference(demand, keys, requests)
    total = sum(reference.values())
    if total <= 0:
        return Claim(demand.label, (), 0, demand.pods, demand.tolerance)
    if demand.requested is None and not demand.absolute:
        work = sum(requests.work(key, size) for key, size in reference.items())
        return Claim(demand.label, keys, ceil_div(demand.pods * work, MICRO), demand.pods, demand.tolerance)
    # What was measured is the base usage of pods as they are, however many or large the target is meant for.
    measured = {key: _measured(key, requests) for key in keys}
    idle = sum(size - requests.work(key, size) for key, size in measured.items())
    called = ceil_div(demand.pods * total, MICRO) if demand.requested is None else demand.requested
    required = max(0, called - demand.counted * idle)
    return Claim(demand.label, keys, required, demand.pods, demand.tolerance)


def _reference(demand: MetricDemand, keys: tuple[SlotKey, ...], requests: Requests) -> dict[SlotKey, int]:
    """The requests of a pod as the metric's target means it: as at first sight for absolute targets, but not less than
    the target itself, and as the measured pods have them for others."""
    if not demand.absolute:
        return {key: _measured(key, requests) for key in keys}
    found = {key: requests.first.get(key) or requests.now[key] for key in keys}
    total = sum(found.values())
    if demand.per_pod is not None and 0 < total < demand.per_pod:
        found = {key: ceil_div(size * demand.per_pod, total) for key, size in found.items()}
    return found


def _measured(key: SlotKey, requests: Requests) -> int:
    """What the measured pods request, in the mean."""
    return requests.pods[key].mean if key in requests.pods else requests.now[key]


def pods_needed(claim: Claim, sizes: Mapping[SlotKey, int], requests: Requests) -> int:
    """How many pods of these sizes (what is missing stays as it is) a claim takes."""
    if not claim.keys:
        return ceil_div(claim.pods, MICRO)
    work = sum(requests.work(key, sizes.get(key, requests.now[key])) for key in claim.keys)
    return ceil_div(claim.required, max(1, work))


def limited(claim: Claim, pods: int, requests: Requests) -> Claim:
    """A claim of no more than so many pods, as they are, can serve."""
    if not claim.keys:
        return structs.replace(claim, pods=min(claim.pods, pods * MICRO))
    most = pods * sum(requests.work(key, requests.now[key]) for key in claim.keys)
    return structs.replace(claim, required=min(claim.required, most))


def shared(found: Iterable[Claim], sizes: Mapping[SlotKey, int], requests: Requests) -> dict[SlotKey, int]:
    """The claims by container and resource, each shared in the proportion of `sizes`; the largest of each counts. Those
    that are not in `sizes` are left out."""
    demand: dict[SlotKey, int] = {}
    for claim in found:
        works = {key: requests.work(key, sizes.get(key, requests.now[key])) for key in claim.keys}
        total = max(1, sum(works.values()))
        for key, work in works.items():
            if key in sizes:
                demand[key] = max(demand.get(key, 0), ceil_div(claim.required * work, total))
    return demand
