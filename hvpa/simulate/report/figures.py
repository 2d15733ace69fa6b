"""The figures by which policies are compared: names, units, and how each is written. Table and page show the same."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.api.values.prices import money
from hvpa.simulate.model import PolicyResult, Reaction, SimulationResult, Totals
from hvpa.simulate.report.compare import Comparison, Standing
from hvpa.simulate.report.text import NONE, amount, amounts, percent, plain, seconds


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of the comparison. `group` and `name` head it, with the unit; `cells` writes it for each policy. The
    text has no room for those that are `on_page_only`."""

    group: str
    name: str
    cells: Callable[[Sequence[Standing]], list[str]]
    meaning: str
    on_page_only: bool = False


def _of(
    value: Callable[[Totals], float], write: Callable[[Sequence[float]], list[str]] = amounts
) -> Callable[[Sequence[Standing]], list[str]]:
    """Writes a column of one of the totals."""
    return lambda standings: write([value(one.policy.totals) for one in standings])


def _whole(values: Sequence[float]) -> list[str]:
    return [amount(value, 0) for value in values]


def _percent(values: Sequence[float]) -> list[str]:
    return [percent(value) for value in values]


def _fine_percent(values: Sequence[float]) -> list[str]:
    return [percent(value, 2) for value in values]


def _costs(standings: Sequence[Standing]) -> list[str]:
    largest = max((one.cost for one in standings), default=0.0)
    return [money(one.cost, largest) for one in standings]


def _differences(standings: Sequence[Standing]) -> list[str]:
    return [NONE if one.difference is None else f"{100 * one.difference:+,.1f}" for one in standings]


def _cover_median(standings: Sequence[Standing]) -> list[str]:
    return [seconds(one.policy.totals.cover_median) for one in standings]


def _cover_max(standings: Sequence[Standing]) -> list[str]:
    """The longest time; `≥` where it had not ended when the next rise began."""
    totals = [one.policy.totals for one in standings]
    return [f"{'' if one.covered else '≥'}{seconds(one.cover_max)}" for one in totals]


def _beaten_by(standings: Sequence[Standing]) -> list[str]:
    """The numbers of the policies that beat each, the first three of them."""
    return [
        " ".join(str(at + 1) for at in one.beaten_by[:3]) + " …" * (len(one.beaten_by) > 3) or NONE
        for one in standings
    ]


COST: Final = "cost"
UNMET: Final = "unmet demand"
PODS: Final = "pods"
COVER: Final = "time to cover"
BEATEN: Final = "beaten"
CPU: Final = "CPU core-hours"
MEMORY: Final = "memory GiB-hours"
CHANGES: Final = "changes of"
NODES: Final = "nodes"

VERDICT: Final[tuple[Figure, ...]] = (
    Figure(COST, "total", _costs, "requested core-hours and GiB-hours at their prices"),
    Figure(COST, "diff %", _differences, "how much more than the baseline that is"),
    Figure(
        UNMET,
        "share %",
        _of(lambda t: t.unmet_demand_share, _fine_percent),
        "share of the demand for CPU that no pod served",
    ),
    Figure(UNMET, "time %", _of(lambda t: t.unmet_share, _fine_percent), "share of time with unmet demand"),
    Figure(UNMET, "core-s", _of(lambda t: t.unmet_core_seconds), "core-seconds that no pod served", True),
    Figure(COVER, "median", _cover_median, "from demand outgrowing ready pods until they cover it"),
    Figure(COVER, "worst", _cover_max, "the slowest rise; ≥: not over when the next began"),
    Figure(PODS, "restarts", _of(lambda t: t.restarts, _whole), "restarts, and pods replaced"),
    Figure(BEATEN, "by", _beaten_by, "policies as cheap, with as little unmet demand, or better"),
)
"""What policies are judged by."""

RESOURCES: Final[tuple[Figure, ...]] = (
    Figure(CPU, "requested", _of(lambda t: t.core_hours_requested), "CPU requests over time"),
    Figure(CPU, "used", _of(lambda t: t.core_hours_used), "CPU used over time"),
    Figure(CPU, "slack %", _of(lambda t: t.slack_cpu, _percent), "share that was not used", True),
    Figure(MEMORY, "requested", _of(lambda t: t.gib_hours_requested), "memory requests over time"),
    Figure(MEMORY, "used", _of(lambda t: t.gib_hours_used), "memory used over time"),
    Figure(MEMORY, "slack %", _of(lambda t: t.slack_memory, _percent), "share that was not used", True),
    Figure(CHANGES, "replicas", _of(lambda t: t.replica_changes, _whole), "changes of the count"),
    Figure(CHANGES, "requests", _of(lambda t: t.request_changes, _whole), "changes of pods' requests"),
    Figure("", "OOMs", _of(lambda t: t.ooms, _whole), "containers killed for want of memory"),
    Figure(NODES, "hours", _of(lambda t: t.node_hours), "nodes in use over time"),
)
"""What their costs and restarts are made of."""

HELD: Final = "held"
HELD_MEANING: Final = "until replicas or requests went up: gates, maxStep, or they were still enough"
"""The phase is no gate's alone: on a slow rise the HPA may ask for more long before it is needed."""

PHASES: Final[tuple[tuple[str, str, Callable[[Reaction], float | None]], ...]] = (
    ("tolerance", "until usage left the tolerance", lambda r: r.tolerance),
    ("metric age", "until a metric showed it", lambda r: r.metric_age),
    ("HPA period", "until the HPA looked", lambda r: r.hpa_period),
    (HELD, HELD_MEANING, lambda r: r.gates),
    ("start-up", "until the new pods were ready", lambda r: r.start_up),
)
"""Name, meaning and value of what a reaction consists of."""


def columns(comparison: Comparison, figures: Sequence[Figure]) -> list[list[str]]:
    """By figure, what each policy has of it."""
    return [figure.cells(comparison.standings) for figure in figures]


def reactions(policy: PolicyResult) -> list[str]:
    """How a policy reacted to the rises: how many there were, to how many it reacted, then by phase "median / longest"
    of those in which it was reached."""
    cells = [str(len(policy.reactions)), str(with_reaction(policy))]
    for _, _, value in PHASES:
        known = reached(policy, value)
        cells.append(f"{seconds(statistics.median(known))} / {seconds(max(known))}" if known else NONE)
    return cells


def medians(policy: PolicyResult) -> list[str]:
    """The same by phase, the medians alone."""
    known = [reached(policy, value) for _, _, value in PHASES]
    cells = [seconds(statistics.median(one) if one else None) for one in known]
    return [str(len(policy.reactions)), str(with_reaction(policy)), *cells]


def with_reaction(policy: PolicyResult) -> int:
    """How many rises replicas or requests were raised for."""
    return sum(one.total is not None for one in policy.reactions)


def reached(policy: PolicyResult, value: Callable[[Reaction], float | None]) -> list[float]:
    """A phase's lengths in seconds, in the rises in which it was reached."""
    return [length for one in policy.reactions if (length := value(one)) is not None]


def names(result: SimulationResult) -> list[str]:
    """The policies' names, safe to print."""
    return [plain(policy.name) for policy in result.policies]
