"""What the API server has just refused to change of a workload, as an observation (docs/decisions/0019): decided again
with it, the refused change is held back, and whatever else is wanted goes on."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from hvpa.api.hvpa.status import DesiredSize, HpaScalingStatus, Refusal, RefusedChange
from hvpa.api.values import text
from hvpa.api.values.quantity import RESOURCES
from hvpa.core.actuation.desired import Sizes, as_desired, sizes_of
from hvpa.core.gates.backoff import HOUR, key_of, refusal_wait, refused_until
from hvpa.core.gates.gates import REFUSED
from hvpa.core.model import Axis, Blocked, Decision, Direction, Observation, ObservedState
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from hvpa.core.workload.containers import present_resources, request_now


def with_refusal(seen: Observation, decision: Decision, axis: Axis, message: str) -> Observation:
    """The observation with the record of what the API server has just refused: what the patch of `decision` changes on
    this axis. Decided again, that is held back, and whatever else is wanted goes on. The record stands in the status
    alone: the workload's annotation names only what was written. What is refused two hours after the last time is
    refused for the first time again; of a message (webhooks can answer with whole pages) 1024 characters are kept."""
    if axis == "horizontal":
        assert seen.target is not None and decision.replicas is not None
        current, wanted = seen.target.spec.replicas, decision.replicas.target
        changes: tuple[RefusedChange, ...] = (RefusedChange(current=current, wanted=wanted),)
        seen = _without_pending(seen)
    else:
        size = decision.status.desired
        sizes = decision.containers if size is None else sizes_of(size.containers)
        changes = tuple(
            RefusedChange(container=key.container, resource=key.resource, current=now, wanted=wanted)
            for key, now, wanted in _requests(seen, sizes)
        )
    own = seen.horizontal if axis == "horizontal" else seen.vertical
    record, count = own.refused, 1
    if record is not None and seen.now - record.time < 2 * HOUR:
        count = record.count + 1
        keys = {key_of(one) for one in changes}
        if seen.now < record.time + refusal_wait(record.count):
            changes += tuple(one for one in record.changes if key_of(one) not in keys)
    found = Refusal(count=count, time=seen.now, message=text.one_line(message, 1024), changes=changes)
    return structs.replace(seen, **{axis: own.model_copy(update={"refused": found})})


def _requests(seen: ObservedState, sizes: Sizes) -> Iterator[tuple[ResourceKey, int, int]]:
    """The requests of the pod template that these sizes change: as they are, and as they are wanted."""
    assert seen.target is not None
    for name, before in present_resources(seen.target.spec.template.spec.containers).items():
        for resource in RESOURCES if name in sizes else ():
            key = ResourceKey(name, resource)
            now = request_now(before, key, seen.pods)
            wanted = sizes[name].requests.get(resource, now)
            if wanted != now:
                yield key, now, wanted


def _without_pending(seen: Observation) -> Observation:
    """The observation without replicas that an earlier decision left to be written (in place, the status has them
    first): nothing has come of that step."""
    status, target = seen.status, seen.target
    desired, axis, last = status.desired, seen.horizontal, status.last_scaling
    assert target is not None and seen.workload is not None
    current = target.spec.replicas
    if desired is None or seen.workload.spec.replicas == current:
        return seen
    back = desired.model_copy(update={"replicas": current})
    if axis.applied_from is not None and axis.applied_from.replicas == desired.replicas:
        axis = axis.model_copy(update={"applied_from": None})
    step = HpaScalingStatus(current_replicas=current, desired_replicas=desired.replicas)
    if last is not None and last.hpa_status == step:
        last = None if last.vpa_status is None else last.model_copy(update={"hpa_status": None})
    status = status.model_copy(update={"desired": back, "last_scaling": last})
    return structs.replace(seen, status=status, workload=as_desired(target, back), horizontal=axis)


# --- a pod template that was refused, for pods that can't be resized -------------------------------------------------
def template_refusals(clock: Clock, seen: ObservedState, size: DesiredSize) -> tuple[Blocked, ...]:
    """The requests of the desired size that the pod template is not sent now, since the API server refused them."""
    found = []
    for key, now, wanted in _requests(seen, sizes_of(size.containers)):
        if (until := refused_until(seen.vertical.refused, clock, now, wanted, key)) is not None:
            direction: Direction = "up" if wanted > now else "down"
            found.append(Blocked("vertical", direction, REFUSED, now, wanted, *key, until))
    return tuple(found)
