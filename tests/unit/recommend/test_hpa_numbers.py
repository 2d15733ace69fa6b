"""Go's numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.quantity import parse_quantity
from hvpa.recommend.hpa_numbers import (
    MAX_INT32,
    MAX_INT64,
    MIN_INT32,
    MIN_INT64,
    approximate_float,
    ceil32,
    ceil64,
    format_milli,
    int32,
    int64,
    milli_value,
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


@pytest.mark.parametrize(
    ("quantity", "milli"),
    [
        ("1", 1000),
        ("100m", 100),
        ("100n", 1),  # rounded up
        (0.1, 100),
        (2, 2000),
        ("1Gi", 1024**3 * 1000),
        ("10E", 0),  # Go: no overflow error, no value
        ("9Pi", int64(9 * 2**50 * 1000)),
    ],
)
def test_milli_values(quantity: str | int | float, milli: int) -> None:
    assert milli_value(quantity) == milli


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("0", 0.0),
        (1, 1.0),
        ("0.05", 50 * 1e-3),
        ("50m", 0.05),
        ("1u", 1e-6),
        ("2500u", 2500 * 1e-6),
        ("7n", 7 * 1e-9),
        ("1e-12", 1e-12),
    ],
)
def test_approximate_floats(quantity: str | int | float, value: float) -> None:
    assert approximate_float(quantity) == value


@pytest.mark.parametrize(
    ("milli", "decimal", "binary"),
    [
        (0, "0", "0"),
        (515, "515m", "515m"),
        (2000, "2", "2"),
        (-1500, "-1500m", "-1500m"),
        (1_000_000, "1k", "1k"),
        (1_024_000, "1024", "1Ki"),
        (1_025_000, "1025", "1025"),
        (1_024_500, "1024500m", "1024500m"),
        (3 * 1024**3 * 1000, "3221225472", "3Gi"),
        (5 * 10**9 * 1000, "5G", "5000000000"),
    ],
)
def test_printing(milli: int, decimal: str, binary: str) -> None:
    assert format_milli(milli) == decimal
    assert format_milli(milli, binary=True) == binary


@given(st.integers(-(2**62), 2**62), st.booleans())
def test_printed_numbers_mean_the_same(milli: int, binary: bool) -> None:
    assert parse_quantity(format_milli(milli, binary)) == Fraction(milli, 1000)


@given(st.integers(MIN_INT64, MAX_INT64), st.integers(MIN_INT64, MAX_INT64).filter(bool))
def test_quotient_is_cut_off(dividend: int, divisor: int) -> None:
    assert quotient(dividend, divisor) == int64(math.trunc(Fraction(dividend, divisor)))
