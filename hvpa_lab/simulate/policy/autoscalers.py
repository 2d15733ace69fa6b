"""An HPA and a VPA that act on a simulated workload directly, as they do without an Hvpa: the HPA through `/scale`, the
VPA through its updater and its webhook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from hvpa.api.objects.read_models import Hpa, HpaStatusRead, Vpa, VpaMeta, condition
from hvpa.core.model import ResourceRequirements
from hvpa_lab.recommend.hpa.controller import Scale
from hvpa_lab.simulate.cluster.metrics_server import Every
from hvpa_lab.simulate.cluster.objects import PodObjects, raw, selector_text
from hvpa_lab.simulate.cluster.resizes import is_refused
from hvpa_lab.simulate.cluster.state import SimPod
from hvpa_lab.simulate.model import Policy
from hvpa_lab.simulate.policy.admission import admitted, update_mode
from hvpa_lab.simulate.policy.base import Context, VpaLoop
from hvpa_lab.simulate.policy.updater import Updater

SCALING_ACTIVE: Final = "ScalingActive"
RESCALED: Final = "SuccessfulRescale"


class ActingScaler:
    """An HPA, a VPA or both, each acting on the workload directly. Without either, the size is fixed."""

    def __init__(self, policy: Policy, context: Context) -> None:
        scenario, workload = context.scenario, context.scenario.workload
        target = {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name}
        metadata = VpaMeta(
            name=workload.name,
            namespace=workload.namespace,
            uid="recommender",
            resource_version="1",
            creation_timestamp=scenario.start,
        )
        self._context = context
        self.hpa: Hpa | None = None
        self._vpa: Vpa | None = None
        if policy.hpa is not None:
            self.hpa = Hpa(metadata, raw({**policy.hpa, "scaleTargetRef": target}))
        if policy.vpa is not None:
            self._vpa = Vpa(metadata, raw({**policy.vpa, "targetRef": target}))
        self._vpa_controller = VpaLoop(context)
        controllers = scenario.controllers
        self._updater = Every(controllers.updater_period, controllers.updater_offset)
        self._pods = PodObjects(context.state, scenario.start)
        self._vpa_updater = Updater()
        self._acts = self._vpa is not None and update_mode(self._vpa) != "Off"
        self._admitted: Mapping[str, ResourceRequirements] = context.state.pod_resources
        if self._acts:
            context.state.admission = self._admit

    def step(self, now: float) -> None:
        """See the protocol."""
        if self.hpa is not None and self._context.hpa_period.due(now):
            self._sync_hpa(self.hpa, now)
        if self._vpa is not None:
            if self._vpa_controller.period.due(now):
                status = self._vpa_controller.recommend(self._vpa, self._context.at(now))
                if status is not self._vpa.status:
                    self._vpa = msgspec.structs.replace(self._vpa, status=status)
            if self._acts and self._updater.due(now):
                self._update(self._vpa, now)

    def _sync_hpa(self, hpa: Hpa, now: float) -> None:
        state, recorder = self._context.state, self._context.recorder
        before = state.replicas
        scale = Scale(before, len(state.pods), selector_text(state.model.name))
        outcome = self._context.sync_hpa(hpa, scale, self._pods.read(), now)
        if outcome.status is not hpa.status:
            self._record_condition(hpa.status, outcome.status)
            self.hpa = msgspec.structs.replace(hpa, status=outcome.status)
        if outcome.replicas is not None and outcome.replicas != before:
            state.scale(outcome.replicas, now)
            recorder.scaled("horizontal", "up" if outcome.replicas > before else "down")
            (message,) = (text for _, reason, text in outcome.events if reason == RESCALED)
            recorder.record("Replicas", RESCALED, f"{before} to {outcome.replicas}; {message}")

    def _record_condition(self, before: HpaStatusRead, after: HpaStatusRead) -> None:
        """Record the reason why an HPA can't scale, which no other event reports."""
        old, new = condition(before.conditions, SCALING_ACTIVE), condition(after.conditions, SCALING_ACTIVE)
        if new is None or (old is None and new.status == "True"):
            return
        if old is None or (old.status, old.message) != (new.status, new.message):
            self._context.recorder.record("Condition", new.reason, new.message)

    def _admit(self, template: Mapping[str, ResourceRequirements]) -> Mapping[str, ResourceRequirements]:
        """The resources of a new pod, as recommended: the VPA's webhook."""
        assert self._vpa is not None
        given = admitted(template, self._vpa)
        if given != self._admitted:
            ups = any(
                amount > self._admitted[name].requests.get(resource, 0)
                for name, requirements in given.items()
                for resource, amount in requirements.requests.items()
            )
            self._context.recorder.scaled("vertical", "up" if ups else "down")
            self._admitted = given
        return self._admitted

    def _update(self, vpa: Vpa, now: float) -> None:
        """Run a loop of the updater."""
        state, record = self._context.state, self._context.recorder.record
        wanted: dict[int, Mapping[str, ResourceRequirements]] = {}  # by id of pod.resources

        def resources(pod: SimPod) -> Mapping[str, ResourceRequirements]:
            if id(pod.resources) not in wanted:
                wanted[id(pod.resources)] = admitted(pod.resources, vpa)
            return wanted[id(pod.resources)]

        updates = self._vpa_updater.loop(
            state.pods, vpa, state.replicas, now, lambda pod: is_refused(pod.resources, resources(pod))
        )
        changes = [(pod, resources(pod)) for pod in updates.resize]
        if changes:
            self._admit(state.pod_resources)
        for pod, given in changes:
            state.resize(pod, given, now)
            record("Requests", "InPlaceResizedByVPA", f"Resizing {pod.name} in place")
        for pod in updates.evict:
            state.evict(pod, now)
            record("Evicted", "EvictedByVPA", f"{pod.name} was evicted to be resized")
