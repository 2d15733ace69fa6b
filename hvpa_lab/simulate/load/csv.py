"""Reads a load from a CSV file with a header, a column of timestamps, and a column of values.

Timestamps are unix seconds, or RFC 3339 (`2026-01-05T00:00:00Z`), optionally without a zone (then UTC) or with a space
instead of the T.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from array import array
from collections.abc import Iterator
from typing import Final

from hvpa.api.schema.base import FieldError
from hvpa_lab.simulate.errors import ScenarioError, refusal
from hvpa_lab.simulate.load.series import LATEST, RecordedSeries, checked_record, problem_of

_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?", re.ASCII)
_NO_NUMBER: Final = re.compile(r"[-+]?(nan|inf(inity)?)", re.ASCII | re.IGNORECASE)
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)(Z|[+-][0-9]{2}:[0-9]{2})?",
    re.ASCII,
)
_SHOWN: Final = 40
"""Maximum length of a wrong value in a message."""


def read_csv(file: str, text: str, timestamp: str, value: str) -> RecordedSeries:
    """The series in these columns. Raises ScenarioError with line and column."""
    times, values, lines = array("d"), array("d"), array("L")
    rows = rows_of(file, text)
    _, header = next(rows, (1, []))
    at_time, at_value = (column_of(file, header, name) for name in (timestamp, value))
    for line, row in rows:
        column = timestamp
        try:
            times.append(unix_seconds(cell(row, at_time)))
            column = value
            values.append(_load(cell(row, at_value)))
        except ValueError as error:
            raise refusal(file, line, FieldError(column, str(error))) from None
        lines.append(line)
    return checked_record(file, times, values, lines.__getitem__, (timestamp, value))


def rows_of(file: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each after the number of its last line. Raises ScenarioError."""
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise ScenarioError(f"{file}:{reader.line_num}: not CSV: {error}") from None


def column_of(file: str, header: list[str], name: str) -> int:
    """The index of the column of this name. Raises ScenarioError if there is no such column, or several."""
    names = [heading.strip() for heading in header]
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise refusal(file, 1, FieldError(name, "there are several columns of this name"))
    present_names = ", ".join(names)[:200] if header else "nothing: the file is empty"
    raise refusal(
        file, 1, FieldError(name, f"there is no column of this name in the header, which has {present_names}")
    )


def cell(row: list[str], column: int) -> str:
    """The row's text in this column. Raises ValueError if the row is too short."""
    if column >= len(row):
        raise ValueError("is missing: the row is too short")
    return row[column].strip()


def _load(text: str) -> float:
    if _NUMBER.fullmatch(text) is None and _NO_NUMBER.fullmatch(text) is None:
        raise ValueError(f"{text[:_SHOWN]!r} is not a number")
    value = float(text)
    problem = problem_of(value)
    if problem is not None:
        raise ValueError(problem)
    return value


def unix_seconds(text: str) -> float:
    """The timestamp in unix seconds. Raises ValueError."""
    if _NUMBER.fullmatch(text) is not None:
        seconds = float(text)
        if not 0 <= seconds <= LATEST:
            raise ValueError(f"{text[:_SHOWN]} is not a time in unix seconds")
        return seconds
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text[:_SHOWN]!r} is not a timestamp (such as 2026-01-05T00:00:00Z, or unix seconds)"
        )
    date, time, zone = match.groups()
    try:
        seconds = dt.datetime.fromisoformat(f"{date}T{time}{zone or 'Z'}").timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is not a timestamp: {error}") from None
    if not 0 <= seconds <= LATEST:
        raise ValueError(f"{text!r} is not a timestamp between 1970 and 9999")
    return seconds
