"""Demand of an HPA's metrics by container and resource (DESIGN 4 and 5.4): totals over all pods, in millicores and
bytes, without base usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from msgspec import Struct, structs

from hvpa.api.values.quantity import Resource
from hvpa.core.model import PodTotal
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import Overlaps, ResourceKey, Sizes
from hvpa.core.recommenders.estimate import MICRO, MOST_PODS, MetricDemand
from hvpa.core.values.arithmetic import LARGEST, ceil_div
from hvpa.core.values.tuning import (
    BOOST_PERCENT,
    NEEDED_UP_TO_PERCENT,
    OOM_PERCENT,
    PINNED_PERCENT,
    PRESENT_FROM_PERCENT,
    SATURATED_PERCENT,
    VPA_PERCENT,
)
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import SHARED


class MetricRequirement(Struct, frozen=True):
    """The demand of a single metric."""

    label: str
    keys: tuple[ResourceKey, ...]
    """The governed requests that the metric covers; empty if it covers none."""
    required: int
    """Total of these requests that the metric needs, without base usage, in millicores or bytes."""
    pods: int
    """Pods that the metric needs, in millionths; used if `keys` is empty."""
    tolerance: int = 0
    """The pods may serve less than the requirement by this many parts per million of the amount that they serve."""
    is_shared: bool = False
    """Whether the metric also measures containers that HVPA does not govern and whose share is unknown."""

    @property
    def amount(self) -> int:
        """The amount required: requests, or pods in millionths."""
        return self.required if self.keys else self.pods

    @property
    def name(self) -> str:
        """The name under which its amounts are recorded. A metric requires pods while the VPA has no targets, and
        requests afterwards; the name keeps these two kinds apart."""
        return " ".join([self.label, *(f"{key.container}/{key.resource}" for key in self.keys)])

    def scaled(self, amount: int) -> MetricRequirement:
        """Return the requirement with another amount."""
        if amount == self.amount:
            return self
        if not self.keys:
            return structs.replace(self, pods=amount)
        return structs.replace(self, required=amount)

    def tolerated(self) -> MetricRequirement:
        """Return the smallest requirement that does not add pods."""
        whole = FULL + self.tolerance
        return structs.replace(
            self, required=ceil_div(self.required * FULL, whole), pods=ceil_div(self.pods * FULL, whole)
        )

    def raised(self, margins: Overlaps) -> MetricRequirement:
        """Return the smallest requirement that still holds replicas at the boundary for scaling in, which the
        resource's margin lowers."""
        if not self.keys:
            margin = Margin(percentage=margins["cpu"].percentage)
            return structs.replace(self, pods=margin.raised(self.pods))
        return structs.replace(self, required=margins[self.keys[0].resource].raised(self.required))


class Requests(Struct, frozen=True):
    """The requests by which demand is measured."""

    now: Mapping[ResourceKey, int]
    """Present requests of the template."""
    first: Mapping[ResourceKey, int]
    """Requests when the target was first seen."""
    pods: Mapping[ResourceKey, int]
    """Mean requests of the pods, which may lag behind the template."""
    reserve: Mapping[ResourceKey, Margin]
    """The part of a request that is base usage."""
    targets: Mapping[ResourceKey, int]
    """VPA targets of the governed container resources."""
    limits: Mapping[ResourceKey, int] = {}
    """Limits of the governed container resources."""
    others: Mapping[ResourceKey, int] = {}
    """VPA targets of the pods' other containers."""
    totals: Mapping[Resource, PodTotal] = {}
    """Requests of whole pods: more than the template's containers if there are injected or native sidecars, a
    LimitRange, or pod-level requests."""
    horizontal: bool = False
    """Whether the weight is 0 everywhere, so that metrics require the HPA's own count."""
    short: Set[ResourceKey] = frozenset()
    """Memory of containers that ran out of it within a day; empty with weight 0, or if pods are replaced."""
    ran_out: Mapping[ResourceKey, int] = {}
    """Total memory of the pods that recently ran out of it, if they can't get more."""

    def covered(self, resource: Resource, container: str) -> tuple[ResourceKey, ...]:
        """Return the governed requests that a metric of this resource covers (`container` "": all containers). Empty if
        the pods have pod-level requests, which override those of containers."""
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
        """Return the part of a pod's size that is left for work."""
        margin = self.reserve.get(key)
        return size if margin is None else margin.work(size)

    def measured(self, key: ResourceKey) -> int:
        """Return the mean request of the measured pods for this container resource."""
        return self.pods[key] if key in self.pods else self.now.get(key, 0)

    def of_pod(self, resource: Resource, container: str) -> int:
        """Return the total request of a measured pod that a metric covers, governed or not."""
        if container:
            return self.measured(ResourceKey(container, resource))
        total = self.totals.get(resource)
        if total is None:
            return sum(self.measured(key) for key in self.now if key.resource == resource)
        return total.requested

    def limit_of_pod(self, container: str) -> int:
        """Return the CPU limit of a pod or of its container; LARGEST if there is none."""
        of_pod = ResourceKey(SHARED, "cpu")
        most = LARGEST if container else self.limits.get(of_pod, LARGEST)
        keys = [key for key in self.now if key.resource == "cpu" and container in ("", key.container)]
        if any(key not in self.limits for key in keys) or self.of_pod("cpu", container) > sum(
            map(self.measured, keys)
        ):
            return most
        return min(most, sum(self.limits[key] for key in keys))

    def of_pod_at_first(self, resource: Resource, container: str) -> int:
        """Return the same with the first requests of the template's containers."""
        whole = self.of_pod(resource, container)
        if not container and self._is_whole(resource):
            return whole
        keys = [key for key in self.now if key.resource == resource and container in ("", key.container)]
        return self.at_first(keys) + max(0, whole - sum(self.measured(key) for key in keys))

    def at_first(self, keys: Iterable[ResourceKey]) -> int:
        """Return the total of these first requests; a container resource without a first request counts with its
        present request."""
        return sum(self.first.get(key) or self.now[key] for key in keys)

    def _is_whole(self, resource: Resource) -> bool:
        total = self.totals.get(resource)
        return total is not None and total.is_whole


def requirements(demands: Iterable[MetricDemand], requests: Requests) -> tuple[MetricRequirement, ...]:
    """Return the demand of each metric in requests. A metric that measures no governed resource requires the HPA's own
    count."""
    return tuple(_requirement(demand, requests) for demand in demands)


def boosted(demands: Iterable[MetricDemand], requests: Requests) -> tuple[MetricDemand, ...]:
    """Return the demands with more CPU for saturated pods (docs/decisions/0062): `BOOST_PERCENT` of the demand at
    `SATURATED_PERCENT` usage, or the measured demand if that is higher.

    Example: 4 pods that request 500m use 600m each, 120 percent. At a target of 80 percent the measured demand is
    3000m. Usage of 115 percent gives 2875m, and 150 percent of that are 4313m. For pods that use 1000m each, the demand
    stays at 5000m.
    """
    return tuple(_boosted(demand, requests) for demand in demands)


def _boosted(demand: MetricDemand, requests: Requests) -> MetricDemand:
    """Return the demand of one metric, boosted if its pods use at least `SATURATED_PERCENT` of their CPU requests or
    `PINNED_PERCENT` of their limits.

    Example: 115 percent of 500m are 575m, and 150 percent of that 862.5m. A pod that uses 600m counts as if it used
    862.5m: its demand grows by 862.5 / 600 = 1.44. From 862.5m on, it stays.
    """
    full, used = _full(demand, requests), demand.used or 0
    if full is None or used * 100 < full or used * 10_000 >= full * BOOST_PERCENT:
        return demand
    pods = min(ceil_div(demand.pods * full * BOOST_PERCENT, used * 10_000), MOST_PODS)
    scaled = demand.scaled(pods)
    return structs.replace(scaled, label=f"{demand.label} beyond its requests", counted=demand.counted)


def is_saturated(demand: MetricDemand, requests: Requests) -> bool:
    """Return whether pods use all the CPU that they have: see `_boosted`."""
    full = _full(demand, requests)
    return full is not None and (demand.used or 0) * 100 >= full


def _full(demand: MetricDemand, requests: Requests) -> int | None:
    """Return the usage of a pod from which on its CPU is saturated, in hundredths of a millicore; None if the metric
    does not measure CPU."""
    requested = requests.of_pod("cpu", demand.container) if demand.resource == "cpu" and demand.used else 0
    if requested <= 0:
        return None
    # With a target above 100 percent, pods should use more than they request; an absolute target can mean the same.
    first = max(1, requests.of_pod_at_first("cpu", demand.container))
    meant = requested * demand.per_pod // first if demand.per_pod else requested * demand.utilization // 100
    requested = max(requested, meant)
    return min(requested * SATURATED_PERCENT, requests.limit_of_pod(demand.container) * PINNED_PERCENT)


def _requirement(demand: MetricDemand, requests: Requests) -> MetricRequirement:
    """Return the demand of a metric. Memory that ran out counts for more: otherwise there would soon be fewer pods for
    the memory that they got for it, with as little room as before (docs/decisions/0098).

    Example: 4 pods of an app (governed) and an injected proxy, target 50 percent. In each pod, the app uses 250m and
    the proxy 250m, and their VPA targets are equal. Usage is 2000m, so demand is 4000m, and the app's part is 2000m.
    """
    pod = None if demand.resource is None else _pod(demand, demand.resource, requests)
    if pod is None or not pod.keys or pod.whole <= 0:
        return MetricRequirement(demand.label, (), 0, demand.pods, demand.tolerance)
    called = ceil_div(demand.pods * pod.reference, MICRO) if demand.requested is None else demand.requested
    # The measured base usage is that of the present pods, for any count or size that the target is meant for.
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
    if not requests.short.isdisjoint(pod.keys):
        required = required * OOM_PERCENT // 100
    is_shared = not demand.container and pod.unknown > 0
    return MetricRequirement(demand.label, pod.keys, required, demand.pods, demand.tolerance, is_shared)


class _Pod(NamedTuple):
    """A pod as a metric measured it."""

    keys: tuple[ResourceKey, ...]
    """The governed container resources that the metric covers."""
    governed: int
    """Their total request."""
    whole: int
    """The total request that the metric covers."""
    unknown: int
    """The request of containers without a VPA target."""
    others: Mapping[ResourceKey, int]
    """VPA targets of containers that are not governed."""
    reference: int
    """The requests for which the metric's target is meant."""


def _pod(demand: MetricDemand, resource: Resource, requests: Requests) -> _Pod:
    """Return a pod as a metric measured it. An absolute target is meant for the first requests, other targets for the
    measured pods."""
    keys = requests.covered(resource, demand.container)
    governed = sum(requests.measured(key) for key in keys)
    whole = max(governed, requests.of_pod(resource, demand.container))
    # A governed container without a request serves nothing yet, but still uses its share.
    others = {
        key: target
        for key, target in (*requests.others.items(), *requests.targets.items())
        if key.resource == resource and key not in keys
    }
    total = requests.totals.get(resource)
    of_init = 0 if total is None or demand.container else total.of_init
    unknown = max(0, whole - governed - of_init - sum(map(requests.measured, others)))
    first = requests.of_pod_at_first(resource, demand.container)
    return _Pod(keys, governed, whole, unknown, others, first if demand.absolute else whole)


def _work_of_one(demand: MetricDemand, pod: _Pod, requests: Requests) -> int:
    """Return the size for work of a pod that the metric's target is meant for."""
    sizes = {key: requests.at_first([key]) if demand.absolute else requests.measured(key) for key in pod.keys}
    return sum(requests.work(key, size) for key, size in sizes.items())


def _target(demand: MetricDemand, pod: _Pod) -> tuple[int, int]:
    """Return two numbers whose ratio is usage : required requests; at a target of 80 percent, 80 and 100."""
    return (demand.per_pod or 0, pod.reference) if demand.absolute else (demand.utilization, 100)


def _others(demand: MetricDemand, pod: _Pod, called: int, requests: Requests) -> int:
    """Return the part of a whole pod's demand that belongs to containers that are not governed (docs/decisions/0062).

    Containers with a VPA target get their share by VPA targets, but at most the usage that these imply (target / 1.15):
    load that the VPA has not seen yet belongs to the app. Containers without a VPA target get the rest beyond the app's
    implied usage. Their part is at least the rest of the demand × their requests / (the app's requests + their
    requests), and at most their requests: of the present pods, of the pods that the metric needs if these are fewer, or
    an amount between the two (`_part_of_present`).

    Example: each of 4 pods has an app and a native sidecar of 500m each and uses 375m; target 50 percent. The app's VPA
    target is 288m, so the app uses 250m and the sidecar 125m. By usage, 1000m of the demand of 3000m are the sidecars'.
    But 3000m × 500m / 1000m = 1500m, so HVPA counts 1500m. Of a demand of 5000m, it counts 2000m, all that they
    request.
    """
    use, call = _target(demand, pod)
    if demand.container or not use:
        return 0
    of_app, known = sum(requests.targets[key] for key in pod.keys), sum(pod.others.values())
    calls = 100 * call * demand.counted  # of a target in percent of `VPA_PERCENT * use`
    of_known = min(known * calls // (VPA_PERCENT * use), called * known // max(1, of_app + known))
    left, whole = max(0, called - of_known), pod.governed + pod.unknown
    share = min(left, whole * demand.counted) * pod.unknown // whole
    most = pod.unknown * demand.counted
    fewer = min(most, ceil_div(pod.unknown * demand.pods, MICRO))
    most = fewer + (most - fewer) * _part_of_present(pod) // 100
    beside = min(left - of_app * calls // (VPA_PERCENT * use), most)
    return of_known + max(share, beside)


def _part_of_present(pod: _Pod) -> int:
    """Return how far the requests of containers without a VPA target count in the present pods, in percent; the rest of
    the way, in the pods that the metric needs. In the present pods alone, each count would lead to another one if these
    containers request about as much as the app, or more.
    """
    ratio = pod.governed * 100 // max(1, pod.unknown)
    span = PRESENT_FROM_PERCENT - NEEDED_UP_TO_PERCENT
    return min(100, max(0, ratio - NEEDED_UP_TO_PERCENT) * 100 // span)


def pods_needed(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> int:
    """Return how many pods of these sizes a requirement needs."""
    if not requirement.keys:
        return ceil_div(requirement.pods, MICRO)
    return ceil_div(requirement.required, max(1, serves(requirement, sizes, requests)))


def serves(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> int:
    """Return how much of a requirement a pod of these sizes serves, in millicores or bytes."""
    return sum(_works(requirement, sizes, requests).values())


def by_sizes(
    requirements: Iterable[MetricRequirement], sizes: Sizes, requests: Requests
) -> dict[ResourceKey, int]:
    """Return the demand by container and resource, from requirements shared in proportion to `sizes`, so that each part
    needs as many pods as the whole. The largest share of each container resource counts."""
    demand: dict[ResourceKey, int] = {}
    for requirement in requirements:
        works = _works(requirement, sizes, requests)
        total = max(1, sum(works.values()))
        for key, work in works.items():
            demand[key] = max(demand.get(key, 0), ceil_div(requirement.required * work, total))
    return demand


def by_targets(requirements: Iterable[MetricRequirement], requests: Requests) -> dict[ResourceKey, int]:
    """Return the demand by container and resource. A metric of the whole pod is shared in proportion to VPA targets,
    less base usage. The largest share of each container resource counts.

    Example: of a demand of 1900m, an app with target 1035m gets 1800m and a proxy with target 58m gets 100m, whatever
    they request.
    """
    demand: dict[ResourceKey, int] = {}
    for requirement in requirements:
        works = _works(requirement, requests.now if requests.horizontal else requests.targets, requests)
        if not any(works.values()):
            works = _works(requirement, requests.now, requests)
        total = sum(works.values())
        for key, work in works.items():
            demand[key] = max(demand.get(key, 0), ceil_div(requirement.required * work, total))
    return demand


def _works(requirement: MetricRequirement, sizes: Sizes, requests: Requests) -> dict[ResourceKey, int]:
    """Return the size for work of a pod of these sizes, by container resource of a requirement."""
    return {key: requests.work(key, sizes[key]) for key in requirement.keys}
