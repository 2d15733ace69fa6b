"""Loads that nothing was tuned on, drawn from a seed. Neither the recorded series nor the formulas of `loads` have
these kinds. Each load is a formula of the scenario, so that it is readable.

This module contains the kinds and their distributions. The same kind and seed give the same load for any number of
days, because events are drawn day by day.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from benchmarks.joint.loads import DAY, LoadCase

HOUR: Final = 3600.0
Draw = random.Random
"""The random generator."""


def generated(seed: int, days: float) -> list[LoadCase]:
    """Return a load of each kind, drawn from this seed, for `days` days."""
    return [LoadCase(kind, *_made(kind, seed, days), leak=LEAKS.get(kind, "0")) for kind in KINDS]


def _made(kind: str, seed: int, days: float) -> tuple[dict[str, object], float]:
    draw = random.Random(f"{kind} {seed}")
    formula = KINDS[kind](draw, math.ceil(days))
    return {"formula": f"max(0.05, {formula})", "noise": round(draw.uniform(0.02, 0.1), 3)}, days * DAY


def _day(draw: Draw, least: float, most: float) -> str:
    """Return a daily wave around 1.5 cores; `least` and `most` bound its depth."""
    depth, top = draw.uniform(least, most), draw.uniform(0, 24)
    return f"1.5 * (1 + {depth:.2f} * cos(2 * pi * (t / day - {top / 24:.3f})))"


def _times(draw: Draw, days: int, mean: float) -> Iterator[float]:
    """Yield times in seconds, on average `mean` per day."""
    for day in range(days):
        for _ in range(_poisson(draw, mean)):
            yield (day + draw.random()) * DAY


def _poisson(draw: Draw, mean: float) -> int:
    """Draw from the Poisson distribution with this mean (Knuth)."""
    bound, product, count = math.exp(-mean), draw.random(), 0
    while product > bound:
        product *= draw.random()
        count += 1
    return count


def _bursts(draw: Draw, days: int) -> str:
    """Return about eight random bursts a day: 1 to 6 cores more for 2 to 40 minutes."""
    parts = [_day(draw, 0.1, 0.4)]
    for start in _times(draw, days, 8):
        height, length = (
            math.exp(draw.uniform(0, math.log(6))),
            math.exp(draw.uniform(math.log(2), math.log(40))),
        )
        parts.append(f"{height:.1f} * pulse(t, {start:.0f}, {length * 60:.0f})")
    return " + ".join(parts)


def _shifts(draw: Draw, days: int) -> str:
    """Return a new level every few hours, from 0.5 to 6 cores, with nothing between."""
    parts, level = ["1.5"], 1.5
    for start in sorted(_times(draw, days, 5)):
        wanted = math.exp(draw.uniform(math.log(0.5), math.log(6)))
        parts.append(f"{wanted - level:+.2f} * ramp(t, {start:.0f}, {draw.choice((0, 60, 600))})")
        level = wanted
    return " ".join([parts[0], *(part.replace("+", "+ ").replace("-", "- ") for part in parts[1:])])


def _week(draw: Draw, days: int) -> str:
    """Return an office load: a rise in the morning, a dip at noon, an evening, and a weekend on two days of any
    three."""
    low, noon, weekend = draw.uniform(0.2, 0.5), draw.uniform(0.1, 0.4), draw.uniform(0.2, 0.6)
    first, rise = draw.choice((4, 5)), draw.uniform(1, 3)
    hours = f"((t / hour + {draw.uniform(0, 24):.1f}) % 24)"
    work = f"(ramp({hours}, 8, {rise:.1f}) - ramp({hours}, 17, {rise + 1:.1f}))"
    dip = f"(1 - {noon:.2f} * pulse({hours}, 12, 1.2))"
    rest = f"({weekend:.2f} if ({first} + t / day) % 7 >= 5 else 1)"
    return f"3.5 * ({low:.2f} + {1 - low:.2f} * {work} * {dip} * {rest})"


def _launches(draw: Draw, days: int) -> str:
    """Return about one launch a day: a rise by 2 to 8 cores within 1 to 20 minutes, and a decline over hours."""
    parts = [_day(draw, 0.3, 0.7)]
    for start in _times(draw, days, 1.2):
        height, minutes, hours = draw.uniform(2, 8), draw.uniform(1, 20), draw.uniform(0.5, 4)
        fading = f"exp(-max(0, t - {start:.0f}) / ({hours:.1f} * hour))"
        parts.append(f"{height:.1f} * ramp(t, {start:.0f}, {minutes * 60:.0f}) * {fading}")
    return " + ".join(parts)


def _leak(draw: Draw, days: int) -> str:
    """Return a calm wave; memory is the subject (`LEAKS`)."""
    return _day(draw, 0.2, 0.6)


KINDS: Final[Mapping[str, Callable[[Draw, int], str]]] = {
    "bursts": _bursts,
    "shifts": _shifts,
    "week": _week,
    "launches": _launches,
    "leak": _leak,
}
LEAKS: Final[Mapping[str, str]] = {"leak": "24Mi"}
"""Loads that leak memory in each pod, with the leak per hour."""
