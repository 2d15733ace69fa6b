"""What the plots of a result show, for page and picture alike: panels, lines, colours, and which points are drawn.

Nothing here draws. A series of a month has far more points than a screen has columns: `thin` keeps those that show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from hvpa.api.values.quantity import Resource
from hvpa.simulate.model import Series, SimulationEvent, SimulationResult
from hvpa.simulate.report.figures import names

LIMIT: Final = 2000
"""Points of a line that are kept at most."""
COLOURS: Final = ("#0077bb", "#ee7733", "#009988", "#cc3377", "#a08000", "#55c3f0")
"""One per policy, distinct for the colour-blind, on light and on dark (after Paul Tol's "vibrant")."""
Dash = Literal["solid", "dash", "dot", "dashdot"]
DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dashdot")
"""How the lines of policies beyond the colours differ from the first ones."""
CORE: Final = 1000.0
"""Millicores."""
GIB: Final = float(2**30)
EVENT_ORDER: Final = (
    "OOM",
    "Evicted",
    "Unschedulable",
    "Replicas",
    "Requests",
    "Condition",
    "Blocked",
    "Event",
)
"""Kinds of events, those first that are kept where there are too many to show."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a panel: values at steps (indices), drawn as steps where they hold until the next one. `policy` is the
    policy's index, None for what all have in common."""

    policy: int | None
    name: str
    dash: Dash
    steps: bool
    indices: tuple[int, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines on one axis with its unit."""

    title: str
    unit: str
    lines: tuple[Line, ...]


def colour(policy: int) -> str:
    """The policy's colour, by its place in the scenario."""
    return COLOURS[policy % len(COLOURS)]


def dash(policy: int) -> Dash:
    """The policy's kind of line."""
    return DASHES[policy // len(COLOURS) % len(DASHES)]


def thin(values: Sequence[float], limit: int = LIMIT) -> list[int]:
    """Indices of at most `limit` (at least 4) values that draw the same line: all corners where these are few enough;
    otherwise the ends, and the first smallest and first largest of each of equally long stretches."""
    kept = _corners(values, limit)
    if kept is not None:
        return kept
    inner = len(values) - 2
    buckets = (limit - 2) // 2
    indices = [0]
    for bucket in range(buckets):
        begin, end = 1 + inner * bucket // buckets, 1 + inner * (bucket + 1) // buckets
        stretch = values[begin:end]
        places = {begin + stretch.index(min(stretch)), begin + stretch.index(max(stretch))}
        indices += sorted(places)
    return [*indices, len(values) - 1]


def _corners(values: Sequence[float], limit: int) -> list[int] | None:
    """The indices without those inside a constant stretch; None where there are more than `limit`."""
    last = len(values) - 1
    kept = [0] if values else []
    for index in range(1, last):
        value = values[index]
        if value != values[index - 1] or value != values[index + 1]:
            kept.append(index)
            if len(kept) >= limit:
                return None
    return [*kept, last] if last > 0 else kept


def panels(result: SimulationResult, limit: int = LIMIT) -> tuple[Panel, ...]:
    """The panels from top to bottom; none where there is no policy."""
    series = tuple(zip(names(result), (policy.series for policy in result.policies), strict=True))
    if not series:
        return ()
    load = _line(None, "load", series[0][1].load, _Look(1.0, limit))
    return (
        Panel("Load", "as recorded", (load,)),
        _with_dotted(
            "Requested CPU (replicas × request)",
            "demand",
            "cores",
            _beside_demand(series, [one.requested_cpu for _, one in series], limit),
        ),
        _with_dotted(
            "Capacity of ready pods",
            "demand",
            "cores",
            _beside_demand(series, [one.capacity for _, one in series], limit),
        ),
        _with_dotted("Replicas", "ready", "pods", _replicas(series, limit)),
        Panel("CPU request per pod", "cores", tuple(_requests(series, "cpu", CORE, limit))),
        Panel("Memory request per pod", "GiB", tuple(_requests(series, "memory", GIB, limit))),
        Panel(
            "Unmet demand",
            "cores",
            tuple(_line(at, name, one.unmet, _Look(CORE, limit)) for at, (name, one) in enumerate(series)),
        ),
    )


def _with_dotted(title: str, what: str, unit: str, lines: Iterable[Line]) -> Panel:
    """A panel whose title says which line is what."""
    drawn = tuple(lines)
    if any(line.policy is None for line in drawn):
        title += f" and {what} (grey)"
    elif any(line.dash == "dot" for line in drawn):
        title += f" and {what} (dotted)"
    return Panel(title, unit, drawn)


NamedSeries = tuple[tuple[str, Series], ...]
"""Name and series of each policy."""


class _Look(NamedTuple):
    """How values are drawn: divided by `unit`, `limit` points of them at most."""

    unit: float
    limit: int
    dash: Dash | None = None
    steps: bool = False


def _beside_demand(series: NamedSeries, columns: Sequence[Sequence[float]], limit: int) -> Iterable[Line]:
    """A column of each policy beside the demand, which is drawn once where it is the same under all policies: it
    differs by the replicas' base."""
    demand = [one.demand for _, one in series]
    if all(one == demand[0] for one in demand):
        yield _line(None, "demand", demand[0], _Look(CORE, limit))
    else:
        for at, (name, one) in enumerate(series):
            yield _line(at, f"{name}: demand", one.demand, _Look(CORE, limit, "dot"))
    for at, ((name, _), values) in enumerate(zip(series, columns, strict=True)):
        yield _line(at, name, values, _Look(CORE, limit, steps=True))


def _replicas(series: NamedSeries, limit: int) -> Iterable[Line]:
    for at, (name, one) in enumerate(series):
        if one.ready != one.replicas:
            yield _line(at, f"{name}: ready", one.ready, _Look(1.0, limit, "dot", steps=True))
        yield _line(at, name, one.replicas, _Look(1.0, limit, steps=True))


def _requests(series: NamedSeries, resource: Resource, unit: float, limit: int) -> Iterable[Line]:
    """What a pod of the template requests, its containers together."""
    for at, (name, one) in enumerate(series):
        parts = [values for (_, kind), values in sorted(one.requests.items()) if kind == resource]
        total = parts[0] if len(parts) == 1 else [sum(values) for values in zip(*parts, strict=True)]
        yield _line(at, name, total, _Look(unit, limit, steps=True))


def _line(policy: int | None, name: str, values: Sequence[float], look: _Look) -> Line:
    indices = tuple(thin(values, look.limit))
    drawn = look.dash or ("solid" if policy is None else dash(policy))
    scaled_values = tuple(scaled(values[at], look.unit) for at in indices)
    return Line(policy, name, drawn, look.steps, indices, scaled_values)


def scaled(value: float, unit: float) -> float | None:
    """The value in larger units with six significant digits; None where it is no finite number."""
    return float(f"{value / unit:.6g}") + 0.0 if math.isfinite(value) else None


def choose(events: Sequence[SimulationEvent], limit: int) -> list[SimulationEvent]:
    """At most `limit` events in order of time: what hurts before what was merely considered. Of the kind that does not
    fit any more, some from begin to end."""
    by_rank: dict[int, list[SimulationEvent]] = {}
    for event in events:
        by_rank.setdefault(_rank(event.kind), []).append(event)
    chosen: list[SimulationEvent] = []
    for rank in sorted(by_rank):
        alike, room = by_rank[rank], limit - len(chosen)
        share = min(room, len(alike))
        chosen += [alike[index * len(alike) // share] for index in range(share)]
    return sorted(chosen, key=lambda event: event.time)


def _rank(kind: str) -> int:
    return EVENT_ORDER.index(kind) if kind in EVENT_ORDER else len(EVENT_ORDER)
