"""Ownership: which HPA and VPA an Hvpa reads, owns, adopts, releases or deletes (DESIGN 4).

In mode Recommend or Paused (DESIGN 3.2, docs/decisions/0022), HVPA reads the workload's HPA and VPA as they are,
whoever created them and whether they act or not, and does not change them. If there is none, HVPA creates an HPA that
only measures, or a VPA in mode Off; if several Hvpas have the same target, the first of them does. Two HPAs on the same
pods disable each other (AmbiguousSelector), so the Hvpa deletes its own as soon as another exists.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Hpa, Meta, Vpa
from hvpa.api.values import text
from hvpa.core.model import GROUP, TEMPLATE_HASH, Finding, OtherHvpa, OwnedChange, OwnedKind, Recommender
from hvpa.core.recommenders import manifests

O = TypeVar("O", Hpa, Vpa)  # noqa: E741
Changes = tuple[OwnedChange, ...]

HVPA = "Hvpa"
NAME_ROOM = 253 - 9
"""Maximum length of the Hvpa's name in an object's name with a suffix of nine characters."""
AT_ONCE = 50
"""Maximum number of objects that a decision releases or deletes; each removed object triggers the next decision."""
READ_AS_IS = "ReadAsIs"
"""Reason of HpaActive and VpaActive if HVPA reads another owner's object."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_UNRELATED = 4
"""`_order` of an object that is not read."""


class OwnerRules(Generic[O]):
    """How objects of a kind relate to the Hvpa `owner`. `present` are the candidates that are not being deleted."""

    def __init__(
        self,
        kind: OwnedKind,
        owner: Meta,
        spec: HvpaSpec,
        candidates: Sequence[O],
        others: Sequence[OtherHvpa] = (),
    ) -> None:
        self.kind, self.owner, self.spec, self.others = kind, owner, spec, others
        self.is_hpa = kind == "HorizontalPodAutoscaler"
        self.short = "Hpa" if self.is_hpa else "Vpa"
        self.axis = spec.hpa if self.is_hpa else spec.vpa
        self.candidates: Sequence[O] = candidates
        self.present: list[O] = [one for one in candidates if one.metadata.deletion_timestamp is None]

    def ours(self, one: O) -> bool:
        """Return whether an object points at this Hvpa or its workload."""
        return self._is_of_workload(one) or self.scales(one, self.owner.name)

    def acts(self, one: O) -> bool:
        """Return whether an object changes the workload by itself."""
        if isinstance(one, Hpa):
            return self._is_of_workload(one)
        policy = one.spec.update_policy
        return self._is_of_workload(one) and (policy is None or policy.update_mode != "Off")

    def scales(self, one: O, hvpa: str) -> bool:
        """Return whether an object is an HPA that points at the Hvpa of this name."""
        if not isinstance(one, Hpa):
            return False
        target = one.spec.scale_target_ref
        return (target.kind, target.name, target.api_version.partition("/")[0]) == (HVPA, hvpa, GROUP)

    def served(self, one: O) -> OtherHvpa | None:
        """Return the other Hvpa with the same target that an HPA points at."""
        return next((other for other in self.others if self.scales(one, other.name)), None)

    def controls(self, one: O) -> bool:
        """Return whether the Hvpa is the controller of an object."""
        controller = one.metadata.controller()
        return controller is not None and controller.uid == self.owner.uid

    def document(self, name: str) -> dict[str, Any]:
        """Return the manifest of the Hvpa's own object."""
        return manifests.document(self.kind, name, self.owner, self.spec)

    def _is_of_workload(self, one: Hpa | Vpa) -> bool:
        reference = one.spec.scale_target_ref if isinstance(one, Hpa) else one.spec.target_ref
        target = self.spec.target_ref
        return (reference.kind, reference.name) == (target.kind, target.name)


def resolve(rules: OwnerRules[O]) -> Recommender[O]:
    """Return the object to read, why it can't be used, if so, and the changes to owned objects."""
    if rules.spec.mode != "Apply":
        return _looking(rules)
    owned = [one for one in rules.present if rules.controls(one)]
    return _deployed(rules, owned) if rules.axis.deploy else _not_deployed(rules, owned)


# --- mode Apply ------------------------------------------------------------------------------------------------------
def _deployed(rules: OwnerRules[O], owned: list[O]) -> Recommender[O]:
    taken = [one for one in owned if _taken_away(rules, one)]
    kept: list[O] = _without(owned, taken)
    adopted: list[O] = [one for one in rules.present if _adoptable(rules, one)]
    changes: Changes = tuple([_release(rules, one) for one in taken[:AT_ONCE]])
    # A released object keeps acting, so it counts as foreign from now on.
    foreign = _foreign(rules, _without(rules.present, kept + adopted))
    if foreign:
        # Two HPAs on the same pods would disable each other; a VPA that only recommends does no harm.
        return _give_way(rules, foreign, (*changes, *_deletions(rules, kept if rules.is_hpa else [])))
    ranked: list[O] = sorted(kept + adopted, key=_age)
    if ranked:
        return _kept_up(rules, ranked[0], (*changes, *_deletions(rules, ranked[1:])))
    for one in rules.present:
        if (other := _is_given_up_by(rules, one)) is not None:
            its = f"{rules.kind} {one.metadata.name} of Hvpa {other.name}"
            why = f"{its}, which is not in mode Apply, is removed first"
            return Recommender(True, Finding(f"{rules.short}Awaited", why), changes, in_charge=True)
    return _created(rules, changes)


def _not_deployed(rules: OwnerRules[O], owned: list[O]) -> Recommender[O]:
    """Delete owned objects, except an object that the spec now names, and read the named object."""
    name = rules.axis.name
    changes = tuple(
        [
            _release(rules, one) if one.metadata.name == name else _deletion(rules, one)
            for one in owned[:AT_ONCE]
        ]
    )
    if name is None:
        return Recommender(configured=False, changes=changes)
    foreign = [one for one in _foreign(rules, _without(rules.present, owned)) if one.metadata.name != name]
    if foreign:
        return _give_way(rules, foreign, changes)
    return structs.replace(_named(rules), changes=changes)


def _foreign(rules: OwnerRules[O], found: list[O]) -> list[O]:
    """Return the objects that can't coexist with the Hvpa's own and that no other Hvpa will delete."""
    return [
        one
        for one in found
        if rules.acts(one) or (rules.is_hpa and (rules.ours(one) or rules.served(one) is not None))
        if _is_given_up_by(rules, one) is None
    ]


def _is_given_up_by(rules: OwnerRules[O], one: O) -> OtherHvpa | None:
    """Return the Hvpa in mode Recommend or Paused that owns this HPA and will delete it for an Hvpa in mode Apply; None
    for all other objects."""
    other, controller = rules.served(one), one.metadata.controller()
    if other is None or other.applies or controller is None:
        return None
    return other if (controller.kind, controller.name) == (HVPA, other.name) else None


def _give_way(rules: OwnerRules[O], foreign: list[O], changes: Changes) -> Recommender[O]:
    """Return a recommender that is off, because foreign objects act on the workload."""
    names = text.names(sorted(one.metadata.name for one in foreign))
    selector = f"spec.{rules.short.lower()}.selector"
    why = (
        f"{rules.kind} {names} already scales this workload; delete it, or set {selector} to match its labels if "
        "it has no controller (in spec.mode Recommend, HVPA only reads it)"
    )
    return Recommender(True, Finding(f"Foreign{rules.short}", why), changes)


def _without(found: list[O], others: list[O]) -> list[O]:
    """Return the objects that are not among the others. They are compared by identity, because there may be
    thousands."""
    left_out = {id(one) for one in others}
    return [one for one in found if id(one) not in left_out]


def _adoptable(rules: OwnerRules[O], one: O) -> bool:
    is_free = one.metadata.controller() is None
    return is_free and rules.axis.selector.matches(one.metadata.labels) and rules.ours(one)


def _taken_away(rules: OwnerRules[O], one: O) -> bool:
    """Return whether a client took this object away from HVPA by changing its labels. An object that only lags behind a
    changed template, or whose template never matched the selector, is still HVPA's."""
    selector, meta = rules.axis.selector, one.metadata
    if selector.is_empty or selector.matches(meta.labels):
        return False
    wanted = rules.document(meta.name)["metadata"]
    is_matching = selector.matches(wanted["labels"])
    return is_matching and meta.annotations.get(TEMPLATE_HASH) == wanted["annotations"][TEMPLATE_HASH]


# --- mode Recommend or Paused ----------------------------------------------------------------------------------------
def _looking(rules: OwnerRules[O]) -> Recommender[O]:
    owner, spec = rules.owner, rules.spec
    own = OtherHvpa(owner.name, False, spec.hpa.deploy, spec.vpa.deploy, owner.creation_timestamp)
    ahead = [one for one in rules.others if one.rank < own.rank]
    given_up: list[O] = _given_up(rules, ahead) if rules.is_hpa else []
    changes = _deletions(rules, given_up)
    if rules.axis.name is not None:
        found = _named(rules)
        origin = None if found.object is None else _origin(rules, found.object)
        return structs.replace(found, read_as_is=origin, changes=changes)
    if not rules.axis.deploy:
        return Recommender(configured=False, changes=changes)
    left: list[O] = [one for one in _without(rules.present, given_up) if _order(rules, one) < _UNRELATED]
    if not left:
        return _created_by_the_first(rules, ahead, changes)
    chosen = min(left, key=lambda one: (_order(rules, one), _age(one)))
    if rules.controls(chosen) and not rules.acts(chosen):
        return _kept_up(rules, chosen, changes)
    return Recommender(True, None, changes, True, _origin(rules, chosen), chosen)


def _given_up(rules: OwnerRules[O], ahead: Sequence[OtherHvpa]) -> list[O]:
    """Return this Hvpa's own HPAs that would disable another HPA: an HPA that scales the workload itself, or an HPA of
    an Hvpa that is `ahead`. An Hvpa in mode Apply creates its HPA once they are gone."""
    first, present = {one.name for one in ahead}, rules.present
    served = [rules.served(one) for one in present]
    is_in_the_way = (
        any(rules.acts(one) for one in present)
        or any(one is not None and one.name in first for one in served)
        or any(one.applies and one.deploys_hpa for one in ahead)
    )
    own = [one for one in present if rules.controls(one) and not rules.acts(one)]
    return [one for one in own if is_in_the_way and one.metadata.name != rules.axis.name]


def _order(rules: OwnerRules[O], one: O) -> int:
    """Return the order in which objects are read, smallest first. An HPA that scales the workload comes first, because
    it certainly measures. This Hvpa's own VPA comes first, because it has the bounds of its template."""
    if rules.acts(one) and rules.is_hpa:
        return 0
    if rules.controls(one) or (rules.is_hpa and rules.ours(one)):
        return 1
    if rules.acts(one):
        return 2
    return 3 if rules.ours(one) or rules.served(one) is not None else _UNRELATED


def _created_by_the_first(
    rules: OwnerRules[O], ahead: Sequence[OtherHvpa], changes: Changes
) -> Recommender[O]:
    """Create the missing object if this is the first Hvpa that deploys it; the other Hvpas wait and read it."""
    for one in ahead:
        if one.deploys_hpa if rules.is_hpa else one.deploys_vpa:
            why = f"waiting for Hvpa {one.name}, which has the same target, to create the {rules.kind}"
            return Recommender(True, Finding(f"{rules.short}Awaited", why), changes)
    return _created(rules, changes)


def _origin(rules: OwnerRules[O], one: O) -> Finding | None:
    """Return whose object HVPA reads as it is; None for an HPA that points at this Hvpa."""
    name, target = f"{rules.kind} {one.metadata.name}", rules.spec.target_ref
    if not isinstance(one, Hpa):
        policy = one.spec.update_policy
        mode = policy.update_mode if policy is not None else ""
        acts = "which changes the pods itself" if rules.acts(one) else "which only recommends"
        return Finding(READ_AS_IS, f"reading {name} (updateMode {mode or 'not set'}), {acts}")
    if rules.acts(one):
        return Finding(READ_AS_IS, f"reading {name}, which scales {target.kind} {target.name} itself")
    other = rules.served(one)
    return None if other is None else Finding(READ_AS_IS, f"reading {name} of Hvpa {other.name}")


# --- both ------------------------------------------------------------------------------------------------------------
def _named(rules: OwnerRules[O]) -> Recommender[O]:
    """Return the object that the spec names, if it is suitable."""
    name = rules.axis.name
    for one in rules.present:
        if one.metadata.name == name:
            problem = _unfit(rules, one)
            return Recommender(True, problem, in_charge=problem is None, object=None if problem else one)
    return Recommender(True, Finding(f"{rules.short}NotFound", f"{rules.kind} {name} does not exist"))


def _unfit(rules: OwnerRules[O], one: O) -> Finding | None:
    """Return why the object that the spec names can't be used: in mode Apply it must only recommend, and to this
    Hvpa."""
    applies, name = rules.spec.mode == "Apply", f"{rules.kind} {one.metadata.name}"
    if applies and rules.is_hpa:
        is_fit, must = rules.scales(one, rules.owner.name), "have this Hvpa as its scaleTargetRef"
    elif rules.ours(one) or rules.served(one) is not None:
        is_fit, must = not (applies and rules.acts(one)), "have updateMode Off"
    else:
        return Finding("OtherTarget", f"{name} is for another target")
    return None if is_fit else Finding("NotRecommendationOnly", f"{name} must {must}")


def _created(rules: OwnerRules[O], changes: Changes) -> Recommender[O]:
    """Return a recommender to create, under a name that no candidate has."""
    name = _free_name(rules)
    problem = Finding(f"{rules.short}Created", f"{rules.kind} {name} is being created")
    applied = OwnedChange("apply", rules.kind, name, manifest=rules.document(name))
    return Recommender(True, problem, (*changes, applied), in_charge=True)


def _kept_up(rules: OwnerRules[O], chosen: O, changes: Changes) -> Recommender[O]:
    """Return this Hvpa's own recommender, with an update if it differs from its template."""
    name = chosen.metadata.name
    document = rules.document(name)
    if not manifests.up_to_date(chosen, document):
        changes = (*changes, OwnedChange("apply", rules.kind, name, manifest=document))
    return Recommender(True, None, changes, in_charge=True, object=chosen)


def _age(one: Hpa | Vpa) -> tuple[dt.datetime, str]:
    """Sort key by age, oldest first."""
    return (one.metadata.creation_timestamp or _EPOCH, one.metadata.name)


def _free_name(rules: OwnerRules[O]) -> str:
    """Return the Hvpa's name, with a suffix if another object has it. An own object that is being deleted does not
    count."""
    owner = rules.owner
    for one in rules.candidates:
        is_going = one.metadata.deletion_timestamp is not None and rules.controls(one)
        if one.metadata.name == owner.name and not is_going:
            return f"{owner.name[:NAME_ROOM].rstrip('-.')}-{owner.uid[:8]}"
    return owner.name


def _deletions(rules: OwnerRules[O], found: Sequence[O]) -> Changes:
    """Return the deletions of at most `AT_ONCE` of these objects."""
    return tuple([_deletion(rules, one) for one in found[:AT_ONCE]])


def _deletion(rules: OwnerRules[O], one: O) -> OwnedChange:
    """Return the deletion of this object, conditional on its uid."""
    return OwnedChange("delete", rules.kind, one.metadata.name, uid=one.metadata.uid)


def _release(rules: OwnerRules[O], one: O) -> OwnedChange:
    meta = one.metadata
    kept = [reference for reference in meta.owner_references if reference.uid != rules.owner.uid]
    wire = tuple([{"controller": False, **msgspec.to_builtins(reference)} for reference in kept])
    return OwnedChange("release", rules.kind, meta.name, None, meta.uid, meta.resource_version, wire)
