"""`Trajectory`, vertical: each request goes all the way to its size on the path (DESIGN 5.4, 6). Requests that are near
to it, or whose change alone would be too small, go along when pods are replaced anyway, and never alone."""

from __future__ import annotations

import datetime as dt

from msgspec import structs

from hvpa.api.hvpa.status import Pending
from hvpa.core.axes.requests import RequestsAxis
from hvpa.core.axes.steps import RequestsResult, Step
from hvpa.core.gates.gates import MIN_CHANGE, Change, GateContext, Hold
from hvpa.core.model import ObservedState
from hvpa.core.path.path import Sizes
from hvpa.core.trajectory.solve import Joint
from hvpa.core.values.clock import after
from hvpa.core.values.tuning import HALF_LIFE
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource


def scale_to_sizes(
    seen: ObservedState, context: GateContext, joint: Joint, sizes: Sizes, is_held: bool
) -> RequestsResult:
    """Decide on the requests and limits, which should be `sizes`. `is_held`: these sizes make up for a count that is
    held."""
    items = [structs.replace(item, target=sizes[item.key]) for item in joint.items]
    axis = RequestsAxis(
        seen,
        context,
        (*items, *joint.apart),
        disruptive=not joint.in_place,
        on_path={item.key: item.target for item in joint.items},
    )
    return axis.result(_decided(axis, joint, is_held))


def _decided(axis: RequestsAxis, joint: Joint, is_held: bool) -> list[tuple[Step, Hold | None]]:
    """The changes that are wanted, and what holds each of them back. Where pods are replaced anyway, smaller changes go
    along."""
    near: list[Step] = []
    movers: list[Step] = []
    for item in axis.items:
        step = _step(axis, joint, item, is_held)
        if step is not None and (step.override or not joint.is_near(item.key, step.request)):
            movers.append(step)
        elif step is not None and _raised_at(axis, item) is None:
            near.append(_along(joint, step))
    found = [(step, axis.hold(step)) for step in movers]
    if joint.in_place or all(hold is not None for _, hold in found):
        return found
    along = [(step, axis.hold(step)) for step in [_along(joint, step) for step in movers]]
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
    """The change that is called for; None where there is none. CPU that only the present demand calls for, at the last
    count, waits where pods are replaced: a spike is over before all pods are larger. A lowering waits until it has been
    wanted for long enough, without interruption; of the sizes of the path in place, `Joint.kept_for` sees to that."""
    measured_at = None if joint.unknown is None else joint.unknown.until
    step = axis.step_to(item, item.blended(FULL), FULL, measured_at=measured_at)
    if step is None:
        return None
    change, raised_at = step.change, _raised_at(axis, item)
    if step.direction == "down" and raised_at is not None:
        until = change.kept_until or after(raised_at, HALF_LIFE)
        return structs.replace(step, change=structs.replace(change, kept_until=until))
    if joint.in_place and item.key in joint.current:
        return step
    if step.direction == "down":
        pending = axis.pending_since(item, "down")
        change = structs.replace(change, worth_at=_sustained_at(change, pending))
        return structs.replace(step, change=change, pending=pending)
    if step.pending is not None and not is_held and not joint.in_place and _is_short_rise(joint, step):
        change = structs.replace(change, worth_at=_sustained_at(change, step.pending))
    return structs.replace(step, change=change)


def _sustained_at(change: Change, pending: Pending) -> dt.datetime:
    """When a change has been wanted for as long as its rules ask for."""
    wait = change.rules.sustained
    assert wait is not None, "`Trajectory` has this wait for each change that is asked about"
    return after(pending.since, wait.duration)


def _is_short_rise(joint: Joint, step: Step) -> bool:
    """Whether a rise is one of CPU that only the present demand calls for."""
    item = step.item
    usual = joint.settled.sizes.get(item.key)
    return item.resource == "cpu" and not step.passes and usual is not None and usual <= item.current


def _raised_at(axis: RequestsAxis, item: ContainerResource) -> dt.datetime | None:
    """When memory was raised since it ran out, if that was lately: until the recommender has forgotten half of what
    was before, it is not taken back."""
    before = axis.record.overrides.get(item.container)
    if item.resource != "memory" or before is None or item.target >= item.current:
        return None
    return None if axis.clock.held_until(before.time, HALF_LIFE) is None else before.time


def _along(joint: Joint, step: Step) -> Step:
    """The step where pods are replaced anyway: it need not be worth that, nor large. But what follows the VPA alone is
    lowered only when it has been wanted for long enough."""
    if step.direction == "down" and step.item.key not in joint.current:
        return step
    return structs.replace(
        step, change=structs.replace(step.change, worth_at=None), passes=step.passes | {MIN_CHANGE}
    )
