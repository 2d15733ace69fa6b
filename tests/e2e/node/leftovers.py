"""What nodes could leave on the machine."""

from __future__ import annotations

from pathlib import Path

from localcluster.node import cgroups
from localcluster.node.config import TUNABLES


def machine(owner: int) -> dict[str, object]:
    """What the nodes of a process could leave: cgroups, programs that run in them, mounts, settings of the machine."""
    name = f"hvpa-node-{owner}-"
    settings = {name: file.read_text() for name in TUNABLES if (file := Path("/proc/sys") / name).exists()}
    return {
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "cgroups": sorted(str(path) for path in cgroups.ROOT.glob(f"*/{name}*")),
        "settings": settings,
        "running": sorted(
            path.parent.name for path in Path("/proc").glob("[0-9]*/cgroup") if name in _text(path)
        ),
    }


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # ended meanwhile
        return ""
