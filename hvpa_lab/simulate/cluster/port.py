"""The cluster port in memory: the operator reads and writes through it in a simulation.

Writes take effect at once and nothing suspends, so a reconcile runs without an event loop. The objects are the same
read-models as in the real cluster's caches, and nothing is parsed or validated twice.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Hpa, HpaStatusRead, Meta, Pod, Vpa, VpaMeta, VpaStatusRead
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import (
    Event,
    FastUsage,
    LargestNode,
    MetricValue,
    Objects,
    OwnedChange,
    PodCost,
    PodResize,
    ResourceRequirements,
    WorkloadPatch,
)
from hvpa.core.recommenders.history import bound_ratios
from hvpa.core.workload.pod_level import POD
from hvpa.reconcile.ports import Key, NodeTooSmall, ResizeFailures, SizeChanges, WriteError
from hvpa_lab.simulate.cluster.kubelets import SimulatedKubelets
from hvpa_lab.simulate.cluster.objects import PodObjects, WorkloadObject, raw, uid_of
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import SimPod, Template

UID: Final = "00000000-0000-4000-8000-000000000001"


class VirtualClock:
    """The clock port of a simulation: it stands still until it is set."""

    __slots__ = ("instant",)

    def __init__(self, instant: dt.datetime) -> None:
        self.instant = instant

    def now(self) -> dt.datetime:
        """Returns the simulated time."""
        return self.instant


class SimulatedCluster:
    """An Hvpa, its workload and the objects that it owns."""

    def __init__(
        self,
        spec: HvpaSpec,
        metadata: Meta,
        state: SimWorkload,
        start: dt.datetime,
        on_event: Callable[[Event], None],
        kubelets: SimulatedKubelets | None = None,
    ) -> None:
        self.key = Key(metadata.namespace, metadata.name)
        self.workload = WorkloadObject(state, start)
        self.pods = PodObjects(state, start)
        self.hpa: Hpa | None = None
        self.vpa: Vpa | None = None
        self.awake = True
        """A change has occurred that wakes the operator."""
        self.kubelets = kubelets or SimulatedKubelets(state)
        self._state = state
        self._on_event = on_event
        """Called with the Hvpa's Events."""
        self._seconds, self._instant = 0.0, start
        self._specs: dict[int | None, HvpaSpec] = {spec.replicas: spec}
        self._spec = spec
        self._metadata = msgspec.structs.replace(metadata, uid=UID, resource_version="1", generation=1)
        self._status = HvpaStatus()
        self._version = 1
        self._hvpa: HvpaObject | None = None
        self._seen_changes = -1

    def set_time(self, seconds: float, instant: dt.datetime) -> None:
        """Sets the time of later writes."""
        self._seconds, self._instant = seconds, instant

    # --- reading ----------------------------------------------------------------------------------------------------
    def objects(self, key: Key) -> Objects | None:
        """See the port."""
        self._seen_changes = self._state.changes
        return Objects(
            hvpa=self.hvpa(),
            workload=self.workload.read(),
            hpas=() if self.hpa is None else (self.hpa,),
            vpas=() if self.vpa is None else (self.vpa,),
            pods=self.pods.read(),
            largest_node=self._largest_node(),
        )

    def _largest_node(self) -> LargestNode | None:
        """Returns the size of the nodes, which are all alike; None if the Hvpa does not ask for it."""
        if self._spec.vpa.max_allowed is None:
            return None
        size = self._state.node_size
        if not size:
            return LargestNode(problem="the scenario's nodes have no size")
        return LargestNode(size)

    def hvpa(self) -> HvpaObject:
        """Returns the current Hvpa."""
        if self._hvpa is None:
            self._hvpa = HvpaObject(self._metadata, self._spec, (), self._status)
        return self._hvpa

    def changed(self) -> bool:
        """Whether a change has occurred since the operator's last read that wakes it."""
        return self.awake or self._seen_changes != self._state.changes

    # --- the recommenders' writes -----------------------------------------------------------------------------------
    def scale_hvpa(self, replicas: int) -> None:
        """The HPA's write of its desired replicas through `/scale`."""
        if self._spec.replicas == replicas:
            return
        if replicas not in self._specs:
            self._specs[replicas] = self._spec.model_copy(update={"replicas": replicas})
        self._spec = self._specs[replicas]
        self._metadata = msgspec.structs.replace(self._metadata, generation=self._metadata.generation + 1)
        self._touch_hvpa()
        self.awake = True

    def set_hpa_status(self, status: HpaStatusRead) -> None:
        """The HPA controller's status update."""
        if self.hpa is not None and status is not self.hpa.status and status != self.hpa.status:
            self.hpa = msgspec.structs.replace(self.hpa, status=status)
            self.awake = True

    def set_vpa_status(self, status: VpaStatusRead) -> None:
        """The VPA recommender's status update; small changes of bounds do not wake the operator."""
        if self.vpa is None or status is self.vpa.status:
            return
        before, self.vpa = self.vpa, msgspec.structs.replace(self.vpa, status=status)
        if (
            _targets(before.status) != _targets(status)
            or bound_ratios(before) != bound_ratios(self.vpa)
            or before.status.conditions != status.conditions
        ):
            self.awake = True

    # --- the operator's writes --------------------------------------------------------------------------------------
    async def patch_workload(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """See the port."""
        body = cast(Mapping[str, Mapping[str, object]], patch.body)
        annotations = cast(Mapping[str, str] | None, body["metadata"].get("annotations"))
        spec = body["spec"]
        paused, partition = self._held(spec)
        if is_held := paused or partition > self._state.partition:
            self._state.hold(paused=paused, partition=partition, now=self._seconds)
        if "template" in spec:
            template = cast(Mapping[str, object], spec["template"])
            self._state.set_template(_merged(self._state.template, template), self._seconds)
        if not is_held:
            self._state.hold(paused=paused, partition=partition, now=self._seconds)
        if "replicas" in spec:
            self._state.scale(cast(int, spec["replicas"]), self._seconds)
        self.workload.patched(annotations, of_spec=bool(spec))
        self.awake = True

    async def check_workload_patch(self, hvpa: Meta, patch: WorkloadPatch) -> None:
        """See the port. Nothing is refused here."""

    async def resize_pods(self, hvpa: Meta, resizes: Sequence[PodResize]) -> ResizeFailures:
        """See the port. Deleted pods are skipped, as in a cluster."""
        pods = {uid_of(pod): pod for pod in self._state.pods}
        wanted: list[tuple[SimPod, Template]] = []
        failures: list[tuple[PodResize, WriteError]] = []
        for resize in resizes:
            if (pod := pods.get(resize.uid)) is None:
                continue
            resources = _merged(pod.desired_resources, resize.body)
            if why := self._state.refusal(pod, resources):
                failures.append((resize, NodeTooSmall(f'pods "{pod.name}" is forbidden: {why}')))
            else:
                wanted.append((pod, resources))
        self._state.resize_all(wanted, self._seconds)
        return failures

    async def write_pod_costs(self, hvpa: Meta, costs: Sequence[PodCost]) -> Sequence[WriteError]:
        """See the port."""
        pods = {uid_of(pod): pod for pod in self._state.pods}
        for cost in costs:
            pods[cost.uid].deletion_cost = cost.cost
            self._state.changes += 1
        return ()

    async def memory_in_use(self, hvpa: Meta, selector: str) -> Mapping[tuple[str, str], int]:
        """See the port. Returns the current usage; metrics-server's last measurement is some seconds older."""
        return {
            (pod.name, container.name): int(container.memory)
            for pod in self._state.pods
            for container in pod.containers
            if container.running
        }

    def canary_values(
        self, key: Key, metrics: Sequence[RollbackMetric], *, often: bool
    ) -> tuple[MetricValue, ...]:
        """See the port. The simulator knows no metrics of the service: each is at its threshold, which is good."""
        return tuple([MetricValue(metric.above, self._instant) for metric in metrics])

    def reported_usage(self, key: Key, pods: Sequence[Pod], above: int) -> FastUsage:
        """See the port."""
        self.kubelets.above = above
        return self.kubelets.usage()

    async def write_creation_sizes(self, hvpa: Meta, changes: SizeChanges | None) -> None:
        """See the port. New pods always get the decided size (`size_of_new_pods`)."""

    async def patch_status(self, hvpa: Meta, patch: Mapping[str, object], status: HvpaStatus) -> None:
        """See the port."""
        self._status = status
        self._touch_hvpa()

    async def write_scale_replicas(self, hvpa: Meta, replicas: int) -> None:
        """See the port."""
        self.scale_hvpa(replicas)

    async def give_back(self, hvpa: Meta) -> None:
        """See the port. The Hvpa stays for as long as the simulation."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        """See the port."""
        if change.action != "apply" or change.manifest is None:
            raise WriteError(f"{change.action} of {change.kind} {change.name} has no place in a simulation")
        metadata = owned_meta(change.manifest, self._instant)
        spec = raw(cast(Mapping[str, object], change.manifest["spec"]))
        if change.kind == "HorizontalPodAutoscaler":
            self.hpa = Hpa(metadata=metadata, raw_spec=spec)
        else:
            self.vpa = Vpa(metadata=metadata, raw_spec=spec)
        self.awake = True

    async def record_event(self, hvpa: Meta, event: Event) -> None:
        """See the port. Events on the workload repeat the Hvpa's, so they are ignored."""
        if event.involved is None:
            self._on_event(event)

    # ----------------------------------------------------------------------------------------------------------------
    def _held(self, spec: Mapping[str, object]) -> tuple[bool, int]:
        """Returns `spec.paused` and the partition after a patch of the workload."""
        paused = bool(spec.get("paused", self._state.paused))
        strategy = cast(Mapping[str, Mapping[str, int]], spec.get("updateStrategy", {}))
        partition = strategy.get("rollingUpdate", {}).get("partition", self._state.partition)
        return paused, partition

    def _touch_hvpa(self) -> None:
        self._version += 1
        self._metadata = msgspec.structs.replace(self._metadata, resource_version=str(self._version))
        self._hvpa = None


def owned_meta(manifest: Mapping[str, object], created: dt.datetime) -> VpaMeta:
    """Returns the metadata of an applied manifest, as the API server stores it."""
    document = msgspec.json.encode(manifest.get("metadata", {}))
    metadata = msgspec.json.decode(document, type=VpaMeta)
    return msgspec.structs.replace(
        metadata,
        uid=f"{manifest.get('kind')}-{metadata.name}",
        resource_version="1",
        generation=1,
        creation_timestamp=created,
    )


def _targets(status: VpaStatusRead) -> list[tuple[object, ...]]:
    entries = status.recommendation.container_recommendations if status.recommendation is not None else None
    return [(entry.container_name, entry.target, entry.uncapped_target) for entry in entries or ()]


def _merged(
    before: Mapping[str, ResourceRequirements], patch: Mapping[str, object]
) -> dict[str, ResourceRequirements]:
    """Returns a template or pod after a strategic merge patch of the resources of its containers and of the pod
    itself."""
    merged = dict(before)
    spec = cast(Mapping[str, Any], patch["spec"])
    changed = {entry["name"]: entry["resources"] for entry in spec.get("containers", ())}
    if "resources" in spec:
        changed[POD] = spec["resources"]
    for name, resources in changed.items():
        old = merged[name]
        merged[name] = ResourceRequirements(
            requests={**old.requests, **_parsed(resources.get("requests", {}))},
            limits={**old.limits, **_parsed(resources.get("limits", {}))},
        )
    return merged


def _parsed(amounts: Mapping[str, str]) -> dict[Resource, int]:
    return {
        cast(Resource, resource): parse_resource(cast(Resource, resource), amount)
        for resource, amount in amounts.items()
    }
