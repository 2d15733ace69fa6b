"""Rollouts that the operator started: their record, and how to keep a workload from replacing pods.

HVPA holds a Deployment by `spec.paused`, a StatefulSet by its partition (pods with lower ordinals stay as they are), a
DaemonSet by the update strategy `OnDelete`. The other kinds never replace pods themselves.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hvpa.api.hvpa.status import ROLLOUT, RolloutRecord
from hvpa.api.objects.read_models import Workload
from hvpa.api.schema.base import read_json

NEVER_REPLACING: Final = frozenset({"ReplicaSet", "ReplicationController"})
"""Kinds that apply a changed template to new pods only."""


def own_rollout(workload: Workload | None) -> RolloutRecord | None:
    """Returns the record of the rollout that the operator started; None if there is none or it is invalid. It counts
    while the operator holds the workload, or until another client changes the workload's spec."""
    if workload is None or not workload.metadata.annotations.get(ROLLOUT):
        return None
    try:
        record = read_json(RolloutRecord, workload.metadata.annotations[ROLLOUT].encode())
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    is_own = record.generation == workload.metadata.generation
    return record if is_own or (record.held and _is_held(workload, record)) else None


def _is_held(workload: Workload, record: RolloutRecord) -> bool:
    """Whether the workload is still held after another client changed it."""
    if workload.kind == "Deployment":
        return workload.spec.paused
    if workload.kind == "DaemonSet":
        return _strategy(workload) == "OnDelete"
    return partition_of(workload) != record.partition


def can_be_held(workload: Workload) -> bool:
    """Whether the workload replaces pods itself, and HVPA can hold that."""
    if workload.kind == "Deployment":
        return not workload.spec.paused
    return workload.kind in ("StatefulSet", "DaemonSet") and _strategy(workload) != "OnDelete"


def partition_of(workload: Workload) -> int:
    """Returns a StatefulSet's partition; 0 if it has none."""
    strategy = workload.spec.update_strategy
    rolling = None if strategy is None else strategy.rolling_update
    return 0 if rolling is None else rolling.partition or 0


def _strategy(workload: Workload) -> str:
    return "" if workload.spec.update_strategy is None else workload.spec.update_strategy.type


def replaces_pods(workload: Workload) -> bool:
    """Whether the workload's controller reports pods of an older template that it will replace."""
    status = workload.status
    is_seen = status.observed_generation >= workload.metadata.generation
    return is_seen and status.updated_replicas < status.replicas - partition_of(workload)


def keeps_pods(workload: Workload) -> str:
    """Returns why the workload's controller keeps pods of an older template; empty if it replaces all."""
    if workload.kind in NEVER_REPLACING:
        return f"a {workload.kind} replaces no pod by itself"
    if workload.kind == "Deployment":
        return "it is paused (spec.paused)" if workload.spec.paused else ""
    if _strategy(workload) == "OnDelete":
        return "its updateStrategy is OnDelete, so it replaces no pod by itself"
    if partition := partition_of(workload):
        return f"its partition is {partition}, so it replaces no pod with a lower ordinal"
    return ""


def rollout_controls(
    workload: Workload, before: RolloutRecord | None, record: RolloutRecord, replaced: int
) -> dict[str, object]:
    """Returns the fields of the workload's spec to write so that its rollout is held or continues; empty if nothing
    changes. `replaced`: number of pods of a StatefulSet with the new template while it is held."""
    if workload.kind == "StatefulSet":
        original = record.partition
        partition = max(original, workload.spec.replicas - replaced) if record.held else original
        is_so = partition == partition_of(workload)
        return {} if is_so else {"updateStrategy": {"rollingUpdate": {"partition": partition}}}
    if record.held == (before is not None and before.held):
        return {}
    if workload.kind == "Deployment":
        return {"paused": True if record.held else None}
    return {"updateStrategy": {"type": "OnDelete" if record.held else "RollingUpdate"}}
