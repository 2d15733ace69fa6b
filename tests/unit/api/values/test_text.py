"""Text that another client wrote, made fit to be reported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values.text import (
    MESSAGE_LENGTH,
    MOST_NAMES,
    joined,
    names,
    one_line,
    printable,
    printable_json,
    reason,
)

ANYTHING = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain: é 漢 'quoted' \\", "plain: é 漢 'quoted' \\", id="what is to be seen stays"),
        pytest.param("a\nb\r\tc", "a\\nb\\r\\tc", id="line breaks"),
        pytest.param("\x1b[31m\x9b2J\x7f", "\\x1b[31m\\x9b2J\\x7f", id="what a terminal obeys"),
        pytest.param(
            "\u202e\u2066\u200b\ufeff", "\\u202e\\u2066\\u200b\\ufeff", id="what turns or hides text"
        ),
        pytest.param("\x00\x85\u2028\ud800", "\\x00\\x85\\u2028\\ud800", id="what is no character"),
        pytest.param("\U000e0041", "\\U000e0041", id="a tag"),
    ],
)
def test_what_is_not_to_be_seen_is_shown_by_its_number(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(ANYTHING, st.integers(1, 50))
def test_any_text_is_one_line_of_bounded_length(text: str, length: int) -> None:
    line = one_line(text, length)
    assert line.isprintable()
    assert len(line) <= length
    assert line == text or not text.isprintable() or line.endswith("…")
    line.encode()


def test_a_text_of_megabytes_is_cut() -> None:
    line = one_line("x\n" * 10**6)
    assert len(line) == MESSAGE_LENGTH
    assert line.endswith("…")


@pytest.mark.parametrize("given", ["", "two words", "a\nb", "x" * 129, "é", "1st", "Ends:", "a-b"])
def test_a_reason_that_is_no_word_is_replaced(given: str) -> None:
    assert reason(given, "Other") == "Other"


@pytest.mark.parametrize("given", ["FailedGetScale", "A", "x" * 128, "Metrics:None,Other_9"])
def test_a_reason_that_is_a_word_stays(given: str) -> None:
    assert reason(given, "Other") == given


def test_of_many_names_the_first_are_shown() -> None:
    assert names([]) == ""
    assert names(["b", "a"]) == "b, a"
    texts = [str(number) for number in range(MOST_NAMES)]
    assert names(texts) == ", ".join(texts)
    assert names([*texts, "x", "y"]) == f"{', '.join(texts)} and 2 more"


def test_sentences_become_one() -> None:
    assert joined(["a.", "b", "c."]) == "a; b; c."


@given(st.dictionaries(ANYTHING, st.lists(ANYTHING | st.integers(), max_size=2), max_size=3))
def test_json_that_is_printable_means_the_same(value: dict[str, object]) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    shown = printable_json(text)
    assert shown.replace("\n", "").isprintable()
    assert json.loads(shown) == value


def test_json_says_what_is_not_to_be_seen_in_ascii() -> None:
    assert printable_json('{"é\x7f\u202e\U000e0041":1}') == '{"é\\u007f\\u202e\\udb40\\udc41":1}'
    assert printable_json('{"é":1}') == '{"é":1}'
