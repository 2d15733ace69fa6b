"""The two speeds of demand, by container and resource (DESIGN 4 and 5.4): usual demand, from a VPA's targets, and
present demand, from an HPA's metrics. Totals over all pods, in millicores and bytes, without base usage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field, structs

from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.model import PodSize, PodTotal
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import Overlaps, ResourceKey, Sizes
from hvpa.core.recommenders.estimate import MICRO, MOST_PODS, MetricDemand
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource

_CLOSE: Final = 1e-6
TARGET_PERCENT: Final = 115
"""What a VPA targets of what is used: 15 percent more (`--recommendation-margin-fraction` of the recommender)."""


SATURATED_PERCENT: Final = 115
"""From this usage of the requests on, pods may want more CPU than they get: saturated pods. (The condition `Saturated`
is about replicas and requests at their ends.)"""
PEAK_PERCENT: Final = 150
"""So much of a peak of memory is provided for: pods are not all alike, and the next peak may be larger
(docs/decisions/0039 has what it is worth)."""
BOOST_REPLACED: Final = 150
BOOST_IN_PLACE: Final = 200
"""What saturated CPU counts for, in percent: a proportional rule climbs in small steps while each measurement is cut
off at what pods can get (docs/decisions/0032 has what it is worth)."""


class MetricRequirement(Struct, frozen=True):
    """What one metric calls for: `required` (millicores or bytes) of the requests of `keys` together, without their
    base usage; of a metric that covers no governed request, `pods` (millionths) instead. The pods may serve less by
    `tolerance` (parts per million of what they serve).

    Each pod serves with `beside` as well: what its other containers request. `own` is what of `required` is the demand
    of `keys` themselves (None: all of it)."""

    label: str
    keys: tuple[ResourceKey, ...]
    required: int
    pods: int
    tolerance: int = 0
    beside: int = 0
    own: int | None = None

    @property
    def governed(self) -> int:
        """What of `required` is the demand of `keys` themselves."""
        return self.required if self.own is None else self.own

    def tolerated(self) -> MetricRequirement:
        """The smallest requirement that is no reason for more pods."""
        whole = FULL + self.tolerance
        return structs.replace(
            self, required=ceil_div(self.required * FULL, whole), pods=ceil_div(self.pods * FULL, whole)
        )

    def raised(self, margins: Overlaps) -> MetricRequirement:
        """The smallest requirement that the boundary for scaling in, lowered by its resource's margin, still holds.
        What the other containers of the pods use is not raised: with each pod that goes, some of it goes."""
        if not self.keys:
            margin = Margin(percentage=margins["cpu"].percentage)
            return structs.replace(self, pods=margin.raised(self.pods))
        raised = margins[self.keys[0].resource].raised(self.governed)
        return structs.replace(self, required=self.required + raised - self.governed)


class Requests(Struct, frozen=True):
    """The requests that demand is measured by: as they are `now`, as they were at first sight (`first`), and as the
    pods have them (`pods`, which may be behind); and what of a request is base usage (`reserve`).

    `targets` are the VPA's of what is governed, `others` those of the pods' other containers. `totals` are what pods
    request as a whole: more than the containers of the template, with injected or native sidecars, a LimitRange, or
    requests of the pod itself.
    """

    now: Mapping[ResourceKey, int]
    first: Mapping[ResourceKey, int]
    pods: Mapping[ResourceKey, PodSize]
    reserve: Mapping[ResourceKey, Margin]
    targets: Mapping[ResourceKey, int]
    others: Mapping[ResourceKey, int] = {}
    totals: Mapping[Resource, PodTotal] = {}

    def covered(self, resource: Resource, container: str) -> tuple[ResourceKey, ...]:
        """The governed requests that a metric of this resource covers (`container` "": of all containers). None where
        the pods have requests of their own: those hold whatever their containers request."""
        if not container and self._is_whole(resource):
            return ()
        return tuple(
            key
            for key, request in self.now.items()
            if key in self.targets
            and key.resource == resource
            and container in ("", key.container)
            and request > 0
        )

    def work(self, key: ResourceKey, size: int) -> int:
        """What a pod of this size has left for work."""
        margin = self.reserve.get(key)
        return size if margin is None else margin.work(size)

    def measured(self, key: ResourceKey) -> int:
        """What the measured pods request of this container and resource, in the mean."""
        return self.pods[key].mean if key in self.pods else self.now.get(key, 0)

    def of_pod(self, resource: Resource, container: str) -> int:
        """What a measured pod requests of all that a metric covers, governed or not."""
        if container:
            return self.measured(ResourceKey(container, resource))
        total = self.totals.get(resource)
        if total is None:
            return sum(self.measured(key) for key in self.now if key.resource == resource)
        return total.requested

    def of_pod_at_first(self, resource: Resource, container: str) -> int:
        """The same with the template's containers as they were at first sight."""
        whole = self.of_pod(resource, container)
        if not container and self._is_whole(resource):
            return whole
        keys = [key for key in self.now if key.resource == resource and container in ("", key.container)]
        return self.at_first(keys) + max(0, whole - sum(self.measured(key) for key in keys))

    def at_first(self, keys: Iterable[ResourceKey]) -> int:
        """What these container resources requested together at first sight; one that was never seen counts as it is."""
        return sum(self.first.get(key) or self.now[key] for key in keys)

    def _is_whole(self, resource: Resource) -> bool:
        total = self.totals.get(resource)
        return total is not None and total.is_whole


class Usual(Struct, frozen=True):
    """What usual demand is calculated from: means of what was measured, and the mean of the replica counts during which
    the VPA's targets were measured. And the `peaks` of memory that was measured of late."""

    measured: Mapping[ResourceKey, float]
    replicas: float = 0.0
    peaks: Mapping[ResourceKey, int] = field(default_factory=dict)

    def known(self) -> dict[ResourceKey, int]:
        """The means, rounded up."""
        return {key: math.ceil(mean - _CLOSE) for key, mean in self.measured.items()}

    def count(self, items: Iterable[ContainerResource], requests: Requests, usual: int) -> float:
        """How many pods of the VPA's targets make up the usual demand: as many as it takes to use what was measured (of
        CPU, or of memory where CPU is not measured), since all targets change together when pods are of another size.

        Targets of idle pods show no work (the recommender has a least target), and HPA and VPA may keep different
        headrooms; so it is a number between the mean count and `usual`, the one that serves what was measured.
        Example: 3500m measured, a target of 1000m: 3.5."""
        for resource in RESOURCES:
            measured = [one for one in items if one.resource == resource and one.key in self.measured]
            if (work := sum(requests.work(one.key, one.target) for one in measured)) > 0:
                by_measured = sum(self.measured[one.key] for one in measured) / work
                return min(max(by_measured, min(usual, self.replicas)), max(usual, self.replicas))
        return self.replicas

    def demand(
        self, items: Sequence[ContainerResource], requests: Requests, count: float
    ) -> dict[ResourceKey, int]:
        """What the pods usually need together: the mean of what was measured; else VPA target times `count`. Of memory
        the larger of both: the VPA knows a day's peaks, and containers that ran out of it."""
        known, found = self.known(), dict[ResourceKey, int]()
        for item in items:
            by_target = math.ceil(requests.work(item.key, item.target) * count - _CLOSE)
            measured = known.get(item.key, by_target)
            found[item.key] = max(measured, by_target) if item.resource == "memory" else measured
        return found

    def within_peaks(self, key: ResourceKey, amount: int) -> int:
        """An amount of memory, but no more than `PEAK_PERCENT` of what all pods called for together of late.

        Example: a target of 11Gi, which one of 2 pods had, for 4 pods is 44Gi; together they never called for more than
        16Gi, so that 24Gi are enough."""
        peak = self.peaks.get(key)
        return amount if peak is None else min(amount, peak * PEAK_PERCENT // 100)


def requirements(
    demands: Iterable[MetricDemand], requests: Requests, spare: Resource
) -> tuple[MetricRequirement, ...]:
    """What the metrics call for, in requests. What is measured of no resource is served by `spare` (CPU, or memory
    where CPU is not governed)."""
    return tuple(_requirement(one, requests, spare) for one in demands)


def boosted(demands: Iterable[MetricDemand], requests: Requests, percent: int) -> tuple[MetricDemand, ...]:
    """The demands, of which the CPU of saturated pods counts `percent` of what it calls for at `SATURATED_PERCENT`.
    What is measured beyond that was not cut off.

    Example: 4 pods that request 500m use 600m each, 120 percent. A target of 80 percent calls for 3000m of requests;
    115 percent call for 2875m, and 150 percent of that are 4313m. Pods that use 1000m each call for 5000m anyway."""
    return tuple(_boosted(one, requests, percent) for one in demands)


def _boosted(demand: MetricDemand, requests: Requests, percent: int) -> MetricDemand:
    """The demand of one metric, as `boosted` has it (docs/decisions/0032): at least `percent` of `SATURATED_PERCENT` of
    the requests, where as much as `SATURATED_PERCENT` of them is used.

    Example: of 500m, 115 percent are 575m, and 150 percent of that 862.5m. A pod that uses 600m (so it is saturated)
    counts as if it used these 862.5m: its demand is scaled by 862.5 / 600 = 1.44. From 862.5m on it stays as it is.
    """
    if demand.resource != "cpu" or not demand.used:
        return demand
    # A target above 100 percent says that pods are meant to use more than they request.
    requested = requests.of_pod("cpu", demand.container) * max(100, demand.utilization) // 100
    least = requested * SATURATED_PERCENT * percent
    if requested <= 0 or demand.used * 100 < requested * SATURATED_PERCENT or demand.used * 10_000 >= least:
        return demand
    pods = min(ceil_div(demand.pods * least, demand.used * 10_000), MOST_PODS)
    scaled = demand.scaled(pods)
    return structs.replace(scaled, label=f"{demand.label} beyond its requests", counted=demand.counted)


def _requirement(demand: MetricDemand, requests: Requests, spare: Resource) -> MetricRequirement:
    """What one metric calls for.

    An example: 4 pods with an app of 500m (governed) and an injected proxy of 500m, target 50 percent; the app uses
    250m per pod, the proxy 250m. In use are 2000m, so pods must request 4000m together: `required`. Each brings the
    500m of its proxy along (`beside`): 4 pods of 500m for the app are enough, as for the HPA, or 3 of 834m. By VPA
    targets (288m each) half of the use is the app's: `own` is 2000m.
    """
    pod = _pod(demand, requests, spare)
    if pod.whole <= 0:
        return MetricRequirement(demand.label, (), 0, demand.pods, demand.tolerance)
    called = ceil_div(demand.pods * pod.reference, MICRO) if demand.requested is None else demand.requested
    if not pod.keys:
        return MetricRequirement(demand.label, (), 0, ceil_div(called * MICRO, pod.whole), demand.tolerance)
    # What was measured is the base usage of pods as they are, however many or large the target is meant for.
    idle = pod.governed - sum(requests.work(key, requests.measured(key)) for key in pod.keys)
    if demand.requested is None and not demand.absolute:
        idle = demand.pods * idle // MICRO
    else:
        idle *= demand.counted
    used, beyond = _others(demand, pod, called, requests)
    return MetricRequirement(
        label=demand.label,
        keys=pod.keys,
        required=max(0, called - idle - beyond),
        pods=demand.pods,
        tolerance=demand.tolerance,
        beside=pod.whole - pod.governed,
        own=max(0, called - idle - used) if used else None,
    )


class _Pod(NamedTuple):
    """A pod as a metric measured it: what it requests of what the metric covers (`whole`), the part of its governed
    containers (`governed`, `keys`), and what pods request for which the metric's target is meant (`reference`)."""

    keys: tuple[ResourceKey, ...]
    governed: int
    whole: int
    reference: int


def _pod(demand: MetricDemand, requests: Requests, spare: Resource) -> _Pod:
    """The pods of a metric. Targets are meant for pods as they were at first sight where they are absolute, but not for
    less than the target itself, and for the measured ones where they are not. What is no resource is done by what is
    governed, where anything is."""
    resource = demand.resource or spare
    keys = requests.covered(resource, demand.container)
    whole = governed = sum(requests.measured(key) for key in keys)
    first = requests.at_first(keys)
    if demand.resource is not None or not keys:
        whole = max(governed, requests.of_pod(resource, demand.container))
        first = requests.of_pod_at_first(resource, demand.container)
    return _Pod(keys, governed, whole, max(first, demand.per_pod or 0) if demand.absolute else whole)


def _others(demand: MetricDemand, pod: _Pod, called: int, requests: Requests) -> tuple[int, int]:
    """The ungoverned containers of the pods, of which a metric of the whole pod measured something: what of the
    requests that the metric calls for is used by them, and how much of that is beyond what their own requests serve.

    All share in what is `called` for by VPA targets, but those that have one have no more than their target: a load
    that the VPA has not seen yet is the app's. One that has no target is taken to use as much of its request as the
    HPA's target: of 500m at 50 percent 250m, for which a VPA's target would be 288m.

    Of a utilization, what they use beyond their own requests is no demand. An example: 8 pods of an app and a proxy of
    500m each at a target of 50 percent; the app uses 125m, the proxy 500m, and of that the targets are made. The HPA
    calls for 10000m and goes out for ever, since each pod more calls for 1000m more and brings 1000m. By targets 8000m
    of the 10000m are the proxies', which request 4000m. The other 4000m are no demand: 6 pods of 1000m are enough, and
    at last 4, whose apps then use half of their requests.
    """
    use, call = demand.utilization, 100  # what is used is to what it calls for as the one to the other
    if demand.absolute:
        use, call = demand.per_pod or 0, pod.reference
    if demand.container or not use:
        return 0, 0
    # A governed container that requests nothing yet serves nothing, and uses its part all the same.
    found = {
        key: target
        for key, target in (*requests.others.items(), *requests.targets.items())
        if key.resource == demand.resource and key not in pod.keys
    }
    known, requested = sum(found.values()), sum(requests.measured(key) for key in found)
    rest = max(0, pod.whole - pod.governed - requested) * use * TARGET_PERCENT // (call * 100)
    total = max(1, sum(requests.targets[key] for key in pod.keys) + known + rest)
    most = known * 100 * call * demand.counted // (TARGET_PERCENT * use)
    of_known = min(most, called * known // total)
    beyond = 0 if demand.absolute else max(0, of_known - requested * demand.counted)
    return of_known + called * rest // total, beyond


def pods_needed(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> int:
    """How many pods of these sizes a requirement takes."""
    if not requirement.keys:
        return ceil_div(requirement.pods, MICRO)
    work = sum(_works(requirement, sizes, requests).values())
    return ceil_div(requirement.required, max(1, work + requirement.beside))


def by_sizes(found: Iterable[MetricRequirement], sizes: Sizes, requests: Requests) -> dict[ResourceKey, int]:
    """The requirements by container and resource, each shared in the proportion of `sizes`, so that each part takes as
    many pods of them as the whole; the largest of each counts."""
    demand: dict[ResourceKey, int] = {}
    for requirement in found:
        works = _works(requirement, sizes, requests)
        total = max(1, sum(works.values()) + requirement.beside)
        for key, work in works.items():
            demand[key] = max(demand.get(key, 0), ceil_div(requirement.required * work, total))
    return demand


def by_targets(found: Iterable[MetricRequirement], requests: Requests) -> dict[ResourceKey, int]:
    """The demand of each container and resource: what a metric measures of the whole pod is shared in the proportion of
    their VPA targets, less base usage; the largest of each counts. An example: of 1900m that are called for, 1800m are
    those of an app whose target is 1035m, and 100m those of a proxy whose target is 58m, whatever they request."""
    demand: dict[ResourceKey, int] = {}
    for requirement in found:
        works = _works(requirement, requests.targets, requests)
        if not any(works.values()):
            works = _works(requirement, requests.now, requests)
        total = sum(works.values())
        for key, work in works.items():
            demand[key] = max(demand.get(key, 0), ceil_div(requirement.governed * work, total))
    return demand


def _works(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> dict[ResourceKey, int]:
    """What a pod of these sizes has left for the work of a requirement, by container resource."""
    return {key: requests.work(key, sizes[key]) for key in requirement.keys}
