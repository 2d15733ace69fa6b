"""Readers of workloads: they convert all kinds to the same read-model.

Some kinds have other fields in spec or status than a Deployment. HVPA reads only the
`scale` subresource of custom kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from hvpa.api.objects.kinds import DEFAULT_API_VERSION
from hvpa.api.objects.read_models import (
    Count,
    Int,
    Pod,
    PodTemplate,
    ReadModel,
    Selector,
    StatefulSetUpdateStrategy,
    Workload,
    WorkloadMeta,
    WorkloadSpec,
    WorkloadStatus,
)
from hvpa.core.workload.containers import template_of
from hvpa.core.workload.pod_owner import by_owner
from hvpa.core.workload.selector import parse_selector

_set = msgspec.structs.force_setattr


def plain(kind: str, raw: bytes | msgspec.Raw) -> Workload:
    """A Deployment, StatefulSet or ReplicaSet; objects in a list do not contain their kind.

    A ReplicaSet never replaces pods for another template, so all its pods count as updated.
    """
    workload = _decode(raw)
    _set(workload, "kind", kind)
    _set(workload, "api_version", DEFAULT_API_VERSION)
    if kind == "ReplicaSet":
        _set(workload.status, "updated_replicas", workload.status.replicas)
    return workload


class _ControllerSpec(ReadModel, frozen=True):
    """A spec whose selector is a map of labels."""

    replicas: Count = 1
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class _Controller(ReadModel, frozen=True):
    metadata: WorkloadMeta
    spec: _ControllerSpec = _ControllerSpec()
    status: WorkloadStatus = WorkloadStatus()


def replication_controller(raw: bytes | msgspec.Raw) -> Workload:
    """A ReplicationController; as with a ReplicaSet, all pods count as updated."""
    controller = _controller(raw)
    selector = Selector(match_labels=controller.spec.selector or {})
    spec = WorkloadSpec(controller.spec.replicas, selector, controller.spec.template or PodTemplate())
    _set(controller.status, "updated_replicas", controller.status.replicas)
    return Workload(controller.metadata, "ReplicationController", "v1", spec, controller.status)


class _DaemonSetSpec(ReadModel, frozen=True):
    selector: Selector = Selector()
    template: PodTemplate = PodTemplate()
    update_strategy: StatefulSetUpdateStrategy | None = None


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
    """A DaemonSet. Its replicas are the nodes that should run its pod."""
    stored_set = _daemon_set(raw)
    reported = stored_set.status
    spec = WorkloadSpec(
        reported.desired_number_scheduled,
        stored_set.spec.selector,
        stored_set.spec.template,
        stored_set.spec.update_strategy,
    )
    status = WorkloadStatus(
        reported.observed_generation,
        reported.current_number_scheduled,
        reported.updated_number_scheduled,
        reported.number_ready,
        reported.number_available,
    )
    return Workload(stored_set.metadata, "DaemonSet", DEFAULT_API_VERSION, spec, status)


class _ScaleSpec(ReadModel, frozen=True):
    replicas: Count = 0


class _ScaleStatus(ReadModel, frozen=True):
    replicas: Count = 0
    selector: str = ""


class _Scale(ReadModel, frozen=True):
    metadata: WorkloadMeta
    spec: _ScaleSpec = _ScaleSpec()
    status: _ScaleStatus = _ScaleStatus()


def from_scale(api_version: str, kind: str, raw: bytes | msgspec.Raw) -> Workload:
    """A workload of a custom kind, read from its Scale.

    A Scale does not report readiness or updates, so all pods count as ready and updated. It has no generation either;
    the replicas take its place, so a decision made at 3 replicas is valid as long as there are 3.
    """
    scale = _scale(raw)
    try:
        selector = parse_selector(scale.status.selector)
    except ValueError as error:
        raise msgspec.ValidationError(str(error)) from error
    count, pods = scale.spec.replicas, scale.status.replicas
    metadata = msgspec.structs.replace(scale.metadata, generation=count)
    status = WorkloadStatus(count, pods, pods, pods, pods)
    return Workload(metadata, kind, api_version, WorkloadSpec(count, selector), status)


def with_newest_pod(workload: Workload, pods: tuple[Pod, ...]) -> Workload:
    """The workload with the containers of its newest pod, in place of a pod template.

    If it owns no pod, pods without a controller count instead.
    """
    alive = tuple([pod for pod in pods if pod.metadata.deletion_timestamp is None])
    owned = by_owner(alive, workload)
    alive = owned.own or tuple([pod for pod in owned.others if pod.metadata.controller() is None])
    if not alive:
        return workload
    newest = max(alive, key=lambda pod: (str(pod.metadata.creation_timestamp), pod.metadata.name))
    replace = msgspec.structs.replace
    template = PodTemplate(template_of(newest.spec))
    return replace(workload, spec=replace(workload.spec, template=template))


_decode = msgspec.json.Decoder(Workload).decode
_controller = msgspec.json.Decoder(_Controller).decode
_daemon_set = msgspec.json.Decoder(_DaemonSet).decode
_scale = msgspec.json.Decoder(_Scale).decode
READERS: Final[Mapping[str, Callable[[bytes | msgspec.Raw], Workload]]] = {
    "DaemonSet": daemon_set,
    "ReplicationController": replication_controller,
}
"""Readers of the kinds that `plain` does not cover."""
