"""Prints a page with its measured results replaced by the kept results (`benchmarks/kept`), or their plot:
`python -m tools.evidence README.md`. Measured results are between `<!-- measured: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks import fast
from benchmarks.joint import words
from benchmarks.joint.jumps import table
from benchmarks.joint.kept import Kept, read, read_jumps
from benchmarks.joint.plot import draw
from benchmarks.joint.report import RESIZES, beside, by_load, kinds, markdown, of_kind, others, parts, summary

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
PLOT: Final = "docs/joint-scaling-cost.svg"


def main(name: str) -> None:
    """Print the file of this name."""
    kept = read()
    sys.stdout.write(draw(kept) if name == PLOT else page((ROOT / name).read_text(), kept))


if __name__ == "__main__":
    main(sys.argv[1])
