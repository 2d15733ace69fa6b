"""Recorded series: how they become steps, which are gaps, and what noise does."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.errors import ScenarioError
from hvpa_lab.simulate.load.formula import Formula, FormulaError
from hvpa_lab.simulate.load.series import (
    MAX_LOAD,
    RecordedSeries,
    StepLoad,
    checked_record,
    computed,
    gaps,
    problem_of,
    scaled_values,
    steps_of,
)

START = 1_767_571_200.0  # 2026-01-05T00:00:00Z


def record(
    *pairs: tuple[float, float], line: Callable[[int], int] = lambda index: index + 2
) -> RecordedSeries:
    """A record of (seconds since START, value)."""
    times, values = array("d", (START + time for time, _ in pairs)), array("d", (value for _, value in pairs))
    return checked_record("load.csv", times, values, line, ("timestamp", "value"))


# --- steps ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pairs", "step", "steps"),
    [
        pytest.param(
            [(0, 10), (30, 20), (60, 0)], 15, [10, 10, 20, 20, 0, 0, 0, 0], id="held until the next one"
        ),
        pytest.param(
            [(0, 10), (40, 20), (80, 30)],
            15,
            [10, 10, 10, 20, 20, 20, 30],
            id="between two steps: from the next step on",
        ),
        pytest.param(
            [(0, 1), (5, 2), (10, 6), (15, 7), (20, 100), (25, 7)], 10, [1.5, 6.5, 53.5], id="finer: the mean"
        ),
        pytest.param([(0, 0), (4, 10), (8, 10), (12, 30)], 10, [6.0, 26.0], id="finer and uneven: the mean"),
        pytest.param(
            [(0, 1), (1, 2), (2, 3), (30, 5)], 10, [2.7, 3, 3, 5], id="a gap of a fine record: held"
        ),
    ],
)
def test_values_become_steps_and_are_never_interpolated(
    pairs: list[tuple[float, float]], step: float, steps: list[float]
) -> None:
    assert list(steps_of(record(*pairs), step, len(steps), repeat=False)) == pytest.approx(steps)


def test_a_record_repeats_after_the_usual_step_of_its_last_value() -> None:
    series = record((0, 1), (15, 2), (30, 3))
    assert series.length == 45
    assert list(steps_of(series, 15, 8, repeat=True)) == [1, 2, 3, 1, 2, 3, 1, 2]
    assert list(steps_of(series, 30, 3, repeat=True)) == [1.5, 2, 2.5]


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9)), min_size=2, max_size=30),
    st.integers(1, 60),
    st.booleans(),
)
def test_steps_are_what_was_held(deltas: list[tuple[int, int]], step: int, repeat: bool) -> None:
    times, now = [], 0
    for delta, _ in deltas:
        times.append(now)
        now += delta
    series = record(*((time, value) for time, (_, value) in zip(times, deltas, strict=True)))
    length = series.length

    def held(time: float) -> float:
        time = time % length if repeat else time
        return next(
            value for at, (_, value) in reversed(list(zip(times, deltas, strict=True))) if at <= time + 1e-9
        )

    steps = list(steps_of(series, step, 20, repeat))
    if series.usual_step < step:
        # Half seconds are exact: all changes are at whole or half seconds.
        wanted = [statistics.fmean(held(i * step + k / 2) for k in range(2 * step)) for i in range(20)]
        assert steps == pytest.approx(wanted)
    else:
        assert steps == [held(i * step) for i in range(20)]


def test_the_load_at_a_time_is_that_of_its_step() -> None:
    load = StepLoad(array("d", [1, 2, 3]), 0.1)
    assert [load.at(seconds) for seconds in (0, 0.05, 0.1, 0.1 + 0.2 - 0.1, 0.2, 0.3, 99)] == [
        1,
        1,
        2,
        3,
        3,
        3,
        3,
    ]


def test_every_step_finds_its_value_however_times_are_rounded() -> None:
    count = 5000
    load = StepLoad(array("d", range(count)), 0.7)
    assert [load.at(i * 0.7) for i in range(count)] == list(range(count))


# --- what is no load ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "load.csv:1: value: there are no values: a load has two or more"),
        ([(0, 1)], "load.csv:2: value: there is only one value: a load has two or more"),
        ([(0, 1), (15, 1), (15, 2)], "load.csv:4: timestamp: 2026-01-05T00:00:15Z stands there twice"),
        (
            [(0, 1), (30, 1), (15, 2)],
            "load.csv:4: timestamp: 2026-01-05T00:00:15Z comes after 2026-01-05T00:00:30Z: not in order",
        ),
    ],
)
def test_a_record_needs_two_values_in_order(pairs: list[tuple[float, float]], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        record(*pairs)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0.0, None),
        (MAX_LOAD, None),
        (-1.5, "-1.5 is negative"),
        (float("nan"), "nan is not a load"),
        (float("inf"), "inf is not a load"),
        (float("-inf"), "-inf is not a load"),
        (2e15, "2e+15 is larger than 1e+15"),
    ],
)
def test_what_is_no_load(value: float, problem: str | None) -> None:
    assert problem_of(value) == problem


def test_a_formula_that_falls_below_zero_is_refused_with_the_time() -> None:
    with pytest.raises(FormulaError, match=r"-1 is negative, at t = 45 \(max\(0, …\)"):
        list(computed(Formula("2 - t / 15"), 15, 10))
    assert list(computed(Formula("2 - t / 15"), 15, 3)) == [2, 1, 0]


# --- gaps -----------------------------------------------------------------------------------------------------------
def test_a_series_without_gaps_has_no_notes() -> None:
    assert gaps(record((0, 1), (10, 1), (20, 1), (35, 1))) == ()


def test_a_gap_is_reported_with_its_line_length_time_and_what_is_held() -> None:
    series = record((0, 1), (300, 31.5), (300 + 7500, 2), (8100, 2), (8400, 2))
    assert gaps(series) == ("load.csv:3: no values for 2h5m from 2026-01-05T00:05:00Z; held at 31.5",)


def test_of_many_gaps_five_are_reported_and_the_others_counted() -> None:
    pairs, now = [], 0.0
    for index in range(40):
        pairs.append((now, float(index)))
        now += 60 if index % 5 == 0 else 15
    reported = gaps(record(*pairs))
    assert len(reported) == 6
    assert reported[4].startswith("load.csv:22: no values for 1m from ")
    assert reported[5] == "load.csv: 3 more gaps, held at the last value before each"


# --- scale and noise ------------------------------------------------------------------------------------------------
def test_scale_multiplies() -> None:
    assert list(scaled_values(iter([1.0, 2.0]), 2.5, 0, seed=1)) == [2.5, 5]


def test_noise_is_the_seeds_and_has_the_deviation_that_is_asked_for() -> None:
    values = scaled_values(iter([100.0] * 20_000), 2, 0.1, seed=7)
    assert values == scaled_values(iter([100.0] * 20_000), 2, 0.1, seed=7)
    assert values != scaled_values(iter([100.0] * 20_000), 2, 0.1, seed=8)
    assert statistics.fmean(values) == pytest.approx(200, rel=0.01)
    assert statistics.stdev(values) == pytest.approx(20, rel=0.05)


def test_the_first_values_may_be_calm() -> None:
    values = scaled_values(iter([100.0] * 100), 2, 0.1, seed=7, calm=40)
    assert set(values[:40]) == {200.0}
    assert len(set(values)) == 61
    assert list(scaled_values(iter([100.0]), 1, 0.1, seed=7, calm=40)) == [100.0]


def test_noise_never_makes_a_load_negative() -> None:
    assert min(scaled_values(iter([100.0] * 1000), 1, 1, seed=1)) == 0
