"""The figures of the scale benchmark as a table, and the goals that are met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]
LARGE = 1000
"""Number of Hvpas from which on a step is long enough to be compared with the floor."""
EVEN = 0.25
"""Largest relative deviation of CPU per Hvpa and step from the median over all numbers of Hvpas."""
ALLOWED_AT_REST = ("watch ", "update leases")
"""Prefixes of the kinds of requests that an idle operator may send: watches that the server ended start again."""


def _nowhere(hvpas: int) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    label: str
    value: Callable[[Figures], float | None]
    """Value from the figures of a run; None if it was not measured."""
    form: str = "{:,.1f}"
    goal: str = ""
    """The goal as text; empty without a goal."""
    limit: Callable[[int], float | None] = _nowhere
    """Highest value by number of Hvpas; None: no goal for that number."""
    hindrance: str = ""
    """Attempts so far, and the obstacle if the goal is missed (more in docs/performance.md)."""


def _at(*path: str) -> Callable[[Figures], float | None]:
    """Return a function that reads the figure under these names."""

    def find(figures: Figures) -> float | None:
        figure: Any = figures
        for name in path:
            figure = figure.get(name)
            if figure is None:
                return None
        return float(figure)

    return find


def _of_steps(*path: str) -> Callable[[Figures], float | None]:
    """Return a function that computes the median over all steps."""
    figure_of = _at(*path)

    def find(figures: Figures) -> float | None:
        values = [value for step in figures.get("step", ()) if (value := figure_of(step)) is not None]
        return statistics.median(values) if values else None

    return find


def _requests(phase: str, allowed: tuple[str, ...] = ()) -> Callable[[Figures], float | None]:
    """Return a function that counts the operator's requests in a phase, except those of these kinds."""

    def count(figures: Figures) -> float | None:
        if phase not in figures:
            return None
        requested: dict[str, int] = figures[phase]["requests"]
        return sum(count for kind, count in requested.items() if not kind.startswith(allowed))

    return count


def _percent(*path: str) -> Callable[[Figures], float | None]:
    find = _at(*path)
    return lambda figures: None if (value := find(figures)) is None else 100 * value


def _always(limit: float) -> Callable[[int], float | None]:
    return lambda hvpas: limit


def _resident(hvpas: int) -> float | None:
    return 200 if hvpas <= 2000 else 500 if hvpas <= 10_000 else None


def _highest_rss(figures: Figures) -> float | None:
    return max((memory["rss_mb"] for memory in figures.get("memory", {}).values()), default=None)


def _writes_per_hvpa(figures: Figures) -> float | None:
    steps = figures.get("step")
    if not steps:
        return None
    kinds: dict[str, int] = steps[-1]["requests"]
    writes = sum(count for kind, count in kinds.items() if not kind.startswith(ALLOWED_AT_REST))
    return writes / float(figures["hvpas"])


_CPU = """\
Python itself. The bare client of the floor sends the same three requests and does nothing else; what it takes,
in the row below, says what of the 2 ms is left for watching four objects, deciding and making patches. Tried:
an HTTP client of our own, uvloop, decoding only what is read, remembering what was decided, one Event a step.
No function has more than a twentieth of what is left. --shards divides it among processes."""
_TRICKLE = """\
The API server, where the row below comes near: at 10,000, a hundred changes a second with the driver's two
writes and the operator's three for each take more than two cores."""
_MEMORY = """\
What Python makes of an object: 23 KB for an Hvpa with all that belongs to it, and 61 MB before the first.
Tried: equal parts held once, bytes dropped once parsed, only what is read; returning free memory to the system
gave 2 percent."""

ROWS = (
    Row("creation: all HPAs and VPAs exist after, s", _at("creation", "all_exist_seconds")),
    Row("creation: CPU per Hvpa, ms", _at("creation", "cpu_ms_per_hvpa"), "{:,.2f}"),
    Row("step: last status to patched workload, median, ms", _of_steps("latency", "median_ms")),
    Row("step: the same, p90, ms", _of_steps("latency", "p90_ms")),
    Row("step: the same, p99, ms", _of_steps("latency", "p99_ms")),
    Row("step: the same, longest, ms", _of_steps("latency", "max_ms")),
    Row("step: first status to last patched workload, s", _of_steps("seconds"), "{:,.2f}"),
    Row("step: the floor of that, s", _at("floor", "seconds"), "{:,.2f}"),
    Row(
        "step: times the floor",
        _at("floor", "ratio"),
        "{:,.2f}",
        "at most 1.5 at 2,000",
        lambda hvpas: 1.5 if hvpas >= LARGE else None,
    ),
    Row("step: CPU per Hvpa, ms", _of_steps("cpu_ms_per_hvpa"), "{:,.2f}", "at most 2", _always(2.0), _CPU),
    Row("step: CPU of the bare client per Hvpa, ms", _at("floor", "cpu_ms_per_hvpa"), "{:,.2f}"),
    Row("step: requests per Hvpa", _writes_per_hvpa, "{:,.2f}"),
    Row("trickle: last status to patched workload, median, ms", _at("trickle", "latency", "median_ms")),
    Row(
        "trickle: the same, p99, ms",
        _at("trickle", "latency", "p99_ms"),
        "{:,.1f}",
        "below 250",
        _always(250),
        _TRICKLE,
    ),
    Row(
        "trickle: of that in the API server, for the patch, p99, ms",
        _at("trickle", "in_the_api_server", "patch deployments", "p99_ms"),
    ),
    Row("trickle: CPU, percent of a core", _percent("trickle", "cpu_share")),
    Row(
        "idle: CPU, percent of a core",
        _percent("idle", "cpu_share"),
        "{:,.2f}",
        "below 2 at 10,000",
        _always(2),
    ),
    Row(
        "idle: requests but watches and lease",
        _requests("idle", ALLOWED_AT_REST),
        "{:,.0f}",
        "none",
        _always(0),
    ),
    Row("start-up: caches are filled after, s", _at("startup", "caches_filled_seconds")),
    Row(
        "start-up: first patch after, s",
        _at("startup", "first_patch_seconds"),
        "{:,.1f}",
        "below 15 at 10,000",
        _always(15),
    ),
    Row("start-up: all Hvpas decided on after, s", _at("startup", "through_seconds")),
    Row("memory: resident after creation, MB", _at("memory", "after_creation", "rss_mb")),
    Row("memory: resident after the steps, MB", _at("memory", "after_steps", "rss_mb")),
    Row("memory: resident when the caches are filled, MB", _at("memory", "at_start", "rss_mb")),
    Row(
        "memory: resident, the most of all phases, MB",
        _highest_rss,
        "{:,.1f}",
        "200 at 2,000, 500 at 10,000",
        _resident,
        _MEMORY,
    ),
    Row("memory: peak when the caches are filled, MB", _at("memory", "at_start", "peak_mb")),
)
PER_STEP = "step: CPU per Hvpa, ms"


def verdict(row: Row, results: Sequence[Figures]) -> list[int] | None:
    """Return the numbers of Hvpas at which a goal is missed; None if there is no goal, or nothing was measured."""
    if not row.goal:
        return None
    judged = [
        (figures["hvpas"], value, limit)
        for figures in results
        if (value := row.value(figures)) is not None and (limit := row.limit(figures["hvpas"])) is not None
    ]
    return [hvpas for hvpas, value, limit in judged if value > limit] if judged else None


def uneven(results: Sequence[Figures]) -> list[int] | None:
    """Return the numbers of Hvpas at which CPU per Hvpa and step differs from the others; None if there is nothing to
    compare."""
    cost = next(row.value for row in ROWS if row.label == PER_STEP)
    costs = {figures["hvpas"]: value for figures in results if (value := cost(figures)) is not None}
    if len(costs) < 2:
        return None
    middle = statistics.median(costs.values())
    return [hvpas for hvpas, value in costs.items() if abs(value - middle) > EVEN * middle]


def verdicts(results: Sequence[Figures]) -> dict[str, list[int]]:
    """Return the checked goals with the numbers of Hvpas at which they are missed."""
    missed_by_label = {row.label: missed for row in ROWS if (missed := verdict(row, results)) is not None}
    if (missed := uneven(results)) is not None:
        missed_by_label[f"{PER_STEP}: within {EVEN:.0%} of each other"] = missed
    return missed_by_label


def table(results: Sequence[Figures]) -> str:
    """Return all figures as a readable table."""
    lines = [["", *(f"{figures['hvpas']:,} Hvpas" for figures in results), "goal", ""]]
    for row in ROWS:
        values = [row.value(figures) for figures in results]
        if all(value is None for value in values):
            continue
        cells = ["-" if value is None else row.form.format(value) for value in values]
        lines.append([row.label, *cells, row.goal, _verdict_text(verdict(row, results))])
    if (missed := uneven(results)) is not None:
        lines.append(
            [f"{PER_STEP}, compared", *("" for _ in results), "within 25 percent", _verdict_text(missed)]
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    last = len(widths) - 2
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 or at >= last else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def hindrances(results: Sequence[Figures]) -> str:
    """Return the obstacle of each missed goal."""
    lines = []
    for row in ROWS:
        if verdict(row, results) and row.hindrance:
            lines += [f"{row.label}: what limits it", *(f"  {line}" for line in row.hindrance.splitlines())]
    return "\n".join(lines)


def requests_table(results: Sequence[Figures]) -> str:
    """Return the operator's requests by phase and kind."""
    lines = ["requests of the operator, by phase:"]
    for figures in results:
        lines.append(f"  {figures['hvpas']:,} Hvpas")
        for phase in ("creation", "step", "trickle", "idle", "startup"):
            of = figures.get(phase)
            if of:
                requested = (of[-1] if isinstance(of, list) else of)["requests"]
                reported = ", ".join(f"{count:,} {kind}" for kind, count in requested.items()) or "none"
                lines.append(f"    {phase}: {reported}")
    return "\n".join(lines)


def _verdict_text(missed: list[int] | None) -> str:
    if missed is None:
        return ""
    return f"MISSED at {', '.join(f'{hvpas:,}' for hvpas in missed)}" if missed else "met"
