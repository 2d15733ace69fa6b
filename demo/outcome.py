"""The last screen of the demo: what users felt, and what was requested, beside an HPA and a VPA. Pure: measurements in,
text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from demo.scenario import Course, State, Worth, worth
from demo.snapshot import cpu, memory

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
    yield f"{title:<34}{'this Hvpa':>20}{'HPA and VPA':>20}"
    for row in rows:
        yield f"  {row.name:<32}{row.own:>20}{row.other:>20}   {row.difference}".rstrip()


def compared(own: float, other: float) -> str:
    """The first amount relative to the second: `13 % less`; empty if either is 0."""
    if not own or not other:
        return ""
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
    yield "HPA (AverageValue) and VPA (InPlaceOrRecreate) are simulated with exact models, and have the same bounds,"
    yield "targets and hold before scaling in. Not served: usage beyond the requests, which a full node doesn't give."
    if rivals.hour:
        yield ""
        yield from lines(_rows(*rivals.hour), "The same load over an hour")
        yield "Simulated, with the operator's own decision code. A run of minutes is mostly the way up and down, and"
        yield "pods that grew keep their size for a while (spec.vpa.scaleDown of demo/hvpa.yaml)."
    yield "Weeks of other loads, with HPA and VPA at the same unmet demand: the picture at the top of README.md."


def _rows(own: Worth, other: Worth) -> Iterator[Row]:
    less = compared(round(own.short), round(other.short))
    yield Row("CPU not served on a full node", _short(own), _short(other), less)
    mine, theirs = (f"{each.requested:.0f} core-s" for each in (own, other))
    yield Row("CPU requested", mine, theirs, compared(own.requested, other.requested))


def _short(each: Worth) -> str:
    share = f"{100 * each.short / each.used:.1f} %" if each.used else "0 %"
    return f"{each.short:.0f} core-s ({share})"


def size(state: State) -> str:
    """`2 × 250m, 192Mi`: replicas, and the requests of each."""
    return f"{state.replicas} × {cpu(state.requests.cpu)}, {memory(state.requests.memory)}"
