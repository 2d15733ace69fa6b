"""What the table shows, taken from the objects of the cluster. Pure: objects as JSON in, one frozen snapshot
out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
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


def snapshot(deployment: Json, hvpa: Json, hpa: Json | None, vpa: Json | None) -> Snapshot:
    """Read a snapshot off the four objects; recommenders may not be there yet."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    return Snapshot(
        replicas=deployment["spec"]["replicas"],
        ready=deployment.get("status", {}).get("readyReplicas", 0),
        requests=resources(container["resources"].get("requests", {})),
        limits=resources(container["resources"].get("limits", {})),
        hpa_wish=_wish(hpa or {}),
        vpa_target=_target(vpa or {}),
        held=tuple(_held(entry) for entry in hvpa.get("status", {}).get("lastBlockedScaling", ())),
        knows_usual=bool(_vertical(hvpa).get("usualDemand")),
    )


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
