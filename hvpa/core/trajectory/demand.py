"""What an HPA's metrics call for, by container and resource (DESIGN 4 and 5.4): totals over all pods, in millicores and
bytes, without base usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, structs

from hvpa.api.values.quantity import Resource
from hvpa.core.model import PodTotal
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import Overlaps, ResourceKey, Sizes
from hvpa.core.recommenders.estimate import MICRO, MOST_PODS, MetricDemand
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.tuning import BOOST_PERCENT, PINNED_PERCENT, SATURATED_PERCENT, VPA_PERCENT
from hvpa.core.values.weight import FULL


class MetricRequirement(Struct, frozen=True):
    """What one metric calls for: `required` (millicores or bytes) of the requests of `keys` together, without their
    base usage; of a metric that covers no governed request, `pods` (millionths) instead. The pods may serve less by
    `tolerance` (parts per million of what they serve). `is_shared`: it measures containers that are not governed too,
    and how much of it is theirs is not known."""

    label: str
    keys: tuple[ResourceKey, ...]
    required: int
    pods: int
    tolerance: int = 0
    is_shared: bool = False

    @property
    def amount(self) -> int:
        """What is called for: of the requests, or pods in millionths."""
        return self.required if self.keys else self.pods

    @property
    def name(self) -> str:
        """What its amounts are remembered by. A metric calls for pods as long as the VPA has no targets, and for
        requests then: these are amounts of two kinds."""
        return " ".join([self.label, *(f"{key.container}/{key.resource}" for key in self.keys)])

    def scaled(self, amount: int) -> MetricRequirement:
        """The same for this amount."""
        if amount == self.amount:
            return self
        if not self.keys:
            return structs.replace(self, pods=amount)
        return structs.replace(self, required=amount)

    def tolerated(self) -> MetricRequirement:
        """The smallest requirement that is no reason for more pods."""
        whole = FULL + self.tolerance
        return structs.replace(
            self, required=ceil_div(self.required * FULL, whole), pods=ceil_div(self.pods * FULL, whole)
        )

    def raised(self, margins: Overlaps) -> MetricRequirement:
        """The smallest requirement that the boundary for scaling in, lowered by its resource's margin, still holds."""
        if not self.keys:
            margin = Margin(percentage=margins["cpu"].percentage)
            return structs.replace(self, pods=margin.raised(self.pods))
        return structs.replace(self, required=margins[self.keys[0].resource].raised(self.required))


class Requests(Struct, frozen=True):
    """The requests that demand is measured by: as they are `now`, as they were at first sight (`first`), and as the
    pods have them (`pods`, which may be behind); and what of a request is base usage (`reserve`).

    `targets` are the VPA's of what is governed, `limits` the limits of that; `others` are the targets of the pods'
    other containers. `totals` are what pods request as a whole: more than the containers of the template, with injected
    or native sidecars, a LimitRange, or requests of the pod itself. `horizontal`: the weight is 0 everywhere, so that
    metrics call for the HPA's own count. `ran_out`: the memory that pods ran out of lately, together, if they can't get
    more.
    """

    now: Mapping[ResourceKey, int]
    first: Mapping[ResourceKey, int]
    pods: Mapping[ResourceKey, int]
    reserve: Mapping[ResourceKey, Margin]
    targets: Mapping[ResourceKey, int]
    limits: Mapping[ResourceKey, int] = {}
    others: Mapping[ResourceKey, int] = {}
    totals: Mapping[Resource, PodTotal] = {}
    horizontal: bool = False
    ran_out: Mapping[ResourceKey, int] = {}

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
        return self.pods[key] if key in self.pods else self.now.get(key, 0)

    def of_pod(self, resource: Resource, container: str) -> int:
        """What a measured pod requests of all that a metric covers, governed or not."""
        if container:
            return self.measured(ResourceKey(container, resource))
        total = self.totals.get(resource)
        if total is None:
            return sum(self.measured(key) for key in self.now if key.resource == resource)
        return total.requested

    def limit_of_pod(self, container: str) -> int:
        """The CPU that a pod, or a container of it, can't use more of; LARGEST where there is no such limit."""
        keys = [key for key in self.now if key.resource == "cpu" and container in ("", key.container)]
        if any(key not in self.limits for key in keys) or self.of_pod("cpu", container) > sum(
            map(self.measured, keys)
        ):
            return LARGEST
        return sum(self.limits[key] for key in keys)

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


def requirements(demands: Iterable[MetricDemand], requests: Requests) -> tuple[MetricRequirement, ...]:
    """What the metrics call for, in requests. A metric that measures no governed resource calls for the HPA's own
    count."""
    return tuple(_requirement(one, requests) for one in demands)


def boosted(demands: Iterable[MetricDemand], requests: Requests) -> tuple[MetricDemand, ...]:
    """The demands, of which the CPU of saturated pods counts `BOOST_PERCENT` of what it calls for at
    `SATURATED_PERCENT`. What is measured beyond that was not cut off.

    Example: 4 pods that request 500m use 600m each, 120 percent. A target of 80 percent calls for 3000m of requests;
    115 percent call for 2875m, and 150 percent of that are 4313m. Pods that use 1000m each call for 5000m anyway."""
    return tuple(_boosted(one, requests) for one in demands)


def _boosted(demand: MetricDemand, requests: Requests) -> MetricDemand:
    """The demand of one metric, as `boosted` has it (docs/decisions/0062): at least `BOOST_PERCENT` of
    `SATURATED_PERCENT` of the requests, where as much as `SATURATED_PERCENT` of them is used.

    Example: of 500m, 115 percent are 575m, and 150 percent of that 862.5m. A pod that uses 600m (so it is saturated)
    counts as if it used these 862.5m: its demand is scaled by 862.5 / 600 = 1.44. From 862.5m on it stays as it is.
    """
    if demand.resource != "cpu" or not demand.used:
        return demand
    requested = requests.of_pod("cpu", demand.container)
    # A target above 100 percent says that pods are meant to use more than they request; so does an absolute one.
    first = max(1, requests.of_pod_at_first("cpu", demand.container))
    meant = requested * demand.per_pod // first if demand.per_pod else requested * demand.utilization // 100
    requested = max(requested, meant)
    full = min(requested * SATURATED_PERCENT, requests.limit_of_pod(demand.container) * PINNED_PERCENT)
    least = full * BOOST_PERCENT
    if requested <= 0 or demand.used * 100 < full or demand.used * 10_000 >= least:
        return demand
    pods = min(ceil_div(demand.pods * least, demand.used * 10_000), MOST_PODS)
    scaled = demand.scaled(pods)
    return structs.replace(scaled, label=f"{demand.label} beyond its requests", counted=demand.counted)


def _requirement(demand: MetricDemand, requests: Requests) -> MetricRequirement:
    """What one metric calls for.

    Example: 4 pods of an app (governed) and an injected proxy, target 50 percent; the app uses 250m of each pod, the
    proxy 250m, and their VPA targets are alike. In use are 2000m, which call for 4000m; 2000m of that are the app's.
    """
    pod = None if demand.resource is None else _pod(demand, demand.resource, requests)
    if pod is None or not pod.keys or pod.whole <= 0:
        return MetricRequirement(demand.label, (), 0, demand.pods, demand.tolerance)
    called = ceil_div(demand.pods * pod.reference, MICRO) if demand.requested is None else demand.requested
    # What was measured is the base usage of pods as they are, however many or large the target is meant for.
    idle = pod.governed - sum(requests.work(key, requests.measured(key)) for key in pod.keys)
    if demand.requested is None and not demand.absolute:
        idle = demand.pods * idle // MICRO
    else:
        idle *= demand.counted
    required = max(0, called - idle - _others(demand, pod, called, requests))
    if ran_out := sum([requests.ran_out.get(key, 0) for key in pod.keys]):
        use, call = _target(demand, pod)
        required = max(required, ceil_div(ran_out * call, max(1, use)))
    elif requests.horizontal:
        required = min(required, ceil_div(demand.pods * _work_of_one(demand, pod, requests), MICRO))
    is_shared = not demand.container and pod.unknown > 0
    return MetricRequirement(demand.label, pod.keys, required, demand.pods, demand.tolerance, is_shared)


class _Pod(NamedTuple):
    """A pod as a metric measured it: what it requests of what the metric covers (`whole`), the part of its governed
    containers (`governed`, `keys`), the part of those without a VPA target (`unknown`), the VPA's targets of the
    `others`, and what pods request for which the metric's target is meant (`reference`)."""

    keys: tuple[ResourceKey, ...]
    governed: int
    whole: int
    unknown: int
    others: Mapping[ResourceKey, int]
    reference: int


def _pod(demand: MetricDemand, resource: Resource, requests: Requests) -> _Pod:
    """The pods of a metric. Targets are meant for pods as they were at first sight where they are absolute, and for the
    measured ones where they are not."""
    keys = requests.covered(resource, demand.container)
    governed = sum(requests.measured(key) for key in keys)
    whole = max(governed, requests.of_pod(resource, demand.container))
    # A governed container that requests nothing yet serves nothing, and uses its part all the same.
    others = {
        key: target
        for key, target in (*requests.others.items(), *requests.targets.items())
        if key.resource == resource and key not in keys
    }
    unknown = max(0, whole - governed - sum(map(requests.measured, others)))
    first = requests.of_pod_at_first(resource, demand.container)
    return _Pod(keys, governed, whole, unknown, others, first if demand.absolute else whole)


def _work_of_one(demand: MetricDemand, pod: _Pod, requests: Requests) -> int:
    """What a pod that the metric's target is meant for has for work."""
    sizes = {key: requests.at_first([key]) if demand.absolute else requests.measured(key) for key in pod.keys}
    return sum(requests.work(key, size) for key, size in sizes.items())


def _target(demand: MetricDemand, pod: _Pod) -> tuple[int, int]:
    """Two numbers whose ratio is that of use to the requests it calls for: at a target of 80 percent, 80 and 100."""
    return (demand.per_pod or 0, pod.reference) if demand.absolute else (demand.utilization, 100)


def _others(demand: MetricDemand, pod: _Pod, called: int, requests: Requests) -> int:
    """What of the requests that a metric of the whole pod calls for is used by containers that are not governed. With a
    VPA target: their share by VPA targets, but no more than their targets, since a load that the VPA has not seen yet
    is the app's. Without: what is left beside the others' targets, and at least as large a share of their requests as
    pods are called for of theirs, but no more than they request (docs/decisions/0062).

    Example: each of 4 pods, an app of 500m and a native sidecar of 500m, uses 375m; target 50 percent. The app's VPA
    target is 288m, of which it uses 250m. So the sidecar uses 125m: of 3000m that are called for, 1000m are the
    sidecars'. But 3000m are three quarters of what pods request, so 1500m are. Of 5000m, 2000m would be theirs.
    """
    use, call = _target(demand, pod)
    if demand.container or not use:
        return 0
    of_app, known = sum(requests.targets[key] for key in pod.keys), sum(pod.others.values())
    calls = 100 * call * demand.counted  # of a target in percent of `VPA_PERCENT * use`
    of_known = min(known * calls // (VPA_PERCENT * use), called * known // max(1, of_app + known))
    left, whole = max(0, called - of_known), pod.governed + pod.unknown
    share = min(left, whole * demand.counted) * pod.unknown // whole
    beside = min(left - of_app * calls // (VPA_PERCENT * use), pod.unknown * demand.counted)
    return of_known + max(share, beside)


def pods_needed(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> int:
    """How many pods of these sizes a requirement takes."""
    if not requirement.keys:
        return ceil_div(requirement.pods, MICRO)
    return ceil_div(requirement.required, max(1, serves(requirement, sizes, requests)))


def serves(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> int:
    """How much of a requirement a pod of these sizes serves, in millicores or bytes."""
    return sum(_works(requirement, sizes, requests).values())


def by_sizes(found: Iterable[MetricRequirement], sizes: Sizes, requests: Requests) -> dict[ResourceKey, int]:
    """The requirements by container and resource, each shared in the proportion of `sizes`, so that each part takes as
    many pods of them as the whole; the largest of each counts."""
    demand: dict[ResourceKey, int] = {}
    for requirement in found:
        works = _works(requirement, sizes, requests)
        total = max(1, sum(works.values()))
        for key, work in works.items():
            demand[key] = max(demand.get(key, 0), ceil_div(requirement.required * work, total))
    return demand


def by_targets(found: Iterable[MetricRequirement], requests: Requests) -> dict[ResourceKey, int]:
    """The demand of each container and resource: what a metric measures of the whole pod is shared in the proportion of
    their VPA targets, less base usage; the largest of each counts. An example: of 1900m that are called for, 1800m are
    those of an app whose target is 1035m, and 100m those of a proxy whose target is 58m, whatever they request."""
    demand: dict[ResourceKey, int] = {}
    for requirement in found:
        works = _works(requirement, requests.now if requests.horizontal else requests.targets, requests)
        if not any(works.values()):
            works = _works(requirement, requests.now, requests)
        total = sum(works.values())
        for key, work in works.items():
            demand[key] = max(demand.get(key, 0), ceil_div(requirement.required * work, total))
    return demand


def _works(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> dict[ResourceKey, int]:
    """What a pod of these sizes has left for the work of a requirement, by container resource."""
    return {key: requests.work(key, sizes[key]) for key in requirement.keys}
