"""The status of HvpaPolicy and ClusterHvpaPolicy."""

from __future__ import annotations

from hvpa.api.hvpa.status import StatusCondition
from hvpa.api.schema.base import StatusModel
from hvpa.api.schema.fields import Timestamp, Whole


class PolicyStatus(StatusModel):
    """What the policy selects, and how far its Hvpas are as it requires."""

    observed_generation: Whole = 0
    """Generation of the policy that this status is about."""
    selected: Whole = 0
    """Workloads that the policy selects and that no more specific policy selects."""
    generated: Whole = 0
    """Hvpas of this policy."""
    up_to_date: Whole = 0
    """Hvpas of this policy that are as the policy requires."""
    written_by_others: Whole = 0
    """Selected workloads that have an Hvpa that somebody wrote. The policy leaves them alone."""
    opted_out: Whole = 0
    """Selected workloads with the annotation hvpa.autoscaling.k8s.io/opt-out."""
    awaiting_adoption: Whole = 0
    """Selected workloads whose Hvpa stays in mode Recommend, because an HPA or VPA acts on them and they don't have the
    annotation hvpa.autoscaling.k8s.io/adopt."""
    awaiting_removal: Whole = 0
    """Hvpas of workloads that the policy no longer selects, and that it does not remove: see rollout.maxRemovals."""
    removal_held: bool = False
    """Whether these Hvpas stay until the policy changes. If not, they are removed when the hour is over."""
    removed: Whole = 0
    """Hvpas that the policy removed since removedSince because it no longer selects their workloads."""
    removed_since: Timestamp | None = None
    """Start of the hour in which removals are counted."""
    conditions: tuple[StatusCondition, ...] = ()
    """Ready: whether all Hvpas are as the policy requires. Conflict: whether another policy selects some of the same
    workloads."""
