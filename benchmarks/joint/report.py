"""The results of the kept evidence: joint scaling compared with the line of HPA and VPA, and its tables in Markdown.

Higher cost leaves less demand unmet, so a single point means little. HPA and VPA have a *line*: cost against unmet
demand, through several headrooms. Joint scaling with its default headroom is compared with the cost of HPA and VPA at
the same unmet demand, interpolated between two points of the line over the logarithm of unmet demand.

Example: HPA and VPA cost 100 at 1,000 core-seconds, and 90 at 2,000. Joint scaling costs 75 at 1,500. HPA and VPA cost
94 there (ln 1.5 / ln 2 of the way), so joint scaling has 0.80 times their cost. An oracle costs 60, 0.64 of 94: joint
scaling is (94 - 75) / (94 - 60) = 0.56 of the way to it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from benchmarks.joint.kept import Kept, Line, Place
from benchmarks.joint.policies import BASELINE, DEFAULT_MARGIN, DEFAULT_TARGET, POLICY

NEGLIGIBLE: Final = 60.0
"""Core-seconds of unmet demand that are added to each policy for each seed, so that a minute has little weight."""
GOALS: Final = {
    ("cpu", "InPlace"): 0.79,
    ("cpu-base", "InPlace"): 0.75,
    ("memory", "InPlace"): 0.73,
    ("memory-base", "InPlace"): 0.67,
    ("cpu", "Recreate"): 0.95,
    ("cpu-base", "Recreate"): 0.88,
    ("memory", "Recreate"): 0.88,
    ("memory-base", "Recreate"): 0.78,
}
"""The goal for the cost, by workload and kind of resizes."""
NAMES: Final = {
    "cpu": "bound by CPU",
    "cpu-base": "bound by CPU, with base usage",
    "memory": "bound by memory",
    "memory-base": "bound by memory, with base usage",
}
RESIZES: Final = {"InPlace": "resized in place", "Recreate": "replaced"}


class Point(NamedTuple):
    """A policy with a headroom: cost, and the logarithm of unmet demand."""

    cost: float
    unmet: float


class Beside(NamedTuple):
    """Joint scaling compared with HPA and VPA at the same unmet demand. OOMs and restarts are sums, with the default
    headroom."""

    cost: float
    """Ratio of the costs."""
    by_seed: float
    """Mean of the ratios of single seeds, each with its own line."""
    low: float
    """Lowest ratio of a seed."""
    high: float
    """Highest ratio of a seed."""
    oracle: float
    """Ratio of the oracle's cost to the same cost of HPA and VPA."""
    more: int
    """Loads with less unmet demand than HPA and VPA with any headroom; the point with least unmet demand counts."""
    less: int
    """Loads with more unmet demand than HPA and VPA with any headroom; the cheapest point counts."""
    ooms: int
    base_ooms: int
    restarts: int
    base_restarts: int

    @property
    def way(self) -> float:
        """Share of the way to the oracle: 1 is the oracle, 0 is HPA and VPA."""
        return (1 - self.cost) / (1 - self.oracle)


# --- a single load --------------------------------------------------------------------------------------------------
def lines_of(place: Place, policy: str) -> list[Line]:
    """Return this policy with all its headrooms."""
    return [line for line in place.lines if line.policy == policy]


def at_default(place: Place, policy: str) -> Line:
    """Return this policy with the default headroom. Raises ValueError if it was not run."""
    for line in lines_of(place, policy):
        if line.target == DEFAULT_TARGET:
            return line
    raise ValueError(
        f"{place.load}, {place.workload}, {place.resize}: {policy} was not run with {DEFAULT_TARGET}m"
    )


def point(line: Line, seeds: Sequence[int]) -> Point:
    """Combine these seeds."""
    unmet = sum(line.unmet[seed] for seed in seeds) + NEGLIGIBLE * len(seeds)
    return Point(sum(line.cost[seed] for seed in seeds), math.log(unmet))


def front(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other point beats in both cost and unmet demand, by increasing unmet demand."""
    points_of_front: list[Point] = []
    for candidate in sorted(points, key=lambda candidate: (candidate.unmet, candidate.cost)):
        if not points_of_front or candidate.cost < points_of_front[-1].cost:
            points_of_front.append(candidate)
    return points_of_front


def cost_at(points: Iterable[Point], unmet: float) -> tuple[float, int]:
    """Return the cost at this logarithm of unmet demand, interpolated between the points that no other point beats in
    both. The second value is -1 if all points leave more unmet (the cost is that of the point with least), and 1 if all
    leave less (the cost is that of the cheapest)."""
    line = front(points)
    if unmet < line[0].unmet:
        return line[0].cost, -1
    for left, right in pairwise(line):
        if unmet <= right.unmet:
            part = (unmet - left.unmet) / (right.unmet - left.unmet)
            return left.cost + (right.cost - left.cost) * part, 0
    return line[-1].cost, int(unmet > line[-1].unmet)


class Ratio(NamedTuple):
    """The costs of joint scaling and of the oracle, relative to HPA and VPA at joint scaling's unmet demand, and
    whether it leaves less (-1) or more (1) unmet than their line."""

    cost: float
    oracle: float
    outside: int


def ratio(place: Place, seeds: Sequence[int]) -> Ratio:
    """Compare a load with these seeds combined."""
    own = point(at_default(place, POLICY), seeds)
    cost, outside = cost_at([point(line, seeds) for line in lines_of(place, BASELINE)], own.unmet)
    return Ratio(own.cost / cost, sum(place.oracle[seed] for seed in seeds) / cost, outside)


# --- several loads --------------------------------------------------------------------------------------------------
def beside(places: Sequence[Place], seeds: Sequence[int] = ()) -> Beside:
    """Compare joint scaling under these loads: geometric means of ratios, and sums; with these seeds, or with all."""
    seeds = seeds or range(len(places[0].oracle))
    ratios = [ratio(place, seeds) for place in places]
    by_seed = [mean([ratio(place, [seed]).cost for place in places]) for seed in seeds]
    own = [at_default(place, POLICY) for place in places]
    base = [at_default(place, BASELINE) for place in places]
    return Beside(
        mean([pair.cost for pair in ratios]),
        mean(by_seed),
        min(by_seed),
        max(by_seed),
        mean([pair.oracle for pair in ratios]),
        sum(pair.outside < 0 for pair in ratios),
        sum(pair.outside > 0 for pair in ratios),
        _sum(own, seeds, lambda line: line.ooms),
        _sum(base, seeds, lambda line: line.ooms),
        _sum(own, seeds, lambda line: line.restarts),
        _sum(base, seeds, lambda line: line.restarts),
    )


def _sum(lines: Iterable[Line], seeds: Sequence[int], numbers: Callable[[Line], Sequence[int]]) -> int:
    return sum(numbers(line)[seed] for line in lines for seed in seeds)


def mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def limit_beside(places: Sequence[Place]) -> float:
    """Return the oracle's cost relative to HPA and VPA with the default headroom."""
    return mean([sum(place.oracle) / sum(at_default(place, BASELINE).cost) for place in places])


def median(numbers: Iterable[float | None]) -> float | None:
    """Return the median of the known numbers; None if there are none."""
    known = [number for number in numbers if number is not None]
    return statistics.median(known) if known else None


def kinds(kept: Kept) -> list[tuple[str, str]]:
    """Return the kinds of resizes and workloads of joint scaling, in place first."""
    pairs = dict.fromkeys((place.resize, place.workload) for place in kept.places if lines_of(place, POLICY))
    return sorted(pairs, key=lambda kind: (kind[0] != "InPlace", list(NAMES).index(kind[1])))


def of_kind(kept: Kept, resize: str, workload: str) -> list[Place]:
    """Return the places of this kind."""
    return [place for place in kept.places if (place.resize, place.workload) == (resize, workload)]


# --- tables ---------------------------------------------------------------------------------------------------------
Rows = list[tuple[str, ...]]


def summary(kept: Kept) -> str:
    """Return a row for each kind of workload and of resizes."""
    rows: Rows = [
        (
            "pods",
            "cost",
            "mean of seeds",
            "seeds",
            "goal",
            "oracle",
            "way to the oracle",
            "OOMs",
            "restarts",
            "serves more",
            "serves less",
        )
    ]
    for resize, workload in kinds(kept):
        places = of_kind(kept, resize, workload)
        result = beside(places)
        rows.append(
            (
                f"{NAMES[workload]}, {RESIZES[resize]}",
                f"{result.cost:.2f}",
                f"{result.by_seed:.2f}",
                f"{result.low:.2f} to {result.high:.2f}",
                f"{GOALS[workload, resize]:.2f}",
                f"{result.oracle:.2f}",
                f"{result.way:.0%}".replace("%", " %"),
                f"{result.ooms} ({result.base_ooms})",
                f"{result.restarts} ({result.base_restarts})",
                str(result.more),
                str(result.less),
            )
        )
    return markdown(rows)


def parts(kept: Kept) -> str:
    """Return the parts of the cost of joint scaling in place, relative to HPA and VPA, a row for each kind of workload:
    the oracle's cost, additional usage, the default headroom of the usage, and the rest.

    Example: joint scaling costs 0.80, of which 0.67 is usage, and the oracle 0.65. So 0.02 is additional usage; 15
    percent of 0.67 is 0.10, and the rest is 0.03.
    """
    rows: Rows = [
        ("pods", "oracle", "more is used", f"{100 * DEFAULT_MARGIN:.0f} percent headroom", "the rest", "cost")
    ]
    for resize, workload in kinds(kept):
        if resize == "InPlace":
            places = of_kind(kept, resize, workload)
            result, own = beside(places), [at_default(place, POLICY) for place in places]
            used = result.cost * statistics.geometric_mean(sum(line.used) / sum(line.cost) for line in own)
            more, room = used - result.oracle, DEFAULT_MARGIN * used
            figures = (result.oracle, more, room, result.cost - used - room, result.cost)
            rows.append((NAMES[workload], *(f"{figure:.2f}" for figure in figures)))
    return markdown(rows)


def by_load(kept: Kept, resize: str) -> str:
    """Return a row for each load with a column for each kind of workload: the cost at the same unmet demand, the spread
    over seeds, and the oracle."""
    loads = list(dict.fromkeys(place.load for place in kept.places))
    rows: Rows = [("load", *NAMES.values())]
    for load in loads:
        cells = []
        for workload in NAMES:
            places = [place for place in of_kind(kept, resize, workload) if place.load == load]
            cells.append(_cell(beside(places)) if places and lines_of(places[0], POLICY) else "")
        rows.append((load, *cells))
    return markdown(rows)


def _cell(result: Beside) -> str:
    note = ", serves more" * result.more + ", serves less" * result.less
    return f"{result.cost:.2f} ({result.low:.2f} to {result.high:.2f}; {result.oracle:.2f}{note})"


def others(kept: Kept) -> str:
    """Return each policy with the default headroom relative to HPA and VPA with theirs: cost / unmet demand, by kind of
    workload; and the sums of OOMs and restarts."""
    rows: Rows = [("policy", *NAMES.values(), "OOMs", "restarts")]
    for resize in RESIZES:
        for policy in dict.fromkeys(line.policy for place in kept.places for line in place.lines):
            places = [place for place in kept.places if place.resize == resize]
            own = [
                (place, line)
                for place in places
                for line in lines_of(place, policy)
                if line.target == DEFAULT_TARGET
            ]
            if not own:
                continue
            cells = [
                point_beside([pair for pair in own if pair[0].workload == workload]) for workload in NAMES
            ]
            lines, seeds = [line for _, line in own], range(len(own[0][0].oracle))
            counts = [
                _sum(lines, seeds, lambda line: line.ooms),
                _sum(lines, seeds, lambda line: line.restarts),
            ]
            rows.append((f"{policy}, {RESIZES[resize]}", *cells, *map(str, counts)))
    return markdown(rows)


def point_beside(own: Sequence[tuple[Place, Line]]) -> str:
    """Return cost / unmet demand of these lines relative to HPA and VPA with the default headroom."""
    if not own:
        return ""
    costs, unmet = [], []
    for place, line in own:
        seeds = range(len(place.oracle))
        mine, theirs = point(line, seeds), point(at_default(place, BASELINE), seeds)
        costs.append(mine.cost / theirs.cost)
        unmet.append(math.exp(mine.unmet - theirs.unmet))
    return f"{mean(costs):.2f} / {mean(unmet):.2f}"


def markdown(rows: Rows) -> str:
    """Return a table; the first row is its head."""
    head, *body = rows
    lines = [head, tuple("---" for _ in head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
