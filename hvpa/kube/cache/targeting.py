"""The targets of Hvpas, HPAs and VPAs, and the Hvpas of each workload by rank: mode Apply first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from hvpa.api.hvpa.spec import APPLYING
from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import Hpa, ObjectReference, Vpa
from hvpa.core.model import MOST_RIVALS, OtherHvpa
from hvpa.core.recommenders.adoption import adoption_of
from hvpa.kube.objects.stored_hvpa import Links, StoredHvpa

HVPA_KIND = "Hvpa"
RefToken = tuple[str, ...]
"""Namespace and owner uid, or namespace, kind and name of a target."""
_FIRST = MOST_RIVALS + 2
"""Number of a target's Hvpas that the others may see; each sees all of these except itself."""
_rank = attrgetter("rank")


class Target(NamedTuple):
    """A workload that an Hvpa names. `kind` is a `hvpa.api.objects.kinds.kind_key`."""

    namespace: str
    kind: str
    name: str


Place = tuple[Target, OtherHvpa]
"""A target, and an Hvpa of it as the others see it."""


def reference_of(obj: Hpa | Vpa) -> ObjectReference:
    """The target of the recommender."""
    return obj.spec.scale_target_ref if isinstance(obj, Hpa) else obj.spec.target_ref


def tokens_of(obj: Hpa | Vpa) -> tuple[RefToken, ...]:
    """The target, and the controller or the Hvpa that adopted it. Other owners are ignored, since there may be many."""
    meta, reference, controller = obj.metadata, reference_of(obj), obj.metadata.controller()
    is_hvpa = reference.kind == HVPA_KIND
    kind = HVPA_KIND if is_hvpa else kind_key(reference.api_version, reference.kind)
    tokens: dict[RefToken, None] = {(meta.namespace, kind, reference.name): None}
    if controller is not None:
        tokens[meta.namespace, controller.uid] = None
    if (adoption := adoption_of(obj)) is not None:
        tokens[meta.namespace, HVPA_KIND, adoption.hvpa] = None
    return tuple(tokens)


def target_in(namespace: str, links: Links) -> Target:
    """The target that an Hvpa of a namespace names."""
    named = links.target_ref
    return Target(namespace, kind_key(named.api_version, named.kind), named.name)


def place_of(hvpa: StoredHvpa | None) -> Place | None:
    """The target of an Hvpa, and the Hvpa as the others with this target see it.

    None if the Hvpa does not exist, or is being deleted and no longer scales.
    """
    if hvpa is None or hvpa.metadata.deletion_timestamp is not None:
        return None
    meta, links = hvpa.metadata, hvpa.links
    other = OtherHvpa(
        name=meta.name,
        applies=links.mode in APPLYING,
        deploys_hpa=links.hpa is not None and links.hpa.deploy,
        deploys_vpa=links.vpa is not None and links.vpa.deploy,
        created=meta.creation_timestamp,
    )
    return target_in(meta.namespace, links), other


class Targeting:
    """The Hvpas of each target. Few are expected; many must do no harm."""

    def __init__(self) -> None:
        self._hvpas: dict[Target, list[OtherHvpa]] = {}

    def __contains__(self, target: Target) -> bool:
        return target in self._hvpas

    def add(self, target: Target, hvpa: OtherHvpa) -> None:
        """Note that `hvpa` names `target`."""
        insort(self._hvpas.setdefault(target, []), hvpa, key=_rank)

    def remove(self, target: Target, hvpa: OtherHvpa) -> None:
        """Note that `hvpa`, as it was added, no longer names `target`."""
        hvpas = self._hvpas[target]
        del hvpas[bisect_left(hvpas, hvpa.rank, key=_rank)]
        if not hvpas:
            del self._hvpas[target]

    def first(self, target: Target) -> Sequence[OtherHvpa]:
        """The Hvpas that all others of a target see."""
        return self._hvpas.get(target, ())[:_FIRST]

    def beside(self, target: Target, name: str) -> tuple[OtherHvpa, ...]:
        """The first MOST_RIVALS + 1 Hvpas of a target except the Hvpa `name`."""
        return tuple([hvpa for hvpa in self.first(target) if hvpa.name != name][: MOST_RIVALS + 1])

    def concerned(self, target: Target) -> list[str]:
        """Names of the Hvpas that a change of the target affects.

        If several Hvpas in mode Apply name the target, none of them scales it, so only the other Hvpas are affected.
        """
        applying = self._applying(target)
        return self._names(target, applying if applying > 1 else 0)

    def onlookers(self, target: Target) -> list[str]:
        """Names of the Hvpas that a change of `first` affects.

        Hvpas in mode Apply name each other in their messages, unless they are too many.
        """
        applying = self._applying(target)
        return self._names(target, applying if applying > _FIRST else 0)

    def _applying(self, target: Target) -> int:
        """Number of Hvpas in mode Apply; they rank before the others."""
        return bisect_left(self._hvpas.get(target, ()), True, key=lambda hvpa: not hvpa.applies)

    def _names(self, target: Target, start: int) -> list[str]:
        return [hvpa.name for hvpa in self._hvpas.get(target, ())[start:]]
