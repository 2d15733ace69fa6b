"""The workload's controllers: which pods a Deployment or a StatefulSet creates and deletes next.

The rules are those of kube-controller-manager 1.37 (`pkg/controller/deployment/rolling.go`,
`pkg/controller/statefulset/stateful_set_control.go`, `controller_utils.go: ActivePodsWithRanks`), without delay, and
simpler where noted. minReadySeconds is 0, so that ready is available; a deleted pod counts no more, whatever its grace.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hvpa.simulate.cluster.state import SimPod


class Replicas(Protocol):
    """What a controller knows of the workload, and what it can do."""

    replicas: int
    revision: int
    paused: bool
    partition: int
    pods: list[SimPod]

    def create(self, now: float, ordinal: int | None = None) -> None:
        """A new pod from the present template; a StatefulSet's with its ordinal."""
        ...

    def remove(self, pod: SimPod, now: float, replaced: bool = False) -> None:
        """Delete the pod; `replaced`: because another takes its place."""
        ...


def scaled(value: int | str, replicas: int, up: bool) -> int:
    """A count, or a percentage ("25%") of the replicas, rounded up or down (`GetScaledValueFromIntOrPercent`)."""
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * replicas // 100) if up else percent * replicas // 100


def fenceposts(max_surge: int | str, max_unavailable: int | str, replicas: int) -> tuple[int, int]:
    """Pods beyond the replicas, and replicas that need not be available, while a Deployment rolls
    (`ResolveFenceposts`): the surge is rounded up, the other down; where both are 0, one pod may be unavailable."""
    surge = scaled(max_surge, replicas, up=True)
    unavailable = scaled(max_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, replicas)


def deletion_order(pods: Iterable[SimPod]) -> list[SimPod]:
    """The pods, those that a ReplicaSet deletes first at the front: unscheduled before scheduled, not ready before
    ready, ready for less time before longer, more restarts before fewer, newer before older. (Times are compared as
    they are, not by their order of magnitude, and pods that share a node have no rank.)"""
    return sorted(pods, key=_survival)


def _survival(pod: SimPod) -> tuple[bool, bool, float, int, int]:
    ready_since = -pod.ready_changed if pod.ready else 0.0
    return pod.node is not None, pod.ready, ready_since, -pod.most_restarts, -pod.serial


def roll_deployment(workload: Replicas, max_surge: int | str, max_unavailable: int | str, now: float) -> None:
    """Create and delete pods until nothing more can be done now.

    Simpler than Kubernetes: new pods always have the present template, also those that replace an evicted pod of an
    older one or come with a scale-out during a rollout (Kubernetes spreads these over the ReplicaSets in proportion),
    and a scale-in during a rollout takes the pods in their order of deletion from all of them. While it is
    paused, no pod is replaced.
    """
    surge, unavailable = fenceposts(max_surge, max_unavailable, workload.replicas)
    while _resize(workload, surge, now) or (not workload.paused and _replace(workload, unavailable, now)):
        pass


def _resize(workload: Replicas, surge: int, now: float) -> bool:
    """Bring the number of pods to what is wanted, or as near as a rollout allows; whether anything was done."""
    replicas = workload.replicas
    current = [pod for pod in workload.pods if pod.revision == workload.revision]
    rolling = len(current) < len(workload.pods)
    allowed = replicas + surge if rolling and replicas else replicas
    missing = min((replicas if workload.paused else allowed) - len(workload.pods), replicas - len(current))
    for _ in range(missing):
        workload.create(now)
    surplus = deletion_order(workload.pods)[: max(0, len(workload.pods) - allowed)]
    for pod in surplus:
        workload.remove(pod, now)
    return missing > 0 or bool(surplus)


def _replace(workload: Replicas, unavailable: int, now: float) -> bool:
    """Delete pods of older templates as far as availability allows (`reconcileOldReplicaSets`): first those that are
    not ready, then as many as there are ready pods beyond the least; whether anything was done."""
    old = deletion_order(pod for pod in workload.pods if pod.revision != workload.revision)
    ready = sum(pod.ready for pod in workload.pods)
    starting = sum(not pod.ready for pod in workload.pods if pod.revision == workload.revision)
    least = workload.replicas - unavailable
    budget = len(workload.pods) - least - starting
    if not old or budget <= 0:
        return False
    unhealthy = min(budget, sum(not pod.ready for pod in old))
    leaving = old[: unhealthy + max(0, ready - least)]
    for pod in leaving:
        workload.remove(pod, now, replaced=True)
    return bool(leaving)


def roll_stateful_set(workload: Replicas, now: float) -> None:
    """Create and delete pods until nothing more can be done now: one at a time, each waiting until all others are
    ready (podManagementPolicy OrderedReady, RollingUpdate down to the partition). New pods from the lowest ordinal up,
    surplus and outdated ones from the highest down, each outdated one replaced in its place.

    Simpler than Kubernetes: a pod that is lost during a rollout comes back with the present template.
    """
    while _ordered_step(workload, now):
        pass


def _ordered_step(workload: Replicas, now: float) -> bool:
    pods = {pod.ordinal: pod for pod in workload.pods}
    for ordinal in range(workload.replicas):
        if ordinal not in pods:
            workload.create(now, ordinal)
            return True
        if not pods[ordinal].ready:
            return False
    condemned = sorted(ordinal for ordinal in pods if ordinal >= workload.replicas)
    if condemned:
        last = pods[condemned[-1]]
        if not last.ready and not all(pods[ordinal].ready for ordinal in condemned[:-1]):
            return False
        workload.remove(last, now)
        return True
    for ordinal in reversed(range(workload.partition, workload.replicas)):
        if pods[ordinal].revision != workload.revision:
            workload.remove(pods[ordinal], now, replaced=True)
            return True
    return False
