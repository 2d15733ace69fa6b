"""The contents of a result's plots: panels, lines, colours, and the points of each line.

Nothing here draws. A series of a month has far more points than a screen has columns: `thin` keeps the visible points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from hvpa.api.values.quantity import GIB, Resource
from hvpa.core.workload.pod_level import POD
from hvpa_lab.simulate.model import Series, SimulationEvent, SimulationResult
from hvpa_lab.simulate.report.text import plain_text

LIMIT: Final = 2000
"""Default maximum of points of a line."""
COLOURS: Final = ("#0077bb", "#ee7733", "#009988", "#cc3377", "#a08000", "#55c3f0")
"""Colours of policies, distinct for the colour-blind, on light and on dark (after Paul Tol's "vibrant")."""
Dash = Literal["solid", "dash", "dot", "dashdot"]
DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dashdot")
"""Line styles: the next style when there are more policies than colours."""
CORE: Final = 1000.0
"""Millicores in a core."""
EVENT_ORDER: Final = (
    "Violation",
    "OOM",
    "Evicted",
    "Unschedulable",
    "Replicas",
    "Requests",
    "Condition",
    "Blocked",
    "Event",
)
"""Kinds of events, by importance."""


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A line of a panel."""

    policy: int | None
    """Index of the policy; None for a line that all policies share."""
    name: str
    dash: Dash
    steps: bool
    """Whether to draw the line as steps: each value holds until the next."""
    indices: tuple[int, ...]
    """The step of each value."""
    values: tuple[float | None, ...]
    """None if a value is not finite."""


@dataclass(frozen=True, slots=True)
class SeriesPanel:
    """Lines on a common axis, with their unit."""

    title: str
    unit: str
    lines: tuple[PlotLine, ...]


def colour(policy: int) -> str:
    """The policy's colour, by its index in the scenario."""
    return COLOURS[policy % len(COLOURS)]


def dash(policy: int) -> Dash:
    """The policy's line style, by its index in the scenario."""
    return DASHES[policy // len(COLOURS) % len(DASHES)]


def thin(values: Sequence[float], limit: int = LIMIT) -> list[int]:
    """Indices of at most `limit` (at least 4) values that draw the same line: all corners if these are few enough;
    otherwise both ends, and the first minimum and maximum of each of equally long stretches."""
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
    """The indices of values that are not inside a constant stretch; None if there are more than `limit`."""
    last = len(values) - 1
    kept = [0] if values else []
    for index in range(1, last):
        value = values[index]
        if value != values[index - 1] or value != values[index + 1]:
            kept.append(index)
            if len(kept) >= limit:
                return None
    return [*kept, last] if last > 0 else kept


class _LineStyle(NamedTuple):
    """How to draw a line: values are divided by `unit`, and at most `limit` points are kept."""

    unit: float
    limit: int
    dash: Dash | None = None
    steps: bool = True


def panels(result: SimulationResult, limit: int = LIMIT) -> tuple[SeriesPanel, ...]:
    """The panels from top to bottom; empty if there is no policy."""
    if not result.policies:
        return ()
    series = [(plain_text(policy.name), policy.series) for policy in result.policies]
    load = _line(None, "load", series[0][1].load, _LineStyle(1.0, limit, steps=False))
    demand = list(_demand(series, _LineStyle(CORE, limit, steps=False)))
    cores, pods, unmet = _LineStyle(CORE, limit), _LineStyle(1.0, limit), _LineStyle(CORE, limit, steps=False)

    def lines(column: str, style: _LineStyle) -> list[PlotLine]:
        return [
            _line(at, name, getattr(policy_series, column), style)
            for at, (name, policy_series) in enumerate(series)
        ]

    return (
        SeriesPanel("Load", "as recorded", (load,)),
        _with_dotted(
            "Requested CPU (replicas × request)", "demand", "cores", demand + lines("requested_cpu", cores)
        ),
        _with_dotted("Capacity of ready pods", "demand", "cores", demand + lines("capacity", cores)),
        _with_dotted("Replicas", "ready", "pods", list(_replicas(series, pods))),
        SeriesPanel("CPU request per pod", "cores", tuple(_requests(series, "cpu", cores))),
        SeriesPanel(
            "Memory request per pod", "GiB", tuple(_requests(series, "memory", _LineStyle(GIB, limit)))
        ),
        SeriesPanel("Unmet demand", "cores", tuple(lines("unmet", unmet))),
    )


def _with_dotted(title: str, meaning: str, unit: str, lines: Sequence[PlotLine]) -> SeriesPanel:
    """The panel, with the meaning of its grey or dotted lines added to the title."""
    if any(line.policy is None for line in lines):
        title += f" and {meaning} (grey)"
    elif any(line.dash == "dot" for line in lines):
        title += f" and {meaning} (dotted)"
    return SeriesPanel(title, unit, tuple(lines))


NamedSeries = Sequence[tuple[str, Series]]
"""Name and series of each policy."""


def _demand(series: NamedSeries, style: _LineStyle) -> Iterable[PlotLine]:
    """The lines of the demand: a single line if all policies have the same demand, else a line per policy. It includes
    the base usage of each replica."""
    first = series[0][1].demand
    if all(policy_series.demand == first for _, policy_series in series):
        yield _line(None, "demand", first, style)
    else:
        for at, (name, policy_series) in enumerate(series):
            yield _line(at, f"{name}: demand", policy_series.demand, style._replace(dash="dot"))


def _replicas(series: NamedSeries, style: _LineStyle) -> Iterable[PlotLine]:
    for at, (name, policy_series) in enumerate(series):
        if policy_series.ready != policy_series.replicas:
            yield _line(at, f"{name}: ready", policy_series.ready, style._replace(dash="dot"))
        yield _line(at, name, policy_series.replicas, style)


def _requests(series: NamedSeries, resource: Resource, style: _LineStyle) -> Iterable[PlotLine]:
    """The lines of the requests per pod (the mean over the pods): the pod's own, or summed over the containers."""
    for at, (name, policy_series) in enumerate(series):
        requests = policy_series.requests
        names = (
            [POD]
            if (POD, resource) in requests
            else sorted(name for name, kind in requests if kind == resource)
        )
        parts = [requests[name, resource] for name in names]
        total = parts[0] if len(parts) == 1 else [sum(values) for values in zip(*parts, strict=True)]
        yield _line(at, name, total, style)


def _line(policy: int | None, name: str, values: Sequence[float], style: _LineStyle) -> PlotLine:
    indices = tuple(thin(values, style.limit))
    drawn = style.dash or ("solid" if policy is None else dash(policy))
    return PlotLine(
        policy,
        name,
        drawn,
        style.steps,
        indices,
        tuple(value_in_unit(values[at], style.unit) for at in indices),
    )


def value_in_unit(value: float, unit: float) -> float | None:
    """The value divided by `unit`, with six significant digits; None if it is not finite."""
    return float(f"{value / unit:.6g}") + 0.0 if math.isfinite(value) else None


def choose(events: Sequence[SimulationEvent], limit: int) -> list[SimulationEvent]:
    """At most `limit` events in order of time, chosen by `EVENT_ORDER`. A kind that fits only in part is thinned
    evenly."""
    by_rank: dict[int, list[SimulationEvent]] = {}
    for event in events:
        rank = EVENT_ORDER.index(event.kind) if event.kind in EVENT_ORDER else len(EVENT_ORDER)
        by_rank.setdefault(rank, []).append(event)
    chosen: list[SimulationEvent] = []
    for rank in sorted(by_rank):
        alike = by_rank[rank]
        share = min(limit - len(chosen), len(alike))
        chosen += [alike[index * len(alike) // share] for index in range(share)]
    return sorted(chosen, key=lambda event: event.time)
