"""Quantities: every form that Kubernetes reads, exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.quantity import (
    BINARY_SUFFIXES,
    DECIMAL_SUFFIXES,
    MAX_LENGTH,
    QuantityError,
    format_cpu,
    format_memory,
    format_resource,
    parse_cpu,
    parse_memory,
    parse_quantity,
    parse_resource,
    readable_change,
    readable_resource,
)

Parse = Callable[[str | int | float], int]

FORMS = {
    "milli": ("100m", Fraction(1, 10)),
    "kilo": ("2147484k", Fraction(2147484000)),
    "an integer": ("3", Fraction(3)),
    "a number": (3, Fraction(3)),
    "a number with a fraction, by its decimal form": (0.1, Fraction(1, 10)),
    "a large number with a fraction": (1e22, Fraction(10**22)),
    "gibi with a fraction": ("1.5Gi", Fraction(3 * 2**29)),
    "a small exponent letter": ("1e3", Fraction(1000)),
    "a large exponent letter": ("1E3", Fraction(1000)),
    "a signed exponent": ("12E+2", Fraction(1200)),
    "a negative exponent": ("5e-1", Fraction(1, 2)),
    "no digits before the point": (".5", Fraction(1, 2)),
    "no digits after the point": ("5.", Fraction(5)),
    "no digits after the point, with a suffix": ("5.k", Fraction(5000)),
    "leading zeros": ("007", Fraction(7)),
    "a sign": ("+1.50", Fraction(3, 2)),
    "a negative value": ("-1.5Ki", Fraction(-1536)),
    "a largest exponent": ("1e99", Fraction(10**99)),
}


@pytest.mark.parametrize(("text", "value"), FORMS.values(), ids=FORMS.keys())
def test_every_form_of_a_quantity_is_read_exactly(text: str | int | float, value: Fraction) -> None:
    assert parse_quantity(text) == value


NO_QUANTITIES = {
    "nothing": "",
    "a sign": "+",
    "a point": ".",
    "a point with a suffix": ".k",
    "two points": "1.2.3",
    "two signs": "+-1",
    "a space": "1 Gi",
    "a space at the end": "1Gi ",
    "a line break at the end": "1Gi\n",
    "an unknown suffix": "1GB",
    "a suffix in the wrong case": "1K",
    "a small binary suffix": "1ki",
    "an exponent without digits": "1e",
    "an exponent with a suffix": "1e3k",
    "an exponent with a fraction": "1e1.5",
    "an endless exponent": "1e999999999",
    "hexadecimal": "0x10",
    "an underscore": "1_000",
    "digits of another script": "١",
    "infinity": float("inf"),
    "no number": float("nan"),
    "true": True,
    "too many digits": "9" * (MAX_LENGTH + 1),
}


@pytest.mark.parametrize("text", NO_QUANTITIES.values(), ids=NO_QUANTITIES.keys())
def test_what_is_no_quantity_is_refused(text: str | float) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize("number", [10**64, -(10**5000)], ids=["64 digits", "more than Python prints"])
def test_a_whole_number_of_as_many_digits_is_refused(number: int) -> None:
    with pytest.raises(QuantityError, match="digits"):
        parse_memory(number)


def test_a_long_text_is_shortened_in_the_message() -> None:
    with pytest.raises(QuantityError) as raised:
        parse_quantity("9" * 1000)
    assert len(str(raised.value)) < 200


UNITS = {
    "cores": (parse_cpu, "2", 2000),
    "cores as a number": (parse_cpu, 2, 2000),
    "millicores": (parse_cpu, "1500m", 1500),
    "a part of a millicore, rounded up": (parse_cpu, "1u", 1),
    "bytes": (parse_memory, "128974848", 128974848),
    "bytes in mebi": (parse_memory, "123Mi", 128974848),
    "bytes by an exponent": (parse_memory, "129e6", 129_000_000),
    "a part of a byte, rounded up": (parse_memory, "1m", 1),
    "more bytes than 64 bits hold": (parse_memory, "16Ei", 2**64),
    "nothing": (parse_cpu, "-0", 0),
}


@pytest.mark.parametrize(("parse", "text", "amount"), UNITS.values(), ids=UNITS.keys())
def test_amounts_are_whole_units_rounded_up(parse: Parse, text: str | int, amount: int) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize("parse", [parse_cpu, parse_memory])
def test_negative_amounts_are_refused(parse: Parse) -> None:
    with pytest.raises(QuantityError, match="negative"):
        parse("-1n")


MEMORY_TEXTS = {
    "nothing": (0, "0"),
    "what no suffix fits": (1001, "1001"),
    "a binary size": (2**30, "1Gi"),
    "a decimal size": (10**9, "1G"),
    "a binary size that is not a power": (1100 * 2**20, "1100Mi"),
    "a VPA target in kilobytes": (2147484000, "2147484k"),
    "a tie, binary": (1000 * 1024, "1000Ki"),
    "one byte less": (2**30 - 1, str(2**30 - 1)),
    "a negative size": (-(2**20), "-1Mi"),
}


@pytest.mark.parametrize(("size", "text"), MEMORY_TEXTS.values(), ids=MEMORY_TEXTS.keys())
def test_memory_is_written_with_the_smallest_number_that_is_exact(size: int, text: str) -> None:
    assert format_memory(size) == text


def test_resources_are_read_and_written_by_name() -> None:
    assert [format_cpu(millicores) for millicores in (0, 1, 1500, 2000)] == ["0", "1m", "1500m", "2"]
    assert (parse_resource("cpu", "1"), parse_resource("memory", "1")) == (1000, 1)
    assert (format_resource("cpu", 1000), format_resource("memory", 1000)) == ("1", "1k")


def test_the_smallest_and_the_largest_suffixes() -> None:
    assert [parse_quantity(f"1{suffix}") for suffix in ("n", "E", "Ki", "Ei")] == [
        Fraction(1, 10**9),
        10**18,
        2**10,
        2**60,
    ]


@given(st.integers(0, 2**70))
def test_an_amount_survives_being_written_and_read(amount: int) -> None:
    assert parse_resource("cpu", format_resource("cpu", amount)) == amount
    assert parse_resource("memory", format_resource("memory", amount)) == amount


@given(
    sign=st.sampled_from(["", "+", "-"]),
    whole=st.integers(0, 10**12),
    places=st.integers(0, 9),
    suffix=st.sampled_from(list(DECIMAL_SUFFIXES | BINARY_SUFFIXES)),
)
def test_a_quantity_is_its_number_times_its_suffix(sign: str, whole: int, places: int, suffix: str) -> None:
    digits = str(whole).rjust(places + 1, "0")
    number = digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}"
    expected = Fraction(whole, 10**places) * (DECIMAL_SUFFIXES | BINARY_SUFFIXES)[suffix]
    assert parse_quantity(f"{sign}{number}{suffix}") == (-expected if sign == "-" else expected)


@given(st.integers(0, 10**20), st.sampled_from(list(DECIMAL_SUFFIXES | BINARY_SUFFIXES)))
def test_whole_numbers_are_read_as_all_others(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    assert parse_cpu(text) == parse_cpu(f"{number}.0{suffix}") == math.ceil(parse_quantity(text) * 1000)
    assert parse_memory(text) == parse_memory(f"+{text}") == math.ceil(parse_quantity(text))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "0"),
        (999, "999"),
        (9221, "9221"),
        (380258472, "363Mi"),
        (324347000, "309Mi"),
        (1717987000, "1638Mi"),
        (2**30, "1Gi"),
        (200 * 10**6, "200M"),
        (1100 * 2**20, "1100Mi"),
        (13421772800, "12.5Gi"),
        (10 * 2**20 + 1, "10Mi"),
        (2**80, "1048576Ei"),
    ],
)
def test_memory_for_people_is_rounded_where_it_is_not_short(size: int, expected: str) -> None:
    assert readable_resource("memory", size) == expected


def test_cpu_for_people_is_exact() -> None:
    assert [readable_resource("cpu", millicores) for millicores in (1, 1500, 2000, 12345)] == [
        "1m",
        "1500m",
        "2",
        "12345m",
    ]


@given(st.integers(10 * 2**10, 2**60))
def test_memory_for_people_is_off_by_a_half_percent_at_most(size: int) -> None:
    assert abs(parse_memory(readable_resource("memory", size)) - size) <= size / 200


def test_a_change_for_people_is_never_from_a_value_to_the_same() -> None:
    assert readable_change("memory", 2**30, 1717987000) == ("1Gi", "1638Mi")
    assert readable_change("memory", 1717987000, 1717987001) == ("1717987k", "1717987001")
    assert readable_change("memory", 1717987000, 1717987000) == ("1638Mi", "1638Mi")
    assert readable_change("memory", 2**30, 1073742000) == ("1Gi", "1073742k"), "not 1Gi -> 1024Mi"


@given(st.integers(0, 2**40), st.integers(-2000, 2000))
def test_two_amounts_for_people_differ_as_the_amounts_do(size: int, more: int) -> None:
    before, after = readable_change("memory", size, max(0, size + more))
    assert (parse_memory(before) == parse_memory(after)) == (size == max(0, size + more))
