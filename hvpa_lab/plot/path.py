"""The path of each container resource for `pathChart` of charts.js, in millicores and bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa.cli.output import Json
from hvpa.core.model import Decision, JointView
from hvpa.core.path.curve import ResourceCurve
from hvpa.core.path.path import ResourceKey

FEW_COUNTS: Final = 12
"""Minimum number of the path's replica counts that are shown, if the path has that many."""
MOST_COUNTS: Final = 200
"""Maximum number of replica counts that are shown."""
TOTALS: Final = 7
"""Maximum lines of equal totals, apart from those of the marks' demand."""


class Mark(NamedTuple):
    """A point of the Hvpa."""

    name: str
    replicas: int
    sizes: Mapping[ResourceKey, int]
    demand: Mapping[ResourceKey, int | None]
    """The demand that the point serves."""


def path(decision: Decision) -> list[Json]:
    """The path of each container resource; empty without a path.

    It contains the replica counts, the smallest and the largest request of a pod at each count (None: unlimited), the
    marked points, and lines of equal totals: the request at each count with which the pods serve a demand.
    """
    view, replicas = decision.joint, decision.replicas
    if view is None or replicas is None or view.usual is None:  # without a usual point, no metric has a path
        return []
    present = {item.key: item.present for item in view.items}
    usual = {item.key: item.usual for item in view.items}
    marks = [
        Mark("now", replicas.current, {item.key: item.current for item in view.items}, {}),
        Mark("wanted", view.wanted.replicas, view.wanted.sizes, present),
        Mark("usual", view.usual.replicas, view.usual.sizes, usual),
    ]
    return [_curve(key, view, [mark for mark in marks if key in mark.sizes]) for key in view.path.curves]


def _curve(key: ResourceKey, view: JointView, marks: Sequence[Mark]) -> Json:
    curve, lower, upper = view.path.curves[key], view.path.counts.lower, view.path.counts.upper
    last = max([lower + FEW_COUNTS, *(2 * mark.replicas for mark in marks)])
    last = min(last, lower + MOST_COUNTS - 1, last if upper is None else upper)
    counts, smallest, before = range(lower, last + 1), list[int](), 0
    for count in counts:
        smallest.append(curve.size(count, before + 1) if before else curve.size_bounds.lower)
        before = curve.reach(count) or before
    largest = [curve.top(count) for count in counts]
    highest = max(
        [*(top for top in largest if top is not None), *smallest, *(mark.sizes[key] for mark in marks)]
    )
    demands = [(mark.name, demand) for mark in marks if (demand := mark.demand.get(key))]
    rounded = multiples(key.resource, last * curve.size_bounds.reserve.work(highest), TOTALS)[1:]
    return {
        "container": key.container,
        "resource": key.resource,
        "counts": list(counts),
        "smallest": smallest,
        "largest": largest,
        "goesOn": upper is None or upper > last,
        "marks": {mark.name: {"replicas": mark.replicas, "size": mark.sizes[key]} for mark in marks},
        "totals": [
            {"of": name, "demand": demand, "sizes": _sizes(curve, counts, demand)}
            for name, demand in [*demands, *((None, demand) for demand in rounded)]
        ],
    }


def _sizes(curve: ResourceCurve, counts: Sequence[int], demand: int) -> list[int]:
    """The request of each pod with which a demand is served, at each count."""
    return [curve.size_bounds.reserve.size(max(1, round(demand / count))) for count in counts]


def step(resource: Resource, span: float, most: int) -> int:
    """The smallest round step (millicores, bytes) that fits into `span` at most `most` times.

    Round means 1, 2 or 5 followed by zeros, for memory a power of two. Example: CPU, span 900, most 6: 200.
    """
    least = max(1.0, span / most)
    if resource == "memory":
        return 1 << math.ceil(math.log2(least))
    power = 1
    while power * 10 < least:
        power *= 10
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)


def multiples(resource: Resource, span: float, most: int) -> Sequence[int]:
    """Round amounts from 0 up to `span`, at most `most` besides the 0."""
    return range(0, int(span) + 1, step(resource, span, most))
