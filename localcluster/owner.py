"""Names of folders and cgroups that contain their owner, the process that has made them. If the owner is killed, they
stay, and a later run finds them."""

from __future__ import annotations

import os
import re
from pathlib import Path

_UNKNOWN = "0"


def owned(prefix: str) -> str:
    """A name of this process: the prefix, the process id, its start, and its namespace of process ids, such as
    `hvpa-node-4711-98765n4026531836`."""
    return name_of(prefix, os.getpid(), _start(os.getpid()))


def name_of(prefix: str, process: int, start: str) -> str:
    """The same of any process of this namespace."""
    return f"{prefix}-{process}-{start}n{_space()}"


def left_in(folder: Path, prefix: str) -> list[Path]:
    """The entries of a folder whose names begin like those of `owned`, and whose owners have ended. Processes of other
    namespaces can't be seen: a container that shares the folder may run them."""
    names = re.compile(rf"{re.escape(prefix)}-(\d+)-(\d+)n{_space()}-.")
    return [
        path
        for path in sorted(folder.glob(f"{prefix}-*"))
        if (match := names.match(path.name)) and not _lives(int(match[1]), match[2])
    ]


def _space() -> str:
    """The namespace of process ids; 0 where there are none, as on macOS."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return _UNKNOWN


def _lives(process: int, start: str) -> bool:
    """Whether this process runs; a process with the same id that started at another time is another process."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs as another user
        pass
    return _start(process) in (start, _UNKNOWN)


def _start(process: int) -> str:
    """When a process started, in clock ticks since the machine's start; 0 if that is unknown, as on macOS."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return _UNKNOWN
    # Field 22 (man 5 proc), counted from the third: the second is in parentheses, and may contain any character.
    return stat.rpartition(")")[2].split()[19]
