"""Reads a workload's history from Prometheus' responses to range queries: an expression each for `cpu`, `memory`,
`replicas` and, if known, `load` and `starts`.

Values that are NaN or infinite count as missing. The history has a row for each time at which all expressions have a
value; other times are gaps.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hvpa.api.values.text import printable
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.record import History, Used
from hvpa_lab.simulate.history.table import UsageShare
from hvpa_lab.simulate.load.series import LATEST, RecordedSeries, gaps, problem_of

CPU, MEMORY, REPLICAS, LOAD, STARTS = "cpu", "memory", "replicas", "load", "starts"
REQUIRED: Final = (CPU, MEMORY, REPLICAS)
CONTAINER: Final = "container"
_SHOWN: Final = 300
"""Maximum length of an error message of Prometheus in our message."""
_SOME: Final = 0.5
"""Minimum share of the times with usage at which the load must have a value."""
_FEWEST_STARTS: Final = 2
"""Minimum number of values of starting containers: a single start may be an exception."""


class PrometheusSeries(NamedTuple):
    """A time series."""

    labels: Mapping[str, str]
    values: Mapping[float, float]
    """Values by time in unix seconds."""


class _Answered(msgspec.Struct):
    """The fields of a response that are read."""

    status: str = ""
    error: str = ""
    data: dict[str, Any] = {}


def series_in(name: str, text: bytes) -> list[PrometheusSeries]:
    """The series in the response to the expression of this name. Raises ScenarioError."""
    try:
        answer = msgspec.json.decode(text, type=_Answered)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        start = printable(text[:60].decode("utf-8", "replace"))
        raise ScenarioError(f"{name}: is not a Prometheus response: it begins with {start!r}") from None
    if answer.status != "success":
        raise ScenarioError(
            f"{name}: Prometheus responded with an error: {answer.error[:_SHOWN] or 'unknown'}"
        )
    result = answer.data.get("result")
    if answer.data.get("resultType") != "matrix" or not isinstance(result, list):
        raise ScenarioError(f"{name}: the Prometheus response has no series over time (a matrix)")
    return [_series(name, series) for series in result]


def _series(name: str, series: Any) -> PrometheusSeries:
    labels = series.get("metric") if isinstance(series, dict) else None
    pairs = series.get("values") if isinstance(series, dict) else None
    if not isinstance(labels, dict) or not isinstance(pairs, list):
        raise ScenarioError(f"{name}: a series of Prometheus' answer has no metric and values")
    values: dict[float, float] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ScenarioError(f"{name}: {str(pair)[:60]} is not a pair of time and value")
        time, value = _time(name, pair[0]), _value(name, pair[1])
        if problem_of(value) is None:
            values[time] = value
        elif value < 0:
            raise ScenarioError(f"{name}: {value:g} is negative")
    return PrometheusSeries({str(label): str(text) for label, text in labels.items()}, values)


def _time(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST:
        raise ScenarioError(f"{name}: {str(value)[:60]} is not a time in unix seconds")
    return float(value)


def _value(name: str, value: Any) -> float:
    try:
        return float(value) if isinstance(value, str) and "_" not in value else float("")
    except ValueError:
        raise ScenarioError(f"{name}: {str(value)[:60]!r} is not a number as text") from None


def merged(chunks: Iterable[Sequence[PrometheusSeries]]) -> list[PrometheusSeries]:
    """The series of several responses, joined by their labels."""
    values_by_labels: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
    for chunk in chunks:
        for series in chunk:
            values_by_labels.setdefault(tuple(sorted(series.labels.items())), {}).update(series.values)
    return [PrometheusSeries(dict(labels), values) for labels, values in values_by_labels.items() if values]


def missing_expressions(answers: Mapping[str, Sequence[PrometheusSeries]]) -> list[str]:
    """The names of the expressions without any value, except `starts`, which may have none."""
    return [name for name, all_series in answers.items() if not all_series and name != STARTS]


def history_of(
    source: str, answers: Mapping[str, Sequence[PrometheusSeries]], shares: Mapping[str, UsageShare]
) -> History:
    """The history in the responses, of which only `starts` may be empty. `shares` has each container of the workload,
    with its assumed part of usage if CPU or memory have one series for the whole pod. Raises ScenarioError."""
    notes: list[str] = []
    replicas = _single(REPLICAS, answers[REPLICAS])
    usage = {name: _by_container(name, answers[name], shares, notes) for name in (CPU, MEMORY)}
    load = _single(LOAD, answers[LOAD]) if LOAD in answers else None
    times = [
        time
        for time in sorted(replicas)
        if all(any(time in values for values in by_container.values()) for by_container in usage.values())
    ]
    if load is not None:
        with_load = [time for time in times if time in load]
        if len(with_load) < _SOME * len(times):
            raise ScenarioError(f"load: has values at {len(with_load)} of the {len(times)} times with usage")
        times = with_load
    if len(times) < 2:
        raise ScenarioError(
            f"{source}: CPU, memory and replicas are known together at {len(times) or 'no'} times: no history"
        )
    columns = {
        container: Used(
            *(
                array("d", (by_container[container].get(time, 0.0) for time in times))
                for by_container in usage.values()
            )
        )
        for container in shares
    }
    counts = array("d", (replicas[time] for time in times))
    record = RecordedSeries(source, array("d", times), counts, lambda _: 0)
    return History(
        source,
        record.times,
        counts,
        columns,
        None if load is None else array("d", (load[time] for time in times)),
        (*notes, *gaps(record)),
        _throttled(answers.get(STARTS, ())),
    )


def _throttled(all_series: Sequence[PrometheusSeries]) -> dict[str, float]:
    """The median of `starts` by container. Example: 0.5 of 0.4, 0.5 and 0.9."""
    return {
        series.labels[CONTAINER]: statistics.median(series.values.values())
        for series in all_series
        if CONTAINER in series.labels and len(series.values) >= _FEWEST_STARTS
    }


def _single(name: str, all_series: Sequence[PrometheusSeries]) -> Mapping[float, float]:
    """The values of the expression's only series. Raises ScenarioError."""
    if len(all_series) != 1:
        labels = ", ".join(sorted({label for series in all_series for label in series.labels})[:10])
        raise ScenarioError(
            f"{name}: must be a single series, but has {len(all_series)} (by {labels}): sum them"
        )
    return all_series[0].values


def _by_container(
    name: str, all_series: Sequence[PrometheusSeries], shares: Mapping[str, UsageShare], notes: list[str]
) -> dict[str, Mapping[float, float]]:
    """The values of each of the workload's containers."""
    if len(all_series) == 1 and CONTAINER not in all_series[0].labels:
        whole = all_series[0].values
        return {
            container: {time: value * getattr(share, name) for time, value in whole.items()}
            for container, share in shares.items()
        }
    known: dict[str, Mapping[float, float]] = {}
    for series in all_series:
        container = series.labels.get(CONTAINER)
        if container is None or container in known:
            raise ScenarioError(
                f"{name}: must be a single series, or a series for each value of the label {CONTAINER}"
            )
        known[container] = series.values
    if others := sorted(known.keys() - shares.keys()):
        notes.append(f"{name} of {', '.join(others)} is left out: the pod template has no such container")
    if absent := sorted(shares.keys() - known.keys()):
        raise ScenarioError(
            f"{name}: has no series of container {', '.join(absent)}, only of {', '.join(sorted(known))}"
        )
    return {container: known[container] for container in shares}
