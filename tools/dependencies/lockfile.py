"""Reads pip-compile's lock files: pins, the hashes of their files, and the packages that require them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "hvpa"
LOCK, DEV_LOCK, BUILD_LOCK = "requirements.lock", "requirements-dev.lock", "requirements-build.lock"
DOCS_LOCK, DOCS = "requirements-docs.lock", "requirements-docs.in"

_PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!+_-]+)")
_MARKER = re.compile(r' ; sys_platform != "win32"(?= )')
"""The only condition that a pin may have: not on Windows."""
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class LockError(ValueError):
    """A line that pip-compile would not write: not a pin, or a pin with a source."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A distribution."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """SHA-256 of each file of the release."""
    wanted_by: frozenset[str]
    """Canonical names of the packages that require it; PROJECT or DOCS for our own requirements."""


def read_lock(path: Path) -> dict[str, Pin]:
    """Return the pins of a lock file by canonical name. Raises LockError for any other line."""
    pins: dict[str, Pin] = {}
    for entry in _entries(path.read_text()):
        requirement, *comments = entry
        words = _MARKER.sub("", requirement).split()
        match = _PIN.fullmatch(words[0])
        hashes = [_HASH.fullmatch(word) for word in words[1:]]
        if match is None or not all(hashes):
            raise LockError(
                f"{path.name}: {words[0]} is not pinned as NAME==VERSION with SHA-256 hashes only"
            )
        name = canonicalize_name(match[1])
        digests = tuple(sorted(digest[1] for digest in hashes if digest is not None))
        pins[name] = Pin(name, match[2], digests, _wanted_by(comments))
    return pins


def _entries(text: str) -> list[list[str]]:
    """Return each requirement's line, with continuations joined, and the comments after it."""
    entries: list[list[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        if not line.lstrip().startswith("#"):
            entries.append([line])
        elif entries:
            entries[-1].append(line.strip())
    return entries


def _wanted_by(comments: list[str]) -> frozenset[str]:
    """Return the names after `# via`."""
    reported = " ".join(line.lstrip("# ") for line in comments)
    _, _, names = reported.partition("via ")
    names_wanting = re.findall(r"([A-Za-z0-9._-]+)(?: \([^)]*\))?", names.partition("The following")[0])
    return frozenset(canonicalize_name(name) for name in names_wanting)


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations in pyproject.toml."""

    version: str
    licence: str
    requirements: Mapping[str, tuple[str, ...]]
    """By lock file: the requirements that it must pin."""


def read_project(path: Path = ROOT / "pyproject.toml") -> Declared:
    """Read pyproject.toml."""
    document = tomllib.loads(path.read_text())
    project = document["project"]
    direct = tuple(project["dependencies"])
    extras = tuple(text for part in project["optional-dependencies"].values() for text in part)
    requirements = {
        LOCK: direct,
        DEV_LOCK: direct + extras,
        BUILD_LOCK: tuple(document["build-system"]["requires"]),
    }
    return Declared(project["version"], str(project["license"]), requirements)
