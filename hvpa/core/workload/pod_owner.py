"""The pods of a workload, found by their controller and never by labels alone (docs/decisions/0060). A selector also
matches other pods: of a Job or a second Deployment of the same Helm chart, or a pod created by hand."""

from __future__ import annotations

from typing import Final, NamedTuple

from hvpa.api.objects.kinds import KINDS
from hvpa.api.objects.read_models import OwnerReference, Pod, Workload

HASHES: Final = ("pod-template-hash", "rollouts-pod-template-hash")
"""Labels that repeat the hash in the name of a pod's ReplicaSet: of Deployments and of Argo Rollouts."""
LONGEST_NAME: Final = 253
"""Maximum length of an object's name (`DNS1123SubdomainMaxLength` in apimachinery)."""
_BUILT_IN: Final = frozenset({"", "apps", "batch", "extensions"})
"""API groups whose controllers' pods belong to no custom kind: Job, DaemonSet, StatefulSet, ReplicationController, and
Node (a static pod)."""


class PodsByOwner(NamedTuple):
    """The pods that match a workload's selector."""

    own: tuple[Pod, ...] = ()
    """The workload's own pods."""
    others: tuple[Pod, ...] = ()
    """Pods of other owners."""


def by_owner(pods: tuple[Pod, ...], workload: Workload) -> PodsByOwner:
    """Groups the pods that match a workload's selector by owner. If all are the workload's own, it returns the same
    tuple."""
    if all(owns(workload, pod) for pod in pods):
        return PodsByOwner(pods)
    own_pods: list[Pod] = []
    other_pods: list[Pod] = []
    for pod in pods:
        (own_pods if owns(workload, pod) else other_pods).append(pod)
    return PodsByOwner(tuple(own_pods), tuple(other_pods))


def owns(workload: Workload, pod: Pod) -> bool:
    """Whether a pod that matches the workload's selector belongs to the workload.

    Its controller is the workload itself, or a ReplicaSet of a Deployment or an Argo Rollout. For other custom kinds,
    HVPA does not know which objects are between workload and pod, so it accepts any controller of another custom kind.
    """
    owner = pod.metadata.controller()
    if owner is None:
        return False
    if owner.uid and owner.uid == workload.metadata.uid:
        return True
    if _names_workload(owner, workload):
        return not (
            owner.uid and workload.metadata.uid
        )  # if both uids are known, the other uid is of a deleted object
    group, is_custom = _group(owner.api_version), workload.kind not in KINDS
    if owner.kind == "ReplicaSet" and group in ("", "apps"):
        hashes = HASHES if is_custom else HASHES[:1]
        labels = [pod.metadata.labels.get(key, "") for key in hashes]
        has_sets = is_custom or workload.kind == "Deployment"
        return has_sets and owner.name in [_replica_set_name(workload, label) for label in labels if label]
    return is_custom and group not in _BUILT_IN and owner.kind != workload.kind


def _names_workload(owner: OwnerReference, workload: Workload) -> bool:
    """Whether an owner reference names the workload."""
    named = owner.kind == workload.kind and owner.name == workload.metadata.name
    return named and _group(owner.api_version) in ("", _group(workload.api_version))


def _replica_set_name(workload: Workload, template_hash: str) -> str:
    """Returns the name of the ReplicaSet with this hash; a long workload name is cut (`generateReplicaSetName` in
    pkg/controller/deployment/sync.go). Example: `web-5d4f`."""
    longest = LONGEST_NAME - 1 - len(template_hash)
    return f"{workload.metadata.name[:longest]}-{template_hash}"


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
