"""The workloads of a local copy of the cluster, with their recommenders and the `Objects` for a decision of each
blend.

For a workload without an Hvpa, or without an Hvpa of a blend, an Hvpa is drafted in memory only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hvpa.api.hvpa.intervals import ScalingInterval
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import Blend, HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.kinds import KINDS, is_custom, kind_key
from hvpa.api.objects.read_models import Hpa, Meta, Pod, RawHvpa, Vpa, Workload
from hvpa.core.model import LAST_APPLIED, Objects
from hvpa.core.workload.pod_owner import by_owner
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.store import Store
from hvpa.kube.cache.targeting import HVPA_KIND, Target, reference_of, target_in
from hvpa.kube.objects.resources import T
from hvpa.kube.objects.stored_hvpa import StoredHvpa, stored
from hvpa.reconcile.ports import Key
from hvpa_lab.prometheus.past import PastUsage
from hvpa_lab.report.estimate import estimated_vpa
from hvpa_lab.report.surroundings import NOTHING, ContainerUsage, Surroundings

BLENDS: Final[tuple[Blend, ...]] = ("Additive", "Trajectory")
DEFAULT_VPA_WEIGHT: Final = 50
"""Vertical weight in percent if no Hvpa sets it: larger pods serve half of each relative increase.

It is the value of getting-started and of the measurements in docs/joint-scaling.md.
"""
_UID: Final = "report"
"""No object of a cluster has this uid, so a draft owns nothing."""
R = TypeVar("R", bound=Hpa | Vpa | StoredHvpa)


class BlendInput(NamedTuple):
    """The input of a blend's decision; `is_own`: from an existing Hvpa."""

    blend: Blend
    is_own: bool
    objects: Objects


class Subject(NamedTuple):
    """A workload with a recommender."""

    workload: Workload
    hpas: Sequence[Hpa]
    """The HPAs that target the workload."""
    vpas: Sequence[Vpa]
    """The VPAs that target the workload."""
    hvpas: Sequence[HvpaObject]
    """Its Hvpas, in order of precedence."""
    candidates: Sequence[BlendInput]
    """A candidate per blend; only a single candidate if the Hvpa's spec is invalid."""
    pods: Sequence[Pod] = ()
    """Its own pods. Its selector may also match pods of a Job or of another workload."""
    usage: Sequence[ContainerUsage] = ()
    """The present usage of its own pods, as far as the metrics API reports it."""
    is_estimated: bool = False
    """Whether the workload has no VPA, so that its requests are estimated from its usage."""
    past: PastUsage | None = None
    """Its past usage, from Prometheus."""


class LeftOut(NamedTuple):
    """An HPA, VPA or Hvpa whose target an Hvpa can't scale, or an object that can't be read, and the reason."""

    kind: str
    namespace: str
    name: str
    why: str


class Inventory(NamedTuple):
    """All results: workloads with and without a recommender, and recommenders without a workload."""

    subjects: Sequence[Subject]
    without: Sequence[Workload]
    left_out: Sequence[LeftOut]
    vpa_weight: int
    """Vertical weight of drafts, in percent."""
    around: Surroundings


def inventory(
    local: LocalCluster,
    vpa_weight: int,
    unreadable: Sequence[LeftOut] = (),
    unread: Mapping[Target, str] = MappingProxyType({}),
    around: Surroundings = NOTHING,
) -> Inventory:
    """The inventory of `local`, by namespace, kind and name.

    `vpa_weight` is the weight of drafts, in percent. `unread` are targets that are not in `local`, and the reasons.
    """
    hpas, vpas, hvpas = _by_target(local.hpas), _by_target(local.vpas), _by_target(local.hvpas)
    subjects, without, targets = [], [], set()
    workloads = [entry for store in local.workloads.values() for entry in _all(store)]
    workloads.sort(key=lambda entry: (entry.metadata.namespace, entry.kind, entry.metadata.name))
    for workload in workloads:
        if workload.metadata.deletion_timestamp is not None:
            continue
        target = place(workload)
        targets.add(target)
        found = _Recommenders(hpas.get(target, ()), vpas.get(target, ()), hvpas.get(target, ()))
        subject = _subject(local, workload, found, vpa_weight, around)
        if subject is not None:
            subjects.append(subject)
        elif _is_common(workload):
            without.append(workload)
    astray: list[tuple[Target, Sequence[Hpa | Vpa | StoredHvpa]]]
    astray = [*hpas.items(), *vpas.items(), *hvpas.items()]
    left_out = [
        _left_out(recommender, target, unread.get(target))
        for target, recommenders in astray
        if target not in targets
        for recommender in recommenders
    ]
    return Inventory(subjects, without, [*left_out, *unreadable], vpa_weight, around)


class _Recommenders(NamedTuple):
    """What targets a workload."""

    hpas: Sequence[Hpa]
    vpas: Sequence[Vpa]
    hvpas: Sequence[StoredHvpa]


def _subject(
    local: LocalCluster, workload: Workload, found: _Recommenders, vpa_weight: int, around: Surroundings
) -> Subject | None:
    """The workload with its recommenders, or with a VPA that is estimated from its usage; None without any."""
    hpas, vpas, hvpas = found
    estimated, past = None, around.past_of(workload)
    if hvpas:
        candidates = _of_hvpas(local, hvpas, vpa_weight)
    else:
        if not vpas and (around.usage or past) and (hpas or _is_common(workload)):
            drafted = _drafted(local, workload, draft(workload, None, None, BLENDS[0], vpa_weight))
            used = around.used(by_owner(drafted.pods, workload).own) if past is None else [past.busiest]
            estimated = estimated_vpa(workload, used)
        if estimated is None and not hpas and not vpas:
            return None
        read = vpas if estimated is None else (estimated,)
        candidates = _drafts(local, workload, hpas, read, vpa_weight)
    objects = candidates[0].objects
    pods = by_owner(objects.pods, workload).own
    return Subject(
        objects.workload or workload,
        hpas,
        vpas,
        [hvpa.read() for hvpa in hvpas],
        candidates,
        pods,
        around.used(pods),
        estimated is not None,
        past,
    )


def _is_common(workload: Workload) -> bool:
    """Whether the workload counts without a recommender. A Deployment's ReplicaSets do not, nor do other kinds that few
    clusters scale."""
    return workload.kind not in KINDS or KINDS[workload.kind].is_common


def place(workload: Workload) -> Target:
    """The target by which HPAs, VPAs and Hvpas refer to the workload."""
    meta = workload.metadata
    return Target(meta.namespace, kind_key(workload.api_version, workload.kind), meta.name)


def _all(store: Store[T]) -> Iterator[T]:
    return (entry for key in store if (entry := store.get(key)) is not None)


def _by_target(store: Store[R]) -> dict[Target, list[R]]:
    """Objects by target, in order of precedence."""
    targets: dict[Target, list[R]] = {}
    for recommender in sorted(_all(store), key=_rank):
        if (target := _target(recommender)) is not None:
            targets.setdefault(target, []).append(recommender)
    return targets


def _target(recommender: Hpa | Vpa | StoredHvpa) -> Target | None:
    """The target of an object; None for an Hvpa that is being deleted, and for recommenders of an Hvpa, which it
    finds itself."""
    if isinstance(recommender, StoredHvpa):
        counts = recommender.metadata.deletion_timestamp is None
        return target_in(recommender.metadata.namespace, recommender.links) if counts else None
    reference = reference_of(recommender)
    kind = kind_key(reference.api_version, reference.kind)
    return (
        Target(recommender.metadata.namespace, kind, reference.name) if reference.kind != HVPA_KIND else None
    )


def _rank(recommender: Hpa | Vpa | StoredHvpa) -> tuple[bool, bool, str]:
    """The order among objects with the same target: Hvpas in mode Apply first, each by name."""
    if not isinstance(recommender, StoredHvpa):
        return (False, False, recommender.metadata.name)
    spec = recommender.read().spec
    return (spec is None, spec is not None and not spec.applies, recommender.metadata.name)


def _of_hvpas(local: LocalCluster, hvpas: Sequence[StoredHvpa], vpa_weight: int) -> list[BlendInput]:
    """A candidate per blend: the first Hvpa with this blend, else the first Hvpa as if it had this blend."""
    candidates: dict[Blend, BlendInput] = {}
    for hvpa in hvpas:
        objects = local.objects(Key(hvpa.metadata.namespace, hvpa.metadata.name))
        assert objects is not None
        joint = objects.hvpa.spec is not None and objects.hvpa.spec.joint
        blend: Blend = "Trajectory" if joint else "Additive"
        candidates.setdefault(blend, BlendInput(blend, True, objects))
    first = next(iter(candidates.values()))
    if first.objects.hvpa.spec is None:
        return [first]
    for blend in BLENDS:
        if blend not in candidates:
            candidates[blend] = BlendInput(blend, False, with_blend(first.objects, blend, vpa_weight))
    return [candidates[blend] for blend in BLENDS]


def named_targets(local: LocalCluster) -> dict[Target, str]:
    """The targets of the HPAs, VPAs and Hvpas in `local`, each with the API version in the first of them."""
    versions: dict[Target, str] = {}
    recommenders: list[Hpa | Vpa | StoredHvpa] = [*_all(local.hpas), *_all(local.vpas), *_all(local.hvpas)]
    for recommender in recommenders:
        if (target := _target(recommender)) is not None:
            reference = (
                recommender.links.target_ref
                if isinstance(recommender, StoredHvpa)
                else reference_of(recommender)
            )
            versions.setdefault(target, reference.api_version or "")
    return versions


def _left_out(recommender: Hpa | Vpa | StoredHvpa, target: Target, unread: str | None) -> LeftOut:
    named, _, group = target.kind.partition(".")
    why = f"its target {named} {target.name} does not exist"
    if target.kind not in KINDS and not group:
        why = f"its target is a {target.kind or 'nameless kind'}, which an Hvpa can't scale"
    elif unread is not None:
        why = f"its target {named} {target.name}: {unread}"
    kind = HVPA_KIND
    if not isinstance(recommender, StoredHvpa):
        kind = "HorizontalPodAutoscaler" if isinstance(recommender, Hpa) else "VerticalPodAutoscaler"
    return LeftOut(kind, recommender.metadata.namespace, recommender.metadata.name, why)


# --- drafts ---------------------------------------------------------------------------------------------------------
def _drafts(
    local: LocalCluster, workload: Workload, hpas: Sequence[Hpa], vpas: Sequence[Vpa], vpa_weight: int
) -> list[BlendInput]:
    """A candidate per blend from a drafted Hvpa that reads the first HPA and the first VPA. A VPA that is not in the
    local copy, an estimate, is there only meanwhile."""
    hpa, vpa = (recommenders[0].metadata.name if recommenders else None for recommenders in (hpas, vpas))
    beside = [vpa for vpa in vpas if local.vpas.get(_key(vpa.metadata)) is None]
    for estimate in beside:
        local.vpas.put(estimate)
    candidates = [
        BlendInput(blend, False, _drafted(local, workload, draft(workload, hpa, vpa, blend, vpa_weight)))
        for blend in BLENDS
    ]
    for estimate in beside:
        local.vpas.delete(_key(estimate.metadata))
    return candidates


def _drafted(local: LocalCluster, workload: Workload, hvpa: StoredHvpa) -> Objects:
    """The objects of a drafted Hvpa, which is in the local copy only while its objects are looked up."""
    key = _key(hvpa.metadata)
    local.hvpas.put(hvpa)
    if workload.kind not in KINDS:
        local.put_scaled(workload)  # a workload is dropped when no Hvpa names it any more
    objects = local.objects(key)
    local.hvpas.delete(key)
    assert objects is not None
    return objects


def _key(meta: Meta) -> Key:
    return Key(meta.namespace, meta.name)


def draft(workload: Workload, hpa: str | None, vpa: str | None, blend: Blend, vpa_weight: int) -> StoredHvpa:
    """An Hvpa in mode Recommend that reads the HPA and the VPA with these names (None: it does not exist).

    Its own name contains a slash, so no Hvpa in the cluster has it. With an HPA and a VPA, `vpa_weight` (percent)
    applies at every replica count. With only an HPA or only a VPA, no weight is set, so that it makes all of a
    change.
    """
    meta = workload.metadata
    target = {"apiVersion": workload.api_version, "kind": workload.kind, "name": meta.name}
    spec: dict[str, Any] = {"mode": "Recommend", "blend": blend, "targetRef": target}
    spec |= {kind: {"name": name} for kind, name in (("hpa", hpa), ("vpa", vpa)) if name is not None}
    if is_custom(workload.api_version, workload.kind):
        spec["updateStrategy"] = {"type": "InPlace"}  # HVPA does not change their pod templates
    if hpa is not None and vpa is not None:
        # A fraction: as a percentage, a weight of 1 would be read as the fraction 1.
        spec["weightBasedScalingIntervals"] = [{"vpaWeight": vpa_weight / 100}]
    metadata = Meta(name=f"{workload.kind}/{meta.name}", namespace=meta.namespace, uid=_UID)
    return stored(RawHvpa(metadata, msgspec.Raw(msgspec.json.encode(spec))))


def with_blend(objects: Objects, blend: Blend, vpa_weight: int) -> Objects:
    """The objects of a valid Hvpa, as if it were created now with another blend, without the steps of its blend.

    If its spec contains its path (`trajectory.intervals`), it has no weights, and `vpa_weight` (percent) applies at
    every replica count.
    """
    hvpa, workload = objects.hvpa, objects.workload
    assert hvpa.spec is not None
    # A new object: a copy would keep properties that were computed from the old fields.
    fields: dict[str, Any] = {name: getattr(hvpa.spec, name) for name in HvpaSpec.model_fields}
    fields["blend"] = blend
    if hvpa.spec.trajectory is not None and blend == "Additive":
        fields["trajectory"] = None
        if hvpa.spec.trajectory.intervals:
            fields["weight_based_scaling_intervals"] = (ScalingInterval(vpa_weight=vpa_weight / 100),)
    fresh = HvpaObject(hvpa.metadata, HvpaSpec.model_construct(**fields), hvpa.problems, HvpaStatus())
    if workload is not None and LAST_APPLIED in workload.metadata.annotations:
        annotations = dict(workload.metadata.annotations)
        del annotations[LAST_APPLIED]
        metadata = msgspec.structs.replace(workload.metadata, annotations=annotations)
        workload = msgspec.structs.replace(workload, metadata=metadata)
    return replace(objects, hvpa=fresh, workload=workload)
