"""The content of the live table, read from the objects of the cluster, and the table itself: one line per snapshot, at
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
    """CPU in millicores and memory in bytes; None if not set."""

    cpu: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A change that the Hvpa holds back: its direction (`out`, `in`, `up`, `down`), its subject (`pods`, `cpu`,
    `memory`), its reason (a gate's name) and, if time opens the gate, its end."""

    direction: str
    what: str
    reason: str
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the workload and its recommenders."""

    replicas: int
    ready: int
    requests: Resources
    limits: Resources
    hpa_desired: int | None = None
    """The HPA's desired replicas, once it has measured a metric."""
    vpa_target: Resources = Resources()
    held: tuple[Held, ...] = ()
    knows_usual: bool = False
    """Whether the Hvpa has a mean of the usual demand."""
    resized: str = ""
    """The number of pods with the desired size, and of all pods, if they are resized in place."""
    asked: int = 0
    """Millicores that all pods request together."""
    asked_memory: int = 0
    """Bytes that all pods request together."""
    restarts: int = 0
    """Restarts of containers."""


def snapshot(
    deployment: Json, hvpa: Json, hpa: Json | None, vpa: Json | None, pods: Sequence[Json] = ()
) -> Snapshot:
    """Read a snapshot from the objects; recommenders may be missing. Requests are those that the Hvpa has decided, else
    the template's."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    status: Json = hvpa.get("status", {})
    decided = (status.get("desired") or {}).get("containers") or [{}]
    requests = {**container["resources"].get("requests", {}), **decided[0].get("requests", {})}
    recommendation = (vpa or {}).get("status", {}).get("recommendation") or {}
    recommended = recommendation.get("containerRecommendations") or [{}]
    hpa_status = (hpa or {}).get("status", {})
    # A pod that found no room on the node (OutOfcpu) stays, and requests nothing.
    live = [pod for pod in pods if pod["status"].get("phase") not in ("Failed", "Succeeded")]
    has = [
        live_container["resources"].get("requests", {})
        for pod in live
        for live_container in pod["spec"]["containers"]
    ]
    containers = [
        container_status for pod in pods for container_status in pod["status"].get("containerStatuses") or ()
    ]
    return Snapshot(
        replicas=deployment["spec"]["replicas"],
        ready=deployment.get("status", {}).get("readyReplicas", 0),
        requests=resources(requests),
        limits=resources(container["resources"].get("limits", {})),
        hpa_desired=(hpa_status.get("desiredReplicas") or None) if hpa_status.get("currentMetrics") else None,
        vpa_target=resources(recommended[0].get("target", {})),
        held=tuple(map(_held, status.get("lastBlockedScaling", ()))),
        knows_usual=bool(status.get("axes", {}).get("vertical", {}).get("usualDemand")),
        resized=(status.get("actuation") or {}).get("resized", ""),
        asked=sum(resources(request).cpu or 0 for request in has),
        asked_memory=sum(resources(request).memory or 0 for request in has),
        restarts=sum(container_status.get("restartCount", 0) for container_status in containers),
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
"""Columns if pods are replaced for another size."""
IN_PLACE: Columns = (
    *_ALWAYS,
    ("cpu", 5),
    ("mem", 6),
    ("resized", 7),
    ("restarts", 8),
    ("asked", 6),
    ("HPA+VPA", 7),
)
"""Columns if running pods are resized."""
_SEPARATOR = "  "
# Short forms of the gates' names for a column; other names are short enough.
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
    """Time and load of a line: seconds since the load began to count, the wall clock, the total of the load, a pod's
    usage from it, and the total requests that an HPA with a VPA would have (millicores)."""

    elapsed: float
    now: dt.datetime
    load: float
    per_pod: float
    rival: float | None = None


def header(columns: Columns) -> str:
    """The names of the columns."""
    return join([*(name.rjust(width) for name, width in columns), "held back"])


def line(columns: Columns, load_state: LoadState, snapshot: Snapshot) -> str:
    """A line of the table."""
    cells = {
        "time": clock(load_state.elapsed),
        "load": cpu(load_state.load),
        "each": cpu(load_state.per_pod),
        "pods": f"{snapshot.ready}/{snapshot.replicas}",
        "cpu req/lim": f"{cpu(snapshot.requests.cpu)}/{cpu(snapshot.limits.cpu)}",
        "mem req/lim": f"{memory(snapshot.requests.memory)}/{memory(snapshot.limits.memory)}",
        "HPA": "-" if snapshot.hpa_desired is None else str(snapshot.hpa_desired),
        "VPA target": pair(snapshot.vpa_target),
        "cpu": cpu(snapshot.requests.cpu),
        "mem": memory(snapshot.requests.memory),
        "resized": snapshot.resized or "-",
        "restarts": str(snapshot.restarts),
        "asked": cpu(snapshot.asked),
        "HPA+VPA": cpu(load_state.rival),
    }
    padded = [cells[name].rjust(width) for name, width in columns]
    return join([*padded, held(snapshot.held, load_state.now)])


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
    """The changes that are held back, for how long, and why: `pods in 4s, cpu+mem down 12s (stabilization)`. Changes
    with the same reason form a group, and within it those with the same direction and time."""
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
    """The cells of a line, joined."""
    text = _SEPARATOR.join(cells).rstrip()
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
