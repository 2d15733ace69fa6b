"""What a workload requests, and what that costs in a month."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hvpa.api.objects.read_models import Workload
from hvpa.api.values.prices import Prices
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import amount, present_resources
from hvpa.recommend.hpa.pods import sidecars

HOURS_PER_MONTH: Final = 730
"""A year of 8760 hours has twelve months."""
MILLI: Final = 1000
GIB: Final = 2**30
SMALL: Final = 0.1
"""Below it, an amount is written with three digits."""


@dataclass(frozen=True, slots=True)
class Amount:
    """CPU in millicores and memory in bytes."""

    cpu: int = 0
    memory: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.cpu + other.cpu, self.memory + other.memory)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.cpu - other.cpu, self.memory - other.memory)

    def times(self, count: int) -> Amount:
        """So many of it."""
        return Amount(self.cpu * count, self.memory * count)

    @property
    def cores(self) -> float:
        """CPU in cores."""
        return self.cpu / MILLI

    @property
    def gib(self) -> float:
        """Memory in GiB."""
        return self.memory / GIB

    def cost(self, prices: Prices) -> float:
        """What it costs for a month: 2 cores and 4 GiB at 0.03 and 0.004 cost 730 * (0.06 + 0.016) = 55.48."""
        return prices.cost(self.cores * HOURS_PER_MONTH, self.gib * HOURS_PER_MONTH)


@dataclass(frozen=True, slots=True)
class Size:
    """So many replicas, what one of them requests, and the requests and limits of its containers."""

    replicas: int
    pod: Amount
    containers: Mapping[str, ResourceRequirements]

    @property
    def total(self) -> Amount:
        """What all replicas request."""
        return self.pod.times(self.replicas)


def size_now(workload: Workload) -> Size:
    """The workload as its spec has it."""
    containers = present_resources(workload.spec.template.spec.containers)
    return size_of(workload, workload.spec.replicas, containers)


def size_of(workload: Workload, replicas: int, containers: Mapping[str, ResourceRequirements]) -> Size:
    """The workload with other replicas and containers. Requests of the pod itself (pod-level `resources`) count in
    place of its containers', as for the scheduler; native sidecars count beside them."""
    pod = Amount(_pod(workload, "cpu", containers), _pod(workload, "memory", containers))
    return Size(replicas, pod, containers)


def _pod(workload: Workload, resource: Resource, containers: Mapping[str, ResourceRequirements]) -> int:
    spec = workload.spec.template.spec
    whole = None if spec.resources is None else amount(spec.resources.requests, resource)
    if whole is not None:
        return whole
    beside = present_resources(tuple(sidecars(spec)))
    return sum(_request(one, resource) for one in (*containers.values(), *beside.values()))


def _request(container: ResourceRequirements, resource: Resource) -> int:
    """A missing request counts as its limit, as in Kubernetes, and as nothing without one."""
    return container.requests.get(resource, container.limits.get(resource, 0))


def human(resource: Resource, value: int) -> str:
    """Millicores or bytes as people say it: `0.50 cores`, `0.063 GiB`."""
    unit, found = ("cores", value / MILLI) if resource == "cpu" else ("GiB", value / GIB)
    return f"{found:.{2 if found == 0 or found >= SMALL else 3}f} {unit}"
