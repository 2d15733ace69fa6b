"""`Trajectory`, vertical: each request goes all the way to its size on the path (DESIGN 5.4, 6). Requests that are
close to it, or whose change is too small by itself, change only when pods are replaced anyway."""

from __future__ import annotations

import datetime as dt

from msgspec import structs

from hvpa.api.hvpa.status import Pending
from hvpa.core.axes.requests import RequestsAxis
from hvpa.core.axes.steps import RequestsResult, ResourceStep
from hvpa.core.gates.gates import MIN_CHANGE, Change, GateContext, Hold
from hvpa.core.model import ScalableState
from hvpa.core.path.path import Sizes
from hvpa.core.trajectory.solve import Joint
from hvpa.core.values.clock import after
from hvpa.core.values.tuning import HALF_LIFE
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource


def scale_to_sizes(
    observation: ScalableState, context: GateContext, joint: Joint, sizes: Sizes, is_held: bool
) -> RequestsResult:
    """Decide the requests and limits for these `sizes`. `is_held`: the sizes make up for replicas that are held
    back."""
    items = [structs.replace(item, target=sizes[item.key]) for item in joint.items]
    axis = RequestsAxis(
        observation,
        context,
        (*items, *joint.apart),
        weightless=joint.requests.horizontal,
        on_path={item.key: item.target for item in joint.items},
        saturated=joint.saturated,
    )
    return axis.result(_decided(axis, joint, is_held))


def _decided(axis: RequestsAxis, joint: Joint, is_held: bool) -> list[tuple[ResourceStep, Hold | None]]:
    """Return the wanted changes, and the gate that holds each of them back. If pods are replaced anyway, smaller
    changes are included."""
    near: list[ResourceStep] = []
    movers: list[ResourceStep] = []
    for item in axis.items:
        step = _step(axis, joint, item, is_held)
        if step is not None and (step.is_never_near or not joint.is_near(item.key, step.request)):
            movers.append(step)
        elif step is not None and _raised_at(axis, item) is None:
            near.append(_along(joint, step))
    steps_and_holds = [(step, axis.hold(step)) for step in movers]
    if joint.in_place or all(hold is not None for _, hold in steps_and_holds):
        return steps_and_holds
    along = [(step, axis.hold(step)) for step in [_along(joint, step) for step in movers]]
    return along + [(step, None) for step in near if axis.hold(step) is None]


def _step(axis: RequestsAxis, joint: Joint, item: ContainerResource, is_held: bool) -> ResourceStep | None:
    """Return the change of a container resource; None if it stays. Memory is raised after it ran out, unless measured
    demand needs a larger raise and no gate holds that back."""
    raised, step = axis.raise_now(item), _usual_step(axis, joint, item, is_held)
    if raised is None:
        return axis.with_fast(item, step)
    if step is None or step.request <= raised.request or axis.hold(step) is not None:
        return raised
    return structs.replace(step, override=True)


def _usual_step(
    axis: RequestsAxis, joint: Joint, item: ContainerResource, is_held: bool
) -> ResourceStep | None:
    """Return the change that follows from demand; None if there is none.

    If pods are replaced, a CPU raise that only the present demand needs, at the path's last count, waits: a short spike
    ends before all pods are larger. A lower request waits until it has been wanted long enough without interruption.
    For sizes on the path in place, `Joint.recent` has this effect. CPU that no metric measures and that the fast signal
    has raised returns when pods need the raise no more.
    """
    if joint.in_place and item.resource == "cpu" and item.key not in joint.current:
        before = axis.before_fast(item)
        if before is not None:
            return axis.without_raise(item, before, (item.blended(FULL), FULL, None))
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
    """Return when a change will have been wanted for as long as its rules require."""
    wait = change.rules.sustained
    assert wait is not None, "`Trajectory` has this wait for each change that is asked about"
    return after(pending.since, wait.duration)


def _is_short_rise(joint: Joint, step: ResourceStep) -> bool:
    """Return whether a change raises CPU that only the present demand needs."""
    item = step.item
    usual = joint.settled.sizes.get(item.key)
    return item.resource == "cpu" and not step.passes and usual is not None and usual <= item.current


def _raised_at(axis: RequestsAxis, item: ContainerResource) -> dt.datetime | None:
    """Return when memory was last raised after it ran out (or by the fast signal, before it did), if that was less than
    a half-life ago. Until the recommender has forgotten half of the samples from before, HVPA does not lower it
    again."""
    if item.resource != "memory" or item.target >= item.current:
        return None
    override = axis.record.overrides.get(item.container)
    times = [] if override is None else [override.time]
    times += [
        raised.time
        for raised in axis.observation.vertical.fast_raises
        if (raised.container, raised.resource, raised.request) == (*item.key, item.current)
    ]
    recent = [time for time in times if axis.clock.held_until(time, HALF_LIFE) is not None]
    return max(recent, default=None)


def _along(joint: Joint, step: ResourceStep) -> ResourceStep:
    """Return the step if pods are replaced anyway: it need not last, nor be large. A size that only the VPA sets is
    still lowered only after it has been wanted long enough."""
    if step.direction == "down" and step.item.key not in joint.current:
        return step
    return structs.replace(
        step, change=structs.replace(step.change, worth_at=None), passes=step.passes | {MIN_CHANGE}
    )
