"""Objects as the local copy holds them: without unused fields, and with equal parts stored once.

No other code holds the objects yet, so they are changed in place although they are frozen for all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.api.objects.read_models import (
    Condition,
    ContainerRecommendation,
    ContainerState,
    ContainerStatus,
    Hpa,
    HpaSpecRead,
    HpaStatusRead,
    Meta,
    Namespace,
    Node,
    ObjectReference,
    OwnerReference,
    Pod,
    PodStatus,
    ResourceList,
    StatusWrite,
    Vpa,
    VpaSpecRead,
    VpaStatusRead,
    Waiting,
    Workload,
    WorkloadStatus,
)
from hvpa.api.values.quantity import RESOURCES
from hvpa.api.values.text import one_line
from hvpa.core.actuation.kubelet import RESIZE_IN_PROGRESS, RESIZE_PENDING
from hvpa.core.model import DELETION_COST
from hvpa.core.workload.rollout import PROGRESSING, REPLICA_FAILURE
from hvpa.core.workload.runtimes import told
from hvpa.core.workload.stuck import LONGEST, is_starting
from hvpa.kube.objects.interning import share, text
from hvpa.recommend.hpa.pods import sidecars

OWN_ANNOTATIONS: Final = "hvpa.autoscaling.k8s.io/"
"""Prefix of the annotations that are read from workloads; others are dropped."""
DROPPED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""A whole manifest as a string, not worth its memory."""

_set = msgspec.structs.force_setattr
_NOTHING: Final[dict[str, str]] = {}
_NO_AMOUNTS: Final[ResourceList] = {}
_NO_OWNERS: Final[list[OwnerReference]] = []
_RUNS: Final = ContainerState()
_KEPT: Final = frozenset({"Ready", RESIZE_PENDING, RESIZE_IN_PROGRESS})
"""Conditions of a pod that are kept with any content."""


class StoredHpa(Hpa, frozen=True):
    """An HPA that keeps its decoded spec."""

    kept: HpaSpecRead = HpaSpecRead()

    @property
    def spec(self) -> HpaSpecRead:
        """The decoded spec."""
        return self.kept


class StoredVpa(Vpa, frozen=True):
    """A VPA that keeps its decoded spec."""

    kept: VpaSpecRead = VpaSpecRead()

    @property
    def spec(self) -> VpaSpecRead:
        """The decoded spec."""
        return self.kept


def slim_meta(meta: Meta, keep_annotations: Callable[[str], bool]) -> None:
    """Share names and labels, and drop the unused annotations."""
    _share_texts(meta, "name", "namespace")
    _set(meta, "labels", _shared_labels(meta.labels) if meta.labels else _NOTHING)
    kept = {text(key): value for key, value in meta.annotations.items() if keep_annotations(key)}
    _set(meta, "annotations", kept or _NOTHING)
    for owner in meta.owner_references:
        _share_texts(owner, "kind", "name", "uid", "api_version")
    if not meta.owner_references:
        _set(meta, "owner_references", _NO_OWNERS)


def slim_workload(workload: Workload) -> Workload:
    """Keep the field managers of replicas and resources, and the conditions that are read."""
    meta, spec, status = workload.metadata, workload.spec, workload.status
    slim_meta(meta, lambda key: key.startswith(OWN_ANNOTATIONS))
    entries = [entry for entry in meta.managed_fields if entry.owns_replicas() or entry.owns_resources()]
    for entry in entries:
        _share_texts(entry, "manager")
        _share_parts(entry, "fields")
    _set(meta, "managed_fields", share(entries, "managed fields"))
    if spec.selector.match_labels:
        _set(spec.selector, "match_labels", _shared_labels(spec.selector.match_labels))
    _share_parts(spec, "selector")
    for container in spec.template.spec.containers:
        command, args, variables = told(container)
        _set(container, "command", command or None)
        _set(container, "args", args or None)
        _set(container, "env", variables or None)
    _share_parts(spec.template, "spec")
    _slim_conditions(
        status,
        lambda condition: (
            condition.type == PROGRESSING
            or (condition.type == REPLICA_FAILURE and condition.status == "True")
        ),
    )
    return workload


def slim_pod(pod: Pod) -> Pod:
    """Keep a pod's controller, deletion cost, times of its start and readiness, terminated or failing containers,
    native sidecars, scheduling failure, and resize state.

    A failed pod keeps all conditions: their times show when it ended.
    """
    owner, status = pod.metadata.controller(), pod.status
    slim_meta(pod.metadata, lambda key: key == DELETION_COST)
    _set(pod.metadata, "owner_references", _NO_OWNERS if owner is None else share([owner], "owners"))
    _share_parts(pod, "spec")
    _slim_conditions(
        status,
        lambda condition: (
            status.phase == "Failed"
            or condition.type in _KEPT
            or (condition.type == "PodScheduled" and condition.status == "False")
        ),
    )
    _share_texts(status, "phase", "host_ip")
    if pod.spec.resources is None:  # then it only repeats the containers'
        _set(status, "resources", None)
    else:
        _share_parts(status, "resources")
    _set(status, "kept_running_since", status.running_since)
    is_ready = any(entry.type == "Ready" and entry.status == "True" for entry in status.conditions)
    containers = [_slim_container(container, is_ready) for container in status.container_statuses]
    lasting = {container.name for container in sidecars(pod.spec)}
    first = [
        _slim_container(container, is_ready or container.name not in lasting)
        for container in status.init_container_statuses
    ]
    first = [
        container
        for container in first
        if container.state.waiting is not None or container.restart_count > 0 or container.name in lasting
    ]
    _set(status, "container_statuses", share(containers, "containers"))
    _set(status, "init_container_statuses", share(first, "containers"))
    return pod


def slim_hpa(hpa: Hpa) -> StoredHpa:
    """Share an HPA's metrics, behaviour and texts.

    Raises msgspec.MsgspecError if its spec can't be decoded: this must fail now, not in a decision.
    """
    slim_meta(hpa.metadata, is_kept)
    spec = msgspec.structs.replace(hpa.spec)
    _set(spec, "scale_target_ref", slim_reference(spec.scale_target_ref))
    _set(spec, "metrics", share(spec.metrics, "metrics"))
    _share_parts(spec, "behavior")
    _slim_conditions(hpa.status)
    if hpa.status.current_metrics:
        _set(hpa.status, "current_metrics", share(hpa.status.current_metrics, "metrics"))
    return StoredHpa(hpa.metadata, hpa.raw_spec.copy(), hpa.status, spec)


def slim_vpa(vpa: Vpa) -> StoredVpa:
    """Drop a recommendation's bounds except the upper bounds, keep only the latest status write, and share texts.

    Raises like `slim_hpa`.
    """
    slim_meta(vpa.metadata, is_kept)
    written = vpa.metadata.written_at()
    _set(vpa.metadata, "managed_fields", [] if written is None else [StatusWrite("status", written)])
    spec = msgspec.structs.replace(vpa.spec)
    _set(spec, "target_ref", slim_reference(spec.target_ref))
    _share_parts(spec, "update_policy", "resource_policy")
    _slim_conditions(vpa.status)
    recommendation = vpa.status.recommendation
    if recommendation is not None and recommendation.container_recommendations:
        entries = [_slim_recommendation(entry) for entry in recommendation.container_recommendations]
        _set(recommendation, "container_recommendations", entries)
    return StoredVpa(vpa.metadata, vpa.raw_spec.copy(), vpa.status, spec)


def slim_node(node: Node) -> Node:
    """Keep a node's labels, taints, and allocatable CPU and memory."""
    slim_meta(node.metadata, lambda key: False)
    allocatable: ResourceList = {
        key: value for key, value in node.status.allocatable.items() if key in RESOURCES
    }
    _set(node.status, "allocatable", share(_slim_amounts(allocatable), "amounts"))
    _share_parts(node, "spec")
    return node


def slim_namespace(namespace: Namespace) -> Namespace:
    """Drop a namespace's annotations."""
    slim_meta(namespace.metadata, lambda key: False)
    return namespace


def slim_checkpoint(checkpoint: VpaCheckpoint) -> VpaCheckpoint:
    """Drop a checkpoint's labels and annotations."""
    slim_meta(checkpoint.metadata, lambda key: False)
    _set(checkpoint.metadata, "labels", _NOTHING)
    return checkpoint


def slim_reference(reference: ObjectReference) -> ObjectReference:
    """A reference whose texts are shared."""
    return ObjectReference(*[text(getattr(reference, field)) for field in reference.__struct_fields__])


def is_kept(key: str) -> bool:
    """Whether an annotation of an Hvpa, HPA or VPA is kept."""
    return key != DROPPED_ANNOTATION


def _share_texts(owner: msgspec.Struct, *fields: str) -> None:
    for field in fields:
        _set(owner, field, text(getattr(owner, field)))


def _share_parts(owner: msgspec.Struct, *fields: str) -> None:
    for field in fields:
        _set(owner, field, share(getattr(owner, field)))


def _shared_labels(labels: dict[str, str]) -> dict[str, str]:
    return share({text(key): text(value) for key, value in labels.items()})


def _slim_conditions(
    status: PodStatus | HpaStatusRead | VpaStatusRead | WorkloadStatus,
    keep: Callable[[Condition], bool] = lambda _condition: True,
) -> None:
    if status.conditions:
        kept = [condition for condition in status.conditions if keep(condition)]
        for condition in kept:
            _share_texts(condition, "type", "status", "reason", "message")
        _set(status, "conditions", share(kept, "conditions"))


def _slim_container(container: ContainerStatus, is_ready: bool) -> ContainerStatus:
    waiting, terminated = container.state.waiting, container.state.terminated
    if waiting is not None:
        kept = Waiting(text(waiting.reason), one_line(waiting.message, LONGEST))
        _set(container, "state", ContainerState(None if is_starting(waiting.reason) else kept, terminated))
    elif container.state.running is not None and is_ready:
        _set(container, "state", _RUNS)
    return share(container) if terminated is None and container.last_state.terminated is None else container


def _slim_recommendation(recommendation: ContainerRecommendation) -> ContainerRecommendation:
    target = _slim_amounts(recommendation.target)
    uncapped = (
        target
        if recommendation.uncapped_target == recommendation.target
        else _slim_amounts(recommendation.uncapped_target)
    )
    bounds: ResourceList = {
        key: recommendation.upper_bound[key] for key in RESOURCES if key in recommendation.upper_bound
    }
    upper = _slim_amounts(bounds) if bounds else _NO_AMOUNTS
    return ContainerRecommendation(text(recommendation.container_name), target, _NO_AMOUNTS, upper, uncapped)


def _slim_amounts(amounts: ResourceList) -> ResourceList:
    return {text(key): text(value) if isinstance(value, str) else value for key, value in amounts.items()}
