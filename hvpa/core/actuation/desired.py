"""`status.desired`: the size that was decided for a workload whose pods are resized in place.

HVPA leaves the pod template unchanged and stores the size in the status. The strategies use `status.desired` as the
workload's current replicas and resources. It is written before anything else, so an operator that is killed in between
reads it after its restart and continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from msgspec import structs

from hvpa.api.hvpa.progress import DesiredSize, RecommendedContainer
from hvpa.api.objects.kinds import has_replicas
from hvpa.api.objects.read_models import Resources, Workload
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ObservedState, ResourceRequirements, WorkloadPatch
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import changes, present_resources, read_all, wire

NOTHING: Final = ResourceRequirements({}, {})
ContainerSizes = Mapping[str, ResourceRequirements]
"""Resources by container."""


# --- sizes -----------------------------------------------------------------------------------------------------------
def sizes_of(containers: Sequence[RecommendedContainer]) -> ContainerSizes:
    """Returns the resources of the status by container."""
    return read_all({container.name: container for container in containers})


def recorded(sizes: ContainerSizes) -> tuple[RecommendedContainer, ...]:
    """Returns resources by container in the form of the status."""
    return tuple(
        RecommendedContainer(name=name, requests=wire(size.requests), limits=wire(size.limits))
        for name, size in sizes.items()
    )


def by_section(
    rule: Callable[..., Mapping[Resource, int]], *sizes: ResourceRequirements
) -> ResourceRequirements:
    """Applies a rule to the requests of some sizes, and then to their limits."""
    return ResourceRequirements(
        rule(*[size.requests for size in sizes]), rule(*[size.limits for size in sizes])
    )


def differing(have: ResourceRequirements, wanted: ResourceRequirements) -> ResourceRequirements:
    """Returns the part of `wanted` that `have` lacks."""
    return by_section(
        lambda old, new: {resource: new[resource] for resource in new if old.get(resource) != new[resource]},
        have,
        wanted,
    )


def had(present: ContainerSizes, changed: ContainerSizes) -> ContainerSizes:
    """Returns the previous values of the resources in `changed`."""
    return {
        name: by_section(
            lambda old, new: {resource: old[resource] for resource in old if resource in new},
            present.get(name, NOTHING),
            size,
        )
        for name, size in changed.items()
    }


def moved(present: ContainerSizes, wanted: ContainerSizes) -> tuple[frozenset[Resource], frozenset[Resource]]:
    """Returns the resources that rise in some container, and those that fall in some container. Containers missing in
    `present` are ignored."""
    moves = [
        (resource, amount - old.get(resource, 0))
        for name, size in wanted.items()
        if name in present
        for old, new in ((present[name].requests, size.requests), (present[name].limits, size.limits))
        for resource, amount in new.items()
    ]
    return frozenset([resource for resource, change in moves if change > 0]), frozenset(
        [resource for resource, change in moves if change < 0]
    )


# --- the status ------------------------------------------------------------------------------------------------------
def size_of_new_pods(desired: DesiredSize | None) -> ContainerSizes:
    """Returns the size that pods are created with. During a trial it is the size before the trial."""
    if desired is None:
        return {}
    return sizes_of(desired.containers if desired.canary is None else desired.canary.previous)


def as_desired(workload: Workload, desired: DesiredSize | None) -> Workload:
    """Returns the workload with the decided replicas and resources.

    Decided replicas count as written while the workload still has the generation of the decision. Later the workload's
    own replicas count, since another client may have set them. Example: at generation 4 HVPA decided on 6 replicas
    instead of 3. At generation 4 the workload counts as having 6; at generation 5 its own count applies.
    """
    if desired is None:
        return workload
    spec = workload.spec
    changed = {container.name: container for container in desired.containers}
    containers = [
        structs.replace(
            container,
            resources=Resources(
                {**container.resources.requests, **changed[container.name].requests},
                {**container.resources.limits, **changed[container.name].limits},
            ),
        )
        if container.name in changed
        else container
        for container in spec.template.spec.containers
    ]
    template = structs.replace(spec.template, spec=structs.replace(spec.template.spec, containers=containers))
    is_pending = has_replicas(workload.kind) and desired.generation == workload.metadata.generation
    replicas = desired.replicas if is_pending else spec.replicas
    return structs.replace(workload, spec=structs.replace(spec, replicas=replicas, template=template))


def next_desired(
    clock: Clock, observation: ObservedState, replicas: int, containers: ContainerSizes, changed: Set[str]
) -> DesiredSize:
    """Returns the next `status.desired`: the decided replicas, and the resources that this decision (containers in
    `changed`) or an earlier decision changed. Users may edit the pod template, so a value counts as decided only if it
    differs from the template or was decided before."""
    before, target = observation.status.desired, observation.target
    assert target is not None
    known = sizes_of(() if before is None else before.containers)
    template = present_resources(target.spec.template.spec.containers)
    decided = {
        name: by_section(
            lambda new, present, old: {
                resource: new[resource]
                for resource in new
                if new[resource] != present.get(resource) or resource in old
            },
            size,
            template[name],
            known.get(name, NOTHING),
        )
        for name, size in containers.items()
        if name in changed or name in known
    }
    named = recorded({name: size for name, size in decided.items() if size != NOTHING})
    is_same_count = before is not None and before.replicas == replicas
    # Nodes decide the pod count of a kind without replicas, so the count is no decision.
    if before is not None and before.containers == named and (is_same_count or not has_replicas(target.kind)):
        return before if is_same_count else before.model_copy(update={"replicas": replicas})
    return DesiredSize(
        replicas=replicas,
        containers=named,
        since=clock.stamp().replace(microsecond=0),
        generation=before.generation if before is not None and is_same_count else target.metadata.generation,
    )


# --- patches of the workload -----------------------------------------------------------------------------------------
def scale_patch(target: Workload, replicas: int) -> WorkloadPatch | None:
    """Returns the patch that writes only the replicas; None if the workload already has them."""
    if replicas == target.spec.replicas or not has_replicas(target.kind):
        return None
    return patch_of(target, {"replicas": replicas}, is_scale=True)


def template_patch(target: Workload, size: DesiredSize) -> WorkloadPatch | None:
    """Returns the patch that writes the decided size to the pod template, for pods that can't be resized; None if the
    template already has it."""
    containers = _changed_containers(target, size)
    if not containers:
        return None
    replicas = {"replicas": size.replicas} if has_replicas(target.kind) else {}
    return patch_of(target, {**replicas, "template": {"spec": {"containers": containers}}})


def template_has(target: Workload, size: DesiredSize) -> bool:
    """Whether the pod template has the decided size."""
    return not _changed_containers(target, size)


def _changed_containers(target: Workload, size: DesiredSize) -> list[dict[str, object]]:
    """Returns the containers of the template whose resources change."""
    present = present_resources(target.spec.template.spec.containers)
    return [
        {"name": name, "resources": resources}
        for name, wanted in sizes_of(size.containers).items()
        if name in present and (resources := changes(present[name], wanted))
    ]


def patch_of(
    target: Workload,
    spec: Mapping[str, object],
    metadata: Mapping[str, object] | None = None,
    *,
    is_scale: bool = False,
) -> WorkloadPatch:
    """Returns a patch of the workload with its resource version and these metadata."""
    version = target.metadata.resource_version
    body = {"metadata": {"resourceVersion": version, **(metadata or {})}, "spec": spec}
    return WorkloadPatch(target.kind, target.metadata.name, version, body, is_scale, target.api_version)
