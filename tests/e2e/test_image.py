"""The image that `make image` builds: the same bytes in two folders, what the Dockerfile would install, and it runs.
Needs Debian's apt and a package index, and no cluster."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from localcluster import oci
from tools.dependencies.lockfile import ROOT, read_project
from tools.image import build, dockerfile, wheels
from tools.image.__main__ import unpack, write

VERSION: Final = read_project().version
NAME: Final = f"hvpa:{VERSION}"
COPIED: Final = ("hvpa", "requirements.lock", "requirements-build.lock", *build.SOURCES)
"""What the build stage of the Dockerfile copies."""
READ_ONLY: Final = """
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && mount -t proc proc "$1/proc"
root=$1; shift
exec chroot --userspec=65532:65532 "$root" "$@"
"""
LIBRARIES: Final = """
import importlib, os, pathlib, ssl, zoneinfo
for path in sorted(pathlib.Path(os.__file__).parent.glob("lib-dynload/*.so")):
    importlib.import_module(path.name.partition(".")[0])
assert ssl.create_default_context().get_ca_certs()
zoneinfo.ZoneInfo("Europe/Berlin")
try:
    open("/tmp/file", "w")
except OSError as error:
    print(os.getuid(), error.strerror)
"""


@pytest.fixture(scope="module")
def content(image: build.Content) -> build.Content:
    """The image of what is here now."""
    return image


def test_the_image_has_the_operator_and_no_laboratory(content: build.Content) -> None:
    packages = {
        path.split("/site-packages/")[1].split("/")[0]
        for path in content.files()
        if "/site-packages/" in path
    }
    assert "hvpa" in packages
    assert not packages & {"hvpa_lab", "jinja2", "matplotlib", "tqdm"}


@pytest.fixture(scope="module")
def root(content: build.Content, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's files."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    folder = tmp_path_factory.mktemp("image") / "root"
    unpack(content, folder)
    return folder


def test_two_folders_give_the_same_bytes(content: build.Content, tmp_path: Path) -> None:
    """The second is built by a process of its own, elsewhere, from files with other modes and times."""
    write(content, tmp_path / "first.tar", NAME)
    there = tmp_path / "a longer name" / "there"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("hvpa", "localcluster", "tools"):
        shutil.copytree(ROOT / name, there / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, there)
    for path in there.rglob("*.*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
        path.chmod(0o700)
    second = tmp_path / "second.tar"
    changed = {"SOURCE_DATE_EPOCH": str(content.epoch), "TZ": "Asia/Tokyo", "PYTHONPATH": str(there)}
    command = (sys.executable, "-m", "tools.image", "--out", str(second))
    run(*command, cwd=there, umask=0o077, env={**os.environ, **changed})
    assert second.read_bytes() == (tmp_path / "first.tar").read_bytes()
    assert second.with_suffix(".cdx.json").read_bytes() == (tmp_path / "first.cdx.json").read_bytes()
    assert second.stat().st_size < 60e6


def test_the_dockerfile_installs_the_same(content: build.Content, tmp_path: Path) -> None:
    installed = docker_build(tmp_path)
    site = tmp_path / wheels.SITE
    ours = files_below(wheels.SITE, content.files())
    theirs = {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert ours.keys() == theirs.keys()
    differing = {name for name in ours if ours[name] != theirs[name]}
    # Bytecode names the folder that it was compiled in; records have a line for each file of bytecode.
    assert not {name for name in differing if not name.endswith((".pyc", "/RECORD"))}
    assert {content[:8] for name, content in ours.items() if name.endswith(".pyc")} == {
        content[:8] for name, content in theirs.items() if name.endswith(".pyc")
    }
    for name in differing:
        if name.endswith("/RECORD"):
            assert rows(ours[name]) == rows(theirs[name]), name
    scripts = {name.rpartition("/")[2] for name in content.files() if name.startswith(f"{wheels.HOME}/bin/")}
    assert scripts == {
        path.name for path in (installed / "bin").iterdir() if "activate" not in path.name.lower()
    }


def docker_build(folder: Path) -> Path:
    """The environment that the build stage of the Dockerfile makes, with all its folders below this one."""
    source, programs = folder / "src", folder / "programs"
    source.mkdir()
    programs.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    python = programs / "python"
    base: str = sys._base_executable  # type: ignore[attr-defined]
    python.write_text(f'#!/bin/sh\nexec "{base}" "$@"\n')
    python.chmod(0o755)
    stage, _ = dockerfile.stages((ROOT / "Dockerfile").read_text())
    commands = [rest for instruction, rest in stage if instruction == "RUN"]
    script = re.sub(r"(?<![\w.])/(?=(opt/hvpa|tools|wheels)\b)", f"{folder}/", "\n".join(commands))
    changed = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    run("sh", "-ec", script, cwd=source, env={**os.environ, **changed})
    return folder / wheels.HOME


def files_below(folder: str, entries: oci.Entries) -> dict[str, bytes]:
    return {
        path.removeprefix(f"{folder}/"): entry.content
        for path, entry in entries.items()
        if path.startswith(f"{folder}/") and isinstance(entry, oci.File)
    }


def rows(record: bytes) -> set[tuple[str, ...]]:
    """But for bytecode and scripts: the latter begin with the name of a folder."""
    entries = csv.reader(record.decode().splitlines())
    return {tuple(row) for row in entries if not row[0].endswith(".pyc") and not row[0].startswith("../")}


def test_it_runs_as_any_user_and_writes_nothing(content: build.Content, root: Path) -> None:
    entrypoint = content.config["Entrypoint"]
    assert inside(root, content.config, *entrypoint, "--version") == f"hvpa {VERSION}\n"
    assert "--leader-elect" in inside(root, content.config, *entrypoint, *content.config["Cmd"], "--help")
    crd = (ROOT / "config/crd/autoscaling.k8s.io_hvpas.yaml").read_text()
    assert inside(root, content.config, *entrypoint, "crd") == crd


def test_each_library_can_be_loaded(content: build.Content, root: Path) -> None:
    assert inside(root, content.config, "python", "-c", LIBRARIES) == "65532 Read-only file system\n"


def inside(root: Path, config: Mapping[str, object], *command: str) -> str:
    """What a program of the image prints, with the image's own environment, as its user, on files that it can't
    write."""
    variables = config["Env"]
    assert isinstance(variables, list)
    environment = dict(line.split("=", 1) for line in variables)
    words = ("unshare", "--mount", "sh", "-ec", READ_ONLY, "sh", str(root), *command)
    return run(*words, cwd=root, env={"HOME": "/", **environment})


def run(*command: str, cwd: Path, env: Mapping[str, str], umask: int = 0o022) -> str:
    """What a program prints that must succeed."""
    done = subprocess.run(
        command, cwd=cwd, env=env, umask=umask, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
    return done.stdout
