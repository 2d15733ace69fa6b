"""From files to documents: YAML as kubectl reads it, several documents to a file, Lists taken apart.

What belongs here: text and plain values (dicts, lists, strings, numbers, booleans). What a document means is
found in `hvpa.cli.gather` and `hvpa.cli.validate`. Everything wrong is a `CommandError` that names the place.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import yaml

from hvpa.cli.errors import CommandError, one_line

STANDARD_INPUT: Final = "-"
MAX_DEPTH: Final = 100
"""Nesting that is read. Kubernetes' objects stay below 40; libyaml overflows the stack at thousands."""
MAX_NODES: Final = 5_000_000
"""Values in one file once its aliases are followed: far above any real one, few enough for memory."""

Plain = Any
"""What JSON can say: dict, list, str, int, float, bool."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file. `place` tells where it stands: `web.yaml: document 2`."""

    file: str
    place: str
    content: dict[str, Plain]

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
    def label(self) -> str:
        """How messages call the object: `web.yaml: Deployment default/web`, or its place."""
        name, namespace = self.metadata.get("name"), self.metadata.get("namespace")
        if not isinstance(name, str) or not name:
            return f"{self.place}: {self.kind}"
        return (
            f"{self.file}: {self.kind} {namespace}/{name}"
            if namespace
            else f"{self.file}: {self.kind} {name}"
        )


def read_documents(path: str) -> list[Document]:
    """All objects of the file at `path` (`-`: standard input). Raises CommandError."""
    name = "standard input" if path == STANDARD_INPUT else path
    found: list[Document] = []
    for number, content in enumerate(_load(name, _read(path, name)), start=1):
        if content is not None:
            found += _objects(name, f"{name}: document {number}", content)
    return found


def _read(path: str, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{name}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CommandError(f"{name}: can't be read: {reason}") from None


def _objects(file: str, place: str, content: Plain) -> Iterator[Document]:
    """The object at `place`, or the items of the List that stands there."""
    if not isinstance(content, dict):
        raise CommandError(f"{place}: must be an object, is {_kind_of(content)}")
    kind = content.get("kind")
    if not isinstance(kind, str) or not kind:
        raise CommandError(f"{place}: kind: {'is required' if kind is None else 'must be a string'}")
    if not kind.endswith("List"):
        yield Document(file, place, content)
        return
    items = content.get("items", [])
    if not isinstance(items, list):
        raise CommandError(f"{place}: items: must be a list, is {_kind_of(items)}")
    inherited = {"apiVersion": content.get("apiVersion"), "kind": kind.removesuffix("List")}
    inherited = {} if kind == "List" else {key: value for key, value in inherited.items() if value}
    for number, item in enumerate(items, start=1):
        entry = inherited | item if isinstance(item, dict) else item
        yield from _objects(file, f"{place}, item {number}", entry)


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


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$"),
    list("yYnNtTfFoO"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)


def _load(name: str, text: str) -> list[Plain]:
    """The documents of a text as plain values, None for an empty one."""
    return [
        _Plainer(f"{name}: document {number}").plain(one)
        for number, one in enumerate(_parse(name, text), start=1)
    ]


def _parse(name: str, text: str) -> list[Any]:
    if text.lstrip()[:1] == "{":
        try:
            return [msgspec.json.decode(text)]  # exported with -o json, and a hundred times faster than YAML
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    try:
        _check_depth(name, text)
        return list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise CommandError(f"{name}: {at}{one_line(error.problem or error.context)}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise CommandError(f"{name}: not YAML: {one_line(error)}") from None


def _check_depth(name: str, text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise CommandError(f"{name}: nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Plainer:
    """Makes plain values of what a loader made: no nulls in mappings, keys are text, whole numbers ints."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._nodes = 0

    def plain(self, value: Any, path: str = "", depth: int = 0) -> Plain:
        """The plain value; raises CommandError where JSON has nothing for it."""
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise CommandError(f"{self._place}: too large once its aliases are followed")
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

    def _fault(self, path: str, message: str) -> CommandError:
        return CommandError(f"{self._place}: {path}: {message}" if path else f"{self._place}: {message}")


def _kind_of(value: Plain) -> str:
    names = {
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "nothing")
