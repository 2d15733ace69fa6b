"""How often the phrases occur that make a reader stop."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools import prose


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HVPA adds the pods that demand needs.", ()),
        ("What is needed is what one asks for.", ("what", "what", "one(s)")),
        ("`what` and ```\nwhere\n``` are code, [one](what.md) has an address.", ("one(s)",)),
        ("They are to be replaced, so often, anew.", ("is/are to do", "so much", "old words")),
        ("The limit was to the point.", ()),
    ],
)
def test_phrases_are_counted_outside_of_code(text: str, expected: tuple[str, ...]) -> None:
    counted = prose.count(text)
    assert dict(zip(prose.PHRASES, counted.phrases, strict=True)) == {
        phrase: expected.count(phrase) for phrase in prose.PHRASES
    }


def test_docstrings_of_attributes_count_and_short_strings_do_not() -> None:
    source = '"""Of the module."""\nLIMIT = 3\n"""Of the limit."""\nprint("too short", f"{LIMIT} is a whole sentence")'
    assert prose.texts_of_module(source) == ("Of the module.\nOf the limit.", " is a whole sentence")


def test_a_frequency_above_its_ceiling_is_named() -> None:
    counted = prose.total([prose.count("what " * 9), prose.count("pods " * 991)])
    assert counted.words == 1000
    assert prose.above("README", counted) == [
        "README: 'what' occurs 9.0 times per 1,000 words; at most 2.5 is allowed"
    ]


def test_every_part_has_a_ceiling_for_every_phrase_and_files() -> None:
    assert {len(ceilings) for ceilings in prose.CEILINGS.values()} == {len(prose.PHRASES)}
    assert {part for part, _, text in prose.parts(prose.ROOT) if text} == prose.CEILINGS.keys()


def test_the_command_prints_a_row_for_each_part() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tools.prose", "--files", "1"],
        cwd=prose.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line.split()[0] for line in ran.stdout.splitlines() if line[0] != " "] == ["per", *prose.CEILINGS]
