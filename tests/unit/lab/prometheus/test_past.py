"""The past usage of workloads: what is queried, and what is read from the answers, whatever these are."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.duration import DAY
from hvpa.api.values.quantity import Resource
from hvpa_lab.prometheus.past import PastUsage, past_usage
from hvpa_lab.prometheus.usage import DAYS_AT_ONCE, expressions, spans
from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.history.answers import PrometheusSeries, merged, series_in

WEB = {"namespace": "shop", "owner_kind": "Deployment", "owner_name": "web"}
APP = {**WEB, "container": "app"}
NAMES = sorted(expressions(None, 3600.0))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
LABELS = st.dictionaries(
    st.sampled_from([*APP, "pod"]), st.sampled_from(["", "shop", "web", "Deployment", "app"]), max_size=5
)
NUMBERS = st.one_of(
    st.floats().map(str), st.sampled_from(["NaN", "+Inf", "-Inf", "1e400", "0", "0.5", "1_0", "x"]), JSON
)
PAIRS = st.one_of(st.tuples(st.integers(0, 10).map(lambda day: day * DAY), NUMBERS).map(list), JSON)
SERIES = st.fixed_dictionaries({"metric": LABELS, "values": st.lists(PAIRS, max_size=4)}) | JSON
ANSWERS = st.fixed_dictionaries({
    "status": st.sampled_from(["success", "error", ""]),
    "data": st.fixed_dictionaries(
        {"resultType": st.sampled_from(["matrix", "vector"]), "result": st.lists(SERIES, max_size=3)}
    ),
})  # fmt: skip


def series(labels: dict[str, str], *values: float) -> PrometheusSeries:
    """A series with a value per day."""
    return PrometheusSeries(labels, {day * DAY: value for day, value in enumerate(values)})


def test_usage_is_the_mean_of_days_and_sizes_are_those_of_the_worst_day() -> None:
    answers = {
        "cpu": [series(WEB, 1.0, 2.0)],
        "memory": [series(WEB, 2e9, 4e9)],
        "replicas": [series(WEB, 3.0, 4.0)],
        "busiest cpu": [series(APP, 0.25, 0.5), series({**WEB, "container": "proxy"}, 0.01)],
        "busiest memory": [series(APP, 8e8, 9e8)],
    }
    usage = past_usage(answers)["shop", "Deployment", "web"]
    busiest: dict[str, dict[Resource, int]] = {
        "app": {"cpu": 500, "memory": 900_000_000},
        "proxy": {"cpu": 10},
    }
    assert usage == PastUsage(2, 3.5, {"cpu": 1500, "memory": 3_000_000_000}, busiest)


def test_days_are_those_with_both_cpu_and_memory() -> None:
    answers = {"cpu": [series(WEB, 1.0, 2.0, 3.0)], "memory": [series(WEB, 2e9)]}
    assert past_usage(answers)["shop", "Deployment", "web"].days == 1


@pytest.mark.parametrize("label", sorted(WEB))
def test_series_of_no_workload_are_left_out(label: str) -> None:
    for labels in ({**WEB, label: ""}, {name: text for name, text in WEB.items() if name != label}):
        assert past_usage({"cpu": [series(labels, 1.0)]}) == {}


def test_a_workload_without_usage_is_left_out() -> None:
    assert past_usage({"replicas": [series(WEB, 1.0)], "busiest cpu": [series(APP, 1.0)]}) == {}
    assert past_usage({"cpu": [series(WEB)]}) == {}


@given(st.lists(st.tuples(st.sampled_from(NAMES), ANSWERS | JSON), max_size=6))
def test_every_answer_is_read_or_refused_in_words(given: list[tuple[str, Any]]) -> None:
    answers: dict[str, list[PrometheusSeries]] = {}
    for name, answer in given:
        with suppress(ScenarioError):
            answers.setdefault(name, []).extend(series_in(name, json.dumps(answer).encode()))
    usage = past_usage({name: merged([series_list]) for name, series_list in answers.items()})
    for key, past in usage.items():
        assert all(key)
        assert past.days >= 1
        assert past.replicas is None or past.replicas >= 0
        for amounts in (past.used, *past.busiest.values()):
            assert all(amount >= 0 for amount in amounts.values())


# --- the queries -----------------------------------------------------------------------------------------------------
@given(st.integers(1, 400))
def test_every_day_is_queried_once(days: int) -> None:
    until = 500 * DAY
    found = [
        first + number * DAY
        for first, last in spans(until, days)
        for number in range(round((last - first) / DAY) + 1)
    ]
    assert found == [until - day * DAY for day in range(days - 1, -1, -1)]
    assert all((last - first) / DAY < DAYS_AT_ONCE for first, last in spans(until, days))


def test_a_namespace_restricts_every_metric() -> None:
    for query in expressions('sh"op', 1.5).values():
        metrics = query.count("kube_pod_owner{") + query.count("kube_replicaset_owner{")
        metrics += query.count("container_cpu_usage_seconds_total{")
        metrics += query.count("container_memory_working_set_bytes{")
        assert query.count('namespace="sh\\"op"') == metrics >= 4
        assert "[1d:1500ms]" in query
        assert not re.search(r"\{[a-z]+\}", query), "all placeholders have a value"
    assert 'namespace="' not in "".join(expressions(None, 600.0).values())
