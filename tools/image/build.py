"""Combines the layers of the image."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from localcluster import oci
from localcluster.programs.toolchain import cache_folder
from tools import distributions
from tools.dependencies.lockfile import LOCK as REQUIREMENTS
from tools.image import debian, dockerfile, elf, lockfile, wheels
from tools.image.errors import ImageError

BASE_ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}
"""Environment variables of the Dockerfile's base, except those that describe its Python."""
SOURCES: Final = ("pyproject.toml", "README.md", "LICENSE")
"""Further files for the package's wheel; the Dockerfile copies the same files."""


@dataclass(frozen=True, slots=True)
class Content:
    """An image before it is written."""

    packages: tuple[lockfile.DebianPackage, ...]
    layers: tuple[oci.Layer, ...]
    config: dict[str, Any]
    epoch: int

    def files(self) -> oci.Entries:
        """The files in containers of the image."""
        return {path: entry for layer in self.layers for path, entry in layer.entries.items()}


def build(root: Path, epoch: int | None = None) -> Content:
    """Build the image of a folder's files, committed or not, with this time of all files (None: that of the
    environment or the commit). Raises ImageError."""
    config = dockerfile.settings((root / "Dockerfile").read_text(), BASE_ENVIRONMENT)
    packages = lockfile.read(root / lockfile.LOCK, oci.architecture())
    epoch = time_of(root) if epoch is None else epoch
    base = debian.unpack(debian.fetch(packages, cache_folder() / "image"))
    with tempfile.TemporaryDirectory(prefix="hvpa-image-") as folder:
        dependencies = wheels.environment()
        for wheel in wheels.fetch(root / REQUIREMENTS, Path(folder)):
            dependencies |= wheels.install(wheel.read_bytes())
    layers = tuple(
        oci.Layer(source, {**entries, **wheels.bytecode(entries)})
        for source, entries in (
            (f"Debian packages of {lockfile.LOCK}", base),
            (f"wheels of {REQUIREMENTS}", dependencies),
            ("hvpa", wheels.install(_wheel(root, epoch))),
        )
    )
    content = Content(tuple(packages), layers, config, epoch)
    for library, path in elf.missing(content.files()).items():
        raise ImageError(
            f"the image has no {library}, which /{path} loads: "
            "add its Debian package to tools/image/lockfile.py and run make image-lock"
        )
    return content


def time_of(root: Path) -> int:
    """Return the timestamp of all files: SOURCE_DATE_EPOCH, or else the commit's, or else 0. Raises ImageError."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        if not given.isdecimal():
            raise ImageError(f"SOURCE_DATE_EPOCH must be a number of seconds, not {given}")
        return int(given)
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    try:
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return 0


def _wheel(root: Path, epoch: int) -> bytes:
    """Build the wheel of hvpa in a copy, because setuptools writes into the source folder."""
    with tempfile.TemporaryDirectory(prefix="hvpa-wheel-") as folder:
        source = Path(folder)
        shutil.copytree(root / "hvpa", source / "hvpa", ignore=shutil.ignore_patterns("__pycache__"))
        for name in SOURCES:
            shutil.copy(root / name, source / name)
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        try:
            files = distributions.distributions(source, epoch)
        except distributions.ReleaseError as error:
            raise ImageError(str(error)) from error
    (wheel,) = (content for name, content in files.items() if name.endswith(".whl"))
    return wheel
