"""The recommenders of a simulated cluster: when the HPA controller and the VPA recommender look, and at what."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from hvpa.api.objects.read_models import Hpa, Pod, Vpa, VpaStatusRead
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, HpaOutcome, Scale
from hvpa.recommend.vpa.recommender import VerticalRecommender
from hvpa.simulate.cluster import pods as physics
from hvpa.simulate.cluster.metrics_server import MetricsServer
from hvpa.simulate.model import Controllers

MILLI = 1000.0


class Every:
    """A period: tells once each time it has come round. The first time is `offset` seconds after the start."""

    __slots__ = ("_due", "_period")

    def __init__(self, period: float, offset: float = 0.0) -> None:
        self._period = period
        self._due = offset

    def due(self, now: float) -> bool:
        """Whether it has come round; what was missed is not made up for."""
        if now < self._due:
            return False
        self._due += ((now - self._due) // self._period + 1) * self._period
        return True


class HpaController:
    """kube-controller-manager's loop over the one HPA."""

    def __init__(self, controllers: Controllers, metrics: MetricsServer) -> None:
        self._metrics = metrics
        self._every = Every(controllers.hpa.sync_period, controllers.hpa_offset)
        self._autoscaler = HorizontalAutoscaler(controllers.hpa)

    def due(self, now: float) -> bool:
        """Whether the sync period has come round."""
        return self._every.due(now)

    def sync(self, hpa: Hpa, scale: Scale, pods: Sequence[Pod], instant: dt.datetime) -> HpaOutcome:
        """One sync of the HPA."""
        return self._autoscaler.sync(hpa, scale, pods, self._metrics, instant)


class VpaController:
    """The VPA recommender's loop over the one VPA."""

    def __init__(
        self, controllers: Controllers, metrics: MetricsServer, state: physics.Workload, start: dt.datetime
    ) -> None:
        self._metrics = metrics
        self._state = state
        self._epoch = start.timestamp()
        self._every = Every(controllers.vpa_period)
        self._recommender = VerticalRecommender(controllers.vpa)
        self._known: dict[int, physics.SimPod] = {}
        self._names: set[str] = set()
        self._ooms: list[tuple[physics.SimPod, physics.SimContainer, float]] = []
        self._listening = False
        self._seen_changes = -1
        self._measured_at = -1.0

    def due(self, now: float) -> bool:
        """Whether the recommender's period has come round."""
        return self._every.due(now)

    def recommend(self, vpa: Vpa, instant: dt.datetime) -> VpaStatusRead:
        """One loop, in the real one's order: pods, samples, OOMs, and then the recommendation."""
        changed = self._seen_changes != self._state.changes
        if changed:
            self._seen_changes = self._state.changes
            self._see_pods(instant.timestamp())
        self._add_samples()
        self._record_ooms()
        return self._recommender.recommend(vpa, instant)

    def _see_pods(self, at: float) -> None:
        """Tell of pods that are new and of pods that are gone. A StatefulSet's pod has its predecessor's name, and that
        is how the recommender knows it."""
        pods = {pod.serial: pod for pod in self._state.pods if pod.phase == "Running"}
        gone = [pod for serial, pod in self._known.items() if serial not in pods]
        names = {pod.name for pod in pods.values()}
        for pod in gone:
            if pod.name not in names:
                self._recommender.forget(pod.name)
        for pod in pods.values():
            if pod.serial not in self._known:
                for container in pod.containers:
                    self._recommender.add_sample(pod.name, container.name, at, None, None)
        self._known, self._names = pods, names

    def _add_samples(self) -> None:
        published = self._metrics.published
        if published is None or published.measured_at <= self._measured_at:
            return
        self._measured_at = published.measured_at
        at, add = self._epoch + published.measured_at, self._recommender.add_sample
        for one in published.usage:
            if one.pod in self._names:
                add(one.pod, one.container, at, one.cpu / MILLI, one.memory)

    def _record_ooms(self) -> None:
        """Tell of containers that were OOMKilled since the last loop, with what they had requested."""
        if not self._listening:
            self._listening = True
            self._state.on_oom = lambda *killed: self._ooms.append(killed)
        for pod, container, killed_at in self._ooms:
            requested = pod.resources[container.name].requests.get("memory", 0)
            self._recommender.record_oom(pod.name, container.name, self._epoch + killed_at, requested)
        self._ooms.clear()
