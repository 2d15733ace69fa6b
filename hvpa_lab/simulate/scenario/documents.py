"""Reads the files of a scenario and their documents, with the line of each field. Documents are read as kubectl reads
manifests (`hvpa.api.values.documents`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hvpa.api.schema.base import FieldError
from hvpa.api.values.documents import PlainError, SourceText
from hvpa_lab.simulate.errors import ScenarioError, refusal

MAX_SIZE: Final = 200_000_000
"""Largest file that is read, in bytes: a value every second for years."""
MAX_VALUES: Final = 100_000
"""Maximum number of values in a document with its aliases expanded: far above any scenario."""


def read_text(path: Path, refuse: Callable[[str], ScenarioError] = ScenarioError) -> str:
    """The file's text. If the file can't be read, raises the error that `refuse` makes of the reason; if it is not
    UTF-8 text, raises ScenarioError."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise refuse(f"{path} can't be read: {reason}") from None
    if len(raw) > MAX_SIZE:
        raise refuse(f"{path} can't be read: it is larger than {MAX_SIZE // 1_000_000} MB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{path}:{line}: not UTF-8 text: {error.reason}") from None


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of a file."""

    file: str
    content: Any
    text: SourceText
    number: int
    """Index of the document in `text`."""
    root: str = ""
    """Paths of the methods are relative to it."""

    def at(self, path: str) -> SourceDocument:
        """The part of the document at `path`."""
        return replace(self, root=self._whole(path))

    def line(self, path: str) -> int:
        """The line of the field; if the field is missing, the line of its nearest parent."""
        return self.text.line(self.number, self._whole(path))

    def refuse(self, path: str, reason: str) -> ScenarioError:
        """The error for the field at `path`."""
        return refusal(self.file, self.line(path), FieldError(self._whole(path), reason))

    def note(self, path: str, text: str) -> str:
        """A note about the field at `path`."""
        return f"{self.file}:{self.line(path)}: {self._whole(path)}: {text}"

    def _whole(self, path: str) -> str:
        return ".".join(part for part in (self.root, path) if part)


def read_documents(file: str, text: str) -> list[SourceDocument]:
    """The non-empty documents of a YAML or JSON text. Raises ScenarioError."""
    whole = SourceText(text, MAX_VALUES)
    try:
        return [SourceDocument(file, content, whole, number) for number, content in whole.documents()]
    except PlainError as error:
        raise refusal(file, error.line or 1, FieldError("", error.reason)) from None
