"""The figures by which policies are compared: names, units, and how each is told. Table and page show the same ones."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hvpa.simulate.model import PolicyResult, Reaction, SimulationResult, Totals
from hvpa.simulate.text import NONE, amount, amounts, percent, plain, seconds


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of the comparison. `group` and `name` head it, with the unit; less of it is better where `ranked`."""

    group: str
    name: str
    value: Callable[[Totals], float | None]
    tell: Callable[[Sequence[float | None]], list[str]]
    meaning: str
    ranked: bool = True


def _whole(values: Sequence[float | None]) -> list[str]:
    return [NONE if value is None else amount(value, 0) for value in values]


def _percent(values: Sequence[float | None]) -> list[str]:
    return [NONE if value is None else percent(value) for value in values]


def _fine_percent(values: Sequence[float | None]) -> list[str]:
    return [NONE if value is None else percent(value, 2) for value in values]


def _lengths(values: Sequence[float | None]) -> list[str]:
    return [seconds(value) for value in values]


CPU: Final = "CPU core-hours"
MEMORY: Final = "memory GiB-hours"
UNMET: Final = "unmet demand"
PODS: Final = "pods"
CHANGES: Final = "changes of"
NODES: Final = "nodes"
REACTION: Final = "reaction to a rise"

FIGURES: Final[tuple[Figure, ...]] = (
    Figure(CPU, "requested", lambda t: t.core_hours_requested, amounts, "CPU requests over time"),
    Figure(CPU, "used", lambda t: t.core_hours_used, amounts, "CPU used over time", False),
    Figure(CPU, "slack %", lambda t: t.slack_cpu, _percent, "share of the requests that was not used", False),
    Figure(MEMORY, "requested", lambda t: t.gib_hours_requested, amounts, "memory requests over time"),
    Figure(MEMORY, "used", lambda t: t.gib_hours_used, amounts, "memory used over time", False),
    Figure(MEMORY, "slack %", lambda t: t.slack_memory, _percent, "share that was not used", False),
    Figure(UNMET, "core-s", lambda t: t.unmet_core_seconds, amounts, "demand for CPU that nobody served"),
    Figure(UNMET, "time %", lambda t: t.unmet_share, _fine_percent, "share of time with unmet demand"),
    Figure(PODS, "OOMs", lambda t: t.ooms, _whole, "containers killed for want of memory"),
    Figure(PODS, "restarts", lambda t: t.restarts, _whole, "containers restarted, and pods replaced"),
    Figure(CHANGES, "replicas", lambda t: t.replica_changes, _whole, "changes of the replica count"),
    Figure(CHANGES, "requests", lambda t: t.request_changes, _whole, "changes of the pods' requests"),
    Figure(NODES, "hours", lambda t: t.node_hours, amounts, "nodes in use over time"),
    Figure(REACTION, "median", lambda t: t.reaction_median, _lengths, "from a rise to the first change"),
    Figure(REACTION, "longest", lambda t: t.reaction_max, _lengths, "the slowest of them"),
)

PHASES: Final[tuple[tuple[str, str, Callable[[Reaction], float | None]], ...]] = (
    ("tolerance", "until usage left the tolerance", lambda r: r.tolerance),
    ("metric age", "until a metric showed it", lambda r: r.metric_age),
    ("HPA period", "until the HPA looked", lambda r: r.hpa_period),
    ("gates", "until the change was made: stabilization, minChange, windows", lambda r: r.gates),
    ("start-up", "until the new pods were ready", lambda r: r.start_up),
    ("total", "from the rise's start until its first change", lambda r: r.total),
    ("unmet", "how long demand went unmet", lambda r: r.unmet_seconds),
)
"""Name, meaning and value of what a reaction consists of."""


def columns(result: SimulationResult) -> list[list[str]]:
    """By figure, what each policy has of it."""
    return [figure.tell([figure.value(policy.totals) for policy in result.policies]) for figure in FIGURES]


def best(result: SimulationResult, figure: Figure) -> frozenset[int]:
    """The policies (by index) with the least of this figure; none where all are alike or it is not ranked."""
    values = [figure.value(policy.totals) for policy in result.policies]
    known = {value for value in values if value is not None}
    if not figure.ranked or len(known) < 2:
        return frozenset()
    least = min(known)
    return frozenset(index for index, value in enumerate(values) if value == least)


def reactions(policy: PolicyResult) -> list[str]:
    """How a policy answered the rises: how many there were, how many were answered, then by phase "median / longest"
    of those in which it was reached."""
    answered = sum(one.total is not None for one in policy.reactions)
    cells = [str(len(policy.reactions)), str(answered)]
    for _, _, value in PHASES:
        known = [length for one in policy.reactions if (length := value(one)) is not None]
        cells.append(f"{seconds(statistics.median(known))} / {seconds(max(known))}" if known else NONE)
    return cells


def names(result: SimulationResult) -> list[str]:
    """The policies' names, safe to print."""
    return [plain(policy.name) for policy in result.policies]
