"""Pushes image and chart of a release to a registry (`make publish`). crane does it, with the credentials of `docker
login`. It sends the files as they are, so the digests in the registry are those of the release. A version that is
there with other content stays as it is."""

from __future__ import annotations

import argparse
import hashlib
import ipaddress
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localcluster import oci
from localcluster.programs.build import BuildError, build_crane
from tools.archive import unpack
from tools.dependencies.lockfile import PROJECT
from tools.release import CHECKSUMS

REGISTRY: Final = re.compile(
    r"(?P<host>[a-z0-9][a-z0-9.-]*)(?P<port>:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
)
ABSENT: Final = re.compile(r"MANIFEST_UNKNOWN|NAME_UNKNOWN|NOT_FOUND|DENIED|UNAUTHORIZED|status code 40[134]")
"""Answers of registries about what is not there. Some refuse to answer about a repository that does not exist; if the
user may not push either, the push says so."""
SECONDS: Final = 600
"""Limit of one call of crane."""


class PublishError(Exception):
    """The release can't be published."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file of the release that goes to a registry."""

    path: Path
    name: str
    """Name in the registry, with the tag."""


def main() -> int:
    """Publish; 1 if that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", type=Path, required=True, metavar="FOLDER", help="made by make release")
    parser.add_argument("--registry", required=True, help="HOST[:PORT][/PATH]")
    args = parser.parse_args()
    try:
        check_registry(args.registry)
        for artefact in artefacts(args.release, args.registry):
            print(f"{artefact.name}@{publish(artefact, build_crane())}", flush=True)
    except (BuildError, PublishError) as error:
        print(f"publish: {error}", file=sys.stderr)
        return 1
    return 0


def check_registry(registry: str) -> None:
    """Raise PublishError unless crane reaches this registry by TLS, or it is on this machine."""
    if not registry:
        raise PublishError("REGISTRY is needed: make publish REGISTRY=registry.example.com/you")
    match = REGISTRY.fullmatch(registry)
    if match is None:
        raise PublishError(f"REGISTRY={registry} is not HOST[:PORT][/PATH] in lower case")
    host = match["host"]
    if "." not in host and not match["port"] and host != "localhost":
        raise PublishError(f"REGISTRY={registry} names no host: write the registry's host name first")
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        return
    if not local:
        raise PublishError(f"{host}: crane may use plain HTTP for an address; use the registry's host name")


def artefacts(folder: Path, registry: str) -> list[Artefact]:
    """Return the files to push, the image first. Raises PublishError if the release is incomplete, changed, or made
    for another registry."""
    names = _verified(folder, registry)
    charts = [found for name in names if (found := re.fullmatch(rf"{PROJECT}-(.+)-chart\.tar", name))]
    images = [name for name in names if re.fullmatch(rf"{PROJECT}-.+-image-[a-z0-9]+\.tar", name)]
    if len(charts) != 1 or len(images) != 1:
        raise PublishError(
            f"{folder} needs one chart and one image, and has {len(charts)} and {len(images)}: "
            f"run make release REGISTRY={registry}"
        )
    version = charts[0][1]
    image = Artefact(folder / images[0], f"{registry}/{PROJECT}:{version}")
    called = _entry(image.path)["annotations"]["io.containerd.image.name"]
    if called != oci.full_name(image.name):
        raise PublishError(
            f"the release in {folder} has the image {called}, to which its chart and manifests refer: "
            f"run make release REGISTRY={registry}"
        )
    return [
        image,
        Artefact(folder / charts[0][0], f"{registry}/charts/{PROJECT}:{version}"),
    ]


def publish(artefact: Artefact, crane: Path) -> str:
    """Push a file unless the registry has it, and return its digest. Raises PublishError, also if the registry has
    other content of that name."""
    wanted = str(_entry(artefact.path)["digest"])
    there = _run(crane, "digest", artefact.name)
    if there.returncode == 0:
        if (digest := there.stdout.strip()) != wanted:
            raise PublishError(
                f"{artefact.name} is published with the digest {digest}, not {wanted}: a version never changes, "
                "so set another one"
            )
        return wanted
    if not ABSENT.search(there.stderr):
        raise PublishError(f"{artefact.name}: {_reason(there)}")
    with tempfile.TemporaryDirectory(prefix="hvpa-publish-") as layout:
        with tarfile.open(artefact.path) as archive:
            unpack(archive, Path(layout))
        pushed = _run(crane, "push", layout, artefact.name)
    if pushed.returncode:
        raise PublishError(f"{artefact.name}: {_reason(pushed)}")
    if not pushed.stdout.strip().endswith(f"@{wanted}"):
        raise PublishError(f"{artefact.name}: the registry has {pushed.stdout.strip()}, not {wanted}")
    return wanted


def _verified(folder: Path, registry: str) -> list[str]:
    """The names of all files of the release, which have the right checksums."""
    sums = folder / CHECKSUMS
    if not sums.is_file():
        raise PublishError(f"{folder} has no release: run make release REGISTRY={registry}")
    names = []
    for line in sums.read_text().splitlines():
        digest, _, name = line.partition("  ")
        path = folder / Path(name).name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise PublishError(f"{path} is missing or differs from {CHECKSUMS}: run make release again")
        names.append(name)
    return names


def _entry(path: Path) -> dict[str, dict[str, str]]:
    """The description of the manifest in an archive."""
    with tarfile.open(path) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
    return dict(entry)


def _run(crane: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(crane), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise PublishError(f"crane {' '.join(arguments)}: no end after {SECONDS} s") from error


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    reason = lines[-1].removeprefix("Error: ") if lines else done.stderr.strip()
    return f"{reason}; are you logged in (docker login)?" if re.search("UNAUTHORIZED|401", reason) else reason


if __name__ == "__main__":
    sys.exit(main())
