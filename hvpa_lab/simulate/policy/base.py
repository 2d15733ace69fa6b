"""The protocol of all policies, and the parts that they share: the loops of the HPA controller and the VPA recommender,
and the metrics that they read. The policies are in `hvpa` (the operator) and in `autoscalers` (an HPA and a VPA that
act directly)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Protocol

from hvpa.api.objects.read_models import Hpa, Pod, Vpa, VpaStatusRead
from hvpa_lab.recommend.hpa.controller import HorizontalAutoscaler, HpaResult, Scale
from hvpa_lab.recommend.vpa.recommender import VerticalRecommender
from hvpa_lab.simulate.cluster.metrics_server import Every, MetricsServer
from hvpa_lab.simulate.cluster.objects import instant_at
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import SimContainer, SimPod
from hvpa_lab.simulate.measure import Recorder
from hvpa_lab.simulate.model import Scenario

MILLI = 1000.0


class SimulationError(Exception):
    """The simulation can't continue."""


class Scaler(Protocol):
    """A running policy."""

    def step(self, now: float) -> None:
        """Run the loops that are due at this time (seconds since the start)."""
        ...

    @property
    def hpa(self) -> Hpa | None:
        """The HPA that scales the workload, if any."""
        ...


class Context:
    """The parts that all policies of a scenario share: the workload, its metrics, the recorder, and
    kube-controller-manager's loop over the HPA."""

    def __init__(self, scenario: Scenario, state: SimWorkload, recorder: Recorder) -> None:
        controllers = scenario.controllers
        self.scenario = scenario
        self.state = state
        self.recorder = recorder
        self.metrics = MetricsServer(scenario.metrics, state, scenario.start)
        self.hpa_period = Every(controllers.hpa.sync_period, controllers.hpa_offset)
        self._autoscaler = HorizontalAutoscaler(controllers.hpa)

    def at(self, now: float) -> dt.datetime:
        """The instant `now` seconds after the scenario's start."""
        return instant_at(self.scenario.start, now)

    def sync_hpa(self, hpa: Hpa, scale: Scale, pods: Sequence[Pod], now: float) -> HpaResult:
        """The result of a sync of the HPA. The sync is recorded before its result takes effect."""
        outcome = self._autoscaler.sync(hpa, scale, pods, self.metrics, self.at(now))
        published = self.metrics.published
        wants_out = outcome.status.desired_replicas > self.state.replicas
        self.recorder.reactions.hpa_synced(now, published.at if published else None, wants_out=wants_out)
        return outcome


class VpaLoop:
    """The VPA recommender's loop over the VPA."""

    def __init__(self, context: Context) -> None:
        controllers = context.scenario.controllers
        self._metrics = context.metrics
        self._state = context.state
        self._epoch = context.scenario.start.timestamp()
        self.period = Every(controllers.vpa_period, controllers.vpa_offset)
        self._recommender = VerticalRecommender(controllers.vpa)
        self._known: dict[int, SimPod] = {}
        self._names: set[str] = set()
        self._ooms: list[tuple[SimPod, SimContainer, float]] = []
        self._seen_changes = -1
        self._measured_at = -1.0

    def recommend(self, vpa: Vpa, instant: dt.datetime) -> VpaStatusRead:
        """The status after a loop, in the order of the real recommender: pods, samples, OOMs (since 1.8 also of deleted
        pods), and then the recommendation."""
        gone: Collection[str] = ()
        if self._seen_changes != self._state.changes:
            self._seen_changes = self._state.changes
            gone = self._see_pods(instant.timestamp())
        self._add_samples()
        self._record_ooms()
        for name in gone:
            self._recommender.forget(name)
        return self._recommender.recommend(vpa, instant)

    def _see_pods(self, at: float) -> Collection[str]:
        """Report new pods to the recommender; returns the names of pods that are gone. The recommender identifies pods
        by name, so a StatefulSet's new pod continues its predecessor's history."""
        pods = {pod.serial: pod for pod in self._state.pods if pod.phase == "Running"}
        names = {pod.name for pod in pods.values()}
        gone = self._names - names
        for pod in pods.values():
            if pod.serial not in self._known:
                for container in pod.containers:
                    self._recommender.add_sample(pod.name, container.name, at, None, None)
        self._known, self._names = pods, names
        return gone

    def _add_samples(self) -> None:
        published = self._metrics.published
        if published is None or published.measured_at <= self._measured_at:
            return
        self._measured_at = published.measured_at
        at, add = self._epoch + published.measured_at, self._recommender.add_sample
        for usage in published.usage:
            if usage.pod in self._names:
                add(usage.pod, usage.container, at, usage.cpu / MILLI, usage.memory)

    def _record_ooms(self) -> None:
        """Report containers that were OOMKilled since the last loop, with their memory requests."""
        self._state.on_oom = lambda *killed: self._ooms.append(killed)
        for pod, container, killed_at in self._ooms:
            requested = pod.resources[container.name].requests.get("memory", 0)
            self._recommender.record_oom(pod.name, container.name, self._epoch + killed_at, requested)
        self._ooms.clear()
