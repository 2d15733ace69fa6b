"""YAML with the lines that its fields stand in: documents as plain values, and the nodes they were read from.

What belongs here: text to dicts, lists, strings, numbers and booleans. Scalars are read as kubectl reads them:
timestamps and `12:30` stay text, `1e3` is a number. A key may stand only once in a mapping; anchors and aliases are
followed, merge keys (`<<`) are not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml

from hvpa.api.schema.base import FieldError, path_of
from hvpa.api.values.positions import YamlError, compose, line_of
from hvpa.simulate.errors import ScenarioError, refusal

MAX_DEPTH: Final = 50
"""Nesting that is read. Manifests stay below 20; libyaml overflows the stack at thousands."""
MAX_VALUES: Final = 100_000
"""Values in one document once its aliases are followed: far above any scenario."""

_TAG: Final = "tag:yaml.org,2002:"
_Path = tuple[str | int, ...]
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Tells nulls, booleans and numbers from text as YAML readers of Kubernetes do."""

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


@dataclass(frozen=True, slots=True)
class Source:
    """A document: its file's name as messages call it, its content, and the node that it was read from."""

    file: str
    content: Any
    node: yaml.Node

    def line(self, path: str) -> int:
        """The line of the field, or of the nearest thing around it where it is missing."""
        return line_of(self.node, path)

    def refuse(self, path: str, reason: str) -> ScenarioError:
        """The error for the field at `path`."""
        return refusal(self.file, self.line(path), FieldError(path, reason))


def read_documents(file: str, text: str) -> list[Source]:
    """The documents of a YAML text that are not empty. Raises ScenarioError."""
    try:
        documents = compose(text, _Loader, MAX_DEPTH)
    except YamlError as error:
        raise ScenarioError(f"{file}:{error.line or 1}: {error.reason}") from None
    return [_Reader(file, document).read() for document in documents]


class _Reader:
    """Makes plain values of one document's nodes."""

    def __init__(self, file: str, node: yaml.Node) -> None:
        self._file = file
        self._node = node
        self._values = 0

    def read(self) -> Source:
        return Source(self._file, self._value(self._node, ()), self._node)

    def _value(self, node: yaml.Node, path: _Path) -> Any:
        self._values += 1
        if self._values > MAX_VALUES or len(path) > MAX_DEPTH:
            raise self._fault(node, (), "too large once its aliases are followed")
        if isinstance(node, yaml.MappingNode):
            return {key: self._value(child, (*path, key)) for key, child in self._entries(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node, path)

    def _entries(self, node: yaml.MappingNode, path: _Path) -> Iterator[tuple[str, yaml.Node]]:
        seen: set[str] = set()
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._fault(key, path, "a key must be text")
            if key.value in seen:
                raise self._fault(key, (*path, key.value), "stands there twice")
            seen.add(key.value)
            yield key.value, child

    def _scalar(self, node: yaml.Node, path: _Path) -> Any:
        text: str = node.value
        match node.tag.removeprefix(_TAG):
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() in ("yes", "true", "on")
            case "int" | "float" as kind:
                return self._number(node, path, kind)
        raise self._fault(node, path, f"a YAML value of type {node.tag} is nothing that is known here")

    def _number(self, node: yaml.Node, path: _Path, kind: str) -> int | float:
        try:
            if kind == "int":
                return int(node.value)
            value = float(node.value)
        except ValueError:  # thousands of digits; an explicit tag before what is no number
            value = math.nan
        if not math.isfinite(value):
            raise self._fault(node, path, f"{node.value[:30]} is not a number that is known here")
        return value

    def _fault(self, node: yaml.Node, path: _Path, reason: str) -> ScenarioError:
        return refusal(self._file, node.start_mark.line + 1, FieldError(path_of(path), reason))
