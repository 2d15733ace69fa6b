"""The results of both axes before they are put into words, and phrases that several reports share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from hvpa.api.hvpa.status import (
    DesiredSize,
    ForecastRecord,
    HeldRollout,
    HorizontalAxis,
    HvpaStatus,
    RolledBack,
    VerticalAxis,
)
from hvpa.api.values.quantity import Resource, readable_change, readable_resource
from hvpa.api.values.timestamp import readable_timestamp
from hvpa.core.actuation.pods import Resizing
from hvpa.core.actuation.rollouts import RolloutStep
from hvpa.core.model import Axis, Blocked, Direction, JointView, ResourceRequirements
from hvpa.core.recommenders.desired_replicas import DesiredReplicas
from hvpa.core.values.lately import Demands
from hvpa.core.values.weight import Weight

CORE: Final = 1000
"""Millicores per core."""


class DecisionParts(msgspec.Struct, frozen=True, gc=False):
    """The results of both axes before they are put into words. All fields are empty if HVPA could decide nothing."""

    desired: DesiredReplicas = DesiredReplicas(None)
    weight: Weight | None = None
    target: int = 0
    recommended_replicas: int = 0
    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    recommended: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    horizontal: HorizontalAxis | None = None
    vertical: VerticalAxis | None = None
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    applied: tuple[tuple[Axis, Direction], ...] = ()
    scaled_to_zero: bool = False
    young_until: dt.datetime | None = None
    lost_until: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    """Containers whose recommendations have lost their history, and until when nothing is lowered for that reason."""
    without_request: tuple[str, ...] = ()
    joint: JointView | None = None
    called_for: Demands | None = None
    desired_size: DesiredSize | None = None
    """The decided size, kept in the status if pods are resized in place."""
    rolled_back: RolledBack | None = None
    """The size that this decision rolls back."""
    resizing: Resizing | None = None
    """Progress of the pods if they are resized in place."""
    falls_back: bool = False
    """Whether the pod template gets the desired size, for pods that can't be resized in place."""
    rollout: RolloutStep = RolloutStep()
    """The next step of the rollout that the operator began."""
    upper: int | None = None
    """maxReplicas, if there is an HPA."""
    needed: int | None = None
    """The replicas that the demand needs, whatever the present count (None: unknown). For `spec.forecast` only."""
    forecast: ForecastRecord | None = None
    """The forecast's record in the status."""


def blocked_text(entry: Blocked) -> str:
    """Return a blocked change in words."""
    what = "replicas" if entry.container is None else f"{entry.container} {entry.resource}"
    until = "" if entry.until is None else f" until {readable_timestamp(entry.until)}"
    return f"{what} {' -> '.join(change(entry))} held by {entry.reason}{until}"


def rollout_text(held: HeldRollout) -> str:
    """Return the reason that holds a rollout, in words."""
    until = "" if held.until is None else f" until {readable_timestamp(held.until)}"
    return f"rollout held by {held.reason}{until}: {held.message}"


def newly_blocked(before: HvpaStatus, blocked: Iterable[Blocked]) -> list[Blocked]:
    """Return the changes that are blocked and were not in the previous status."""
    known = {
        (entry.axis, entry.direction, entry.container, entry.resource, entry.reason)
        for entry in before.last_blocked_scaling
    }
    return [
        entry
        for entry in blocked
        if (entry.axis, entry.direction, entry.container, entry.resource, entry.reason) not in known
    ]


def change(entry: Blocked) -> tuple[str, str]:
    """Return a blocked change's two values for people: from and to."""
    if entry.resource is None:
        return str(entry.current), str(entry.wanted)
    return readable_change(entry.resource, entry.current, entry.wanted)


def with_unit(resource: Resource, amount: int) -> str:
    """Return an amount for a sentence: whole cores with their unit (`1 core`, `13 cores`), all others as quantities,
    which include it (`1500m`, `2Gi`)."""
    shown = readable_resource(resource, amount)
    if resource == "memory" or shown.endswith("m"):
        return shown
    return f"{shown} core" if amount == CORE else f"{shown} cores"
