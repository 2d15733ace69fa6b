"""The load of a simulation: a value for each step, from a recorded series or from a formula.

This file converts a series to steps (each value holds until the next, nothing is interpolated), reports gaps, and
applies scale and noise. `csv`, `prometheus` and `formula` read the series.
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
from hvpa_lab.simulate.errors import refusal
from hvpa_lab.simulate.load.formula import Formula, FormulaError

GAP: Final = 1.5
"""A step longer than this multiple of the usual step is a gap."""
MAX_NOTES: Final = 5
"""Maximum number of gaps that are reported individually."""
MAX_LOAD: Final = 1e15
"""Largest load: up to it, floats represent demand exactly enough."""
_ROUNDING: Final = 1e-6
"""Fraction of a step by which a time may be early: times are multiples of the step, as floats."""
LATEST: Final = 253_402_300_799.0
"""The last second of the year 9999 in unix seconds."""


class StepLoad:
    """A load with a value for each step of a scenario. The last value also holds after the last step."""

    __slots__ = ("_step", "values")

    def __init__(self, values: array[float], step: float) -> None:
        self.values = values
        self._step = step

    def at(self, seconds: float) -> float:
        """The load in the step that contains this time (seconds since the start)."""
        index = int(seconds / self._step + _ROUNDING)
        return self.values[index] if index < len(self.values) else self.values[-1]


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """A recorded series in order of time, with at least two values (as part of a sum, at least one)."""

    file: str
    times: array[float]
    """Unix seconds."""
    values: array[float]
    """Finite and not negative."""
    line: Callable[[int], int]
    """Returns the line of the value with this index; 0 if there are no lines."""

    @property
    def usual_step(self) -> float:
        """The median time between two values, in seconds."""
        return statistics.median(after - before for before, after in pairwise(self.times))

    @property
    def length(self) -> float:
        """Seconds from the first value to the end of the last value, which holds for a usual step."""
        return self.times[-1] - self.times[0] + self.usual_step


def checked_record(
    file: str,
    times: array[float],
    values: array[float],
    line: Callable[[int], int],
    fields: tuple[str, str],
    least: int = 2,
) -> RecordedSeries:
    """The record. Raises ScenarioError if it has fewer than `least` values, or if its times do not rise. `fields` are
    the names of times and values in messages."""
    if len(times) < least:
        reason = "there is only one value" if len(times) else "there are no values"
        raise refusal(
            file, line(0) if len(times) else 1, FieldError(fields[1], f"{reason}: a load has two or more")
        )
    for index, (before, after) in enumerate(pairwise(times), start=1):
        if after <= before:
            order = (
                "stands there twice" if after == before else f"comes after {_instant(before)}: not in order"
            )
            raise refusal(file, line(index), FieldError(fields[0], f"{_instant(after)} {order}"))
    return RecordedSeries(file, times, values, line)


def problem_of(value: float) -> str | None:
    """The reason why a number is not a valid load; None if it is valid."""
    if not math.isfinite(value):
        return f"{value} is not a load"
    if value > MAX_LOAD:
        return f"{value:g} is larger than {MAX_LOAD:g}"
    return f"{value:g} is negative" if value < 0 else None


def gaps(record: RecordedSeries) -> tuple[str, ...]:
    """A note for each of the first gaps, and a note with the number of further gaps."""
    usual = record.usual_step
    gap_count, notes = 0, []
    for index, (before, after) in enumerate(pairwise(record.times)):
        if after - before > GAP * usual:
            gap_count += 1
            if gap_count <= MAX_NOTES:
                line = record.line(index)
                place = f"{record.file}:{line}" if line else record.file
                notes.append(
                    f"{place}: no values for {readable_length(after - before)} from"
                    f" {_instant(before)}; held at {record.values[index]:g}"
                )
    if gap_count > MAX_NOTES:
        notes.append(f"{record.file}: {gap_count - MAX_NOTES} more gaps, held at the last value before each")
    return tuple(notes)


def steps_of(record: RecordedSeries, step: float, count: int, repeat: bool) -> Iterator[float]:
    """The record's values at `count` steps from its start. Each value holds until the next. After its end the record
    starts again with `repeat`; otherwise the last value stays.

    If the record is finer than the steps, a step has the time-weighted mean of the values within it, so that no load is
    lost. Example: 10 for 5 s and 40 for 10 s are 30 in a step of 15 s.
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


def _spans(record: RecordedSeries, repeat: bool) -> Iterator[tuple[float, float]]:
    """Each value with the time until which it holds, in seconds since the record's first value. Without `repeat`, the
    last value holds forever."""
    first, origin = record.times[0], record.times[0]
    length = record.length if repeat else math.inf
    while True:
        ends = chain(islice(record.times, 1, None), (first + length,))
        for value, end in zip(record.values, ends, strict=True):
            yield value, end - origin
        origin -= length


def computed(formula: Formula, step: float, count: int) -> Iterator[float]:
    """The formula's values at `count` steps. Raises FormulaError at the first value that is not a valid load."""
    for index in range(count):
        value = formula(index * step)
        problem = problem_of(value)
        if problem is not None:
            raise FormulaError(
                f"{problem}, at t = {index * step:g} (max(0, …) keeps a load from falling below 0)"
            )
        yield value


def scaled_values(
    values: Iterator[float], scale: float, noise: float, seed: int, calm: int = 0
) -> array[float]:
    """The values times `scale`, with normally distributed noise of relative standard deviation `noise`, but at least 0.
    The first `calm` values have no noise. The same seed gives the same noise."""
    if noise == 0:
        return array("d", (value * scale for value in values))
    gauss = random.Random(seed).gauss
    load = array("d", (value * scale for value in islice(values, calm)))
    load.extend(max(value * scale * (1 + gauss(0, noise)), 0.0) for value in values)
    return load


def readable_length(seconds: float) -> str:
    """The duration as text: 1h30m, 7.5s."""
    return format_duration(dt.timedelta(seconds=round(seconds, 3)))


def _instant(unix: float) -> str:
    return format_timestamp(dt.datetime.fromtimestamp(round(unix, 3), dt.UTC))
