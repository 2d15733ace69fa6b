"""Which Hvpas name a workload as their target, by rank: those in mode Apply first, then those that only look."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter

from hvpa.core.model import MOST_RIVALS, OtherHvpa
from hvpa.kube.parsed import StoredHvpa
from hvpa.kube.references import Target

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

    def to_report_to(self, target: Target, *, changed: bool) -> Iterator[str]:
        """Names of those to which another Hvpa's coming and going matters. Those in mode Apply name each other in their
        messages, unless they are too many. The rest look at the first ones, of which one has `changed`."""
        found = self._hvpas.get(target, ())
        applying = bisect_left(found, True, key=_only_looks)
        if applying <= _FIRST:
            yield from (one.name for one in found[:applying])
        if changed:
            yield from (one.name for one in found[applying:])


def _only_looks(hvpa: OtherHvpa) -> bool:
    return not hvpa.applies


def as_other(hvpa: StoredHvpa) -> OtherHvpa:
    """An Hvpa as the others with the same target see it."""
    links = hvpa.links
    return OtherHvpa(
        name=hvpa.metadata.name,
        applies=links.mode == "Apply",
        deploys_hpa=links.hpa is not None and links.hpa.deploy,
        deploys_vpa=links.vpa is not None and links.vpa.deploy,
        created=hvpa.metadata.creation_timestamp,
    )
