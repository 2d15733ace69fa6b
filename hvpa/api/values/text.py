"""Makes text from other clients safe for a condition, an Event, a log or an explanation: a single line of limited
length. Names and messages of Kubernetes objects may contain line breaks, escape sequences, bidirectional control
characters, and megabytes of text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

MESSAGE_LENGTH: Final = 4096
"""Maximum length of a condition's or an Event's message (`metav1.Condition` allows 32768, more than anybody reads)."""
REASON_LENGTH: Final = 128
"""Maximum length of a reason, which is a single word."""
MOST_NAMES: Final = 10
"""Maximum number of names that a message lists."""
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)
"""A valid reason of `metav1.Condition`."""


def printable(text: str) -> str:
    """Returns the text with each invisible character escaped as in Python: `\\n`, `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        [
            character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
            for character in text
        ]
    )


def printable_json(text: str) -> str:
    """Returns equivalent JSON without invisible characters, except line breaks between values."""
    if text.isprintable():
        return text
    # JSON does not escape DEL, the only invisible ASCII character it leaves.
    whole = text.replace("\x7f", "\\u007f")
    return "".join(
        [
            character if character.isprintable() or character == "\n" else json.dumps(character)[1:-1]
            for character in whole
        ]
    )


def one_line(text: str, length: int = MESSAGE_LENGTH) -> str:
    """Returns the text as a single line of at most `length` characters. A shortened text ends with an ellipsis."""
    if len(text) <= length and text.isprintable():
        return text
    line = printable(text[: length + 1])
    return line if len(line) <= length else f"{line[: length - 1]}…"


def reason(text: str, otherwise: str) -> str:
    """Returns another controller's reason, or `otherwise` if it is not a word of usual length."""
    return text if len(text) <= REASON_LENGTH and _REASON.fullmatch(text) else otherwise


def joined(parts: Iterable[str]) -> str:
    """Joins sentences with semicolons instead of full stops: `a.` and `b` become `a; b`."""
    whole = list(parts)
    return "; ".join([*(part.rstrip(". ") for part in whole[:-1]), *whole[-1:]])


def counted(replicas: int) -> str:
    """Returns a number of replicas: `1 replica`, `5 replicas`."""
    return f"{replicas} replica{'' if replicas == 1 else 's'}"


def names(all_names: list[str]) -> str:
    """Returns names with commas between them. If there are many: the first names, and the number of the others."""
    shown = ", ".join(all_names[:MOST_NAMES])
    others = len(all_names) - MOST_NAMES
    return shown if others <= 0 else f"{shown} and {others} more"
