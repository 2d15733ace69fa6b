"""What every way to scale a simulated workload works with, and what it offers. The ways themselves: the operator in
`hvpa`, recommenders that act by themselves in `autoscalers`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Protocol

from hvpa.api.objects.read_models import Hpa, Pod
from hvpa.recommend.hpa.controller import HorizontalAutoscaler, HpaResult, Scale
from hvpa.simulate.cluster.metrics_server import Every, MetricsServer
from hvpa.simulate.cluster.objects import instant
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.measure import Recorder
from hvpa.simulate.model import Scenario


class SimulationError(Exception):
    """A simulation that can't go on."""


class Scaler(Protocol):
    """A policy at work."""

    def step(self, now: float) -> None:
        """Do what is due at this time (seconds since the start)."""
        ...

    @property
    def hpa(self) -> Hpa | None:
        """The HPA that scales the workload, if there is one."""
        ...


class Context:
    """What every policy of a scenario works with: the workload, its metrics, the record, and kube-controller-manager's
    loop over the one HPA."""

    def __init__(self, scenario: Scenario, state: Workload, recorder: Recorder) -> None:
        controllers = scenario.controllers
        self.scenario = scenario
        self.state = state
        self.recorder = recorder
        self.metrics = MetricsServer(scenario.metrics, state, scenario.start)
        self.hpa_period = Every(controllers.hpa.sync_period, controllers.hpa_offset)
        self._autoscaler = HorizontalAutoscaler(controllers.hpa)

    def at(self, now: float) -> dt.datetime:
        """The instant that many seconds after the scenario's start."""
        return instant(self.scenario.start, now)

    def sync_hpa(self, hpa: Hpa, scale: Scale, pods: Sequence[Pod], now: float) -> HpaResult:
        """One sync of the HPA, which is recorded before anything comes of it."""
        outcome = self._autoscaler.sync(hpa, scale, pods, self.metrics, self.at(now))
        published = self.metrics.published
        wants_out = outcome.status.desired_replicas > self.state.replicas
        self.recorder.reactions.hpa_synced(now, published.at if published else None, wants_out=wants_out)
        return outcome
