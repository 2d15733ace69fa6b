"""Builds a path from weights (DESIGN 5.4) or from explicit intervals (DESIGN 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from hvpa.core.path.curve import FixedSizeStretch, Level, Line, Power, ResourceCurve, SizeBounds
from hvpa.core.path.path import Path, ResourceKey
from hvpa.core.values.weight import FULL, Bounds, WeightInterval, weight_leaving


class ResourceInterval(NamedTuple):
    """The end of an interval of the path: `replicas` replicas with at most `size` each (millicores or bytes)."""

    replicas: int
    size: int
    horizontal_only: bool = False


class Stretch(NamedTuple):
    """A range of replica counts with one weight."""

    start: int
    last: int | None
    """None: without an end."""
    weight_ppm: int


def _stretches(intervals: tuple[WeightInterval, ...], counts: Bounds) -> list[Stretch]:
    """Returns the path's counts from first to last, divided at each change of weight."""
    edges = {counts.lower}
    for interval in intervals:
        edges.update(
            [] if interval.start is None else [interval.start],
            [] if interval.last is None else [interval.last, interval.last + 1],
        )
    weights = [
        (start, weight_leaving(intervals, start, counts))
        for start in sorted(edges)
        if counts.lower <= start and (counts.upper is None or start < counts.upper)
    ]
    changes = [next(same) for _, same in groupby(weights, key=itemgetter(1))]
    ends = [start for start, _ in changes[1:]] + [counts.upper]
    return [Stretch(start, end, weight) for (start, weight), end in zip(changes, ends, strict=False)]


def path_of_weights(
    intervals: tuple[WeightInterval, ...], counts: Bounds, items: tuple[tuple[ResourceKey, SizeBounds], ...]
) -> Path:
    """Returns the path that weights define, starting at the base point (minReplicas, base). Each container resource has
    a curve (DESIGN 5.4).

    With a weight of 100 percent, and from the last count on, a curve grows only vertically, up to `upper`. At `upper`
    it grows only horizontally. A container resource without a base has no relative increase to share, so all its demand
    is vertical.
    """
    counts = _usable(counts)
    parts = _stretches(intervals, counts)
    return Path(counts, {key: _weight_curve(parts, counts, size_bounds) for key, size_bounds in items})


def _weight_curve(parts: Sequence[Stretch], counts: Bounds, size_bounds: SizeBounds) -> ResourceCurve:
    size = size_bounds.clamp(size_bounds.base)
    pieces: list[Level | Power | Line] = [Level(counts.lower, size)]
    vertical_stretches: list[int] = []
    fixed_sizes: list[FixedSizeStretch] = []
    for part in parts:
        if part.weight_ppm == FULL or not size:
            pieces.append(Level(part.start, size_bounds.upper))
            vertical_stretches.append(part.start)
            break
        if part.weight_ppm == 0:
            fixed_sizes.append(FixedSizeStretch(part.start, part.last, size))
        if part.weight_ppm == 0 or size == size_bounds.upper:
            pieces.append(Level(part.start + 1, size))
            continue
        power = Power(part.start + 1, part.start, size, part.weight_ppm, size_bounds.unit)
        pieces.append(power)
        reached = None if part.last is None else power.top(part.last)
        size = size_bounds.clamp(reached) if reached is not None else size_bounds.upper or 0
    return _curve(counts, size_bounds, pieces, vertical_stretches, fixed_sizes)


def path_of_intervals(
    counts: Bounds, items: tuple[tuple[ResourceKey, SizeBounds, tuple[ResourceInterval, ...]], ...]
) -> Path:
    """Returns the path that intervals define for each container resource (DESIGN 5.5): counts rise, sizes do not fall.
    A container resource without intervals grows only vertically and needs more replicas only at its upper bound.

    The first interval starts at 0 replicas and 0 resources, so minReplicas moves no boundary. The path ends at the last
    size or at `upper`, whichever is smaller. From there it grows horizontally; at the last replica count it grows
    vertically up to there.
    """
    counts = _usable(counts)
    vertical = [Stretch(counts.lower, None, FULL)]
    return Path(
        counts,
        {
            key: _interval_curve(parts, counts, size_bounds)
            if parts
            else _weight_curve(vertical, counts, size_bounds)
            for key, size_bounds, parts in items
        },
    )


def _interval_curve(
    parts: tuple[ResourceInterval, ...], counts: Bounds, size_bounds: SizeBounds
) -> ResourceCurve:
    pieces: list[Level | Power | Line] = []
    fixed_sizes: list[FixedSizeStretch] = []
    for before, after in pairwise((ResourceInterval(0, 0), *parts)):
        first = before.replicas + 1
        if after.horizontal_only:
            pieces.append(Level(first, after.size))
            fixed_sizes.append(FixedSizeStretch(first, after.replicas, after.size))
        else:
            pieces.append(
                Line(first, before.replicas, before.size, after.replicas, after.size, size_bounds.unit)
            )
    end = parts[-1]
    pieces.append(Level(end.replicas + 1, end.size))
    size_bounds = replace(size_bounds, upper=size_bounds.clamp(end.size))
    return _curve(counts, size_bounds, pieces, [], fixed_sizes)


def _curve(
    counts: Bounds,
    size_bounds: SizeBounds,
    pieces: list[Level | Power | Line],
    vertical_stretches: list[int],
    fixed_sizes: list[FixedSizeStretch],
) -> ResourceCurve:
    """Returns the curve, completed with vertical growth at the last replica count. Pieces that start at or after that
    count never apply, so they are dropped."""
    if counts.upper is not None:
        pieces = [*pieces[:1], *(piece for piece in pieces[1:] if piece.first < counts.upper)]
        pieces.append(Level(counts.upper, size_bounds.upper))
        vertical_stretches.append(counts.upper)
    counts_of_stretches = tuple(sorted(set(vertical_stretches)))
    return ResourceCurve(counts, size_bounds, tuple(pieces), counts_of_stretches, tuple(fixed_sizes))


def _usable(counts: Bounds) -> Bounds:
    """Returns bounds of at least 1 replica; if they conflict, the lower bound wins."""
    lower = max(1, counts.lower)
    return Bounds(lower, None if counts.upper is None else max(lower, counts.upper))
