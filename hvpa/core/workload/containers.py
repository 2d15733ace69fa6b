"""What a VPA governs of a pod template: one `ContainerResource` for each container and resource that it has a target
for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import RecommendedContainer
from hvpa.api.hvpa.templates import ContainerPolicy
from hvpa.api.objects.read_models import (
    Container,
    ContainerRecommendation,
    Pod,
    Quantity,
    Resources,
    Vpa,
    VpaContainerPolicy,
    policies_by_name,
)
from hvpa.api.values.quantity import (
    CPU,
    MEMORY,
    RESOURCES,
    QuantityError,
    Resource,
    format_resource,
    parse_resource,
)
from hvpa.core.model import PodsSeen, ResourceRequirements
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.arithmetic import LARGEST, RequestBounds, blend_request, move_request
from hvpa.core.values.memo import remembered
from hvpa.core.values.weight import FULL

Policy = ContainerPolicy | VpaContainerPolicy
"""A container policy, of the Hvpa's template or of a VPA that is read: their fields have the same names."""

Texts = tuple[Quantity | None, Quantity | None, Quantity | None, Quantity | None]


class Bound(NamedTuple):
    """The largest request that a container resource may have, in millicores or bytes, and what sets it."""

    size: int
    name: str


class ContainerResource(msgspec.Struct, frozen=True, gc=False):
    """One container's one resource: what is set now, what the VPA targets, and what bounds it. `most_limit` is the
    pod's own limit, where it has one; `beyond` the VPA's target without the caps that hold `target` down, rounded up to
    two digits (None: it is no more than `target`)."""

    container: str
    resource: Resource
    request: int | None
    limit: int | None
    target: int
    bounds: RequestBounds
    scales_limit: bool
    most_limit: int | None = None
    beyond: int | None = None

    @property
    def upper_bound(self) -> Bound | None:
        """The bound that a rise meets first."""
        found = []
        if self.bounds.upper is not None:
            found.append(Bound(self.bounds.upper, "maxAllowed"))
        if self.limit is not None and not self.scales_limit:
            found.append(Bound(self.limit, "its limit (controlledValues RequestsOnly)"))
        if self.bounds.fixed_limit is not None:
            found.append(Bound(self.bounds.fixed_limit, "what spec.template.spec.resources leave"))
        return min(found, key=lambda one: one.size, default=None)

    @property
    def is_largest(self) -> bool:
        """Whether no rise is allowed."""
        bound = self.upper_bound
        return bound is not None and self.current >= bound.size

    @property
    def blends_no_higher(self) -> bool:
        """Whether not even full weight would raise the request."""
        return self.blended(FULL) <= self.current

    @property
    def key(self) -> ResourceKey:
        """Which container resource of the pod it is."""
        return ResourceKey(self.container, self.resource)

    @property
    def current(self) -> int:
        """The request that holds now. A missing one is equal to the limit, as in Kubernetes; 0 without a limit."""
        return self.request if self.request is not None else self.limit or 0

    def blended(self, vertical_ppm: int) -> int:
        """The request at a weight, inside its bounds."""
        return self.bounds.clamp(blend_request(self.resource, self.current, self.target, vertical_ppm))

    def moved(self, by: int, vertical_ppm: int) -> int:
        """The request moved with its target, by the weight, inside its bounds."""
        return self.bounds.clamp(move_request(self.resource, self.current, by, vertical_ppm))


@remembered
def present_resources(containers: Sequence[Container]) -> Mapping[str, ResourceRequirements]:
    """CPU and memory of all containers of a pod template as numbers. Treat the result as frozen: it is shared."""
    return read_all({one.name: one.resources for one in containers})


def read_all(written: Mapping[str, Resources | RecommendedContainer]) -> dict[str, ResourceRequirements]:
    """CPU and memory by container as numbers. What is written alike is read once and is one object in the result."""
    known: dict[Texts, ResourceRequirements] = {}
    found: dict[str, ResourceRequirements] = {}
    for name, one in written.items():
        key = texts(one)
        size = known.get(key)
        if size is None:
            size = known[key] = ResourceRequirements(amounts(one.requests), amounts(one.limits))
        found[name] = size
    return found


def texts(one: Resources | RecommendedContainer) -> Texts:
    """Requests of CPU and memory and limits of both, as they are written."""
    requests, limits = one.requests, one.limits
    return requests.get(CPU), requests.get(MEMORY), limits.get(CPU), limits.get(MEMORY)


def reported(pod: Pod) -> dict[str, Resources]:
    """What the containers of a pod have by the kubelet, which is not yet what its spec names while a resize is under
    way. Where the kubelet does not say, the very same object as in the spec."""
    statuses = {one.name: one.resources for one in pod.status.container_statuses}
    return {one.name: statuses.get(one.name) or one.resources for one in pod.spec.containers}


def request_now(resources: ResourceRequirements, key: ResourceKey, pods: PodsSeen) -> int:
    """The request that holds: a missing one counts as its limit, without one as what the pods were given (by a
    LimitRange, say), and as 0 without that."""
    known = resources.requests.get(key.resource, resources.limits.get(key.resource, 0))
    if known > 0:
        return known
    return pods.sizes.get(key, 0)


def amounts(resources: Mapping[str, str | int | float]) -> dict[Resource, int]:
    """CPU (millicores) and memory (bytes) of a resource list, where they are there and can be read."""
    return {name: value for name in RESOURCES if (value := amount(resources, name)) is not None}


def changes(old: ResourceRequirements, new: ResourceRequirements) -> dict[str, dict[str, str]]:
    """The requests and limits that differ, in wire form."""
    found: dict[str, dict[str, str]] = {}
    sections = (("requests", old.requests, new.requests), ("limits", old.limits, new.limits))
    for section, before, after in sections:
        for resource in RESOURCES:
            if resource in after and after[resource] != before.get(resource):
                found.setdefault(section, {})[resource] = format_resource(resource, after[resource])
    return found


def wire(amounts: Mapping[Resource, int]) -> dict[str, str]:
    """Requests or limits as they are written."""
    return {name: format_resource(name, value) for name, value in amounts.items()}


def amount(resources: Mapping[str, str | int | float], resource: Resource) -> int | None:
    """One resource of a resource list by `amount_of`."""
    return amount_of(resource, resources.get(resource))


def amount_of(resource: Resource, quantity: str | int | float | None) -> int | None:
    """A quantity in millicores or bytes, LARGEST at most; None where it is missing or can't be read."""
    try:
        return None if quantity is None else min(parse_resource(resource, quantity), LARGEST)
    except QuantityError:
        return None


@remembered
def recommendations(vpa: Vpa) -> Mapping[str, ContainerRecommendation]:
    """The VPA's recommendations by container. Treat the result as frozen: it is shared."""
    recommendation = vpa.status.recommendation
    found = recommendation.container_recommendations if recommendation is not None else None
    return {one.container_name: one for one in found or ()}


def policies(spec: HvpaSpec, vpa: Vpa) -> Sequence[Policy]:
    """The container policies that bound the result: the template's where the VPA is ours (the object may still have
    those of an earlier template), the object's where the spec names one."""
    if not spec.vpa.deploy:
        policy = vpa.spec.resource_policy
        return policy.container_policies if policy is not None else ()
    template = spec.vpa.template.spec
    if template is None or template.resource_policy is None:
        return ()
    return template.resource_policy.container_policies


@remembered
def container_resources(
    spec: HvpaSpec, vpa: Vpa, present: Mapping[str, ResourceRequirements]
) -> tuple[ContainerResource, ...]:
    """Every container and resource that the VPA governs and has a target for, in the order of the pod template."""
    targets, find_policy = recommendations(vpa), policies_by_name(policies(spec, vpa))
    found = []
    for name, now in present.items():
        policy = find_policy(name)
        if name not in targets or policy.mode == "Off":
            continue
        governed = RESOURCES if policy.controlled_resources is None else policy.controlled_resources
        scales_limit = policy.controlled_values != "RequestsOnly"
        beyond = amounts(targets[name].uncapped_target)
        for resource, target in amounts(targets[name].target).items():
            if resource in governed and target > 0:  # a target of 0 is none
                request, limit = now.requests.get(resource), now.limits.get(resource)
                least, most = amount(policy.min_allowed, resource), amount(policy.max_allowed, resource)
                bounds = RequestBounds(least, most, fixed_limit=None if scales_limit else limit)
                item = ContainerResource(name, resource, request, limit, target, bounds, scales_limit)
                found.append(structs.replace(item, beyond=beyond.get(resource)))
    return tuple(found)
