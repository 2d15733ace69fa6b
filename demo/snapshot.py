"""What the live table shows, taken from the objects of the cluster, and the table itself: one line for one snapshot, at
most 112 columns. Pure: objects as JSON in, one frozen snapshot out, text out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hvpa.api.values.quantity import parse_cpu, parse_memory
from hvpa.api.values.timestamp import parse_timestamp

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU in millicores and memory in bytes; None where not set."""

    cpu: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A change that the Hvpa holds back: its direction (`out`, `in`, `up`, `down`), what of (`pods`, `cpu`,
    `memory`), why (a gate's name) and until when, where time opens it."""

    direction: str
    what: str
    reason: str
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the workload and its recommenders."""

    replicas: int
    ready: int
    requests: Resources
    limits: Resources
    hpa_desired: int | None = None
    """The HPA's desired replicas, once it has measured something."""
    vpa_target: Resources = Resources()
    held: tuple[Held, ...] = ()
    knows_usual: bool = False
    """Whether the Hvpa has a mean of the demand that is usual."""
    resized: str = ""
    """How many pods have the desired size, of how many, where they are resized in place."""
    asked: int = 0
    """Millicores that all pods request together."""
    asked_memory: int = 0
    """Bytes that all pods request together."""
    restarts: int = 0
    """Restarts of containers."""


def snapshot(
    deployment: Json, hvpa: Json, hpa: Json | None, vpa: Json | None, pods: Sequence[Json] = ()
) -> Snapshot:
    """Read a snapshot off the objects; recommenders may not be there yet. Requests are those that the Hvpa has decided,
    else the template's."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    status: Json = hvpa.get("status", {})
    decided = (status.get("desired") or {}).get("containers") or [{}]
    requests = {**container["resources"].get("requests", {}), **decided[0].get("requests", {})}
    recommendation = (vpa or {}).get("status", {}).get("recommendation") or {}
    recommended = recommendation.get("containerRecommendations") or [{}]
    found = (hpa or {}).get("status", {})
    # A pod that the node had no room for after all (OutOfcpu) stays, and requests nothing.
    live = [pod for pod in pods if pod["status"].get("phase") not in ("Failed", "Succeeded")]
    has = [one["resources"].get("requests", {}) for pod in live for one in pod["spec"]["containers"]]
    containers = [one for pod in pods for one in pod["status"].get("containerStatuses") or ()]
    return Snapshot(
        replicas=deployment["spec"]["replicas"],
        ready=deployment.get("status", {}).get("readyReplicas", 0),
        requests=resources(requests),
        limits=resources(container["resources"].get("limits", {})),
        hpa_desired=(found.get("desiredReplicas") or None) if found.get("currentMetrics") else None,
        vpa_target=resources(recommended[0].get("target", {})),
        held=tuple(map(_held, status.get("lastBlockedScaling", ()))),
        knows_usual=bool(status.get("axes", {}).get("vertical", {}).get("usualDemand")),
        resized=(status.get("actuation") or {}).get("resized", ""),
        asked=sum(resources(one).cpu or 0 for one in has),
        asked_memory=sum(resources(one).memory or 0 for one in has),
        restarts=sum(one.get("restartCount", 0) for one in containers),
    )


def resources(quantities: Json) -> Resources:
    """A resource list as numbers."""
    cpu, memory = quantities.get("cpu"), quantities.get("memory")
    return Resources(
        None if cpu is None else parse_cpu(cpu),
        None if memory is None else parse_memory(memory),
    )


def _held(entry: Json) -> Held:
    horizontal = entry.get("axis") == "horizontal"
    up = entry.get("direction") == "up"
    direction = ("out" if up else "in") if horizontal else ("up" if up else "down")
    until = entry.get("until")
    return Held(
        direction=direction,
        what="pods" if horizontal else str(entry.get("resource")),
        reason=str(entry.get("reason")),
        until=None if until is None else parse_timestamp(until),
    )


# --- the table --------------------------------------------------------------------------------------------------------
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
class LoadState:
    """Time and load of a line: seconds since the load began to count, the wall clock, the total of the
    load, what one pod uses of it, and what an HPA beside a VPA would request in total (millicores)."""

    elapsed: float
    now: dt.datetime
    load: float
    per_pod: float
    rival: float | None = None


def header(columns: Columns) -> str:
    """The names of the columns."""
    return join([*(name.rjust(width) for name, width in columns), "held back"])


def line(columns: Columns, load_state: LoadState, seen: Snapshot) -> str:
    """One line of the table."""
    cells = {
        "time": clock(load_state.elapsed),
        "load": cpu(load_state.load),
        "each": cpu(load_state.per_pod),
        "pods": f"{seen.ready}/{seen.replicas}",
        "cpu req/lim": f"{cpu(seen.requests.cpu)}/{cpu(seen.limits.cpu)}",
        "mem req/lim": f"{memory(seen.requests.memory)}/{memory(seen.limits.memory)}",
        "HPA": "-" if seen.hpa_desired is None else str(seen.hpa_desired),
        "VPA target": pair(seen.vpa_target),
        "cpu": cpu(seen.requests.cpu),
        "mem": memory(seen.requests.memory),
        "resized": seen.resized or "-",
        "restarts": str(seen.restarts),
        "asked": cpu(seen.asked),
        "HPA+VPA": cpu(load_state.rival),
    }
    padded = [cells[name].rjust(width) for name, width in columns]
    return join([*padded, held(seen.held, load_state.now)])


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
    reason stands together, what shares direction and time too."""
    by_reason: dict[str, dict[tuple[str, dt.datetime | None], list[str]]] = {}
    for entry in entries:
        what = "mem" if entry.what == "memory" else entry.what
        same = by_reason.setdefault(entry.reason, {})
        same.setdefault((entry.direction, entry.until), []).append(what)
    texts = []
    for reason, same in by_reason.items():
        waiting = ", ".join(_waiting(what, *key, now) for key, what in same.items())
        texts.append(f"{waiting} ({_SHORT.get(reason, reason.lower())})")
    return ", ".join(texts)


def _waiting(what: list[str], direction: str, until: dt.datetime | None, now: dt.datetime) -> str:
    if until is None:
        return f"{'+'.join(what)} {direction}"
    left = max(0.0, (until - now).total_seconds())
    return f"{'+'.join(what)} {direction} {clock(left) if left >= 100 else f'{left:.0f}s'}"


def join(cells: Iterable[str]) -> str:
    """The cells of one line."""
    text = _SEPARATOR.join(cells).rstrip()
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
