"""Sets up `.venv` from the lock file, or with the argument `docs` `.venv-docs`, which builds the docs and has no hvpa;
run by `make` with whichever Python is first on PATH (which `make` has found new enough): it must import nothing else.

A stamp in the environment holds a hash of all that it was made from. As long as that is the same, nothing is done;
otherwise the environment is made anew, so that no package of an older lock stays behind.

The Python that `make` finds may be the one in `.venv` itself (`.venv/bin` on PATH, or activated), or in another
project's environment. All of these stand for the Python that they were made with: only that one counts and works here.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = sys.argv[1:] == ["docs"]
VENV = ROOT / (".venv-docs" if DOCS else ".venv")
REPLACED = ROOT / f"{VENV.name}.replaced"
STAMP = VENV / "made-from"
LOCK = ROOT / ("requirements-docs.lock" if DOCS else "requirements-dev.lock")
# Which warnings pip's build of the package leaves out: setuptools warns of every editable installation that folders of
# the working directory can hide packages of the same name, which is what an editable installation is for.
QUIET = {"PYTHONWARNINGS": "ignore:Editable installation"}
# What the standard library's own `venv` makes environments with; the same as sys.executable outside of one.
BASE = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]


def main() -> int:
    """Make or leave the environment; the exit code."""
    wanted = fingerprint()
    if up_to_date(wanted):
        return 0
    if sys.prefix != sys.base_prefix:  # this very Python may be about to be replaced
        os.execv(BASE, [str(BASE), __file__, *sys.argv[1:]])
    with (ROOT / f"{VENV.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if up_to_date(wanted):  # another `make` made it while this one waited
            return 0
        say(f"setting up {VENV.name} with Python {sys.version.split()[0]} (once; about a minute)")
        try:
            replace()
        except subprocess.CalledProcessError as error:
            say(f"this failed: {' '.join(map(str, error.cmd))}")
            return 1
        STAMP.write_text(wanted)
        say(f"{VENV.name} is ready")
    return 0


def fingerprint() -> str:
    """A hash of the Python, the place, the lock and what the package declares, where it is installed."""
    digest = hashlib.sha256(f"{sys.version}\n{BASE}\n{ROOT}\n".encode())
    if not DOCS:
        declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
        digest.update(repr((declared["build-system"], declared["project"])).encode())
    for path in (LOCK, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def up_to_date(wanted: str) -> bool:
    """Whether the environment was made, to the end, from what is there now."""
    return STAMP.is_file() and STAMP.read_text() == wanted and (VENV / "bin" / "python").exists()


def replace() -> None:
    """Make the environment in place of the one that is there, which stays if this fails. Raises
    CalledProcessError."""
    shutil.rmtree(REPLACED, ignore_errors=True)
    if VENV.exists():
        VENV.rename(REPLACED)
    try:
        create()
    except BaseException:  # Ctrl-C, too
        shutil.rmtree(VENV, ignore_errors=True)
        if REPLACED.exists():
            REPLACED.rename(VENV)
        raise
    shutil.rmtree(REPLACED, ignore_errors=True)


def create() -> None:
    """Make the environment. Raises CalledProcessError."""
    made = subprocess.run([BASE, "-m", "venv", str(VENV)], check=False)
    if made.returncode != 0:
        say("Python's venv module is not complete; on Debian and Ubuntu: apt-get install python3-venv")
        made.check_returncode()
    python = str(VENV / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-input"]
    say(f"  installing what {LOCK.name} pins")
    # Without --no-deps, pip refuses `coverage[toml]>=7.10` (of pytest-cov) once a newer coverage than the pinned one is
    # out: it looks at the newest release first, which has no hash here. The lock names all that is needed: `pip check`.
    subprocess.run([*install, "--no-deps", "--require-hashes", "--requirement", str(LOCK)], check=True)
    if not DOCS:
        say("  installing hvpa itself")
        editable = [*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        subprocess.run(editable, check=True, env={**os.environ, **QUIET})
    subprocess.run([*pip, "check"], check=True)


def say(line: str) -> None:
    """Write progress to stderr, so that `make -s render` and the like print only what they are asked for."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
