"""Powers as Go computes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.recommend.vpa_arithmetic import exp2, power


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
