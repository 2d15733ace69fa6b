"""A history's parts, and the shape of its days."""

from __future__ import annotations

import datetime as dt

import pytest

from hvpa.api.values.duration import DAY
from hvpa_lab.simulate.history.pattern import Rise, pattern, quantile
from tests.unit.lab.simulate.history.build import DAY_ROWS, START, STEP, history, wave


def test_its_length_ends_with_the_last_row() -> None:
    past = history(3)
    assert (past.length, past.start) == (3 * STEP, dt.datetime.fromtimestamp(START, dt.UTC))
    assert list(history(2, containers=("a", "b")).total("memory")) == pytest.approx(
        list(history(2).total("memory"))
    )


@pytest.mark.parametrize(("seconds", "rows"), [(DAY, DAY_ROWS), (1e9, 2 * DAY_ROWS), (1, 2)])
def test_the_last_rows(seconds: float, rows: int) -> None:
    past = history().last(seconds)
    assert [
        len(column) for column in (past.times, past.replicas, past.containers["app"].cpu, past.load or ())
    ] == [rows] * 4
    assert past.times[-1] == history().times[-1]
    assert history(load=None).last(seconds).load is None


def test_a_wave_follows_the_day() -> None:
    past = history()
    shape = pattern(past.times, [wave(row) for row in range(len(past.times))])
    assert (shape.lowest, shape.highest, shape.is_daily) in [(0, 11, True), (0, 12, True), (23, 11, True)]
    assert shape.explained > 0.95


def test_a_load_that_never_changes_follows_nothing() -> None:
    past = history()
    assert pattern(past.times, [5.0] * len(past.times)).explained == 0
    assert not pattern(past.times[:20], [1.0, 2.0] * 10).is_daily


@pytest.mark.parametrize(
    ("load", "steepest"),
    [
        ([5.0, 5.0, 5.0], None),
        ([5.0, 4.0, 3.0], None),
        ([5.0, 10.0, 8.0, 12.0], Rise(2.0, 60.0, 60.0)),
        ([1.0, 40.0, 100.0], Rise(4.0, 60.0, 60.0)),  # from 10, a tenth of the largest
    ],
)
def test_the_steepest_rise_is_found(load: list[float], steepest: Rise | None) -> None:
    assert pattern([60.0 * row for row in range(len(load))], load).steepest == steepest


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.25, 1), (0.5, 2), (0.75, 3), (0.9, 4), (1.0, 4)])
def test_a_quantile_is_not_exceeded_by_its_share(share: float, value: float) -> None:
    assert quantile([3, 1, 4, 2], share) == value
