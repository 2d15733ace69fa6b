"""Whatever stands in an object, a command prints lines of its own, and nothing that a terminal obeys."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.cli.support import NOW, Doc, load
from tests.unit.cli.test_fuzz import run

FORGED = "x\x1b[2J\n2026-01-01T00:00:00Z forged \u202e\x85\u2028\x9b1A\x7f"
GARDENER = load("gardener.yaml")
COMMANDS = (
    ("validate",),
    ("explain", "--now", NOW),
    ("explain", "--now", NOW, "-o", "json"),
    ("report",),
    ("init", "--csv", "absent.csv"),
)


def texts(value: Any, *place: Any) -> Iterator[tuple[Any, ...]]:
    """The places of all texts, and of the keys of what maps text to something."""
    if isinstance(value, str):
        yield place
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from texts(child, *place, key)
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from texts(child, *place, number)


PLACES = list(texts(GARDENER))


def forged(documents: list[Doc], place: tuple[Any, ...]) -> list[Doc]:
    """The documents with a text at this place that tries to be more than a text."""
    changed = copy.deepcopy(documents)
    inside: Any = changed
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] += FORGED
    return changed


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sampled_from(PLACES), st.sampled_from(COMMANDS))
def test_no_text_of_an_object_is_obeyed_by_a_terminal(
    monkeypatch: pytest.MonkeyPatch, place: tuple[Any, ...], command: tuple[str, ...]
) -> None:
    raw = "".join(json.dumps(document) + "\n---\n" for document in forged(GARDENER, place))
    code, out, err = run(monkeypatch, raw.encode(), *command)
    assert code in (0, 1, 2)
    lines = (out + err).split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    assert [line for line in lines if line.startswith("2026-01-01T00:00:00Z")] == []
