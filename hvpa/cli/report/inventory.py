"""The workloads of a local copy of the cluster, with what recommends for each, and the `Objects` that each blend is
decided from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import Blend
from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import Hpa, Vpa, Workload
from hvpa.cli.report.drafts import BLENDS, draft, with_blend
from hvpa.core.model import Objects
from hvpa.kube.cache.cluster_cache import LocalCluster
from hvpa.kube.cache.targeting import HVPA_KIND, Target, reference_of
from hvpa.kube.objects.stored_hvpa import StoredHvpa
from hvpa.reconcile.ports import Key

R = TypeVar("R", Hpa, Vpa)
"""A recommender."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one blend is decided from; `is_own`: by an Hvpa that exists."""

    blend: Blend
    is_own: bool
    objects: Objects


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload that something recommends for: `hpas` and `vpas` are those that point at it, `hvpas` its Hvpas, the
    one that counts first. `candidates` has one for each blend; where the Hvpa's spec is invalid, one alone."""

    workload: Workload
    hpas: tuple[Hpa, ...]
    vpas: tuple[Vpa, ...]
    hvpas: tuple[HvpaObject, ...]
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An HPA, VPA or Hvpa that points at nothing that an Hvpa can scale, or an object that can't be read, and why."""

    kind: str
    namespace: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that was found: workloads with a recommender, workloads without one, and recommenders without a workload."""

    subjects: tuple[Subject, ...]
    without: tuple[Workload, ...]
    left_out: tuple[LeftOut, ...]


def inventory(local: LocalCluster, vpa_weight: int) -> Inventory:
    """Everything in `local`, by namespace, kind and name; `vpa_weight` is that of drafts, in percent."""
    hpas = _by_target([hpa for key in local.hpas if (hpa := local.hpas.get(key)) is not None])
    vpas = _by_target([vpa for key in local.vpas if (vpa := local.vpas.get(key)) is not None])
    hvpas = _hvpas(local)
    subjects, without, targets = [], [], set()
    for workload in sorted(_workloads(local), key=_place):
        target = Target(workload.metadata.namespace, workload.kind, workload.metadata.name)
        targets.add(target)
        own, scaled, sized = hvpas.get(target, ()), hpas.get(target, ()), vpas.get(target, ())
        if own:
            candidates = _of_hvpas(local, own, vpa_weight)
        elif scaled or sized:
            candidates = _drafts(local, workload, scaled, sized, vpa_weight)
        else:
            without.append(workload)
            continue
        subjects.append(
            Subject(
                candidates[0].objects.workload or workload,
                tuple(scaled),
                tuple(sized),
                tuple([one.read() for one in own]),
                tuple(candidates),
            )
        )
    astray: list[tuple[Target, Sequence[Hpa | Vpa | StoredHvpa]]]
    astray = [*hpas.items(), *vpas.items(), *hvpas.items()]
    left_out = [_left_out(one, target) for target, many in astray if target not in targets for one in many]
    return Inventory(tuple(subjects), tuple(without), tuple(left_out))


def _of_hvpas(local: LocalCluster, hvpas: Sequence[StoredHvpa], vpa_weight: int) -> list[Candidate]:
    """Each blend as an Hvpa has it, the one that counts before others; a blend that none has, as the one that counts
    would have it."""
    found: dict[Blend, Candidate] = {}
    for one in hvpas:
        objects = local.objects(Key(one.metadata.namespace, one.metadata.name))
        assert objects is not None
        joint = objects.hvpa.spec is not None and objects.hvpa.spec.joint
        blend: Blend = "Trajectory" if joint else "Additive"
        found.setdefault(blend, Candidate(blend, True, objects))
    first = next(iter(found.values()))
    if first.objects.hvpa.spec is None:
        return [first]
    for blend in BLENDS:
        if blend not in found:
            found[blend] = Candidate(blend, False, with_blend(first.objects, blend, vpa_weight))
    return [found[blend] for blend in BLENDS]


def _drafts(
    local: LocalCluster, workload: Workload, hpas: Sequence[Hpa], vpas: Sequence[Vpa], vpa_weight: int
) -> list[Candidate]:
    """Each blend as an Hvpa would have it that reads the first HPA and the first VPA."""
    hpa, vpa = (found[0].metadata.name if found else None for found in (hpas, vpas))
    drafts = {blend: draft(workload, hpa, vpa, blend, vpa_weight) for blend in BLENDS}
    return [Candidate(blend, False, _objects_of(local, hvpa)) for blend, hvpa in drafts.items()]


def _objects_of(local: LocalCluster, hvpa: StoredHvpa) -> Objects:
    """What a draft is decided from: it is in the local copy for as long as that is looked up."""
    key = Key(hvpa.metadata.namespace, hvpa.metadata.name)
    local.hvpas.put(hvpa)
    objects = local.objects(key)
    local.hvpas.delete(key)
    assert objects is not None
    return objects


def _workloads(local: LocalCluster) -> Iterable[Workload]:
    for store in local.workloads.values():
        for key in store:
            workload = store.get(key)
            if workload is not None and workload.metadata.deletion_timestamp is None:
                yield workload


def _by_target(found: Sequence[R]) -> dict[Target, list[R]]:
    """Recommenders by what they point at, in order of their names; those of an Hvpa are found by it."""
    targets: dict[Target, list[R]] = defaultdict(list)
    for one in sorted(found, key=lambda one: one.metadata.name):
        reference = reference_of(one)
        if reference.kind != HVPA_KIND:
            targets[Target(one.metadata.namespace, reference.kind, reference.name)].append(one)
    return dict(targets)


def _hvpas(local: LocalCluster) -> dict[Target, list[StoredHvpa]]:
    """Hvpas by target: those in mode Apply first, each by name."""
    targets: dict[Target, list[StoredHvpa]] = defaultdict(list)
    for key in local.hvpas:
        one = local.hvpas.get(key)
        if one is not None and one.metadata.deletion_timestamp is None:
            reference = one.links.target_ref
            targets[Target(key.namespace, reference.kind, reference.name)].append(one)
    for many in targets.values():
        many.sort(key=_rank)
    return dict(targets)


def _rank(hvpa: StoredHvpa) -> tuple[bool, bool, str]:
    spec = hvpa.read().spec
    return (spec is None, spec is not None and spec.mode != "Apply", hvpa.metadata.name)


def _left_out(one: Hpa | Vpa | StoredHvpa, target: Target) -> LeftOut:
    why = f"its target {target.kind} {target.name} does not exist"
    if target.kind not in KINDS:
        why = f"its target is a {target.kind or 'nameless kind'}, which an Hvpa can't scale"
    elif not KINDS[target.kind].is_common:
        why = f"its target is a {target.kind}, which an Hvpa can scale and this report does not list"
    kind = HVPA_KIND
    if not isinstance(one, StoredHvpa):
        kind = "HorizontalPodAutoscaler" if isinstance(one, Hpa) else "VerticalPodAutoscaler"
    return LeftOut(kind, one.metadata.namespace, one.metadata.name, why)


def _place(workload: Workload) -> tuple[str, str, str]:
    return (workload.metadata.namespace, workload.kind, workload.metadata.name)
