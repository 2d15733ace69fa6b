"""Fetches files of pinned npm packages with npm's own client, and checks their hash. No script of a package runs."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

MOST_LINES: Final = 5
"""Number of lines of a program's error that are passed on. npm prints the cause first, then a trace."""


class NotPinnedError(Exception):
    """A package differs from the pinned package, or can't be unpacked."""


class NotFetchedError(Exception):
    """npm can't fetch the package."""


class NpmPackage(NamedTuple):
    """A release of a package, and the SHA-512 of its file as in npm's lock files."""

    name: str
    version: str
    integrity: str

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


def available() -> bool:
    """Whether npm and Node.js are installed."""
    return all(map(shutil.which, ("npm", "node")))


def extract(package: NpmPackage, members: Mapping[str, Path], folder: Path) -> None:
    """Fetch the package into `folder`, and write these of its members to these files.

    Raises NotFetchedError and NotPinnedError.
    """
    fetching = ["npm", "pack", str(package), "--loglevel", "error", "--pack-destination", str(folder)]
    run(fetching, folder, NotFetchedError)
    (archive_file,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(archive_file.read_bytes()).digest()).decode()
    if digest != package.integrity.removeprefix("sha512-"):
        raise NotPinnedError(f"{package} is not what is pinned: its SHA-512 is {digest}")
    with tarfile.open(archive_file) as archive:
        for name, target in members.items():
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            target.write_bytes(member.read())
    archive_file.unlink()


def run(command: list[str], folder: Path, failure: type[Exception] = NotPinnedError) -> None:
    """Run a command in `folder`. If it fails, raise `failure` with the first lines of its output."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip() or done.stdout.strip()).splitlines()[:MOST_LINES]
        raise failure("\n".join([f"{' '.join(command[:3])} failed:", *why]))
