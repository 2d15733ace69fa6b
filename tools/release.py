"""Builds a release of the checked-out commit in a folder: wheel, source distribution, Helm chart, rendered manifests,
bill of materials, and their checksums (`make release`). The same commit gives the same bytes, wherever and whenever it
is built: all timestamps are the commit's (SOURCE_DATE_EPOCH)."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localcluster.programs.build import BuildError, build
from tools.archive import unpack
from tools.dependencies import sbom
from tools.dependencies.lockfile import PROJECT, ROOT, read_project

CHECKSUMS: Final = "SHA256SUMS"
PARTS: Final = {"manager", "operator-policy", "rbac", "samples"}
"""Folders of `config` that others include, and examples: no separate files in the release."""
BUILD: Final = (
    "import sys; from setuptools import build_meta as backend; folder = sys.argv[1];"
    "backend.build_sdist(folder); backend.build_wheel(folder)"
)
"""Calls the build backend of pyproject.toml by its standard interface (PEP 517)."""


class ReleaseError(Exception):
    """The release can't be built."""


def main() -> int:
    """Build the release; 1 if that fails, and then nothing is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files go")
    parser.add_argument("--image", help="the operator's image in the manifests (default: hvpa:VERSION)")
    args = parser.parse_args()
    try:
        files = release(ROOT, build(full=False)["kubectl"], args.image)
        write(files, args.out)
    except (BuildError, ReleaseError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print((args.out / CHECKSUMS).read_text(), end="")
    return 0


def release(root: Path, kubectl: Path, image: str | None = None) -> dict[str, bytes]:
    """Return the files of the release by name. Raises ReleaseError if the folder differs from its commit."""
    if changed := _run("git", "status", "--porcelain", "--untracked-files=no", cwd=root).decode():
        raise ReleaseError(
            f"a release is built from a commit; these files differ from it:\n{changed.rstrip()}"
        )
    epoch = int(_run("git", "log", "-1", "--format=%ct", cwd=root))
    version = read_project(root / "pyproject.toml").version
    os.umask(0o022)  # file modes of the wheel's entries
    with tempfile.TemporaryDirectory(prefix="hvpa-release-") as folder:
        source = Path(folder)
        with tarfile.open(fileobj=io.BytesIO(_run("git", "archive", "HEAD", cwd=root))) as archive:
            unpack(archive, source)
        files = {
            f"{PROJECT}-{version}.tgz": tar_gz(_chart(source / "charts" / PROJECT), epoch),
            f"{PROJECT}-{version}.cdx.json": sbom.render(source).encode(),
            **_manifests(source, kubectl, version, image),
            **distributions(source, epoch),
        }
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return {**files, CHECKSUMS: sums.encode()}


def tar_gz(files: Mapping[str, bytes], epoch: int) -> bytes:
    """Return a compressed archive of these files with a single timestamp and no owners. The same files give the same
    bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", fileobj=packed, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), epoch
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def write(files: Mapping[str, bytes], out: Path) -> None:
    """Write a release into a folder, the checksums last. If the folder holds other files, which would have no checksum,
    raises ReleaseError before it writes."""
    out.mkdir(parents=True, exist_ok=True)
    if others := {path.name for path in out.iterdir()} - files.keys():
        raise ReleaseError(f"{out} holds what is no part of this release: {', '.join(sorted(others))}")
    for name in sorted(files, key=lambda name: name == CHECKSUMS):
        (out / name).write_bytes(files[name])


def _chart(folder: Path) -> dict[str, bytes]:
    """Return the files of the chart below a folder with the chart's name, as Helm packages require."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder.parent)): path.read_bytes() for path in paths}


def _manifests(source: Path, kubectl: Path, version: str, image: str | None) -> dict[str, bytes]:
    """Return the rendered manifests of each overlay of `config`."""
    manifests = {}
    for path in sorted(source.glob("config/*/kustomization.yaml")):
        overlay = path.parent
        if overlay.name not in PARTS:
            text = _run(str(kubectl), "kustomize", str(overlay), cwd=source).decode()
            text = text.replace(
                f"image: {PROJECT}:{version}\n", f"image: {image or f'{PROJECT}:{version}'}\n"
            )
            manifests[f"{PROJECT}-{version}-{overlay.name}.yaml"] = text.encode()
    return manifests


def distributions(source: Path, epoch: int) -> dict[str, bytes]:
    """Build wheel and source distribution. The latter is packed again, because setuptools writes its own times and
    owners."""
    with tempfile.TemporaryDirectory(prefix="hvpa-dist-") as folder:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
        _run(sys.executable, "-c", BUILD, folder, cwd=source, env=environment)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    for name in files:
        if name.endswith(".tar.gz"):
            with tarfile.open(fileobj=io.BytesIO(files[name])) as archive:
                members = [
                    (member.name, archive.extractfile(member)) for member in archive if member.isfile()
                ]
                files[name] = tar_gz({path: file.read() for path, file in members if file}, epoch)
    return files


def _run(*command: str, cwd: Path, env: Mapping[str, str] | None = None) -> bytes:
    """Return a program's output. Raises ReleaseError with its error message if it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, check=False)
    except OSError as error:
        raise ReleaseError(f"{command[0]} can't be run: {error.strerror}") from error
    if done.returncode:
        complaint = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise ReleaseError(f"{' '.join(command[:2])} failed in {cwd}: {complaint}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
