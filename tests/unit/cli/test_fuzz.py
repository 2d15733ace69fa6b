"""Whatever is in a file, a command ends with a code and one line, never with a traceback.
A document that can't be used is skipped with a line of its own."""

from __future__ import annotations

import copy
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hvpa.api.hvpa.resource import parse_spec
from hvpa.cli.input.files import load_documents as load_values
from hvpa.cli.main import main
from hvpa.core.spec.check import spec_problems
from tests.unit.cli import resizing
from tests.unit.cli.support import NOW, Doc, load, of_kind

pytestmark = pytest.mark.long

KINDS = ("Hvpa", "Deployment", "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "Pod")
GARDENER = load("gardener.yaml")
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
FUZZ = settings(max_examples=25, suppress_health_check=SLOW)
TEXTS = [
    "500m", "1Gi", "-1", "1e99", "0", "3m", "2540400h", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "Auto", "*",
]  # fmt: skip
KEYS = st.sampled_from(["name", "cpu", "memory", "kind", "items", "spec", "type", "x"])
commands = st.sampled_from(["validate", "explain"])
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(TEXTS)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def run(monkeypatch: pytest.MonkeyPatch, raw: bytes, *argv: str) -> tuple[int, str, str]:
    """Code, output and errors of a command that reads from standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*argv, "-f", "-"])
    return code, out.getvalue(), err.getvalue()


def ends_well(monkeypatch: pytest.MonkeyPatch, raw: bytes, *argv: str) -> None:
    """The command ends without a traceback and without an error of ours, whatever it reads from standard input."""
    code, out, reported = run(monkeypatch, raw, *argv)
    assert code in (0, 1, 2)
    assert "Traceback" not in reported
    assert "internal error" not in reported
    assert (code == 0) == bool(out)
    if argv[0] == "validate" and code == 0:
        assert all(": warning: " in line or ": note: " in line for line in reported.splitlines())
    if argv[0] == "explain":
        errors = [line for line in reported.splitlines() if not line.startswith("hvpa: skipped: ")]
        assert len(errors) == (code != 0)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of all values below a document."""
    paths = [path] if path else []
    entries: Any = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return paths + [below for key, entry in entries for below in places(entry, (*path, key))]


RESIZED = [
    resizing.hvpa(),
    resizing.deployment(),
    resizing.vpa(),
    resizing.pod("small", resizing.SMALL),
    resizing.pod(
        "full", has=resizing.SMALL, condition=resizing.resizing("PodResizePending", "Deferred", "no room")
    ),
]
"""Pods that are resized in place."""
PLACES = [
    (documents, number, path)
    for documents in (GARDENER, RESIZED)
    for number, document in enumerate(documents[:5])
    for path in places(document)
]


@FUZZ
@given(
    text=st.text(alphabet=st.sampled_from("kind: HvpaList[]{},-&*x!|>'\"\n\t #%@~?0.e"), max_size=60),
    command=commands,
)
def test_any_text(monkeypatch: pytest.MonkeyPatch, text: str, command: str) -> None:
    ends_well(monkeypatch, text.encode("utf-8", "surrogatepass"), command)


@FUZZ
@given(raw=st.binary(max_size=60), command=commands)
def test_any_bytes(monkeypatch: pytest.MonkeyPatch, raw: bytes, command: str) -> None:
    ends_well(monkeypatch, raw, command)


@FUZZ
@given(kind=st.sampled_from(KINDS), spec=values, status=values, metadata=values)
def test_any_object_of_our_kinds(
    monkeypatch: pytest.MonkeyPatch, kind: str, spec: Any, status: Any, metadata: Any
) -> None:
    api_version = of_kind(GARDENER, kind)["apiVersion"]
    document = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}
    hvpa = of_kind(GARDENER, "Hvpa")
    stream = json.dumps({"kind": "List", "items": [document] if kind == "Hvpa" else [hvpa, document]})
    ends_well(monkeypatch, stream.encode(), "explain", "--now", NOW)
    ends_well(monkeypatch, stream.encode(), "validate")


@settings(FUZZ, max_examples=60)
@given(place=st.sampled_from(PLACES), value=values, output=st.sampled_from(["text", "json"]))
def test_any_value_in_any_place(
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[list[Doc], int, tuple[str | int, ...]],
    value: Any,
    output: str,
) -> None:
    sound, number, (*parents, last) = place
    documents: list[Doc] = copy.deepcopy(sound)
    where: Any = documents[number]
    for part in parents:
        where = where[part]
    where[last] = value
    stream = json.dumps({"kind": "List", "items": documents})
    ends_well(monkeypatch, stream.encode(), "explain", "--now", NOW, "-o", output)


@settings(FUZZ, max_examples=60)
@given(place=st.sampled_from(places(GARDENER[0])), value=values)
def test_what_has_no_error_is_accepted_by_the_models(
    monkeypatch: pytest.MonkeyPatch, place: tuple[str | int, ...], value: Any
) -> None:
    document = copy.deepcopy(of_kind(GARDENER, "Hvpa"))
    where: Any = document
    *parents, last = place
    try:
        for part in parents:
            where = where[part]
        where[last] = value
    except (KeyError, TypeError, IndexError):  # a place of another document
        return
    raw = json.dumps(document).encode()
    code, out, _ = run(monkeypatch, raw, "validate", "-o", "json")
    errors = json.loads(out)["errors"]
    assert (code == 0) == (errors == 0)
    if errors == 0:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        _, ((_, content),) = load_values("-")  # to YAML, the NaN of Python's JSON is text
        spec, problems = parse_spec(content["spec"])
        assert spec is not None, problems
        assert spec_problems(spec) == ()


def test_places_are_all_over_the_documents() -> None:
    assert len(PLACES) > 100
