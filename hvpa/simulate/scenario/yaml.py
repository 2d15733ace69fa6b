"""The files of a scenario, and YAML with the lines that its fields stand in: documents as plain values, and the nodes
they were read from.

What belongs here: text to dicts, lists, strings, numbers and booleans. Scalars are read as kubectl reads them:
timestamps and `12:30` stay text, `1e3` is a number. A key may stand only once in a mapping; anchors and aliases are
followed, merge keys (`<<`) are not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from hvpa.api.schema.base import FieldError, path_of
from hvpa.api.values.positions import YamlError, compose, line_of
from hvpa.simulate.errors import ScenarioError, refusal

MAX_SIZE: Final = 200_000_000
"""Largest file that is read, in bytes: a value every second for years."""
MAX_DEPTH: Final = 50
"""Nesting that is read. Manifests stay below 20; libyaml overflows the stack at thousands."""
MAX_VALUES: Final = 100_000
"""Values in one document once its aliases are followed: far above any scenario."""

_TAG: Final = "tag:yaml.org,2002:"
_Path = tuple[str | int, ...]
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Distinguishes nulls, booleans and numbers from text as YAML readers of Kubernetes do."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


for _kind, _pattern, _first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    (
        "bool",
        r"^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$",
        "yYnNtTfFoO",
    ),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+."),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(_pattern), list(_first))


def read_text(path: Path, refuse: Callable[[str], ScenarioError] = ScenarioError) -> str:
    """The file's text. Raises what `refuse` makes of the reason where there is no such file, and ScenarioError where it
    is no text."""
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
class Source:
    """A document: its file's name as messages call it, its content, and the node that it was read from; `root` is the
    path to the part that paths are relative to."""

    file: str
    content: Any
    node: yaml.Node
    root: str = ""

    def at(self, path: str) -> Source:
        """The part of it at `path`."""
        return replace(self, root=self._whole(path))

    def line(self, path: str) -> int:
        """The line of the field, or of the nearest thing around it where it is missing."""
        return line_of(self.node, self._whole(path))

    def refuse(self, path: str, reason: str) -> ScenarioError:
        """The error for the field at `path`."""
        return refusal(self.file, self.line(path), FieldError(self._whole(path), reason))

    def note(self, path: str, text: str) -> str:
        """What should be known of the field at `path`."""
        return f"{self.file}:{self.line(path)}: {self._whole(path)}: {text}"

    def _whole(self, path: str) -> str:
        return ".".join(part for part in (self.root, path) if part)


def read_documents(file: str, text: str) -> list[Source]:
    """The documents of a YAML text that are not empty. Raises ScenarioError."""
    try:
        documents = compose(text, _Loader, MAX_DEPTH)
    except YamlError as error:
        raise ScenarioError(f"{file}:{error.line or 1}: {error.reason}") from None
    return [Source(file, _Reader(file).value(document, ()), document) for document in documents]


class _Reader:
    """Makes plain values of one document's nodes."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._values = 0

    def value(self, node: yaml.Node, path: _Path) -> Any:
        """What the node at this path stands for."""
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise self._fault(node, (), "too large once its aliases are followed")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        match node.tag.removeprefix(_TAG):
            case "str":
                return node.value
            case "null":
                return None
            case "bool":
                return node.value.lower() in ("yes", "true", "on")
            case "int" | "float" as kind:
                return self._number(node, path, int if kind == "int" else float)
        raise self._fault(node, path, f"a YAML value of type {node.tag} is nothing that is known here")

    def _mapping(self, node: yaml.MappingNode, path: _Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, path, "a key must be text")
            if key.value in found:
                raise self._fault(key, (*path, key.value), "stands there twice")
            found[key.value] = self.value(child, (*path, key.value))
        return found

    def _number(self, node: yaml.Node, path: _Path, read: type[int] | type[float]) -> int | float:
        try:
            value = read(node.value)
        except ValueError:  # thousands of digits; an explicit tag before what is no number
            value = math.nan
        if isinstance(value, float) and not math.isfinite(value):
            raise self._fault(node, path, f"{node.value[:30]} is not a number that is known here")
        return value

    def _fault(self, node: yaml.Node, path: _Path, reason: str) -> ScenarioError:
        return refusal(self._file, node.start_mark.line + 1, FieldError(path_of(path), reason))
