"""A text as kubectl reads it: YAML, JSON documents one after the other, or both."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa.api.values import documents
from hvpa.api.values.documents import PlainError, SourceText


def read(text: str, most: int = 1000) -> list[Any]:
    """The documents of a text."""
    return [content for _, content in SourceText(text, most).documents()]


SCALARS = {
    "12:30": "12:30",
    "2026-11-01": "2026-11-01",
    "1e3": 1000,
    "0x2": 2,
    "010": 8,
    "1_000": 1000,
    "3.0": 3,
    ".5": 0.5,
    "Off": False,
    "'Off'": "Off",
    "~": None,
}


@pytest.mark.parametrize("scalar", SCALARS)
def test_a_scalar_is_read_as_kubectl_reads_it(scalar: str) -> None:
    assert read(f"- {scalar}") == [[SCALARS[scalar]]]


def test_merge_keys_and_aliases_are_followed() -> None:
    assert read("auto: &auto {mode: Auto}\nup: {<<: *auto, by: 2}\ndown: *auto") == [
        {"auto": {"mode": "Auto"}, "up": {"mode": "Auto", "by": 2}, "down": {"mode": "Auto"}}
    ]


def test_nulls_in_mappings_are_absent_and_keys_are_text() -> None:
    assert read("{a: , true: 1, 2: [~], 1.5: x}") == [{"true": 1, "2": [None], "1.5": "x"}]


STREAMS = {
    "two after each other": ('{"a": 1}\n{"b": 2}', [1, 2]),
    "on one line": ('{"a": 1}{"b": 2} {"c": 3}', [1, 1, 1]),
    "indented as kubectl does": ('{\n    "a": 1\n}\n{\n    "b": 2\n}\n', [2, 5]),
    "with separators": ('---\n{"a": 1}\n---\n{"b": 2}\n{"c": 3}\n---\n', [2, 4, 5]),
    "before YAML": ('{"a": 1}\n{"b": 2}\n---\nc: 3\n---\nd: 4\n', [1, 2, 4, 6]),
    "after YAML": ('%YAML 1.1\n---\na: 1\n---\nb: 2\n--- # more\n{"c": 3}\n{"d": 4}', [3, 5, 7, 8]),
    "between YAML": ('a: 1\n---\n{"b": 2}\n{"c": 3}\n---\nd: 4\n', [1, 3, 4, 6]),
    "with flow YAML last": ('{"a": 1}\n{"b": 2}\n{c: 3}', [1, 2, 3]),
    "with tabs": ('{\t"a": 1\n}\n{"b":\t2}', [1, 3]),
    "one, with a comment": ('{"a": 1}\n# the end', [1]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_json_documents_follow_each_other_and_know_their_lines(name: str) -> None:
    text, lines = STREAMS[name]
    source = SourceText(text)
    entries = source.documents()
    names = "abcd"[: len(lines)]
    if name != "on one line":
        assert [content for _, content in entries] == [{key: at} for at, key in enumerate(names, 1)]
    assert [source.line(number, key) for (number, _), key in zip(entries, names, strict=True)] == lines


def test_json_that_is_no_yaml_has_the_line_that_it_begins_in() -> None:
    text = SourceText('{"a": 1}\n{"b": "\\ud83d\\ude00"}')
    assert [content for _, content in text.documents()] == [{"a": 1}, {"b": "\U0001f600"}]
    assert text.line(1, "b") == 2


def test_a_number_that_json_does_not_know_is_text_as_in_yaml() -> None:
    assert read('{"a": NaN}') == [{"a": "NaN"}]


def test_a_line_is_1_where_nothing_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SourceText("a: 1").line(7, "a") == 1
    monkeypatch.setattr(documents, "MAX_PLACED", 5)
    assert SourceText("\n\na: 1").line(0, "a") == 1


FAULTS = {
    "a: [": (2, "not YAML: did not find expected node content"),
    "a: 1\na: 2": (2, "not YAML: key 'a' occurs twice"),
    "? [a]\n: b": (1, "not YAML: found unhashable key"),
    "[" * 200: (1, "nested more than 100 deep"),
    '{"a":' * 9000: (1, "nested more than 100 deep"),
    "!!map x": (1, "not YAML: expected a mapping node, but found scalar"),
    "x: !!int y": (None, "not YAML: invalid literal for int()"),
    "x:\n- .inf": (2, "x[0]: inf is not a valid JSON number"),
    "x: !!binary aGk=": (1, "x: a YAML bytes has no JSON form"),
    "x: {~: b}": (1, "x: None can't be a key"),
    "x: &x [*x]": (1, "too large after its aliases are expanded"),
    "[" + "x, " * 1000 + "]": (1, "too large after its aliases are expanded"),
    '{"a": 1}\n{"b": 2}\n{"c": ': (4, "not YAML: did not find"),
    '{"a": 1}\n{"b": 1e999}': (2, "b: inf is not a valid JSON number"),
}


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:20])
def test_a_fault_is_reported_with_its_place(text: str) -> None:
    line, reason = FAULTS[text]
    with pytest.raises(PlainError) as caught:
        read(text)
    assert caught.value.reason.startswith(reason)
    assert caught.value.line == line


PLAIN = st.recursive(
    st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), PLAIN, max_size=4)


@given(
    st.lists(OBJECTS, min_size=1, max_size=4),
    st.lists(st.sampled_from(["", " ", "\n", "\n---\n"]), min_size=4),
)
def test_any_json_objects_one_after_the_other_are_read(objects: list[Any], between: list[str]) -> None:
    pairs = zip(objects, itertools.cycle(between))
    assert read("".join(json.dumps(document) + gap for document, gap in pairs)) == objects


@given(st.lists(OBJECTS, min_size=1, max_size=3))
def test_yaml_and_json_of_the_same_objects_are_read_alike(objects: list[Any]) -> None:
    assert read(yaml.safe_dump_all(objects, default_style='"')) == read("\n".join(map(json.dumps, objects)))


@given(st.text(st.sampled_from("{}[]:,\"'-#&*a1 \n\t%")))
def test_any_text_is_read_or_refused(text: str) -> None:
    source = SourceText(text)
    try:
        entries = source.documents()
    except PlainError:
        return
    assert all(source.line(number, "a") >= 1 for number, _ in entries)
