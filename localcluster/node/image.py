"""An OCI image as a file, made without a container engine: one layer, the same bytes for the same content."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FOLDERS = ("bin", "dev", "etc", "proc", "sys", "tmp")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_TYPES = "application/vnd.oci.image"


def write_image(path: Path, name: str, programs: Mapping[str, Path], entrypoint: Sequence[str]) -> Path:
    """Write an image layout (OCI image-spec 1.1) as a tar file to `path`. In the image `programs` are in `/bin` by
    their names; `name` is the image's name with its tag."""
    layer = _layer(programs)
    packed = gzip.compress(layer, mtime=0)
    system = {"architecture": _MACHINES.get(platform.machine(), platform.machine()), "os": "linux"}
    config = _json(
        {
            **system,
            "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPES}.manifest.v1+json",
            "config": _described(f"{_TYPES}.config.v1+json", config),
            "layers": [_described(f"{_TYPES}.layer.v1.tar+gzip", packed)],
        }
    )
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    entry = {**_described(f"{_TYPES}.manifest.v1+json", manifest), "platform": system, "annotations": names}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
        **{f"blobs/sha256/{_digest(blob)[7:]}": blob for blob in (config, manifest, packed)},
    }
    with tarfile.open(path, "w") as tar:
        for file, content in files.items():
            _add(tar, file, content, 0o644)
    return path


def _layer(programs: Mapping[str, Path]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for folder in _FOLDERS:
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(info)
        for name in sorted(programs):
            _add(tar, f"bin/{name}", programs[name].read_bytes(), 0o755)
    return raw.getvalue()


def _add(tar: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def _described(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
