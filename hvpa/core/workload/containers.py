"""The part of a pod template that a VPA governs: a `ContainerResource` for each container and resource with a
target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from hvpa.api.hvpa.progress import RecommendedContainer
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.templates import ContainerPolicy
from hvpa.api.objects.read_models import (
    Container,
    ContainerRecommendation,
    Pod,
    PodSpec,
    Quantity,
    Resources,
    TemplateContainer,
    TemplateSpec,
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

AnyContainerPolicy = ContainerPolicy | VpaContainerPolicy
"""A container policy of the Hvpa's template or of a VPA: their fields have the same names."""

SHARED: Final = "(shared)"
"""Stands for what containers without requests share of the pod's own request (`hvpa.core.workload.pod_level`)."""
POD_RESOURCES: Final = "the rest of spec.template.spec.resources"
LARGEST_NODE: Final = "the largest node"
"""What the containers of a pod share."""

HEAP: Final = "its heap and overhead (runtimes)"
"""The least memory of a runtime with a heap of fixed size."""

Texts = tuple[Quantity | None, Quantity | None, Quantity | None, Quantity | None]


class Bound(NamedTuple):
    """The largest request that a container resource may have, in millicores or bytes, and the name of its source."""

    size: int
    name: str


class ContainerResource(msgspec.Struct, frozen=True, gc=False):
    """A resource of a container: current values, VPA target and bounds."""

    container: str
    resource: Resource
    request: int | None
    limit: int | None
    target: int
    bounds: RequestBounds
    scales_limit: bool
    """The limit changes with the request."""
    whole: str = POD_RESOURCES
    """The name of `bounds.fixed_limit`, if that is not the container's own limit."""
    beyond: int | None = None
    """The VPA's target without the caps on `target`, rounded up to two digits; None if it is not above `target`."""
    lower: str = "minAllowed"
    """The name of `bounds.lower`."""
    at_start: bool = False
    """Its runtime reads it only when it starts (`spec.runtimes`), so pods are replaced for another size."""

    @property
    def upper_bound(self) -> Bound | None:
        """The bound that a raise reaches first."""
        upper_bounds = []
        if self.bounds.upper is not None:
            upper_bounds.append(Bound(self.bounds.upper, "maxAllowed"))
        if self.limit is not None and not self.scales_limit:
            upper_bounds.append(Bound(self.limit, "its limit (controlledValues RequestsOnly)"))
        if self.bounds.fixed_limit is not None:
            upper_bounds.append(Bound(self.bounds.fixed_limit, self.whole))
        return min(upper_bounds, key=lambda bound: bound.size, default=None)

    @property
    def is_largest(self) -> bool:
        """Whether no raise is allowed."""
        bound = self.upper_bound
        return bound is not None and self.current >= bound.size

    @property
    def blends_no_higher(self) -> bool:
        """Whether the request would not rise even at full weight."""
        return self.blended(FULL) <= self.current

    @property
    def key(self) -> ResourceKey:
        """The key of this container resource."""
        return ResourceKey(self.container, self.resource)

    @property
    def current(self) -> int:
        """The effective request. A missing request equals the limit, as in Kubernetes; 0 without a limit."""
        return self.request if self.request is not None else self.limit or 0

    def blended(self, vertical_ppm: int) -> int:
        """Returns the request at a weight, inside its bounds."""
        return self.bounds.clamp(blend_request(self.resource, self.current, self.target, vertical_ppm))

    def moved(self, by: int, vertical_ppm: int) -> int:
        """Returns the request moved with its target by the weight, inside its bounds."""
        return self.bounds.clamp(move_request(self.resource, self.current, by, vertical_ppm))


@remembered
def template_of(spec: PodSpec) -> TemplateSpec:
    """Returns a pod's spec as a pod template, which shows no runtimes. The result is shared: do not change it."""
    containers = [
        TemplateContainer(one.name, one.resources, one.resize_policy, one.restart_policy)
        for one in spec.containers
    ]
    return TemplateSpec(containers, resources=spec.resources)


@remembered
def present_resources(containers: Sequence[Container]) -> Mapping[str, ResourceRequirements]:
    """Returns CPU and memory of all containers of a pod template as numbers. The result is shared: do not change it."""
    return read_all({container.name: container.resources for container in containers})


def read_all(written: Mapping[str, Resources | RecommendedContainer]) -> dict[str, ResourceRequirements]:
    """Returns CPU and memory by container as numbers. Equal texts are parsed once and share an object in the result."""
    known: dict[Texts, ResourceRequirements] = {}
    requirements: dict[str, ResourceRequirements] = {}
    for name, resources in written.items():
        key = texts(resources)
        size = known.get(key)
        if size is None:
            size = known[key] = ResourceRequirements(amounts(resources.requests), amounts(resources.limits))
        requirements[name] = size
    return requirements


def texts(resources: Resources | RecommendedContainer) -> Texts:
    """Returns the texts of the CPU and memory requests, then of both limits."""
    requests, limits = resources.requests, resources.limits
    return requests.get(CPU), requests.get(MEMORY), limits.get(CPU), limits.get(MEMORY)


def reported(pod: Pod, containers: Sequence[Container] | None = None) -> dict[str, Resources]:
    """Returns the resources of a pod's containers (or of these, which may be native sidecars) as reported by the
    kubelet, which differ from its spec during a resize. Without a report, the result has the same object as the spec.
    """
    status = pod.status
    statuses = (*status.container_statuses, *status.init_container_statuses)
    known = {entry.name: entry.resources for entry in statuses}
    return {
        container.name: known.get(container.name) or container.resources
        for container in (pod.spec.containers if containers is None else containers)
    }


def request_now(resources: ResourceRequirements, key: ResourceKey, pods: PodsSeen) -> int:
    """Returns the effective request. If it is missing, it is the limit, or else the request that the pods received (for
    example from a LimitRange), or else 0."""
    known = resources.requests.get(key.resource, resources.limits.get(key.resource, 0))
    if known > 0:
        return known
    return pods.sizes.get(key, 0)


def amounts(resources: Mapping[str, str | int | float]) -> dict[Resource, int]:
    """Returns CPU (millicores) and memory (bytes) of a resource list, without missing and invalid quantities."""
    return {resource: size for resource in RESOURCES if (size := amount(resources, resource)) is not None}


def changes(old: ResourceRequirements, new: ResourceRequirements) -> dict[str, dict[str, str]]:
    """Returns the requests and limits that differ, in wire form."""
    differences: dict[str, dict[str, str]] = {}
    sections = (("requests", old.requests, new.requests), ("limits", old.limits, new.limits))
    for section, before, after in sections:
        for resource in RESOURCES:
            if resource in after and after[resource] != before.get(resource):
                differences.setdefault(section, {})[resource] = format_resource(resource, after[resource])
    return differences


def wire(sizes: Mapping[Resource, int]) -> dict[str, str]:
    """Returns requests or limits in wire form."""
    return {resource: format_resource(resource, size) for resource, size in sizes.items()}


def amount(resources: Mapping[str, str | int | float], resource: Resource) -> int | None:
    """Returns a resource of a resource list by `amount_of`."""
    return amount_of(resource, resources.get(resource))


def amount_of(resource: Resource, quantity: str | int | float | None) -> int | None:
    """Returns a quantity in millicores or bytes, at most LARGEST; None if it is missing or invalid."""
    try:
        return None if quantity is None else min(parse_resource(resource, quantity), LARGEST)
    except QuantityError:
        return None


@remembered
def recommendations(vpa: Vpa) -> Mapping[str, ContainerRecommendation]:
    """Returns the VPA's recommendations by container. The result is shared: do not change it."""
    recommendation = vpa.status.recommendation
    entries = recommendation.container_recommendations if recommendation is not None else None
    return {entry.container_name: entry for entry in entries or ()}


def policies(spec: HvpaSpec, vpa: Vpa) -> Sequence[AnyContainerPolicy]:
    """Returns the container policies that bound the result. An owned VPA has the template's (the object may still have
    those of an earlier template), a VPA named in the spec has its own."""
    if not spec.vpa.deploy:
        policy = vpa.spec.resource_policy
        return policy.container_policies if policy is not None else ()
    template = spec.vpa.template.spec
    if template is None or template.resource_policy is None:
        return ()
    return template.resource_policy.container_policies


def sharing(present: Mapping[str, ResourceRequirements], resource: Resource) -> Sequence[str]:
    """Returns the containers that have neither a request nor a limit, and so share the pod's own request."""
    return [
        name
        for name, size in present.items()
        if name != SHARED and resource not in size.requests and resource not in size.limits
    ]


def governs(policy: AnyContainerPolicy, resource: Resource) -> bool:
    """Whether a VPA with this policy recommends the resource."""
    governed = RESOURCES if policy.controlled_resources is None else policy.controlled_resources
    return policy.mode != "Off" and resource in governed


@remembered
def container_resources(
    spec: HvpaSpec, vpa: Vpa, present: Mapping[str, ResourceRequirements]
) -> tuple[ContainerResource, ...]:
    """Returns each container resource that the VPA governs and has a target for, in the order of the pod template."""
    targets, find_policy = recommendations(vpa), policies_by_name(policies(spec, vpa))
    governed_resources = []
    for name, now in present.items():
        if name not in targets:
            continue
        beyond = amounts(targets[name].uncapped_target)
        for resource, target in amounts(targets[name].target).items():
            names = sharing(present, resource) if name == SHARED else (name,)
            of_names = [find_policy(one) for one in names]
            # a target of 0 is no target
            if target > 0 and all(governs(policy, resource) for policy in of_names):
                scales_limit = all(policy.controlled_values != "RequestsOnly" for policy in of_names)
                request, limit = now.requests.get(resource), now.limits.get(resource)
                least = [amount(policy.min_allowed, resource) for policy in of_names]
                most = [amount(policy.max_allowed, resource) for policy in of_names]
                bounds = RequestBounds(
                    None if set(least) <= {None} else sum([size or 0 for size in least]),
                    None if None in most else sum([size or 0 for size in most]),
                    fixed_limit=None if scales_limit else limit,
                )
                container_resource = ContainerResource(
                    name, resource, request, limit, target, bounds, scales_limit
                )
                governed_resources.append(structs.replace(container_resource, beyond=beyond.get(resource)))
    return tuple(governed_resources)
