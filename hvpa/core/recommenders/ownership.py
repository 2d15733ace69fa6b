"""Who belongs to whom in mode Apply: which HPA and VPA this Hvpa reads, owns, adopts, releases or deletes (DESIGN 4).

The order is the same for both kinds; what differs (the manifest, what counts as ours, what as foreign) is in
`OwnerRules`. What holds in the other modes is in `hvpa.core.recommenders.read_only`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import structs

from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Hpa, Meta, ObjectReference, OwnerReference, Vpa
from hvpa.api.values import text
from hvpa.core.model import GROUP, TEMPLATE_HASH, Finding, OtherHvpa, OwnedChange, OwnedKind, Recommender
from hvpa.core.recommenders import manifests

O = TypeVar("O", Hpa, Vpa)  # noqa: E741
HVPA = "Hvpa"
NAME_ROOM = 253 - 9
"""What of the Hvpa's name has room beside a suffix of nine characters in an object's name."""
AT_ONCE = 50
"""How many objects one decision lets go of or deletes at most; each that is gone is a reason for the next decision."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class OwnerRules(Generic[O]):
    """What one Hvpa requires of one kind of recommender.

    `ours` tells whether an object points at this Hvpa or its workload, `acts` whether it changes the workload by
    itself, `interferes` whether this Hvpa's own can't be beside it, `refused` why an object that is named by the spec
    can't be used. `served` is the other Hvpa with the same target that an object points at (None: none of them).
    """

    kind: OwnedKind
    short: str
    deploy: bool
    name: str | None
    selector: LabelSelector
    labels: Mapping[str, str]
    ours: Callable[[O], bool]
    acts: Callable[[O], bool]
    interferes: Callable[[O], bool]
    refused: Callable[[O], Finding | None]
    served: Callable[[O], OtherHvpa | None]


def hpa_rules(owner: Meta, spec: HvpaSpec, others: Sequence[OtherHvpa]) -> OwnerRules[Hpa]:
    """What holds for an HPA."""
    target = spec.target_ref

    def acts(hpa: Hpa) -> bool:
        return _points_at(hpa.spec.scale_target_ref, target.kind, target.name)

    def ours(hpa: Hpa) -> bool:
        return acts(hpa) or _is_hvpa(hpa.spec.scale_target_ref, owner.name)

    def served(hpa: Hpa) -> OtherHvpa | None:
        reference = hpa.spec.scale_target_ref
        return next((one for one in others if _is_hvpa(reference, one.name)), None)

    def refused(hpa: Hpa) -> Finding | None:
        if _is_hvpa(hpa.spec.scale_target_ref, owner.name):
            return None
        wrong = f"HorizontalPodAutoscaler {hpa.metadata.name} must have this Hvpa as its scaleTargetRef"
        return Finding("NotRecommendationOnly", wrong)

    return OwnerRules(
        kind="HorizontalPodAutoscaler",
        short="Hpa",
        deploy=spec.hpa.deploy,
        name=spec.hpa.name,
        selector=spec.hpa.selector,
        labels=spec.hpa.template.metadata.labels,
        ours=ours,
        acts=acts,
        interferes=lambda hpa: ours(hpa) or served(hpa) is not None,
        refused=refused,
        served=served,
    )


def vpa_rules(owner: Meta, spec: HvpaSpec) -> OwnerRules[Vpa]:
    """What holds for a VPA."""
    target = spec.target_ref

    def ours(vpa: Vpa) -> bool:
        return _points_at(vpa.spec.target_ref, target.kind, target.name)

    def off(vpa: Vpa) -> bool:
        return vpa.spec.update_policy is not None and vpa.spec.update_policy.update_mode == "Off"

    def acts(vpa: Vpa) -> bool:
        return ours(vpa) and not off(vpa)

    def refused(vpa: Vpa) -> Finding | None:
        name = vpa.metadata.name
        if not ours(vpa):
            return Finding("OtherTarget", f"VerticalPodAutoscaler {name} is for another target")
        if not off(vpa):
            return Finding("NotRecommendationOnly", f"VerticalPodAutoscaler {name} must have updateMode Off")
        return None

    return OwnerRules(
        kind="VerticalPodAutoscaler",
        short="Vpa",
        deploy=spec.vpa.deploy,
        name=spec.vpa.name,
        selector=spec.vpa.selector,
        labels=spec.vpa.template.metadata.labels,
        ours=ours,
        acts=acts,
        interferes=acts,
        refused=refused,
        served=lambda vpa: None,
    )


def resolve(rules: OwnerRules[O], owner: Meta, spec: HvpaSpec, candidates: tuple[O, ...]) -> Recommender[O]:
    """The object to read in mode Apply, why it can't be used if so, and what is to be changed about owned objects."""
    present = [one for one in candidates if one.metadata.deletion_timestamp is None]
    owned = [one for one in present if controlled_by(one, owner)]
    if not rules.deploy:
        return _read(rules, owner, present, owned)
    taken = [one for one in owned if _taken_away(rules, one, owner, spec)]
    kept: list[O] = _without(owned, taken)
    adopted: list[O] = [one for one in present if _adoptable(rules, one)]
    changes = [_release(rules.kind, one, owner) for one in taken[:AT_ONCE]]
    # An object that is let go of keeps acting, so it counts as foreign from now on.
    foreign = _foreign(rules, _without(present, kept + adopted))
    if foreign:
        # Two HPAs on the same pods would switch each other off; a VPA that only recommends does no harm.
        given_up = kept if rules.kind == "HorizontalPodAutoscaler" else []
        changes += [delete(rules.kind, one) for one in given_up[:AT_ONCE]]
        return _give_way(rules, foreign, tuple(changes))
    ranked: list[O] = sorted(kept + adopted, key=age)
    if not ranked and (going := [one for one in present if _is_given_up(rules, one)]):
        return Recommender(True, None, _awaited(rules, going[0]), tuple(changes), in_charge=True)
    changes += [delete(rules.kind, one) for one in ranked[1 : AT_ONCE + 1]]
    if not ranked:
        return create(rules, owner, spec, candidates, tuple(changes))
    return kept_up(rules, owner, spec, ranked[0], tuple(changes))


def create(
    rules: OwnerRules[O],
    owner: Meta,
    spec: HvpaSpec,
    candidates: tuple[O, ...],
    changes: tuple[OwnedChange, ...] = (),
) -> Recommender[O]:
    """A recommender that is to be created, under a name that none of the `candidates` holds."""
    name = _free_name(owner, candidates)
    problem = Finding(f"{rules.short}Created", f"{rules.kind} {name} is being created")
    manifest = manifests.document(manifests.wanted(rules.kind, name, owner, spec), owner, spec)
    changes = (*changes, OwnedChange("apply", rules.kind, name, manifest=manifest))
    return Recommender(True, None, problem, changes, in_charge=True)


def kept_up(
    rules: OwnerRules[O], owner: Meta, spec: HvpaSpec, chosen: O, changes: tuple[OwnedChange, ...] = ()
) -> Recommender[O]:
    """A recommender of this Hvpa's own, which is brought to its template where it differs."""
    name = chosen.metadata.name
    manifest = manifests.wanted(rules.kind, name, owner, spec)
    if not manifests.up_to_date(chosen, manifest, owner, spec):
        wanted = manifests.document(manifest, owner, spec)
        changes = (*changes, OwnedChange("apply", rules.kind, name, manifest=wanted))
    return Recommender(True, chosen, None, changes, in_charge=True)


def _read(rules: OwnerRules[O], owner: Meta, present: list[O], owned: list[O]) -> Recommender[O]:
    """Where none is deployed: those we own go (but for one that the spec names now), the named one is read."""
    changes = tuple(
        _release(rules.kind, one, owner) if one.metadata.name == rules.name else delete(rules.kind, one)
        for one in owned[:AT_ONCE]
    )
    if rules.name is None:
        return Recommender(configured=False, changes=changes)
    foreign = [one for one in _foreign(rules, _without(present, owned)) if one.metadata.name != rules.name]
    if foreign:
        return _give_way(rules, foreign, changes)
    return structs.replace(named(rules, present, rules.refused), changes=changes)


def named(
    rules: OwnerRules[O], present: Sequence[O], refused: Callable[[O], Finding | None]
) -> Recommender[O]:
    """The object that the spec names, unless it is `refused`."""
    for one in present:
        if one.metadata.name == rules.name:
            problem = refused(one)
            return Recommender(True, None if problem else one, problem, in_charge=problem is None)
    return Recommender(
        True, None, Finding(f"{rules.short}NotFound", f"{rules.kind} {rules.name} does not exist")
    )


def _foreign(rules: OwnerRules[O], found: list[O]) -> list[O]:
    """Those that this Hvpa's own can't be beside, and that do not go by themselves."""
    return [one for one in found if rules.interferes(one) and not _is_given_up(rules, one)]


def _is_given_up(rules: OwnerRules[O], one: O) -> bool:
    """Whether it is the HPA of an Hvpa that only looks, which deletes it for one in mode Apply."""
    other, controller = rules.served(one), one.metadata.controller()
    if other is None or other.applies or controller is None:
        return False
    return (controller.kind, controller.name) == (HVPA, other.name)


def _awaited(rules: OwnerRules[O], one: O) -> Finding:
    other = one.metadata.controller()
    assert other is not None
    why = (
        f"{rules.kind} {one.metadata.name} of Hvpa {other.name}, which is not in mode Apply, is removed first"
    )
    return Finding(f"{rules.short}Awaited", why)


def _give_way(rules: OwnerRules[O], foreign: list[O], changes: tuple[OwnedChange, ...]) -> Recommender[O]:
    """Where a foreign object acts on the workload, the axis is off."""
    names = text.names(sorted(one.metadata.name for one in foreign))
    selector = f"spec.{rules.short.lower()}.selector"
    why = (
        f"{rules.kind} {names} already scales this workload; delete it, or have {selector} match its labels where "
        "nothing controls it (spec.mode Recommend reads it as it is)"
    )
    return Recommender(True, None, Finding(f"Foreign{rules.short}", why), changes)


def _without(found: list[O], others: list[O]) -> list[O]:
    """Those that are not among the others. Objects are told apart by identity: there may be thousands."""
    left_out = {id(one) for one in others}
    return [one for one in found if id(one) not in left_out]


def controlled_by(one: Hpa | Vpa, owner: Meta) -> bool:
    """Whether the Hvpa `owner` is the controller of an object."""
    controller = one.metadata.controller()
    return controller is not None and controller.uid == owner.uid


def _adoptable(rules: OwnerRules[O], one: O) -> bool:
    return (
        one.metadata.controller() is None and rules.selector.matches(one.metadata.labels) and rules.ours(one)
    )


def _taken_away(rules: OwnerRules[O], one: O, owner: Meta, spec: HvpaSpec) -> bool:
    """Whether somebody took this object away from us by its labels. One that is merely behind a changed template, or
    whose template never matched the selector, is ours still."""
    selector = rules.selector
    if selector.is_empty or selector.matches(one.metadata.labels) or not selector.matches(rules.labels):
        return False
    applied = one.metadata.annotations.get(TEMPLATE_HASH)
    return (
        applied is not None
        and applied == manifests.wanted(rules.kind, one.metadata.name, owner, spec).template_hash
    )


def age(one: Hpa | Vpa) -> tuple[dt.datetime, str]:
    """The order of age, the oldest first."""
    return (one.metadata.creation_timestamp or _EPOCH, one.metadata.name)


def _free_name(owner: Meta, candidates: tuple[O, ...]) -> str:
    """The Hvpa's name, with a suffix where another object holds it (our own that is going makes room for it)."""
    going = [
        one for one in candidates if one.metadata.deletion_timestamp is not None and controlled_by(one, owner)
    ]
    taken = {one.metadata.name for one in _without(list(candidates), going)}
    if owner.name not in taken:
        return owner.name
    return f"{owner.name[:NAME_ROOM].rstrip('-.')}-{owner.uid[:8]}"


def delete(kind: OwnedKind, one: Hpa | Vpa) -> OwnedChange:
    """The deletion of an object, and of no other that has its name by then."""
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


def _is_hvpa(reference: ObjectReference, name: str) -> bool:
    return _points_at(reference, HVPA, name) and reference.api_version.partition("/")[0] == GROUP
