"""Responses of Prometheus as loads: what is read, and what is refused with its line and field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.load.prometheus import read_range
from hvpa_lab.simulate.load.series import RecordedSeries, gaps

A = {"metric": {"zone": "a", "job": "web"}, "values": [[0, "1"], [60, "2"], [120, "3"]]}
B = {"metric": {"zone": "b", "job": "web"}, "values": [[60, "10"], [120.0, "20.5"]]}


def response(*series: object, **other: object) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}} | other


def read(content: object, series: Any = None, total: bool = False) -> list[tuple[float, float]]:
    record = read_range("range.json", json.dumps(content), series, total)
    return list(zip(record.times, record.values, strict=True))


def test_the_only_series_needs_no_choice() -> None:
    assert read(response(A)) == [(0, 1), (60, 2), (120, 3)]
    assert read(response(A), total=True) == [(0, 1), (60, 2), (120, 3)]


def test_a_series_is_chosen_by_its_number_or_its_labels() -> None:
    second = [(60, 10), (120, 20.5)]
    assert read(response(A, B), series=1) == second
    assert read(response(A, B), series={"zone": "b"}) == second
    assert read(response(A, B), series={"zone": "b", "job": "web"}) == second


def test_a_sum_is_of_the_series_that_have_a_value_at_the_time() -> None:
    once = {"metric": {}, "values": [[180, "7"]]}
    assert read(response(A, B, once), total=True) == [(0, 1), (60, 12), (120, 23.5), (180, 7)]


def test_gaps_are_reported_with_the_line_of_the_value_before() -> None:
    series = {"metric": {}, "values": [[0, "1"], [60, "2"], [120, "3"], [600, "4"], [660, "5"]]}
    text = json.dumps(response(series), indent=1)
    line = next(number for number, row in enumerate(text.splitlines(), 1) if "120" in row)
    (note,) = gaps(read_range("range.json", text, None, False))
    # The pair opens one line above its time.
    assert note == f"range.json:{line - 1}: no values for 8m from 1970-01-01T00:02:00Z; held at 3"
    (note,) = gaps(read_range("range.json", json.dumps(response(A, series)), None, True))
    assert note.startswith("range.json:1: no values for 8m")


def broken(*path: str | int, value: object) -> dict[str, Any]:
    """A response with another value at this path below data.result."""
    content = json.loads(json.dumps(response(A)))
    place = content["data"]["result"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return dict(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (3, "is no response of Prometheus"),
        ([], "is no response of Prometheus"),
        ({}, "is no response of Prometheus"),
        (
            {"status": "error", "error": "parse\nerror \ud800"},
            "status: Prometheus responded with an error: parse error",
        ),
        ({"status": "error"}, "status: Prometheus responded with an error: unknown"),
        ({"status": "success"}, "data.resultType: must be matrix"),
        ({"status": "success", "data": []}, "data.resultType: must be matrix"),
        (
            {"status": "success", "data": {"resultType": "vector", "result": []}},
            "data.resultType: must be matrix",
        ),
        ({"status": "success", "data": {"resultType": "matrix"}}, "data.result: has no series"),
        (response(), "data.result: has no series"),
        (response(3), "data.result[0].values: must be a list"),
        (response({"histograms": []}), "data.result[0].values: must be a list"),
        (response({"values": []}), "data.result[0].values: there are no values"),
        (response({"values": [[0, "1"]]}), "data.result[0].values: there is only one value"),
        (broken(0, "values", 1, value=[60]), "data.result[0].values[1]: must be a pair"),
        (broken(0, "values", 1, value="60"), "data.result[0].values[1]: must be a pair"),
        (broken(0, "values", 1, 0, value="60"), "data.result[0].values[1][0]: must be a time"),
        (broken(0, "values", 1, 0, value=True), "data.result[0].values[1][0]: must be a time"),
        (broken(0, "values", 1, 0, value=-1), "data.result[0].values[1][0]: must be a time"),
        (broken(0, "values", 1, 0, value=float("nan")), "data.result[0].values[1][0]: must be a time"),
        (broken(0, "values", 1, 0, value=10**400), "data.result[0].values[1][0]: must be a time"),
        (broken(0, "values", 1, 1, value=60), "data.result[0].values[1][1]: must be a number as text"),
        (broken(0, "values", 1, 1, value="x"), "data.result[0].values[1][1]: must be a number as text"),
        (broken(0, "values", 1, 1, value="1_0"), "data.result[0].values[1][1]: must be a number as text"),
        (broken(0, "values", 1, 1, value="NaN"), "data.result[0].values[1][1]: nan is not a load"),
        (broken(0, "values", 1, 1, value="+Inf"), "data.result[0].values[1][1]: inf is not a load"),
        (broken(0, "values", 1, 1, value="-3"), "data.result[0].values[1][1]: -3 is negative"),
        (
            broken(0, "values", 1, 0, value=120),
            "data.result[0].values: 1970-01-01T00:02:00Z stands there twice",
        ),
        (broken(0, "values", 1, 0, value=130), "data.result[0].values: 1970-01-01T00:02:00Z comes after"),
        (response(A, B), "data.result: has 2 series: set series to choose, or sum: true to add them"),
    ],
)
def test_what_is_wrong_is_reported_with_its_field(content: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(content)
    assert str(caught.value).startswith("range.json:1: ")
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (2, "data.result: has 2 series: there is no number 2"),
        ({"zone": "c"}, 'data.result: no series have the labels {"zone": "c"}'),
        ({"job": "web"}, 'data.result: 2 series have the labels {"job": "web"}'),
    ],
)
def test_a_choice_that_is_none_is_refused(series: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(response(A, B), series=series)
    assert message in str(caught.value)


def test_labels_are_looked_for_in_what_is_a_series_only() -> None:
    assert read(response(3, {"metric": 3}, B), series={"zone": "b"})[0] == (60, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "range.json:1: not JSON: Expecting value (column 1)"),
        ('{"status":\n\n nope}', "range.json:3: not JSON: Expecting value (column 2)"),
        ("[" * 100_000, "range.json:1: not JSON that can be read"),
        ("9" * 5000, "range.json:1: not JSON that can be read"),
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_range("range.json", text, None, False)
    assert message in str(caught.value)


def test_the_line_is_that_of_the_value_that_is_wrong() -> None:
    content = response({"metric": {'a,]"b': "}:"}, "values": [[0, "1"], [60, "-1"]]})
    text = json.dumps(content, indent=1)
    line = next(number for number, row in enumerate(text.splitlines(), 1) if '"-1"' in row)
    with pytest.raises(ScenarioError, match=rf"^range.json:{line}: data.result\[0\].values\[1\]\[1\]: -1 is"):
        read_range("range.json", text, None, False)


def test_the_line_of_what_is_missing_is_that_of_what_is_around_it() -> None:
    with pytest.raises(ScenarioError, match=r"^range.json:3: data.resultType: must be matrix"):
        read_range("range.json", '{\n"status": "success",\n"data": {}}', None, False)


def test_json_that_is_no_yaml_is_refused_without_its_line() -> None:
    with pytest.raises(ScenarioError, match=r"^range.json:1: status: Prometheus responded with an error"):
        read_range("range.json", '{\n"status":\n"\\ud800"}', None, False)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("1"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["status", "data", "result", "values", "metric", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def _outcome(text: str, series: Any, total: bool) -> RecordedSeries | str:
    try:
        return read_range("range.json", text, series, total)
    except ScenarioError as error:
        return str(error)


@given(_JSON, st.integers(0, 2) | st.none() | st.just({"a": "b"}), st.booleans(), st.sampled_from([None, 1]))
def test_any_json_is_a_record_or_refused(content: Any, series: Any, total: bool, indent: int | None) -> None:
    for whole in (
        content,
        response(content),
        response({"values": content}),
        response({"values": [[0, "1"], content]}),
    ):
        outcome = _outcome(json.dumps(whole, indent=indent), series, total)
        if isinstance(outcome, str):
            assert outcome.startswith("range.json:")
            assert outcome.isprintable()
        else:
            assert len(outcome.times) == len(outcome.values) >= 2


@given(st.text(max_size=60))
def test_any_text_is_a_record_or_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        read_range("range.json", text, None, True)


@given(st.dictionaries(st.integers(0, 10**10), st.floats(0, 1e15), min_size=2), st.sampled_from([None, 2]))
def test_values_come_back_as_written(series: dict[int, float], indent: int | None) -> None:
    wanted = sorted(series.items())
    values = [[time, repr(value)] for time, value in wanted]
    text = json.dumps(response({"metric": {}, "values": values}), indent=indent)
    record = read_range("range.json", text, None, False)
    assert list(zip(record.times, record.values, strict=True)) == wanted
