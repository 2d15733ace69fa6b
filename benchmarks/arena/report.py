"""The arena's tables: cost relative to the rivals, unmet demand, OOMs and response times, and each workload that is
worse than its rival, with the reason."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from benchmarks.arena.draw import HOURS, METRICS, SHAPES, WEIGHTS
from benchmarks.arena.outcome import Outcome
from benchmarks.arena.policies import BOTH, HPA
from benchmarks.arena.run import Result

MORE_COST: Final = 1.15
"""Ratio to the rival's cost from which a workload is worse, at no less unmet demand."""
MORE_UNMET: Final = 0.01
"""Additional unmet share of the demand from which a workload is worse."""
SAME: Final = 0.001
"""Share of the demand below which differences are ignored."""
AT_REST: Final = "constant"
PERIODS: Final = (HOURS - 24) / 6
"""Number of periods of six hours that count."""


class Verdict(NamedTuple):
    """Why a workload is worse: its kinds (cost, unmet, OOMs), and the reason as text."""

    kinds: tuple[str, ...]
    reason: str


def verdict(one: Result) -> Verdict | None:
    """Return why it is worse than its rival; None if it is not."""
    own, other = one.own, one.outcomes[one.rival]
    found = []
    if own.ooms > other.ooms:
        measured = "measured" if "memory" in one.metric else "not measured"
        kind = "follows the load" if one.follows else "does not follow the load"
        found.append(("OOMs", f"{own.ooms} OOMs ({other.ooms}): memory {kind}, and is {measured}"))
    if own.unmet >= other.unmet + MORE_UNMET:
        text = f"unmet {own.unmet:.1%} ({other.unmet:.1%}), {_when(own)}"
        found.append(("unmet", text))
    if own.cost >= other.cost * MORE_COST and own.unmet >= other.unmet - SAME:
        found.append(("cost", f"cost {own.cost / other.cost - 1:+.0%}"))
    if not found:
        return None
    texts = [*(text for _, text in found), _sizes(own, other), f"{own.restarts} restarts ({other.restarts})"]
    return Verdict(tuple(kind for kind, _ in found), "; ".join(texts))


def _when(own: Outcome) -> str:
    """Describe when demand was unmet."""
    if own.starting >= 0.5:
        return f"{own.starting:.0%} of it while pods were missing or not ready"
    if own.at_most >= 0.5:
        return f"{own.at_most:.0%} of it at maxReplicas"
    return "while all pods were ready: too few, or too small"


def _sizes(own: Outcome, other: Outcome) -> str:
    """Describe larger and smaller sizes, sorted by their effect on the cost."""
    weight = own.cpu_cost / own.cost if own.cost else 0.0
    parts = {
        "replicas": (own.replicas, other.replicas, 1.0),
        "CPU of a pod": (own.cpu, other.cpu, weight),
        "memory of a pod": (own.memory, other.memory, 1 - weight),
    }
    logs = {
        name: abs(math.log(mine / theirs)) * share
        for name, (mine, theirs, share) in parts.items()
        if mine > 0 and theirs > 0
    }
    named = sorted(logs, key=lambda name: -logs[name])
    return ", ".join(f"{name} ×{parts[name][0] / parts[name][1]:.2f}" for name in named)


# --- tables ---------------------------------------------------------------------------------------------------------
Rows = list[tuple[str, ...]]
FIGURES: Final = ("unmet %", "below", "OOMs", "P99")
HEAD: Final = (
    *("workloads", "count", "cost", "half within", "worse", "for cost", "unmet", "OOMs"),
    *(name for figure in FIGURES for name in (figure, "rival's")),
)
Group = tuple[str, Callable[[Result], bool]]
GROUPS: Final[Sequence[Group]] = (
    ("all", lambda one: True),
    ("in place", lambda one: one.in_place),
    ("replaced", lambda one: not one.in_place),
    *(("no weight" if at is None else f"weight {at}", lambda one, at=at: one.weight == at) for at in WEIGHTS),
    *((name, lambda one, name=name: one.metric == name) for name in METRICS),
    *((name, lambda one, name=name: one.blend == name) for name in ("Trajectory", "Additive")),
    ("memory follows", lambda one: one.follows),
    ("steady memory", lambda one: not one.follows),
    *((f"load: {name}", lambda one, name=name: one.shape == name) for name in SHAPES),
)


PARTS: Final[Sequence[Group]] = (
    *GROUPS[:3],
    ("in place, CPU or memory is measured", lambda one: one.in_place and not _has_no_size(one)),
    ("replaced, CPU or memory is measured", lambda one: not one.in_place and not _has_no_size(one)),
    ("a queue or a Value is", lambda one: _has_no_size(one)),
    *((name, lambda one, name=name: one.blend == name) for name in ("Trajectory", "Additive")),
    *(
        (f"Trajectory, {name}", lambda one, name=name: one.blend == "Trajectory" and one.metric == name)
        for name in METRICS
    ),
    ("Trajectory, no weight", lambda one: one.blend == "Trajectory" and one.weight is None),
)


def _has_no_size(one: Result) -> bool:
    """Whether the HPA measures no resource that could size pods: they follow the VPA, as the rival's pods do."""
    return one.metric in ("queue", "Value")


def report(seed: int, results: Sequence[Result]) -> str:
    """Return the report as text."""
    run = [one for one in results if one.rival in one.outcomes and not one.errors]
    both = [one for one in run if one.rival == BOTH]
    parts = [
        f"Seed {seed}, {len(run)} workloads",
        "Beside the rival (HPA+VPA; weight 0: HPA; weight 100: VPA)\n\n" + _beside(run, GROUPS),
        "Beside HPA+VPA, without the weights 0 and 100\n\n" + _beside(both, PARTS, BOTH),
        "Beside HPA alone, without the weights 0 and 100\n\n" + _beside(both, PARTS, HPA),
        _at_rest(run),
        _worse(run),
    ]
    failed = [
        f"#{one.number} {one.text}: {name}: {why}" for one in results for name, why in one.errors.items()
    ]
    if failed:
        parts.append("Not run\n\n" + "\n".join(failed))
    return "\n\n".join(parts)


def _beside(results: Sequence[Result], groups: Iterable[Group], rival: str = "") -> str:
    rows: Rows = [HEAD]
    for name, holds in groups:
        chosen = [one for one in results if holds(one)]
        if chosen:
            judged = [structs.replace(one, rival=rival or one.rival) for one in chosen]
            rows.append((name, *_row(judged)))
    return table(rows)


def _row(chosen: Sequence[Result]) -> tuple[str, ...]:
    """Return the row of a group: cost is the geometric mean of ratios, other columns are sums and means."""
    ratios = sorted(one.own.cost / one.outcomes[one.rival].cost for one in chosen)
    quarters = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    worse = [found for one in chosen if (found := verdict(one)) is not None]
    sides = [[one.own for one in chosen], [one.outcomes[one.rival] for one in chosen]]
    return (
        str(len(chosen)),
        f"{geometric(ratios):.2f}",
        f"{quarters[0]:.2f} to {quarters[2]:.2f}",
        str(len(worse)),
        *(str(sum(kind in found.kinds for found in worse)) for kind in ("cost", "unmet", "OOMs")),
        *(f"{statistics.fmean(one.unmet for one in side):.2%}" for side in sides),
        *(f"{statistics.fmean(one.below for one in side):.0f}s" for side in sides),
        *(str(sum(one.ooms for one in side)) for side in sides),
        *(f"{geometric(one.p99 for one in side):.2f}s" for side in sides),
    )


def geometric(numbers: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, numbers)))


def _at_rest(results: Sequence[Result]) -> str:
    """Describe how often requests and replicas change in place under a constant load."""
    chosen = [one for one in results if one.in_place and one.shape == AT_REST]
    rows: Rows = [
        ("writes per 6 h at rest, in place", "median", "mean", "most", "of", "rival's median", "mean")
    ]
    for name, label in (("writes", "requests"), ("replica_changes", "replicas")) if chosen else ():
        own = {one.number: getattr(one.own, name) / PERIODS for one in chosen}
        other = [getattr(one.outcomes[one.rival], name) / PERIODS for one in chosen]
        most = max(own, key=lambda number: own[number])
        sides = [
            f"{of(side):.1f}"
            for side in (own.values(), other)
            for of in (statistics.median, statistics.fmean)
        ]
        row = (f"{label} ({len(chosen)} workloads)", *sides[:2], f"{own[most]:.1f}", f"#{most}", *sides[2:])
        rows.append(row)
    return table(rows)


def _worse(results: Sequence[Result]) -> str:
    lines = [
        f"#{one.number} {'+'.join(found.kinds)}: {one.text}\n     {found.reason}"
        for one in results
        if (found := verdict(one)) is not None
    ]
    return f"Worse than the rival: {len(lines)}\n\n" + "\n".join(lines)


def table(rows: Rows) -> str:
    """Align columns, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


# --- comparison of two results --------------------------------------------------------------------------------------
def compared(before: Sequence[Result], after: Sequence[Result]) -> str:
    """List the workloads whose Hvpas act differently than before."""
    known = {one.number: one for one in before if not one.errors}
    rows: Rows = [("changed", "cost", "unmet", "OOMs", "P99", "writes", "verdict", "")]
    pairs = [(known[one.number], one) for one in after if one.number in known and not one.errors]
    for old, new in pairs:
        was, now = old.own, new.own
        verdicts = [found.kinds if (found := verdict(one)) else () for one in (old, new)]
        if (
            abs(now.cost / was.cost - 1) >= 0.01
            or abs(now.unmet - was.unmet) >= SAME
            or now.ooms != was.ooms
            or verdicts[0] != verdicts[1]
        ):
            names = ["+".join(one) or "fine" for one in verdicts]
            rows.append(
                (
                    f"#{new.number}",
                    f"{now.cost / was.cost:.2f}x",
                    f"{was.unmet:.2%} > {now.unmet:.2%}",
                    f"{was.ooms} > {now.ooms}",
                    f"{was.p99:.2f} > {now.p99:.2f}",
                    f"{was.writes} > {now.writes}",
                    " > ".join(names) if names[0] != names[1] else names[0],
                    f"{new.metric}, {new.weight}, {'in place' if new.in_place else 'replaced'}, {new.shape}",
                )
            )
    sides = list(zip(*pairs, strict=True))
    all_in_all = ""
    if sides:
        costs = [geometric(one.own.cost / one.outcomes[one.rival].cost for one in side) for side in sides]
        worse = [sum(verdict(one) is not None for one in side) for side in sides]
        all_in_all = (
            f"\n\n{len(pairs)} workloads: cost {costs[0]:.3f} > {costs[1]:.3f}, worse {worse[0]} > {worse[1]}"
        )
    return table(rows) + all_in_all
