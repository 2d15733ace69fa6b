"""What the table shows, taken from the objects of the cluster. Pure: objects as JSON in, one frozen snapshot
out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
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
    `memory`), why (a gate's name) and until when, where a clock tells."""

    direction: str
    what: str
    reason: str
    until: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the workload and its recommenders."""

    replicas: int
    ready: int
    requests: Resources
    limits: Resources
    hpa_wish: int | None = None
    vpa_target: Resources = Resources()
    held: tuple[Held, ...] = ()
    knows_usual: bool = False
    """Whether the Hvpa has a mean of the demand that is usual."""
    resized: str = ""
    """How many pods have the desired size, of how many, where they are resized in place."""
    asked: int = 0
    """Millicores that all pods request together."""
    restarts: int = 0
    """Restarts of containers."""


def snapshot(
    deployment: Json, hvpa: Json, hpa: Json | None, vpa: Json | None, pods: Sequence[Json] = ()
) -> Snapshot:
    """Read a snapshot off the objects; recommenders may not be there yet. Requests are those that the Hvpa has decided,
    else the template's."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    status = hvpa.get("status", {})
    decided = (status.get("desired") or {}).get("containers") or [{}]
    requests = {**container["resources"].get("requests", {}), **decided[0].get("requests", {})}
    return Snapshot(
        replicas=deployment["spec"]["replicas"],
        ready=deployment.get("status", {}).get("readyReplicas", 0),
        requests=resources(requests),
        limits=resources(container["resources"].get("limits", {})),
        hpa_wish=_wish(hpa or {}),
        vpa_target=_target(vpa or {}),
        held=tuple(_held(entry) for entry in status.get("lastBlockedScaling", ())),
        knows_usual=bool(_vertical(hvpa).get("usualDemand")),
        resized=(status.get("actuation") or {}).get("resized", ""),
        asked=sum(_cpu(pod) for pod in pods),
        restarts=sum(
            one.get("restartCount", 0) for pod in pods for one in pod["status"].get("containerStatuses") or ()
        ),
    )


def _cpu(pod: Json) -> int:
    """Millicores that a pod requests."""
    found = [resources(one["resources"].get("requests", {})).cpu for one in pod["spec"]["containers"]]
    return sum(one for one in found if one is not None)


def _vertical(hvpa: Json) -> Json:
    found: Json = hvpa.get("status", {}).get("axes", {}).get("vertical", {})
    return found


def resources(quantities: Json) -> Resources:
    """A resource list as numbers."""
    cpu, memory = quantities.get("cpu"), quantities.get("memory")
    return Resources(
        None if cpu is None else parse_cpu(cpu),
        None if memory is None else parse_memory(memory),
    )


def _wish(hpa: Json) -> int | None:
    """What the HPA wants, once it has measured something."""
    status = hpa.get("status", {})
    if not status.get("currentMetrics"):
        return None
    wish = status.get("desiredReplicas")
    return int(wish) if wish else None


def _target(vpa: Json) -> Resources:
    recommendation = vpa.get("status", {}).get("recommendation") or {}
    containers = recommendation.get("containerRecommendations") or [{}]
    return resources(containers[0].get("target", {}))


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
