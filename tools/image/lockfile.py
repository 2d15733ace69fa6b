"""image.lock and runtimes.lock: Debian packages of images, each pinned by version and checksum."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.image.errors import ImageError

LOCK: Final = "image.lock"
PACKAGES: Final = (
    "base-files",  # the Debian release, for image scanners
    "ca-certificates",
    "gcc-12-base",  # the licence of libgcc and libstdc++
    "libbz2-1.0",
    "libc-bin",  # the locale C.UTF-8
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",  # pydantic-core
    "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libssl3",
    "libstdc++6",  # frozenlist
    "libuuid1",
    "python3.11-minimal",
    "zlib1g",
)
RUNTIMES_LOCK: Final = "runtimes.lock"
RUNTIMES: Final = (
    "libbrotli1",
    "libc-ares2",
    "libicu72",
    "libnghttp2-14",
    "libnode108",
    "libuv1",
    "node-acorn",
    "node-cjs-module-lexer",
    "node-undici",
    "nodejs",  # all before it are for it
    "openjdk-17-jre-headless",
)
LOCKS: Final = {LOCK: PACKAGES, RUNTIMES_LOCK: RUNTIMES}
"""Lock files and the names of their packages."""
_IMAGES: Final = {
    LOCK: "The Debian packages of the image that `make image` builds",
    RUNTIMES_LOCK: f"Debian packages in the image of docs/runtimes.md, in addition to those of {LOCK}",
}
_LINE: Final = re.compile(r"([a-z0-9][a-z0-9+.-]+) ([0-9][\w.+~:-]*) ([a-z0-9]+) sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """One Debian package."""

    name: str
    version: str
    architecture: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} {self.architecture} sha256:{self.sha256}"


def read(path: Path, architecture: str) -> list[DebianPackage]:
    """Return the packages of a lock file. Raises ImageError if a package is missing or of another architecture."""
    packages = []
    expected = LOCKS[path.name]
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            match = _LINE.fullmatch(line)
            if match is None:
                raise ImageError(f"{path.name}: not NAME VERSION ARCHITECTURE sha256:…: {line}")
            packages.append(DebianPackage(*match.groups()))
    if sorted(package.name for package in packages) != sorted(expected):
        raise ImageError(f"{path.name} has other packages than tools/image/lockfile.py: run make image-lock")
    if others := {package.architecture for package in packages} - {architecture, "all"}:
        raise ImageError(
            f"{path.name} is for {', '.join(sorted(others))}, and this machine is {architecture}: "
            "run make image-lock for an image of its own"
        )
    return packages


def render(packages: Iterable[DebianPackage], lock: str = LOCK) -> str:
    """Return the text of a lock file."""
    header = (
        f"# {_IMAGES[lock]}: name, version, architecture, SHA-256.\n"
        "# Written by `make image-lock`; tools/image/lockfile.py says which packages, and why.\n"
    )
    return header + "".join(f"{package}\n" for package in sorted(packages, key=lambda package: package.name))


def offered(names: Sequence[str] = PACKAGES) -> list[DebianPackage]:
    """Return the newest packages that apt offers now. Raises ImageError if a package is missing."""
    try:
        done = subprocess.run(["apt-cache", "show", *names], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ImageError("apt-cache is needed: the base is made of Debian's packages (Debian 12)") from error
    return parse(done.stdout, names)


def parse(text: str, names: Sequence[str] = PACKAGES) -> list[DebianPackage]:
    """Parse the output of `apt-cache show`. Raises ImageError if a package is missing: installed versions that are no
    longer offered have no checksum."""
    packages: dict[str, DebianPackage] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(\w+): (.*)$", paragraph, re.MULTILINE))
        if "SHA256" in fields:
            package = DebianPackage(
                *(fields[key] for key in ("Package", "Version", "Architecture", "SHA256"))
            )
            packages.setdefault(package.name, package)
    if missing := [name for name in names if name not in packages]:
        raise ImageError(
            f"apt offers no {', '.join(missing)}: "
            "is this Debian 12 (bookworm), and are its lists there (apt-get update)?"
        )
    return [packages[name] for name in names]
