"""A simulation's result as text: one row per policy, then how it answered the load's rises."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from hvpa.api.timestamp import format_timestamp
from hvpa.simulate.figures import FIGURES, PHASES, columns, names, reactions
from hvpa.simulate.model import SimulationResult
from hvpa.simulate.text import plain, seconds, short, width

GAP: Final = "  "
LONGEST_NAME: Final = 40
"""Columns that a policy's name may take."""


def to_text(results: Sequence[SimulationResult]) -> str:
    """All scenarios, one table each, without a line break at the end."""
    return "\n\n".join("\n".join(_scenario(result)) for result in results)


def facts(result: SimulationResult) -> str:
    """What was simulated, in a line."""
    told = [
        f"{seconds(result.duration)} from {format_timestamp(result.start)} in steps of {seconds(result.step)}"
    ]
    if result.warm_up:
        told.append(f"the first {seconds(result.warm_up)} not counted")
    return "; ".join([*told, f"seed {result.seed}"])


def _scenario(result: SimulationResult) -> list[str]:
    head = plain(result.name) + (f": {plain(result.description)}" if result.description else "")
    lines = [head, facts(result), "", *_comparison(result)]
    if any(policy.reactions for policy in result.policies):
        lines += ["", *_reactions(result)]
    dropped = [
        f"{name}: {policy.dropped_events} events are not kept"
        for name, policy in zip(names(result), result.policies, strict=True)
        if policy.dropped_events
    ]
    notes = [*(plain(note) for note in result.notes), *dropped]
    return lines + [""] * bool(notes) + [f"Note: {note}" for note in notes]


def _first_columns(result: SimulationResult) -> list[list[str]]:
    return [
        ["policy", *(short(name, LONGEST_NAME) for name in names(result))],
        ["kind", *(policy.kind for policy in result.policies)],
    ]


def _comparison(result: SimulationResult) -> list[str]:
    grid = _first_columns(result)
    grid += [[figure.name, *cells] for figure, cells in zip(FIGURES, columns(result), strict=True)]
    groups = ["", "", *(figure.group for figure in FIGURES)]
    return _aligned(grid, groups)


def _reactions(result: SimulationResult) -> list[str]:
    cells = [["rises", "answered", *(name for name, _, _ in PHASES)]]
    cells += [reactions(policy) for policy in result.policies]
    grid = [*_first_columns(result), *(list(column) for column in zip(*cells, strict=True))]
    title = "reaction to a rise, median / longest"
    return _aligned(grid, ["", "", *[title] * len(cells[0])])


def _aligned(grid: list[list[str]], groups: list[str]) -> list[str]:
    """Columns side by side, texts (the first two) to the left and figures to the right, under the groups' names."""
    widths = [max(map(width, column)) for column in grid]
    top, at = "", 0
    for group, members in groupby(groups):
        count = len(list(members))
        room = sum(widths[at : at + count]) + len(GAP) * (count - 1)
        if (missing := width(group) - room) > 0:
            widths[at] += missing
            room += missing
        at += count
        top += _ruled(group, room) + GAP
    rows = [
        GAP.join(_padded(cell, widths[index], index < 2) for index, cell in enumerate(row))
        for row in zip(*grid, strict=True)
    ]
    return [line.rstrip() for line in (top, *rows)]


def _ruled(group: str, room: int) -> str:
    """A group's name in the middle of a line as long as its columns."""
    if not group:
        return " " * room
    rest = room - width(group) - 2
    return f"{'-' * (rest // 2)} {group} {'-' * (rest - rest // 2)}" if rest >= 2 else group.ljust(room)


def _padded(cell: str, room: int, left: bool) -> str:
    padding = " " * (room - width(cell))
    return cell + padding if left else padding + cell
