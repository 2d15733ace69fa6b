"""Running commands as a user does, and documents to run them on."""

from __future__ import annotations

import copy
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.cli.main import main

DATA = Path(__file__).parent / "data"
NOW = "2026-11-21T10:00:00Z"

KINDS = {"HPA": "HorizontalPodAutoscaler", "VPA": "VerticalPodAutoscaler"}

Doc = dict[str, Any]


class _PlainLoader(yaml.CSafeLoader):
    """Keeps timestamps as text."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in entries if not tag.endswith("timestamp")]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The output, read as JSON."""
        assert self.out, self.err
        return json.loads(self.out)


Live = Callable[..., Ran]
"""Runs commands on a cluster."""


class Shell:
    """Runs commands in this process."""

    def __init__(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
    ) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.folder = folder

    def run(self, *argv: str, stdin: str | bytes = b"") -> Ran:
        """The command's end; `stdin` is what it can read."""
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        self._capsys.readouterr()
        code = main(list(argv))
        captured = self._capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    def file(self, content: str | bytes | list[Doc] | Doc, name: str = "case.yaml") -> str:
        """A file with this content."""
        path = self.folder / name
        if isinstance(content, list | dict):
            content = yaml.dump_all(
                content if isinstance(content, list) else [content], Dumper=yaml.CSafeDumper
            )
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def refuses(self, *argv: str, code: int = 1, stdin: str = "") -> str:
        """The line with which a command ends."""
        ran = self.run(*argv, stdin=stdin)
        assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1), ran
        return ran.err

    def text(self, documents: list[Doc], *flags: str, now: str = NOW) -> str:
        """The text that explains these documents."""
        ran = self.run("explain", "-f", self.file(documents), "--now", now, *flags)
        assert (ran.code, ran.err) == (0, ""), ran.err
        return ran.out

    def section(self, documents: list[Doc], heading: str) -> list[str]:
        """The lines of one section of that text, without their indentation; none where it is not shown."""
        blocks = [block.splitlines() for block in self.text(documents).split("\n\n")]
        return [line[2:] for head, *lines in blocks if head == heading for line in lines]

    def explain(self, documents: list[Doc], *flags: str, now: str = NOW) -> Any:
        """The JSON that explains these documents."""
        return json.loads(self.text(documents, "-o", "json", *flags, now=now))


def plain_documents(path: Path) -> list[Doc]:
    """The documents of a YAML file, with timestamps as text."""
    return list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=_PlainLoader))


def load(name: str) -> list[Doc]:
    """The documents of a data file, Lists taken apart."""
    documents: list[Doc] = []
    for document in plain_documents(DATA / name):
        documents += document["items"] if document["kind"] == "List" else [document]
    return documents


def of_kind(documents: list[Doc], kind: str) -> Doc:
    """The first document of a kind (`HPA` and `VPA` are short for theirs)."""
    return next(document for document in documents if document["kind"] == KINDS.get(kind, kind))


def without(documents: list[Doc], *kinds: str) -> list[Doc]:
    """The documents but those of these kinds."""
    return [
        document
        for document in documents
        if document["kind"] not in {KINDS.get(kind, kind) for kind in kinds}
    ]


def changed(documents: list[Doc], **changes: Any) -> list[Doc]:
    """A copy with fields changed, by kind and path: `Hvpa__spec__mode="Paused"`."""
    result = documents
    for path, value in changes.items():
        kind, _, field = path.partition("__")
        result = with_fields(result, kind, None, {field.replace("__", "."): value})
    return result


def with_fields(documents: list[Doc], kind: str, name: str | None, fields: Doc) -> list[Doc]:
    """A copy in which one document (`name` None: the first of its kind) has other fields, by path: `{"spec.replicas":
    1}`. None removes a field; a number in a path is an index."""
    result = copy.deepcopy(documents)
    document = of_kind(
        [document for document in result if name in (None, document["metadata"].get("name"))], kind
    )
    for path, value in fields.items():
        *parents, last = path.split(".")
        place: Any = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is None:
            del place[last]
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return result
