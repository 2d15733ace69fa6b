"""A simulation's result as text, 100 columns wide: what each policy costs and leaves unmet, what that is made of, how
the policies reacted to the load's rises, and what follows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from hvpa.api.values.timestamp import format_timestamp
from hvpa.simulate.model import SimulationResult
from hvpa.simulate.report.compare import Comparison
from hvpa.simulate.report.conclusion import conclusion
from hvpa.simulate.report.figures import (
    HELD,
    HELD_MEANING,
    PHASES,
    RESOURCES,
    VERDICT,
    Figure,
    columns,
    medians,
    names,
)
from hvpa.simulate.report.text import fitted, plain, seconds, width

GAP: Final = "  "
WIDTH: Final = 100
LONGEST_NAME: Final = 24
"""Columns that a policy's name may take."""


def to_text(comparisons: Sequence[Comparison]) -> str:
    """All scenarios, without a line break at the end."""
    return "\n\n".join("\n".join(_scenario(one)) for one in comparisons)


def facts(result: SimulationResult) -> str:
    """What was simulated, in a line."""
    parts = [
        f"{seconds(result.duration)} from {format_timestamp(result.start)} in steps of {seconds(result.step)}"
    ]
    if result.warm_up:
        parts.append(f"the first {seconds(result.warm_up)} not counted")
    return "; ".join([*parts, f"seed {result.seed}"])


def priced(comparison: Comparison) -> str:
    """What costs consist of, and the policy that they are compared with, in a line."""
    prices = comparison.prices
    line = f"cost: requests at {prices.cpu:g} per core-hour and {prices.memory:g} per GiB-hour"
    if comparison.baseline is None:
        return line
    at = comparison.baseline
    return f"{line}; compared with {at + 1}, {names(comparison.result)[at]}"


def notes(result: SimulationResult) -> list[str]:
    """What the reader should know of the input, and of what was left out."""
    dropped = [
        f"{name}: {policy.dropped_events} events are not kept"
        for name, policy in zip(names(result), result.policies, strict=True)
        if policy.dropped_events
    ]
    return [*(plain(note) for note in result.notes), *dropped]


def _scenario(comparison: Comparison) -> Iterator[str]:
    result = comparison.result
    yield from _wrapped(plain(result.name) + (f": {plain(result.description)}" if result.description else ""))
    yield from _wrapped(facts(result))
    yield from _wrapped(priced(comparison))
    yield from ("", *_figures(comparison, VERDICT))
    yield from ("", *_figures(comparison, RESOURCES))
    if any(policy.reactions for policy in result.policies):
        yield from ("", *_reactions(result))
    if found := notes(result):
        yield ""
    for note in found:
        yield from _wrapped(f"Note: {note}")
    yield from ("", "Conclusion")
    for sentence in conclusion(comparison):
        yield from _wrapped(f"- {sentence}", "  ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _first_columns(result: SimulationResult) -> list[list[str]]:
    shown = names(result)
    return [
        ["#", *(str(at + 1) for at in range(len(shown)))],
        ["policy", *(fitted(name, LONGEST_NAME) for name in shown)],
    ]


def _figures(comparison: Comparison, all_figures: Sequence[Figure]) -> list[str]:
    """The table of the figures that there is room for."""
    figures = [one for one in all_figures if not one.on_page_only]
    cells = columns(comparison, figures)
    grid = [[figure.name, *column] for figure, column in zip(figures, cells, strict=True)]
    groups = [figure.group for figure in figures]
    return _aligned([*_first_columns(comparison.result), *grid], ["", "", *groups])


def _reactions(result: SimulationResult) -> list[str]:
    cells = [["rises", "reactions", *(name for name, _, _ in PHASES)]]
    cells += [medians(policy) for policy in result.policies]
    grid = [*_first_columns(result), *(list(column) for column in zip(*cells, strict=True))]
    table = _aligned(grid, ["", "", *["the HPA's reaction to a rise, median by phase"] * len(cells[0])])
    return [*table, *_wrapped(f"{HELD}: {HELD_MEANING}")]


def _aligned(grid: list[list[str]], groups: list[str]) -> list[str]:
    """Columns side by side, the policies' names to the left and figures to the right, under the groups' names."""
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
        GAP.join(_padded(cell, widths[index], index == 1) for index, cell in enumerate(row))
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
