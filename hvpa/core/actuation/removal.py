"""Which pods a ReplicaSet deletes first at a scale-in (`spec.updateStrategy.podDeletionCost`).

A ReplicaSet deletes Pending pods first, then pods that are not ready, then ready pods, and in each of these groups the
pods with the lowest deletion cost first (`ActivePodsWithRanks` in pkg/controller/controller_utils.go). So only the
group that loses some pods and keeps others leaves a choice. In that group HVPA marks pods that can't have the desired
size, then pods that do not have it yet. HVPA recognizes its marks by their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import groupby
from typing import Any, Final

from hvpa.api.hvpa.progress import DesiredSize
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.pod import is_ready, own_pods
from hvpa.core.actuation.pods import pod_states
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import DELETION_COST, PodCost, ScalableState, WorkloadPatch

CANNOT: Final = "-1213616193"
"""Cost of a pod that can't have the desired size. The digits are the bytes of `HVPA`, so no other client uses them."""
LACKS: Final = "-1213616192"
"""Cost of a pod that does not have the desired size yet."""
MARKS: Final[Mapping[str, str]] = {CANNOT: "can't have its size", LACKS: "does not have its size yet"}
"""The costs that HVPA sets, and what they say about a pod."""
_BY_COST: Final = frozenset({"Deployment", "ReplicaSet", "ReplicationController"})
"""Kinds of workloads, or of controllers of pods, whose pods are deleted by their cost."""


def pod_costs(
    context: GateContext, observation: ScalableState, size: DesiredSize, patch: WorkloadPatch | None
) -> tuple[PodCost, ...]:
    """Returns the deletion costs to write before `patch` of the workload: marks for at most as many pods as are
    deleted. HVPA removes its mark from a pod that has the size, and from all pods if the spec or a cost of another
    client rules marks out."""
    pods = own_pods(observation)
    costs = {
        pod.metadata.uid: cost
        for pod in pods
        if (cost := pod.metadata.annotations.get(DELETION_COST)) is not None
    }
    is_off = context.spec.strategy.pod_deletion_cost == "Never" or not MARKS.keys() >= {*costs.values()}
    leaving = 0 if is_off else _leaving(observation, pods, patch)
    if leaving <= 0 and not costs:
        return ()
    states = [] if is_off else pod_states(context, observation, size)
    misfits = {
        state.pod.metadata.uid: CANNOT if state.is_stuck else LACKS
        for state in states
        if state.state != "resized" and not (state.starts or state.of_start)
    }
    first, changes = _first(pods, leaving, misfits, costs), []
    for pod in pods:
        meta, present = pod.metadata, costs.get(pod.metadata.uid)
        kept = present if meta.uid in misfits else None
        wanted = misfits[meta.uid] if meta.uid in first else kept
        if wanted != present and (present is None or present in MARKS):
            changes.append(PodCost(meta.name, meta.uid, meta.resource_version, wanted))
    return tuple(changes)


def _leaving(observation: ScalableState, pods: Sequence[Pod], patch: WorkloadPatch | None) -> int:
    """Returns how many pods a ReplicaSet deletes after the patch; 0 or less if none. Only replicas that fall count, and
    only pods of a single ReplicaSet: in a rollout, the Deployment decides how many pods each ReplicaSet deletes."""
    spec: Mapping[str, Any] = {} if patch is None else patch.body["spec"]  # type: ignore[assignment]
    now = observation.target.spec.replicas
    replicas = spec.get("replicas", now)
    owners = {(owner.kind, owner.name) for pod in pods if (owner := pod.metadata.controller()) is not None}
    kinds = {observation.target.kind, *[kind for kind, _ in owners]}
    if replicas >= now or "template" in spec or len(owners) != 1 or kinds.isdisjoint(_BY_COST):
        return 0
    return len(pods) - int(replicas)


def _first(
    pods: Sequence[Pod], leaving: int, misfits: Mapping[str, str], costs: Mapping[str, str]
) -> Set[str]:
    """Returns the uids of the pods to mark: misfits of the group that leaves a choice, unless all its pods are alike.
    Of equal pods, HVPA chooses marked pods, then the newest, as a ReplicaSet does."""

    def order(pod: Pod) -> tuple[Any, ...]:
        uid, created = pod.metadata.uid, pod.metadata.creation_timestamp
        age = 0.0 if created is None else -created.timestamp()
        return int(misfits.get(uid, "0")), uid not in costs, age, pod.metadata.name

    for _, members in groupby(sorted(pods, key=_readiness), _readiness):
        group = sorted(members, key=order)
        if leaving < len(group):
            is_alike = len({misfits.get(pod.metadata.uid) for pod in group}) == 1
            chosen = [] if is_alike else group[: max(0, leaving)]
            return {pod.metadata.uid for pod in chosen} & misfits.keys()
        leaving -= len(group)
    return frozenset()


def _readiness(pod: Pod) -> tuple[bool, bool]:
    return pod.status.phase != "Pending", is_ready(pod)
