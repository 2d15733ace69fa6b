"""Owners of pods in files. Manifests written by hand often lack owner references, or values that a cluster adds; a
pod that names another owner stays with that owner."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import structs

from hvpa.api.objects.read_models import Meta, OwnerReference, Pod, Workload
from hvpa.core.workload.pod_owner import HASHES, owns
from hvpa.kube.cache.indexes import selects

Named = tuple[str, str]
"""Kind and name of a workload."""


class Owners:
    """Fills in the owners of the pods of a set of files."""

    def __init__(
        self, workloads: Sequence[Workload], pods: Iterable[Pod], without_uid: Collection[Named]
    ) -> None:
        """`without_uid`: workloads whose documents have no uid, so that a reference counts by name."""
        self._without_uid = without_uid
        named = [self._referring(pod) for pod in pods]
        self._by_hand = [
            workload
            for workload in workloads
            if not any(_selects(workload, pod) and owns(workload, pod) for pod in named)
        ]

    def filled(self, pod: Pod) -> Pod:
        """The pod with the values that a cluster would have filled in.

        It gets a controller if it names no owner and a workload's selector matches it. A workload that owns pods of
        these files by reference gets no other pods.
        """
        if pod.metadata.owner_references:
            return self._referring(pod)
        owner = next((workload for workload in self._by_hand if _selects(workload, pod)), None)
        return pod if owner is None else _changed(pod, owner_references=[_controller(owner)])

    def _referring(self, pod: Pod) -> Pod:
        """The pod with the hash from its ReplicaSet's name as a label, if the file lacks the label."""
        meta = pod.metadata
        owner = meta.controller()
        if owner is None:
            return pod
        if (owner.kind, owner.name) in self._without_uid:
            return _changed(pod, owner_references=[structs.replace(owner, uid="")])
        name, _, suffix = owner.name.rpartition("-")
        if owner.kind == "ReplicaSet" and name and not any(label in meta.labels for label in HASHES):
            return _changed(pod, labels={**meta.labels, HASHES[0]: suffix})
        return pod


def _selects(workload: Workload, pod: Pod) -> bool:
    meta = pod.metadata
    return workload.metadata.namespace == meta.namespace and selects(workload.spec.selector, meta.labels)


def _controller(workload: Workload) -> OwnerReference:
    meta: Meta = workload.metadata
    return OwnerReference(workload.kind, meta.name, meta.uid, workload.api_version, controller=True)


def _changed(pod: Pod, **changes: object) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, **changes))
