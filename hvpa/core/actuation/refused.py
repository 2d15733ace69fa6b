"""What the API server has just refused to change of a workload, as an observation (docs/decisions/0019): decided again
with it, the refused change is held back, and whatever else is wanted goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import structs

from hvpa.api.hvpa.status import (
    DesiredSize,
    HpaScalingStatus,
    HvpaStatus,
    LastScaling,
    Refusal,
    RefusedChange,
)
from hvpa.api.values import text
from hvpa.api.values.quantity import RESOURCES
from hvpa.core.actuation.desired import as_desired, sizes_of
from hvpa.core.gates.backoff import HOUR, key_of, refusal_wait, refused_until
from hvpa.core.gates.gates import REFUSED
from hvpa.core.model import (
    Axis,
    Blocked,
    Decision,
    Direction,
    Observation,
    ObservedState,
    ResourceRequirements,
)
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import present_resources, request_now


def with_refusal(seen: Observation, decision: Decision, axis: Axis, message: str) -> Observation:
    """The observation with the record of what the API server has just refused: what the patch of `decision` changes on
    this axis. Decided again, that is held back, and whatever else is wanted goes on. The record stands in the status
    alone: the workload's annotation names only what was written. What is refused two hours after the last time is
    refused for the first time again; of a message (webhooks can answer with whole pages) 1024 characters are kept."""
    if axis == "horizontal":
        changes: tuple[RefusedChange, ...] = (_replicas(seen, decision),)
        seen = _without_pending(seen)
    else:
        changes = tuple(_requests(seen, decision))
    own = seen.horizontal if axis == "horizontal" else seen.vertical
    record, count = own.refused, 1
    if record is not None and seen.now - record.time < 2 * HOUR:
        count = record.count + 1
        keys = {key_of(one) for one in changes}
        if seen.now < record.time + refusal_wait(record.count):
            changes += tuple(one for one in record.changes if key_of(one) not in keys)
    found = Refusal(count=count, time=seen.now, message=text.one_line(message, 1024), changes=changes)
    return structs.replace(seen, **{axis: own.model_copy(update={"refused": found})})


def _replicas(seen: Observation, decision: Decision) -> RefusedChange:
    """The count that the decision sets, from the one that the workload has."""
    assert seen.target is not None and decision.replicas is not None
    return RefusedChange(current=seen.target.spec.replicas, wanted=decision.replicas.target)


def _requests(seen: Observation, decision: Decision) -> Iterator[RefusedChange]:
    """The requests that the decision changes of the pod template."""
    assert seen.target is not None
    wanted: Mapping[str, ResourceRequirements] = decision.containers
    if decision.status.desired is not None:
        wanted = sizes_of(decision.status.desired.containers)
    for name, before in present_resources(seen.target.spec.template.spec.containers).items():
        for resource in RESOURCES:
            now = request_now(before, ResourceKey(name, resource), seen.pods)
            then = wanted[name].requests.get(resource, now) if name in wanted else now
            if then != now:
                yield RefusedChange(container=name, resource=resource, current=now, wanted=then)


def _without_pending(seen: Observation) -> Observation:
    """The observation without replicas that an earlier decision left to be written (in place, the status has them
    first): nothing has come of that step."""
    status, target = seen.status, seen.target
    desired, axis = status.desired, seen.horizontal
    assert target is not None and seen.workload is not None
    current = target.spec.replicas
    if desired is None or seen.workload.spec.replicas == current:
        return seen
    back = desired.model_copy(update={"replicas": current})
    if axis.applied_from is not None and axis.applied_from.replicas == desired.replicas:
        axis = axis.model_copy(update={"applied_from": None})
    status = status.model_copy(update={"desired": back, "last_scaling": _without_step(status, current)})
    return structs.replace(seen, status=status, workload=as_desired(target, back), horizontal=axis)


def _without_step(status: HvpaStatus, current: int) -> LastScaling | None:
    """What the status says of the last step, without a step from the `current` replicas, which was not taken."""
    last, desired = status.last_scaling, status.desired
    assert desired is not None
    step = HpaScalingStatus(current_replicas=current, desired_replicas=desired.replicas)
    if last is None or last.hpa_status != step:
        return last
    return None if last.vpa_status is None else last.model_copy(update={"hpa_status": None})


# --- a pod template that was refused, for pods that can't be resized -------------------------------------------------
def template_refusals(clock: Clock, seen: ObservedState, size: DesiredSize) -> tuple[Blocked, ...]:
    """The requests of the desired size that the pod template is not sent now, since the API server refused them."""
    target, record, found = seen.target, seen.vertical.refused, []
    assert target is not None
    template = present_resources(target.spec.template.spec.containers)
    for name, one in sizes_of(size.containers).items() if record is not None else ():
        for resource, wanted in one.requests.items() if name in template else ():
            key = ResourceKey(name, resource)
            now = request_now(template[name], key, seen.pods)
            if (until := refused_until(record, clock, now, wanted, key)) is not None:
                direction: Direction = "up" if wanted > now else "down"
                found.append(Blocked("vertical", direction, REFUSED, now, wanted, name, resource, until))
    return tuple(found)
