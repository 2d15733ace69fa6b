"""An exact model of the VPA recommender of vertical-pod-autoscaler 1.8.1: from measurements of containers to the status
of a VPA.

`histogram` and `samples` store the measurements, and `estimate` calculates a recommendation from them. This module
contains the recommender's loop (`pkg/recommender/routines/recommender.go`, `model/vpa.go`).
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from hvpa.api.objects.read_models import (
    Condition,
    ContainerRecommendation,
    Recommendation,
    Vpa,
    VpaSpecRead,
    VpaStatusRead,
    set_anew,
)
from hvpa_lab.recommend.vpa.estimate import ContainerCap, PodEstimator
from hvpa_lab.recommend.vpa.samples import Aggregate, ContainerHistory
from hvpa_lab.recommend.vpa.settings import VpaSettings

__all__ = ["VerticalRecommender", "VpaSettings"]

RECOMMENDATION_PROVIDED: Final = "RecommendationProvided"
NO_PODS_MATCHED: Final = "NoPodsMatched"
NO_PODS_MESSAGE: Final = "No pods match this VPA object"
COLLECTION_PERIOD: Final = 3600.0
"""Interval in seconds at which old state is deleted (`aggregateContainerStateGCInterval`)."""
_TAKEN_AWAY: Final = frozenset({NO_PODS_MATCHED, "ConfigUnsupported", "ConfigDeprecated"})
"""Conditions that the recommender removes from a VPA with pods and a valid target. The model assumes a valid target."""


class VerticalRecommender:
    """The recommender's state for the pods of a VPA. Times are in seconds since the Unix epoch.

    There is one aggregate per container name. It is deleted when its last CPU sample is `memory_aggregation_interval` ×
    `…_count` (8 days) old. The real recommender has an aggregate per container name and set of pod labels, and adds
    them up in every loop. The result differs only if labels change, as `pod-template-hash` does with a Deployment's
    template. In that case the old pods' history is deleted 8 days after the pods, when its weight is below 1/256. From
    then on, the confidence is based on a later start.
    """

    def __init__(self, settings: VpaSettings = VpaSettings()) -> None:  # noqa: B008  # frozen
        self.settings = settings
        self._estimator = PodEstimator(settings)
        self._aggregates: dict[str, Aggregate] = {}
        self._collected = 0.0
        self._pods: dict[str, dict[str, ContainerHistory]] = {}
        self._spec: VpaSpecRead | None = None
        self._caps: dict[str, ContainerCap] = {}
        self._last = VpaStatusRead()

    def add_sample(
        self, pod: str, container: str, at: float, cpu: float | None, memory: float | None
    ) -> None:
        """Adds the usage of a container at this time: CPU in cores (rounded up to millicores, as in metrics), memory in
        bytes. Discards negative values, CPU values that are not newer than the last, and memory values that are older
        than the last.

        If both are None, the pod exists but is not measured yet; the recommender then recommends the minimum. Requests
        have no effect in this version: every CPU sample has weight 0.1.
        """
        history = self._history(pod, container, at)
        if history.aggregate.dropped and (cpu is not None or memory is not None):
            history.aggregate = self._aggregate(container, at)
        if cpu is not None:
            history.add_cpu(cpu, at)
        if memory is not None:
            history.add_memory(memory, at)

    def record_oom(self, pod: str, container: str, at: float, memory: float) -> None:
        """Records that a container was OOMKilled at this time. `memory` is in bytes: the container's request, which the
        real recommender uses, or its usage as reported by the kubelet when the pod was evicted. Ignores containers that
        `add_sample` never named."""
        history = self._pods.get(pod, {}).get(container)
        if history is not None:
            if history.aggregate.dropped:
                history.aggregate = self._aggregate(container, at)
            history.record_oom(memory, at)

    def forget(self, pod: str) -> None:
        """Removes a pod that is gone. Its history stays."""
        self._pods.pop(pod, None)

    def recommend(self, vpa: Vpa, now: dt.datetime) -> VpaStatusRead:
        """Returns the status that a loop of the recommender writes for the VPA. The VPA's current conditions provide
        the transition times. If nothing changed, returns the same object as last time. Raises `QuantityError` for an
        invalid quantity in a policy."""
        self._read_spec(vpa.spec)
        recommendations = [self._recommendation(name) for name in sorted(self._caps)]
        status = VpaStatusRead(
            recommendation=Recommendation(container_recommendations=recommendations or None),
            conditions=_conditions(vpa.status.conditions, bool(self._pods), bool(recommendations), now),
        )
        if status != self._last:
            self._last = status
        self._collect(now.timestamp())
        return self._last

    def _history(self, pod: str, container: str, at: float) -> ContainerHistory:
        containers = self._pods.setdefault(pod, {})
        history = containers.get(container)
        if history is None:
            history = containers[container] = ContainerHistory(self._aggregate(container, at), self.settings)
        return history

    def _aggregate(self, container: str, at: float) -> Aggregate:
        aggregate = self._aggregates.get(container)
        if aggregate is None:
            aggregate = self._aggregates[container] = Aggregate(self.settings, created=at)
            self._spec = None
        return aggregate

    def _collect(self, now: float) -> None:
        """Deletes old aggregates, and empty aggregates without a container. The next recommendation shows this."""
        if now - self._collected < COLLECTION_PERIOD:
            return
        self._collected = now
        window = self.settings.memory_aggregation_interval * self.settings.memory_aggregation_interval_count
        running = {name for containers in self._pods.values() for name in containers}
        for name, aggregate in list(self._aggregates.items()):
            since = aggregate.created if aggregate.last_sample is None else aggregate.last_sample
            abandoned = aggregate.samples == 0 and name not in running
            if abandoned or now - since >= window:
                aggregate.dropped = True
                del self._aggregates[name]
                self._spec = None

    def _read_spec(self, spec: VpaSpecRead) -> None:
        """Prepares the containers' policies, if the spec or the set of containers has changed."""
        if spec is self._spec:
            return
        policies = {name: spec.policy(name) for name in self._aggregates}
        self._caps = {
            name: ContainerCap(policy, self.settings)
            for name, policy in policies.items()
            if policy.mode != "Off"
        }
        self._spec = spec

    def _recommendation(self, container: str) -> ContainerRecommendation:
        amounts = self._estimator.estimate(self._aggregates[container], len(self._caps))
        return self._caps[container].recommendation(container, *amounts)


def _conditions(
    before: list[Condition] | None, has_pods: bool, provided: bool, now: dt.datetime
) -> list[Condition]:
    """Returns the conditions, by type: those that this loop sets, and others (LowConfidence and FetchingHistory are not
    set)."""
    old = {condition.type: condition for condition in before or ()}
    reason, message = ("", "") if has_pods else (NO_PODS_MATCHED, NO_PODS_MESSAGE)
    settings = {RECOMMENDATION_PROVIDED: ("True", "", "") if provided else ("False", reason, message)}
    if not has_pods:
        settings[NO_PODS_MATCHED] = ("True", reason, message)
    conditions = {kind: condition for kind, condition in old.items() if kind not in _TAKEN_AWAY}
    conditions |= {kind: set_anew(old.get(kind), kind, setting, now) for kind, setting in settings.items()}
    return [conditions[kind] for kind in sorted(conditions)]
