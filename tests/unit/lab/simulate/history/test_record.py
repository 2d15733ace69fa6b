"""A history's parts, and the shape of its days."""

from __future__ import annotations

import datetime as dt

import pytest

from hvpa.api.values.duration import DAY
from hvpa_lab.simulate.history.pattern import pattern, quantile
from tests.unit.lab.simulate.history.build import DAY_ROWS, START, STEP, history, wave


def test_its_length_ends_with_the_last_row() -> None:
    found = history(3)
    assert (found.length, found.start) == (3 * STEP, dt.datetime.fromtimestamp(START, dt.UTC))
    assert list(history(2, containers=("a", "b")).total("memory")) == pytest.approx(
        list(history(2).total("memory"))
    )


@pytest.mark.parametrize(("seconds", "rows"), [(DAY, DAY_ROWS), (1e9, 2 * DAY_ROWS), (1, 2)])
def test_the_last_rows(seconds: float, rows: int) -> None:
    found = history().last(seconds)
    assert [
        len(one) for one in (found.times, found.replicas, found.containers["app"].cpu, found.load or ())
    ] == [rows] * 4
    assert found.times[-1] == history().times[-1]
    assert history(load=None).last(seconds).load is None


def test_a_wave_follows_the_day() -> None:
    found = history()
    shape = pattern(found.times, [wave(row) for row in range(len(found.times))])
    assert (shape.lowest, shape.highest, shape.is_daily) in [(0, 11, True), (0, 12, True), (23, 11, True)]
    assert shape.explained > 0.95


def test_a_load_that_never_changes_follows_nothing() -> None:
    found = history()
    assert pattern(found.times, [5.0] * len(found.times)).explained == 0
    assert not pattern(found.times[:20], [1.0, 2.0] * 10).is_daily


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.25, 1), (0.5, 2), (0.75, 3), (0.9, 4), (1.0, 4)])
def test_a_quantile_is_not_exceeded_by_its_share(share: float, value: float) -> None:
    assert quantile([3, 1, 4, 2], share) == value
