"""Images (OCI image-spec 1.1) as files, made without a container engine: the same content gives the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Architectures by their names in `uname`."""
_TYPES = "application/vnd.oci.image"
_REFERENCE = "org.opencontainers.image.ref.name"


@dataclass(frozen=True, slots=True)
class File:
    """A regular file."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder. Parents of other entries need no entry of their own: they get mode 755."""

    mode: int = 0o755


Entries = Mapping[str, File | Link | Folder]
"""The content of a layer, by paths relative to the root."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer. `source` names its origin, which the image's history shows."""

    source: str
    entries: Entries


@dataclass(frozen=True, slots=True)
class Blob:
    """Content of a registry with its media type."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Image:
    """An image that was written: digests of its manifest and its configuration, and the size of each packed layer. The
    configuration names the layers by their unpacked content, so its digest does not depend on the compressor."""

    manifest: str
    config: str
    layers: tuple[int, ...]


def write(path: Path, name: str, layers: Sequence[Layer], config: Mapping[str, Any], epoch: int = 0) -> Image:
    """Write an image as a tar file that `ctr images import`, `docker load`, `podman load` and `skopeo` read. `name` is
    its name with its tag, `config` the settings of its containers; all times are `epoch`."""
    unpacked = [tar(with_parents(layer.entries), epoch) for layer in layers]
    packed = [gzip.compress(layer, compresslevel=6, mtime=0) for layer in unpacked]
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    system = {"architecture": architecture(), "os": "linux"}
    description = {
        **system,
        "created": created,
        "config": dict(config),
        "history": [{"created": created, "created_by": layer.source} for layer in layers],
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer) for layer in unpacked]},
    }
    config_blob = Blob(f"{_TYPES}.config.v1+json", _json(description))
    blobs = [Blob(f"{_TYPES}.layer.v1.tar+gzip", layer) for layer in packed]
    full = full_name(name)
    names = {"io.containerd.image.name": full, _REFERENCE: full.rpartition(":")[2]}
    # Docker's own format in addition to OCI's: a Docker without containerd's store loads no other format.
    docker = {
        "Config": _place(config_blob.content),
        "RepoTags": [name],
        "Layers": [_place(blob) for blob in packed],
    }
    more = {"manifest.json": _json([docker])}
    manifest = _archive(path, (config_blob, *blobs), {"platform": system, "annotations": names}, more, epoch)
    return Image(manifest, _digest(config_blob.content), tuple(len(blob) for blob in packed))


def write_artifact(path: Path, tag: str, config: Blob, layer: Blob, epoch: int = 0) -> str:
    """Write content that is no image, such as a Helm chart, as a tar file of the same layout. Returns the digest of its
    manifest."""
    return _archive(path, (config, layer), {"annotations": {_REFERENCE: tag}}, {}, epoch)


def _archive(
    path: Path, blobs: Sequence[Blob], described: Mapping[str, Any], more: Mapping[str, bytes], epoch: int
) -> str:
    """Write the archive of a configuration and its layers. Returns the digest of the manifest, which `described`
    describes in the index."""
    config, *layers = (_described(blob.media_type, blob.content) for blob in blobs)
    media_type = f"{_TYPES}.manifest.v1+json"
    manifest = _json({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": layers})
    entry = {**_described(media_type, manifest), **described}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
        **more,
        **{_place(content): content for content in (manifest, *(blob.content for blob in blobs))},
    }
    path.write_bytes(tar({file: File(content) for file, content in files.items()}, epoch))
    return _digest(manifest)


def tar(entries: Entries, epoch: int = 0) -> bytes:
    """These entries as a tar archive: sorted, owned by root, all with the same time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in sorted(entries.items()):
            info = tarfile.TarInfo(path)
            info.mtime = epoch
            match entry:
                case File(content, mode):
                    info.size, info.mode = len(content), mode
                    archive.addfile(info, io.BytesIO(content))
                case Link(target):
                    info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, target
                    archive.addfile(info)
                case Folder(mode):
                    info.type, info.mode = tarfile.DIRTYPE, mode
                    archive.addfile(info)
    return raw.getvalue()


def with_parents(entries: Entries) -> Entries:
    """These entries and their parent folders."""
    parents = {str(parent): Folder() for path in entries for parent in PurePosixPath(path).parents}
    parents.pop(".", None)
    return {**parents, **entries}


def architecture() -> str:
    """This machine's architecture, as images name it."""
    return MACHINES.get(platform.machine(), platform.machine())


def full_name(name: str) -> str:
    """An image's name with its registry, its namespace and its tag, which short names omit."""
    if ":" not in name.rpartition("/")[2]:
        name = f"{name}:latest"
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def _described(media_type: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(content), "size": len(content)}


def _place(content: bytes) -> str:
    return f"blobs/sha256/{_digest(content)[7:]}"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
