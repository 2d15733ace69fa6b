"""Running commands as a user does, and documents to run them on."""

from __future__ import annotations

import copy
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.cli.main import main

DATA = Path(__file__).parent / "data"
NOW = "2026-11-21T10:00:00Z"

Doc = dict[str, Any]


class _PlainLoader(yaml.SafeLoader):
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
            content = yaml.safe_dump_all(content if isinstance(content, list) else [content])
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def explain(self, documents: list[Doc], *flags: str, now: str = NOW) -> Any:
        """The JSON that explains these documents."""
        ran = self.run("explain", "-f", self.file(documents), "--now", now, "-o", "json", *flags)
        assert (ran.code, ran.err) == (0, ""), ran.err
        return ran.json


def load(name: str) -> list[Doc]:
    """The documents of a data file, Lists taken apart."""
    found: list[Doc] = []
    for document in yaml.load_all((DATA / name).read_text(encoding="utf-8"), Loader=_PlainLoader):
        found += document["items"] if document["kind"] == "List" else [document]
    return found


def of_kind(documents: list[Doc], kind: str) -> Doc:
    """The first document of a kind."""
    return next(one for one in documents if one["kind"] == kind)


def changed(documents: list[Doc], **changes: Any) -> list[Doc]:
    """A copy with fields changed, by kind and path: `Hvpa__spec__mode="Paused"`. None removes a field; a number in a
    path is an index."""
    result = copy.deepcopy(documents)
    for path, value in changes.items():
        kind, *parents, last = path.split("__")
        place: Any = of_kind(result, kind)
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return result
