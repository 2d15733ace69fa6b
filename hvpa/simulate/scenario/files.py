"""Reading the files of a scenario: the text of one, whatever may be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hvpa.simulate.errors import ScenarioError

MAX_SIZE: Final = 200_000_000
"""Largest file that is read, in bytes: a value every second for years."""


class Unreadable(ValueError):
    """A file that can't be read at all; the text is the reason."""


def read_text(path: Path) -> str:
    """The file's text. Raises Unreadable where there is no such file, and ScenarioError where it is no text."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SIZE + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise Unreadable(f"{path} can't be read: {reason}") from None
    if len(raw) > MAX_SIZE:
        raise Unreadable(f"{path} can't be read: it is larger than {MAX_SIZE // 1_000_000} MB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{path}:{line}: not UTF-8 text: {error.reason}") from None
