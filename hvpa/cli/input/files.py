"""From files to documents: YAML as kubectl reads it, several documents to a file, Lists taken apart.

What belongs here: text and plain values (dicts, lists, strings, numbers, booleans). What a document means is
found in `hvpa.cli.input.gather` and `hvpa.cli.validate.command`. Everything wrong is a `FileError` that names the
file and the line.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import yaml

from hvpa.api.values.positions import YamlError, check_depth, compose, line_of, yaml_error
from hvpa.cli.errors import CommandError, one_line

STANDARD_INPUT: Final = "-"
MAX_DEPTH: Final = 100
"""Nesting that is read. Kubernetes' objects stay below 40; libyaml overflows the stack at thousands."""
MAX_NODES: Final = 5_000_000
"""Values in one file once its aliases are followed: far above any real one, few enough for memory."""

MAX_PLACED: Final = 20_000_000
"""Characters of a text up to which lines are looked for: beyond that it takes minutes."""

Plain = Any
"""What JSON can say: dict, list, str, int, float, bool."""


class FileError(CommandError):
    """A file that does not hold objects: which file, where in it if that is known, and why."""

    def __init__(self, file: str, reason: str, line: int | None = None, column: int | None = None) -> None:
        at = ":".join(str(one) for one in (file, line, column) if one is not None)
        self.file, self.reason = file, one_line(reason)
        self.line, self.column = line, column
        super().__init__(f"{at}: {self.reason}")


class Text:
    """A file's text, and where in it things stand. That is found out on demand: most files are in order."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text

    @cached_property
    def _nodes(self) -> list[yaml.Node | None]:
        if len(self.text) > MAX_PLACED:
            return []
        try:
            return list(compose(self.text, _Base, MAX_DEPTH))
        except ValueError:  # JSON that is no YAML
            return []

    def line(self, number: int, path: str) -> int:
        """The line of a field in the document of this number (from 0); 1 where the text has no lines to speak of."""
        nodes = self._nodes
        node = nodes[number] if number < len(nodes) else None
        return 1 if node is None else line_of(node, path)


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file: the text it is from, its document in it (from 0), and its path there (`items[2]`)."""

    source: Text
    number: int
    root: str
    content: dict[str, Plain]

    @property
    def file(self) -> str:
        """The file's name, as messages call it."""
        return self.source.file

    def line(self, path: str = "") -> int:
        """The line of the field at `path`, or of the nearest thing around it."""
        return self.source.line(self.number, ".".join(part for part in (self.root, path) if part))

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.content["kind"])

    @property
    def group(self) -> str:
        """The API group, empty for the core one."""
        group, slash, _ = str(self.content.get("apiVersion", "")).partition("/")
        return group if slash else ""

    @property
    def metadata(self) -> dict[str, Plain]:
        """The metadata; empty where there is none."""
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
        """How messages call the object: `web.yaml:3: Deployment default/web`."""
        return self.at("")

    def at(self, path: str) -> str:
        """The same with the line of the field at `path`."""
        return f"{self.file}:{self.line(path)}: {self.title}"


def read_documents(path: str, *, lenient: bool = False) -> list[Document]:
    """All objects of the file at `path` (`-`: standard input); `lenient` leaves out what has neither `kind` nor
    `apiVersion`. Raises FileError."""
    source, contents = load(path)
    found: list[Document] = []
    for number, content in contents:
        if lenient and not (isinstance(content, dict) and {"kind", "apiVersion"} & content.keys()):
            continue
        found += _objects(source, number, "", content)
    return found


def load(path: str) -> tuple[Text, list[tuple[int, Plain]]]:
    """The file's text, and its documents that are not empty as plain values, each with its number (from 0). Raises
    FileError."""
    name = "standard input" if path == STANDARD_INPUT else path
    source = Text(name, _read(path, name))
    found = [(number, _Plainer(source, number).plain(one)) for number, one in enumerate(_parse(source))]
    return source, [(number, content) for number, content in found if content is not None]


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


def _objects(source: Text, number: int, root: str, content: Plain) -> Iterator[Document]:
    """The object at `root`, or the items of the List that stands there."""

    def fault(reason: str, at: str = "") -> FileError:
        path = ".".join(part for part in (root, at) if part)
        named = f"{path}: {reason}" if path else reason
        return FileError(source.file, named, source.line(number, path))

    if not isinstance(content, dict):
        raise fault(f"must be an object of Kubernetes, is {_kind_of(content)}")
    kind = content.get("kind")
    if not isinstance(kind, str) or not kind:
        raise fault("is required" if kind is None else "must be a string", "kind")
    if not kind.endswith("List"):
        yield Document(source, number, root, content)
        return
    items = content.get("items", [])
    if not isinstance(items, list):
        raise fault(f"must be a list, is {_kind_of(items)}", "items")
    inherited = {"apiVersion": content.get("apiVersion"), "kind": kind.removesuffix("List")}
    inherited = {} if kind == "List" else {key: value for key, value in inherited.items() if value}
    for index, item in enumerate(items):
        entry = inherited | item if isinstance(item, dict) else item
        yield from _objects(source, number, f"{root}.items[{index}]".removeprefix("."), entry)


# --- YAML ---------------------------------------------------------------------------------------------------
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Reads scalars as kubectl does (YAML 1.1 by go-yaml): timestamps and `12:30` stay text, `1e3` is a
    number; and a key may stand only once in a mapping."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """The mapping; raises ConstructorError for a key that stands there twice."""
        if isinstance(node, yaml.MappingNode):
            seen: set[tuple[str, str]] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if (key.tag, key.value) in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"key {key.value!r} stands there twice", key.start_mark
                        )
                    seen.add((key.tag, key.value))
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


for _tag, _pattern, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("merge", r"<<", "<"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))


def _parse(source: Text) -> list[Any]:
    if source.text.lstrip()[:1] == "{":
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            return [msgspec.json.decode(source.text)]  # a hundred times faster than YAML
    try:
        check_depth(source.text, _Loader, MAX_DEPTH)
        return list(yaml.load_all(source.text, Loader=_Loader))
    except yaml.YAMLError as error:
        wrong = yaml_error(error)
    except YamlError as error:
        wrong = error
    except (ValueError, OverflowError, RecursionError) as error:
        wrong = YamlError(f"not YAML: {error}")
    raise FileError(source.file, wrong.reason, wrong.line, wrong.column)


class _Plainer:
    """Makes plain values of what a loader made: no nulls in mappings, keys are text, whole numbers ints."""

    def __init__(self, source: Text, number: int) -> None:
        self._source = source
        self._number = number
        self._nodes = 0

    def plain(self, value: Any, path: str = "", depth: int = 0) -> Plain:
        """The plain value; raises FileError where JSON has nothing for it."""
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise self._fault("", "too large once its aliases are followed")
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise self._fault(path, f"{value} is not a number that JSON knows")
            return int(value) if value.is_integer() else value
        if isinstance(value, list):
            return [self.plain(entry, f"{path}[{index}]", depth + 1) for index, entry in enumerate(value)]
        if isinstance(value, dict):
            return self._object(value, path, depth)
        raise self._fault(path, f"a YAML {type(value).__name__} is nothing that JSON knows")

    def _object(self, value: dict[Any, Any], path: str, depth: int) -> dict[str, Plain]:
        found = {}
        for key, entry in value.items():
            if isinstance(key, bool):
                name = str(key).lower()
            elif isinstance(key, str | int | float):
                name = str(key)
            else:
                raise self._fault(path, f"{key!r} can't be a key")
            if entry is not None:
                found[name] = self.plain(entry, f"{path}.{name}" if path else name, depth + 1)
        return found

    def _fault(self, path: str, reason: str) -> FileError:
        line = self._source.line(self._number, path)
        return FileError(self._source.file, f"{path}: {reason}" if path else reason, line)


def _kind_of(value: Plain) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), "nothing")


def below(content: Plain, *names: str) -> Plain:
    """The value at these names; None where there is none."""
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content
