"""Who belongs to whom: which HPA and VPA this Hvpa reads, owns, adopts, releases or deletes (DESIGN 4).

The rules are the same for both kinds; what differs (the manifest, what counts as ours, what as foreign) is in `Claim`.
No status of an HPA or VPA has a say in it, so it is decided on objects without one, and once for the same objects.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import structs

from hvpa.api import text
from hvpa.api.hvpa import HvpaSpec, LabelSelector
from hvpa.api.objects import Hpa, HpaStatusRead, Meta, ObjectReference, OwnerReference, Vpa, VpaStatusRead
from hvpa.core import manifests
from hvpa.core.memo import Basis, latest
from hvpa.core.model import GROUP, TEMPLATE_HASH, Finding, OwnedChange, OwnedKind, Recommender

O = TypeVar("O", Hpa, Vpa)  # noqa: E741
NAME_ROOM = 253 - 9
"""What of the Hvpa's name has room beside a suffix of nine characters in an object's name."""
_NO_HPA_STATUS, _NO_VPA_STATUS = HpaStatusRead(), VpaStatusRead()
AT_ONCE = 50
"""How many objects one decision lets go of or deletes at most; each that is gone is a reason for the next decision."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Claim(Generic[O]):
    """What one Hvpa asks of one kind of recommender.

    `ours` tells whether an object points at this Hvpa or its workload, `acts` whether it would scale the workload (or
    this Hvpa) by itself, `refused` why an object that is named by the spec can't be used.
    """

    kind: OwnedKind
    short: str
    deploy: bool
    name: str | None
    selector: LabelSelector
    labels: Mapping[str, str]
    ours: Callable[[O], bool]
    acts: Callable[[O], bool]
    refused: Callable[[O], Finding | None]


def claim_hpa(owner: Meta, spec: HvpaSpec) -> Claim[Hpa]:
    """The claim on an HPA."""
    target = spec.target_ref

    def ours(hpa: Hpa) -> bool:
        reference = hpa.spec.scale_target_ref
        return _is_hvpa(reference, owner) or _points_at(reference, target.kind, target.name)

    def refused(hpa: Hpa) -> Finding | None:
        if _is_hvpa(hpa.spec.scale_target_ref, owner):
            return None
        wrong = f"HorizontalPodAutoscaler {hpa.metadata.name} must have this Hvpa as its scaleTargetRef"
        return Finding("NotRecommendationOnly", wrong)

    return Claim(
        kind="HorizontalPodAutoscaler",
        short="Hpa",
        deploy=spec.hpa.deploy,
        name=spec.hpa.name,
        selector=spec.hpa.selector,
        labels=spec.hpa.template.metadata.labels,
        ours=ours,
        acts=ours,
        refused=refused,
    )


def claim_vpa(owner: Meta, spec: HvpaSpec) -> Claim[Vpa]:
    """The claim on a VPA."""
    target = spec.target_ref

    def ours(vpa: Vpa) -> bool:
        return _points_at(vpa.spec.target_ref, target.kind, target.name)

    def off(vpa: Vpa) -> bool:
        return vpa.spec.update_policy is not None and vpa.spec.update_policy.update_mode == "Off"

    def refused(vpa: Vpa) -> Finding | None:
        name = vpa.metadata.name
        if not ours(vpa):
            return Finding("OtherTarget", f"VerticalPodAutoscaler {name} is for another target")
        if not off(vpa):
            return Finding("NotRecommendationOnly", f"VerticalPodAutoscaler {name} must have updateMode Off")
        return None

    return Claim(
        kind="VerticalPodAutoscaler",
        short="Vpa",
        deploy=spec.vpa.deploy,
        name=spec.vpa.name,
        selector=spec.vpa.selector,
        labels=spec.vpa.template.metadata.labels,
        ours=ours,
        acts=lambda vpa: ours(vpa) and not off(vpa),
        refused=refused,
    )


def resolve_hpa(hvpa: Meta, spec: HvpaSpec, hpas: tuple[Hpa, ...]) -> Recommender[Hpa]:
    """The HPA to read, why it can't be used if so, and what is to be changed about owned ones."""
    return _with_status(_bare_hpa(hvpa, spec, hpas), hpas)


def resolve_vpa(hvpa: Meta, spec: HvpaSpec, vpas: tuple[Vpa, ...]) -> Recommender[Vpa]:
    """The VPA to read, why it can't be used if so, and what is to be changed about owned ones."""
    return _with_status(_bare_vpa(hvpa, spec, vpas), vpas)


def _basis(owner: Meta, spec: HvpaSpec, candidates: Sequence[O]) -> Basis:
    """What ownership looks at: of the Hvpa's metadata who it is, of the candidates all but their status."""
    parts: list[object] = [*manifests.apart_from_replicas(spec)]
    for one in candidates:
        parts += (one.metadata, one.raw_spec)
    return Basis((owner.namespace, owner.name), tuple(parts), (owner.uid,))


@latest(_basis)
def _bare_hpa(owner: Meta, spec: HvpaSpec, candidates: Sequence[Hpa]) -> Recommender[Hpa]:
    bare = tuple([structs.replace(one, status=_NO_HPA_STATUS) for one in candidates])
    return resolve(claim_hpa(owner, spec), owner, spec, bare)


@latest(_basis)
def _bare_vpa(owner: Meta, spec: HvpaSpec, candidates: Sequence[Vpa]) -> Recommender[Vpa]:
    bare = tuple([structs.replace(one, status=_NO_VPA_STATUS) for one in candidates])
    return resolve(claim_vpa(owner, spec), owner, spec, bare)


def _with_status(bare: Recommender[O], candidates: tuple[O, ...]) -> Recommender[O]:
    """The same with the object as it was seen in place of the one without its status."""
    if bare.object is None:
        return bare
    metadata = bare.object.metadata
    (whole,) = [one for one in candidates if one.metadata is metadata]
    return Recommender(bare.configured, whole, bare.problem, bare.changes, bare.in_charge)


def resolve(claim: Claim[O], owner: Meta, spec: HvpaSpec, candidates: tuple[O, ...]) -> Recommender[O]:
    """The object to read, why it can't be used if so, and what is to be changed about owned objects.

    Nothing is adopted, released or deleted unless the mode is Apply.
    """
    present = [one for one in candidates if one.metadata.deletion_timestamp is None]
    owned = [one for one in present if _controlled_by(one, owner)]
    applies = spec.mode == "Apply"
    if not claim.deploy:
        return _read(claim, owner, present, owned if applies else [])
    taken = [one for one in owned if applies and _taken_away(claim, one, owner, spec)]
    kept: list[O] = _without(owned, taken)
    adopted: list[O] = [one for one in present if applies and _adoptable(claim, one)]
    changes = [_release(claim.kind, one, owner) for one in taken[:AT_ONCE]]
    # An object that is let go of keeps acting, so it counts as foreign from now on.
    foreign = [one for one in _without(present, kept + adopted) if claim.acts(one)]
    if foreign:
        # Two HPAs on the same pods would switch each other off; a VPA that only recommends does no harm.
        given_up = kept if applies and claim.kind == "HorizontalPodAutoscaler" else []
        changes += [_delete(claim.kind, one) for one in given_up[:AT_ONCE]]
        return _give_way(claim, foreign, tuple(changes))
    ranked: list[O] = sorted(kept + adopted, key=_age)
    if applies:
        changes += [_delete(claim.kind, one) for one in ranked[1 : AT_ONCE + 1]]
    chosen: O | None = ranked[0] if ranked else None
    name = chosen.metadata.name if chosen is not None else _free_name(owner, candidates)
    manifest = manifests.wanted(claim.kind, name, owner, spec)
    if chosen is None or not manifests.up_to_date(chosen, manifest, owner, spec):
        asked = manifests.document(manifest, owner, spec)
        changes.append(OwnedChange("apply", claim.kind, name, manifest=asked))
    problem = None
    if chosen is None:
        problem = Finding(f"{claim.short}Created", f"{claim.kind} {name} is being created")
    found: Recommender[O] = Recommender(True, chosen, problem, tuple(changes), in_charge=True)
    return found


def _read(claim: Claim[O], owner: Meta, present: list[O], owned: list[O]) -> Recommender[O]:
    """Where none is deployed: those we own go (but for one that the spec names now), the named one is read."""
    changes = tuple(
        _release(claim.kind, one, owner) if one.metadata.name == claim.name else _delete(claim.kind, one)
        for one in owned[:AT_ONCE]
    )
    if claim.name is None:
        return Recommender(configured=False, changes=changes)
    foreign = [one for one in _without(present, owned) if claim.acts(one) and one.metadata.name != claim.name]
    if foreign:
        return _give_way(claim, foreign, changes)
    return structs.replace(_named(claim, present), changes=changes)


def _named(claim: Claim[O], present: list[O]) -> Recommender[O]:
    for one in present:
        if one.metadata.name == claim.name:
            refused = claim.refused(one)
            return Recommender(True, None if refused else one, refused, in_charge=refused is None)
    return Recommender(
        True, None, Finding(f"{claim.short}NotFound", f"{claim.kind} {claim.name} does not exist")
    )


def _give_way(claim: Claim[O], foreign: list[O], changes: tuple[OwnedChange, ...]) -> Recommender[O]:
    """Where a foreign object acts on the workload, the axis is off."""
    names = text.names(sorted(one.metadata.name for one in foreign))
    problem = Finding(f"Foreign{claim.short}", f"{claim.kind} {names} already scales this workload")
    return Recommender(True, None, problem, changes)


def _without(found: list[O], others: list[O]) -> list[O]:
    """Those that are not among the others. Objects are told apart by identity: there may be thousands."""
    left_out = {id(one) for one in others}
    return [one for one in found if id(one) not in left_out]


def _controlled_by(one: Hpa | Vpa, owner: Meta) -> bool:
    controller = one.metadata.controller()
    return controller is not None and controller.uid == owner.uid


def _adoptable(claim: Claim[O], one: O) -> bool:
    return (
        one.metadata.controller() is None and claim.selector.matches(one.metadata.labels) and claim.ours(one)
    )


def _taken_away(claim: Claim[O], one: O, owner: Meta, spec: HvpaSpec) -> bool:
    """Whether somebody took this object away from us by its labels. One that is merely behind a changed template, or
    whose template never matched the selector, is ours still."""
    selector = claim.selector
    if selector.is_empty or selector.matches(one.metadata.labels) or not selector.matches(claim.labels):
        return False
    applied = one.metadata.annotations.get(TEMPLATE_HASH)
    return (
        applied is not None
        and applied == manifests.wanted(claim.kind, one.metadata.name, owner, spec).template_hash
    )


def _age(one: Hpa | Vpa) -> tuple[dt.datetime, str]:
    return (one.metadata.creation_timestamp or _EPOCH, one.metadata.name)


def _free_name(owner: Meta, candidates: tuple[O, ...]) -> str:
    """The Hvpa's name, with a suffix where another object holds it (our own that is going makes room for it)."""
    going = [
        one
        for one in candidates
        if one.metadata.deletion_timestamp is not None and _controlled_by(one, owner)
    ]
    taken = {one.metadata.name for one in _without(list(candidates), going)}
    if owner.name not in taken:
        return owner.name
    return f"{owner.name[:NAME_ROOM].rstrip('-.')}-{owner.uid[:8]}"


def _delete(kind: OwnedKind, one: Hpa | Vpa) -> OwnedChange:
    return OwnedChange("delete", kind, one.metadata.name, uid=one.metadata.uid)


def _release(kind: OwnedKind, one: Hpa | Vpa, owner: Meta) -> OwnedChange:
    kept = tuple(
        _reference(reference) for reference in one.metadata.owner_references if reference.uid != owner.uid
    )
    return OwnedChange(
        "release",
        kind,
        one.metadata.name,
        uid=one.metadata.uid,
        resource_version=one.metadata.resource_version,
        owner_references=kept,
    )


def _reference(one: OwnerReference) -> dict[str, object]:
    wire: dict[str, object] = {
        "apiVersion": one.api_version,
        "kind": one.kind,
        "name": one.name,
        "uid": one.uid,
        "controller": one.controller,
    }
    if one.block_owner_deletion is not None:
        wire["blockOwnerDeletion"] = one.block_owner_deletion
    return wire


def _points_at(reference: ObjectReference, kind: str, name: str) -> bool:
    return reference.kind == kind and reference.name == name


def _is_hvpa(reference: ObjectReference, owner: Meta) -> bool:
    return _points_at(reference, "Hvpa", owner.name) and reference.api_version.partition("/")[0] == GROUP
