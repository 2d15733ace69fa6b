"""The image of a node's pods: one layer with programs that need nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from localcluster import oci

_FOLDERS = ("bin", "dev", "etc", "proc", "sys")


def write_image(path: Path, name: str, programs: Mapping[str, Path], entrypoint: Sequence[str]) -> Path:
    """Write an image as a tar file to `path`. In the image `programs` are in `/bin` by their names; `name` is the
    image's name with its tag."""
    entries: dict[str, oci.File | oci.Link | oci.Folder] = {name: oci.Folder() for name in _FOLDERS}
    entries["tmp"] = oci.Folder(0o1777)
    for program, file in programs.items():
        entries[f"bin/{program}"] = oci.File(file.read_bytes(), 0o755)
    config = {"Entrypoint": list(entrypoint), "Env": ["PATH=/bin"]}
    oci.write(path, name, [oci.Layer("programs of this project", entries)], config)
    return path
