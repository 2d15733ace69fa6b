"""What every line of the log goes through: what others wrote can't forge a line, obey a terminal, or fill a disk.

What belongs here: structlog's processors for both styles, and how JSON is written.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

import msgspec

from hvpa.api.values.text import printable, printable_json

MOST_TEXT: Final = 2048
"""Characters of one value."""
MOST_ENTRIES: Final = 50
"""Entries of one mapping or list, and values of one line."""
MOST_TRACEBACK: Final = 16_384
"""Characters of a traceback: of a longer one its end, which says most."""
DEEPEST: Final = 4
"""Mappings and lists in one another; what is deeper is written as text."""
_EXCEPTION: Final = "exception"
_INDENT: Final = "    "

Entry = MutableMapping[str, Any]


def bounded(logger: object, method: str, entry: Entry) -> Entry:
    """Cut what is too long. A processor for after the traceback is text."""
    traceback = entry.pop(_EXCEPTION, None)
    result: Entry = _bounded(entry, 0)
    if traceback is not None:
        result[_EXCEPTION] = _cut_front(str(traceback))
    return result


def one_line(logger: object, method: str, entry: Entry) -> Entry:
    """All text without what a terminal obeys, for people: a line break in it is written as `\\n`, and the lines of a
    traceback are indented."""
    traceback = entry.pop(_EXCEPTION, None)
    result: Entry = {printable(str(key)): _plain(value) for key, value in entry.items()}
    if traceback is not None:
        result[_EXCEPTION] = "\n".join(_INDENT + printable(line) for line in traceback.split("\n"))
    return result


def to_json(line: object, default: Any = None, **options: object) -> bytes:
    """One line of JSON, in ASCII wherever a character is not to be seen. Never raises."""
    try:
        encoded = msgspec.json.encode(line, enc_hook=_as_text)
    except (
        UnicodeEncodeError,
        TypeError,
        ValueError,
        RecursionError,
    ):  # text that is no Unicode, keys that are no text
        encoded = json.dumps(line, default=str, skipkeys=True).encode()
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return printable_json(encoded.decode()).encode()


def _bounded(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, int | float | dt.datetime | dt.timedelta | None):
        return value if not isinstance(value, int) or abs(value) < 2**64 else "a huge number"
    if depth < DEEPEST and isinstance(value, Mapping):
        return {
            _cut(str(key)): _bounded(entry, depth + 1) for key, entry in list(value.items())[:MOST_ENTRIES]
        }
    if depth < DEEPEST and isinstance(value, list | tuple):
        return [_bounded(entry, depth + 1) for entry in value[:MOST_ENTRIES]]
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


def _cut_front(text: str) -> str:
    return text if len(text) <= MOST_TRACEBACK else f"…{text[1 - MOST_TRACEBACK :]}"


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return value if isinstance(value, int | float | None) else printable(str(value))


def _as_text(value: object) -> str:
    return str(value)
