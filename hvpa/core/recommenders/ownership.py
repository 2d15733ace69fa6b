"""Ownership: which HPA and VPA an Hvpa reads, owns, adopts, releases or deletes (DESIGN 4).

In mode Recommend or Paused (DESIGN 3.2, docs/decisions/0022), HVPA reads the workload's HPA and VPA as they are,
whoever created them and whether they act or not, and does not change them. If there is none, HVPA creates an HPA that
only measures, or a VPA in mode Off; if several Hvpas have the same target, the first of them does. Two HPAs on the same
pods disable each other (AmbiguousSelector), so the Hvpa deletes its own as soon as another exists.

HVPA never deletes an object that acted before the Hvpa adopted it. It makes it as it was (`adoption`), also in mode
Recommend.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Hpa, Meta, Vpa
from hvpa.api.values import text
from hvpa.core.model import (
    ADOPTED,
    GROUP,
    TEMPLATE_HASH,
    Finding,
    OtherHvpa,
    OwnedChange,
    OwnedKind,
    Recommender,
)
from hvpa.core.recommenders import manifests
from hvpa.core.recommenders.adoption import adopting, adoption_of, holder_of, returned
from hvpa.core.values.patch import wire

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
        self.present: list[O] = [
            candidate for candidate in candidates if candidate.metadata.deletion_timestamp is None
        ]

    def ours(self, candidate: O) -> bool:
        """Return whether an object points at this Hvpa or its workload."""
        return self._is_of_workload(candidate) or self.scales(candidate, self.owner.name)

    def acts(self, candidate: O) -> bool:
        """Return whether an object changes the workload by itself."""
        if isinstance(candidate, Hpa):
            return self._is_of_workload(candidate)
        policy = candidate.spec.update_policy
        return self._is_of_workload(candidate) and (policy is None or policy.update_mode != "Off")

    def acted(self, candidate: O) -> bool:
        """Return whether an object acts for somebody else, or did before an Hvpa adopted it."""
        return adoption_of(candidate) is not None or (holder_of(candidate) is None and self.acts(candidate))

    def scales(self, candidate: O, hvpa: str) -> bool:
        """Return whether an object is an HPA that points at the Hvpa of this name."""
        if not isinstance(candidate, Hpa):
            return False
        target = candidate.spec.scale_target_ref
        return (target.kind, target.name, target.api_version.partition("/")[0]) == (HVPA, hvpa, GROUP)

    def served(self, candidate: O) -> OtherHvpa | None:
        """Return the other Hvpa with the same target that an HPA points at."""
        return next((other for other in self.others if self.scales(candidate, other.name)), None)

    def controls(self, candidate: O) -> bool:
        """Return whether the Hvpa is the controller of an object, or has adopted it."""
        holder = holder_of(candidate)
        return holder is not None and holder.uid == self.owner.uid

    def document(self, name: str) -> dict[str, Any]:
        """Return the manifest of the Hvpa's own object."""
        return manifests.document(self.kind, name, self.owner, self.spec)

    def _is_of_workload(self, candidate: Hpa | Vpa) -> bool:
        reference = (
            candidate.spec.scale_target_ref if isinstance(candidate, Hpa) else candidate.spec.target_ref
        )
        target = self.spec.target_ref
        return (reference.kind, reference.name) == (target.kind, target.name)


def returns(hvpa: Meta, spec: HvpaSpec | None, candidates: Sequence[Hpa | Vpa]) -> Changes:
    """Return the returns of at most `AT_ONCE` objects that a former Hvpa of this name adopted, or this Hvpa before it
    had this target or the mode Recommend, in which nothing else would scale the workload. `spec` is None if it can't be
    read."""
    found = [(candidate, adoption_of(candidate)) for candidate in candidates]
    left = [
        (candidate, adoption)
        for candidate, adoption in found
        if adoption is not None and adoption.hvpa == hvpa.name
        if adoption.uid != hvpa.uid
        or (spec is not None and (spec.mode == "Recommend" or not adoption.is_of(spec.target_ref)))
        if candidate.metadata.deletion_timestamp is None
    ]
    return tuple([returned(*each) for each in left[:AT_ONCE]])


def resolve(rules: OwnerRules[O]) -> Recommender[O]:
    """Return the object to read, why it can't be used, if so, and the changes to owned objects."""
    if left := returns(rules.owner, rules.spec, rules.candidates):
        names = text.names(sorted(change.name for change in left))
        why = f"{rules.kind} {names}, adopted earlier, is made as it was first"
        return Recommender(True, Finding(f"{rules.short}Awaited", why), left, in_charge=True)
    if not rules.spec.applies:
        return _read_only_recommender(rules)
    owned = [candidate for candidate in rules.present if rules.controls(candidate)]
    return _deployed(rules, owned) if rules.axis.deploy else _not_deployed(rules, owned)


# --- mode Apply ------------------------------------------------------------------------------------------------------
def _deployed(rules: OwnerRules[O], owned: list[O]) -> Recommender[O]:
    taken = [candidate for candidate in owned if _taken_away(rules, candidate)]
    kept: list[O] = _without(owned, taken)
    adopted: list[O] = [candidate for candidate in rules.present if _adoptable(rules, candidate)]
    acting = [candidate for candidate in kept + adopted if rules.acted(candidate)]
    if len(acting) > 1:  # only one can be adopted, and HVPA deletes none that acts
        adopted = _without(adopted, acting)
    changes: Changes = tuple([_let_go(rules, candidate) for candidate in taken[:AT_ONCE]])
    # A released object keeps acting, so it counts as foreign from now on.
    foreign = _foreign(rules, _without(rules.present, kept + adopted))
    if foreign:
        # Two HPAs on the same pods would disable each other; a VPA that only recommends does no harm.
        return _give_way(rules, foreign, (*changes, *_deletions(rules, kept if rules.is_hpa else [])))
    ranked: list[O] = sorted(kept + adopted, key=lambda each: (not rules.acted(each), _age(each)))
    if ranked:
        return _own_recommender(rules, ranked[0], (*changes, *_deletions(rules, ranked[1:])))
    for candidate in rules.present:
        if (other := _is_given_up_by(rules, candidate)) is not None:
            awaited = f"{rules.kind} {candidate.metadata.name} of Hvpa {other.name}"
            why = f"{awaited}, which is not in mode Apply, is removed first"
            return Recommender(True, Finding(f"{rules.short}Awaited", why), changes, in_charge=True)
    return _new_recommender(rules, changes)


def _not_deployed(rules: OwnerRules[O], owned: list[O]) -> Recommender[O]:
    """Delete owned objects, except an object that the spec now names, and read the named object."""
    name = rules.axis.name
    changes = tuple(
        [
            _release(rules, candidate) if candidate.metadata.name == name else _deletion(rules, candidate)
            for candidate in owned[:AT_ONCE]
        ]
    )
    if name is None:
        return Recommender(configured=False, changes=changes)
    foreign = [
        candidate
        for candidate in _foreign(rules, _without(rules.present, owned))
        if candidate.metadata.name != name
    ]
    if foreign:
        return _give_way(rules, foreign, changes)
    return structs.replace(_named_recommender(rules), changes=changes)


def _foreign(rules: OwnerRules[O], candidates: list[O]) -> list[O]:
    """Return the objects that can't coexist with the Hvpa's own and that no other Hvpa will delete."""
    return [
        candidate
        for candidate in candidates
        if rules.acts(candidate)
        or (rules.is_hpa and (rules.ours(candidate) or rules.served(candidate) is not None))
        if _is_given_up_by(rules, candidate) is None
    ]


def _is_given_up_by(rules: OwnerRules[O], candidate: O) -> OtherHvpa | None:
    """Return the Hvpa in mode Recommend or Paused that owns this HPA and will delete (or return) it for an Hvpa in mode
    Apply; None for all other objects."""
    other, holder = rules.served(candidate), holder_of(candidate)
    if other is None or other.applies or holder is None:
        return None
    return other if (holder.kind, holder.name) == (HVPA, other.name) else None


def _give_way(rules: OwnerRules[O], foreign: list[O], changes: Changes) -> Recommender[O]:
    """Return a recommender that is off, because foreign objects act on the workload."""
    names = text.names(sorted(candidate.metadata.name for candidate in foreign))
    selector = f"spec.{rules.short.lower()}.selector"
    why = (
        f"{rules.kind} {names} already scales this workload; delete it, or set {selector} to match its labels if "
        "it has no controller and no other acts (in spec.mode Recommend, HVPA only reads it)"
    )
    return Recommender(True, Finding(f"Foreign{rules.short}", why), changes)


def _without(candidates: list[O], others: list[O]) -> list[O]:
    """Return the objects that are not among the others. They are compared by identity, because there may be
    thousands."""
    left_out = {id(other) for other in others}
    return [candidate for candidate in candidates if id(candidate) not in left_out]


def _adoptable(rules: OwnerRules[O], candidate: O) -> bool:
    return (
        holder_of(candidate) is None
        and rules.axis.selector.matches(candidate.metadata.labels)
        and rules.ours(candidate)
    )


def _taken_away(rules: OwnerRules[O], candidate: O) -> bool:
    """Return whether a client took this object away from HVPA by changing its labels. An object that only lags behind a
    changed template, or whose template never matched the selector, is still HVPA's."""
    selector, meta = rules.axis.selector, candidate.metadata
    if selector.is_empty or selector.matches(meta.labels):
        return False
    wanted = rules.document(meta.name)["metadata"]
    is_matching = selector.matches(wanted["labels"])
    return is_matching and meta.annotations.get(TEMPLATE_HASH) == wanted["annotations"][TEMPLATE_HASH]


# --- mode Recommend or Paused ----------------------------------------------------------------------------------------
def _read_only_recommender(rules: OwnerRules[O]) -> Recommender[O]:
    owner, spec = rules.owner, rules.spec
    this_hvpa = OtherHvpa(owner.name, False, spec.hpa.deploy, created=owner.creation_timestamp)
    ahead = [other for other in rules.others if other.rank < this_hvpa.rank]
    given_up: list[O] = _given_up(rules, ahead) if rules.is_hpa else []
    changes = _deletions(rules, given_up)
    if rules.axis.name is not None:
        recommender = _named_recommender(rules)
        origin = None if recommender.object is None else _origin(rules, recommender.object)
        return structs.replace(recommender, read_as_is=origin, changes=changes)
    if not rules.axis.deploy:
        return Recommender(configured=False, changes=changes)
    left: list[O] = [
        candidate for candidate in _without(rules.present, given_up) if _order(rules, candidate) < _UNRELATED
    ]
    if not left:
        return _created_by_the_first(rules, ahead, changes)
    chosen = min(left, key=lambda candidate: (_order(rules, candidate), _age(candidate)))
    if rules.controls(chosen) and not rules.acts(chosen):
        return _own_recommender(rules, chosen, changes)
    return Recommender(True, None, changes, True, _origin(rules, chosen), chosen)


def _given_up(rules: OwnerRules[O], ahead: Sequence[OtherHvpa]) -> list[O]:
    """Return this Hvpa's own HPAs that would disable another HPA: an HPA that scales the workload itself, or an HPA of
    an Hvpa that is `ahead`. An Hvpa in mode Apply creates its HPA once they are gone."""
    first, present = {other.name for other in ahead}, rules.present
    served = [rules.served(hpa) for hpa in present]
    is_in_the_way = (
        any(rules.acts(hpa) for hpa in present)
        or any(other is not None and other.name in first for other in served)
        or any(other.applies and other.deploys_hpa for other in ahead)
    )
    own_hpas = [hpa for hpa in present if rules.controls(hpa) and not rules.acts(hpa)]
    return [hpa for hpa in own_hpas if is_in_the_way and hpa.metadata.name != rules.axis.name]


def _order(rules: OwnerRules[O], candidate: O) -> int:
    """Return the order in which objects are read, smallest first. An HPA that scales the workload comes first, because
    it certainly measures. This Hvpa's own VPA comes first, because it has the bounds of its template."""
    if rules.acts(candidate) and rules.is_hpa:
        return 0
    if rules.controls(candidate) or (rules.is_hpa and rules.ours(candidate)):
        return 1
    if rules.acts(candidate):
        return 2
    return 3 if rules.ours(candidate) or rules.served(candidate) is not None else _UNRELATED


def _created_by_the_first(
    rules: OwnerRules[O], ahead: Sequence[OtherHvpa], changes: Changes
) -> Recommender[O]:
    """Create the missing object if this is the first Hvpa that deploys it; the other Hvpas wait and read it."""
    for other in ahead:
        if other.deploys_hpa if rules.is_hpa else other.deploys_vpa:
            why = f"waiting for Hvpa {other.name}, which has the same target, to create the {rules.kind}"
            return Recommender(True, Finding(f"{rules.short}Awaited", why), changes)
    return _new_recommender(rules, changes)


def _origin(rules: OwnerRules[O], candidate: O) -> Finding | None:
    """Return whose object HVPA reads as it is; None for an HPA that points at this Hvpa."""
    name, target = f"{rules.kind} {candidate.metadata.name}", rules.spec.target_ref
    if not isinstance(candidate, Hpa):
        policy = candidate.spec.update_policy
        mode = policy.update_mode if policy is not None else ""
        acts = "which changes the pods itself" if rules.acts(candidate) else "which only recommends"
        return Finding(READ_AS_IS, f"reading {name} (updateMode {mode or 'not set'}), {acts}")
    if rules.acts(candidate):
        return Finding(READ_AS_IS, f"reading {name}, which scales {target.kind} {target.name} itself")
    other = rules.served(candidate)
    return None if other is None else Finding(READ_AS_IS, f"reading {name} of Hvpa {other.name}")


# --- both ------------------------------------------------------------------------------------------------------------
def _named_recommender(rules: OwnerRules[O]) -> Recommender[O]:
    """Return the object that the spec names, if it is suitable."""
    name = rules.axis.name
    for candidate in rules.present:
        if candidate.metadata.name == name:
            problem = _unfit(rules, candidate)
            return Recommender(
                True, problem, in_charge=problem is None, object=None if problem else candidate
            )
    return Recommender(True, Finding(f"{rules.short}NotFound", f"{rules.kind} {name} does not exist"))


def _unfit(rules: OwnerRules[O], candidate: O) -> Finding | None:
    """Return why the object that the spec names can't be used: in mode Apply it must only recommend, and to this
    Hvpa."""
    applies, name = rules.spec.applies, f"{rules.kind} {candidate.metadata.name}"
    if applies and rules.is_hpa:
        is_fit, must = rules.scales(candidate, rules.owner.name), "have this Hvpa as its scaleTargetRef"
    elif rules.ours(candidate) or rules.served(candidate) is not None:
        is_fit, must = not (applies and rules.acts(candidate)), "have updateMode Off"
    else:
        return Finding("OtherTarget", f"{name} is for another target")
    return None if is_fit else Finding("NotRecommendationOnly", f"{name} must {must}")


def _new_recommender(rules: OwnerRules[O], changes: Changes) -> Recommender[O]:
    """Return a recommender to create, under a name that no candidate has."""
    name = _free_name(rules)
    problem = Finding(f"{rules.short}Created", f"{rules.kind} {name} is being created")
    applied = _application(rules, name, rules.document(name))
    return Recommender(True, problem, (*changes, applied), in_charge=True)


def _own_recommender(rules: OwnerRules[O], chosen: O, changes: Changes) -> Recommender[O]:
    """Return this Hvpa's own recommender, with an update if it differs from its template."""
    name = chosen.metadata.name
    document = rules.document(name)
    if rules.acted(chosen):
        document = adopting(document, chosen, rules.owner)
    if not manifests.up_to_date(chosen, document):
        changes = (*changes, _application(rules, name, document))
    if rules.acts(chosen):  # until the write, both would scale the workload
        why = f"{rules.kind} {name}, which acts, is adopted first"
        return Recommender(True, Finding(f"{rules.short}Awaited", why), changes, in_charge=True)
    return Recommender(True, None, changes, in_charge=True, object=chosen)


def _application(rules: OwnerRules[O], name: str, document: dict[str, Any]) -> OwnedChange:
    fields = manifests.passed_on(rules.kind, rules.spec)
    return OwnedChange("apply", rules.kind, name, manifest=document, passed_on=fields)


def _age(candidate: Hpa | Vpa) -> tuple[dt.datetime, str]:
    """Sort key by age, oldest first."""
    return (candidate.metadata.creation_timestamp or _EPOCH, candidate.metadata.name)


def _free_name(rules: OwnerRules[O]) -> str:
    """Return the Hvpa's name, with a suffix if another object has it. An own object that is being deleted does not
    count."""
    owner = rules.owner
    for candidate in rules.candidates:
        is_going = candidate.metadata.deletion_timestamp is not None and rules.controls(candidate)
        if candidate.metadata.name == owner.name and not is_going:
            return f"{owner.name[:NAME_ROOM].rstrip('-.')}-{owner.uid[:8]}"
    return owner.name


def _deletions(rules: OwnerRules[O], owned: Sequence[O]) -> Changes:
    """Return the deletions of at most `AT_ONCE` of these objects."""
    return tuple([_deletion(rules, candidate) for candidate in owned[:AT_ONCE]])


def _deletion(rules: OwnerRules[O], candidate: O) -> OwnedChange:
    """Return the deletion of this object, conditional on its uid, or the return of an adopted object."""
    if (adoption := adoption_of(candidate)) is not None:
        return returned(candidate, adoption)
    return OwnedChange("delete", rules.kind, candidate.metadata.name, uid=candidate.metadata.uid)


def _let_go(rules: OwnerRules[O], candidate: O) -> OwnedChange:
    """Return the write after which an object that was taken away is not the Hvpa's any more."""
    return (_release if adoption_of(candidate) is None else _deletion)(rules, candidate)


def _release(rules: OwnerRules[O], candidate: O) -> OwnedChange:
    """Return the write after which this object, with its present spec, is not the Hvpa's any more."""
    meta = candidate.metadata
    kept = [wire(reference) for reference in meta.owner_references if reference.uid != rules.owner.uid]
    patch = {"ownerReferences": kept or None, "annotations": {ADOPTED: None}}
    version = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return OwnedChange("release", rules.kind, meta.name, {"metadata": {**patch, **version}})
