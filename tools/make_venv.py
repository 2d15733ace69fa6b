"""Sets up `.venv` from the lock file, or with the argument `docs` `.venv-docs`, which builds the docs and does not
contain hvpa. `make` runs this with the first Python on PATH, after checking its version, so it must import only the
standard library.

A stamp in the environment holds a hash of all its inputs. If the hash is unchanged, nothing happens. Otherwise the
environment is created again, so that no package of an older lock remains.

The Python that `make` finds may be that of `.venv` itself (on PATH or activated) or of another project's environment.
In these cases the Python that created that environment counts and runs the work.
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
# Suppresses a warning of pip's build of the package: setuptools warns that folders of the working directory can hide
# packages of the same name, which is the purpose of an editable installation.
QUIET = {"PYTHONWARNINGS": "ignore:Editable installation"}
# The Python with which `venv` creates environments; equals sys.executable outside of an environment.
BASE = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]


def main() -> int:
    """Create the environment if it is out of date; return the exit code."""
    wanted = fingerprint()
    if up_to_date(wanted):
        return 0
    if sys.prefix != sys.base_prefix:  # this Python may be replaced below
        os.execv(BASE, [str(BASE), __file__, *sys.argv[1:]])
    with (ROOT / f"{VENV.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if up_to_date(wanted):  # another `make` created it in the meantime
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
    """Return a hash of the Python, the path, the lock and, if it is installed, the package's declarations."""
    digest = hashlib.sha256(f"{sys.version}\n{BASE}\n{ROOT}\n".encode())
    if not DOCS:
        declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
        digest.update(repr((declared["build-system"], declared["project"])).encode())
    for path in (LOCK, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def up_to_date(wanted: str) -> bool:
    """Whether the environment was completed from the current inputs."""
    return STAMP.is_file() and STAMP.read_text() == wanted and (VENV / "bin" / "python").exists()


def replace() -> None:
    """Replace the environment; the old environment stays if this fails. Raises CalledProcessError."""
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
    """Create the environment. Raises CalledProcessError."""
    made = subprocess.run([BASE, "-m", "venv", str(VENV)], check=False)
    if made.returncode != 0:
        say("Python's venv module is not complete; on Debian and Ubuntu: apt-get install python3-venv")
        made.check_returncode()
    python = str(VENV / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    install = [*pip, "install", "--no-input"]
    say(f"  installing what {LOCK.name} pins")
    # Without --no-deps, pip refuses `coverage[toml]>=7.10` (of pytest-cov) as soon as there is a newer coverage than
    # the pinned release: pip looks at the newest release first, which has no hash here. The lock is complete: `pip
    # check`.
    subprocess.run([*install, "--no-deps", "--require-hashes", "--requirement", str(LOCK)], check=True)
    if not DOCS:
        say("  installing hvpa itself")
        editable = [*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
        subprocess.run(editable, check=True, env={**os.environ, **QUIET})
    subprocess.run([*pip, "check"], check=True)


def say(line: str) -> None:
    """Write progress to stderr, so that `make -s render` and similar targets print only their output."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
