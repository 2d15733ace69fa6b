"""Go's arithmetic and quantities, as far as the recommenders depend on them, as on amd64. Integers of 32 and 64 bits
wrap around, floats that do not fit become the smallest integer, and powers are exact to the last bit. Quantities are
read and printed as in Go (`k8s.io/apimachinery/pkg/api/resource`)."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from hvpa.api.objects.read_models import Quantity
from hvpa.api.values.quantity import DECIMAL_SUFFIXES, parse_quantity

MAX_INT32: Final = 2**31 - 1
MIN_INT32: Final = -(2**31)
MAX_INT64: Final = 2**63 - 1
MIN_INT64: Final = -(2**63)

_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_REMEZ: Final = (
    1.66666666666666657415e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
"""Coefficients of x / (exp(x) - 1), after the Remez algorithm (FreeBSD's e_exp.c, which Go follows)."""
_LEAST_EXPONENT: Final = -1074.0


def int32(value: int) -> int:
    """`int32(value)`: the lower 32 bits."""
    return value if MIN_INT32 <= value <= MAX_INT32 else (value - MIN_INT32) % 2**32 + MIN_INT32


def int64(value: int) -> int:
    """Returns the value after an int64 addition or multiplication: the lower 64 bits."""
    return value if MIN_INT64 <= value <= MAX_INT64 else (value - MIN_INT64) % 2**64 + MIN_INT64


def quotient(dividend: int, divisor: int) -> int:
    """`dividend / divisor` of int64, truncated towards zero. The divisor is not 0."""
    if dividend >= 0 and divisor > 0:
        return dividend // divisor
    whole = abs(dividend) // abs(divisor)
    return int64(whole if (dividend < 0) == (divisor < 0) else -whole)


def ratio(dividend: float, divisor: float) -> float:
    """`dividend / divisor` of float64. The result is infinite or NaN if the divisor is 0."""
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


# Powers exactly as Go 1.26 calculates them. The C library is more precise: Go is sometimes off by one in the last bit.
# This matters, because weights that differ only in their last bit can move a percentile to another bucket.


def exp2(x: float) -> float:
    """Returns 2 to the power of x, for x below 1024; 0 if the result is too small to represent."""
    if x < _LEAST_EXPONENT:
        return 0.0
    whole = int(x + 0.5) if x > 0 else int(x - 0.5)
    rest = x - whole
    high, low = rest * _LN2_HIGH, -rest * _LN2_LOW
    r = high - low
    t = r * r
    p1, p2, p3, p4, p5 = _REMEZ
    c = r - t * (p1 + t * (p2 + t * (p3 + t * (p4 + t * p5))))
    return math.ldexp(1 - ((low - (r * c) / (2 - c)) - high), whole)


def power(base: float, exponent: int) -> float:
    """Returns a finite positive base to an integer power of at least 0. It squares the fraction and keeps the exponents
    separate."""
    result, shift = 1.0, 0
    square, square_shift = math.frexp(base)
    while exponent:
        if exponent & 1:
            result *= square
            shift += square_shift
        square *= square
        square_shift *= 2
        if square < 0.5:
            square += square
            square_shift -= 1
        exponent >>= 1
    return math.ldexp(result, shift)


# --- quantities ---
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]")


@lru_cache(maxsize=16384)
def milli_value(quantity: Quantity) -> int:
    """`Quantity.MilliValue`: thousandths, rounded up. A value that int64 can't hold gives the same result as in Go: 0
    for decimal suffixes, wrapped around for binary suffixes. Raises `QuantityError` if the text is not a quantity."""
    exact = -(-parse_quantity(quantity) * 1000 // 1)
    if MIN_INT64 <= exact <= MAX_INT64:
        return exact
    return int64(exact) if isinstance(quantity, str) and quantity.endswith("i") else 0


@lru_cache(maxsize=1024)
def approximate_float(quantity: Quantity) -> float:
    """`Quantity.AsApproximateFloat64` of the canonical form, which the API server returns (`50m` for 0.05). Raises
    `QuantityError`."""
    value = parse_quantity(quantity)
    for suffix, exponent in (("", 0), ("m", -3), ("u", -6), ("n", -9)):
        mantissa = value / DECIMAL_SUFFIXES[suffix]
        if mantissa.denominator == 1:
            return float(mantissa.numerator) * float(f"1e{exponent}")
    return float(value)


def format_milli(value: int, binary: bool = False) -> str:
    """Formats thousandths as `resource.NewMilliQuantity` does, with the largest suffix that stays exact. With `binary`,
    uses Ki, Mi, … if the value is whole and at least 1024."""
    if binary and value % 1000 == 0 and abs(value) >= 1024_000:
        return _binary(value // 1000)
    return _decimal(value, -3)


def canonical(quantity: Quantity) -> str:
    """Formats a quantity as Go does after reading it (`Quantity.CanonicalizeBytes`): `1024Mi` becomes `1Gi`, `0.5`
    becomes `500m`, `1e3` stays. Raises `QuantityError` if the text is not a quantity."""
    value = parse_quantity(quantity)
    text = str(quantity)
    if text.endswith("i") and abs(value) >= 1024 and value.denominator == 1:
        return _binary(int(value))
    return _decimal(math.ceil(value * 10**9), -9, by_exponent=_EXPONENT.search(text) is not None)


def _binary(amount: int) -> str:
    power = 0
    while amount % 1024 == 0 and power + 1 < len(_BINARY):
        amount //= 1024
        power += 1
    return f"{amount}{_BINARY[power]}"


def _decimal(amount: int, exponent: int, by_exponent: bool = False) -> str:
    """Formats `amount` × 10 to the power of `exponent` with the largest suffix, or exponent, that stays exact."""
    if amount == 0:
        return "0"
    while amount % 1000 == 0 and exponent < 18:
        amount //= 1000
        exponent += 3
    if by_exponent and exponent != 0:
        return f"{amount}e{exponent}"
    return f"{amount}{_DECIMAL[exponent]}"
