"""Prints a page with its measured results replaced by the kept results (`benchmarks/kept`), or their plot:
`python -m tools.evidence README.md`. Measured results are between `<!-- measured: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import fast, first_screen
from benchmarks.joint import words
from benchmarks.joint.jumps import table
from benchmarks.joint.kept import Kept, read, read_jumps
from benchmarks.joint.plot import draw
from benchmarks.joint.report import RESIZES, beside, by_load, kinds, markdown, of_kind, others, parts, summary
from benchmarks.node.jumps import BOTH, FAST, GOAL, HVPA

ROOT: Final = Path(__file__).resolve().parent.parent
_COLUMNS: Final = {
    "cpu": "CPU-bound",
    "cpu-base": "CPU-bound, with base usage",
    "memory": "memory-bound",
    "memory-base": "memory-bound, with base usage",
}
"""The columns of the README's table, by the workload of the benchmark."""
_BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str, kept: Kept) -> str:
    """Return the page with its measured parts replaced. Raises KeyError for a name that PARTS lacks."""
    return _BLOCK.sub(lambda match: f"{match[1]}{PARTS[match[2]](kept)}{match[3]}", text)


def _first_screen(kept: Kept) -> str:
    """The README's picture, and its figures as text."""
    ranges = []
    for resize in RESIZES:
        costs = [beside(of_kind(kept, resize, workload)).cost for workload in _COLUMNS]
        ranges.append(f"{round(100 * (1 - max(costs)))} to {round(100 * (1 - min(costs)))} % less")
    arena = arena_costs((ROOT / "docs" / "arena.md").read_text())
    slow = first_screen.slow()
    seconds = [
        [f"{slow[factor, policy].seconds:.0f}" for policy in (HVPA, FAST, BOTH)]
        for factor in first_screen.FACTORS
    ]
    (five, fast_five, both_five), (ten, fast_ten, both_ten) = seconds
    texts = (
        f"**Cost**: {ranges[0]} than an HPA and a VPA that leave the same demand unmet, if pods are resized in place,"
        f" and {ranges[1]} if pods are replaced (simulated loads). [The arena](docs/arena.md) is more reliable, because"
        f" its workloads are random: {_difference(arena['in place'].cost)} and {_difference(arena['replaced'].cost)},"
        f" and {arena['all'].worse} of {arena['all'].workloads} workloads got worse.",
        f"**Users**: after a jump to 5 times the load, requests are slow (P99 above {GOAL:.0f} ms) for {five} seconds,"
        f" or for {fast_five} with [the fast signal](docs/fast-signal.md); with an HPA and a VPA for {both_five}. After"
        f" a jump to 10 times the load: {ten}, {fast_ten} and {both_ten} seconds (medians of five runs, on a real"
        " node).",
    )
    picture = (
        "![Cost relative to HPA and VPA by kind of workload, and slow seconds after a load jump; the figures are in the"
        " text below](docs/first-screen.svg)\n\n"
    )
    return picture + "".join(map(words.item, texts))


class Arena(NamedTuple):
    """A row of the arena: workloads, their cost relative to an HPA and a VPA, and the number that got worse."""

    workloads: int
    cost: float
    worse: int


def arena_costs(text: str) -> dict[str, Arena]:
    """Return the rows of the arena's page beside HPA and VPA, without the weights 0 and 100, by their names."""
    table = text.partition("Beside HPA+VPA, without the weights 0 and 100\n\n")[2].partition("\n\n")[0]
    rows = [re.split(r" {2,}", line) for line in table.splitlines()[1:]]
    return {name: Arena(int(count), float(cost), int(worse)) for name, count, cost, _, worse, *_ in rows}


def _headline(kept: Kept) -> str:
    """The README's table: the cost of joint scaling relative to HPA and VPA, a row for each way to change pods."""
    loads = len({place.load for place in kept.places})
    rows = [
        ("cost relative to HPA + VPA", *_COLUMNS.values()),
        *(
            (f"pods {name}", *(_result(kept, resize, load) for load in _COLUMNS))
            for resize, name in RESIZES.items()
        ),
    ]
    note = (
        f"Each figure covers {loads * kept.seeds} simulated loads: {loads} kinds of load, each with {kept.seeds} random"
        f" seeds (commit {kept.commit}, {kept.date}). *Base usage* is what a pod uses without any load. For a fair"
        " comparison, the HPA and the VPA get headroom (requests above usage): just enough that they leave as little"
        " demand unserved as HVPA does. For the first figure, all seeds of a kind use the same headroom. For the figure"
        " in brackets, each seed uses its own, and the figure is the average of the savings."
        " [All results](docs/joint-scaling.md#what-it-costs-measured)."
    )
    return f"{markdown(rows)}\n{words.wrapped(note)}"


def _result(kept: Kept, resize: str, workload: str) -> str:
    """All seeds together, and the mean of single seeds. Example: `16 % less (12 % less)`."""
    if (resize, workload) not in kinds(kept):
        return ""
    result = beside(of_kind(kept, resize, workload))
    return f"{_difference(result.cost)} ({_difference(result.by_seed)})"


def _difference(ratio: float) -> str:
    """0.82: `18 % less`."""
    return f"{abs(round(100 * (ratio - 1)))} % {'less' if ratio < 1 else 'more'}"


PARTS: Final[Mapping[str, Callable[[Kept], str]]] = {
    "first_screen": _first_screen,
    "headline": _headline,
    "provenance": words.provenance,
    "summary": summary,
    "single_points": words.single_points,
    "in_place": lambda kept: by_load(kept, "InPlace"),
    "replaced": lambda kept: by_load(kept, "Recreate"),
    "others": others,
    "losses": words.losses,
    "goals": words.goals,
    "parts": parts,
    "restarts": words.restarts,
    "headrooms": lambda _: words.headrooms(read("line")),
    "slow": lambda kept: words.slow(read("slow"), kept),
    "jumps": lambda _: table(read_jumps().felt),
    "jumps_in_place": lambda _: words.jumps(read_jumps()),
    "fast_jumps": lambda _: fast.jumps_table(fast.read().jumps),
    "fast_costs": lambda _: fast.costs_table(fast.read().costs),
}


PAGES: Final = ("README.md", "docs/joint-scaling.md", "docs/fast-signal.md")
PLOTS: Final[Mapping[str, Callable[[Kept], str]]] = {
    "docs/joint-scaling-cost.svg": draw,
    "docs/first-screen.svg": first_screen.draw,
}


def main(name: str) -> None:
    """Print the file of this name."""
    kept = read()
    sys.stdout.write(PLOTS[name](kept) if name in PLOTS else page((ROOT / name).read_text(), kept))


if __name__ == "__main__":
    main(sys.argv[1])
