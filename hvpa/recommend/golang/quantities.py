"""Quantities as Go reads and prints them (`k8s.io/apimachinery/pkg/api/resource`), where a count or what a status says
depends on that. Exact amounts are the business of `hvpa.api.values.quantity`."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from hvpa.api.objects.read_models import Quantity
from hvpa.api.values.quantity import DECIMAL_SUFFIXES, parse_quantity
from hvpa.recommend.golang.numbers import MAX_INT64, MIN_INT64, int64

_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]")


@lru_cache(maxsize=16384)
def milli_value(quantity: Quantity) -> int:
    """`Quantity.MilliValue`: thousandths, rounded up. What int64 can't hold comes out as in Go: 0 for decimal suffixes,
    wrapped around for binary ones. Raises `QuantityError` for what is no quantity."""
    exact = -(-parse_quantity(quantity) * 1000 // 1)
    if MIN_INT64 <= exact <= MAX_INT64:
        return exact
    return int64(exact) if isinstance(quantity, str) and quantity.endswith("i") else 0


@lru_cache(maxsize=1024)
def approximate_float(quantity: Quantity) -> float:
    """`Quantity.AsApproximateFloat64` of the canonical form, which is what the API server hands out (`50m` for 0.05).

    Raises `QuantityError` for what is no quantity.
    """
    value = parse_quantity(quantity)
    for suffix, exponent in (("", 0), ("m", -3), ("u", -6), ("n", -9)):
        mantissa = value / DECIMAL_SUFFIXES[suffix]
        if mantissa.denominator == 1:
            return float(mantissa.numerator) * float(f"1e{exponent}")
    return float(value)


def format_milli(value: int, binary: bool = False) -> str:
    """A number of thousandths as `resource.NewMilliQuantity` prints it: the largest suffix that stays exact.

    With `binary` that is Ki, Mi, …, where the value is whole and at least 1024.
    """
    if binary and value % 1000 == 0 and abs(value) >= 1024_000:
        return _binary(value // 1000)
    return _decimal(value, -3)


def canonical(quantity: Quantity) -> str:
    """A quantity as Go prints it after reading it (`Quantity.CanonicalizeBytes`): `1024Mi` is `1Gi`, `0.5` is `500m`,
    `1e3` stays so. Raises `QuantityError` for what is no quantity."""
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
    """`amount` × 10 to the power of `exponent` with the largest suffix, or exponent, that stays exact."""
    if amount == 0:
        return "0"
    while amount % 1000 == 0 and exponent < 18:
        amount //= 1000
        exponent += 3
    if by_exponent and exponent != 0:
        return f"{amount}e{exponent}"
    return f"{amount}{_DECIMAL[exponent]}"
