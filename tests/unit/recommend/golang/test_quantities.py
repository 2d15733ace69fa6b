"""Quantities as Go reads and prints them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.objects.read_models import Quantity
from hvpa.api.values.quantity import parse_quantity
from hvpa.recommend.golang.numbers import int64
from hvpa.recommend.golang.quantities import approximate_float, canonical, format_milli, milli_value


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
def test_milli_values(quantity: Quantity, milli: int) -> None:
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
def test_approximate_floats(quantity: Quantity, value: float) -> None:
    assert approximate_float(quantity) == value


@pytest.mark.parametrize(
    ("milli", "decimal", "binary"),
    [
        (0, "0", "0"),
        (25, "25m", "25m"),
        (515, "515m", "515m"),
        (2000, "2", "2"),
        (-1500, "-1500m", "-1500m"),
        (1_000_000, "1k", "1k"),
        (1_023_000, "1023", "1023"),
        (1_024_000, "1024", "1Ki"),
        (1_025_000, "1025", "1025"),
        (1_024_500, "1024500m", "1024500m"),
        (3 * 1024**3 * 1000, "3221225472", "3Gi"),
        (5 * 10**9 * 1000, "5G", "5000000000"),
        (-2048 * 1000, "-2048", "-2Ki"),
        (10**14, "100G", "97656250Ki"),
        (2**70 * 1000, "1180591620717411303424", "1024Ei"),
    ],
)
def test_printed_thousandths(milli: int, decimal: str, binary: str) -> None:
    assert format_milli(milli) == decimal
    assert format_milli(milli, binary=True) == binary


@given(st.integers(-(2**62), 2**62), st.booleans())
def test_printed_thousandths_mean_the_same(milli: int, binary: bool) -> None:
    assert parse_quantity(format_milli(milli, binary)) == Fraction(milli, 1000)


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.5", "500m"),
        (2, "2"),
        (0.25, "250m"),
        ("1000m", "1"),
        ("1e3", "1e3"),
        ("1E", "1E"),
        ("100e-3", "100e-3"),
        ("5e0", "5"),
        ("1500M", "1500M"),
        ("0.1n", "1n"),
        ("1000E", "1000E"),
        ("1000.0001Ki", "1024000102400u"),
    ],
)
def test_what_somebody_wrote_as_go_prints_it(quantity: Quantity, text: str) -> None:
    assert canonical(quantity) == text


@given(st.integers(0, 10**14), st.sampled_from(["n", "u", "m", "", "k", "Ki", "Mi", "e3"]))
def test_the_canonical_form_means_the_same(amount: int, suffix: str) -> None:
    assert parse_quantity(canonical(f"{amount}{suffix}")) == parse_quantity(f"{amount}{suffix}")
