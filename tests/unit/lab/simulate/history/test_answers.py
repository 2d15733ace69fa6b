"""Histories out of Prometheus' answers: what is read, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.answers import (
    PrometheusSeries,
    history_of,
    merged,
    missing_expressions,
    series_in,
)
from hvpa_lab.simulate.history.table import UsageShare

ONE = {"app": UsageShare(1.0, 1.0)}
TWO = {"app": UsageShare(0.75, 0.5), "proxy": UsageShare(0.25, 0.5)}


def answer(*series: tuple[dict[str, str], list[Any]]) -> bytes:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


def one(values: Mapping[float, float], **labels: str) -> list[PrometheusSeries]:
    return [PrometheusSeries(labels, values)]


def test_series_have_labels_and_values_and_what_is_no_number_is_missing() -> None:
    text = answer(({"container": "app"}, [[0, "1.5"], [60, "NaN"], [120, "+Inf"], [180, "2"]]), ({}, []))
    assert series_in("cpu", text) == [
        PrometheusSeries({"container": "app"}, {0.0: 1.5, 180.0: 2.0}),
        PrometheusSeries({}, {}),
    ]


def test_answers_of_several_days_are_put_together() -> None:
    chunks = [
        [PrometheusSeries({"a": "1"}, {0.0: 1.0}), PrometheusSeries({"a": "2"}, {})],
        [PrometheusSeries({"a": "1"}, {60.0: 2.0})],
    ]
    assert merged(chunks) == [PrometheusSeries({"a": "1"}, {0.0: 1.0, 60.0: 2.0})]
    assert missing_expressions({"cpu": merged(chunks), "memory": [], "starts": []}) == ["memory"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"<html>", "is not a Prometheus response: it begins with '<html>'"),
        (b"", "is not a Prometheus response"),
        (b'{"status": 3}', "is not a Prometheus response"),
        (b"[" * 100_000, "is not a Prometheus response"),
        (b"\xff", "is not a Prometheus response"),
        (b'{"status": "error", "error": "parse error: oops"}', "Prometheus responded with an error: parse error: oops"),
        (b"{}", "Prometheus responded with an error: unknown"),
        (b'{"status": "success", "data": {"resultType": "vector", "result": []}}', "the Prometheus response has no"),
        (b'{"status": "success", "data": {"resultType": "matrix", "result": 3}}', "the Prometheus response has no"),
        (b'{"status": "success", "data": {"resultType": "matrix", "result": [3]}}', "a series of Prometheus'"),
        (b'{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}', "a series of"),
        (answer(({}, [3])), "3 is not a pair of time and value"),
        (answer(({}, [[1]])), "[1] is not a pair of time and value"),
        (answer(({}, [["noon", "1"]])), "noon is not a time in unix seconds"),
        (answer(({}, [[True, "1"]])), "True is not a time in unix seconds"),
        (answer(({}, [[1, 1]])), "'1' is not a number as text"),
        (answer(({}, [[1, "1_0"]])), "'1_0' is not a number as text"),
        (answer(({}, [[1, "-1"]])), "-1 is negative"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        series_in("cpu", text)
    assert str(refused.value).startswith(f"cpu: {reason}")


def test_a_row_is_a_time_at_which_all_is_known() -> None:
    history = history_of(
        "it",
        {
            "cpu": one({0.0: 1.0, 60.0: 2.0, 120.0: 3.0, 300.0: 4.0}, container="app"),
            "memory": one({0.0: 10.0, 60.0: 20.0, 120.0: 30.0, 180.0: 1.0, 300.0: 40.0}, container="app"),
            "replicas": one({0.0: 2.0, 60.0: 2.0, 120.0: 3.0, 300.0: 3.0}),
            "load": one({0.0: 5.0, 60.0: 6.0, 120.0: 7.0, 300.0: 8.0, 360.0: 9.0}),
        },
        ONE,
    )
    assert (list(history.times), list(history.load or ())) == ([0, 60, 120, 300], [5, 6, 7, 8])
    assert list(history.containers["app"].memory) == [10, 20, 30, 40]
    assert history.notes == ("it: no values for 3m from 1970-01-01T00:02:00Z; held at 3",)


def test_throttled_starts_are_the_median_of_two_or_more_values() -> None:
    starts = [
        *one({0.0: 0.4, 60.0: 0.9, 600.0: 0.5}, container="app"),
        *one({0.0: 1.0}, container="rare"),
        *one({0.0: 1.0, 60.0: 1.0}),
    ]
    answers = {"cpu": one(SOME), "memory": one(SOME), "replicas": one(SOME), "starts": starts}
    assert history_of("it", answers, ONE).throttled_starts == {"app": 0.5}


def test_containers_share_what_is_not_told_apart() -> None:
    values = {0.0: 4.0, 60.0: 8.0}
    answers = {"cpu": one(values), "memory": one(values), "replicas": one(values)}
    history = history_of("it", answers, TWO)
    assert [list(used.cpu) for used in history.containers.values()] == [[3, 6], [1, 2]]
    assert history.load is None


def test_containers_that_the_template_does_not_have_are_left_out() -> None:
    values = {0.0: 4.0, 60.0: 8.0}
    both = [*one(values, container="app"), *one(values, container="istio")]
    history = history_of(
        "it", {"cpu": both, "memory": one(values, container="app"), "replicas": one(values)}, ONE
    )
    assert history.notes == ("cpu of istio is left out: the pod template has no such container",)


SOME = {0.0: 1.0, 60.0: 1.0}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"replicas": [*one(SOME, pod="a"), *one(SOME, pod="b")]}, "replicas: must be a single series, but has 2"),
        ({"cpu": [*one(SOME, pod="a"), *one(SOME, pod="b")]}, "cpu: must be a single series, or a series for each"),
        ({"cpu": [*one(SOME, container="a", pod="a"), *one(SOME, container="a", pod="b")]}, "cpu: must be a single"),
        ({"cpu": one(SOME, container="other")}, "cpu: has no series of container app, only of other"),
        ({"load": one({0.0: 1.0}), "cpu": one({0.0: 1.0, 60.0: 2.0, 120.0: 3.0}),
          "replicas": one({0.0: 1.0, 60.0: 1.0, 120.0: 1.0}), "memory": one({0.0: 1.0, 60.0: 1.0, 120.0: 1.0})},
         "load: has values at 1 of the 3 times with usage"),
        ({"replicas": one({30.0: 1.0})}, "it: CPU, memory and replicas are known together at no times: no history"),
        ({"replicas": one({60.0: 1.0})}, "it: CPU, memory and replicas are known together at 1 times: no history"),
    ],
)  # fmt: skip
def test_answers_that_make_no_history_are_refused(
    changed: dict[str, list[PrometheusSeries]], reason: str
) -> None:
    answers = {"cpu": one(SOME), "memory": one(SOME), "replicas": one(SOME), **changed}
    with pytest.raises(ScenarioError) as refused:
        history_of("it", answers, ONE)
    assert str(refused.value).startswith(reason)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3),
    max_leaves=10,
)


@given(anything | st.fixed_dictionaries({"status": st.just("success"), "data": st.fixed_dictionaries(
    {"resultType": st.just("matrix"), "result": st.lists(st.fixed_dictionaries(
        {"metric": anything, "values": anything}), max_size=3)})}))  # fmt: skip
def test_any_json_is_read_or_refused_in_one_line(content: Any) -> None:
    refusal = ""
    try:
        series_in("cpu", json.dumps(content).encode())
    except ScenarioError as error:
        refusal = str(error)
    assert refusal == "" or (refusal.startswith("cpu: ") and refusal.isprintable())


series = st.builds(
    PrometheusSeries,
    st.dictionaries(
        st.sampled_from(["container", "pod"]), st.sampled_from(["app", "proxy", "b"]), max_size=2
    ),
    st.dictionaries(st.integers(0, 5).map(lambda at: at * 60.0), st.floats(0, 1e9), min_size=1),
)


@given(*[st.lists(series, min_size=1, max_size=3)] * 3, st.none() | st.lists(series, min_size=1, max_size=2))
def test_any_series_make_a_history_or_are_refused(
    cpu: list[PrometheusSeries],
    memory: list[PrometheusSeries],
    replicas: list[PrometheusSeries],
    load: list[PrometheusSeries] | None,
) -> None:
    answers = {"cpu": cpu, "memory": memory, "replicas": replicas} | ({} if load is None else {"load": load})
    with suppress(ScenarioError):
        history = history_of("it", answers, TWO)
        assert list(history.times) == sorted(set(history.times))
        assert set(history.containers) == set(TWO)
        assert len(history.times) == len(history.total("memory")) >= 2
