"""The image's virtual environment: wheels, placed as pip places them, and bytecode of all modules."""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import io
import os
import platform
import posixpath
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localcluster.oci import Entries, File, Folder, Link
from tools.image.debian import GLIBC, PYTHON, VERSION
from tools.image.errors import ImageError

HOME: Final = "opt/hvpa"
"""The folder of the environment, as in the Dockerfile."""
SITE: Final = f"{HOME}/lib/python3.11/site-packages"
_SCRIPT: Final = """\
#!/{home}/bin/python
import sys
from {module} import {function}
if __name__ == "__main__":
    sys.exit({function}())
"""


def environment() -> dict[str, File | Link | Folder]:
    """Return an environment without packages, shell scripts and the empty folder `include` of `venv`."""
    return {
        f"{HOME}/bin/python": Link(f"/{PYTHON}"),
        f"{HOME}/bin/python3": Link("python"),
        f"{HOME}/bin/python3.11": Link("python"),
        f"{HOME}/lib64": Link("lib"),
        f"{HOME}/pyvenv.cfg": File(b"home = /usr/bin\ninclude-system-site-packages = false\n"),
        SITE: Folder(),
    }


def fetch(lock: Path, folder: Path) -> list[Path]:
    """Download the wheels of a lock file for the image's Python and libc, independent of this machine. pip checks their
    hashes. Raises ImageError."""
    machine = platform.machine()
    systems = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC, 16, -1)] + [
        f"manylinux2014_{machine}"
    ]
    try:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
                *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
                *("--implementation", "cp", "--python-version", ".".join(map(str, VERSION))),
                *(word for system in systems for word in ("--platform", system)),
                *("--requirement", str(lock), "--dest", str(folder)),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise ImageError(f"pip can't download the wheels of {lock.name}: {error.stderr.strip()}") from error
    return sorted(folder.glob("*.whl"))


def install(wheel: bytes) -> Entries:
    """Return a wheel's files at pip's paths, with pip's records except those of bytecode."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        content = {
            info.filename: File(archive.read(info), 0o755 if info.external_attr >> 16 & 0o111 else 0o644)
            for info in archive.infolist()
            if not info.is_dir()
        }
    (record,) = (name for name in content if name.endswith(".dist-info/RECORD"))
    info = posixpath.dirname(record)
    if data := [name for name in content if name.partition("/")[0].endswith(".data")]:
        raise ImageError(f"{info.removesuffix('.dist-info')} has files outside of its packages: {data[0]}")
    content[f"{info}/INSTALLER"] = File(b"pip\n")
    content[f"{info}/REQUESTED"] = File(b"")
    scripts = _scripts(content[f"{info}/entry_points.txt"]) if f"{info}/entry_points.txt" in content else {}
    recorded = {**content, **{f"../../../bin/{name}": file for name, file in scripts.items()}}
    content[record] = File(_record(record, recorded))
    return {
        **{f"{SITE}/{name}": file for name, file in content.items()},
        **{f"{HOME}/bin/{name}": file for name, file in scripts.items()},
    }


def _scripts(entry_points: File) -> dict[str, File]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(entry_points.content.decode())
    commands = parser["console_scripts"] if parser.has_section("console_scripts") else {}
    scripts = {}
    for name, target in commands.items():
        module, _, function = target.partition(":")
        text = _SCRIPT.format(home=HOME, module=module.strip(), function=function.strip())
        scripts[name] = File(text.encode(), 0o755)
    return scripts


def _record(path: str, files: Mapping[str, File]) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    for name in sorted({*files, path}):
        if name == path:
            rows.writerow((name, "", ""))
        else:
            content = files[name].content
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.writerow((name, f"sha256={digest}", len(content)))
    return text.getvalue().encode()


def bytecode(entries: Entries) -> Entries:
    """Return the bytecode of all modules among these files; Python does not compare it with its source at run time.
    Every machine makes the same bytes: in a single process, in order, with fixed hashes. Raises ImageError."""
    if sys.version_info[:2] != VERSION:
        raise ImageError(
            f"the image has Python {VERSION[0]}.{VERSION[1]}, and only that version compiles for it; this is "
            f"{sys.version_info[0]}.{sys.version_info[1]}: name another one, make image PYTHON=python3.11"
        )
    with tempfile.TemporaryDirectory(prefix="hvpa-bytecode-") as folder:
        root = Path(folder)
        for name, entry in entries.items():
            if isinstance(entry, File) and name.endswith(".py"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(entry.content)
        done = subprocess.run(
            [
                *(sys.executable, "-S", "-s", "-B", "-P", "-m", "compileall", "-q", "-f"),
                *("--invalidation-mode", "unchecked-hash", "-s", folder, "-p", "/", folder),
            ],
            env={"PYTHONHASHSEED": "0", "PATH": os.environ.get("PATH", "")},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ImageError(f"modules can't be compiled: {done.stdout.strip() or done.stderr.strip()}")
        return {str(path.relative_to(root)): File(path.read_bytes()) for path in root.rglob("*.pyc")}
