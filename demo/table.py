"""The live table: one line for one moment, at most 110 columns. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from demo.snapshot import Held, Resources, Snapshot

WIDTH = 112
_MIB = 2**20

Columns = tuple[tuple[str, int], ...]
_ALWAYS: Columns = (("time", 5), ("load", 6), ("each", 5), ("pods", 5))
ROLLOUT: Columns = (
    *_ALWAYS,
    ("cpu req/lim", 11),
    ("mem req/lim", 13),
    ("HPA", 3),
    ("VPA target", 12),
)
"""Where pods are replaced for another size."""
IN_PLACE: Columns = (
    *_ALWAYS,
    ("cpu", 5),
    ("mem", 6),
    ("resized", 7),
    ("restarts", 8),
    ("asked", 6),
    ("HPA+VPA", 7),
)
"""Where running pods are resized."""
_SEPARATOR = "  "
# The gates' names, short enough for a column; those that are not here are short already.
_SHORT = {
    "StabilizationWindow": "stabilization",
    "MaintenanceWindow": "window",
    "UpdatePolicy": "mode Off",
    "MinChange": "too small",
    "Rollout": "rollout",
    "Canary": "tried on some pods",
    "RolledBack": "failed lately",
    "PodReplacement": "larger pods first",
    "SustainedDemand": "5 min of demand",
    "OutOfMemory": "OOM lately",
    "RecentRaise": "raised lately",
    "MinHistory": "history",
    "MaxStep": "max step",
    "Weight": "weight 0",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """Where in time a line stands: seconds since the load began to count, the wall clock, the total of the
    load, what one pod uses of it, and what an HPA beside a VPA would request in total (millicores)."""

    elapsed: float
    now: dt.datetime
    load: float
    per_pod: float
    rival: float | None = None


def header(columns: Columns) -> str:
    """The names of the columns."""
    return _join([*(name.rjust(width) for name, width in columns), "held back"])


def line(columns: Columns, moment: Moment, seen: Snapshot) -> str:
    """One line of the table."""
    cells = {
        "time": clock(moment.elapsed),
        "load": cpu(moment.load),
        "each": cpu(moment.per_pod),
        "pods": f"{seen.ready}/{seen.replicas}",
        "cpu req/lim": f"{cpu(seen.requests.cpu)}/{cpu(seen.limits.cpu)}",
        "mem req/lim": f"{memory(seen.requests.memory)}/{memory(seen.limits.memory)}",
        "HPA": "-" if seen.hpa_wish is None else str(seen.hpa_wish),
        "VPA target": pair(seen.vpa_target),
        "cpu": cpu(seen.requests.cpu),
        "mem": memory(seen.requests.memory),
        "resized": seen.resized or "-",
        "restarts": str(seen.restarts),
        "asked": cpu(seen.asked),
        "HPA+VPA": cpu(moment.rival),
    }
    padded = [cells[name].rjust(width) for name, width in columns]
    return _join([*padded, held(seen.held, moment.now)])


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    whole = max(0, int(seconds))
    return f"{whole // 60}:{whole % 60:02}"


def cpu(millicores: float | None) -> str:
    """Always in millicores, so that lines can be compared at a glance."""
    return "-" if millicores is None else f"{round(millicores)}m"


def memory(size: float | None) -> str:
    """Always in whole Mi."""
    return "-" if size is None else f"{round(size / _MIB)}Mi"


def pair(amounts: Resources) -> str:
    """CPU and memory together."""
    if amounts.cpu is None and amounts.memory is None:
        return "-"
    return f"{cpu(amounts.cpu)} {memory(amounts.memory)}"


def held(entries: Iterable[Held], now: dt.datetime) -> str:
    """What is held back, for how long, and why: `pods in 4s, cpu+mem down 12s (stabilization)`. What shares a
    reason is told together, what shares direction and time too."""
    by_reason: dict[str, dict[tuple[str, dt.datetime | None], list[str]]] = {}
    for entry in entries:
        same = by_reason.setdefault(entry.reason, {})
        same.setdefault((entry.direction, entry.until), []).append(
            "mem" if entry.what == "memory" else entry.what
        )
    told = []
    for reason, same in by_reason.items():
        waiting = ", ".join(_waiting(what, *key, now) for key, what in same.items())
        told.append(f"{waiting} ({_SHORT.get(reason, reason.lower())})")
    return ", ".join(told)


def _waiting(what: list[str], direction: str, until: dt.datetime | None, now: dt.datetime) -> str:
    if until is None:
        return f"{'+'.join(what)} {direction}"
    left = max(0.0, (until - now).total_seconds())
    return f"{'+'.join(what)} {direction} {clock(left) if left >= 100 else f'{left:.0f}s'}"


def _join(cells: Iterable[str]) -> str:
    text = _SEPARATOR.join(cells).rstrip()
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
