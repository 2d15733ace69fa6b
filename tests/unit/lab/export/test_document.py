"""When a file stays as it is: numbers that are near, by the file's own numbers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hvpa_lab.export.document import HEADER, component, is_near, text_of

SIZES = st.integers(min_value=1, max_value=10**15)
KEYS = st.text(st.characters(codec="ascii", categories=["Ll", "Nd"]), min_size=1, max_size=8)
VALUES = st.recursive(
    SIZES.map(str) | SIZES | st.text(max_size=8) | st.booleans(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(KEYS, values, max_size=3),
    max_leaves=8,
)


def patch(cpu: Any, name: str = "app") -> dict[str, Any]:
    """A document with a container."""
    return {"containers": [{"name": name, "resources": {"requests": {"cpu": cpu}}}]}


@pytest.mark.parametrize(
    ("old", "new", "near"),
    [
        ("500m", "550m", True),
        ("500m", "551m", False),
        ("500m", "450m", True),
        ("500m", "449m", False),
        ("1", "1100m", True),
        (1, "1100m", True),
        (0.5, "550m", True),
        ("1Gi", "1074M", True),
        ("0", "1m", False),
        ("much", "1", False),
        ("much", "much", True),
        (True, "1", False),
        ([], "1", False),
    ],
)
def test_a_number_is_near_within_ten_percent_of_the_number_in_the_file(
    old: Any, new: Any, near: bool
) -> None:
    assert is_near(text_of(patch(old)), patch(new), 10) is near


def test_names_are_never_near() -> None:
    assert not is_near(text_of(patch("1", "100")), patch("1", "101"), 10)


@pytest.mark.parametrize("text", ["", "a: [", "a: 1\n---\na: 1\n", "\x00"])
def test_a_text_that_is_no_document_is_far(text: str) -> None:
    assert not is_near(HEADER + text, {"a": 1}, 100)


def test_more_or_fewer_fields_are_far() -> None:
    assert not is_near(text_of({"a": "1"}), {"a": "1", "b": "1"}, 100)
    assert not is_near(text_of({"a": "1", "b": "1"}), {"a": "1"}, 100)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_a_text_is_near_its_own_document_and_reads_as_it(document: dict[str, Any]) -> None:
    text = text_of(document)
    assert text.startswith(HEADER)
    assert yaml.safe_load(text) == document
    assert is_near(text, document, 0)


@given(SIZES, SIZES, st.integers(min_value=0, max_value=100))
def test_near_is_what_the_percentage_says(old: int, new: int, within: int) -> None:
    assert is_near(text_of(patch(f"{old}m")), patch(f"{new}m"), within) is (
        abs(new - old) * 100 <= old * within
    )


@given(st.text(max_size=200), st.text(max_size=20))
def test_no_text_of_a_file_fails(text: str, value: str) -> None:
    is_near(text, patch(value), 10)


def test_names_in_a_component_are_no_expressions() -> None:
    made = component({"b.yaml": ("", "ReplicationController", "b"), "a.yaml": ("apps", "Deployment", "a.b")})
    assert made["patches"] == [
        {"path": "a.yaml", "target": {"group": "apps", "kind": "Deployment", "name": "a\\.b"}},
        {"path": "b.yaml", "target": {"kind": "ReplicationController", "name": "b"}},
    ]


@pytest.mark.parametrize("name", ["1e3", "0e0", "0x1", "0o7", "12", "y", "on", "null"])
def test_a_name_stays_text(name: str) -> None:
    assert f"name: '{name}'" in text_of({"name": name})
