"""Building releases of what is here now, for the tests beside this file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.dependencies.lockfile import ROOT

IDENTITY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "t", "EMAIL": "t@example.com", "DATE": "2026-01-02T03:04:05Z"}.items()
}
NO_PACKAGES: Final = ("apt offers no", "apt-get is needed")
"""Complaints of machines that have no Debian packages for the image, or newer ones than the lock."""


def run(*command: str, cwd: Path, umask: int = 0o022, **environment: str) -> str:
    """What a program prints that must succeed."""
    env = {**os.environ, **IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, **environment}
    done = subprocess.run(
        command, cwd=cwd, env=env, umask=umask, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
    return done.stdout


def repository(folder: Path) -> Path:
    """A new repository of what is here now, committed or not."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = run(*command, cwd=ROOT).split("\0")
    for name in filter(lambda name: (ROOT / name).is_file(), filter(None, names)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        run("git", *arguments, cwd=folder)
    return folder


def release(
    source: Path, out: Path, *arguments: str, umask: int = 0o022, zone: str = "UTC"
) -> dict[str, bytes]:
    """The files of a release; without its image if this machine can't build that."""
    command = (sys.executable, "-m", "tools.release", "--out", str(out), *arguments)
    try:
        run(*command, cwd=source, umask=umask, TZ=zone)
    except AssertionError as error:
        if not any(complaint in str(error) for complaint in NO_PACKAGES):
            raise
        run(*command, "--without-image", cwd=source, umask=umask, TZ=zone)
    return {path.name: path.read_bytes() for path in out.iterdir()}
