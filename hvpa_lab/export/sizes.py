"""The size to export of each workload with an Hvpa: `recommended` of the operator's own decision.

A change for Git waits for a review, so gates that only choose a time (stabilization, maintenance windows, `minChange`)
do not count. A change that the Hvpa forbids or that is known to fail is not exported: the present value stays.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from msgspec import structs

from hvpa.api.hvpa.scaling import UpdatePolicy
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.kinds import has_replicas, kind_key
from hvpa.api.objects.read_models import Workload
from hvpa.api.values.names import is_kind, is_label, is_subdomain
from hvpa.api.values.quantity import Resource
from hvpa.cli.input.gather import invalid
from hvpa.core import Settings, decide, observe
from hvpa.core.gates import gates
from hvpa.core.model import Blocked, Decision, Objects, ResourceRequirements, ScalableObservation
from hvpa.core.workload.containers import SHARED, ContainerResource, amounts, present_resources
from hvpa.core.workload.governed import governed
from hvpa.core.workload.pod_level import POD, with_limits, with_pod
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.targeting import Place, Target, place_of, reference_of
from hvpa.reconcile.ports import Key

HOLDS: Final = frozenset(
    {
        gates.UPDATE_POLICY,
        gates.REFUSED,
        gates.CANARY,
        gates.ROLLED_BACK,
        gates.MIN_HISTORY,
        gates.OUT_OF_MEMORY,
        gates.RECENT_RAISE,
        gates.SUSTAINED_DEMAND,
    }
)
"""Gates that also hold for Git: the Hvpa forbids the change, it has failed, or its basis is too short."""
_BEFORE: Final = frozenset({gates.MAINTENANCE_WINDOW, gates.ROLLOUT})
"""Gates that choose a time, and are reported in place of a later gate of HOLDS (SustainedDemand)."""


class Sizes(NamedTuple):
    """Requests and limits by container (`POD`: of the pod itself), only of the resources that the Hvpa governs, and the
    replicas (None: something else sets them)."""

    containers: Mapping[str, ResourceRequirements]
    replicas: int | None = None


class Sized(NamedTuple):
    """A workload with its present size, by the pod template, and the size to export."""

    target: Target
    hvpa: Key
    workload: Workload
    present: Sizes
    wanted: Sizes


class NotSized(NamedTuple):
    """A workload that is not exported now, and the reason."""

    target: Target
    hvpa: Key
    why: str
    is_fault: bool = True
    """Whether the exit code reports it."""
    is_gone: bool = False
    """Whether the workload does not exist, so that its file is removed."""


Result = Sized | NotSized


def all_sizes(
    local: LocalCluster,
    now: dt.datetime,
    settings: Settings,
    unread: Mapping[Target, str],
    *,
    with_replicas: bool = True,
) -> Iterator[Result]:
    """The result of each workload that an Hvpa names, by namespace, kind and name.

    If several Hvpas name a workload, the first by rank counts: modes Apply and Review come first. `unread` are
    workloads that can't be read, and the reasons.
    """
    for target, key in sorted(_first_hvpas(local).items()):
        if target in unread:
            yield NotSized(target, key, f"its target {_named(target)} can't be read: {unread[target]}")
            continue
        objects = local.objects(key)
        assert objects is not None
        result = _result(target, objects, now, settings, with_replicas)
        if result is not None:
            yield result


def _first_hvpas(local: LocalCluster) -> dict[Target, Key]:
    first: dict[Target, tuple[Place, Key]] = {}
    for key in local.hvpas:
        place = place_of(local.hvpas.get(key))
        if place is not None and (place[0] not in first or place[1].rank < first[place[0]][0][1].rank):
            first[place[0]] = place, key
    return {target: key for target, (_, key) in first.items()}


def _result(
    target: Target, objects: Objects, now: dt.datetime, settings: Settings, with_replicas: bool
) -> Result | None:
    """The result of an Hvpa; None if it governs nothing that a file can contain."""
    meta, spec = objects.hvpa.metadata, objects.hvpa.spec
    key = Key(meta.namespace, meta.name)
    if problems := invalid(objects.hvpa):
        return NotSized(target, key, "; ".join(map(str, problems)))
    assert spec is not None
    if not (is_label(target.namespace) and is_subdomain(target.name) and is_kind(spec.target_ref.kind)):
        return NotSized(target, key, "the name of its target can't be the name of a file")
    if spec.mode == "Paused":
        return NotSized(target, key, "spec.mode is Paused: its file stays as it is", is_fault=False)
    observation = observe(objects, now, settings)
    if not isinstance(observation, ScalableObservation):
        is_gone = observation.problem.reason == "TargetNotFound"
        return NotSized(target, key, observation.problem.message, is_gone=is_gone)
    decision = decide(observation)
    if observation.workload.spec.replicas == 0:
        why = "the workload has no replicas: its file stays as it is"
        return NotSized(target, key, why, is_fault=False)
    unknown = _unknown(observation, decision)
    if unknown is not None:
        return NotSized(target, key, unknown)
    items = governed(observation) if observation.vpa.in_charge else ()
    blocked = _held(objects, observation, decision)
    is_held = any(entry.axis == "horizontal" for entry in blocked)
    counts = (
        _replicas(target, objects, observation, decision, is_held=is_held) if with_replicas else (None, None)
    )
    if not items and counts[1] is None:
        return None
    template = present_resources(observation.target.spec.template.spec.containers)
    present = present_resources(observation.workload.spec.template.spec.containers)
    held = {(entry.container, entry.resource) for entry in blocked}
    before = _of_items(items, lambda item: template)
    wanted = _of_items(items, lambda item: present if item.key in held else decision.recommended)
    sizes = (
        Sizes(_with_pod(observation, items, containers), count)
        for containers, count in zip((before, wanted), counts, strict=True)
    )
    return Sized(target, key, observation.target, *sizes)


def _unknown(observation: ScalableObservation, decision: Decision) -> str | None:
    """Why the size is unknown: a recommender that can't be used, or a demand that is not measured now."""
    active = {condition.type: condition for condition in decision.status.conditions}
    for kind, recommender in (("HpaActive", observation.hpa), ("VpaActive", observation.vpa)):
        if recommender.configured and active[kind].status != "True":
            return active[kind].message
    return None if decision.unknown is None else f"the demand is unknown: {decision.unknown.why}"


def _held(objects: Objects, observation: ScalableObservation, decision: Decision) -> list[Blocked]:
    """The changes that a gate of HOLDS blocks, even if a gate of _BEFORE blocks them, too."""
    blocked = [*decision.blocked]
    if any(entry.reason in _BEFORE for entry in blocked):
        blocked += decide(observe(_at_any_time(objects), observation.now, observation.settings)).blocked
    return [entry for entry in blocked if entry.reason in HOLDS]


def _at_any_time(objects: Objects) -> Objects:
    """The objects as if no gate of _BEFORE blocked: a direction that waits for a maintenance window has the update mode
    Auto, and the last rollout is complete."""
    hvpa, workload = objects.hvpa, objects.workload
    assert hvpa.spec is not None
    assert workload is not None
    fields: dict[str, Any] = {name: getattr(hvpa.spec, name) for name in HvpaSpec.model_fields}
    for axis in ("hpa", "vpa"):
        directions = {
            name: direction.model_copy(update={"update_policy": UpdatePolicy()})
            for name in ("scale_up", "scale_down")
            if (direction := getattr(fields[axis], name)).update_policy.update_mode == "MaintenanceWindow"
        }
        fields[axis] = fields[axis].model_copy(update=directions)
    count = workload.spec.replicas
    complete = structs.replace(
        workload.status,
        observed_generation=workload.metadata.generation,
        replicas=count,
        updated_replicas=count,
        ready_replicas=count,
        available_replicas=count,
    )
    # A new spec: a copy would keep properties that were computed from the old fields.
    spec = HvpaSpec.model_construct(**fields)
    settled = structs.replace(workload, status=complete)
    return replace(objects, hvpa=replace(hvpa, spec=spec), workload=settled)


def _with_pod(
    observation: ScalableObservation,
    items: Collection[ContainerResource],
    sizes: Mapping[str, ResourceRequirements],
) -> Mapping[str, ResourceRequirements]:
    """The sizes with the pod's own amounts in place of the amounts that its containers share."""
    template = observation.target.spec.template.spec
    present = present_resources(template.containers)
    if template.resources is None or SHARED not in present:
        return sizes
    own = ResourceRequirements(amounts(template.resources.requests), amounts(template.resources.limits))
    shared = sizes.get(SHARED, ResourceRequirements({}, {}))
    whole = {**present, **sizes, SHARED: ResourceRequirements(shared.requests, own.limits)}
    limits = with_limits(template, whole, items, observation.spec)[SHARED].limits
    scaled = {item.resource for item in items} - {item.resource for item in items if not item.scales_limit}
    limits = {resource: limit for resource, limit in limits.items() if resource in scaled}
    of_pod = with_pod(template, {**sizes, SHARED: ResourceRequirements(shared.requests, limits)})[POD]
    requests = {resource: size for resource, size in of_pod.requests.items() if resource in own.requests}
    containers = {name: size for name, size in sizes.items() if name != SHARED}
    return {**containers, POD: ResourceRequirements(requests, limits)} if requests or limits else containers


def _of_items(
    items: Collection[ContainerResource],
    sizes: Callable[[ContainerResource], Mapping[str, ResourceRequirements]],
) -> dict[str, ResourceRequirements]:
    """Requests of the governed resources, and the limits that change with them, in the sizes that apply to each."""
    found: dict[str, ResourceRequirements] = {}
    for item in items:
        size = sizes(item)[item.container]
        before = found.get(item.container, ResourceRequirements({}, {}))
        limits = size.limits if item.scales_limit else {}
        found[item.container] = ResourceRequirements(
            {**before.requests, **_only(item.resource, size.requests)},
            {**before.limits, **_only(item.resource, limits)},
        )
    return {name: size for name, size in found.items() if size.requests or size.limits}


def _only(resource: Resource, sizes: Mapping[Resource, int]) -> dict[Resource, int]:
    return {resource: sizes[resource]} if resource in sizes else {}


def _replicas(
    target: Target, objects: Objects, observation: ScalableObservation, decision: Decision, *, is_held: bool
) -> tuple[int | None, int | None]:
    """The present and the wanted replicas; None if an HPA or the operator sets them, or nothing recommends them.

    A file is read for longer than a decision holds, so the wanted replicas are at least those of the usual demand.
    """
    view = decision.replicas
    assert view is not None
    scaled = (reference_of(hpa) for hpa in objects.hpas)
    acts = any((kind_key(one.api_version, one.kind), one.name) == target[1:] for one in scaled)
    if not observation.hpa.configured or observation.spec.applies or acts or not has_replicas(target.kind):
        return None, None
    usual = None if decision.joint is None else decision.joint.usual
    wanted = max(view.recommended, 0 if usual is None else usual.replicas)
    return observation.target.spec.replicas, view.current if is_held else wanted


def _named(target: Target) -> str:
    return f"{target.kind.partition('.')[0]} {target.name}"
