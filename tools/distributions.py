"""Builds wheel, source distribution and compressed archives that are the same bytes for the same content."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

BUILD: Final = (
    "import sys; from setuptools import build_meta as backend; folder = sys.argv[1];"
    "backend.build_sdist(folder); backend.build_wheel(folder)"
)
"""Calls the build backend of pyproject.toml by its standard interface (PEP 517)."""


class ReleaseError(Exception):
    """The release can't be built."""


def tar_gz(files: Mapping[str, bytes], epoch: int) -> bytes:
    """Return a compressed archive of these files with a single timestamp and no owners. The same files give the same
    bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=packed, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), epoch
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def distributions(source: Path, epoch: int) -> dict[str, bytes]:
    """Build wheel and source distribution. The latter is packed again, because setuptools writes its own times and
    owners."""
    with tempfile.TemporaryDirectory(prefix="hvpa-dist-") as folder:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
        run(sys.executable, "-c", BUILD, folder, cwd=source, env=environment)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    for name in files:
        if name.endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(files[name])) as archive:
                members = [
                    (member.name, archive.extractfile(member)) for member in archive if member.isfile()
                ]
                files[name] = tar_gz({path: file.read() for path, file in members if file}, epoch)
    return files


def run(*command: str, cwd: Path, env: Mapping[str, str] | None = None) -> bytes:
    """Return a program's output. Raises ReleaseError with its error message if it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False)
    except OSError as error:
        raise ReleaseError(f"{command[0]} can't be run: {error.strerror}") from error
    if done.returncode:
        complaint = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise ReleaseError(f"{' '.join(command[:2])} failed in {cwd}: {complaint}")
    return done.stdout
