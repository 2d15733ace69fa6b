"""Text that another client wrote, made fit for a report (a condition, an Event, a log, an explanation): one line of
bounded length. Names and messages of Kubernetes objects may hold line breaks, escape sequences, marks that turn the
direction of writing, and megabytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

MESSAGE_LENGTH: Final = 4096
"""Characters of a condition's or an Event's message (`metav1.Condition` allows 32768, more than is read)."""
REASON_LENGTH: Final = 128
"""Characters of a reason: one word."""
MOST_NAMES: Final = 10
"""How many names a message lists."""
_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", re.ASCII)
"""A reason, as `metav1.Condition` has it."""


def printable(text: str) -> str:
    """The text with all that is not visible written as its number, as Python does: `\\n`, `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        [one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text]
    )


def printable_json(text: str) -> str:
    """JSON of the same meaning with all that is not visible in ASCII. Line breaks between values stay."""
    if text.isprintable():
        return text
    # JSON leaves one character of ASCII as it is that is not visible.
    whole = text.replace("\x7f", "\\u007f")
    return "".join([one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in whole])


def one_line(text: str, length: int = MESSAGE_LENGTH) -> str:
    """The text as one line of at most so many characters; where it is cut, it ends with an ellipsis."""
    if len(text) <= length and text.isprintable():
        return text
    line = printable(text[: length + 1])
    return line if len(line) <= length else f"{line[: length - 1]}…"


def reason(text: str, otherwise: str) -> str:
    """A reason that another controller gave; `otherwise` where it is not one word of usual length."""
    return text if len(text) <= REASON_LENGTH and _REASON.fullmatch(text) else otherwise


def joined(parts: Iterable[str]) -> str:
    """Sentences as one, with semicolons in place of the full stops between them: `a.` and `b` are `a; b`."""
    whole = list(parts)
    return "; ".join([*(one.rstrip(". ") for one in whole[:-1]), *whole[-1:]])


def counted(replicas: int) -> str:
    """A number of replicas: `1 replica`, `5 replicas`."""
    return f"{replicas} replica{'' if replicas == 1 else 's'}"


def names(found: list[str]) -> str:
    """Names with commas between them; of many the first, and how many more there are."""
    shown = ", ".join(found[:MOST_NAMES])
    more = len(found) - MOST_NAMES
    return shown if more <= 0 else f"{shown} and {more} more"
