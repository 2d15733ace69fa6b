"""Steps of the vertical axis as values: a wanted change of one container resource, what becomes of all of them, and
their words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import msgspec

from hvpa.api.hvpa.status import Pending, VerticalAxis
from hvpa.api.values.quantity import readable_change, readable_resource
from hvpa.core.gates.gates import Change, Hold
from hvpa.core.model import Blocked, Direction, ResourceRequirements
from hvpa.core.values.weight import percent
from hvpa.core.workload.containers import ContainerResource


class Step(msgspec.Struct, frozen=True, gc=False):
    """A change of one container resource that is wanted: the request, the weight it was blended with, and how its gates
    see it."""

    item: ContainerResource
    request: int
    weight_ppm: int
    change: Change
    passes: frozenset[str] = frozenset()
    override: bool = False
    pending: Pending | None = None
    moved_from: int | None = None
    """The target that the present request was blended from, where the request moves with its target from there."""

    @property
    def direction(self) -> Direction:
        """Which way the request goes."""
        return "up" if self.request > self.item.current else "down"


class RequestsResult(msgspec.Struct, frozen=True, gc=False):
    """What becomes of the resources: `containers` is set now, `recommended` would be if nothing were blocked, `changed`
    names the containers that this decision changes, `young_until` until when the VPA's history is too young
    for a request that would be lowered, `without_request` what was reckoned from a missing request."""

    containers: Mapping[str, ResourceRequirements]
    recommended: Mapping[str, ResourceRequirements]
    changed: frozenset[str]
    directions: tuple[Direction, ...]
    axis: VerticalAxis
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    young_until: dt.datetime | None = None
    without_request: tuple[str, ...] = ()


def blocked(step: Step, hold: Hold) -> Blocked:
    """A step that is held back, as it is told."""
    item = step.item
    return Blocked(
        "vertical",
        step.direction,
        hold.reason,
        item.current,
        step.request,
        container=item.container,
        resource=item.resource,
        until=hold.until,
    )


def bound(item: ContainerResource, request: int) -> str:
    """Which bound a request is at, in words; nothing where it is inside."""
    bounds = item.bounds
    for value, name in (
        (bounds.fixed_limit, "the most that limits and the pod's own resources leave"),
        (bounds.upper, "maxAllowed"),
        (bounds.lower, "minAllowed"),
    ):
        if request == value:
            return f", which is {name}"
    return ""


def note(step: Step, hold: Hold | None) -> str:
    """The step in words."""
    item = step.item
    now, wanted = readable_change(item.resource, item.current, step.request)
    target = readable_resource(item.resource, item.target)
    text = f"{item.container} {item.resource}: {now} now, {target} recommended, {wanted}"
    if step.override:
        text += ", raised because it ran out of memory"
    elif step.moved_from is None:
        text += f" at weight {percent(step.weight_ppm)}"
    else:
        before, shown = readable_resource(item.resource, step.moved_from), percent(step.weight_ppm)
        text += f" at weight {shown}: {now} was set when {before} was recommended, so "
        text += f"{now} + ({target} - {before}) × {shown} %"
    text += bound(item, step.request)
    return text if hold is None else f"{text}, held back by {hold.told()}"
