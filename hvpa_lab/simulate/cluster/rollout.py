"""The workload's controllers: the pods that a Deployment or a StatefulSet creates and deletes next.

The rules are those of kube-controller-manager 1.37 (`pkg/controller/deployment/rolling.go`,
`pkg/controller/statefulset/stateful_set_control.go`, `controller_utils.go: ActivePodsWithRanks`), without delay, and
simpler where noted. minReadySeconds is 0, so ready pods are available. Deleted pods do not count, regardless of their
grace period.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hvpa_lab.simulate.cluster.state import SimPod


class Replicas(Protocol):
    """The controller's view of the workload, and its actions."""

    replicas: int
    revision: int
    paused: bool
    partition: int
    pods: list[SimPod]

    def create(self, now: float, ordinal: int | None = None) -> None:
        """Creates a pod from the current template; in a StatefulSet, with its ordinal."""
        ...

    def remove(self, pod: SimPod, now: float, replaced: bool = False) -> None:
        """Deletes the pod; `replaced`: another pod takes its place."""
        ...


def scaled_count(value: int | str, replicas: int, up: bool) -> int:
    """Returns a count, or a percentage ("25%") of the replicas, rounded up or down
    (`GetScaledValueFromIntOrPercent`)."""
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-percent * replicas // 100) if up else percent * replicas // 100


def fenceposts(max_surge: int | str, max_unavailable: int | str, replicas: int) -> tuple[int, int]:
    """Returns the surge and the unavailable replicas of a Deployment during a rollout (`ResolveFenceposts`). The surge
    is rounded up, the unavailable replicas down. If both are 0, a single pod may be unavailable. Example: 25 % and 25 %
    of 10 replicas give 3 and 2."""
    surge = scaled_count(max_surge, replicas, up=True)
    unavailable = scaled_count(max_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, replicas)


def deletion_order(pods: Iterable[SimPod]) -> list[SimPod]:
    """Returns the pods in the order in which a ReplicaSet deletes them: unscheduled before scheduled, unready before
    ready, a lower deletion cost before a higher, ready for a shorter time before longer, more restarts before fewer,
    newer before older. (Times are compared exactly, not by order of magnitude, and pods on the same node have no
    rank.)"""
    return sorted(pods, key=_survival)


def _survival(pod: SimPod) -> tuple[bool, bool, int, float, int, int]:
    ready_since = -pod.ready_changed if pod.ready else 0.0
    cost = int(pod.deletion_cost or 0)
    return pod.node is not None, pod.ready, cost, ready_since, -pod.most_restarts, -pod.serial


def roll_deployment(workload: Replicas, max_surge: int | str, max_unavailable: int | str, now: float) -> None:
    """Creates and deletes pods until nothing more can be done now.

    It is simpler than Kubernetes. New pods always have the current template, even if they replace an evicted pod of an
    older template or come with a scale-out during a rollout (Kubernetes spreads these over the ReplicaSets in
    proportion). A scale-in during a rollout deletes pods of all templates in their deletion order. A paused workload
    replaces no pod.
    """
    surge, unavailable = fenceposts(max_surge, max_unavailable, workload.replicas)
    while _resize(workload, surge, now) or (not workload.paused and _replace(workload, unavailable, now)):
        pass


def _resize(workload: Replicas, surge: int, now: float) -> bool:
    """Moves the number of pods towards the wanted number, as far as a rollout allows; returns whether it changed
    anything."""
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
    """Deletes pods of older templates as far as availability allows (`reconcileOldReplicaSets`): first unready pods,
    then ready pods beyond the minimum. Returns whether it deleted any."""
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
    """Creates and deletes pods until nothing more can be done now: a single pod at a time, after all others are ready
    (podManagementPolicy OrderedReady, RollingUpdate down to the partition). New pods start from the lowest ordinal;
    surplus and outdated pods are deleted from the highest, and outdated pods are replaced.

    Simpler than Kubernetes: a pod that is lost during a rollout is created again from the current template.
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
