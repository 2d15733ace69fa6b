"""The cgroups of a node, in the hierarchies of cgroup v1: the node has a cgroup in each, which contains all its
processes. Only its owner can remove an empty cgroup, so nothing is left after the node has ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localcluster.owner import left_in, owned

ROOT = Path("/sys/fs/cgroup")
UNIFIED = "unified"
"""The mount of cgroup v2 next to v1: it has no controllers, and runc makes a cgroup in it too."""
_PREFIX = "hvpa-node"
_CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")
_GOES_WITHIN = 20.0
"""Seconds; the kernel takes a moment to release the memory of a killed container."""
CPU_SHARES = 6144
"""Shares of a node, for all its pods together. With the default of 1024 each other process of the machine would weigh
as much."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The kernel's grants: CPU shares, quota in microseconds per 100 ms (-1: none), bytes of memory; and the used
    bytes, page cache included."""

    shares: int
    quota: int
    limit: int
    usage: int


def granted(cpu: Path, memory: Path) -> Granted:
    """The grants of a cgroup, by its folders of the two controllers. Raises `OSError` if it is gone."""
    files = (
        cpu / "cpu.shares",
        cpu / "cpu.cfs_quota_us",
        memory / "memory.limit_in_bytes",
        memory / "memory.usage_in_bytes",
    )
    return Granted(*(int(file.read_text()) for file in files))


def name_of(node: str) -> str:
    """The cgroup of a node of this process."""
    return f"{owned(_PREFIX)}-{node}"


def hierarchies() -> list[Path]:
    """The mounts of cgroup v1's controllers, each once: `cpu` is often a link to `cpu,cpuacct`. None if there is only
    cgroup v2."""
    if not ROOT.is_dir() or (ROOT / "cgroup.controllers").exists():
        return []
    return sorted(
        {folder.resolve() for folder in ROOT.iterdir() if folder.is_dir() and folder.name != UNIFIED}
    )


def make(name: str) -> None:
    """Create the node's cgroups, with a cgroup for its runtime and kubelet. Raises `OSError` if that is not allowed."""
    for hierarchy in hierarchies():
        for part in (name, f"{name}/system"):
            folder = hierarchy / part
            folder.mkdir(exist_ok=True)
            for file in _CPUSET_FILES:  # a new cgroup has neither, and no process may enter it
                if (folder / file).exists():
                    (folder / file).write_text((hierarchy / file).read_text())
    shares = ROOT / "cpu" / name / "cpu.shares"
    if shares.exists():
        shares.write_text(str(CPU_SHARES))


def remove(name: str) -> list[Path]:
    """Remove the node's cgroups once its processes have ended; returns the cgroups that could not be removed."""
    deadline = time.monotonic() + _GOES_WITHIN
    while (left := list(_remove(name))) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def remove_stale() -> list[str]:
    """Remove the cgroups of killed runs: those without a process, whose owner has ended. Returns their names."""
    places = (*hierarchies(), ROOT / UNIFIED)
    names = sorted({folder.name for place in places for folder in left_in(place, _PREFIX)})
    return [name for name in names if not list(_remove(name))]


def _remove(name: str) -> Iterator[Path]:
    """Try to remove it once, the deepest first; yield the cgroups that stay."""
    for hierarchy in (*hierarchies(), ROOT / UNIFIED):
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                yield Path(folder)
