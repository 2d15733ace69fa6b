"""How names, amounts and lengths of time are reported."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.simulate.report.text import (
    NONE,
    cut_to_width,
    grouped_number,
    listed,
    number_column,
    percent_of_share,
    plain_text,
    seconds,
    shortened,
    width,
)


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_what_is_printed_steers_no_terminal_and_can_be_written(text: str) -> None:
    reported = plain_text(text)
    assert not {unicodedata.category(character) for character in reported} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    reported.encode()
    assert plain_text(reported) == reported


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("web", "web"),
        ("größer", "größer"),
        ("a\x1b[31m\n", "a\\x1b[31m\\x0a"),
        ("\u202eab", "\\u202eab"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_hidden_characters_are_reported_as_escapes(text: str, reported: str) -> None:
    assert plain_text(text) == reported


@pytest.mark.parametrize(
    ("length", "reported"),
    [
        (None, NONE),
        (0, "0s"),
        (7.25, "7.3s"),
        (59.94, "59.9s"),
        (59.96, "1m"),
        (60, "1m"),
        (90.4, "1m30s"),
        (3600, "1h"),
        (7500, "2h5m"),
        (7505, "2h5m"),
        (86399.7, "1d"),
        (30 * 86400 + 7200, "30d2h"),
    ],
)
def test_a_length_of_time_is_reported_in_its_two_largest_units(length: float | None, reported: str) -> None:
    assert seconds(length) == reported


def test_amounts_of_a_column_have_the_decimals_of_the_largest() -> None:
    assert number_column([1.234, 9.5]) == ["1.23", "9.50"]
    assert number_column([1.234, 56]) == ["1.2", "56.0"]
    assert number_column([1.234, 56789]) == ["1", "56,789"]
    assert number_column([0.5, 0.0301]) == ["0.500", "0.030"]
    assert number_column([0.0301]) == ["0.0301"]
    assert number_column([]) == []


def test_little_is_never_reported_as_nothing() -> None:
    assert number_column([0.01, 2000.0, 0.0]) == ["<1", "2,000", "0"]
    assert grouped_number(0.004, 2) == "<0.01"
    assert grouped_number(-0.0, 1) == "0"
    assert percent_of_share(0.00001, 2) == "<0.01"
    assert percent_of_share(0.3517) == "35.2"


def test_a_text_is_fitted_into_columns() -> None:
    assert cut_to_width("abcdef", 6) == "abcdef"
    assert cut_to_width("abcdefg", 6) == "abcde…"
    assert cut_to_width("負荷負荷", 6) == "負荷…"
    assert cut_to_width("負荷", 1) == "…"


def test_words_are_listed() -> None:
    assert [listed(list(words)) for words in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]


def test_a_long_text_is_cut() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


def test_wide_and_combining_characters_take_their_columns() -> None:
    assert (width("web"), width("負荷"), width("e\u0301")) == (3, 4, 1)
