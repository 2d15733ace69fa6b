"""The figures that compare policies: names, units, and formats. The table and the page show the same figures."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.api.values.prices import money
from hvpa_lab.simulate.model import PolicyResult, Reaction, Totals
from hvpa_lab.simulate.report.compare import PolicyRank
from hvpa_lab.simulate.report.text import NONE, grouped_number, number_column, percent_of_share, seconds

Cells = Callable[[Sequence[PolicyRank]], list[str]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A column of the comparison, headed by group and name, with the unit."""

    group: str
    name: str
    cells: Cells
    """Returns the column's text for each policy."""
    meaning: str
    on_page_only: bool = False
    """Whether the text table has no room for the column."""


def _amounts(total_of: Callable[[Totals], float]) -> Cells:
    """The cells of a total, all with the same decimals."""
    return lambda standings: number_column([total_of(standing.policy.totals) for standing in standings])


def _percent(total_of: Callable[[Totals], float], decimals: int = 1) -> Cells:
    return lambda standings: [
        percent_of_share(total_of(standing.policy.totals), decimals) for standing in standings
    ]


def _count(total_of: Callable[[Totals], int]) -> Cells:
    return lambda standings: [grouped_number(total_of(standing.policy.totals), 0) for standing in standings]


def _costs(standings: Sequence[PolicyRank]) -> list[str]:
    largest = max((standing.cost for standing in standings), default=0.0)
    return [money(standing.cost, largest) for standing in standings]


def _differences(standings: Sequence[PolicyRank]) -> list[str]:
    return [
        NONE if standing.difference is None else f"{100 * standing.difference:+,.1f}"
        for standing in standings
    ]


def _cover_median(standings: Sequence[PolicyRank]) -> list[str]:
    return [seconds(standing.policy.totals.cover_median_seconds) for standing in standings]


def _cover_max(standings: Sequence[PolicyRank]) -> list[str]:
    """The longest time of each policy, with `≥` if it had not ended when the next rise began."""
    cells = []
    for policy in (standing.policy for standing in standings):
        longest = policy.totals.cover_max_seconds
        ended = all(reaction.covered for reaction in policy.reactions if reaction.cover_seconds == longest)
        cells.append(f"{'' if ended else '≥'}{seconds(longest)}")
    return cells


def _beaten_by(standings: Sequence[PolicyRank]) -> list[str]:
    """The numbers of the first three policies that beat each policy."""
    return [
        " ".join(str(at + 1) for at in standing.beaten_by[:3]) + " …" * (len(standing.beaten_by) > 3) or NONE
        for standing in standings
    ]


COST: Final = "cost"
UNMET: Final = "unmet demand"
COVER: Final = "time to cover"
CPU: Final = "CPU core-hours"
MEMORY: Final = "memory GiB-hours"
CHANGES: Final = "changes of"

VERDICT: Final[tuple[Figure, ...]] = (
    Figure(COST, "total", _costs, "all requested core-hours and GiB-hours, in the currency of their prices"),
    Figure(COST, "diff %", _differences, "difference to the baseline's cost"),
    Figure(
        UNMET,
        "share %",
        _percent(lambda totals: totals.unmet_demand_share, 2),
        "share of the demand for CPU that no pod served",
    ),
    Figure(
        UNMET, "time %", _percent(lambda totals: totals.unmet_share, 2), "share of time with unmet demand"
    ),
    Figure(
        UNMET,
        "core-s",
        _amounts(lambda totals: totals.unmet_core_seconds),
        "core-seconds that no pod served",
        True,
    ),
    Figure(COVER, "median", _cover_median, "from demand outgrowing ready pods until they cover it"),
    Figure(COVER, "worst", _cover_max, "the slowest rise; ≥: not over when the next began"),
    Figure("pods", "restarts", _count(lambda totals: totals.restarts), "restarts, and pods replaced"),
    Figure(
        "beaten",
        "by",
        _beaten_by,
        "numbers of policies that are as cheap and leave as little unmet demand, or better",
    ),
)
"""The figures that decide between policies."""

RESOURCES: Final[tuple[Figure, ...]] = (
    Figure(CPU, "requested", _amounts(lambda totals: totals.core_hours_requested), "CPU requests over time"),
    Figure(CPU, "used", _amounts(lambda totals: totals.core_hours_used), "CPU used over time"),
    Figure(CPU, "slack %", _percent(lambda totals: totals.slack_cpu), "share that was not used", True),
    Figure(
        MEMORY, "requested", _amounts(lambda totals: totals.gib_hours_requested), "memory requests over time"
    ),
    Figure(MEMORY, "used", _amounts(lambda totals: totals.gib_hours_used), "memory used over time"),
    Figure(MEMORY, "slack %", _percent(lambda totals: totals.slack_memory), "share that was not used", True),
    Figure(CHANGES, "replicas", _count(lambda totals: totals.replica_changes), "changes of the count"),
    Figure(CHANGES, "requests", _count(lambda totals: totals.request_changes), "changes of pods' requests"),
    Figure(
        "",
        "OOMs",
        _count(lambda totals: totals.ooms),
        "containers that ended because they ran out of memory, or of heap",
    ),
    Figure("nodes", "hours", _amounts(lambda totals: totals.node_hours), "nodes in use over time"),
)
"""The components of costs and restarts."""

HELD: Final = "held"
HELD_MEANING: Final = "until replicas or requests went up: gates, maxStep, or they were still enough"
"""Gates are not the only reason for this phase: on a slow rise, the HPA may scale out long before it is necessary."""

PHASES: Final[tuple[tuple[str, str, Callable[[Reaction], float | None]], ...]] = (
    ("tolerance", "until usage left the tolerance", lambda reaction: reaction.tolerance),
    ("metric age", "until a metric showed it", lambda reaction: reaction.metric_age),
    ("HPA period", "until the HPA evaluated it", lambda reaction: reaction.hpa_period),
    (HELD, HELD_MEANING, lambda reaction: reaction.gates),
    ("start-up", "until the new pods were ready", lambda reaction: reaction.start_up),
)
"""Name, meaning and value of each phase of a reaction."""


def reactions(policy: PolicyResult, *, longest: bool) -> list[str]:
    """The row of a policy's reactions: number of rises, number of reactions, then for each phase the median over the
    rises that reached it; with `longest`, also the longest time (`10s / 25s`)."""
    cells = [
        str(len(policy.reactions)),
        str(sum(reaction.total is not None for reaction in policy.reactions)),
    ]
    for _, _, phase_of in PHASES:
        known = [length for reaction in policy.reactions if (length := phase_of(reaction)) is not None]
        cell = seconds(statistics.median(known)) if known else NONE
        cells.append(f"{cell} / {seconds(max(known))}" if known and longest else cell)
    return cells
