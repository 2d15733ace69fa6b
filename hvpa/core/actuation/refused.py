"""Adds changes that the API server has just refused to the observation (docs/decisions/0019). The next decision holds
the refused change back and makes all other changes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.hvpa.status import HpaScalingStatus, Refusal, RefusedChange
from hvpa.api.values import text
from hvpa.api.values.quantity import RESOURCES
from hvpa.core.actuation.desired import ContainerSizes, as_desired, sizes_of
from hvpa.core.gates.backoff import refusal_wait, refused_key, refused_until
from hvpa.core.gates.gates import REFUSED
from hvpa.core.model import (
    Axis,
    Blocked,
    Decision,
    Direction,
    ScalableObservation,
    ScalableState,
)
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import CONTESTED_WITHIN
from hvpa.core.workload.containers import present_resources, request_now


def with_refusal(
    observation: ScalableObservation, decision: Decision, axis: Axis, message: str
) -> ScalableObservation:
    """Returns the observation with a record of the refused change: the part of the patch of `decision` on this axis.

    Only the status holds the record: the workload's annotation names only written changes. A refusal more than two
    hours after the last one counts as the first again. HVPA keeps 1024 characters of the message, because webhooks can
    answer with whole pages.
    """
    size = decision.status.desired
    if axis == "horizontal":
        assert decision.replicas is not None
        # `hvpa undo` writes other replicas than the axis has decided.
        wanted = decision.replicas.target if size is None else size.replicas
        current = observation.target.spec.replicas
        changes: tuple[RefusedChange, ...] = (RefusedChange(current=current, wanted=wanted),)
        observation = _without_pending_replicas(observation)
    else:
        sizes = decision.containers if size is None else sizes_of(size.containers)
        changes = tuple(
            RefusedChange(container=key.container, resource=key.resource, current=now, wanted=wanted)
            for key, now, wanted in _changed_requests(observation, sizes)
        )
    axis_state = observation.horizontal if axis == "horizontal" else observation.vertical
    record, count = axis_state.refused, 1
    if record is not None and observation.now - record.time < 2 * CONTESTED_WITHIN:
        count = record.count + 1
        keys = {refused_key(change) for change in changes}
        if observation.now < record.time + refusal_wait(record.count):
            changes += tuple(change for change in record.changes if refused_key(change) not in keys)
    refusal = Refusal(
        count=count, time=observation.now, message=text.one_line(message, 1024), changes=changes
    )
    return structs.replace(observation, **{axis: axis_state.model_copy(update={"refused": refusal})})


def _changed_requests(
    observation: ScalableState, sizes: ContainerSizes
) -> Iterator[tuple[ResourceKey, int, int]]:
    """Yields the requests of the pod template that these sizes change: key, current value and wanted value."""
    for name, before in present_resources(observation.target.spec.template.spec.containers).items():
        for resource in RESOURCES if name in sizes else ():
            key = ResourceKey(name, resource)
            now = request_now(before, key, observation.pods)
            wanted = sizes[name].requests.get(resource, now)
            if wanted != now:
                yield key, now, wanted


def _without_pending_replicas(observation: ScalableObservation) -> ScalableObservation:
    """Returns the observation without replicas that an earlier decision stored in `status.desired` and that were not
    written: that step had no effect."""
    status, target = observation.status, observation.target
    desired, axis, last = status.desired, observation.horizontal, status.last_scaling
    current = target.spec.replicas
    if desired is None or observation.workload.spec.replicas == current:
        return observation
    restored = desired.model_copy(update={"replicas": current})
    if axis.applied_from is not None and axis.applied_from.replicas == desired.replicas:
        axis = axis.model_copy(update={"applied_from": None})
    step = HpaScalingStatus(current_replicas=current, desired_replicas=desired.replicas)
    if last is not None and last.hpa_status == step:
        last = None if last.vpa_status is None else last.model_copy(update={"hpa_status": None})
    status = status.model_copy(update={"desired": restored, "last_scaling": last})
    return structs.replace(observation, status=status, workload=as_desired(target, restored), horizontal=axis)


# --- a pod template that was refused, for pods that can't be resized -------------------------------------------------
def template_refusals(clock: Clock, observation: ScalableState, size: DesiredSize) -> tuple[Blocked, ...]:
    """Returns the requests of the desired size that HVPA does not send to the pod template now because the API server
    refused them."""
    blocked = []
    for key, now, wanted in _changed_requests(observation, sizes_of(size.containers)):
        if (until := refused_until(observation.vertical.refused, clock, now, wanted, key)) is not None:
            direction: Direction = "up" if wanted > now else "down"
            blocked.append(Blocked("vertical", direction, REFUSED, now, wanted, *key, until))
    return tuple(blocked)
