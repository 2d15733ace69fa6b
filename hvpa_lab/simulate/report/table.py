"""A simulation's result as text, 100 columns wide: cost and unmet demand of each policy, their components, reactions to
rises of the load, and the conclusion."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from hvpa.api.values.timestamp import format_timestamp
from hvpa_lab.simulate.model import SimulationResult
from hvpa_lab.simulate.report.compare import Comparison, conclusion
from hvpa_lab.simulate.report.figures import HELD, HELD_MEANING, PHASES, RESOURCES, VERDICT, Figure, reactions
from hvpa_lab.simulate.report.text import cut_to_width, plain_text, seconds, width

GAP: Final = "  "
WIDTH: Final = 100
LONGEST_NAME: Final = 24
"""Maximum width of a policy's name, in columns of the terminal."""
Column = tuple[str, list[str]]
"""A column's group and its cells, starting with the head."""


def to_text(comparisons: Sequence[Comparison]) -> str:
    """The text of all scenarios, without a final line break."""
    return "\n\n".join("\n".join(_scenario(comparison)) for comparison in comparisons)


def facts(result: SimulationResult) -> str:
    """A line with duration, start, step, warm-up and seed of the simulation."""
    parts = [
        f"{seconds(result.duration)} from {format_timestamp(result.start)} in steps of {seconds(result.step)}"
    ]
    if result.warm_up:
        parts.append(f"the first {seconds(result.warm_up)} not counted")
    return "; ".join([*parts, f"seed {result.seed}"])


def priced(comparison: Comparison) -> str:
    """A line with the prices and the baseline."""
    prices, at = comparison.prices, comparison.baseline
    line = f"cost: requests at {prices.cpu:g} per core-hour and {prices.memory:g} per GiB-hour"
    return line if at is None else f"{line}; compared with {at + 1}, {comparison.standings[at].name}"


def notes(comparison: Comparison) -> list[str]:
    """Notes about the input and about events that were not kept."""
    return [plain_text(note) for note in comparison.result.notes] + [
        f"{standing.name}: {standing.policy.dropped_events} events are not kept"
        for standing in comparison.standings
        if standing.policy.dropped_events
    ]


def _scenario(comparison: Comparison) -> Iterator[str]:
    result = comparison.result
    yield from _wrapped(
        plain_text(result.name) + (f": {plain_text(result.description)}" if result.description else "")
    )
    yield from _wrapped(facts(result))
    yield from _wrapped(priced(comparison))
    yield from ("", *_figures(comparison, VERDICT))
    yield from ("", *_figures(comparison, RESOURCES))
    if any(policy.reactions for policy in result.policies):
        yield from ("", *_reactions(comparison), *_wrapped(f"{HELD}: {HELD_MEANING}"))
    if remarks := notes(comparison):
        yield ""
    for note in remarks:
        yield from _wrapped(f"Note: {note}")
    yield from ("", "Conclusion")
    for sentence in conclusion(comparison):
        yield from _wrapped(f"- {sentence}", "  ")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def _figures(comparison: Comparison, figures: Sequence[Figure]) -> list[str]:
    """The table of the figures, without the figures that are only on the page."""
    shown = [figure for figure in figures if not figure.on_page_only]
    return _aligned(
        comparison, [(figure.group, [figure.name, *figure.cells(comparison.standings)]) for figure in shown]
    )


def _reactions(comparison: Comparison) -> list[str]:
    heads = ["rises", "reactions", *(name for name, _, _ in PHASES)]
    rows = [heads, *(reactions(standing.policy, longest=False) for standing in comparison.standings)]
    group = "the HPA's reaction to a rise, median by phase"
    return _aligned(comparison, [(group, list(column)) for column in zip(*rows, strict=True)])


def _aligned(comparison: Comparison, columns: Sequence[Column]) -> list[str]:
    """The lines of a table: the policies' numbers and names, then these columns under their groups' names."""
    policies = list(enumerate((standing.name for standing in comparison.standings), start=1))
    grid: list[Column] = [
        ("", ["#", *(str(number) for number, _ in policies)]),
        ("", ["policy", *(cut_to_width(name, LONGEST_NAME) for _, name in policies)]),
        *columns,
    ]
    widths = [max(map(width, cells)) for _, cells in grid]
    top, at = "", 0
    for group, members in groupby(group for group, _ in grid):
        count = len(list(members))
        room = sum(widths[at : at + count]) + len(GAP) * (count - 1)
        missing = max(0, width(group) - room)
        widths[at] += missing
        at += count
        top += _ruled(group, room + missing) + GAP
    rows = [
        GAP.join(_padded(cell, widths[index], index == 1) for index, cell in enumerate(row))
        for row in zip(*(cells for _, cells in grid), strict=True)
    ]
    return [line.rstrip() for line in (top, *rows)]


def _ruled(group: str, room: int) -> str:
    """A group's name, centred in a rule as wide as its columns."""
    rest = room - width(group) - 2
    if not group or rest < 2:
        return group.ljust(room)
    return f"{'-' * (rest // 2)} {group} {'-' * (rest - rest // 2)}"


def _padded(cell: str, room: int, left: bool) -> str:
    padding = " " * (room - width(cell))
    return cell + padding if left else padding + cell
