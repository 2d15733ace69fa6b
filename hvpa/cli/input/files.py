"""From files to documents: YAML as kubectl reads it, several documents per file, Lists split into items.

Only text and plain values (dicts, lists, strings, numbers, booleans) belong here. `hvpa.cli.input.gather` and
`hvpa.cli.validate.command` interpret the documents. Each error is a `FileError` with the file and the line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hvpa.api.schema.base import FieldError
from hvpa.api.values.documents import Numbered, Plain, PlainError, SourceText
from hvpa.cli.errors import CommandError, plain_line

STANDARD_INPUT: Final = "-"


class FileError(CommandError):
    """A file that does not contain objects: the file, the position if known, and the reason."""

    def __init__(self, file: str, reason: str, line: int | None = None, column: int | None = None) -> None:
        at = ":".join(str(part) for part in (file, line, column) if part is not None)
        self.file, self.reason = file, plain_line(reason)
        self.line, self.column = line, column
        super().__init__(f"{at}: {self.reason}")


class Source:
    """The name of a file, as shown in messages, and its text."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = SourceText(text)

    def documents(self) -> list[Numbered]:
        """The file's documents that are not empty. Raises FileError."""
        try:
            return self._text.documents()
        except PlainError as error:
            raise FileError(self.file, error.reason, error.line, error.column) from None

    def line(self, number: int, path: str) -> int:
        """The line of a field in a document; `number` counts from 0."""
        return self._text.line(number, path)


@dataclass(frozen=True, slots=True)
class Document:
    """An object of a file."""

    source: Source
    """The text that contains it."""
    number: int
    """Its document in the text, from 0."""
    root: str
    """Its path in the document (`items[2]`)."""
    content: dict[str, Plain]

    @property
    def file(self) -> str:
        """The name of the file, as shown in messages."""
        return self.source.file

    def line(self, path: str = "") -> int:
        """The line of the field at `path`, or of the nearest enclosing field."""
        return self.source.line(self.number, ".".join(part for part in (self.root, path) if part))

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.content["kind"])

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        group, slash, _ = str(self.content.get("apiVersion", "")).partition("/")
        return group if slash else ""

    @property
    def metadata(self) -> dict[str, Plain]:
        """The metadata; empty if missing."""
        metadata = self.content.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def title(self) -> str:
        """The object's kind and name: `Deployment default/web`, `Deployment web`, or `Deployment` alone."""
        name, namespace = self.metadata.get("name"), self.metadata.get("namespace")
        if not isinstance(name, str) or not name:
            return self.kind
        return f"{self.kind} {namespace}/{name}" if namespace else f"{self.kind} {name}"

    @property
    def place(self) -> str:
        """The title with file and line: `Deployment default/web (web.yaml:3)`."""
        return f"{self.title} ({self.file}:{self.line()})"

    @property
    def label(self) -> str:
        """The object's name in messages: `web.yaml:3: Deployment default/web`."""
        return self.at("")

    def at(self, path: str) -> str:
        """The label with the line of the field at `path`."""
        return f"{self.file}:{self.line(path)}: {self.title}"


def read_documents(
    path: str, *, lenient: bool = False, skip: Callable[[FileError], None] | None = None
) -> list[Document]:
    """All objects of the file at `path` (`-`: standard input). Raises FileError.

    `lenient` omits documents with neither `kind` nor `apiVersion`. If `skip` is given, it gets the error of each
    document that is not an object, and the document is skipped.
    """
    source, contents = load_documents(path)
    documents: list[Document] = []
    for number, content in contents:
        if lenient and not (isinstance(content, dict) and {"kind", "apiVersion"} & content.keys()):
            continue
        for result in _objects(source, number, "", content):
            if isinstance(result, Document):
                documents.append(result)
            elif skip is None:
                raise result
            else:
                skip(result)
    return documents


def load_documents(path: str) -> tuple[Source, list[Numbered]]:
    """The file's text, and its documents that are not empty. Raises FileError."""
    name = "standard input" if path == STANDARD_INPUT else path
    source = Source(name, _read(path, name))
    return source, source.documents()


def _read(path: str, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileError(name, f"not UTF-8 text: {error.reason} at byte {error.start}", line) from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise FileError(name, f"can't be read: {reason}") from None


def _objects(source: Source, number: int, root: str, content: Plain) -> Iterator[Document | FileError]:
    """The object at `root`, or the items of a List there; an error for any other value."""

    def fault(reason: str, at: str = "") -> FileError:
        path = ".".join(part for part in (root, at) if part)
        named = f"{path}: {reason}" if path else reason
        return FileError(source.file, named, source.line(number, path))

    if not isinstance(content, dict):
        yield fault(f"must be an object of Kubernetes, is {_kind_of(content)}")
        return
    kind = content.get("kind")
    if not isinstance(kind, str) or not kind:
        yield fault("is required" if kind is None else "must be a string", "kind")
        return
    if not kind.endswith("List"):
        yield Document(source, number, root, content)
        return
    items = content.get("items", [])
    if not isinstance(items, list):
        yield fault(f"must be a list, is {_kind_of(items)}", "items")
        return
    inherited = {"apiVersion": content.get("apiVersion"), "kind": kind.removesuffix("List")}
    inherited = {} if kind == "List" else {key: value for key, value in inherited.items() if value}
    for index, item in enumerate(items):
        entry = inherited | item if isinstance(item, dict) else item
        yield from _objects(source, number, f"{root}.items[{index}]".removeprefix("."), entry)


def yaml_trap(document: Document, problem: FieldError) -> str:
    """The remedy for a text field that is true or false, because Off was written without quotes; empty for other
    problems."""
    is_bool = isinstance(value_at(document.content, *problem.path.split(".")), bool)
    if is_bool and ("'Off'" in problem.message or problem.message.startswith("must be text")):
        return 'write it in quotes, such as "Off": without them YAML reads Off and On as false and true'
    return ""


def _kind_of(value: Plain) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "nothing")


def value_at(content: Plain, *names: str) -> Plain:
    """The value at these names; None if missing."""
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content
