"""Writes the operator's image and its bill of materials as files (`make image`), or the lock files of its
base (`make image-lock`). The same sources give the same bytes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from localcluster import oci
from tools.dependencies import sbom
from tools.dependencies.lockfile import PROJECT, ROOT, read_project
from tools.image import lockfile
from tools.image.build import Content, build
from tools.image.errors import ImageError


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files; 1 if that fails, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__)
    parser.add_argument(
        "--lock", action="store_true", help=f"write {' and '.join(lockfile.LOCKS)}: what apt offers now"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", default=ROOT / "dist" / f"{PROJECT}-image.tar")
    parser.add_argument("--name", metavar="IMAGE", help=f"name with its tag (default: {PROJECT}:VERSION)")
    parser.add_argument(
        "--root", type=Path, metavar="FOLDER", help="also unpack its files here: a new folder"
    )
    args = parser.parse_args(argv)
    try:
        if args.lock:
            for lock, names in lockfile.LOCKS.items():
                (ROOT / lock).write_text(lockfile.render(lockfile.offered(names), lock))
            return 0
        content = build(ROOT)
    except ImageError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    if args.root:
        unpack(content, args.root)
    write(content, args.out, args.name or f"{PROJECT}:{read_project().version}")
    return 0


def write(content: Content, out: Path, name: str) -> None:
    """Write image and bill of materials, and print their names."""
    out.parent.mkdir(parents=True, exist_ok=True)
    image = oci.write(out, name, content.layers, content.config, content.epoch)
    materials = out.with_suffix(".cdx.json")
    materials.write_text(sbom.render_image(ROOT, content.packages))
    print(f"{out}: {name}, linux/{oci.architecture()}, {_megabytes(out.stat().st_size)}")
    for layer, size in zip(content.layers, image.layers, strict=True):
        print(f"  layer {_megabytes(size):>8}  {layer.source}")
    print(f"  manifest {image.manifest}\n  config   {image.config}\n{materials}: its bill of materials")


def unpack(content: Content, root: Path) -> None:
    """Write the image's files into a new folder."""
    root.mkdir(parents=True)
    for path, entry in sorted(oci.with_parents(content.files()).items()):
        place = root / path
        match entry:
            case oci.Folder(mode):
                place.mkdir()
                place.chmod(mode)
            case oci.Link(target):
                place.symlink_to(target)
            case oci.File(data, mode):
                place.write_bytes(data)
                os.chmod(place, mode)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
