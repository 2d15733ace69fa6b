"""Go's arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.recommend.golang.numbers import (
    MAX_INT32,
    MAX_INT64,
    MIN_INT32,
    MIN_INT64,
    ceil32,
    ceil64,
    exp2,
    int32,
    int64,
    power,
    quotient,
    ratio,
    trunc32,
)

NAN = math.nan
INF = math.inf


@pytest.mark.parametrize(
    ("value", "up32", "up64", "cut32"),
    [  # what a Go program on amd64 prints
        (NAN, MIN_INT32, MIN_INT64, MIN_INT32),
        (INF, MIN_INT32, MIN_INT64, MIN_INT32),
        (-INF, MIN_INT32, MIN_INT64, MIN_INT32),
        (3e9, MIN_INT32, 3_000_000_000, MIN_INT32),
        (-3e9, MIN_INT32, -3_000_000_000, MIN_INT32),
        (2147483647.5, MIN_INT32, 2147483648, MAX_INT32),
        (-2147483648.5, MIN_INT32, MIN_INT32, MIN_INT32),
        (1e19, MIN_INT32, MIN_INT64, MIN_INT32),
        (-1e19, MIN_INT32, MIN_INT64, MIN_INT32),
        (2.1, 3, 3, 2),
        (-2.1, -2, -2, -2),
    ],
)
def test_floats_to_integers(value: float, up32: int, up64: int, cut32: int) -> None:
    assert (ceil32(value), ceil64(value), trunc32(value)) == (up32, up64, cut32)


def test_integers_wrap_around() -> None:
    assert (int32(MAX_INT32), int32(MAX_INT32 + 1), int32(MIN_INT32 - 1)) == (MAX_INT32, MIN_INT32, MAX_INT32)
    assert (int64(MAX_INT64), int64(MAX_INT64 + 1), int64(MIN_INT64 - 1)) == (MAX_INT64, MIN_INT64, MAX_INT64)
    assert (int32(2**32 + 7), int64(2**64 + 7)) == (7, 7)


def test_divisions() -> None:
    assert [quotient(7, 2), quotient(-7, 2), quotient(7, -2), quotient(-7, -2)] == [3, -3, -3, 3]
    assert quotient(MIN_INT64, -1) == MIN_INT64
    assert [ratio(3.0, 2.0), ratio(1.0, 0.0), ratio(-1.0, 0.0), ratio(1.0, -0.0)] == [1.5, INF, -INF, -INF]
    assert math.isnan(ratio(0.0, 0.0))
    assert math.isnan(ratio(NAN, 0.0))


@given(st.integers(MIN_INT64, MAX_INT64), st.integers(MIN_INT64, MAX_INT64).filter(bool))
def test_quotient_is_cut_off(dividend: int, divisor: int) -> None:
    assert quotient(dividend, divisor) == int64(math.trunc(Fraction(dividend, divisor)))


@given(st.floats(-1000.0, 1000.0))
def test_two_to_a_power_is_right_but_for_the_last_bit(x: float) -> None:
    assert abs(exp2(x) - math.exp2(x)) <= math.ulp(math.exp2(x))


@given(st.integers(-1000, 1000))
def test_whole_powers_of_two_are_exact(x: int) -> None:
    assert exp2(float(x)) == math.ldexp(1.0, x)


@pytest.mark.parametrize("x", [-1074.1, -1e6, -math.inf])
def test_what_is_too_small_is_0(x: float) -> None:
    assert exp2(x) == 0.0


@given(st.floats(1e-3, 1e3), st.integers(0, 60))
def test_whole_powers_of_any_base(base: float, exponent: int) -> None:
    assert power(base, exponent) == pytest.approx(math.pow(base, exponent), rel=1e-13)
