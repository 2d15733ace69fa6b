"""The local copy of policies and namespaces, and which changes of other objects can change what policies require.

Without policies, nothing is noted and namespaces are not watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from hvpa.api.objects.read_models import Hpa, Meta, Namespace, Vpa, Workload
from hvpa.api.policy.resource import PolicyKey, PolicyObject
from hvpa.api.policy.spec import ClusterHvpaPolicySpec
from hvpa.api.policy.status import PolicyStatus
from hvpa.core.policies.model import ADOPT, OPT_OUT
from hvpa.kube.cache.store import ALL_NAMESPACES, Store
from hvpa.kube.objects.policies import StoredPolicy
from hvpa.kube.objects.resources import NAMESPACES, WORKLOADS, ApiResource
from hvpa.kube.objects.stored_hvpa import StoredHvpa


class PolicyCache:
    """Policies and namespaces."""

    def __init__(self, scopes: Collection[str]) -> None:
        self.policies: Store[StoredPolicy] = Store(scopes, self._policy_changed)
        self.cluster_policies: Store[StoredPolicy] = Store((ALL_NAMESPACES,), self._policy_changed)
        self.namespaces: Store[Namespace] = Store((ALL_NAMESPACES,), self._namespace_changed)
        self.changed = asyncio.Event()
        """Whether something changed since the last plan."""
        self.is_rolling = False
        """Whether Hvpas wait for their turn, so that each change of an Hvpa or a workload counts."""
        self.edited: Collection[tuple[str, str]] = ()
        """Hvpas, by namespace and name, whose specs count: the next change may undo what somebody changed."""
        self.on_wanted: Callable[[ApiResource[Any]], None] = lambda resource: None
        """Called with each resource that a policy needs."""

    @property
    def exist(self) -> bool:
        """Whether there is a policy."""
        return bool(len(self.policies) or len(self.cluster_policies))

    def all(self) -> list[StoredPolicy]:
        """All policies, as received."""
        return [*self.policies.all(), *self.cluster_policies.all()]

    def read(self) -> list[PolicyObject]:
        """All policies, parsed. Requests what they need."""
        policies = [stored.read() for stored in self.all()]
        for policy in policies:
            if isinstance(policy.spec, ClusterHvpaPolicySpec):
                self.on_wanted(NAMESPACES)
            for kind in () if policy.spec is None else policy.spec.workloads.kinds:
                self.on_wanted(WORKLOADS[kind])
        return policies

    def statuses(self) -> dict[PolicyKey, PolicyStatus]:
        """The statuses of the policies that have been parsed."""
        parsed = [stored.parsed for stored in self.all()]
        return {policy.key: policy.status for policy in parsed if policy is not None}

    def note_listed(self) -> None:
        """Note that a resource was listed: what the list does not have may have been deleted."""
        if self.exist:
            self.changed.set()

    def note_hvpa(self, old: StoredHvpa | None, new: StoredHvpa | None) -> None:
        """Note a change of an Hvpa."""
        if self.exist and (
            self.is_rolling or _of_hvpa(old) != _of_hvpa(new) or self._is_edited_again(old, new)
        ):
            self.changed.set()

    def _is_edited_again(self, old: StoredHvpa | None, new: StoredHvpa | None) -> bool:
        if old is None or new is None or old.spec_hash == new.spec_hash:
            return False
        return (new.metadata.namespace, new.metadata.name) in self.edited

    def note_workload(self, old: Workload | None, new: Workload | None) -> None:
        """Note a change of a workload."""
        if self.exist and (self.is_rolling or _of_workload(old) != _of_workload(new)):
            self.changed.set()

    def note_recommender(self, old: Hpa | Vpa | None, new: Hpa | Vpa | None) -> None:
        """Note a change of an HPA or VPA."""
        if self.exist and _of_recommender(old) != _of_recommender(new):
            self.changed.set()

    def _policy_changed(self, old: StoredPolicy | None, new: StoredPolicy | None, own: bool) -> None:
        if old is not None and new is not None:
            new.succeed(old)
        if _of_policy(old) != _of_policy(new):
            self.changed.set()

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None, own: bool) -> None:
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self.changed.set()


def _of_policy(policy: StoredPolicy | None) -> tuple[object, ...] | None:
    """What a plan reads of a policy, except its status."""
    if policy is None:
        return None
    meta = policy.metadata
    return (meta.uid, meta.generation, meta.deletion_timestamp)


def _of_hvpa(hvpa: StoredHvpa | None) -> tuple[object, ...] | None:
    """What a plan reads of an Hvpa, except its progress."""
    return None if hvpa is None else (*_of_meta(hvpa.metadata), hvpa.metadata.annotations, hvpa.links)


def _of_workload(workload: Workload | None) -> tuple[object, ...] | None:
    """What a plan reads of a workload, except its progress. Its size counts only when its Hvpa is created."""
    if workload is None:
        return None
    annotations = workload.metadata.annotations
    return (*_of_meta(workload.metadata), annotations.get(OPT_OUT), annotations.get(ADOPT))


def _of_recommender(recommender: Hpa | Vpa | None) -> tuple[object, ...] | None:
    """What a plan reads of an HPA or VPA."""
    if recommender is None:
        return None
    meta = _of_meta(recommender.metadata)
    if isinstance(recommender, Hpa):
        return (*meta, recommender.spec.scale_target_ref)
    return (*meta, recommender.spec.target_ref, recommender.spec.update_policy)


def _of_meta(meta: Meta) -> tuple[object, ...]:
    return (meta.uid, meta.deletion_timestamp, meta.labels, meta.owner_references)
