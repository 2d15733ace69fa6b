"""Objects as the local copy holds them: without what nobody reads, and with equal parts held once. Each is still ours
alone here, so it is changed in place although it is frozen for everybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hvpa.api.objects.read_models import (
    Condition,
    ContainerRecommendation,
    ContainerState,
    ContainerStatus,
    Hpa,
    HpaSpecRead,
    HpaStatusRead,
    Meta,
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
from hvpa.api.values.text import one_line
from hvpa.core.actuation.pod import RESIZE_IN_PROGRESS, RESIZE_PENDING
from hvpa.core.workload.rollout import PROGRESSING, REPLICA_FAILURE
from hvpa.core.workload.stuck import LONGEST, is_starting
from hvpa.kube.objects.interning import share, text

OWN_ANNOTATIONS: Final = "hvpa.autoscaling.k8s.io/"
"""Prefix of the annotations that are read from workloads; others are dropped."""
DROPPED_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""A whole manifest as a string: not worth its memory."""

_set = msgspec.structs.force_setattr
_NOTHING: Final[dict[str, str]] = {}
_NO_AMOUNTS: Final[ResourceList] = {}
_NOBODY: Final[list[OwnerReference]] = []
_KEPT: Final = frozenset({"Ready", RESIZE_PENDING, RESIZE_IN_PROGRESS})
"""Conditions of a pod that are kept whatever they say."""


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
    """Share names and labels, and drop the annotations that nobody reads."""
    _share_texts(meta, "name", "namespace")
    labels = {text(key): text(value) for key, value in meta.labels.items()}
    _set(meta, "labels", share(labels) if labels else _NOTHING)
    kept = {text(key): value for key, value in meta.annotations.items() if keep_annotations(key)}
    _set(meta, "annotations", kept or _NOTHING)
    for owner in meta.owner_references:
        _share_texts(owner, "kind", "name", "uid", "api_version")
    if not meta.owner_references:
        _set(meta, "owner_references", _NOBODY)


def slim_workload(workload: Workload) -> Workload:
    """Of who set what, keep those that set what we set."""
    slim_meta(workload.metadata, _is_own)
    entries = [one for one in workload.metadata.managed_fields if one.owns_replicas() or one.owns_resources()]
    for one in entries:
        _share_texts(one, "manager")
        _set(one, "fields", share(one.fields))
    _set(workload.metadata, "managed_fields", share(entries, "managed fields"))
    spec = workload.spec
    if spec.selector.match_labels:
        labels = {text(key): text(value) for key, value in spec.selector.match_labels.items()}
        _set(spec.selector, "match_labels", share(labels))
    _set(spec, "selector", share(spec.selector))
    _set(spec.template, "spec", share(spec.template.spec))
    kept = [found for found in workload.status.conditions if _is_read(found)]
    _set(workload.status, "conditions", kept)
    _slim_conditions(workload.status)
    return workload


def slim_pod(pod: Pod) -> Pod:
    """Of a pod, keep who controls it, when it became ready, which containers ended or can't start, why it can't be
    scheduled, and how a resize goes. Of a failed one all times count: they say when it ended."""
    owner = pod.metadata.controller()
    slim_meta(pod.metadata, _is_none)
    _set(pod.metadata, "owner_references", _NOBODY if owner is None else share([owner], "owners"))
    _set(pod, "spec", share(pod.spec))
    status = pod.status
    if status.phase != "Failed":
        kept = [one for one in status.conditions if one.type in _KEPT or _is_unscheduled(one)]
        _set(status, "conditions", kept)
    _slim_conditions(status)
    _share_texts(status, "phase")
    containers = [_slim_container(one) for one in status.container_statuses]
    _set(status, "container_statuses", share(containers, "containers"))
    first = [_slim_container(one) for one in status.init_container_statuses]
    _set(
        status,
        "init_container_statuses",
        share([one for one in first if _is_telling(one)], "containers"),
    )
    return pod


def slim_hpa(hpa: Hpa) -> StoredHpa:
    """Of an HPA, share metrics, behaviour and texts. Raises msgspec.MsgspecError where its spec can't be decoded: that
    must show now, not in a decision."""
    slim_meta(hpa.metadata, is_kept)
    spec = msgspec.structs.replace(hpa.spec)
    _set(spec, "scale_target_ref", slim_reference(spec.scale_target_ref))
    _set(spec, "metrics", share(spec.metrics, "metrics"))
    _set(spec, "behavior", share(spec.behavior))
    _slim_conditions(hpa.status)
    if hpa.status.current_metrics:
        _set(hpa.status, "current_metrics", share(hpa.status.current_metrics, "metrics"))
    return StoredHpa(hpa.metadata, hpa.raw_spec.copy(), hpa.status, spec)


def slim_vpa(vpa: Vpa) -> StoredVpa:
    """Of a VPA, drop the bounds of its recommendation but that of memory upwards, and all writes but the latest one of
    its status, and share texts. Raises as `slim_hpa`."""
    slim_meta(vpa.metadata, is_kept)
    written = vpa.metadata.written_at()
    _set(vpa.metadata, "managed_fields", [] if written is None else [StatusWrite("status", written)])
    spec = msgspec.structs.replace(vpa.spec)
    _set(spec, "target_ref", slim_reference(spec.target_ref))
    _set(spec, "update_policy", share(spec.update_policy))
    _set(spec, "resource_policy", share(spec.resource_policy))
    _slim_conditions(vpa.status)
    said = vpa.status.recommendation
    if said is not None and said.container_recommendations:
        entries = [_slim_recommendation(one) for one in said.container_recommendations]
        _set(said, "container_recommendations", entries)
    return StoredVpa(vpa.metadata, vpa.raw_spec.copy(), vpa.status, spec)


def _slim_conditions(status: PodStatus | HpaStatusRead | VpaStatusRead | WorkloadStatus) -> None:
    if not status.conditions:
        return
    for one in status.conditions:
        _share_texts(one, "type", "status", "reason", "message")
    _set(status, "conditions", share(status.conditions, "conditions"))


def slim_reference(reference: ObjectReference) -> ObjectReference:
    """A reference whose texts are shared."""
    return ObjectReference(*[text(getattr(reference, field)) for field in reference.__struct_fields__])


def _share_texts(part: msgspec.Struct, *fields: str) -> None:
    for field in fields:
        _set(part, field, text(getattr(part, field)))


def _is_read(one: Condition) -> bool:
    """Whether a workload's condition is read."""
    return one.type == PROGRESSING or (one.type == REPLICA_FAILURE and one.status == "True")


def _is_unscheduled(one: Condition) -> bool:
    return one.type == "PodScheduled" and one.status == "False"


def _is_telling(one: ContainerStatus) -> bool:
    """Whether an init container's status says why the pod does not run."""
    return one.state.waiting is not None or one.restart_count > 0


def _slim_container(one: ContainerStatus) -> ContainerStatus:
    waiting = one.state.waiting
    if waiting is not None:
        kept = (
            None
            if is_starting(waiting.reason)
            else Waiting(text(waiting.reason), one_line(waiting.message, LONGEST))
        )
        _set(one, "state", ContainerState(kept, one.state.terminated))
    if one.state.terminated is not None or one.last_state.terminated is not None:
        return one
    return share(one)


def _slim_recommendation(one: ContainerRecommendation) -> ContainerRecommendation:
    target = _slim_amounts(one.target)
    uncapped = target if one.uncapped_target == one.target else _slim_amounts(one.uncapped_target)
    upper = {name: value for name, value in one.upper_bound.items() if name == "memory"} or _NO_AMOUNTS
    return ContainerRecommendation(text(one.container_name), target, _NO_AMOUNTS, upper, uncapped)


def _slim_amounts(amounts: ResourceList) -> ResourceList:
    return {text(key): text(value) if isinstance(value, str) else value for key, value in amounts.items()}


def is_kept(key: str) -> bool:
    """Whether an annotation of an Hvpa, HPA or VPA is kept."""
    return key != DROPPED_ANNOTATION


def _is_own(key: str) -> bool:
    return key.startswith(OWN_ANNOTATIONS)


def _is_none(key: str) -> bool:
    return False
