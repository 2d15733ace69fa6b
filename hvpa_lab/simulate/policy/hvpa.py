"""The operator in a simulation: its real reconciler with an in-memory cluster port, run without an event loop, and the
HPA and VPA that it deploys."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar, cast

from hvpa.api.hvpa.resource import parse_spec
from hvpa.api.objects.read_models import Hpa, Meta, Workload
from hvpa.core.actuation.desired import size_of_new_pods
from hvpa.core.invariants import Violation
from hvpa.core.model import Decision, Event, ResourceRequirements, Settings
from hvpa.core.workload.pod_level import shared_in_template, with_pod
from hvpa.reconcile.ports import Key
from hvpa.reconcile.reconciler import Reconciler
from hvpa.reconcile.telemetry import Silent
from hvpa_lab.recommend.hpa.controller import Scale
from hvpa_lab.simulate.cluster.kubelets import SimulatedKubelets
from hvpa_lab.simulate.cluster.port import SimulatedCluster, VirtualClock
from hvpa_lab.simulate.cluster.state import Template
from hvpa_lab.simulate.measure import Recorder
from hvpa_lab.simulate.model import Policy
from hvpa_lab.simulate.policy.base import Context, SimulationError, VpaLoop

T = TypeVar("T")
MOST_RECONCILES: Final = 50
"""Maximum reconciles of an Hvpa at the same instant: with more, it never comes to rest."""
_HVPA_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Scaled": ("Replicas", "Requests"),
    "ScaledOut": ("Replicas",),
    "ScaledIn": ("Replicas",),
    "ScaledUp": ("Requests",),
    "ScaledDown": ("Requests",),
    "ScalingBlocked": ("Blocked",),
    "ScalingUnblocked": ("Blocked",),
}
"""Kinds of simulation events by the reason of the Hvpa's Event. With any other reason, the kind is `Event`."""


class _Telemetry(Silent):
    """Telemetry of the simulated operator: records the axes that a decision changes and the invariants it breaks."""

    checks_invariants = True

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def violated(self, key: Key, violation: Violation) -> None:
        """Record the violation as an event."""
        self._recorder.record("Violation", violation.invariant, violation.what)

    def decided(self, key: Key, decision: Decision, workload: Workload | None) -> None:
        """Record the changes: in a simulation, no write is refused."""
        if decision.applied:
            for axis in ("horizontal", "vertical"):
                directions = [
                    direction for changed_axis, direction in decision.applied if changed_axis == axis
                ]
                if directions:
                    self._recorder.scaled(axis, *directions)


class HvpaScaler:
    """The operator's real reconciler, and the HPA and VPA that it deploys."""

    def __init__(self, policy: Policy, context: Context) -> None:
        assert policy.hvpa is not None
        spec, problems = parse_spec(policy.hvpa["spec"])
        if spec is None:
            raise SimulationError(f"policy {policy.name}: {problems[0]}")
        scenario, workload = context.scenario, context.state.model
        if workload.resize != "InPlace":
            spec = spec.without_resizes()
        if spec.strategy.in_place:
            if workload.resize != "InPlace":
                why = "spec.updateStrategy resizes pods in place, so the workload's resize must be InPlace"
                raise SimulationError(f"policy {policy.name}: {why}")
            context.state.admission = self._sized
        named = cast(Mapping[str, object], policy.hvpa.get("metadata", {}))
        name = str(named.get("name", workload.name))
        metadata = Meta(name=name, namespace=workload.namespace, creation_timestamp=scenario.start)
        self._name = policy.name
        self._context = context
        self._clock = VirtualClock(scenario.start)
        kubelets = SimulatedKubelets(context.state, scenario.metrics.kubelets, workload.seed)
        self._cluster = SimulatedCluster(
            spec, metadata, context.state, scenario.start, self._record, kubelets
        )
        settings = Settings(hpa_tolerance_ppm=round(scenario.controllers.hpa.tolerance * 1_000_000))
        self._reconciler = Reconciler(self._cluster, self._clock, settings, _Telemetry(context.recorder))
        self._vpa = VpaLoop(context)
        self._has_fast_signal = spec.polls_kubelets
        self._recheck: float | None = None

    def step(self, now: float) -> None:
        """See the protocol."""
        cluster, instant = self._cluster, self._context.at(now)
        self._clock.instant = instant
        cluster.set_time(now, instant)
        if self._context.hpa_period.due(now):
            self._sync_hpa(now)
        if self._vpa.period.due(now) and cluster.vpa is not None:
            cluster.set_vpa_status(self._vpa.recommend(cluster.vpa, instant))
        if self._has_fast_signal and cluster.kubelets.advance(now, instant):
            cluster.awake = True
        if cluster.changed() or (self._recheck is not None and now >= self._recheck):
            self._reconcile(now)

    @property
    def hpa(self) -> Hpa | None:
        """See the protocol."""
        return self._cluster.hpa

    def _sized(self, template: Template) -> Template:
        """The resources of new pods: the decided size, for the resources that the template sets."""
        own = shared_in_template(self._cluster.workload.read()).spec.template.spec
        sizes = with_pod(own, size_of_new_pods(self._cluster.hvpa().status.desired))
        return {
            name: ResourceRequirements(
                {
                    resource: size.requests.get(resource, value)
                    for resource, value in requirements.requests.items()
                },
                {
                    resource: size.limits.get(resource, value)
                    for resource, value in requirements.limits.items()
                },
            )
            for name, requirements in template.items()
            for size in (sizes.get(name, requirements),)
        }

    def _sync_hpa(self, now: float) -> None:
        """Sync the HPA. Until `spec.replicas` and the status are set, `/scale` fails and the HPA does nothing."""
        cluster, hvpa = self._cluster, self._cluster.hvpa()
        hpa, status = cluster.hpa, hvpa.status
        if hpa is None or hvpa.spec is None or hvpa.spec.replicas is None or status.replicas is None:
            return
        scale = Scale(hvpa.spec.replicas, status.replicas, status.target_selector or "")
        outcome = self._context.sync_hpa(hpa, scale, cluster.pods.read(), now)
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
        raise SimulationError(f"policy {self._name}: the Hvpa does not settle at {self._clock.instant}")

    def _record(self, event: Event) -> None:
        for kind in _HVPA_KINDS.get(event.reason, ("Event",)):
            self._context.recorder.record(kind, event.reason, event.message)


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    coroutine.close()
    raise SimulationError("a simulated cluster must never wait")
