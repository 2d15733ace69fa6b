"""Go's arithmetic and quantities, where the recorded answers do not reach."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Quantity
from hvpa.api.values.quantity import parse_quantity
from hvpa.recommend.golang import (
    MAX_INT32,
    MAX_INT64,
    MIN_INT32,
    MIN_INT64,
    approximate_float,
    canonical,
    ceil32,
    ceil64,
    exp2,
    format_milli,
    int32,
    int64,
    milli_value,
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
        (-2.1, -2, -2, -2),
    ],
)
def test_floats_to_integers(value: float, up32: int, up64: int, cut32: int) -> None:
    assert (ceil32(value), ceil64(value), trunc32(value)) == (up32, up64, cut32)


def test_integers_wrap_around() -> None:
    assert (int32(MAX_INT32 + 1), int32(MIN_INT32 - 1), int32(2**32 + 7)) == (MIN_INT32, MAX_INT32, 7)
    assert (int64(MAX_INT64 + 1), int64(MIN_INT64 - 1), int64(2**64 + 7)) == (MIN_INT64, MAX_INT64, 7)


def test_divisions() -> None:
    assert [quotient(7, 2), quotient(-7, 2), quotient(7, -2), quotient(-7, -2)] == [3, -3, -3, 3]
    assert quotient(MIN_INT64, -1) == MIN_INT64
    assert [ratio(3.0, 2.0), ratio(1.0, 0.0), ratio(-1.0, 0.0), ratio(1.0, -0.0)] == [1.5, INF, -INF, -INF]
    assert math.isnan(ratio(0.0, 0.0))
    assert math.isnan(ratio(NAN, 0.0))


@given(st.floats(-1000.0, 1000.0), st.floats(1e-3, 1e3), st.integers(0, 60))
def test_powers_are_right_but_for_the_last_bits(x: float, base: float, exponent: int) -> None:
    assert abs(exp2(x) - math.exp2(x)) <= math.ulp(math.exp2(x))
    assert exp2(math.floor(x)) == math.ldexp(1.0, math.floor(x))
    assert power(base, exponent) == pytest.approx(math.pow(base, exponent), rel=1e-13)


def test_a_power_that_is_too_small_is_none() -> None:
    assert [exp2(small) for small in (-1074.1, -1e6, -math.inf)] == [0.0] * 3


@pytest.mark.parametrize(
    ("quantity", "milli"),
    [
        ("100n", 1),  # rounded up
        (0.1, 100),
        ("1Gi", 1024**3 * 1000),
        ("10E", 0),  # Go: no overflow error, no value
        ("9Pi", int64(9 * 2**50 * 1000)),
    ],
)
def test_milli_values(quantity: Quantity, milli: int) -> None:
    assert milli_value(quantity) == milli


@pytest.mark.parametrize(
    ("quantity", "value"),
    [("0", 0.0), ("0.05", 50 * 1e-3), ("2500u", 2500 * 1e-6), ("7n", 7 * 1e-9), ("1e-12", 1e-12)],
)
def test_approximate_floats(quantity: Quantity, value: float) -> None:
    assert approximate_float(quantity) == value


@pytest.mark.parametrize(
    ("milli", "decimal", "binary"),
    [
        (0, "0", "0"),
        (25, "25m", "25m"),
        (-1500, "-1500m", "-1500m"),
        (1_000_000, "1k", "1k"),
        (1_024_000, "1024", "1Ki"),
        (1_025_000, "1025", "1025"),
        (1_024_500, "1024500m", "1024500m"),
        (5 * 10**9 * 1000, "5G", "5000000000"),
        (-2048 * 1000, "-2048", "-2Ki"),
        (10**14, "100G", "97656250Ki"),
        (2**70 * 1000, "1180591620717411303424", "1024Ei"),
    ],
)
def test_printed_thousandths(milli: int, decimal: str, binary: str) -> None:
    assert (format_milli(milli), format_milli(milli, binary=True)) == (decimal, binary)


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        ("1Ki", "1Ki"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.5", "500m"),
        (0.25, "250m"),
        ("1000m", "1"),
        ("1e3", "1e3"),
        ("1E", "1E"),
        ("100e-3", "100e-3"),
        ("5e0", "5"),
        ("0.1n", "1n"),
        ("1000E", "1000E"),
        ("1000.0001Ki", "1024000102400u"),
    ],
)
def test_what_another_client_wrote_as_go_prints_it(quantity: Quantity, text: str) -> None:
    assert canonical(quantity) == text


@given(
    st.integers(-(2**62), 2**62), st.booleans(), st.sampled_from(["n", "u", "m", "", "k", "Ki", "Mi", "e3"])
)
def test_what_is_printed_means_the_same(amount: int, binary: bool, suffix: str) -> None:
    assert parse_quantity(format_milli(amount, binary)) == Fraction(amount, 1000)
    written = f"{abs(amount) % 10**14}{suffix}"
    assert parse_quantity(canonical(written)) == parse_quantity(written)
