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
from benchmarks.arena.policies import AGAIN, BOTH, HPA, HVPA
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


def verdict(result: Result) -> Verdict | None:
    """Return why it is worse than its rival; None if it is not."""
    hvpa, rival = result.own, result.outcomes[result.rival]
    reasons = []
    if hvpa.ooms > rival.ooms:
        measured = "measured" if "memory" in result.metric else "not measured"
        kind = "follows the load" if result.follows else "does not follow the load"
        reasons.append(("OOMs", f"{hvpa.ooms} OOMs ({rival.ooms}): memory {kind}, and is {measured}"))
    if hvpa.unmet >= rival.unmet + MORE_UNMET:
        text = f"unmet {hvpa.unmet:.1%} ({rival.unmet:.1%}), {_when(hvpa)}"
        reasons.append(("unmet", text))
    if hvpa.cost >= rival.cost * MORE_COST and hvpa.unmet >= rival.unmet - SAME:
        reasons.append(("cost", f"cost {hvpa.cost / rival.cost - 1:+.0%}"))
    if not reasons:
        return None
    texts = [
        *(text for _, text in reasons),
        _sizes(hvpa, rival),
        f"{hvpa.restarts} restarts ({rival.restarts})",
    ]
    return Verdict(tuple(kind for kind, _ in reasons), "; ".join(texts))


def _when(outcome: Outcome) -> str:
    """Describe when demand was unmet."""
    if outcome.starting >= 0.5:
        return f"{outcome.starting:.0%} of it while pods were missing or not ready"
    if outcome.at_most >= 0.5:
        return f"{outcome.at_most:.0%} of it at maxReplicas"
    return "while all pods were ready: too few, or too small"


def _sizes(hvpa: Outcome, rival: Outcome) -> str:
    """Describe larger and smaller sizes, sorted by their effect on the cost."""
    weight = hvpa.cpu_cost / hvpa.cost if hvpa.cost else 0.0
    parts = {
        "replicas": (hvpa.replicas, rival.replicas, 1.0),
        "CPU of a pod": (hvpa.cpu, rival.cpu, weight),
        "memory of a pod": (hvpa.memory, rival.memory, 1 - weight),
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
    ("all", lambda result: True),
    ("in place", lambda result: result.in_place),
    ("replaced", lambda result: not result.in_place),
    *(
        ("no weight" if at is None else f"weight {at}", lambda result, at=at: result.weight == at)
        for at in WEIGHTS
    ),
    *((name, lambda result, name=name: result.metric == name) for name in METRICS),
    *((name, lambda result, name=name: result.blend == name) for name in ("Trajectory", "Additive")),
    ("memory follows", lambda result: result.follows),
    ("steady memory", lambda result: not result.follows),
    *((f"load: {name}", lambda result, name=name: result.shape == name) for name in SHAPES),
)


PARTS: Final[Sequence[Group]] = (
    *GROUPS[:3],
    ("in place, CPU or memory is measured", lambda result: result.in_place and not _has_no_size(result)),
    ("replaced, CPU or memory is measured", lambda result: not result.in_place and not _has_no_size(result)),
    ("a queue or a Value is", lambda result: _has_no_size(result)),
    *((name, lambda result, name=name: result.blend == name) for name in ("Trajectory", "Additive")),
    *(
        (
            f"Trajectory, {name}",
            lambda result, name=name: result.blend == "Trajectory" and result.metric == name,
        )
        for name in METRICS
    ),
    ("Trajectory, no weight", lambda result: result.blend == "Trajectory" and result.weight is None),
)


def _has_no_size(result: Result) -> bool:
    """Whether the HPA measures no resource that could size pods: they follow the VPA, as the rival's pods do."""
    return result.metric in ("queue", "Value")


def report(seed: int, results: Sequence[Result]) -> str:
    """Return the report as text."""
    run = [result for result in results if result.rival in result.outcomes and not result.errors]
    both = [result for result in run if result.rival == BOTH]
    parts = [
        f"Seed {seed}, {len(run)} workloads",
        "Beside the rival (HPA+VPA; weight 0: HPA; weight 100: VPA)\n\n" + _beside(run, GROUPS),
        "Beside HPA+VPA, without the weights 0 and 100\n\n" + _beside(both, PARTS, BOTH) + _by_chance(both),
        "Beside HPA alone, without the weights 0 and 100\n\n" + _beside(both, PARTS, HPA),
        _at_rest(run),
        _violations(run),
        _worse(run),
    ]
    failed = [
        f"#{result.number} {result.text}: {name}: {why}"
        for result in results
        for name, why in result.errors.items()
    ]
    if failed:
        parts.append("Not run\n\n" + "\n".join(failed))
    return "\n\n".join(parts)


def _beside(results: Sequence[Result], groups: Iterable[Group], rival: str = "") -> str:
    rows: Rows = [HEAD]
    for name, holds in groups:
        chosen = [result for result in results if holds(result)]
        if chosen:
            judged = [structs.replace(result, rival=rival or result.rival) for result in chosen]
            rows.append((name, *_row(judged)))
    return table(rows)


def _by_chance(results: Sequence[Result]) -> str:
    """Count the workloads in which an HPA and a VPA are worse than themselves because the noise is another."""
    again = [
        structs.replace(result, outcomes={**result.outcomes, HVPA: result.outcomes[AGAIN]})
        for result in results
    ]
    worse = sum(verdict(result) is not None for result in again)
    return (
        f"\n\nBy chance: HPA+VPA is worse than itself with other noise in {worse} of {len(again)} workloads"
    )


def _row(chosen: Sequence[Result]) -> tuple[str, ...]:
    """Return the row of a group: cost is the geometric mean of ratios, other columns are sums and means."""
    ratios = sorted(result.own.cost / result.outcomes[result.rival].cost for result in chosen)
    quarters = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    worse = [judgement for result in chosen if (judgement := verdict(result)) is not None]
    sides = [[result.own for result in chosen], [result.outcomes[result.rival] for result in chosen]]
    return (
        str(len(chosen)),
        f"{geometric(ratios):.2f}",
        f"{quarters[0]:.2f} to {quarters[2]:.2f}",
        str(len(worse)),
        *(str(sum(kind in entry.kinds for entry in worse)) for kind in ("cost", "unmet", "OOMs")),
        *(f"{statistics.fmean(outcome.unmet for outcome in side):.2%}" for side in sides),
        *(f"{statistics.fmean(outcome.below for outcome in side):.0f}s" for side in sides),
        *(str(sum(outcome.ooms for outcome in side)) for side in sides),
        *(f"{geometric(outcome.p99 for outcome in side):.2f}s" for side in sides),
    )


def geometric(numbers: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(map(math.log, numbers)))


def _violations(results: Sequence[Result]) -> str:
    """Count the decisions that break an invariant."""
    broken = [result for result in results if result.own.violations]
    text = f"Decisions that break an invariant: {sum(result.own.violations for result in broken)}"
    return ", ".join([text, *(f"#{result.number}" for result in broken)])


def _at_rest(results: Sequence[Result]) -> str:
    """Describe how often requests and replicas change in place under a constant load."""
    chosen = [result for result in results if result.in_place and result.shape == AT_REST]
    rows: Rows = [
        ("writes per 6 h at rest, in place", "median", "mean", "most", "of", "rival's median", "mean")
    ]
    for name, label in (("writes", "requests"), ("replica_changes", "replicas")) if chosen else ():
        hvpa_rates = {result.number: getattr(result.own, name) / PERIODS for result in chosen}
        rival_rates = [getattr(result.outcomes[result.rival], name) / PERIODS for result in chosen]
        most = max(hvpa_rates, key=lambda number: hvpa_rates[number])
        sides = [
            f"{of(side):.1f}"
            for side in (hvpa_rates.values(), rival_rates)
            for of in (statistics.median, statistics.fmean)
        ]
        row = (
            f"{label} ({len(chosen)} workloads)",
            *sides[:2],
            f"{hvpa_rates[most]:.1f}",
            f"#{most}",
            *sides[2:],
        )
        rows.append(row)
    return table(rows)


def _worse(results: Sequence[Result]) -> str:
    lines = [
        f"#{result.number} {'+'.join(judgement.kinds)}: {result.text}\n     {judgement.reason}"
        for result in results
        if (judgement := verdict(result)) is not None
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
    known = {result.number: result for result in before if not result.errors}
    rows: Rows = [("changed", "cost", "unmet", "OOMs", "P99", "writes", "verdict", "")]
    pairs = [
        (known[result.number], result) for result in after if result.number in known and not result.errors
    ]
    for old, new in pairs:
        was, now = old.own, new.own
        verdicts = [judgement.kinds if (judgement := verdict(result)) else () for result in (old, new)]
        if (
            abs(now.cost / was.cost - 1) >= 0.01
            or abs(now.unmet - was.unmet) >= SAME
            or now.ooms != was.ooms
            or verdicts[0] != verdicts[1]
        ):
            names = ["+".join(kinds) or "fine" for kinds in verdicts]
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
        costs = [
            geometric(result.own.cost / result.outcomes[result.rival].cost for result in side)
            for side in sides
        ]
        worse = [sum(verdict(result) is not None for result in side) for side in sides]
        all_in_all = (
            f"\n\n{len(pairs)} workloads: cost {costs[0]:.3f} > {costs[1]:.3f}, worse {worse[0]} > {worse[1]}"
        )
    return table(rows) + all_in_all
