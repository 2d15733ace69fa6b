"""Kubernetes quantities, exactly: text to whole millicores and bytes, rounded up as in Kubernetes, and back. No floats
are used. The grammar is that of `k8s.io/apimachinery/pkg/api/resource`."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

Resource = Literal["cpu", "memory"]
CPU: Final = "cpu"
MEMORY: Final = "memory"
RESOURCES: Final[tuple[Resource, ...]] = (CPU, MEMORY)
MIB: Final = 2**20
GIB: Final = 2**30

MAX_LENGTH: Final = 64
"""Maximum length of a text that is read as a quantity: more than any useful quantity needs, short enough to parse at
once."""

_TOO_LONG: Final = 10**MAX_LENGTH

CACHED: Final = 1024
"""Cache size of each function here. Most quantities have few different values; measured values are always new."""

DECIMAL_SUFFIXES: Final = {
    suffix: Fraction(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"), start=-3)
}
BINARY_SUFFIXES: Final = {
    f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)
}
_SUFFIXES: Final = DECIMAL_SUFFIXES | BINARY_SUFFIXES

# Exponents have at most two digits: numbers beyond 1e99 would be too slow to calculate with.
_SUFFIX_PATTERN: Final = r"([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?"
NON_NEGATIVE_PATTERN: Final = rf"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+){_SUFFIX_PATTERN}$"
POSITIVE_PATTERN: Final = rf"^\+?([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*){_SUFFIX_PATTERN}$"
"""Non-negative quantities, and quantities above 0, as regular expressions that Python and RE2 read alike."""
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)
_WHOLE: Final = re.compile(r"([0-9]{1,18})([KMGTPE]i|[mkMGTPE]?)", re.ASCII)
"""An integer with a suffix, as most quantities are. The code parses them without fractions, which take ten times as
long."""


class QuantityError(ValueError):
    """The text or number is not a quantity, or is negative although it must not be."""


@lru_cache(maxsize=CACHED, typed=True)
def parse_quantity(text: str | int | float) -> Fraction:
    """Returns the exact value of a quantity in its base unit (cores, bytes, items). Numbers are read in their shortest
    decimal form, as in YAML. Raises `QuantityError`."""
    if isinstance(text, bool):
        raise QuantityError(f"{text} is not a quantity")
    if isinstance(text, int):
        if abs(text) >= _TOO_LONG:
            raise QuantityError(f"a number of more than {MAX_LENGTH} digits is not a quantity")
        return Fraction(text)
    shown = text if isinstance(text, str) else repr(text)
    match = _QUANTITY.fullmatch(shown) if len(shown) <= MAX_LENGTH else None
    if match is None:
        raise QuantityError(f"{_shorten(shown)} is not a quantity (such as 500m, 2, 1.5Gi or 1e3)")
    exponent = match["exponent"]
    factor = _SUFFIXES[match["suffix"] or ""] if exponent is None else Fraction(10) ** int(exponent)
    return Fraction(match["number"]) * factor


@lru_cache(maxsize=CACHED)
def parse_cpu(quantity: str | int | float) -> int:
    """Returns CPU in whole millicores, rounded up. Raises `QuantityError`, also for negative values."""
    return _whole_units(quantity, per_base_unit=1000)


@lru_cache(maxsize=CACHED)
def parse_memory(quantity: str | int | float) -> int:
    """Returns memory in whole bytes, rounded up. Raises `QuantityError`, also for negative values."""
    return _whole_units(quantity, per_base_unit=1)


def parse_resource(resource: Resource, quantity: str | int | float) -> int:
    """Returns CPU in millicores or memory in bytes, according to the resource. Raises `QuantityError`."""
    return parse_cpu(quantity) if resource == CPU else parse_memory(quantity)


def format_cpu(millicores: int) -> str:
    """Returns millicores in the form that Kubernetes prints: `1500m`, `2`."""
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


@lru_cache(maxsize=CACHED)
def format_memory(size: int) -> str:
    """Returns bytes with the suffix that gives the smallest exact number, preferably binary: `1Gi`, `2147484k`."""
    best, best_suffix = size, ""
    for suffix, factor in _WHOLE_UNITS.items():
        mantissa, remainder = divmod(size, factor)
        if remainder == 0 and abs(mantissa) < abs(best):
            best, best_suffix = mantissa, suffix
    return f"{best}{best_suffix}"


def format_resource(resource: Resource, amount: int) -> str:
    """Returns millicores or bytes, according to the resource, as a quantity."""
    return format_cpu(amount) if resource == CPU else format_memory(amount)


def readable_resource(resource: Resource, amount: int) -> str:
    """Returns millicores or bytes as text for people. Memory is exact if that takes at most three digits (`2Gi`,
    `200M`). Otherwise it is rounded to the largest binary unit that gives at least ten, with one decimal below 100:
    380,258,472 bytes are `363Mi`, 13,421,772,800 are `12.5Gi`. For values that are read again, use
    `format_resource`."""
    exact = format_resource(resource, amount)
    if resource == CPU or len(exact.rstrip("KMGTPEik")) <= _READABLE_DIGITS:
        return exact
    for suffix, factor in _READABLE_UNITS:
        if amount >= 10 * factor:
            parts = 1 if amount >= 100 * factor else 10
            return f"{_rounded(amount * parts, factor) / parts:.12g}{suffix}"
    return exact


def readable_change(resource: Resource, before: int, after: int) -> tuple[str, str]:
    """Returns both amounts as in `readable_resource`. Different amounts that would read alike are exact instead, such
    as `1Gi` and `1024Mi`."""
    texts = readable_resource(resource, before), readable_resource(resource, after)
    if before != after and parse_resource(resource, texts[0]) == parse_resource(resource, texts[1]):
        return format_resource(resource, before), format_resource(resource, after)
    return texts


_READABLE_DIGITS: Final = 3
_READABLE_UNITS: Final = [(suffix, int(factor)) for suffix, factor in reversed(BINARY_SUFFIXES.items())]
_WHOLE_UNITS: Final = {
    suffix: int(factor) for suffix, factor in (BINARY_SUFFIXES | DECIMAL_SUFFIXES).items() if factor > 1
}
_WHOLE_FACTORS: Final = {
    per_base_unit: {
        suffix: int(factor * per_base_unit)
        for suffix, factor in _SUFFIXES.items()
        if factor * per_base_unit % 1 == 0
    }
    for per_base_unit in (1, 1000)
}


def _whole_units(quantity: str | int | float, per_base_unit: int) -> int:
    whole = _WHOLE.fullmatch(quantity) if isinstance(quantity, str) else None
    if whole is not None and (factor := _WHOLE_FACTORS[per_base_unit].get(whole[2])) is not None:
        return int(whole[1]) * factor
    value = parse_quantity(quantity)
    if value < 0:
        raise QuantityError(f"{quantity} is negative")
    return -(-value * per_base_unit // 1)


def _rounded(numerator: int, denominator: int) -> int:
    """Returns the quotient, rounded half to even."""
    quotient, remainder = divmod(numerator, denominator)
    return quotient + (2 * remainder > denominator or (2 * remainder == denominator and quotient % 2))


def _shorten(text: str) -> str:
    return repr(text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…")
