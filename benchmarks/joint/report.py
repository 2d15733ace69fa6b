"""What the kept evidence says: joint scaling beside the line of HPA and VPA, and the tables of it in Markdown.

Who pays more serves more, so one point says little. HPA and VPA have a *line*: cost against unmet demand, through
several headrooms. Joint scaling with its default headroom is compared with what HPA and VPA cost where they leave as
much unmet: between two points of the line in a straight line over the logarithm of unmet demand.

Example: HPA and VPA cost 100 at 1,000 core-seconds, and 90 at 2,000. Joint scaling costs 75 at 1,500: they cost 94
there (ln 1.5 / ln 2 of the way), so that is 0.80 times the cost. An oracle costs 60, 0.64 of 94: joint scaling is
(94 - 75) / (94 - 60) = 0.56 of the way to it.
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
"""Core-seconds of unmet demand that are added on all sides for each seed, so that a minute decides nothing."""
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
"""The cost that is aimed at, by workload and kind of resizes."""
NAMES: Final = {
    "cpu": "bound by CPU",
    "cpu-base": "bound by CPU, with base usage",
    "memory": "bound by memory",
    "memory-base": "bound by memory, with base usage",
}
RESIZES: Final = {"InPlace": "resized in place", "Recreate": "replaced"}


class Point(NamedTuple):
    """What one policy did with one headroom: cost, and the logarithm of unmet demand."""

    cost: float
    unmet: float


class Beside(NamedTuple):
    """Joint scaling beside HPA and VPA at the same unmet demand; `cost` is a ratio. Single seeds, each by its own line,
    have `by_seed` on average, `low` at least and `high` at most. `oracle` is the ratio of the limit to the same cost of
    HPA and VPA. Under `more` loads it serves more than they do with any headroom, and is compared with the one that
    serves most; under `less` it serves less, and is compared with the cheapest. OOMs and restarts are sums, with the
    default headroom."""

    cost: float
    by_seed: float
    low: float
    high: float
    oracle: float
    more: int
    less: int
    ooms: int
    base_ooms: int
    restarts: int
    base_restarts: int

    @property
    def way(self) -> float:
        """The share of the way to the oracle: 1 is the oracle, 0 HPA and VPA."""
        return (1 - self.cost) / (1 - self.oracle)


# --- one load -------------------------------------------------------------------------------------------------------
def lines_of(place: Place, policy: str) -> list[Line]:
    """This policy with all its headrooms."""
    return [line for line in place.lines if line.policy == policy]


def at_default(place: Place, policy: str) -> Line:
    """This policy with the default headroom. Raises ValueError where it was not run."""
    for line in lines_of(place, policy):
        if line.target == DEFAULT_TARGET:
            return line
    raise ValueError(
        f"{place.load}, {place.workload}, {place.resize}: {policy} was not run with {DEFAULT_TARGET}m"
    )


def point(line: Line, seeds: Sequence[int]) -> Point:
    """These seeds together."""
    unmet = sum(line.unmet[seed] for seed in seeds) + NEGLIGIBLE * len(seeds)
    return Point(sum(line.cost[seed] for seed in seeds), math.log(unmet))


def front(points: Iterable[Point]) -> list[Point]:
    """The points than which none is cheaper and serves more, the one that serves most first."""
    found: list[Point] = []
    for one in sorted(points, key=lambda one: (one.unmet, one.cost)):
        if not found or one.cost < found[-1].cost:
            found.append(one)
    return found


def cost_at(points: Iterable[Point], unmet: float) -> tuple[float, int]:
    """The cost at this logarithm of unmet demand, by the points than which none is cheaper and serves more. -1 with it:
    none serves so much, and it is the cost of the one that serves most; 1: all serve more, and it is that of the
    cheapest."""
    line = front(points)
    if unmet < line[0].unmet:
        return line[0].cost, -1
    for left, right in pairwise(line):
        if unmet <= right.unmet:
            part = (unmet - left.unmet) / (right.unmet - left.unmet)
            return left.cost + (right.cost - left.cost) * part, 0
    return line[-1].cost, int(unmet > line[-1].unmet)


class Ratio(NamedTuple):
    """The cost of joint scaling, and that of the oracle, beside that of HPA and VPA at the unmet demand of joint
    scaling, and whether it serves more (-1) or less (1) than their line."""

    cost: float
    oracle: float
    outside: int


def ratio(place: Place, seeds: Sequence[int]) -> Ratio:
    """One load, these seeds together."""
    own = point(at_default(place, POLICY), seeds)
    cost, outside = cost_at([point(line, seeds) for line in lines_of(place, BASELINE)], own.unmet)
    return Ratio(own.cost / cost, sum(place.oracle[seed] for seed in seeds) / cost, outside)


# --- several loads --------------------------------------------------------------------------------------------------
def beside(places: Sequence[Place], seeds: Sequence[int] = ()) -> Beside:
    """Joint scaling under these loads together: geometric means of ratios, and sums; of these seeds, or of all."""
    seeds = seeds or range(len(places[0].oracle))
    found = [ratio(place, seeds) for place in places]
    by_seed = [mean([ratio(place, [seed]).cost for place in places]) for seed in seeds]
    own = [at_default(place, POLICY) for place in places]
    base = [at_default(place, BASELINE) for place in places]
    return Beside(
        mean([one.cost for one in found]),
        mean(by_seed),
        min(by_seed),
        max(by_seed),
        mean([one.oracle for one in found]),
        sum(one.outside < 0 for one in found),
        sum(one.outside > 0 for one in found),
        _sum(own, seeds, lambda line: line.ooms),
        _sum(base, seeds, lambda line: line.ooms),
        _sum(own, seeds, lambda line: line.restarts),
        _sum(base, seeds, lambda line: line.restarts),
    )


def _sum(lines: Iterable[Line], seeds: Sequence[int], numbers: Callable[[Line], Sequence[int]]) -> int:
    return sum(numbers(line)[seed] for line in lines for seed in seeds)


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def limit_beside(places: Sequence[Place]) -> float:
    """The oracle beside HPA and VPA with the default headroom."""
    return mean([sum(place.oracle) / sum(at_default(place, BASELINE).cost) for place in places])


def median(numbers: Iterable[float | None]) -> float | None:
    """The median of those that are known; None where none is."""
    known = [one for one in numbers if one is not None]
    return statistics.median(known) if known else None


def kinds(kept: Kept) -> list[tuple[str, str]]:
    """Kinds of resizes and workloads that joint scaling was run with, in place first."""
    found = dict.fromkeys((one.resize, one.workload) for one in kept.places if lines_of(one, POLICY))
    return sorted(found, key=lambda kind: (kind[0] != "InPlace", list(NAMES).index(kind[1])))


def of_kind(kept: Kept, resize: str, workload: str) -> list[Place]:
    """The places of this kind."""
    return [one for one in kept.places if (one.resize, one.workload) == (resize, workload)]


# --- tables ---------------------------------------------------------------------------------------------------------
Rows = list[tuple[str, ...]]


def summary(kept: Kept) -> str:
    """A row for each kind of workload and of resizes."""
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
        one = beside(places)
        rows.append(
            (
                f"{NAMES[workload]}, {RESIZES[resize]}",
                f"{one.cost:.2f}",
                f"{one.by_seed:.2f}",
                f"{one.low:.2f} to {one.high:.2f}",
                f"{GOALS[workload, resize]:.2f}",
                f"{one.oracle:.2f}",
                f"{one.way:.0%}".replace("%", " %"),
                f"{one.ooms} ({one.base_ooms})",
                f"{one.restarts} ({one.base_restarts})",
                str(one.more),
                str(one.less),
            )
        )
    return markdown(rows)


def parts(kept: Kept) -> str:
    """What the cost of joint scaling in place is for, a row for each kind of workload, all beside HPA and VPA: what the
    oracle costs, what more is used than by its pods, the default headroom of that, and the rest.

    Example: joint scaling costs 0.80, of which 0.67 are used, and the oracle 0.65. So 0.02 more are used; 15 percent of
    0.67 are 0.10, and 0.03 are the rest."""
    rows: Rows = [
        ("pods", "oracle", "more is used", f"{100 * DEFAULT_MARGIN:.0f} percent headroom", "the rest", "cost")
    ]
    for resize, workload in kinds(kept):
        if resize == "InPlace":
            places = of_kind(kept, resize, workload)
            found, own = beside(places), [at_default(place, POLICY) for place in places]
            used = found.cost * statistics.geometric_mean(sum(one.used) / sum(one.cost) for one in own)
            more, room = used - found.oracle, DEFAULT_MARGIN * used
            figures = (found.oracle, more, room, found.cost - used - room, found.cost)
            rows.append((NAMES[workload], *(f"{one:.2f}" for one in figures)))
    return markdown(rows)


def by_load(kept: Kept, resize: str) -> str:
    """A row for each load, a column for each kind of workload: the cost at the same unmet demand, the spread over
    seeds, and the oracle."""
    loads = list(dict.fromkeys(one.load for one in kept.places))
    rows: Rows = [("load", *NAMES.values())]
    for load in loads:
        cells = []
        for workload in NAMES:
            places = [one for one in of_kind(kept, resize, workload) if one.load == load]
            cells.append(_cell(beside(places)) if places and lines_of(places[0], POLICY) else "")
        rows.append((load, *cells))
    return markdown(rows)


def _cell(one: Beside) -> str:
    note = ", serves more" * one.more + ", serves less" * one.less
    return f"{one.cost:.2f} ({one.low:.2f} to {one.high:.2f}; {one.oracle:.2f}{note})"


def others(kept: Kept) -> str:
    """Each policy with the default headroom beside HPA and VPA with theirs: cost / unmet demand, by kind of workload;
    OOMs and restarts of all."""
    rows: Rows = [("policy", *NAMES.values(), "OOMs", "restarts")]
    for resize in RESIZES:
        for policy in dict.fromkeys(line.policy for one in kept.places for line in one.lines):
            places = [one for one in kept.places if one.resize == resize]
            own = [
                (one, line)
                for one in places
                for line in lines_of(one, policy)
                if line.target == DEFAULT_TARGET
            ]
            if not own:
                continue
            cells = [
                point_beside([pair for pair in own if pair[0].workload == workload]) for workload in NAMES
            ]
            lines, seeds = [line for _, line in own], range(len(own[0][0].oracle))
            counts = [_sum(lines, seeds, lambda one: one.ooms), _sum(lines, seeds, lambda one: one.restarts)]
            rows.append((f"{policy}, {RESIZES[resize]}", *cells, *map(str, counts)))
    return markdown(rows)


def point_beside(own: Sequence[tuple[Place, Line]]) -> str:
    """Cost / unmet demand of these lines beside HPA and VPA with the default headroom."""
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
    """A table; the first row is its head."""
    head, *body = rows
    lines = [head, tuple("---" for _ in head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
