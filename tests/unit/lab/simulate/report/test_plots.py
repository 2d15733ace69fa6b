"""Which lines are drawn, and which of their points."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.model import SimulationEvent
from hvpa_lab.simulate.report.plots import COLOURS, choose, colour, dash, panels, thin, value_in_unit
from tests.unit.lab.simulate.report.results import GIB, policy, result, series

VALUES = st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, -3.0]) | st.floats(-1e6, 1e6), max_size=300)
LIMITS = st.integers(4, 60)


@given(VALUES, LIMITS)
def test_thinning_keeps_ends_extremes_and_order(values: list[float], limit: int) -> None:
    kept = thin(values, limit)
    assert len(kept) <= limit
    assert all(before < after for before, after in pairwise(kept))
    assert set(kept) <= set(range(len(values)))
    if values:
        assert (kept[0], kept[-1]) == (0, len(values) - 1)
        chosen = [values[index] for index in kept]
        assert (min(chosen), max(chosen)) == (min(values), max(values))


@given(VALUES, LIMITS)
def test_a_line_of_few_corners_is_kept_exactly(values: list[float], limit: int) -> None:
    kept = thin(values, limit)
    corners = [
        index
        for index in range(1, len(values) - 1)
        if not values[index - 1] == values[index] == values[index + 1]
    ]
    if len(corners) + 2 <= limit:
        redrawn = [values[max(index for index in kept if index <= at)] for at in range(len(values))]
        assert redrawn == values


@given(st.lists(st.floats(0, 100), min_size=50, max_size=300))
def test_each_stretch_keeps_its_extremes(values: list[float]) -> None:
    kept = thin(values, 22)
    if len(kept) < len(values) and len(set(values)) == len(values):
        inner = len(values) - 2
        for bucket in range(10):
            begin, end = 1 + inner * bucket // 10, 1 + inner * (bucket + 1) // 10
            chosen = [values[index] for index in kept if begin <= index < end]
            assert {min(values[begin:end]), max(values[begin:end])} == set(chosen)


def test_a_month_is_thinned_to_what_shows() -> None:
    month = array("d", (index * 7919 % 1009 for index in range(172_800)))
    assert 1900 < len(thin(month)) <= 2000


def test_there_is_a_panel_for_each_question() -> None:
    drawn = panels(result())
    assert [(panel.title, panel.unit) for panel in drawn] == [
        ("Load", "as recorded"),
        ("Requested CPU (replicas × request) and demand (grey)", "cores"),
        ("Capacity of ready pods and demand (grey)", "cores"),
        ("Replicas and ready (dotted)", "pods"),
        ("CPU request per pod", "cores"),
        ("Memory request per pod", "GiB"),
        ("Unmet demand", "cores"),
    ]
    load, requested, capacity, replicas, cpu, memory, unmet = (panel.lines for panel in drawn)
    assert [(line.policy, line.name) for line in load] == [(None, "load")]
    assert [line.name for line in requested] == ["demand", "hvpa", "hpa"]
    assert requested[1].values == (1.0, 1.0, 2.0, 2.0)
    assert [(line.policy, line.name, line.steps) for line in capacity] == [
        (None, "demand", False),
        (0, "hvpa", True),
        (1, "hpa", True),
    ]
    assert capacity[1].values == (1.0, 1.0, 2.0, 2.0)
    assert [(line.name, line.dash) for line in replicas[:2]] == [("hvpa: ready", "dot"), ("hvpa", "solid")]
    assert replicas[0].values == (2.0, 2.0, 4.0)
    assert replicas[0].indices == (0, 2, 3)
    assert cpu[0].values == (0.5, 0.5)
    assert memory[1].values == (1.0, 1.0)
    assert [line.policy for line in unmet] == [0, 1]


def test_demand_that_differs_is_drawn_for_each() -> None:
    other = policy("hpa", series=series(base=100.0))
    (panel,) = [panel for panel in panels(result(policy(), other)) if panel.title.startswith("Capacity")]
    assert panel.title == "Capacity of ready pods and demand (dotted)"
    assert [line.name for line in panel.lines] == ["hvpa: demand", "hpa: demand", "hvpa", "hpa"]


def test_pods_that_are_always_ready_need_no_line_of_their_own() -> None:
    (panel,) = [panel for panel in panels(result(policy(series=series([3, 3, 3])))) if panel.unit == "pods"]
    assert (panel.title, [line.name for line in panel.lines]) == ("Replicas", ["hvpa"])


def test_the_containers_of_a_pod_are_added() -> None:
    short_series = series()
    requests = {**short_series.requests, ("proxy", "cpu"): array("d", [100.0] * 4)}
    drawn = panels(result(policy(series=replace(short_series, requests=requests))))
    assert drawn[4].lines[0].values == (0.6, 0.6)


def test_a_pod_without_requests_has_an_empty_line() -> None:
    drawn = panels(result(policy(series=replace(series(), requests={}))))
    assert drawn[4].lines[0].values == drawn[5].lines[0].values == ()


def test_without_policies_there_is_nothing_to_draw() -> None:
    assert panels(replace(result(), policies=())) == ()


def test_names_in_lines_are_safe_to_show() -> None:
    drawn = panels(result(policy("a\x1b\n")))
    assert drawn[-1].lines[0].name == "a\\x1b\\x0a"


def test_policies_beyond_the_colours_have_another_kind_of_line() -> None:
    looks = [(colour(index), dash(index)) for index in range(3 * len(COLOURS))]
    assert len(set(looks)) == len(looks)


@pytest.mark.parametrize(
    ("value", "reported"),
    [(1500.0, 1.5), (1234567.8, 1234.57), (-0.0, 0.0), (float("inf"), None), (float("nan"), None)],
)
def test_values_are_reported_in_larger_units(value: float, reported: float | None) -> None:
    assert repr(value_in_unit(value, 1000.0)) == repr(reported)
    assert value_in_unit(GIB, GIB) == 1.0


EVENTS = st.lists(
    st.builds(
        SimulationEvent,
        st.floats(0, 1e6),
        st.sampled_from(["OOM", "Replicas", "Blocked", "Event", "of another kind"]),
        st.just(""),
        st.text(max_size=3),
    ),
    max_size=25,
)


@given(EVENTS, st.integers(0, 20))
def test_where_there_are_too_many_events_what_hurts_is_kept(
    events: list[SimulationEvent], limit: int
) -> None:
    chosen = choose(events, limit)
    assert len(chosen) == min(limit, len(events))
    assert [event.time for event in chosen] == sorted(event.time for event in chosen)
    hurt = [event for event in events if event.kind == "OOM"]
    assert sum(event.kind == "OOM" for event in chosen) == min(limit, len(hurt))
    left = sorted(events)
    for event in chosen:
        left.remove(event)


def test_events_that_are_left_out_are_spread_over_the_time() -> None:
    many = [SimulationEvent(float(time), "Replicas", "", "") for time in range(1000)]
    assert [event.time for event in choose(many, 4)] == [0.0, 250.0, 500.0, 750.0]
