"""The size that was decided for a workload whose pods are resized in place: `status.desired`.

The pod template stays as it is, so the status takes its place: what `status.desired` names is what the strategies take
for the workload's present replicas and resources. It is written before anything is acted upon. An operator that is
killed in between finds it, and acts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from msgspec import structs

from hvpa.api.hvpa.status import DesiredSize, RecommendedContainer
from hvpa.api.objects.kinds import has_replicas
from hvpa.api.objects.read_models import Resources, Workload
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ObservedState, ResourceRequirements, WorkloadPatch
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import changes, present_resources, read_all, wire

NOTHING: Final = ResourceRequirements({}, {})
Sizes = Mapping[str, ResourceRequirements]
"""Resources by container."""


# --- sizes -----------------------------------------------------------------------------------------------------------
def sizes_of(containers: Sequence[RecommendedContainer]) -> Sizes:
    """Resources as the status has them, by container."""
    return read_all({one.name: one for one in containers})


def recorded(sizes: Sizes) -> tuple[RecommendedContainer, ...]:
    """Resources by container, as the status has them."""
    return tuple(
        RecommendedContainer(name=name, requests=wire(one.requests), limits=wire(one.limits))
        for name, one in sizes.items()
    )


def by_section(
    rule: Callable[..., Mapping[Resource, int]], *sizes: ResourceRequirements
) -> ResourceRequirements:
    """What a rule makes of the requests of some sizes, and what it makes of their limits."""
    return ResourceRequirements(rule(*[one.requests for one in sizes]), rule(*[one.limits for one in sizes]))


def differing(have: ResourceRequirements, wanted: ResourceRequirements) -> ResourceRequirements:
    """Of what is wanted, what is not there."""
    return by_section(
        lambda old, new: {key: new[key] for key in new if old.get(key) != new[key]}, have, wanted
    )


def had(present: Sizes, changed: Sizes) -> Sizes:
    """Of what is changed, what was there before."""
    return {
        name: by_section(
            lambda old, new: {key: old[key] for key in old if key in new}, present.get(name, NOTHING), one
        )
        for name, one in changed.items()
    }


def moved(present: Sizes, wanted: Sizes) -> tuple[frozenset[Resource], frozenset[Resource]]:
    """Which resources are raised somewhere, and which are lowered. A container that is not there counts for nothing."""
    moves = [
        (resource, value - old.get(resource, 0))
        for name, one in wanted.items()
        if name in present
        for old, new in ((present[name].requests, one.requests), (present[name].limits, one.limits))
        for resource, value in new.items()
    ]
    return frozenset([one for one, by in moves if by > 0]), frozenset([one for one, by in moves if by < 0])


# --- the status ------------------------------------------------------------------------------------------------------
def size_of_new_pods(desired: DesiredSize | None) -> Sizes:
    """What pods are created with: while a size is tried on some pods, what the others have."""
    if desired is None:
        return {}
    return sizes_of(desired.containers if desired.canary is None else desired.canary.previous)


def as_desired(workload: Workload, desired: DesiredSize | None) -> Workload:
    """The workload with the replicas and resources that were decided.

    Replicas that were decided and not written yet count as written: they are as long as the workload has the generation
    that it was decided on. Later they are the workload's own, which another client may have set.
    Example: decided at generation 4 were 6 replicas instead of 3. At generation 4 there are 6, which are still to be
    written; at generation 5 there are as many as the workload has.
    """
    if desired is None:
        return workload
    spec = workload.spec
    changed = {one.name: one for one in desired.containers}
    containers = [
        structs.replace(
            one,
            resources=Resources(
                {**one.resources.requests, **changed[one.name].requests},
                {**one.resources.limits, **changed[one.name].limits},
            ),
        )
        if one.name in changed
        else one
        for one in spec.template.spec.containers
    ]
    template = structs.replace(spec.template, spec=structs.replace(spec.template.spec, containers=containers))
    is_pending = has_replicas(workload.kind) and desired.generation == workload.metadata.generation
    replicas = desired.replicas if is_pending else spec.replicas
    return structs.replace(workload, spec=structs.replace(spec, replicas=replicas, template=template))


def next_desired(
    clock: Clock, seen: ObservedState, replicas: int, containers: Sizes, changed: Set[str]
) -> DesiredSize:
    """What the status has from now on: the replicas that were decided, and of the containers what was changed by this
    decision (those named in `changed`) or an earlier one. What is the pod template's, its user may change: of what a
    container is to have, that alone was decided which differs from it or was decided before."""
    before, target = seen.status.desired, seen.target
    assert target is not None
    known = sizes_of(() if before is None else before.containers)
    template = present_resources(target.spec.template.spec.containers)
    found = {
        name: by_section(
            lambda new, own, old: {key: new[key] for key in new if new[key] != own.get(key) or key in old},
            one,
            template[name],
            known.get(name, NOTHING),
        )
        for name, one in containers.items()
        if name in changed or name in known
    }
    named = recorded({name: one for name, one in found.items() if one != NOTHING})
    is_same_count = before is not None and before.replicas == replicas
    # Of a kind without replicas the nodes decide how many pods there are: that is no decision.
    if before is not None and before.containers == named and (is_same_count or not has_replicas(target.kind)):
        return before if is_same_count else before.model_copy(update={"replicas": replicas})
    return DesiredSize(
        replicas=replicas,
        containers=named,
        since=clock.stamp().replace(microsecond=0),
        generation=before.generation if before is not None and is_same_count else target.metadata.generation,
    )


# --- what is written to the workload ---------------------------------------------------------------------------------
def scale_patch(target: Workload, replicas: int) -> WorkloadPatch | None:
    """The write of the replicas alone; None where the workload has as many."""
    if replicas == target.spec.replicas or not has_replicas(target.kind):
        return None
    return patch_of(target, {"replicas": replicas}, is_scale=True)


def template_patch(target: Workload, size: DesiredSize) -> WorkloadPatch | None:
    """The write of all that was decided, pod template included, for pods that can't be resized; None where the template
    has it already."""
    containers = _changed(target, size)
    if not containers:
        return None
    replicas = {"replicas": size.replicas} if has_replicas(target.kind) else {}
    return patch_of(target, {**replicas, "template": {"spec": {"containers": containers}}})


def template_has(target: Workload, size: DesiredSize) -> bool:
    """Whether the pod template has the size that was decided."""
    return not _changed(target, size)


def _changed(target: Workload, size: DesiredSize) -> list[dict[str, object]]:
    """The containers of the template whose resources are to be others."""
    present = present_resources(target.spec.template.spec.containers)
    return [
        {"name": name, "resources": found}
        for name, one in sizes_of(size.containers).items()
        if name in present and (found := changes(present[name], one))
    ]


def patch_of(
    target: Workload,
    spec: Mapping[str, object],
    metadata: Mapping[str, object] | None = None,
    *,
    is_scale: bool = False,
) -> WorkloadPatch:
    """A patch of the workload as it is, with these metadata beside its resource version."""
    version = target.metadata.resource_version
    body = {"metadata": {"resourceVersion": version, **(metadata or {})}, "spec": spec}
    return WorkloadPatch(target.kind, target.metadata.name, version, body, is_scale, target.api_version)
