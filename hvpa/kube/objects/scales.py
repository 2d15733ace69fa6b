"""Workloads of custom kinds, of which only the `scale` subresource is read: what it says, as a workload."""

from __future__ import annotations

from functools import partial

import msgspec

from hvpa.api.objects.kinds import kind_key
from hvpa.api.objects.read_models import (
    Count,
    Pod,
    PodTemplate,
    ReadModel,
    Workload,
    WorkloadMeta,
    WorkloadSpec,
    WorkloadStatus,
)
from hvpa.core.workload.selector import parse_selector
from hvpa.kube.objects.resources import Resource


class _ScaleSpec(ReadModel, frozen=True):
    replicas: Count = 0


class _ScaleStatus(ReadModel, frozen=True):
    replicas: Count = 0
    selector: str = ""


class _Scale(ReadModel, frozen=True):
    metadata: WorkloadMeta
    spec: _ScaleSpec = _ScaleSpec()
    status: _ScaleStatus = _ScaleStatus()


def custom(api_version: str, kind: str, plural: str) -> Resource[Workload]:
    """A custom kind, read by its `scale` subresource."""
    read = partial(_workload, api_version, kind)
    return Resource(kind_key(api_version, kind), f"/apis/{api_version}", plural, read, _as_it_is)


def _workload(api_version: str, kind: str, raw: bytes | msgspec.Raw) -> Workload:
    """Pods count as ready and updated, since a Scale does not say whether they are. Neither does it have a generation:
    its replicas take that place, so that what was decided at 3 replicas is to be written as long as there are 3."""
    scale = _decode(raw)
    try:
        selector = parse_selector(scale.status.selector)
    except ValueError as error:
        raise msgspec.ValidationError(str(error)) from error
    count, pods = scale.spec.replicas, scale.status.replicas
    return Workload(
        msgspec.structs.replace(scale.metadata, generation=count),
        kind,
        api_version,
        WorkloadSpec(count, selector),
        WorkloadStatus(count, pods, pods, pods, pods),
    )


def with_newest_pod(workload: Workload, pods: tuple[Pod, ...]) -> Workload:
    """The workload with the containers of its newest pod, which take the place of a pod template."""
    alive = [one for one in pods if one.metadata.deletion_timestamp is None]
    newest = max(
        alive, key=lambda one: (str(one.metadata.creation_timestamp), one.metadata.name), default=None
    )
    if newest is None:
        return workload
    replace = msgspec.structs.replace
    template = PodTemplate(replace(newest.spec, init_containers=[]))
    return replace(workload, spec=replace(workload.spec, template=template))


def _as_it_is(workload: Workload) -> Workload:
    return workload


_decode = msgspec.json.Decoder(_Scale).decode
