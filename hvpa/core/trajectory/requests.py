"""`Trajectory`, vertical: each request goes all the way to its size on the path (DESIGN 5.4, 6). Requests that are near
to it, or whose change alone would be too small, go along when pods are replaced anyway, and never alone."""

from __future__ import annotations

import datetime as dt
from typing import Final

from msgspec import structs

from hvpa.api.values.quantity import Resource
from hvpa.core.axes.requests import DEFAULT_MIN_CHANGE, OnPath, RequestsAxis
from hvpa.core.axes.steps import RequestsResult, Step
from hvpa.core.gates.gates import MIN_CHANGE, GateContext, Hold
from hvpa.core.model import ObservedState
from hvpa.core.path.path import Sizes
from hvpa.core.trajectory.means import HALF_LIFE
from hvpa.core.trajectory.solve import Joint
from hvpa.core.values.clock import after
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource

NOT_WORTH_REPLACING: Final = dt.timedelta(minutes=5)
"""A count that is held for no longer than this is waited for: to replace all pods takes as long."""
SHRINKS_AFTER: Final = dt.timedelta(hours=6)
"""How long after a vertical step requests are lowered at the earliest, where `stabilizationDuration` is not set: larger
pods cost little, since there are fewer of them, and the next spike would have all of them replaced again. Without it
there were 545 restarts instead of 125 at the same cost (decision 0014)."""
_NO_MIN_CHANGE: Final[dict[Resource, int]] = {"cpu": 0, "memory": 0}


def scale_to_sizes(
    seen: ObservedState, context: GateContext, joint: Joint, sizes: Sizes, is_held: bool
) -> RequestsResult:
    """Decide on the requests and limits, which should be `sizes`. `is_held`: these sizes make up for a count that is
    held."""
    items = [structs.replace(item, target=sizes[item.key]) for item in joint.items]
    # Where no pod is replaced, the overlap of the path is enough of a minimum.
    least = _NO_MIN_CHANGE if joint.in_place else DEFAULT_MIN_CHANGE
    axis = RequestsAxis(
        seen,
        context,
        (*items, *joint.apart),
        disruptive=not joint.in_place,
        default_min_change=least,
        on_path=OnPath({item.key: item.target for item in joint.items}, joint.measured_keys),
    )
    return axis.result(_decided(axis, joint, is_held))


def _decided(axis: RequestsAxis, joint: Joint, is_held: bool) -> list[tuple[Step, Hold | None]]:
    """The changes that are wanted, and what holds each of them back."""
    near: list[Step] = []
    movers: list[Step] = []
    for item in axis.items:
        step = _step(axis, joint, item, is_held)
        if step is not None and (step.override or not joint.is_near(item.key, step.request)):
            movers.append(step)
        elif step is not None and _raised_at(axis, item) is None:
            near.append(_along(step, None))
    found = [(step, axis.hold(step)) for step in movers]
    if all(hold is not None for _, hold in found):
        return found
    along = [(step, axis.hold(step)) for step in [_along(step, step.change.wait) for step in movers]]
    return along + [(step, None) for step in near if axis.hold(step) is None]


def _step(axis: RequestsAxis, joint: Joint, item: ContainerResource, is_held: bool) -> Step | None:
    """The change that is wanted of one container resource; None where there is none. Memory that ran out is raised for
    that, unless what is measured takes more and nothing holds it."""
    raised, step = axis.raise_now(item), _usual_step(axis, joint, item, is_held)
    if raised is None:
        return step
    if step is None or step.request <= raised.request or axis.hold(step) is not None:
        return raised
    return structs.replace(step, override=True)


def _usual_step(axis: RequestsAxis, joint: Joint, item: ContainerResource, is_held: bool) -> Step | None:
    """The change that the path calls for; None where there is none. Where pods are replaced, requests
    are not lowered soon after a step, and CPU that only the present demand calls for, at the last count, waits: a spike
    is over before all pods are larger."""
    measured_at = None if joint.unknown is None else joint.unknown.until
    step = axis.step_to(item, item.blended(FULL), FULL, measured_at=measured_at)
    if step is None or joint.in_place:
        return step
    change, raised_at = step.change, _raised_at(axis, item)
    if step.direction == "down" and raised_at is not None:
        until = change.kept_until or after(raised_at, HALF_LIFE)
        change = structs.replace(change, kept_until=until)
    elif step.direction == "down":
        wait = axis.spec.scale_down.stabilization_duration or SHRINKS_AFTER
        change = structs.replace(change, wait=wait)
    elif step.pending is not None and not is_held and _is_short_rise(joint, step):
        change = structs.replace(change, worth_at=after(step.pending.since, NOT_WORTH_REPLACING))
    return structs.replace(step, change=change)


def _is_short_rise(joint: Joint, step: Step) -> bool:
    """Whether a rise is one of CPU that only the present demand calls for."""
    item = step.item
    return item.resource == "cpu" and not step.passes and joint.settled.sizes[item.key] <= item.current


def _raised_at(axis: RequestsAxis, item: ContainerResource) -> dt.datetime | None:
    """When memory was raised since it ran out, if that was lately: until the recommender has forgotten half of what
    was before, it is not taken back."""
    before = axis.record.overrides.get(item.container)
    if item.resource != "memory" or before is None or item.target >= item.current:
        return None
    return None if axis.clock.held_until(before.time, HALF_LIFE) is None else before.time


def _along(step: Step, wait: dt.timedelta | None) -> Step:
    """The step where pods are replaced anyway: it need not be worth that, nor large."""
    change = structs.replace(step.change, wait=wait, worth_at=None)
    return structs.replace(step, change=change, passes=step.passes | {MIN_CHANGE})
