"""Prints a page with its measured results written anew from the kept ones (`benchmarks/kept`), which is what stands
between `<!-- measured: NAME -->` and `<!-- end -->`, or their plot: `python -m tools.evidence README.md`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.joint import words
from benchmarks.joint.jumps import table
from benchmarks.joint.kept import Kept, read, read_jumps
from benchmarks.joint.plot import draw
from benchmarks.joint.report import NAMES, beside, by_load, kinds, of_kind, others, parts, summary

ROOT: Final = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def page(text: str, kept: Kept) -> str:
    """The page with its measured parts written anew. Raises KeyError for a part that has no name here."""
    return _BLOCK.sub(lambda found: f"{found[1]}{PARTS[found[2]](kept)}{found[3]}", text)


def _headline(kept: Kept) -> str:
    """The README's sentences: pods resized in place, then pods replaced; the best first."""
    loads = len({one.load for one in kept.places}) * kept.seeds
    where = f"under {loads} simulated loads drawn from seeds, at the same unmet demand, by what pods are"
    link = "[All results, and what they say](docs/joint-scaling.md#what-it-costs-measured)"
    when = f"{kept.commit}, {kept.date}; in brackets the mean of seeds one by one"
    sentence = (
        f"Measured beside an HPA and a VPA on the same workload, {where} ({when}). Pods resized in place"
        f" (`spec.updateStrategy`), by both: {_results(kept, 'InPlace')}. Pods replaced, by both:"
        f" {_results(kept, 'Recreate')}. {link}."
    )
    return words.wrapped(sentence)


def _results(kept: Kept, resize: str) -> str:
    found = {
        workload: beside(of_kind(kept, resize, workload)) for one, workload in kinds(kept) if one == resize
    }
    best_first = sorted(found.items(), key=lambda one: one[1].cost)
    return "; ".join(
        f"{NAMES[workload]}: {_difference(one.cost)} cost ({_difference(one.by_seed)})"
        for workload, one in best_first
    )


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
}


PAGES: Final = ("README.md", "docs/joint-scaling.md")
PLOT: Final = "docs/joint-scaling-cost.svg"


def main(name: str) -> None:
    """Print the file of this name."""
    kept = read()
    sys.stdout.write(draw(kept) if name == PLOT else page((ROOT / name).read_text(), kept))


if __name__ == "__main__":
    main(sys.argv[1])
