"""What an Hvpa reads that does not apply anything, in mode Recommend or Paused (DESIGN 3.2, 4; docs/decisions/0022).

The HPA and the VPA of the workload are read as they are, whoever made them and whether they act or not, and stay as
they are. Only where there is none, an HPA that points at the Hvpa, or a VPA that is Off, is created: of several Hvpas
by the first. That HPA does nothing but measure. Two HPAs on the same pods switch each other off (AmbiguousSelector), so
the Hvpa deletes its own as soon as another one is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.objects.read_models import Hpa, Meta
from hvpa.core.model import Finding, OtherHvpa, OwnedChange, Recommender
from hvpa.core.recommenders.ownership import (
    AT_ONCE,
    O,
    OwnerRules,
    age,
    controlled_by,
    create,
    delete,
    kept_up,
    named,
)

READ_AS_IS = "ReadAsIs"
"""Reason of HpaActive and VpaActive where an object is read that is another's."""


def read(
    rules: OwnerRules[O], owner: Meta, spec: HvpaSpec, others: Sequence[OtherHvpa], candidates: tuple[O, ...]
) -> Recommender[O]:
    """The object to read in mode Recommend or Paused, and what is to be changed about this Hvpa's own."""
    present = [one for one in candidates if one.metadata.deletion_timestamp is None]
    own = OtherHvpa(owner.name, False, spec.hpa.deploy, spec.vpa.deploy, owner.creation_timestamp)
    ahead = [one for one in others if one.rank < own.rank]
    given_up = _given_up(rules, owner, ahead, present)
    changes = tuple([delete(rules.kind, one) for one in given_up[:AT_ONCE]])
    if rules.name is not None:
        found = named(rules, present, lambda one: _refused(rules, one))
        if found.object is not None:
            found = structs.replace(found, read_as_is=_origin(rules, spec, found.object))
        return structs.replace(found, changes=changes)
    if not rules.deploy:
        return Recommender(configured=False, changes=changes)
    gone = {one.metadata.uid for one in given_up}
    chosen = _nearest(rules, owner, [one for one in present if one.metadata.uid not in gone])
    if chosen is None:
        return _created_by_the_first(rules, owner, spec, ahead, candidates, changes)
    if controlled_by(chosen, owner) and not rules.acts(chosen):
        return kept_up(rules, owner, spec, chosen, changes)
    origin = _origin(rules, spec, chosen)
    return Recommender(True, chosen, None, changes, in_charge=True, read_as_is=origin)


def _given_up(rules: OwnerRules[O], owner: Meta, ahead: Iterable[OtherHvpa], present: Sequence[O]) -> list[O]:
    """HPAs of this Hvpa's own that would switch off another one: one that scales the workload itself, or one of an Hvpa
    that is `ahead` of this one. An Hvpa in mode Apply creates its own once they are gone."""
    if rules.kind != "HorizontalPodAutoscaler":
        return []
    first = {one.name for one in ahead}
    served = [rules.served(one) for one in present]
    is_in_the_way = (
        any(rules.acts(one) for one in present)
        or any(one is not None and one.name in first for one in served)
        or any(one.applies and one.deploys_hpa for one in ahead)
    )
    if not is_in_the_way:
        return []
    own = [one for one in present if controlled_by(one, owner) and not rules.acts(one)]
    return [one for one in own if one.metadata.name != rules.name]


def _nearest(rules: OwnerRules[O], owner: Meta, present: Sequence[O]) -> O | None:
    """The one to read, of the same kind the oldest. An HPA that scales the workload comes first, since its measurements
    are there for sure; a VPA of this Hvpa's own comes first, since it has the bounds of its template."""
    ranked = [(order, age(one), one) for one in present if (order := _order(rules, owner, one)) is not None]
    return min(ranked, key=lambda entry: entry[:2])[2] if ranked else None


def _order(rules: OwnerRules[O], owner: Meta, one: O) -> int | None:
    is_hpa = isinstance(one, Hpa)
    if rules.acts(one) and is_hpa:
        return 0
    if controlled_by(one, owner) or (is_hpa and rules.ours(one)):
        return 1
    if rules.acts(one):
        return 2
    return 3 if rules.ours(one) or rules.served(one) is not None else None


def _created_by_the_first(
    rules: OwnerRules[O],
    owner: Meta,
    spec: HvpaSpec,
    ahead: Iterable[OtherHvpa],
    candidates: tuple[O, ...],
    changes: tuple[OwnedChange, ...],
) -> Recommender[O]:
    """Where there is none: the first Hvpa that deploys one creates it, and the others read that one."""
    is_hpa = rules.kind == "HorizontalPodAutoscaler"
    for one in ahead:
        if one.deploys_hpa if is_hpa else one.deploys_vpa:
            why = f"Hvpa {one.name}, which has the same target, is to create the {rules.kind} that is read"
            return Recommender(True, None, Finding(f"{rules.short}Awaited", why), changes)
    return create(rules, owner, spec, candidates, changes)


def _refused(rules: OwnerRules[O], one: O) -> Finding | None:
    if rules.ours(one) or rules.served(one) is not None:
        return None
    return Finding("OtherTarget", f"{rules.kind} {one.metadata.name} is for another target")


def _origin(rules: OwnerRules[O], spec: HvpaSpec, one: O) -> Finding | None:
    """Whose an object is that is read as it is; None for an HPA that points at this Hvpa and asks it for a count."""
    name, target = f"{rules.kind} {one.metadata.name}", spec.target_ref
    if not isinstance(one, Hpa):
        policy = one.spec.update_policy
        mode = policy.update_mode if policy is not None else ""
        acts = "which changes the pods itself" if rules.acts(one) else "which only recommends"
        return Finding(READ_AS_IS, f"reading {name} (updateMode {mode or 'not set'}), {acts}")
    if rules.acts(one):
        return Finding(READ_AS_IS, f"reading {name}, which scales {target.kind} {target.name} itself")
    other = rules.served(one)
    return None if other is None else Finding(READ_AS_IS, f"reading {name} of Hvpa {other.name}")
