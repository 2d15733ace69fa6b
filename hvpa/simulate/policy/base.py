"""What every way to scale a simulated workload is given, and what is asked of it. The ways themselves: the operator in
`hvpa`, recommenders that act by themselves in `autoscalers`."""

from __future__ import annotations

from typing import Protocol

from hvpa.api.objects.read_models import Hpa
from hvpa.recommend.hpa.controller import HpaOutcome
from hvpa.simulate.cluster import pods as physics
from hvpa.simulate.cluster.metrics_server import MetricsServer
from hvpa.simulate.cluster.objects import Instants
from hvpa.simulate.measure import Recorder
from hvpa.simulate.model import Scenario
from hvpa.simulate.reactions import cpu_target


class SimulationError(Exception):
    """A simulation that can't go on."""


class Scaler(Protocol):
    """A policy at work."""

    def step(self, now: float) -> None:
        """Do what is due at this time (seconds since the start)."""
        ...

    def cpu_target(self) -> float | None:
        """The CPU in millicores per pod that an HPA keeps to; None where there is no such HPA."""
        ...


class Surroundings:
    """What every policy of a scenario works with."""

    def __init__(self, scenario: Scenario, state: physics.Workload, recorder: Recorder) -> None:
        self.scenario = scenario
        self.state = state
        self.recorder = recorder
        self.instants = Instants(scenario.start)
        self.metrics = MetricsServer(scenario.metrics, state, self.instants)

    def hpa_looked(self, now: float, outcome: HpaOutcome) -> None:
        """Note a sync of the HPA, before anything comes of it."""
        published = self.metrics.published
        wants_out = outcome.status.desired_replicas > self.state.replicas
        self.recorder.answers.hpa_looked(now, published.at if published else None, wants_out=wants_out)


class CpuTarget:
    """The CPU that an HPA keeps each pod at, reckoned anew only when the template changes."""

    def __init__(self, state: physics.Workload) -> None:
        self._state = state
        self._revision = -1
        self._value: float | None = None

    def of(self, hpa: Hpa | None) -> float | None:
        """In millicores; None where there is no HPA, or no such target."""
        if hpa is None:
            return None
        if self._revision != self._state.revision:
            self._revision, self._value = self._state.revision, cpu_target(hpa, self._state)
        return self._value
