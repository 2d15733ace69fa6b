"""The table of `docs/real-node.md` that says what kubelets were seen to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.e2e.kubelets.facts import FACTS

PAGE: Final = Path(__file__).resolve().parents[3] / "docs/real-node.md"
BEGIN: Final = "<!-- written by make facts: begin -->\n"
END: Final = "<!-- written by make facts: end -->\n"


class Seen(NamedTuple):
    """The answers of both kinds of nodes, and of the simulator, to one question."""

    real: str
    simulated: str
    simulator: str


def table(rows: Mapping[str, Seen]) -> str:
    """The table in Markdown."""
    lines = ["| | real | simulated | `hvpa simulate` |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {' | '.join(rows[name])} |" for name in FACTS if name in rows]
    return "".join(f"{line}\n" for line in lines)


def written() -> dict[str, Seen]:
    """The rows on the page, by their names."""
    _, _, text = PAGE.read_text().partition(BEGIN)
    lines = text.partition(END)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: Seen(*answers) for name, *answers in cells}


def write(rows: Mapping[str, Seen]) -> None:
    """Put the rows into the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table(rows) + END + rest.partition(END)[2])
