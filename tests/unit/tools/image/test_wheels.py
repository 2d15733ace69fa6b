"""Wheels in the image are as pip installs them."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import py_compile
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from localcluster.oci import Entries, File
from tools.image import debian, wheels
from tools.image.errors import ImageError

FILES = {
    "tool/__init__.py": "def main():\n    return 'a' in {'b', 'c', 'd'}\n",
    "tool/data file.txt": "text",
    "tool-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: tool\nVersion: 1\n",
    "tool-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tool-1.dist-info/entry_points.txt": "[console_scripts]\ntool = tool:main\n[other]\nx = y\n",
}


def wheel(**more: str) -> bytes:
    raw, record = io.BytesIO(), "tool-1.dist-info/RECORD,,\n"
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in {**FILES, **more}.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            record += f"{name},sha256={digest},{len(text)}\n"
        archive.writestr("tool-1.dist-info/RECORD", record)
    return raw.getvalue()


def test_it_is_what_pip_makes_of_it(tmp_path: Path) -> None:
    """Except the scripts, whose first lines name their environment."""
    path = tmp_path / "tool-1-py3-none-any.whl"
    path.write_bytes(wheel())
    venv.create(tmp_path / "venv", symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "venv/bin/python"), "install", "--quiet"]
    options = ["--no-deps", "--no-compile", "--no-index", "--find-links", str(tmp_path), "tool"]
    subprocess.run([*pip, "--disable-pip-version-check", *options], check=True)
    site = tmp_path / "venv/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    theirs = {str(file.relative_to(site)): file.read_bytes() for file in site.rglob("*") if file.is_file()}
    entries = {path: entry for path, entry in wheels.install(wheel()).items() if isinstance(entry, File)}
    ours = {
        path.removeprefix(f"{wheels.SITE}/"): entry.content
        for path, entry in entries.items()
        if path.startswith(wheels.SITE)
    }
    for files in (ours, theirs):
        lines = files["tool-1.dist-info/RECORD"].decode().splitlines()
        files["tool-1.dist-info/RECORD"] = "\n".join(
            line for line in lines if not line.startswith("../")
        ).encode()
    assert ours == theirs
    script = entries[f"{wheels.HOME}/bin/tool"]
    assert script.mode == 0o755
    assert script.content.decode().splitlines()[:3] == [
        "#!/opt/hvpa/bin/python",
        "import sys",
        "from tool import main",
    ]


def test_files_outside_of_the_packages_are_refused() -> None:
    with pytest.raises(
        ImageError, match=r"tool-1 has files outside of its packages: tool-1\.data/data/etc/x"
    ):
        wheels.install(wheel(**{"tool-1.data/data/etc/x": "x"}))


@pytest.mark.skipif(sys.version_info[:2] != debian.VERSION, reason="the image has another Python")
def test_bytecode_is_the_same_each_time_and_not_compared_with_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = wheels.install(wheel())
    entries = wheels.bytecode(source)
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    monkeypatch.setenv("TMPDIR", os.path.realpath("/var/tmp"))
    assert wheels.bytecode(source) == entries
    ((path, entry),) = entries.items()
    assert path == f"{wheels.SITE}/tool/__pycache__/__init__.cpython-311.pyc"
    assert isinstance(entry, File)
    assert entry.content[4:8] == b"\1\0\0\0", py_compile.PycInvalidationMode.UNCHECKED_HASH
    assert f"/{wheels.SITE}/tool/__init__.py".encode() in entry.content


def test_a_module_that_can_not_be_compiled_is_named() -> None:
    broken: Entries = {"opt/broken.py": File(b"def")}
    with pytest.raises(ImageError, match=r"modules can't be compiled: .*/opt/broken\.py"):
        wheels.bytecode(broken)


def test_another_python_does_not_compile_for_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    with pytest.raises(ImageError, match=r"has Python 3\.11, and .*; this is 3\.14: .*PYTHON=python3\.11"):
        wheels.bytecode({})
