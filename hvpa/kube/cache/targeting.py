"""Which Hvpas name a workload as their target, by rank: those in mode Apply first, then those that only look."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter

from hvpa.core.model import MOST_RIVALS, OtherHvpa
from hvpa.kube.objects.references import Target, target_of
from hvpa.kube.objects.stored_hvpa import StoredHvpa

Place = tuple[Target, OtherHvpa]
"""A target, and an Hvpa of it as the others see it."""
_FIRST = MOST_RIVALS + 2
"""How many of a target's Hvpas the others look at: one more than each sees beside itself."""
_rank = attrgetter("rank")


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
        found = self._hvpas[target]
        del found[bisect_left(found, hvpa.rank, key=_rank)]
        if not found:
            del self._hvpas[target]

    def first(self, target: Target) -> Sequence[OtherHvpa]:
        """Those that all others of a target look at."""
        return self._hvpas.get(target, ())[:_FIRST]

    def beside(self, target: Target, name: str) -> tuple[OtherHvpa, ...]:
        """The first MOST_RIVALS + 1 beside the Hvpa `name`."""
        return tuple([one for one in self.first(target) if one.name != name][: MOST_RIVALS + 1])

    def concerned(self, target: Target) -> list[str]:
        """Names of those to which a change of the target matters: where several would scale it, none of them does,
        whatever becomes of it."""
        found = self._hvpas.get(target, ())
        start = 0 if len(found) < 2 or not found[1].applies else bisect_left(found, True, key=_only_looks)
        return [one.name for one in islice(found, start, None)]

    def onlookers(self, target: Target) -> list[str]:
        """Names of those to which a change of `first` matters. Those in mode Apply name each other in their messages,
        unless they are too many."""
        found = self._hvpas.get(target, ())
        applying = bisect_left(found, True, key=_only_looks)
        start = applying if applying > _FIRST else 0
        return [one.name for one in islice(found, start, None)]


def _only_looks(hvpa: OtherHvpa) -> bool:
    return not hvpa.applies


def place_of(hvpa: StoredHvpa | None) -> Place | None:
    """The target of an Hvpa, and the Hvpa as the others with this target see it; None as for `target_of`."""
    target = None if hvpa is None else target_of(hvpa, hvpa.links)
    if hvpa is None or target is None:
        return None
    links = hvpa.links
    other = OtherHvpa(
        name=hvpa.metadata.name,
        applies=links.mode == "Apply",
        deploys_hpa=links.hpa is not None and links.hpa.deploy,
        deploys_vpa=links.vpa is not None and links.vpa.deploy,
        created=hvpa.metadata.creation_timestamp,
    )
    return target, other
