"""The folder of exported files: `NAMESPACE/KIND-NAME.yaml`. Only files that `hvpa export` wrote are changed or
removed, and nothing outside of the folder."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hvpa.cli.errors import CommandError
from hvpa.kube.cache.targeting import Target
from hvpa_lab.export.document import HEADER


def file_name(target: Target) -> str:
    """The name of a workload's file, within the folder: `shop/deployment-web.yaml`."""
    return f"{target.namespace}/{target.kind.lower()}-{target.name}.yaml"


class Folder:
    """Reads and writes the files. Names are relative: a namespace, a slash, and a file."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def check(self) -> None:
        """Create the folder if it is missing. Raises CommandError if it can't be."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(f"--to: {self.root} can't be made: {error.strerror}") from None

    def read(self, name: str) -> str | None:
        """The text of a file that `hvpa export` wrote; None if there is no file.

        Raises CommandError if the file is somebody else's, or not really in the folder.
        """
        path = self.root / name
        if path.parent.is_symlink() or path.is_symlink():
            raise CommandError(f"{path} is a symbolic link, which may lead out of the folder")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            text = ""
        except OSError as error:
            raise CommandError(f"{path} can't be read: {error.strerror}") from None
        if not text.startswith(HEADER):
            raise CommandError(f"{path} was not written by hvpa export, so it is not overwritten")
        return text

    def names(self, namespace: str | None) -> Iterator[str]:
        """The files of a namespace (None: of all) that `hvpa export` wrote."""
        folder = "*" if namespace is None else glob.escape(namespace)
        for path in sorted(self.root.glob(f"{folder}/*.yaml")):
            name = f"{path.parent.name}/{path.name}"
            with suppress(CommandError):
                if self.read(name) is not None:
                    yield name

    def write(self, name: str, text: str) -> None:
        """Write a file that `read` allows. Raises CommandError."""
        path = self.root / name
        try:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror}") from None

    def remove(self, name: str) -> None:
        """Remove a file that `read` allows, and its folder once that is empty. Raises CommandError."""
        path = self.root / name
        try:
            path.unlink()
        except OSError as error:
            raise CommandError(f"{path} can't be removed: {error.strerror}") from None
        with suppress(OSError):
            path.parent.rmdir()
