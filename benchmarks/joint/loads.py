"""The loads of `python -m benchmarks joint`, in cores of work.

This module contains the load over time. Recorded series come from a folder that the caller names; the other loads are
formulas. A single rule scales all recorded series, so that no series is tuned to: the median of their positive values
within the simulated days is `MEDIAN` cores.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import statistics
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from hvpa.api.values.timestamp import format_timestamp
from hvpa_lab.simulate.load.csv import read_csv
from hvpa_lab.simulate.load.series import RecordedSeries

MEDIAN: Final = 1.5
"""Median of a recorded series in cores of work."""
DAY: Final = 86400.0

# Times are UTC seconds since the start; workdays are the first five days of a week.
FORMULAS: Final[Mapping[str, tuple[str, float]]] = {
    "wave": ("(3 - 2.2 * cos(2 * pi * t / day)) * (0.5 if t % week >= 5 * day else 1)", 0.03),
    "plateau": ("5 * ramp(t, 0, hour)", 0.05),
    "growth": ("1.5 + 0.6 * t / day", 0.03),
    "flash": ("2 - cos(2 * pi * t / day) + 9 * pulse(t % (29 * hour), 15 * hour, 20 * minute)", 0.03),
    "batch": ("1 + 7 * pulse(t % (6 * hour), hour, 2 * hour)", 0.03),
}
"""Formula and noise (relative standard deviation of each step) by name: a daily wave with a weekend, a constant, a slow
growth, flash crowds on a wave at another hour each day, a square wave. None begins above the capacity of 3 pods."""


class LoadCase(NamedTuple):
    """A load."""

    name: str
    field: Mapping[str, object]
    """The scenario's field `load`."""
    duration: float
    """Seconds."""
    file: str = ""
    """Name of the file that it reads; empty without a file."""
    text: str = ""
    """Content of that file."""
    leak: str = "0"
    """Memory that a pod loses per hour under this load."""


def formulas(days: float) -> list[LoadCase]:
    """Return the project's own loads."""
    return [
        LoadCase(name, {"formula": formula, "noise": noise}, days * DAY)
        for name, (formula, noise) in FORMULAS.items()
    ]


def traces(folder: Path, days: float) -> list[LoadCase]:
    """Return the first days of every CSV file (columns `timestamp` and `value`) in this folder. Raises ScenarioError
    for an unreadable file, ValueError if there is no file, or a file without a positive value."""
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise ValueError(f"{folder}: no CSV files here")
    return [_trace(file, days) for file in files]


def _trace(file: Path, days: float) -> LoadCase:
    record = read_csv(str(file), file.read_text(), "timestamp", "value")
    duration = min(days * DAY, record.length)
    count = bisect_left(record.times, record.times[0] + duration)
    positive = [value for value in record.values[:count] if value > 0]
    if not positive:
        raise ValueError(f"{file}: no positive value in the first {days:g} days")
    scale = float(f"{MEDIAN / statistics.median(positive):.6g}")
    name = file.stem
    source = {"csv": {"file": f"{name}.csv"}, "scale": scale}
    return LoadCase(name, source, duration, f"{name}.csv", _text(record, count))


def _text(record: RecordedSeries, count: int) -> str:
    """Return the first values as CSV, and one more, so that the cut is not an end."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("timestamp", "value"))
    for time, value in zip(record.times[: count + 1], record.values[: count + 1], strict=True):
        writer.writerow((format_timestamp(dt.datetime.fromtimestamp(time, dt.UTC)), f"{value:g}"))
    return out.getvalue()
