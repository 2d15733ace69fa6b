"""Reading YAML: as kubectl does, Lists taken apart, and every fault reported in one line that names the place."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from hvpa.api.values import documents
from hvpa.cli.errors import CommandError
from hvpa.cli.input import files
from hvpa.cli.input.files import Document, read_documents
from tests.unit.cli.support import Shell


def read(folder: Path, text: str | bytes) -> list[Document]:
    """The documents of a file with this text."""
    path = folder / "case.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_documents(str(path))


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("2026-11-01", "2026-11-01"),
        ("12:30:45", "12:30:45"),
        ("220000-0000", "220000-0000"),
        ("1e3", 1000),
        ("1.5e+2", 150),
        ("3.0", 3),
        ("0.6", 0.6),
        (".5", 0.5),
        ("1_000", 1000),
        ("0x10", 16),
        ("010", 8),
        ("-7", -7),
        ("1.5Gi", "1.5Gi"),
        ("500m", "500m"),
        ("Off", False),
        ('"Off"', "Off"),
        ("yes", True),
        ("=", "="),
    ],
)
def test_a_scalar_is_read_as_kubectl_reads_it(tmp_path: Path, scalar: str, value: object) -> None:
    (document,) = read(tmp_path, f"kind: Thing\nvalue: {scalar}\n")
    assert document.content["value"] == value
    assert type(document.content["value"]) is type(value)


def test_documents_lists_and_json_are_taken_apart(tmp_path: Path) -> None:
    text = """\
---
kind: A
--- # nothing here
---
kind: List
items:
- {kind: B, metadata: {name: b, namespace: n}}
- kind: List
  items: [{kind: C}]
---
{"kind": "DeploymentList", "apiVersion": "apps/v1", "items": [{"metadata": {"name": "d"}}, {"kind": "E"}]}
---
kind: PodList
"""
    documents = read(tmp_path, text)
    assert [document.kind for document in documents] == ["A", "B", "C", "Deployment", "E"]
    assert documents[3].content["apiVersion"] == "apps/v1"
    assert documents[1].label.endswith("case.yaml:7: B n/b")
    assert documents[2].label.endswith("case.yaml:9: C")
    assert documents[3].label.endswith("case.yaml:11: Deployment d")
    assert documents[1].line("metadata.name") == 7


def test_json_is_read_by_a_faster_way(tmp_path: Path) -> None:
    (document,) = read(tmp_path, ' {"kind": "A", "none": null, "list": [null, 1.0, {"x": null}]}')
    assert document.content == {"kind": "A", "list": [None, 1, {}]}


def test_json_documents_are_read_one_after_the_other(tmp_path: Path) -> None:
    stream = '{"kind": "A"}\n---\n{"kind": "B"}\n{"kind": "List", "items": [{"kind": "C"}]}\n'
    documents = read(tmp_path, stream + '{\n  "kind": "D"\n}')
    assert [(document.kind, document.line("kind")) for document in documents] == [
        ("A", 1),
        ("B", 3),
        ("C", 4),
        ("D", 6),
    ]


def test_nulls_and_keys_become_what_json_knows(tmp_path: Path) -> None:
    (document,) = read(
        tmp_path, "\ufeffkind: A\nmetadata: {name: a, namespace: }\nlabels: {3: a, true: b, 1.5: c}\n"
    )
    assert document.content == {
        "kind": "A",
        "metadata": {"name": "a"},
        "labels": {"3": "a", "true": "b", "1.5": "c"},
    }


def test_merge_keys_and_aliases_are_followed(tmp_path: Path) -> None:
    (document,) = read(tmp_path, "kind: A\nbase: &base {x: 1, y: 2}\nmore: {<<: *base, x: 3}\nsame: *base\n")
    assert document.content["more"] == {"x": 3, "y": 2}
    assert document.content["same"] == {"x": 1, "y": 2}


BOMB = "kind: A\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


FAULTS: dict[str, tuple[str | bytes, str]] = {
    "a tab": ("kind: A\n\tx: 1\n", ":2:1: not YAML: found "),
    "an open bracket": ("kind: [\n", ":2:1: not YAML: did not find expected node content"),
    "an unknown alias": ("kind: *x\n", ":1:7: not YAML: found undefined alias"),
    "a key twice": ("kind: A\nx: 1\nx: 2\n", ":3:1: not YAML: key 'x' occurs twice"),
    "a custom tag": (
        "kind: !foo x\n", ":1:7: not YAML: could not determine a constructor for the tag '!foo'"),
    "a control character": (b"kind: \x01\n", "not YAML: "),
    "bytes": (b"kind: \xff\n", ":1: not UTF-8 text: invalid start byte at byte 6"),
    "an endless number": (f"kind: A\nx: {'9' * 5000}\n", "not YAML: "),
    "not a number": ("kind: A\nspec: {x: [.nan]}\n", ":2: spec.x[0]: nan is not a valid JSON number"),
    "binary": ("kind: A\nx: !!binary aGk=\n", ":2: x: a YAML bytes has no JSON form"),
    "a list as a key": ("kind: A\n? [a]\n: b\n", "found unhashable key"),
    "null as a key": ("kind: A\nx: {~: b}\n", ":2: x: None can't be a key"),
    "text": ("hello\n", ":1: must be an object of Kubernetes, is text"),
    "a list": ("- kind: A\n", ":1: must be an object of Kubernetes, is a list"),
    "no kind": ("kind: A\n---\nmetadata: {}\n", ":3: kind: is required"),
    "a kind that is a number": ("kind: 3\n", ":1: kind: must be a string"),
    "items that are none": ("kind: List\nitems: 3\n", ":2: items: must be a list, is a number"),
    "an item that is none": (
        "kind: List\nitems: [3]\n", ":2: items[0]: must be an object of Kubernetes, is a number"),
    "an item that is null": (
        "kind: List\nitems: [~]\n", ":2: items[0]: must be an object of Kubernetes, is nothing"),
    "deep nesting": ("[" * 5000, "nested more than 100 deep"),
    "deep JSON": ('{"kind":' + "[" * 5000, "nested more than 100 deep"),
    "a document in itself": ("kind: A\nx: &x [*x]\n", ":1: too large after its aliases are expanded"),
    "a billion aliases": (BOMB, ":1: too large after its aliases are expanded"),
}  # fmt: skip
"""Texts that are refused, and why."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text, reported = FAULTS[name]
    monkeypatch.setattr(
        files, "SourceText", partial(documents.SourceText, max_values=100_000)
    )  # as many as there may be take seconds
    with pytest.raises(CommandError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "case.yaml"))
    assert reported in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["missing.yaml", "nul\0l"])
def test_a_file_that_can_not_be_read_is_named(shell: Shell, path: str) -> None:
    ran = shell.run("validate", "-f", str(shell.folder / path))
    assert ran.code == 1
    assert "can't be read" in ran.err
    assert len(ran.err.splitlines()) == 2  # and the summary


def test_json_that_yaml_can_not_read_has_no_lines(tmp_path: Path) -> None:
    (document,) = read(tmp_path, '{"kind": "A",\n"x": "\\ud83d\\ude00"}')
    assert document.line("x") in (1, 2)


def test_lines_of_a_huge_text_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_PLACED", 5)
    (document,) = read(tmp_path, "kind: A\nx: 1\n")
    assert document.line("x") == 1
