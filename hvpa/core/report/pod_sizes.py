"""Whether the pods have the size that was decided: what `Ready` is judged by (docs/decisions/0061).

What belongs here: sizes that pods do not have yet, and why they won't get them by themselves.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Workload
from hvpa.core.model import Finding, ObservedState
from hvpa.core.report.summary import DecisionParts
from hvpa.core.values.clock import Clock
from hvpa.core.workload.governed import recommended
from hvpa.core.workload.own_rollout import keeps_pods
from hvpa.core.workload.rollout import last_change_is_past, rollout_complete

NOT_REPLACED: Final = "PodsNotReplaced"
"""Pods have another size than the template, and nothing replaces them."""
PAUSED: Final = "DeploymentPaused"
"""The same, of a Deployment that is paused."""


class Sized(NamedTuple):
    """How many pods have the size that was decided, and how many there are."""

    right: int
    total: int


def not_replaced(seen: ObservedState, clock: Clock, decided: DecisionParts) -> Finding | None:
    """Why pods keep another size than the template's; None if they have it, or are being replaced."""
    workload, sized = seen.workload, _sized(seen, decided)
    assert workload is not None
    if sized is None or decided.rollout.held is not None:
        return None
    text = f"{sized.right} of {sized.total} pods have the size of the pod template of {_name(workload)}"
    if why := keeps_pods(workload):
        reason = PAUSED if workload.spec.paused else NOT_REPLACED
        return Finding(reason, f"{text}: {why}")
    if not decided.changed and rollout_complete(workload) and last_change_is_past(seen, clock):
        why = "although all pods are replaced: a webhook or another client gives them another size"
        return Finding(NOT_REPLACED, f"{text}, {why}")
    return None


def on_the_way(seen: ObservedState, decided: DecisionParts) -> str:
    """That not all pods have their size yet, in words; empty if they have it. With rollouts it has no counts, which
    would be a write of the status for each pod that is replaced."""
    assert seen.workload is not None
    if decided.resizing is not None:
        state = decided.resizing.status
        if decided.resizing.is_done:
            return ""
        why = f": {state.message}" if state.message else ""
        return f"{state.resized} pods have the desired size{why}"
    if _sized(seen, decided) is None:
        return ""
    return f"{_name(seen.workload)} replaces pods: not all have their new size yet"


def _sized(seen: ObservedState, decided: DecisionParts) -> Sized | None:
    """How many pods have the size of the template, as it will be; None if all have, or where it is not HVPA's."""
    workload, pods = seen.workload, seen.pods
    assert workload is not None
    if decided.resizing is not None or not seen.vpa.in_charge or seen.vpa.problem is not None:
        return None
    status = workload.status
    count = pods.living or status.replicas
    if decided.changed:
        return Sized(0, count) if count else None
    keys = {item.key for item in recommended(seen)}
    others = sum(number for unlike, number in pods.unlike.items() if unlike & keys)
    if not pods.living and keys:
        others = status.replicas - status.updated_replicas
    return Sized(count - others, count) if others > 0 else None


def _name(workload: Workload) -> str:
    return f"{workload.kind} {workload.metadata.name}"
