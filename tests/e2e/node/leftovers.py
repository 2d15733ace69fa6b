"""What nodes could leave on the machine."""

from __future__ import annotations

from pathlib import Path

from localcluster.node import cgroups

_SYSCTLS = Path("/proc/sys")
_CHANGING = frozenset(
    {
        "kernel/hung_task_detect_count",
        "kernel/ns_last_pid",
        "kernel/perf_event_max_sample_rate",
        "kernel/pty/nr",
        "kernel/random/entropy_avail",
        "kernel/random/uuid",
        "net/netfilter/nf_conntrack_count",
        "vm/stat_refresh",
    }
)
"""Settings that change by themselves, or by being read."""


def machine(owner: int) -> dict[str, object]:
    """What the nodes of a process could leave: cgroups, programs that run in them, mounts, settings of the machine."""
    name = f"hvpa-node-{owner}-"
    return {
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "cgroups": sorted(str(path) for path in cgroups.ROOT.glob(f"*/{name}*")),
        "settings": _settings(),
        "running": sorted(
            path.parent.name for path in Path("/proc").glob("[0-9]*/cgroup") if name in _text(path)
        ),
    }


def _settings() -> dict[str, str]:
    """Those of memory, kernel and network that can be read."""
    files = (file for part in ("vm", "kernel", "net") for file in (_SYSCTLS / part).rglob("*"))
    names = {str(file.relative_to(_SYSCTLS)): file for file in files if file.is_file()}
    return {name: _text(file) for name, file in names.items() if name not in _CHANGING}


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:  # it can't be read, or its process has ended
        return ""
