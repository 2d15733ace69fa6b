"""Go's arithmetic, as far as the HPA controller leans on it: integers of 32 and 64 bits that wrap around, conversions
of floats (as on amd64: what does not fit becomes the smallest integer), quantities in milli-units.

All functions take and give Python's own integers and floats; none of them raises for odd numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from hvpa.api.quantity import BINARY_SUFFIXES, DECIMAL_SUFFIXES, parse_quantity

MAX_INT32: Final = 2**31 - 1
MIN_INT32: Final = -(2**31)
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)


def int32(value: int) -> int:
    """`int32(value)`: the lower 32 bits."""
    return value if MIN_INT32 <= value <= MAX_INT32 else (value - MIN_INT32) % 2**32 + MIN_INT32


def int64(value: int) -> int:
    """The value after an int64 addition or multiplication: the lower 64 bits."""
    return value if MIN_INT64 <= value <= MAX_INT64 else (value - MIN_INT64) % 2**64 + MIN_INT64


def quotient(dividend: int, divisor: int) -> int:
    """`dividend / divisor` of int64: cut off towards zero. The divisor is not 0."""
    if dividend >= 0 and divisor > 0:
        return dividend // divisor
    whole = abs(dividend) // abs(divisor)
    return int64(whole if (dividend < 0) == (divisor < 0) else -whole)


def ratio(dividend: float, divisor: float) -> float:
    """`dividend / divisor` of float64: infinite or not a number where the divisor is 0."""
    if divisor:
        return dividend / divisor
    if math.isnan(dividend) or not dividend:
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def ceil32(value: float) -> int:
    """`int32(math.Ceil(value))`."""
    return math.ceil(value) if MIN_INT32 - 1.0 < value <= MAX_INT32 else MIN_INT32


def trunc32(value: float) -> int:
    """`int32(value)` of a float64."""
    return int(value) if MIN_INT32 - 1.0 < value < MAX_INT32 + 1.0 else MIN_INT32


def ceil64(value: float) -> int:
    """`int64(math.Ceil(value))`."""
    return math.ceil(value) if MIN_INT64 <= value < MAX_INT64 else MIN_INT64


@lru_cache(maxsize=16384)
def milli_value(quantity: str | int | float) -> int:
    """`Quantity.MilliValue`: thousandths, rounded up. What int64 can't hold comes out as in Go: 0 for decimal suffixes,
    wrapped around for binary ones. Raises `QuantityError` for what is no quantity."""
    exact = -(-parse_quantity(quantity) * 1000 // 1)
    if MIN_INT64 <= exact <= MAX_INT64:
        return exact
    return int64(exact) if isinstance(quantity, str) and quantity.endswith("i") else 0


@lru_cache(maxsize=1024)
def approximate_float(quantity: str | int | float) -> float:
    """`Quantity.AsApproximateFloat64` of the canonical form, which is what the API server hands out (`50m` for 0.05).

    Raises `QuantityError` for what is no quantity.
    """
    value = parse_quantity(quantity)
    for suffix, exponent in (("", 0), ("m", -3), ("u", -6), ("n", -9)):
        mantissa = value / DECIMAL_SUFFIXES[suffix]
        if mantissa.denominator == 1:
            return float(mantissa.numerator) * float(f"1e{exponent}")
    return float(value)


def _largest_first(suffixes: dict[str, Fraction]) -> tuple[tuple[str, int], ...]:
    whole = [(suffix, int(factor)) for suffix, factor in suffixes.items() if factor > 1]
    return tuple(sorted(whole, key=lambda entry: -entry[1]))


_DECIMALS: Final = _largest_first(DECIMAL_SUFFIXES)
_BINARIES: Final = _largest_first(BINARY_SUFFIXES)


def format_milli(value: int, binary: bool = False) -> str:
    """A number of thousandths as `resource.NewMilliQuantity` prints it: the largest suffix that stays exact.

    With `binary` that is Ki, Mi, …, where the value is whole and at least 1024.
    """
    if value == 0:
        return "0"
    if binary and value % 1000 == 0 and abs(value) >= 1024_000:
        return _with_suffix(value // 1000, _BINARIES)
    if value % 1000:
        return f"{value}m"
    return _with_suffix(value // 1000, _DECIMALS)


def _with_suffix(whole: int, suffixes: tuple[tuple[str, int], ...]) -> str:
    for suffix, factor in suffixes:
        if whole % factor == 0:
            return f"{whole // factor}{suffix}"
    return str(whole)
