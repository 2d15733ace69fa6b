"""The size to export of each workload with an Hvpa: `recommended` of the operator's own decision.

A change for Git waits for a review, so gates that only choose a time (stabilization, maintenance windows, `minChange`)
do not count. A change that the Hvpa forbids or that is known to fail is not exported: the present value stays.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from hvpa.api.objects.kinds import has_replicas, kind_key
from hvpa.api.objects.read_models import TemplateSpec, Workload
from hvpa.api.values.names import is_kind, is_label, is_subdomain
from hvpa.api.values.quantity import Resource
from hvpa.cli.input.gather import invalid
from hvpa.core import Settings, decide, observe
from hvpa.core.gates import gates
from hvpa.core.model import Decision, Objects, ResourceRequirements, ScalableObservation
from hvpa.core.path.path import ResourceKey
from hvpa.core.workload.containers import SHARED, ContainerResource, amounts, present_resources
from hvpa.core.workload.governed import governed
from hvpa.core.workload.pod_level import POD, with_pod
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


class Sizes(NamedTuple):
    """Requests and limits, only of the resources that the Hvpa governs, and the replicas (None: something else sets
    them)."""

    containers: Mapping[str, ResourceRequirements]
    replicas: int | None = None
    pod: ResourceRequirements | None = None
    """Of the pod itself, if its template has resources of its own."""


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
_SizesOf = Callable[[ContainerResource], Mapping[str, ResourceRequirements]]
"""The sizes that apply to a container resource, by container."""


def all_sizes(
    local: LocalCluster,
    now: dt.datetime,
    settings: Settings,
    unread: Mapping[Target, str],
    *,
    with_replicas: bool = True,
) -> Iterator[Result]:
    """The result of each workload that an Hvpa names, by namespace, kind and name.

    If several Hvpas name a workload, the first by rank counts: mode Apply comes first. `unread` are workloads that
    can't be read, and the reasons.
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
    counts = _replicas(target, objects, observation, decision) if with_replicas else (None, None)
    if not items and counts[1] is None:
        return None
    template = observation.target.spec.template.spec
    in_template = present_resources(template.containers)
    present = present_resources(observation.workload.spec.template.spec.containers)
    held = _held(decision)
    if SHARED in in_template:  # the pod's amounts belong together
        resources = {key.resource for key in held}
        held = frozenset(item.key for item in items if item.resource in resources)
    return Sized(
        target,
        key,
        observation.target,
        _sizes(template, items, lambda item: in_template, counts[0]),
        _sizes(
            template, items, lambda item: present if item.key in held else decision.recommended, counts[1]
        ),
    )


def _unknown(observation: ScalableObservation, decision: Decision) -> str | None:
    """Why the size is unknown: a recommender that can't be used, or a demand that is not measured now."""
    active = {condition.type: condition for condition in decision.status.conditions}
    for kind, recommender in (("HpaActive", observation.hpa), ("VpaActive", observation.vpa)):
        if recommender.configured and active[kind].status != "True":
            return active[kind].message
    return None if decision.unknown is None else f"the demand is unknown: {decision.unknown.why}"


def _held(decision: Decision) -> frozenset[ResourceKey]:
    """The container resources whose change a gate of HOLDS blocks."""
    return frozenset(
        ResourceKey(entry.container, entry.resource)
        for entry in decision.blocked
        if entry.reason in HOLDS and entry.container is not None and entry.resource is not None
    )


def _of_items(
    items: Collection[ContainerResource],
    sizes: _SizesOf,
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


def _sizes(
    template: TemplateSpec, items: Collection[ContainerResource], sizes: _SizesOf, replicas: int | None
) -> Sizes:
    """Sizes of the containers, with the pod's own amounts in place of `SHARED`, as far as the template has them."""
    containers = _of_items(items, sizes)
    if template.resources is None or SHARED not in present_resources(template.containers):
        return Sizes(containers, replicas)
    fixed = {item.resource for item in items if not item.scales_limit}
    limits = {
        item.resource: limit
        for item in items
        if item.resource not in fixed and (limit := sizes(item)[SHARED].limits.get(item.resource)) is not None
    }
    shared = containers.get(SHARED, ResourceRequirements({}, {}))
    whole = dict(with_pod(template, {**containers, SHARED: ResourceRequirements(shared.requests, limits)}))
    pod, own = whole.pop(POD), amounts(template.resources.requests)
    requests = {of: size for of, size in pod.requests.items() if of in own}
    return Sizes(whole, replicas, ResourceRequirements(requests, pod.limits))


def _only(resource: Resource, sizes: Mapping[Resource, int]) -> dict[Resource, int]:
    return {resource: sizes[resource]} if resource in sizes else {}


def _replicas(
    target: Target, objects: Objects, observation: ScalableObservation, decision: Decision
) -> tuple[int | None, int | None]:
    """The present and the wanted replicas; None if an HPA or the operator sets them, or nothing recommends them.

    A file is read for longer than a decision holds, so the wanted replicas are at least those of the usual demand.
    """
    view = decision.replicas
    assert view is not None
    scaled = (reference_of(hpa) for hpa in objects.hpas)
    acts = any((kind_key(one.api_version, one.kind), one.name) == target[1:] for one in scaled)
    if (
        not observation.hpa.configured
        or observation.spec.mode == "Apply"
        or acts
        or not has_replicas(target.kind)
    ):
        return None, None
    held = any(entry.axis == "horizontal" and entry.reason in HOLDS for entry in decision.blocked)
    usual = None if decision.joint is None else decision.joint.usual
    wanted = max(view.recommended, 0 if usual is None else usual.replicas)
    return observation.target.spec.replicas, view.current if held else wanted


def _named(target: Target) -> str:
    return f"{target.kind.partition('.')[0]} {target.name}"
