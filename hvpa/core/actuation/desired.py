"""The size that was decided for a workload whose pods are resized in place: `status.desired`.

The pod template stays as it is, so the status takes its place: what `status.desired` names is what the strategies take
for the workload's present replicas and resources. It is written before anything is acted upon. An operator that is
killed in between finds it, and acts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.status import DesiredSize, RecommendedContainer
from hvpa.api.objects.kinds import has_replicas
from hvpa.api.objects.read_models import Container, Resources, Workload
from hvpa.core.model import ResourceRequirements, WorkloadPatch
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import amounts, changes, present_resources, wire
from hvpa.core.workload.rollout import rollout_complete

NOTHING: Final = ResourceRequirements({}, {})


def sizes_of(containers: Sequence[RecommendedContainer]) -> Mapping[str, ResourceRequirements]:
    """Resources as the status has them, by container."""
    return {one.name: ResourceRequirements(amounts(one.requests), amounts(one.limits)) for one in containers}


def size_of_new_pods(desired: DesiredSize | None) -> Mapping[str, ResourceRequirements]:
    """What pods are created with: while a size is tried on some pods, what the others have."""
    if desired is None:
        return {}
    return sizes_of(desired.containers if desired.canary is None else desired.canary.previous)


def as_desired(workload: Workload, desired: DesiredSize | None) -> Workload:
    """The workload with the replicas and resources that were decided.

    Replicas that were decided and not written yet count as written: they are as long as the workload has the generation
    that it was decided on. Later they are the workload's own, which somebody else may have set.
    Example: decided at generation 4 were 6 replicas instead of 3. At generation 4 there are 6, which are still to be
    written; at generation 5 there are as many as the workload says.
    """
    if desired is None:
        return workload
    spec = workload.spec
    known = {one.name: one for one in desired.containers}
    containers = [_resized(one, known.get(one.name)) for one in spec.template.spec.containers]
    template = structs.replace(spec.template, spec=structs.replace(spec.template.spec, containers=containers))
    is_pending = has_replicas(workload.kind) and desired.generation == workload.metadata.generation
    replicas = desired.replicas if is_pending else spec.replicas
    return structs.replace(workload, spec=structs.replace(spec, replicas=replicas, template=template))


def _resized(container: Container, desired: RecommendedContainer | None) -> Container:
    if desired is None:
        return container
    own = container.resources
    resources = Resources({**own.requests, **desired.requests}, {**own.limits, **desired.limits})
    return structs.replace(container, resources=resources)


class Decided(NamedTuple):
    """What a decision made of both axes: replicas, resources by container, which of the containers it changed, and the
    requests, in millicores and bytes, that pods that are ready have until the others are."""

    replicas: int
    containers: Mapping[str, ResourceRequirements]
    changed: frozenset[str]
    ready_pods: Mapping[ResourceKey, int]


def next_desired(clock: Clock, before: DesiredSize | None, target: Workload, decided: Decided) -> DesiredSize:
    """What the status says from now on: the replicas, and of the containers what was changed by this decision or an
    earlier one. `target` is the workload as it is."""
    replicas, containers, changed, ready_pods = decided
    known = sizes_of(() if before is None else before.containers)
    template = present_resources(target.spec.template.spec.containers)
    named = tuple(
        RecommendedContainer(name=name, requests=wire(found.requests), limits=wire(found.limits))
        for name, one in containers.items()
        if name in changed or name in known
        if (found := _decided(one, template[name], known.get(name, NOTHING))) != NOTHING
    )
    ready = tuple(
        RecommendedContainer(
            name=name,
            requests=wire(
                {key.resource: size for key, size in sorted(ready_pods.items()) if key.container == name}
            ),
        )
        for name in sorted({key.container for key in ready_pods})
    )
    is_counted = has_replicas(target.kind)  # else the nodes say how many pods there are
    if before is not None and before.containers == named and (before.replicas == replicas or not is_counted):
        same = before.replicas == replicas and before.ready_pods == ready
        return before if same else before.model_copy(update={"replicas": replicas, "ready_pods": ready})
    generation = target.metadata.generation
    if before is not None and before.replicas == replicas:
        generation = before.generation
    since = clock.stamp().replace(microsecond=0)
    return DesiredSize(
        replicas=replicas, containers=named, ready_pods=ready, since=since, generation=generation
    )


def _decided(
    wanted: ResourceRequirements, template: ResourceRequirements, known: ResourceRequirements
) -> ResourceRequirements:
    """Of what a container is to have, what was decided: it differs from the pod template, or was decided before. The
    rest is the template's, whose user may change it."""
    return ResourceRequirements(
        *[
            {name: value for name, value in own.items() if value != there.get(name) or name in before}
            for own, there, before in (
                (wanted.requests, template.requests, known.requests),
                (wanted.limits, template.limits, known.limits),
            )
        ]
    )


def scale_patch(target: Workload, replicas: int) -> WorkloadPatch | None:
    """The write of the replicas alone; None where the workload has as many."""
    if replicas == target.spec.replicas or not has_replicas(target.kind):
        return None
    return _patch(target, {"replicas": replicas}, is_scale=True)


def template_patch(target: Workload, size: DesiredSize, *, at_once: bool = False) -> WorkloadPatch | None:
    """The write of all that was decided, pod template included, for pods that can't be resized; None where the template
    has it already, or while pods are being replaced and it is not to be written `at_once`."""
    if not at_once and not rollout_complete(target):
        return None
    present, desired = present_resources(target.spec.template.spec.containers), sizes_of(size.containers)
    containers = [
        {"name": name, "resources": found}
        for name, one in desired.items()
        if name in present and (found := changes(present[name], one))
    ]
    if not containers:
        return None
    replicas = {"replicas": size.replicas} if has_replicas(target.kind) else {}
    return _patch(target, {**replicas, "template": {"spec": {"containers": containers}}})


def _patch(target: Workload, spec: Mapping[str, object], *, is_scale: bool = False) -> WorkloadPatch:
    metadata = target.metadata
    body = {"metadata": {"resourceVersion": metadata.resource_version}, "spec": spec}
    version = metadata.resource_version
    return WorkloadPatch(target.kind, metadata.name, version, body, is_scale, target.api_version)
