"""Reads a load from a Prometheus response to a range query (`/api/v1/query_range`), saved as JSON."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import yaml

from hvpa.api.schema.base import FieldError, dotted_path
from hvpa.api.values.positions import YamlError, compose, line_of
from hvpa_lab.simulate.errors import ScenarioError, refusal
from hvpa_lab.simulate.load.series import LATEST, RecordedSeries, checked_record, problem_of

MAX_PLACED: Final = 20_000_000
"""Maximum characters of a text for finding the line of an error: in a longer text it takes minutes."""
MAX_DEPTH: Final = 50
"""Maximum nesting for finding the line of an error: a response has seven levels."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESULT: Final = ("data", "result")
_Path = tuple[str | int, ...]


def read_range(file: str, text: str, series: int | Mapping[str, str] | None, total: bool) -> RecordedSeries:
    """The series with this index or these labels; with `total`, the sum of all series; by default, the only series.
    Raises ScenarioError with line and field."""
    return _Response(file, text).record(series, total)


class _Response:
    """A parsed response; its errors name the line and the field."""

    def __init__(self, file: str, text: str) -> None:
        self._file, self._text = file, text
        try:
            self._content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ScenarioError(
                f"{file}:{error.lineno}: not JSON: {error.msg} (column {error.colno})"
            ) from None
        except (RecursionError, ValueError):  # ValueError: a number of thousands of digits
            raise ScenarioError(
                f"{file}:1: not JSON that can be read: nested too deep, or too large a number"
            ) from None

    def record(self, series: int | Mapping[str, str] | None, total: bool) -> RecordedSeries:
        """The chosen series, or the sum of all."""
        results = self._results()
        if total and len(results) > 1:
            return self._sum([self._series(index, result, least=1) for index, result in enumerate(results)])
        index = self._choice(results, series)
        return self._series(index, results[index])

    def _results(self) -> list[Any]:
        """`data.result`, if the response is successful and has a matrix."""
        response = self._content
        if not isinstance(response, dict) or "status" not in response:
            self._fail((), "is no response of Prometheus: an object with status and data")
        if response["status"] != "success":
            self._fail(
                ("status",),
                f"Prometheus responded with an error: {str(response.get('error', 'unknown'))[:200]}",
            )
        data = response.get("data")
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            self._fail(("data", "resultType"), "must be matrix: the response to a range query")
        results = data.get("result")
        if not isinstance(results, list) or not results:
            self._fail(_RESULT, "has no series")
        return results

    def _choice(self, results: list[Any], series: int | Mapping[str, str] | None) -> int:
        if series is None:
            if len(results) > 1:
                self._fail(
                    _RESULT, f"has {len(results)} series: set series to choose, or sum: true to add them"
                )
            return 0
        if isinstance(series, int):
            if series >= len(results):
                self._fail(_RESULT, f"has {len(results)} series: there is no number {series}")
            return series
        indices = [index for index, result in enumerate(results) if _has_labels(result, series)]
        if len(indices) != 1:
            self._fail(_RESULT, f"{len(indices) or 'no'} series have the labels {json.dumps(dict(series))}")
        return indices[0]

    def _series(self, index: int, result: Any, least: int = 2) -> RecordedSeries:
        path = (*_RESULT, index, "values")
        pairs = result.get("values") if isinstance(result, dict) else None
        if not isinstance(pairs, list):
            self._fail(path, "must be a list of pairs of time and value")
        times, values = array("d"), array("d")
        for number, pair in enumerate(pairs):
            if not isinstance(pair, list) or len(pair) != 2:
                self._fail((*path, number), "must be a pair of time and value")
            times.append(self._time(pair[0], (*path, number, 0)))
            values.append(self._value(pair[1], (*path, number, 1)))
        name = dotted_path(path)
        return checked_record(
            self._file, times, values, lambda number: self._line((*path, number)), (name, name), least
        )

    def _time(self, value: Any, path: _Path) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
            self._fail(path, "must be a time in unix seconds")
        return float(value)

    def _value(self, value: Any, path: _Path) -> float:
        """The value. Prometheus writes values as text, since JSON has no NaN."""
        try:
            number = float(value) if isinstance(value, str) and "_" not in value else None
        except ValueError:
            number = None
        if number is None:
            self._fail(path, "must be a number as text")
        problem = problem_of(number)
        if problem is not None:
            self._fail(path, problem)
        return number

    def _sum(self, series: list[RecordedSeries]) -> RecordedSeries:
        """The sum, at each time, of the series that have a value then, as Prometheus' `sum` calculates it."""
        sums: dict[float, float] = {}
        for record in series:
            for time, value in zip(record.times, record.values, strict=True):
                sums[time] = sums.get(time, 0.0) + value
        times = array("d", sorted(sums))
        values = array("d", (sums[time] for time in times))
        name = dotted_path(_RESULT)
        return checked_record(self._file, times, values, lambda _: self._line(_RESULT), (name, name))

    # --- lines of errors ------------------------------------------------------------------------------------------
    def _fail(self, path: _Path, reason: str) -> NoReturn:
        raise refusal(self._file, self._line(path), FieldError(dotted_path(path), reason))

    def _line(self, path: _Path) -> int:
        """The line of the value at this path; if the value is missing, the line of its nearest parent. 1 if the text is
        a single line, is too large to search, or is JSON but not YAML."""
        if "\n" not in self._text or len(self._text) > MAX_PLACED:
            return 1
        try:
            (root,) = compose(self._text, _Loader, MAX_DEPTH)
        except YamlError:
            return 1
        return line_of(root, dotted_path(path))


def _has_labels(result: Any, labels: Mapping[str, str]) -> bool:
    metric = result.get("metric") if isinstance(result, dict) else None
    return isinstance(metric, dict) and all(metric.get(name) == value for name, value in labels.items())
