"""Readers of workloads: kinds whose spec or status has other fields than a Deployment's become the one read-model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hvpa.api.objects.read_models import (
    Count,
    Int,
    PodTemplate,
    ReadModel,
    Selector,
    UpdateStrategy,
    Workload,
    WorkloadMeta,
    WorkloadSpec,
    WorkloadStatus,
)

Read = Callable[[bytes | msgspec.Raw], Workload]
_set = msgspec.structs.force_setattr
APPS: Final = "apps/v1"


def plain(kind: str) -> Read:
    """Reads a Deployment or StatefulSet, whose objects in a list do not say their kind."""
    read = msgspec.json.Decoder(Workload).decode

    def workload(raw: bytes | msgspec.Raw) -> Workload:
        return _of_kind(read(raw), kind)

    return workload


def _of_kind(found: Workload, kind: str) -> Workload:
    _set(found, "kind", kind)
    _set(found, "api_version", APPS)
    return found


def replica_set(raw: bytes | msgspec.Raw) -> Workload:
    """A ReplicaSet. It never replaces pods for another template, so all count as updated."""
    found = _of_kind(_replica_set(raw), "ReplicaSet")
    _set(found.status, "updated_replicas", found.status.replicas)
    return found


class _ControllerSpec(ReadModel, frozen=True):
    """Its selector is a map of labels."""

    replicas: Count = 1
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class _Controller(ReadModel, frozen=True):
    metadata: WorkloadMeta
    spec: _ControllerSpec = _ControllerSpec()
    status: WorkloadStatus = WorkloadStatus()


def replication_controller(raw: bytes | msgspec.Raw) -> Workload:
    """A ReplicationController; as with a ReplicaSet all pods count as updated."""
    found = _controller(raw)
    selector = Selector(match_labels=found.spec.selector or {})
    spec = WorkloadSpec(found.spec.replicas, selector, found.spec.template or PodTemplate())
    _set(found.status, "updated_replicas", found.status.replicas)
    return Workload(found.metadata, "ReplicationController", "v1", spec, found.status)


class _DaemonSetSpec(ReadModel, frozen=True):
    selector: Selector = Selector()
    template: PodTemplate = PodTemplate()
    update_strategy: UpdateStrategy | None = None


class _DaemonSetStatus(ReadModel, frozen=True):
    observed_generation: Int = 0
    desired_number_scheduled: Count = 0
    current_number_scheduled: Count = 0
    updated_number_scheduled: Count = 0
    number_ready: Count = 0
    number_available: Count = 0


class _DaemonSet(ReadModel, frozen=True):
    metadata: WorkloadMeta
    spec: _DaemonSetSpec = _DaemonSetSpec()
    status: _DaemonSetStatus = _DaemonSetStatus()


def daemon_set(raw: bytes | msgspec.Raw) -> Workload:
    """A DaemonSet. Its replicas are the nodes that its controller wants a pod on."""
    found = _daemon_set(raw)
    reported = found.status
    spec = WorkloadSpec(
        reported.desired_number_scheduled,
        found.spec.selector,
        found.spec.template,
        found.spec.update_strategy,
    )
    status = WorkloadStatus(
        reported.observed_generation,
        reported.current_number_scheduled,
        reported.updated_number_scheduled,
        reported.number_ready,
        reported.number_available,
    )
    return Workload(found.metadata, "DaemonSet", APPS, spec, status)


_replica_set = msgspec.json.Decoder(Workload).decode
_controller = msgspec.json.Decoder(_Controller).decode
_daemon_set = msgspec.json.Decoder(_DaemonSet).decode
