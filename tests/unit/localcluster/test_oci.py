"""Images as files."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from localcluster import oci
from localcluster.oci import File, Folder, Layer, Link

ENTRIES: oci.Entries = {
    "usr/bin/program": File(b"program", 0o755),
    "bin": Link("usr/bin"),
    "tmp": Folder(0o1777),
}
LAYERS = [Layer("first", ENTRIES), Layer("second", {"usr/share/text": File(b"text")})]


def test_a_layer_is_sorted_owned_by_root_and_has_parents() -> None:
    archive = oci.tar(oci.with_parents(ENTRIES), 1_000)
    assert archive == oci.tar(
        oci.with_parents({path: ENTRIES[path] for path in sorted(ENTRIES, reverse=True)}), 1_000
    )
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = tar.getmembers()
    assert [(member.name, member.mode) for member in members] == [
        ("bin", 0o777),
        ("tmp", 0o1777),
        ("usr", 0o755),
        ("usr/bin", 0o755),
        ("usr/bin/program", 0o755),
    ]
    assert {(member.mtime, member.uid, member.gid, member.uname, member.gname) for member in members} == {
        (1_000, 0, 0, "", "")
    }
    assert members[0].linkname == "usr/bin"


def test_both_formats_name_the_same_layers(tmp_path: Path) -> None:
    image = oci.write(tmp_path / "image.tar", "hvpa:1", LAYERS, {"User": "65532:65532"}, 1_000)
    with tarfile.open(tmp_path / "image.tar") as tar:
        files = {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] == image.manifest
    assert entry["annotations"]["io.containerd.image.name"] == "docker.io/library/hvpa:1"
    manifest = json.loads(files[blob(image.manifest)])
    (docker,) = json.loads(files["manifest.json"])
    assert docker == {
        "Config": blob(manifest["config"]["digest"]),
        "RepoTags": ["hvpa:1"],
        "Layers": [blob(layer["digest"]) for layer in manifest["layers"]],
    }
    assert [layer["size"] for layer in manifest["layers"]] == list(image.layers)
    config = json.loads(files[blob(image.config)])
    assert config["config"] == {"User": "65532:65532"}
    assert [step["created_by"] for step in config["history"]] == ["first", "second"]
    assert config["created"] == "1970-01-01T00:16:40Z"
    unpacked = [oci.tar(oci.with_parents(layer.entries), 1_000) for layer in LAYERS]
    assert config["rootfs"]["diff_ids"] == [
        f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in unpacked
    ]


def blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("hvpa", "docker.io/library/hvpa:latest"),
        ("hvpa:1", "docker.io/library/hvpa:1"),
        ("you/hvpa:1", "docker.io/you/hvpa:1"),
        ("example.com/you/hvpa:1", "example.com/you/hvpa:1"),
        ("localhost/hvpa", "localhost/hvpa:latest"),
        ("registry:5000/hvpa", "registry:5000/hvpa:latest"),
    ],
)
def test_a_short_name_is_completed_as_kubelets_do(name: str, full: str) -> None:
    assert oci.full_name(name) == full
