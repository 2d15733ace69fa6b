"""YAML with a reason above each number, written line by line."""

from __future__ import annotations

import math
import textwrap
from typing import Any, Final

import yaml

from hvpa.api.values.quantity import CPU, Resource, readable_resource
from hvpa_lab.simulate.report.text import plain_text

_WIDTH: Final = 100
_FINE: Final = 0.01
"""Cores below which a millicore is too coarse."""


class Lines:
    """The lines of a document; `text` is the document."""

    def __init__(self, *heading: str) -> None:
        self._lines: list[str] = []
        for sentence in heading:
            self.why(0, sentence)

    def why(self, depth: int, reason: str) -> None:
        """Add a wrapped comment."""
        pad = "  " * depth
        width = max(40, _WIDTH - len(pad))
        wrapped = textwrap.wrap(plain_text(reason), width, break_long_words=False, break_on_hyphens=False)
        self._lines += [f"{pad}# {line}" for line in wrapped]

    def add(self, depth: int, text: str, why: str = "") -> None:
        """Add a line, with its reason above it."""
        if why:
            self.why(depth, why)
        self._lines.append("  " * depth + text)

    def field(self, depth: int, name: str, value: Any, why: str = "") -> None:
        """Add a field with its value on the same line."""
        self.add(depth, f"{flow(name)}: {flow(value)}", why)

    def item(self, depth: int, name: str, value: Any) -> None:
        """Add the first field of a list entry."""
        self.add(depth, f"- {flow(name)}: {flow(value)}")

    def block(self, depth: int, content: Any) -> None:
        """Add a value on as many lines as it needs."""
        dumped = yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
        self._lines += ["  " * depth + line for line in dumped.splitlines()]

    @property
    def text(self) -> str:
        """The document."""
        return "\n".join(self._lines) + "\n"


def shown(resource: Resource, amount: float) -> str:
    """Cores or bytes for people; a pod may need less than a millicore per unit of load (`0.35m`)."""
    if resource == CPU:
        return f"{amount * 1000:.3g}m" if 0 < amount < _FINE else readable_resource(CPU, round(amount * 1000))
    return readable_resource(resource, round(amount))


def flow(value: Any) -> str:
    """A value on a single line, in ASCII."""
    dumped = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, width=math.inf)
    return dumped.removesuffix("\n...\n").strip()


class _Dumper(yaml.SafeDumper):
    """Writes text that contains line breaks on a single line, with escapes."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _text)
