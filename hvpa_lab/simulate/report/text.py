"""Formats of durations, amounts and texts that all reports share. Layout is in the reports."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Final

NONE: Final = "–"
"""Shown if there is no figure."""
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_DECIMALS: Final = ((4, 0.1), (3, 1.0), (2, 10.0), (1, 1000.0))
"""Number of decimals, and the bound that the largest amount of a column must be below."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that control a terminal or a browser, or that UTF-8 can't encode."""


def plain_text(text: str) -> str:
    """The text on a single line, with control, direction and surrogate characters as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if unicodedata.category(character) not in _HIDDEN else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, limit: int) -> str:
    """The text, cut to `limit` characters and ended by an ellipsis if it is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_to_width(text: str, columns: int) -> str:
    """The text, cut to the width of `columns` of a terminal and ended by an ellipsis if it is wider."""
    if width(text) <= columns:
        return text
    kept = max((at for at in range(len(text)) if width(text[:at]) < columns), default=0)
    return text[:kept] + "…"


def seconds(length: float | None) -> str:
    """A duration in seconds, written in its two largest units: 7.5s, 1m30s, 2h5m, 3d. `NONE` for None."""
    if length is None:
        return NONE
    tenths = math.floor(length * 10 + 0.5) / 10
    if tenths < 60:
        return f"{tenths:g}s"
    whole = math.floor(length + 0.5)
    at = next(at for at, (size, _) in enumerate(_UNITS) if whole >= size)
    (size, unit), (below, below_unit) = _UNITS[at : at + 2]
    rest = whole % size // below
    return f"{whole // size}{unit}" + (f"{rest}{below_unit}" if rest else "")


def number_column(values: Sequence[float]) -> list[str]:
    """The amounts of a column, with decimals by the largest amount. A small amount is never written as 0."""
    largest = max(map(abs, values), default=0.0)
    decimals = next((count for count, end in _DECIMALS if largest < end), 0)
    return [grouped_number(value, decimals) for value in values]


def grouped_number(value: float, decimals: int) -> str:
    """The number with thousands separators: 1,234.5. A small positive number that would round to 0 is `<0.1`."""
    if value == 0:
        return "0"
    text = f"{value:,.{decimals}f}"
    least = f"{10**-decimals:.{decimals}f}"
    return f"<{least}" if value > 0 and not text.strip("0.,") else text


def percent_of_share(share: float, decimals: int = 1) -> str:
    """A share (0 to 1) as percent, without the percent sign."""
    return grouped_number(share * 100, decimals)


def listed(words: Sequence[str]) -> str:
    """The words as a list in a sentence: a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def width(text: str) -> int:
    """The width of the text in columns of a terminal."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)
