"""The last screen of the demo: slow or failed service, restarts and requests, compared with an HPA and a VPA. Pure:
measurements in, text out."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from demo.scenario import Course, State, Worth, worth
from demo.snapshot import cpu, memory

WIDTH: Final = 80
"""Columns of the last screen at most: those of a small terminal."""
_TITLE: Final = "What users felt, and what it cost"


@dataclass(frozen=True, slots=True)
class Rivals:
    """The course of an HPA with a VPA (`course`), under a load of which a number of pods use `used` millicores at a
    second, until second `until`. `restarts`: replaced and restarted pods. `hour`: the simulated results of this Hvpa
    and of an HPA with a VPA if the same load takes an hour."""

    course: Course
    used: Callable[[float, int], float]
    until: int
    restarts: int = 0
    hour: tuple[Worth, Worth] | None = None


class Row(NamedTuple):
    """A line: the values of the Hvpa and of HPA and VPA, and their difference in words."""

    name: str
    own: str
    other: str
    difference: str = ""


def lines(rows: Iterable[Row], title: str = _TITLE) -> Iterator[str]:
    """The rows as a table, below a head."""
    yield _line(title, "this Hvpa", "HPA and VPA")
    for row in rows:
        yield _line(f"  {row.name}", row.own, row.other, row.difference)


def _line(name: str, own: str, other: str, difference: str = "") -> str:
    return f"{name}{own:>{49 - len(name)}}{other:>20} {difference:>10}".rstrip()


def wrapped(text: str) -> Iterable[str]:
    """The lines of a paragraph."""
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def compared(own: float, other: float) -> str:
    """The first amount relative to the second: `13 % less`, `12 times`; empty if either is 0 or infinite."""
    if not own or not other or math.inf in (own, other):
        return ""
    if own >= 10 * other:
        return f"{own / other:.0f} times"
    percent = round(100 * (own / other - 1))
    return f"{abs(percent)} % {'less' if percent < 0 else 'more'}" if percent else "the same"


def beside_simulated(course: Course, restarts: int, rivals: Rivals) -> Iterator[str]:
    """The last screen on simulated nodes: the observed course beside the simulated course of HPA and VPA."""
    own, other = (worth(each, rivals.used, rivals.until) for each in (course, rivals.course))
    yield from lines(
        [
            *_rows(own, other),
            Row("restarts", str(restarts), str(rivals.restarts)),
            Row("at the end", size(own.end), size(other.end)),
        ]
    )
    yield from wrapped(
        "HPA (AverageValue) and VPA (InPlaceOrRecreate) are simulated with exact models, and have the same "
        "bounds, targets and hold before scaling in. Unserved: usage beyond the requests, which a full node does "
        "not give."
    )
    if rivals.hour:
        yield ""
        yield from lines(_rows(*rivals.hour), "The same load over an hour")
        yield from wrapped(
            "Simulated, with the operator's own decision code. A run of minutes is mostly the way up and down, and "
            "pods that grew keep their size for a while (spec.vpa.scaleDown of demo/hvpa.yaml)."
        )
    yield from wrapped(
        "Weeks of other loads, with HPA and VPA at the same unmet demand: the picture at the top of README.md."
    )


def _rows(own: Worth, other: Worth) -> Iterator[Row]:
    less = compared(round(own.short), round(other.short))
    yield Row("CPU unserved on a full node", _short(own), _short(other), less)
    mine, theirs = (f"{each.requested:.0f} core-s" for each in (own, other))
    yield Row("CPU requested", mine, theirs, compared(own.requested, other.requested))


def _short(each: Worth) -> str:
    share = f"{100 * each.short / each.used:.1f} %" if each.used else "0 %"
    return f"{each.short:.0f} core-s ({share})"


def size(state: State) -> str:
    """`2 × 250m, 192Mi`: replicas, and the requests of each."""
    return f"{state.replicas} × {cpu(state.requests.cpu)}, {memory(state.requests.memory)}"
