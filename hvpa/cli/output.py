"""Output of several commands: tables, JSON, and drawings. A drawing that can't be drawn or written is refused before
the work starts."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hvpa.api.values.text import printable_json
from hvpa.api.values.timestamp import format_timestamp
from hvpa.cli.errors import CommandError
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.containers import wire

Json = dict[str, Any]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return ["  ".join(row).rstrip() for row in padded]


def indented(content: Json) -> str:
    """An object as JSON for people and programs, without a final line break.

    Text from other clients in it can't move a terminal's cursor.
    """
    return printable_json(msgspec.json.format(msgspec.json.encode(content), indent=2).decode())


def containers(resources: Mapping[str, ResourceRequirements]) -> Json:
    """Requests and limits as quantities, by container."""
    return {
        name: {"requests": wire(requirements.requests), "limits": wire(requirements.limits)}
        for name, requirements in resources.items()
    }


def timestamp(instant: dt.datetime | None) -> str | None:
    """The time in JSON form."""
    return None if instant is None else format_timestamp(instant)


def refuse_unwritable(flag: str, path: Path) -> None:
    """Raise CommandError if `path` can't be written."""
    if path.is_dir() or not path.parent.is_dir():
        raise CommandError(f"{flag}: {path} can't be written: it is a folder, or its folder does not exist")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"{flag}: {path} can't be written: permission denied")


def write_drawing(path: Path, content: bytes) -> None:
    """Write the file. Raises CommandError."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"{path}: can't be written: {error.strerror}") from None
