"""Whether the pods have the decided size, for the condition `Ready` (docs/decisions/0061).

This module covers sizes that pods do not have yet, and why they won't get them by themselves.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Workload
from hvpa.core.model import Finding, ScalableState
from hvpa.core.report.parts import DecisionParts
from hvpa.core.values.clock import Clock
from hvpa.core.workload.governed import recommended
from hvpa.core.workload.own_rollout import keeps_pods
from hvpa.core.workload.rollout import last_change_is_past, rollout_complete

NOT_REPLACED: Final = "PodsNotReplaced"
"""Pods have another size than the template, and nothing replaces them."""
PAUSED: Final = "DeploymentPaused"
"""The same for a paused Deployment."""


class Sized(NamedTuple):
    """Number of pods with the decided size, and number of all pods."""

    right: int
    total: int


def not_replaced(observation: ScalableState, clock: Clock, decided: DecisionParts) -> Finding | None:
    """Return why pods keep another size than the template's; None if they have it or are being replaced."""
    workload, sized = observation.workload, _sized(observation, decided)
    assert workload is not None
    if sized is None or decided.rollout.held is not None:
        return None
    text = f"{sized.right} of {sized.total} pods have the size of the pod template of {_name(workload)}"
    if why := keeps_pods(workload):
        reason = PAUSED if workload.spec.paused else NOT_REPLACED
        return Finding(reason, f"{text}: {why}")
    if not decided.axes.changed and rollout_complete(workload) and last_change_is_past(observation, clock):
        why = "although all pods are replaced: a webhook or another client sets another size"
        return Finding(NOT_REPLACED, f"{text}, {why}")
    return None


def on_the_way(observation: ScalableState, decided: DecisionParts) -> str:
    """Return a message that not all pods have their size yet; empty if they have. With rollouts it has no counts:
    otherwise HVPA would write the status for each replaced pod."""
    if decided.resizing is not None:
        state = decided.resizing.status
        if decided.resizing.is_done:
            return ""
        why = f": {state.message}" if state.message else ""
        return f"{state.resized} pods have the desired size{why}"
    if _sized(observation, decided) is None:
        return ""
    return f"{_name(observation.workload)} replaces pods: not all have their new size yet"


def _sized(observation: ScalableState, decided: DecisionParts) -> Sized | None:
    """Return how many pods have the template's new size; None if all have, or if HVPA does not set it."""
    workload, pods = observation.workload, observation.pods
    assert workload is not None
    if decided.resizing is not None or not observation.vpa.in_charge or observation.vpa.problem is not None:
        return None
    status = workload.status
    count = pods.living or status.replicas
    if decided.axes.changed:
        return Sized(0, count) if count else None
    keys = {item.key for item in recommended(observation)}
    others = sum(number for unlike, number in pods.unlike.items() if unlike & keys)
    if not pods.living and keys:
        others = status.replicas - status.updated_replicas
    return Sized(count - others, count) if others > 0 else None


def _name(workload: Workload) -> str:
    return f"{workload.kind} {workload.metadata.name}"
