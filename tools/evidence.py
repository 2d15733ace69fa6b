"""Prints a page with its tables of measured results written anew from the kept ones (`benchmarks/kept`): what
stands between `<!-- measured: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.joint.kept import Kept, Row, read

WIDTH: Final = 118
ROOT: Final = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_WORKLOADS: Final = {
    "cpu": "bound by CPU",
    "cpu-base": "bound by CPU, with base usage",
    "memory": "bound by memory",
    "memory-base": "bound by memory, with base usage",
}
_RESIZES: Final = {"Recreate": "replaced", "InPlace": "resized in place"}


def page(text: str, kept: Kept) -> str:
    """The page with its measured parts written anew. Raises KeyError for a part that has no name here."""
    return _BLOCK.sub(lambda found: f"{found[1]}{PARTS[found[2]](kept)}{found[3]}", text)


def _headline(kept: Kept) -> str:
    """The README's sentences: pods resized in place, then pods replaced; the best first."""
    sentence = (
        f"Measured beside an HPA and a VPA on the same workload, in {kept.scenarios} simulated weeks, by what pods are"
        f" ({kept.commit}, {kept.date}). Pods resized in place (`spec.updateStrategy`), by both: "
        f"{_results(kept, 'InPlace')}. Pods replaced, by both: {_results(kept, 'Recreate')}."
        " [All results, and what they say](docs/joint-scaling.md#what-it-costs-measured)."
    )
    return f"{textwrap.fill(sentence, WIDTH, break_on_hyphens=False, break_long_words=False)}\n"


def _results(kept: Kept, resize: str) -> str:
    rows = sorted((row for row in kept.rows if row.resize == resize), key=lambda row: row.cost)
    return "; ".join(
        f"{_WORKLOADS[row.workload]}: {_difference(row.cost)} cost, {_difference(row.unmet)} unmet demand"
        for row in rows
    )


def _difference(ratio: float) -> str:
    """0.82: `18 % less`."""
    return f"{abs(round(100 * (ratio - 1)))} % {'less' if ratio < 1 else 'more'}"


def _table(kept: Kept) -> str:
    """The table of docs/joint-scaling.md."""
    head = "| weight 50, pods | cost | unmet demand | OOMs | restarts |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(map(_line, kept.rows))


def _line(row: Row) -> str:
    cells: Iterable[str] = (
        f"{_WORKLOADS[row.workload]}, {_RESIZES[row.resize]}",
        f"{row.cost:.2f}",
        f"{row.unmet:.2f}",
        f"{row.ooms} ({row.baseline_ooms})",
        f"{row.restarts} ({row.baseline_restarts})",
    )
    return f"| {' | '.join(cells)} |\n"


PARTS: Final[Mapping[str, Callable[[Kept], str]]] = {"headline": _headline, "table": _table}

if __name__ == "__main__":
    sys.stdout.write(page((ROOT / sys.argv[1]).read_text(), read()))
