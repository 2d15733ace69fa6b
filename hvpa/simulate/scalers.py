"""The ways to scale a simulated workload: the operator itself behind its cluster port, or recommenders that act."""

from __future__ import annotations

import datetime as dt
from collections.abc import Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from hvpa.api.hvpa import parse_spec
from hvpa.api.objects import Hpa, HpaStatusRead, Meta, Vpa, Workload, condition
from hvpa.core.model import ContainerResources, Decision, Event, Settings
from hvpa.recommend.hpa import Scale
from hvpa.reconcile.ports import Key
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Silent
from hvpa.simulate import pods as physics
from hvpa.simulate.admission import admitted
from hvpa.simulate.cluster import SimulatedCluster, VirtualClock
from hvpa.simulate.measure import Recorder
from hvpa.simulate.metrics_server import MetricsServer
from hvpa.simulate.model import Policy, Scenario
from hvpa.simulate.objects import Instants, PodObjects, selector_text
from hvpa.simulate.recommenders import Every, HpaController, VpaController
from hvpa.simulate.rises import cpu_target
from hvpa.simulate.updater import to_evict

T = TypeVar("T")
PPM: Final = 1_000_000
SCALING_ACTIVE: Final = "ScalingActive"
MOST_RECONCILES: Final = 50
"""Reconciles at one instant after which an Hvpa is taken for one that never comes to rest."""
_HVPA_KINDS: Final[Mapping[str, str]] = {
    "ScaledOut": "Replicas",
    "ScaledIn": "Replicas",
    "ScaledUp": "Requests",
    "ScaledDown": "Requests",
    "ScalingBlocked": "Blocked",
    "ScalingUnblocked": "Blocked",
}
"""Kinds of simulation events by the reasons of the Hvpa's Events; any other is a plain `Event`."""


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


def scaler(policy: Policy, around: Surroundings) -> Scaler:
    """The scaler of a policy."""
    return HvpaScaler(policy, around) if policy.hvpa is not None else ActingScaler(policy, around)


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


class _Heard(Silent):
    """Telemetry of the simulated operator: which axes a decision changed."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """Note the changes; nothing can refuse them here."""
        if decision.applied:
            for axis in ("horizontal", "vertical"):
                directions = [direction for one, direction in decision.applied if one == axis]
                if directions:
                    self._recorder.scaled(axis, *directions)


class HvpaScaler:
    """The operator's own reconciler, and the HPA and VPA that it deploys."""

    def __init__(self, policy: Policy, around: Surroundings) -> None:
        assert policy.hvpa is not None
        spec, problems = parse_spec(policy.hvpa["spec"])
        if spec is None:
            raise SimulationError(f"policy {policy.name}: {problems[0]}")
        scenario, workload = around.scenario, around.state.model
        named = cast(Mapping[str, object], policy.hvpa.get("metadata", {}))
        name = str(named.get("name", workload.name))
        metadata = Meta(name=name, namespace=workload.namespace, creation_timestamp=scenario.start)
        self._name = policy.name
        self._around = around
        self._clock = VirtualClock(scenario.start)
        self._cluster = SimulatedCluster(spec, metadata, around.state, around.instants, self._tell)
        settings = Settings(hpa_tolerance_ppm=round(scenario.controllers.hpa.tolerance * PPM))
        self._reconciler = Reconciler(self._cluster, self._clock, settings, _Heard(around.recorder))
        self._hpa = HpaController(scenario.controllers, around.metrics)
        self._vpa = VpaController(scenario.controllers, around.metrics, around.state, scenario.start)
        self._target = CpuTarget(around.state)
        self._recheck: float | None = None

    def step(self, now: float) -> None:
        """See the protocol."""
        cluster, instant = self._cluster, self._around.instants.at(now)
        self._clock.instant = instant
        cluster.set_time(now, instant)
        if self._hpa.due(now):
            self._sync_hpa(now, instant)
        if self._vpa.due(now) and cluster.vpa is not None:
            cluster.set_vpa_status(self._vpa.recommend(cluster.vpa, instant))
        if cluster.changed() or (self._recheck is not None and now >= self._recheck):
            self._reconcile(now)

    def cpu_target(self) -> float | None:
        """See the protocol."""
        return self._target.of(self._cluster.hpa)

    def _sync_hpa(self, now: float, instant: dt.datetime) -> None:
        """One sync; before the mailbox and the status are there `/scale` fails, and nothing happens."""
        cluster, hvpa = self._cluster, self._cluster.hvpa()
        hpa, status = cluster.hpa, hvpa.status
        if hpa is None or hvpa.spec is None or hvpa.spec.replicas is None or status.replicas is None:
            return
        scale = Scale(hvpa.spec.replicas, status.replicas, status.target_selector or "")
        outcome = self._hpa.sync(hpa, scale, cluster.pods.read(), instant)
        wanted = outcome.status.desired_replicas
        published = self._around.metrics.published
        self._around.recorder.answers.hpa_looked(
            now, published.at if published else None, wants_out=wanted > self._around.state.replicas
        )
        if outcome.replicas is not None:
            cluster.scale_hvpa(outcome.replicas)
        cluster.set_hpa_status(outcome.status)

    def _reconcile(self, now: float) -> None:
        cluster = self._cluster
        for _ in range(MOST_RECONCILES):
            cluster.awake = False
            result = run_to_end(self._reconciler.reconcile(cluster.key))
            if result.outcome != "done":
                error = cluster.hvpa().status.last_error
                raise SimulationError(
                    f"policy {self._name}: {error.description if error else result.outcome}"
                )
            self._recheck = None if result.wait is None else now + result.wait.total_seconds()
            if not cluster.changed():
                return
        raise SimulationError(f"policy {self._name}: the Hvpa does not come to rest at {self._clock.instant}")

    def _tell(self, event: Event) -> None:
        kind = _HVPA_KINDS.get(event.reason, "Event")
        self._around.recorder.tell(kind, event.reason, event.message)


class ActingScaler:
    """An HPA, a VPA or both, each acting by itself on the workload; with neither, the size stays as it is."""

    def __init__(self, policy: Policy, around: Surroundings) -> None:
        scenario = around.scenario
        self._around = around
        self._hpa = _hpa(policy.hpa, scenario) if policy.hpa is not None else None
        self._vpa = _vpa(policy.vpa, scenario) if policy.vpa is not None else None
        self._hpa_controller = HpaController(scenario.controllers, around.metrics)
        self._vpa_controller = VpaController(
            scenario.controllers, around.metrics, around.state, scenario.start
        )
        self._updater = Every(scenario.controllers.updater_period, scenario.controllers.updater_period)
        self._pods = PodObjects(around.state, around.instants)
        self._target = CpuTarget(around.state)
        self._acts = self._vpa is not None and _acts(self._vpa)
        self._admitted: Mapping[str, ContainerResources] = around.state.template
        if self._acts:
            around.state.admission = self._admit

    def step(self, now: float) -> None:
        """See the protocol."""
        if self._hpa is None and self._vpa is None:
            return
        instant = self._around.instants.at(now)
        if self._hpa is not None and self._hpa_controller.due(now):
            self._sync_hpa(self._hpa, now, instant)
        if self._vpa is not None:
            if self._vpa_controller.due(now):
                status = self._vpa_controller.recommend(self._vpa, instant)
                if status is not self._vpa.status:
                    self._vpa = msgspec.structs.replace(self._vpa, status=status)
            if self._acts and self._updater.due(now):
                self._evict(self._vpa, now)

    def cpu_target(self) -> float | None:
        """See the protocol."""
        return self._target.of(self._hpa)

    def _sync_hpa(self, hpa: Hpa, now: float, instant: dt.datetime) -> None:
        state, recorder = self._around.state, self._around.recorder
        before = state.replicas
        scale = Scale(before, len(state.pods), selector_text(state.model.name))
        outcome = self._hpa_controller.sync(hpa, scale, self._pods.read(), instant)
        wanted = outcome.status.desired_replicas
        published = self._around.metrics.published
        recorder.answers.hpa_looked(now, published.at if published else None, wants_out=wanted > before)
        if outcome.status is not hpa.status:
            self._tell_active(hpa.status, outcome.status)
            self._hpa = msgspec.structs.replace(hpa, status=outcome.status)
        if outcome.replicas is not None and outcome.replicas != before:
            state.scale(outcome.replicas, now)
            recorder.scaled("horizontal", "up" if outcome.replicas > before else "down")
            reason, message = next(
                ((reason, text) for _, reason, text in outcome.events if reason == "SuccessfulRescale"),
                ("SuccessfulRescale", ""),
            )
            recorder.tell("Replicas", reason, f"{before} to {outcome.replicas}; {message}")

    def _tell_active(self, before: HpaStatusRead, after: HpaStatusRead) -> None:
        """An HPA that can't scale says why; nobody else would."""
        old, new = condition(before.conditions, SCALING_ACTIVE), condition(after.conditions, SCALING_ACTIVE)
        if new is None or (old is None and new.status == "True"):
            return
        if old is None or (old.status, old.message) != (new.status, new.message):
            self._around.recorder.tell("Condition", new.reason, new.message)

    def _admit(self, template: Mapping[str, ContainerResources]) -> Mapping[str, ContainerResources]:
        """The VPA's webhook: a new pod gets what is recommended."""
        assert self._vpa is not None
        given = admitted(template, self._vpa)
        if given != self._admitted:
            ups = any(
                amount > self._admitted[name].requests.get(resource, 0)
                for name, one in given.items()
                for resource, amount in one.requests.items()
            )
            self._around.recorder.scaled("vertical", "up" if ups else "down")
            self._admitted = given
        return given

    def _evict(self, vpa: Vpa, now: float) -> None:
        state = self._around.state
        for pod in to_evict(state.pods, vpa, state.replicas, now):
            state.evict(pod, now)
            self._around.recorder.tell("Evicted", "EvictedByVPA", f"{pod.name} was evicted to be resized")


def _acts(vpa: Vpa) -> bool:
    policy = vpa.spec.update_policy
    return policy is None or policy.update_mode != "Off"


def _hpa(spec: Mapping[str, object], scenario: Scenario) -> Hpa:
    workload = scenario.workload
    target = {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name}
    return Hpa(metadata=_owned_meta(scenario), raw_spec=_raw({**spec, "scaleTargetRef": target}))


def _vpa(spec: Mapping[str, object], scenario: Scenario) -> Vpa:
    workload = scenario.workload
    target = {"apiVersion": "apps/v1", "kind": workload.kind, "name": workload.name}
    return Vpa(metadata=_owned_meta(scenario), raw_spec=_raw({**spec, "targetRef": target}))


def _owned_meta(scenario: Scenario) -> Meta:
    return Meta(
        name=scenario.workload.name,
        namespace=scenario.workload.namespace,
        uid="recommender",
        resource_version="1",
        creation_timestamp=scenario.start,
    )


def _raw(document: Mapping[str, object]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    coroutine.close()
    raise SimulationError("a simulated cluster must never wait")
