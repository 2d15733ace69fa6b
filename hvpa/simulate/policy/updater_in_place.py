"""The VPA's updater in mode InPlaceOrRecreate: which pods it resizes in one loop, and which it evicts because they
can't be (vertical-pod-autoscaler 1.7.3, `pkg/updater/logic/updater.go` and `pkg/updater/restriction/*`). As long as
`--in-place-skip-disruption-budget` is at its default, false, a resize counts as an eviction does: the same minimum of
replicas, the same tolerance.

Times in seconds of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from hvpa.api.objects.read_models import Vpa
from hvpa.simulate.cluster.state import SimPod
from hvpa.simulate.policy.updater import Budget, UpdaterSettings, by_priority, live_pods

IN_PLACE_OR_RECREATE: Final = "InPlaceOrRecreate"
DEFERRED_TIMEOUT: Final = 300.0
"""Seconds after which a deferred resize counts as failed: `DeferredResizeUpdateTimeout`
(`pkg/updater/restriction/pods_inplace_restriction.go`)."""
Decision = Literal["approved", "deferred", "evict"]


class Updates(NamedTuple):
    """What one loop does: pods to resize in place, and pods to evict, each in this order."""

    resize: list[SimPod]
    evict: list[SimPod]


class InPlaceUpdater:
    """What the updater remembers of one VPA's pods between its loops."""

    def __init__(self, settings: UpdaterSettings | None = None) -> None:
        self._settings = settings or UpdaterSettings()
        self._seen: dict[str, float] = {}
        """When a pod of this name was first seen with a resize that waits; never forgotten, as in the updater
        (`lastInPlaceAttemptTimeMap`): a later one may be given up at once."""

    def loop(
        self,
        pods: Sequence[SimPod],
        vpa: Vpa,
        replicas: int,
        now: float,
        is_refused: Callable[[SimPod], bool],
    ) -> Updates:
        """What is done now. `replicas` is the workload's configured count; `is_refused`: whether the API
        server would not change a pod so, whereupon the pod is evicted. Raises `QuantityError`."""
        updates = Updates([], [])
        live = live_pods(pods)
        if len(live) < self._settings.min_replicas or replicas == 0 or vpa.status.recommendation is None:
            return updates
        budget = Budget(live, replicas, self._settings.eviction_tolerance)
        able = [pod for pod in live if self._decide(pod, budget, now) != "deferred"]
        given_up: list[SimPod] = []
        for pod in by_priority(able, vpa, now, self._settings):
            decision = self._decide(pod, budget, now)
            if decision == "evict" or (decision == "approved" and is_refused(pod)):
                given_up.append(pod)
            elif decision == "approved":
                budget.spent += 1
                updates.resize.append(pod)
        for pod in given_up:
            if self._decide(pod, budget, now) != "deferred":
                budget.spent += 1
                updates.evict.append(pod)
        return updates

    def _decide(self, pod: SimPod, budget: Budget, now: float) -> Decision:
        """What may be done with the pod (`CanInPlaceUpdate`)."""
        if pod.resize is not None:
            first = self._seen.setdefault(pod.name, now)
            waited = pod.resize.state == "Deferred" and now - first <= DEFERRED_TIMEOUT
            return "evict" if budget.allows and not waited else "deferred"
        return "approved" if budget.allows else "deferred"
