"""Writes a set of files only if all work has succeeded."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hvpa.cli.errors import CommandError


def refuse_taken(folder: Path, *, force: bool) -> None:
    """Raise CommandError if the folder exists and may not be overwritten, or can't be created."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"--out: {folder} is not a folder")
    if folder.exists() and not force:
        raise CommandError(f"--out: {folder} already exists; --force replaces its files")
    parent = folder if folder.exists() else folder.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise CommandError(f"--out: {folder} can't be made: {parent} is not a writable folder")


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    """A temporary folder next to the final folder, on the same disk."""
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise CommandError(f"--out: {folder.parent}: {error.strerror}") from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def publish(made: Path, folder: Path, files: Mapping[str, str]) -> None:
    """Write these files into `folder`: a new folder appears with all files; in an existing folder, each is replaced.

    Raises CommandError; a new folder is not created then.
    """
    ready = made / "ready"
    try:
        ready.mkdir()
        for name, content in files.items():
            (ready / name).write_text(content, encoding="utf-8")
        with suppress(OSError):
            ready.chmod(0o755)
        if not folder.exists():
            ready.rename(folder)
            return
        for name in files:
            (ready / name).replace(folder / name)
    except OSError as error:
        raise CommandError(f"--out: {folder} can't be written: {error.strerror}") from None
