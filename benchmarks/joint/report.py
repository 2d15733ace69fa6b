"""What `python -m benchmarks joint` prints: a table for each load and workload, and what comes of all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from benchmarks.joint.policies import BASELINE, DEFAULT_TARGET
from benchmarks.joint.run import Outcome, Run
from hvpa.simulate.model import Totals

GIB_PER_CORE: Final = 8.0
"""So many GiB cost what a core costs: about the price ratio of the clouds' machines."""
GOAL: Final = 0.8
"""What the cost may be at most, as a share of the baseline's."""
NEGLIGIBLE: Final = 60.0
"""Core-seconds of unmet demand that are added to both sides of a ratio, so that a minute decides nothing."""
Rows = list[tuple[str, ...]]


class Done(NamedTuple):
    """A run that has an outcome."""

    run: Run
    outcome: Outcome

    @property
    def cost(self) -> float:
        """Core-hours and GiB-hours in one number: requested, and used beyond that."""
        outcome, totals = self.outcome, self.outcome.totals
        cpu = totals.core_hours_requested + outcome.cpu_beyond
        return cpu + (totals.gib_hours_requested + outcome.memory_beyond) / GIB_PER_CORE


class Against(NamedTuple):
    """A run beside the baseline of the same load, workload, kind of resizes and headroom."""

    done: Done
    base: Done

    @property
    def totals(self) -> tuple[Totals, Totals]:
        """The run's, and the baseline's."""
        return self.done.outcome.totals, self.base.outcome.totals

    @property
    def cost(self) -> float:
        """The ratio of the costs."""
        return self.done.cost / self.base.cost

    @property
    def unmet(self) -> float:
        """The ratio of unmet demand."""
        own, base = self.totals
        return (own.unmet_core_seconds + NEGLIGIBLE) / (base.unmet_core_seconds + NEGLIGIBLE)

    @property
    def goals(self) -> tuple[bool, bool, bool, bool]:
        """Whether it is cheaper by as much as is wanted, and has no more unmet demand, OOMs and restarts."""
        own, base = self.totals
        return (
            self.cost <= GOAL,
            own.unmet_core_seconds <= base.unmet_core_seconds,
            own.ooms <= base.ooms,
            own.restarts <= base.restarts,
        )


def done(runs: Iterable[Run]) -> list[Done]:
    """Those that have an outcome."""
    return [Done(run, run.outcome) for run in runs if run.outcome is not None]


def place(run: Run) -> tuple[str, str, str, int, float]:
    """What two runs must share to be compared."""
    return run.load, run.workload, run.resize, run.target, run.margin


def compared(all_done: Sequence[Done]) -> list[Against]:
    """Each run beside its baseline, where there is one."""
    baselines = {place(one.run): one for one in all_done if one.run.policy == BASELINE}
    return [Against(one, baselines[place(one.run)]) for one in all_done if place(one.run) in baselines]


# --- one table for each load and workload ------------------------------------------------------------------------
_HEAD: Final = (
    *("policy", "resize", "target", "cost", "core-h", "GiB-h", "core-h beyond", "GiB-h beyond"),
    *("unmet core-s", "time %", "OOMs", "restarts"),
    *("replicas chg", "requests chg", "pods", "largest", "cpu each", "GiB each", "cost x", "unmet x", "goal"),
)


def tables(runs: Sequence[Run]) -> Iterator[str]:
    """A table for each load and workload, one row per policy."""
    ratios = {id(one.done.run): one for one in compared(done(runs))}
    for (load, workload), group in groupby(runs, lambda one: (one.load, one.workload)):
        rows: Rows = [_HEAD]
        for one in done(group):
            rows.append(_row(one, ratios.get(id(one.run))))
        yield f"{load}, {workload}\n{_table(rows, 2)}"


def _row(one: Done, against: Against | None) -> tuple[str, ...]:
    run, outcome, totals = one.run, one.outcome, one.outcome.totals
    ratios = ("", "", "")
    if against is not None and run.policy != BASELINE:
        ratios = (f"{against.cost:.2f}", f"{against.unmet:.2f}", "yes" if all(against.goals) else "no")
    return (
        *(run.policy, run.resize, f"{run.target}m", f"{one.cost:.0f}", f"{totals.core_hours_requested:.0f}"),
        *(f"{totals.gib_hours_requested:.0f}", f"{outcome.cpu_beyond:.1f}", f"{outcome.memory_beyond:.1f}"),
        *(
            f"{totals.unmet_core_seconds:.0f}",
            f"{totals.unmet_share:.2%}"[:-1],
            str(totals.ooms),
            str(totals.restarts),
        ),
        *(str(totals.replica_changes), str(totals.request_changes), f"{outcome.replicas_mean:.1f}"),
        *(str(outcome.replicas_max), f"{outcome.cpu_mean:.2f}", f"{outcome.memory_mean:.2f}", *ratios),
    )


# --- all of them ----------------------------------------------------------------------------------------------------
_SUMMARY: Final = (
    *("policy", "resize", "workload", "target", "cost x", "unmet x", "OOMs", "restarts", "base OOMs"),
    *("base restarts", "cheaper", "unmet <=", "OOMs <=", "restarts <=", "all four"),
)


def summary(runs: Sequence[Run]) -> str:
    """Each policy beside the baseline over all loads: for each workload, and for all of them together."""
    found = [one for one in compared(done(runs)) if one.done.run.policy != BASELINE]
    order = list(dict.fromkeys((*_name(one), one.done.run.target) for one in found))
    workloads = list(dict.fromkeys(one.done.run.workload for one in found))
    rows: Rows = [_SUMMARY]
    for policy, resize, target in order:
        own = [one for one in found if (*_name(one), one.done.run.target) == (policy, resize, target)]
        for workload in ("all", *workloads):
            part = [one for one in own if workload in ("all", one.done.run.workload)]
            if part:
                rows.append((policy, resize, workload, f"{target}m", *_together(part)))
    return (
        f"Beside {BASELINE} of the same kind of resizes and the same headroom: geometric means of ratios, sums of OOMs"
        f" and restarts,\nand how many scenarios reach each goal (cheaper: by {1 - GOAL:.0%} or more)\n"
    ) + _table(rows, 3)


def _name(one: Against) -> tuple[str, str]:
    return one.done.run.policy, one.done.run.resize


def _together(part: Sequence[Against]) -> tuple[str, ...]:
    own, base = zip(*(one.totals for one in part), strict=True)
    reached = [sum(column) for column in zip(*(one.goals for one in part), strict=True)]
    return (
        *(f"{mean([one.cost for one in part]):.3f}", f"{mean([one.unmet for one in part]):.2f}"),
        *(str(amount) for side in (own, base) for amount in sums(side)),
        *(f"{count}/{len(part)}" for count in (*reached, sum(all(one.goals) for one in part))),
    )


def sums(totals: Sequence[Totals]) -> tuple[int, int]:
    """OOMs and restarts together."""
    return sum(one.ooms for one in totals), sum(one.restarts for one in totals)


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


# --- a sweep: cost at the same unmet demand ---------------------------------------------------------------------------
def same_unmet(runs: Sequence[Run]) -> str:
    """Each policy's cost at the default target, beside what the baseline costs where it leaves the same demand unmet:
    between the points of its sweep in a straight line over the logarithm, beyond them not at all."""
    curves: dict[tuple[str, str, str], list[Done]] = {}
    for one in done(runs):
        if one.run.policy == BASELINE:
            curves.setdefault(_curve(one.run), []).append(one)
    ratios: dict[tuple[str, str], list[float]] = {}
    outside: Counter[tuple[str, str]] = Counter()
    for one in done(runs):
        if one.run.policy == BASELINE or one.run.target != DEFAULT_TARGET:
            continue
        cost = _cost_at(curves.get(_curve(one.run), []), _unmet(one))
        name = one.run.policy, one.run.resize
        ratios.setdefault(name, [])
        if cost is None:
            outside[name] += 1
        else:
            ratios[name].append(one.cost / cost)
    rows: Rows = [("policy", "resize", "cost x", "scenarios", "cheaper by 20 %", "beyond the sweep")]
    for name, found in ratios.items():
        average = f"{mean(found):.3f}" if found else ""
        counts = (str(len(found)), str(sum(one <= GOAL for one in found)), str(outside[name]))
        rows.append((*name, average, *counts))
    return f"Cost beside {BASELINE} at the same unmet demand, by its sweep\n{_table(rows, 2)}"


def _curve(run: Run) -> tuple[str, str, str]:
    return run.load, run.workload, run.resize


def _unmet(one: Done) -> float:
    return math.log(one.outcome.totals.unmet_core_seconds + NEGLIGIBLE)


def _cost_at(curve: Sequence[Done], unmet: float) -> float | None:
    """The cost at this logarithm of unmet demand, through the points than which none is cheaper and serves more."""
    front: list[tuple[float, float]] = []
    for point in sorted((_unmet(one), one.cost) for one in curve):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    for (left, low), (right, high) in pairwise([*front, *front[-1:]]):
        if left <= unmet <= right:
            return low if left == right else low + (high - low) * (unmet - left) / (right - left)
    return None


# --- text -----------------------------------------------------------------------------------------------------------
def failures(runs: Sequence[Run]) -> str:
    """What could not be run, each reason once."""
    found = Counter((one.policy, one.resize, one.error) for one in runs if one.error)
    return "\n".join(
        f"not run: {policy}/{resize} ({count} times): {error}"
        for (policy, resize, error), count in found.items()
    )


def _table(rows: Rows, names: int) -> str:
    """Columns under each other; the first ones are names, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at < names else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
