"""The cgroups of a node, in the hierarchies of cgroup v1: one of its own in each, below which all its processes are.
An empty one can be removed by its owner alone, so nothing is left after the node has ended."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNIFIED = "unified"
"""The mount of cgroup v2 beside v1: it has no controllers, and runc makes a cgroup in it too."""
_PREFIX = "hvpa-node"
_CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")
_GOES_WITHIN = 20.0
"""Seconds; the kernel needs a moment to release the memory of a container that was killed."""
CPU_SHARES = 6144
"""Of a node: all its pods together. With the usual 1024 each other process of the machine would weigh as much."""


@dataclass(frozen=True, slots=True)
class Granted:
    """What the kernel grants: CPU shares, quota in microseconds per 100 ms (-1: none), bytes of memory; and the bytes
    that are used, page cache included."""

    shares: int
    quota: int
    limit: int
    usage: int


def granted(cpu: Path, memory: Path) -> Granted:
    """What a cgroup has, by its folders of the two controllers. Raises `OSError` if it is gone."""
    files = (
        cpu / "cpu.shares",
        cpu / "cpu.cfs_quota_us",
        memory / "memory.limit_in_bytes",
        memory / "memory.usage_in_bytes",
    )
    return Granted(*(int(file.read_text()) for file in files))


def name_of(node: str) -> str:
    """The cgroup of a node of this process."""
    return f"{_PREFIX}-{os.getpid()}-{node}"


def hierarchies() -> list[Path]:
    """The mounts of cgroup v1's controllers; none if there is only cgroup v2."""
    if not ROOT.is_dir() or (ROOT / "cgroup.controllers").exists():
        return []
    return sorted(
        one for one in ROOT.iterdir() if one.is_dir() and not one.is_symlink() and one.name != UNIFIED
    )


def make(name: str) -> None:
    """Make the node's cgroups, with one for its runtime and kubelet. Raises `OSError` if that is not allowed."""
    for hierarchy in hierarchies():
        for part in (name, f"{name}/system"):
            folder = hierarchy / part
            folder.mkdir(exist_ok=True)
            for file in _CPUSET_FILES:  # a new one has neither, and no process may enter it
                if (folder / file).exists():
                    (folder / file).write_text((hierarchy / file).read_text())
    shares = ROOT / "cpu" / name / "cpu.shares"
    if shares.exists():
        shares.write_text(str(CPU_SHARES))


def remove(name: str) -> list[Path]:
    """Remove the node's cgroups once its processes have ended; those that could not be removed."""
    deadline = time.monotonic() + _GOES_WITHIN
    while (left := list(_remove(name))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def remove_stale() -> None:
    """Remove the cgroups that killed runs have left: those without a process, whose owner is gone."""
    names = {one.name for hierarchy in hierarchies() for one in hierarchy.glob(f"{_PREFIX}-*")}
    for name in names:
        found = re.fullmatch(rf"{_PREFIX}-(\d+)-.+", name)
        if found and not Path(f"/proc/{found[1]}").exists():
            list(_remove(name))


def _remove(name: str) -> Iterator[Path]:
    """Try it once, the deepest first; those that stay."""
    for hierarchy in (*hierarchies(), ROOT / UNIFIED):
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                yield Path(folder)
