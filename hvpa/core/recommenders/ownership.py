"""Who belongs to whom in mode Apply: which HPA and VPA this Hvpa reads, owns, adopts, releases or deletes (DESIGN 4).

The order is the same for both kinds; what differs (what counts as ours, what as foreign) is in `HpaRules` and
`VpaRules`. What holds in the other modes is in `hvpa.core.recommenders.read_only`.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import structs

from hvpa.api.hvpa.spec import HpaSpec, HvpaSpec, VpaSpec
from hvpa.api.objects.read_models import Hpa, Meta, ObjectReference, Vpa
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


class OwnerRules(ABC, Generic[O]):
    """What the Hvpa `owner` requires of one kind of recommender; `present` are the candidates that are not being
    deleted."""

    kind: ClassVar[OwnedKind]
    short: ClassVar[str]
    axis: HpaSpec | VpaSpec

    def __init__(
        self, owner: Meta, spec: HvpaSpec, candidates: Sequence[O], others: Sequence[OtherHvpa] = ()
    ) -> None:
        self.owner, self.spec, self.others = owner, spec, others
        self.candidates: Sequence[O] = candidates
        self.axis = spec.hpa if self.kind == "HorizontalPodAutoscaler" else spec.vpa
        self.present: list[O] = [one for one in candidates if one.metadata.deletion_timestamp is None]

    @abstractmethod
    def ours(self, one: O) -> bool:
        """Whether an object points at this Hvpa or its workload."""

    @abstractmethod
    def acts(self, one: O) -> bool:
        """Whether an object changes the workload by itself."""

    @abstractmethod
    def interferes(self, one: O) -> bool:
        """Whether this Hvpa's own can't be beside it."""

    @abstractmethod
    def refused(self, one: O) -> Finding | None:
        """Why an object that is named by the spec can't be used."""

    @abstractmethod
    def served(self, one: O) -> OtherHvpa | None:
        """The other Hvpa with the same target that an object points at."""

    def controls(self, one: O) -> bool:
        """Whether the Hvpa is the controller of an object."""
        controller = one.metadata.controller()
        return controller is not None and controller.uid == self.owner.uid

    def document(self, name: str) -> dict[str, Any]:
        """The Hvpa's own object, as it is applied."""
        return manifests.document(self.kind, name, self.owner, self.spec)


class HpaRules(OwnerRules[Hpa]):
    """What holds for an HPA."""

    kind = "HorizontalPodAutoscaler"
    short = "Hpa"

    def acts(self, one: Hpa) -> bool:
        """It scales the workload itself."""
        target = self.spec.target_ref
        return _points_at(one.spec.scale_target_ref, target.kind, target.name)

    def ours(self, one: Hpa) -> bool:
        """It scales the workload or this Hvpa."""
        return self.acts(one) or _is_hvpa(one.spec.scale_target_ref, self.owner.name)

    def interferes(self, one: Hpa) -> bool:
        """Two HPAs on the same pods switch each other off."""
        return self.ours(one) or self.served(one) is not None

    def refused(self, one: Hpa) -> Finding | None:
        """It must point at this Hvpa."""
        if _is_hvpa(one.spec.scale_target_ref, self.owner.name):
            return None
        wrong = f"HorizontalPodAutoscaler {one.metadata.name} must have this Hvpa as its scaleTargetRef"
        return Finding("NotRecommendationOnly", wrong)

    def served(self, one: Hpa) -> OtherHvpa | None:
        """The one that it scales."""
        reference = one.spec.scale_target_ref
        return next((other for other in self.others if _is_hvpa(reference, other.name)), None)


class VpaRules(OwnerRules[Vpa]):
    """What holds for a VPA."""

    kind = "VerticalPodAutoscaler"
    short = "Vpa"

    def ours(self, one: Vpa) -> bool:
        """It is for the workload."""
        target = self.spec.target_ref
        return _points_at(one.spec.target_ref, target.kind, target.name)

    def acts(self, one: Vpa) -> bool:
        """It is for the workload, and not Off."""
        policy = one.spec.update_policy
        return self.ours(one) and (policy is None or policy.update_mode != "Off")

    interferes = acts

    def refused(self, one: Vpa) -> Finding | None:
        """It must be for the workload, and Off."""
        name = one.metadata.name
        if not self.ours(one):
            return Finding("OtherTarget", f"VerticalPodAutoscaler {name} is for another target")
        if self.acts(one):
            return Finding("NotRecommendationOnly", f"VerticalPodAutoscaler {name} must have updateMode Off")
        return None

    def served(self, one: Vpa) -> None:
        """None: a VPA points at a workload."""


def resolve(rules: OwnerRules[O]) -> Recommender[O]:
    """The object to read in mode Apply, why it can't be used if so, and what is to be changed about owned objects."""
    present = rules.present
    owned = [one for one in present if rules.controls(one)]
    if not rules.axis.deploy:
        return _read(rules, owned)
    taken = [one for one in owned if _taken_away(rules, one)]
    kept: list[O] = _without(owned, taken)
    adopted: list[O] = [one for one in present if _adoptable(rules, one)]
    changes: list[OwnedChange] = [_release(rules, one) for one in taken[:AT_ONCE]]
    # An object that is let go of keeps acting, so it counts as foreign from now on.
    foreign = _foreign(rules, _without(present, kept + adopted))
    if foreign:
        # Two HPAs on the same pods would switch each other off; a VPA that only recommends does no harm.
        given_up: list[O] = kept if rules.kind == "HorizontalPodAutoscaler" else []
        return _give_way(rules, foreign, (*changes, *deletions(rules, given_up)))
    ranked: list[O] = sorted(kept + adopted, key=age)
    if not ranked and (going := [one for one in present if _is_given_up(rules, one)]):
        return Recommender(True, None, _awaited(rules, going[0]), tuple(changes), in_charge=True)
    changes += deletions(rules, ranked[1:])
    if not ranked:
        return create(rules, tuple(changes))
    return kept_up(rules, ranked[0], tuple(changes))


def create(rules: OwnerRules[O], changes: tuple[OwnedChange, ...]) -> Recommender[O]:
    """A recommender that is to be created, under a name that none of the candidates holds."""
    name = _free_name(rules)
    problem = Finding(f"{rules.short}Created", f"{rules.kind} {name} is being created")
    applied = OwnedChange("apply", rules.kind, name, manifest=rules.document(name))
    return Recommender(True, None, problem, (*changes, applied), in_charge=True)


def kept_up(rules: OwnerRules[O], chosen: O, changes: tuple[OwnedChange, ...]) -> Recommender[O]:
    """A recommender of this Hvpa's own, which is brought to its template where it differs."""
    name = chosen.metadata.name
    document = rules.document(name)
    if not manifests.up_to_date(chosen, document):
        changes = (*changes, OwnedChange("apply", rules.kind, name, manifest=document))
    return Recommender(True, chosen, None, changes, in_charge=True)


def _read(rules: OwnerRules[O], owned: list[O]) -> Recommender[O]:
    """Where none is deployed: those we own go (but for one that the spec names now), the named one is read."""
    name = rules.axis.name
    changes = tuple(
        _release(rules, one) if one.metadata.name == name else deletion(rules, one) for one in owned[:AT_ONCE]
    )
    if name is None:
        return Recommender(configured=False, changes=changes)
    foreign = [one for one in _foreign(rules, _without(rules.present, owned)) if one.metadata.name != name]
    if foreign:
        return _give_way(rules, foreign, changes)
    return structs.replace(named(rules, rules.refused), changes=changes)


def named(rules: OwnerRules[O], refused: Callable[[O], Finding | None]) -> Recommender[O]:
    """The object that the spec names, unless it is `refused`."""
    name = rules.axis.name
    for one in rules.present:
        if one.metadata.name == name:
            problem = refused(one)
            return Recommender(True, None if problem else one, problem, in_charge=problem is None)
    return Recommender(True, None, Finding(f"{rules.short}NotFound", f"{rules.kind} {name} does not exist"))


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


def _adoptable(rules: OwnerRules[O], one: O) -> bool:
    is_free = one.metadata.controller() is None
    return is_free and rules.axis.selector.matches(one.metadata.labels) and rules.ours(one)


def _taken_away(rules: OwnerRules[O], one: O) -> bool:
    """Whether somebody took this object away from us by its labels. One that is merely behind a changed template, or
    whose template never matched the selector, is ours still."""
    selector, meta = rules.axis.selector, one.metadata
    if selector.is_empty or selector.matches(meta.labels):
        return False
    document = rules.document(meta.name)
    is_matching = selector.matches(document["metadata"]["labels"])
    return is_matching and meta.annotations.get(TEMPLATE_HASH) == manifests.template_hash(document)


def age(one: Hpa | Vpa) -> tuple[dt.datetime, str]:
    """The order of age, the oldest first."""
    return (one.metadata.creation_timestamp or _EPOCH, one.metadata.name)


def _free_name(rules: OwnerRules[O]) -> str:
    """The Hvpa's name, with a suffix where another object holds it (our own that is going makes room for it)."""
    owner = rules.owner
    for one in rules.candidates:
        is_going = one.metadata.deletion_timestamp is not None and rules.controls(one)
        if one.metadata.name == owner.name and not is_going:
            return f"{owner.name[:NAME_ROOM].rstrip('-.')}-{owner.uid[:8]}"
    return owner.name


def deletion(rules: OwnerRules[O], one: O) -> OwnedChange:
    """The deletion of an object, and of no other that has its name by then."""
    return OwnedChange("delete", rules.kind, one.metadata.name, uid=one.metadata.uid)


def deletions(rules: OwnerRules[O], found: Sequence[O]) -> list[OwnedChange]:
    """The deletion of the first of these."""
    return [deletion(rules, one) for one in found[:AT_ONCE]]


def _release(rules: OwnerRules[O], one: O) -> OwnedChange:
    meta = one.metadata
    kept = [reference for reference in meta.owner_references if reference.uid != rules.owner.uid]
    wire = [{"controller": False, **msgspec.to_builtins(reference)} for reference in kept]
    return OwnedChange(
        "release",
        rules.kind,
        meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        owner_references=tuple(wire),
    )


def _points_at(reference: ObjectReference, kind: str, name: str) -> bool:
    return reference.kind == kind and reference.name == name


def _is_hvpa(reference: ObjectReference, name: str) -> bool:
    return _points_at(reference, HVPA, name) and reference.api_version.partition("/")[0] == GROUP
