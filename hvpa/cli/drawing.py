"""Files that commands draw: refused before the work is done where they can't be drawn or written."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from hvpa.cli.errors import CommandError


def refuse_undrawable(flag: str, path: Path, module: str | None = None) -> None:
    """Raise CommandError where `module`, which draws, is not installed, or `path` can't be written."""
    if module is not None and importlib.util.find_spec(module) is None:
        raise CommandError(f"{flag} needs {module}, which is not installed: pip install 'hvpa[plots]'")
    if path.is_dir() or not path.parent.is_dir():
        raise CommandError(f"{flag}: {path} can't be written: it is a folder, or its folder is not there")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"{flag}: {path} can't be written: permission denied")


def write_drawing(path: Path, content: bytes) -> None:
    """Write the file. Raises CommandError."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"{path}: can't be written: {error.strerror}") from None
