"""Rollouts that the operator began: what it knows of them, and how a workload is kept from replacing pods.

A Deployment is held by `spec.paused`, a StatefulSet by its partition (pods with lower ordinals stay as they are), a
DaemonSet by the update strategy `OnDelete`. The other kinds never replace pods by themselves.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hvpa.api.hvpa.status import ROLLOUT, RolloutRecord
from hvpa.api.objects.read_models import Workload
from hvpa.api.schema.base import read_json

NEVER_REPLACING: Final = frozenset({"ReplicaSet", "ReplicationController"})
"""Kinds that give a changed template to new pods only."""


def own_rollout(workload: Workload | None) -> RolloutRecord | None:
    """The record of the rollout that the operator began. It counts while the operator holds the workload, or as long as
    no other client has changed the workload's spec since. None where there is none, or none that can be read."""
    if workload is None or not workload.metadata.annotations.get(ROLLOUT):
        return None
    try:
        record = read_json(RolloutRecord, workload.metadata.annotations[ROLLOUT].encode())
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None
    is_own = record.generation == workload.metadata.generation
    return record if is_own or (record.held and _is_held(workload, record)) else None


def _is_held(workload: Workload, record: RolloutRecord) -> bool:
    """Whether the workload, which another client has changed since, is still held."""
    if workload.kind == "Deployment":
        return workload.spec.paused
    if workload.kind == "DaemonSet":
        return _strategy(workload) == "OnDelete"
    return partition_of(workload) != record.partition


def can_be_held(workload: Workload) -> bool:
    """Whether the workload replaces pods by itself, and can be kept from it."""
    if workload.kind == "Deployment":
        return not workload.spec.paused
    return workload.kind in ("StatefulSet", "DaemonSet") and _strategy(workload) != "OnDelete"


def partition_of(workload: Workload) -> int:
    """A StatefulSet's partition; 0 where it has none."""
    strategy = workload.spec.update_strategy
    rolling = None if strategy is None else strategy.rolling_update
    return 0 if rolling is None else rolling.partition or 0


def _strategy(workload: Workload) -> str:
    return "" if workload.spec.update_strategy is None else workload.spec.update_strategy.type


def replaces_pods(workload: Workload) -> bool:
    """Whether pods of an older template are left that are to be replaced, by what the workload's controller says."""
    status = workload.status
    is_seen = status.observed_generation >= workload.metadata.generation
    return is_seen and status.updated_replicas < status.replicas - partition_of(workload)


def keeps_pods(workload: Workload) -> str:
    """Why the workload's controller leaves pods of an older template as they are; empty if it replaces all."""
    if workload.kind in NEVER_REPLACING:
        return f"a {workload.kind} replaces no pod by itself"
    if workload.kind == "Deployment":
        return "it is paused (spec.paused)" if workload.spec.paused else ""
    if _strategy(workload) == "OnDelete":
        return "its updateStrategy is OnDelete, so it replaces no pod by itself"
    if partition := partition_of(workload):
        return f"its partition is {partition}, so it replaces no pod with a lower ordinal"
    return ""


def controls(
    workload: Workload, before: RolloutRecord | None, record: RolloutRecord, replaced: int
) -> dict[str, object]:
    """The fields of the workload's spec that are to be written so that it is held, or goes on; empty where nothing
    changes. `replaced`: how many pods of a StatefulSet are to have the new template while it is held."""
    if workload.kind == "StatefulSet":
        own = record.partition
        partition = max(own, workload.spec.replicas - replaced) if record.held else own
        is_so = partition == partition_of(workload)
        return {} if is_so else {"updateStrategy": {"rollingUpdate": {"partition": partition}}}
    if record.held == (before is not None and before.held):
        return {}
    if workload.kind == "Deployment":
        return {"paused": True if record.held else None}
    return {"updateStrategy": {"type": "OnDelete" if record.held else "RollingUpdate"}}
