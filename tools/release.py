"""Builds a release of the checked-out commit in a folder: wheel, source distribution, Helm chart, rendered manifests,
image, bills of materials, and their checksums (`make release`). The same commit gives the same bytes, wherever and
whenever it is built: all timestamps are the commit's (SOURCE_DATE_EPOCH)."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from localcluster import oci
from localcluster.programs.build import BuildError, build
from tools import operatorhub
from tools.archive import unpack
from tools.dependencies import sbom
from tools.dependencies.lockfile import PROJECT, ROOT, read_project
from tools.distributions import ReleaseError, distributions, run, tar_gz
from tools.image.build import build as build_image
from tools.image.errors import ImageError

CHECKSUMS: Final = "SHA256SUMS"
SIGNATURE: Final = f"{CHECKSUMS}.sig"
SIGNED_AS: Final = "hvpa-release"
"""Namespace of the signature, so that no signature made for another purpose fits."""
NAME: Final = re.compile(
    r"(?P<repository>[a-z0-9][a-z0-9._/:-]*/)?hvpa:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})"
)
"""Names that a release can give its image."""
CHART_TYPE: Final = "application/vnd.cncf.helm"
"""What the media types of a chart in a registry begin with (Helm's format)."""
PARTS: Final = {"manager", "operator-policy", "rbac", "samples"}
"""Folders of `config` that others include, and examples: no separate files in the release."""


def main() -> int:
    """Build the release; 1 if that fails, and then nothing is written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files go")
    parser.add_argument("--image", help="the operator's image with its tag (default: hvpa:VERSION)")
    parser.add_argument("--without-image", action="store_true", help="for machines without Debian's packages")
    parser.add_argument("--sign-key", type=Path, metavar="FILE", help="SSH key that signs the checksums")
    args = parser.parse_args()
    try:
        files = release(ROOT, build(full=False)["kubectl"], args.image, with_image=not args.without_image)
        if args.sign_key:
            files[SIGNATURE] = signature(files[CHECKSUMS], args.sign_key)
        write(files, args.out)
    except (BuildError, ReleaseError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    print(files[CHECKSUMS].decode(), end="")
    return 0


def release(
    root: Path, kubectl: Path, image: str | None = None, *, with_image: bool = True
) -> dict[str, bytes]:
    """Return the files of the release by name. Raises ReleaseError if the folder differs from its commit."""
    if changed := run("git", "status", "--porcelain", "--untracked-files=no", cwd=root).decode():
        raise ReleaseError(
            f"a release is built from a commit; these files differ from it:\n{changed.rstrip()}"
        )
    epoch = int(run("git", "log", "-1", "--format=%ct", cwd=root))
    version = read_project(root / "pyproject.toml").version
    image = image or f"{PROJECT}:{version}"
    os.umask(0o022)  # file modes of the wheel's entries
    with tempfile.TemporaryDirectory(prefix="hvpa-release-") as folder:
        source = Path(folder)
        with tarfile.open(fileobj=io.BytesIO(run("git", "archive", "HEAD", cwd=root))) as archive:
            unpack(archive, source)
        manifests = _manifests(source, kubectl, version, image)
        files = {
            **_charts(source / "charts" / PROJECT, image, version, epoch),
            f"{PROJECT}-{version}.cdx.json": sbom.render(source).encode(),
            **manifests,
            f"{PROJECT}-{version}-bundle.tgz": _bundle(source, manifests, image, version, epoch),
            **distributions(source, epoch),
            **(_image(source, image, version, epoch) if with_image else {}),
        }
    sums = "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return {**files, CHECKSUMS: sums.encode()}


def signature(checksums: bytes, key: Path) -> bytes:
    """Sign the checksums with an SSH key, or with the key in the agent that belongs to a public key. Raises
    ReleaseError."""
    if not key.is_file():
        raise ReleaseError(f"the key {key} is no file: create one with ssh-keygen -t ed25519 -f {key}")
    with tempfile.TemporaryDirectory(prefix="hvpa-sign-") as folder:
        signed = Path(folder) / CHECKSUMS
        signed.write_bytes(checksums)
        run(
            "ssh-keygen",
            "-Y",
            "sign",
            "-f",
            str(key.resolve()),
            "-n",
            SIGNED_AS,
            str(signed),
            cwd=Path(folder),
        )
        return (Path(folder) / SIGNATURE).read_bytes()


def with_default_image(values: str, image: str, version: str) -> str:
    """Return the chart's values with the image of the release as the default. Without a registry in its name, no
    cluster could pull it, and the values stay the same. Raises ReleaseError."""
    name = NAME.fullmatch(image)
    if name is None:
        raise ReleaseError(f"{image} is no image name like registry.example.com/you/hvpa:{version}")
    if name["repository"] is None:
        return values
    repository, tag = f"{name['repository']}{PROJECT}", "" if name["tag"] == version else name["tag"]
    found = re.search(r'^image:\n  #[^\n]*\n  repository: ""\n(  #[^\n]*\n)  tag: ""\n', values, re.MULTILINE)
    if found is None:
        raise ReleaseError("charts/hvpa/values.yaml has no image.repository and image.tag as expected")
    block = f'image:\n  # Repository of the image.\n  repository: "{repository}"\n{found[1]}  tag: "{tag}"\n'
    return values.replace(found[0], block)


def write(files: Mapping[str, bytes], out: Path) -> None:
    """Write a release into a folder, the checksums last. If the folder holds other files, which would have no checksum,
    raises ReleaseError before it writes."""
    out.mkdir(parents=True, exist_ok=True)
    if others := {path.name for path in out.iterdir()} - files.keys():
        raise ReleaseError(f"{out} holds what is no part of this release: {', '.join(sorted(others))}")
    for name in sorted(files, key=lambda name: name.startswith(CHECKSUMS)):
        (out / name).write_bytes(files[name])


def _charts(folder: Path, image: str, version: str, epoch: int) -> dict[str, bytes]:
    """Return the chart with this default image, as Helm's package and as a file for registries."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    files["values.yaml"] = with_default_image(files["values.yaml"].decode(), image, version).encode()
    package = tar_gz({f"{folder.name}/{name}": content for name, content in files.items()}, epoch)
    about = json.dumps(yaml.safe_load(files["Chart.yaml"]), sort_keys=True).encode()
    config = oci.Blob(f"{CHART_TYPE}.config.v1+json", about)
    layer = oci.Blob(f"{CHART_TYPE}.chart.content.v1.tar+gzip", package)
    with tempfile.TemporaryDirectory(prefix="hvpa-chart-") as out:
        archive = Path(out) / "chart.tar"
        oci.write_artifact(archive, version, config, layer, epoch)
        return {
            f"{PROJECT}-{version}.tgz": package,
            f"{PROJECT}-{version}-chart.tar": archive.read_bytes(),
        }


def _bundle(source: Path, manifests: Mapping[str, bytes], image: str, version: str, epoch: int) -> bytes:
    """Return the bundle for OperatorHub."""
    rendered = manifests[f"{PROJECT}-{version}-{operatorhub.OVERLAY}.yaml"].decode()
    sample = (source / "config/samples/web.yaml").read_text()
    chart = yaml.safe_load((source / "charts" / PROJECT / "Chart.yaml").read_text())
    oldest = re.fullmatch(r">=(\d+\.\d+\.\d+)-0", chart["kubeVersion"])
    if oldest is None:
        raise ReleaseError(f"Chart.yaml: kubeVersion {chart['kubeVersion']} is not like >=1.30.0-0")
    return tar_gz(operatorhub.bundle(rendered, sample, image, version, oldest[1], epoch), epoch)


def _image(source: Path, image: str, version: str, epoch: int) -> dict[str, bytes]:
    """Return the image of the release and its bill of materials."""
    try:
        content = build_image(source, epoch)
    except ImageError as error:
        raise ReleaseError(f"image: {error}") from error
    name = f"{PROJECT}-{version}-image-{oci.architecture()}"
    with tempfile.TemporaryDirectory(prefix="hvpa-image-") as out:
        archive = Path(out) / "image.tar"
        oci.write(archive, image, content.layers, content.config, content.epoch)
        return {
            f"{name}.tar": archive.read_bytes(),
            f"{name}.cdx.json": sbom.render_image(source, content.packages).encode(),
        }


def _manifests(source: Path, kubectl: Path, version: str, image: str) -> dict[str, bytes]:
    """Return the rendered manifests of each overlay of `config`."""
    manifests = {}
    for path in sorted(source.glob("config/*/kustomization.yaml")):
        overlay = path.parent
        if overlay.name not in PARTS:
            text = run(str(kubectl), "kustomize", str(overlay), cwd=source).decode()
            text = text.replace(f"image: {PROJECT}:{version}\n", f"image: {image}\n")
            manifests[f"{PROJECT}-{version}-{overlay.name}.yaml"] = text.encode()
    return manifests


if __name__ == "__main__":
    sys.exit(main())
