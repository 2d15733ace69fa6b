"""The image of docs/runtimes.md: Java, Node and Python of Debian packages, as a file for real nodes.

Java programs are single source files: Debian's JRE has the module jdk.compiler, so `java Service.java` needs no JDK."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from localcluster import oci
from localcluster.programs.toolchain import cache_folder
from localcluster.workloads.runtimes import IMAGE
from tools.dependencies.lockfile import ROOT
from tools.image import debian, lockfile


def build() -> Path:
    """Return the image's file, which is built once per content of the lock files. Raises ImageError."""
    digest = hashlib.sha256(Path(debian.__file__).read_bytes() + Path(__file__).read_bytes())
    for lock in lockfile.LOCKS:
        digest.update((ROOT / lock).read_bytes())
    cache = cache_folder() / "image"
    path = cache / f"runtimes-{digest.hexdigest()[:16]}.tar"
    if path.exists():
        return path
    architecture = oci.architecture()
    packages = [package for lock in lockfile.LOCKS for package in lockfile.read(ROOT / lock, architecture)]
    java = oci.Link(f"/usr/lib/jvm/java-17-openjdk-{architecture}/bin/java")
    entries = {**debian.unpack(debian.fetch(packages, cache)), "usr/bin/java": java}
    partial = path.with_suffix(f".{os.getpid()}")
    oci.write(partial, IMAGE, [oci.Layer(" and ".join(lockfile.LOCKS), entries)], {"Env": ["PATH=/usr/bin"]})
    return partial.replace(path)
