"""The line through totals: what is found, what is left out, and what can't be separated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.history.regression import FittedLine, fitted

COUNTS = [2.0, 4, 3, 5, 2, 6, 4, 3]
LOADS = [100.0, 150, 220, 260, 90, 300, 270, 120]


def test_both_parts_are_found() -> None:
    # Of 4 replicas with a load of 150: 4 * 0.15 + 150 * 0.01 = 2.1.
    totals = [0.15 * count + 0.01 * load for count, load in zip(COUNTS, LOADS, strict=True)]
    assert totals[1] == pytest.approx(2.1)
    line = fitted(COUNTS, LOADS, totals)
    assert (line.per_replica, line.per_unit) == pytest.approx((0.15, 0.01))
    assert (line.is_distinct, line.is_poor) == (True, False)
    assert line.explained == pytest.approx(1)
    assert line.error == pytest.approx(0)


def test_what_is_far_off_is_left_out() -> None:
    totals = [0.15 * count + 0.01 * load for count, load in zip(COUNTS * 5, LOADS * 5, strict=True)]
    totals[7] *= 20
    line = fitted(COUNTS * 5, LOADS * 5, totals)
    assert (line.per_replica, line.per_unit) == pytest.approx((0.15, 0.01))
    assert line.explained == pytest.approx(39 / 40)


def test_a_load_that_is_in_proportion_to_the_replicas_can_not_be_told_from_them() -> None:
    line = fitted(COUNTS, [50 * count for count in COUNTS], [1.5 * count for count in COUNTS])
    assert line[:4] == pytest.approx((0, 0.03, 1, 0))
    assert not line.is_distinct


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (lambda count, load: 0.01 * load - 0.05 * count, (0.0, pytest.approx(0.0092, abs=3e-4))),
        (lambda count, load: 0.5 * count - 0.0005 * load, (pytest.approx(0.474, abs=0.02), 0.0)),
        (lambda count, load: 0.0, (0.0, 0.0)),
    ],
)
def test_no_part_is_below_0(total: object, expected: object) -> None:
    totals = [total(count, load) for count, load in zip(COUNTS, LOADS, strict=True)]  # type: ignore[operator]
    line = fitted(COUNTS, LOADS, totals)
    assert (line.per_replica, line.per_unit) == expected


def test_without_a_load_all_is_the_replicas_and_without_replicas_all_is_the_load() -> None:
    zeros = [0.0] * len(COUNTS)
    assert fitted(COUNTS, zeros, [2 * count for count in COUNTS])[:2] == pytest.approx((2, 0.0))
    assert fitted(zeros, LOADS, [2 * load for load in LOADS])[:2] == pytest.approx((0.0, 2))
    assert fitted(zeros, zeros, [0.0] * len(zeros))[:2] == (0.0, 0.0)


def test_a_total_that_never_changes_is_explained_where_it_is_met() -> None:
    assert fitted([3.0] * 4, [0.0] * 4, [6.0] * 4) == FittedLine(2.0, 0.0, 1.0, 0.0)
    line = fitted([1.0, 5, 1, 5], [0.0] * 4, [6.0] * 4)
    assert (line.explained <= 0, line.is_poor) == (True, True)


def test_noise_around_a_level_is_no_poor_line() -> None:
    line = fitted([3.0] * 6, [0.0] * 6, [5.9, 6.1, 6, 6.05, 5.95, 6])
    assert (line.explained < 0.7, line.is_poor) == (True, False)


numbers = st.floats(0, 1e12, allow_nan=False)


@given(st.lists(st.tuples(st.floats(0, 1e5), numbers, numbers), min_size=1, max_size=50))
def test_every_line_is_finite_and_has_no_part_below_0(rows: list[tuple[float, float, float]]) -> None:
    line = fitted(*(list(column) for column in zip(*rows, strict=True)))
    assert 0 <= line.per_replica < float("inf")
    assert 0 <= line.per_unit < float("inf")
    assert line.explained <= 1
    assert line.error >= 0


@given(
    st.floats(0.01, 10),
    st.floats(0.001, 10),
    st.lists(st.tuples(st.integers(1, 50), st.floats(1, 1000)), min_size=10, max_size=60),
)
def test_what_made_the_totals_is_found_where_it_can_be_told(
    base: float, per_unit: float, rows: list[tuple[int, float]]
) -> None:
    counts = [float(count) for count, _ in rows]
    loads = [load for _, load in rows]
    line = fitted(counts, loads, [base * count + per_unit * load for count, load in rows])
    if line.is_distinct:
        assert (line.per_replica, line.per_unit) == pytest.approx((base, per_unit), rel=1e-3, abs=1e-6)
