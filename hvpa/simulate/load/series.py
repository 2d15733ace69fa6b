"""The load of a simulation: one value for each step, made from what was recorded or from a formula.

What belongs here: how a series becomes steps (held at the last value, never interpolated), gaps, scale and noise. How
series are read is in `csv`, `prometheus` and `formula`.
"""

from __future__ import annotations

import datetime as dt
import math
import random
import statistics
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Final

from hvpa.api.schema.base import FieldError
from hvpa.api.values.duration import format_duration
from hvpa.api.values.timestamp import format_timestamp
from hvpa.simulate.errors import refusal
from hvpa.simulate.load.formula import Formula, FormulaError

GAP: Final = 1.5
"""A step longer than this many usual ones is a gap."""
MAX_NOTES: Final = 5
"""Gaps that are reported one by one."""
MAX_LOAD: Final = 1e15
"""Largest load: below it, demand stays a number that floats hold exactly enough."""
_ROUNDING: Final = 1e-6
"""Part of a step by which a time may be too early: times are multiples of the step, and floats."""
LATEST: Final = 253_402_300_799.0
"""The last second of the year 9999 in unix seconds."""


class StepLoad:
    """A load with one value for each step of a scenario; after the last step, the last value."""

    __slots__ = ("_step", "values")

    def __init__(self, values: array[float], step: float) -> None:
        self.values = values
        self._step = step

    def at(self, seconds: float) -> float:
        """The load in the step that holds this time."""
        index = int(seconds / self._step + _ROUNDING)
        return self.values[index] if index < len(self.values) else self.values[-1]


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded series: at least two values, unix seconds in rising order, values that are finite and not negative.
    `line` gives the line of the file in which a value stands; 0 where there are no lines."""

    file: str
    times: array[float]
    values: array[float]
    line: Callable[[int], int]

    @property
    def usual_step(self) -> float:
        """The median of the steps, in seconds."""
        return statistics.median(after - before for before, after in pairwise(self.times))

    @property
    def length(self) -> float:
        """From the first value to the end of the last one, which holds for a usual step. Seconds."""
        return self.times[-1] - self.times[0] + self.usual_step


def checked_record(
    file: str,
    times: array[float],
    values: array[float],
    line: Callable[[int], int],
    fields: tuple[str, str],
    least: int = 2,
) -> Record:
    """The record, once there are enough values and their times are found to rise. `fields` are what messages call
    times and values. Raises ScenarioError."""
    if len(times) < least:
        found = "there is only one value" if len(times) else "there are no values"
        raise refusal(
            file, line(0) if len(times) else 1, FieldError(fields[1], f"{found}: a load has two or more")
        )
    for index, (before, after) in enumerate(pairwise(times), start=1):
        if after <= before:
            order = (
                "stands there twice" if after == before else f"comes after {_instant(before)}: not in order"
            )
            raise refusal(file, line(index), FieldError(fields[0], f"{_instant(after)} {order}"))
    return Record(file, times, values, line)


def problem_of(value: float) -> str | None:
    """Why a number can't be a load."""
    if not math.isfinite(value):
        return f"{value} is not a load"
    if value > MAX_LOAD:
        return f"{value:g} is larger than {MAX_LOAD:g}"
    return f"{value:g} is negative" if value < 0 else None


def gaps(record: Record) -> tuple[str, ...]:
    """A sentence for each of the first gaps, and one for the count of the others."""
    usual = record.usual_step
    found, notes = 0, []
    for index, (before, after) in enumerate(pairwise(record.times)):
        if after - before > GAP * usual:
            found += 1
            if found <= MAX_NOTES:
                line = record.line(index)
                place = f"{record.file}:{line}" if line else record.file
                notes.append(
                    f"{place}: no values for {readable_length(after - before)} from"
                    f" {_instant(before)}; held at {record.values[index]:g}"
                )
    if found > MAX_NOTES:
        notes.append(f"{record.file}: {found - MAX_NOTES} more gaps, held at the last value before each")
    return tuple(notes)


def steps_of(record: Record, step: float, count: int, repeat: bool) -> Iterator[float]:
    """The record's value at `count` steps from its first value on, held until the next one; after its end it starts
    again with `repeat`, else the last value stays.

    Where the record is finer than the steps, a step's value is the mean of what was held within it, so that nothing of
    the load is lost.
    """
    spans = _spans(record, repeat)
    value, until = next(spans)
    finer = record.usual_step < step * (1 - _ROUNDING)
    for index in range(count):
        start = since = index * step
        end = start + step
        while until <= (start if finer else start + step * _ROUNDING):
            value, until = next(spans)
        total = 0.0
        while finer and until < end:
            total += value * (until - since)
            since = until
            value, until = next(spans)
        yield value if since == start else (total + value * (end - since)) / (end - start)


def _spans(record: Record, repeat: bool) -> Iterator[tuple[float, float]]:
    """Each value and until when it holds, in seconds since the record's first one; the last one for ever where the
    record does not repeat."""
    first, origin = record.times[0], record.times[0]
    length = record.length if repeat else math.inf
    while True:
        ends = chain(islice(record.times, 1, None), (first + length,))
        for value, end in zip(record.values, ends, strict=True):
            yield value, end - origin
        origin -= length


def computed(formula: Formula, step: float, count: int) -> Iterator[float]:
    """The formula's values at `count` steps. Raises FormulaError at the first that is no load."""
    for index in range(count):
        value = formula(index * step)
        problem = problem_of(value)
        if problem is not None:
            raise FormulaError(
                f"{problem}, at t = {index * step:g} (max(0, …) keeps a load from falling below 0)"
            )
        yield value


def scaled(values: Iterator[float], scale: float, noise: float, seed: int, calm: int = 0) -> array[float]:
    """The values times `scale`, each made larger or smaller by normally distributed noise of this relative standard
    deviation, never below 0; the first `calm` of them have none. The same seed gives the same noise."""
    if noise == 0:
        return array("d", (value * scale for value in values))
    gauss = random.Random(seed).gauss
    found = array("d", (value * scale for value in islice(values, calm)))
    found.extend(max(value * scale * (1 + gauss(0, noise)), 0.0) for value in values)
    return found


def readable_length(seconds: float) -> str:
    """A length of time: 1h30m, 7.5s."""
    return format_duration(dt.timedelta(seconds=round(seconds, 3)))


def _instant(unix: float) -> str:
    return format_timestamp(dt.datetime.fromtimestamp(round(unix, 3), dt.UTC))
