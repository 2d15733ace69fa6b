"""YAML with a reason above each number, written line by line."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import yaml

from hvpa.api.values.quantity import CPU, Resource, readable_resource
from hvpa.simulate.report.text import plain

_WIDTH: Final = 100
_FINE: Final = 0.01
"""Cores below which a millicore is too coarse."""


class Lines:
    """The lines of a document; `text` is all of them."""

    def __init__(self, *heading: str) -> None:
        self._lines: list[str] = []
        for one in heading:
            self.why(0, one)

    def why(self, depth: int, reason: str) -> None:
        """A comment, wrapped."""
        pad = "  " * depth
        width = max(40, _WIDTH - len(pad))
        wrapped = textwrap.wrap(plain(reason), width, break_long_words=False, break_on_hyphens=False)
        self._lines += [f"{pad}# {line}" for line in wrapped]

    def add(self, depth: int, text: str, why: str = "") -> None:
        """A line, and above it the reason for it."""
        if why:
            self.why(depth, why)
        self._lines.append("  " * depth + text)

    def field(self, depth: int, name: str, value: Any, why: str = "") -> None:
        """A field whose value stands on the same line."""
        self.add(depth, f"{name}: {flow(value)}", why)

    def block(self, depth: int, content: Any) -> None:
        """A value that takes as many lines as it needs."""
        dumped = yaml.safe_dump(content, sort_keys=False, width=_WIDTH, allow_unicode=True)
        self._lines += ["  " * depth + line for line in dumped.splitlines()]

    @property
    def text(self) -> str:
        """The document."""
        return "\n".join(self._lines) + "\n"


def shown(resource: Resource, amount: float) -> str:
    """Cores or bytes for people: what a pod needs for a unit of the load may be less than a millicore (`0.35m`)."""
    if resource == CPU:
        return f"{amount * 1000:.3g}m" if 0 < amount < _FINE else readable_resource(CPU, round(amount * 1000))
    return readable_resource(resource, round(amount))


def flow(value: Any) -> str:
    """A value on one line."""
    dumped = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True)
    return dumped.removesuffix("\n...\n").strip()
