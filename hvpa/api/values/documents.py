"""Reads a text as kubectl does: YAML documents, a sequence of JSON documents, or both, as plain values.

The result contains dicts, lists, strings, numbers and booleans, and the lines of fields. Scalars follow YAML 1.1 as in
go-yaml: timestamps and `12:30` stay text, `1e3` and `0x2` are numbers, `<<` merges. A null in a mapping counts as
absent. A duplicate key in a mapping is an error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import yaml

from hvpa.api.values.positions import YamlError, check_depth, compose, line_of, yaml_error

MAX_DEPTH: Final = 100
"""Maximum nesting. Kubernetes objects stay below 40; libyaml overflows the stack at thousands."""
MAX_VALUES: Final = 5_000_000
"""Maximum number of values in a document after aliases are resolved: far more than in real documents, few enough for
memory."""
MAX_PLACED: Final = 20_000_000
"""Maximum length of a text for which lines are searched. For longer texts the search takes minutes."""

Plain = Any
"""Types that JSON can express: dict, list, str, int, float, bool."""
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)[^\n]*\n?", re.MULTILINE)
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainError(ValueError):
    """A text that is neither YAML nor JSON, or that contains something JSON can't express. It has the reason and the
    position (line and column from 1; None if unknown)."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.line, self.column = reason, line, column


class Numbered(NamedTuple):
    """A non-empty document and its number in the text (from 0)."""

    number: int
    content: Plain


class _Piece(NamedTuple):
    """A part of a text: a JSON document (`value`), or a stream of YAML documents. `offset` lines precede it."""

    offset: int
    text: str
    value: Plain = None


class SourceText:
    """A text, its documents, and the positions of fields. Positions are calculated on demand, because most texts have
    no errors."""

    def __init__(self, text: str, max_values: int = MAX_VALUES) -> None:
        """`max_values` is the limit for one document."""
        self.text = text
        self._max_values = max_values

    def documents(self) -> list[Numbered]:
        """Returns the non-empty documents. Raises PlainError."""
        if self.text.lstrip()[:1] == "{":
            try:
                values = [msgspec.json.decode(self.text)]  # a hundred times faster than YAML
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                values = self._values()
        else:
            values = self._values()
        numbered = [(number, self._plain(number, value)) for number, value in enumerate(values)]
        return [Numbered(number, content) for number, content in numbered if content is not None]

    def line(self, number: int, path: str) -> int:
        """Returns the line of a field in the document with this number; 1 if unknown."""
        nodes = self._nodes
        if number >= len(nodes):
            return 1
        offset, node = nodes[number]
        return offset + (1 if node is None else line_of(node, path))

    def _values(self) -> list[Any]:
        return [
            value
            for piece in self._pieces
            for value in ([piece.value] if piece.value is not None else _yaml_values(piece))
        ]

    @cached_property
    def _pieces(self) -> list[_Piece]:
        return list(_pieces(self.text))

    @cached_property
    def _nodes(self) -> list[tuple[int, yaml.Node | None]]:
        """Returns the documents' nodes, with the number of lines before their pieces."""
        if len(self.text) > MAX_PLACED:
            return []
        nodes: list[tuple[int, yaml.Node | None]] = []
        for piece in self._pieces:
            try:
                nodes += [(piece.offset, node) for node in compose(piece.text, _Base, MAX_DEPTH)]
            except ValueError:  # JSON, but not YAML
                nodes.append((piece.offset, None))
        return nodes

    def _plain(self, number: int, value: Any) -> Plain:
        try:
            return _Plainer(self._max_values).plain(value)
        except _Fault as fault:
            reason = f"{fault.path}: {fault.reason}" if fault.path else fault.reason
            raise PlainError(reason, self.line(number, fault.path)) from None


# --- pieces -----------------------------------------------------------------------------------------------------------
def _pieces(text: str) -> Iterator[_Piece]:
    """Returns the text in pieces, so that each JSON document of a sequence is a piece. Without such documents, the text
    is one piece."""
    chunks = list(_chunks(text))
    streams = [_json_stream(text, place, chunk) for place, chunk in chunks]
    if not any(streams):
        yield _Piece(0, text)
        return
    begin = 0  # of the YAML before the next stream
    for (place, chunk), stream in zip(chunks, streams, strict=True):
        if stream:
            if text[begin:place].strip(" \n-"):
                yield _Piece(text.count("\n", 0, begin), text[begin:place])
            yield from stream
            begin = place + len(chunk)
    if text[begin:].strip(" \n-"):
        yield _Piece(text.count("\n", 0, begin), text[begin:])


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    """Yields the parts between the document separators, each with its offset in the text."""
    begin = 0
    for separator in _SEPARATOR.finditer(text):
        yield begin, text[begin : separator.start()]
        begin = separator.end()
    yield begin, text[begin:]


def _json_stream(text: str, place: int, chunk: str) -> list[_Piece]:
    """Returns the JSON documents at the start of a chunk, and the rest. Returns no documents if the chunk is YAML:
    empty, or a document and a comment."""
    pieces: list[_Piece] = []
    position = len(chunk) - len(chunk.lstrip())
    while chunk.startswith("{", position):
        try:
            value, end = _json.raw_decode(chunk, position)
        except (ValueError, RecursionError):
            break
        pieces.append(_Piece(text.count("\n", 0, place + position), chunk[position:end], value))
        position = end + len(chunk[end:]) - len(chunk[end:].lstrip())
    remainder = chunk[position:]
    if remainder and pieces:
        pieces.append(_Piece(text.count("\n", 0, place + position), remainder))
    return pieces if not remainder or (pieces[1:] and pieces[1].text.startswith("{")) else []


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a valid JSON number")


_json: Final = json.JSONDecoder(parse_constant=_refuse_constant)


# --- YAML -------------------------------------------------------------------------------------------------------------
class _Loader(_Base):  # type: ignore[misc]
    """Reads scalars as go-yaml does, and rejects duplicate keys in a mapping."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        """Returns the mapping. Raises ConstructorError for a duplicate key."""
        if isinstance(node, yaml.MappingNode):
            seen: set[tuple[str, str]] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    if (key.tag, key.value) in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"key {key.value!r} occurs twice", key.start_mark
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


def _yaml_values(piece: _Piece) -> list[Any]:
    try:
        check_depth(piece.text, _Loader, MAX_DEPTH)
        return list(yaml.load_all(piece.text, Loader=_Loader))
    except yaml.YAMLError as error:
        wrong = yaml_error(error)
    except YamlError as error:
        wrong = error
    except (ValueError, OverflowError, RecursionError) as error:
        wrong = YamlError(f"not YAML: {error}")
    line = None if wrong.line is None else wrong.line + piece.offset
    raise PlainError(wrong.reason, line, wrong.column)


class _Fault(ValueError):
    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path, self.reason = path, reason


class _Plainer:
    """Converts a loader's result to plain values: no nulls in mappings, keys as text, whole numbers as ints."""

    def __init__(self, most: int) -> None:
        self._left = most

    def plain(self, value: Any, path: str = "", depth: int = 0) -> Plain:
        """Returns the plain value. Raises _Fault if JSON can't express it."""
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise _Fault("", "too large after its aliases are expanded")
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _Fault(path, f"{value} is not a valid JSON number")
            return int(value) if value.is_integer() else value
        if isinstance(value, list):
            return [self.plain(entry, f"{path}[{index}]", depth + 1) for index, entry in enumerate(value)]
        if isinstance(value, dict):
            return self._object(value, path, depth)
        raise _Fault(path, f"a YAML {type(value).__name__} has no JSON form")

    def _object(self, value: dict[Any, Any], path: str, depth: int) -> dict[str, Plain]:
        entries = {}
        for key, entry in value.items():
            if isinstance(key, bool):
                name = str(key).lower()
            elif isinstance(key, str | int | float):
                name = str(key)
            else:
                raise _Fault(path, f"{key!r} can't be a key")
            if entry is not None:
                entries[name] = self.plain(entry, f"{path}.{name}" if path else name, depth + 1)
        return entries
