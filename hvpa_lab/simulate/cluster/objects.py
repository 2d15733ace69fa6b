"""The simulated cluster's objects for the operator: the same read-models that a watch delivers."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import structs

from hvpa.api.objects.read_models import (
    Container,
    ContainerState,
    ContainerStatus,
    Meta,
    OwnerReference,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    PodTemplate,
    Resources,
    RollingUpdate,
    Selector,
    StatefulSetUpdateStrategy,
    Terminated,
    Variable,
    WorkloadMeta,
    WorkloadSpec,
    WorkloadStatus,
)
from hvpa.api.objects.read_models import Workload as StoredWorkload
from hvpa.api.values.quantity import MIB, Resource, format_resource
from hvpa.core.actuation.kubelet import RESIZE_IN_PROGRESS, RESIZE_PENDING
from hvpa.core.model import DELETION_COST, ResourceRequirements
from hvpa.core.values.memo import remembered
from hvpa.core.workload.containers import template_of
from hvpa.core.workload.pod_level import POD
from hvpa.core.workload.starving import OOM_KILLED
from hvpa.core.workload.stuck import UNSCHEDULABLE
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.resizes import message_of
from hvpa_lab.simulate.cluster.state import Resize, SimContainer, SimPod
from hvpa_lab.simulate.model import RuntimeModel

APP_LABEL: Final = "app"
FAILED: Final = "Error"
"""The kubelet's reason of a container that ended by itself with an error, such as a full heap."""
EXITS: Final = "-XX:+ExitOnOutOfMemoryError"
"""The option of a JVM that ends once its heap is full."""
HEAP_EXIT_CODES: Final = {"Java": 3, "Node": 139}
"""Exit codes of a JVM with `EXITS`, and of Node, whose heap is full."""
WORKLOAD_UID: Final = "workload"
"""The workload's uid."""
_LONG_AGO: Final = dt.timedelta(days=30)
"""Age at the scenario's start of the objects that exist then."""


def instant_at(start: dt.datetime, seconds: float) -> dt.datetime:
    """Returns the instant this many seconds after the scenario's start."""
    return start + dt.timedelta(seconds=seconds)


def raw(document: Mapping[str, object]) -> msgspec.Raw:
    """Returns the JSON that a read-model stores of an object's spec."""
    return msgspec.Raw(msgspec.json.encode(document))


def labels(name: str) -> dict[str, str]:
    """Returns the labels of the workload's pods, which its selector matches."""
    return {APP_LABEL: name}


def selector_text(name: str) -> str:
    """Returns the workload's selector as in `/scale`."""
    return f"{APP_LABEL}={name}"


@remembered
def containers(template: Mapping[str, ResourceRequirements]) -> list[Container]:
    """Returns the containers of a pod or pod template; the same list for each use of a template."""
    return [
        Container(
            name=name,
            resources=Resources(
                requests=_amounts(requirements.requests), limits=_amounts(requirements.limits)
            ),
        )
        for name, requirements in template.items()
        if name != POD
    ]


@remembered
def pod_spec(template: Mapping[str, ResourceRequirements]) -> PodSpec:
    """Returns the spec of a pod or pod template, shared like its containers."""
    return PodSpec(containers=containers(template), resources=_of_pod(template))


def _of_pod(template: Mapping[str, ResourceRequirements]) -> Resources | None:
    """Returns the resources of a pod itself, if it has any."""
    own = template.get(POD)
    return None if own is None else Resources(_amounts(own.requests), _amounts(own.limits))


def _template(
    resources: Mapping[str, ResourceRequirements], variables: Mapping[str, list[Variable]]
) -> PodTemplate:
    """Returns the pod template, whose containers have these environment variables."""
    template = template_of(pod_spec(resources))
    if any(variables.values()):
        shown = [structs.replace(one, env=variables[one.name]) for one in template.containers]
        template = structs.replace(template, containers=shown)
    return PodTemplate(template)


def _variables(runtime: RuntimeModel | None) -> list[Variable]:
    """Returns the environment variable that sets a runtime's heap, and that it ends once this is full. Node does so
    anyway, and has no option for a percentage."""
    if runtime is None:
        return []
    heap = runtime.heap
    if runtime.kind == "Java":
        share = f"-XX:MaxRAMPercentage={heap.removesuffix('%')}" if isinstance(heap, str) else ""
        return [Variable("JAVA_TOOL_OPTIONS", f"{share or f'-Xmx{int(heap) // MIB}m'} {EXITS}")]
    return [] if isinstance(heap, str) else [Variable("NODE_OPTIONS", f"--max-old-space-size={heap // MIB}")]


def _amounts(amounts: Mapping[Resource, int]) -> dict[str, str | int | float]:
    return {resource: format_resource(resource, amount) for resource, amount in amounts.items()}


class WorkloadObject:
    """The workload's API object. It holds the stored fields; the state of controller and pods is elsewhere."""

    def __init__(self, state: SimWorkload, start: dt.datetime) -> None:
        model = state.model
        self._state = state
        self._kind = model.kind
        self._annotations: dict[str, str] = {}
        self._generation = 1
        self._version = 1
        self._built: tuple[tuple[int, int], StoredWorkload] | None = None
        self._created = start - _LONG_AGO
        self._variables = {container.name: _variables(container.runtime) for container in model.containers}

    def read(self) -> StoredWorkload:
        """Returns the current object; the same object until something changes."""
        key = (self._state.changes, self._version)
        if self._built is None or key != self._built[0]:
            self._built = key, self._build()
        return self._built[1]

    def patched(self, annotations: Mapping[str, str] | None = None, *, of_spec: bool = True) -> None:
        """Records a write of the spec, or of annotations alone."""
        self._annotations |= annotations or {}
        self._generation += of_spec
        self._version += 1

    def _build(self) -> StoredWorkload:
        state, model = self._state, self._state.model
        metadata = WorkloadMeta(
            name=model.name,
            namespace=model.namespace,
            uid=WORKLOAD_UID,
            resource_version=f"{self._version}.{state.changes}",
            generation=self._generation,
            creation_timestamp=self._created,
            annotations=dict(self._annotations),
        )
        if model.is_custom:
            return self._scaled(metadata)
        spec = WorkloadSpec(
            replicas=state.replicas,
            selector=Selector(match_labels=labels(model.name)),
            template=_template(state.template, self._variables),
            update_strategy=StatefulSetUpdateStrategy("RollingUpdate", RollingUpdate(state.partition)),
            paused=state.paused and model.kind == "Deployment",
        )
        status = WorkloadStatus(
            observed_generation=self._generation,
            replicas=len(state.pods),
            updated_replicas=state.updated_replicas,
            ready_replicas=state.ready_replicas,
            available_replicas=state.ready_replicas,
        )
        return StoredWorkload(metadata, self._kind, model.api_version, spec, status)

    def _scaled(self, metadata: WorkloadMeta) -> StoredWorkload:
        """Returns the operator's view of a custom kind (`hvpa.kube.objects.workloads`): its scale, and the newest
        pod."""
        state, pods = self._state, len(self._state.pods)
        newest = max(state.pods, key=lambda pod: pod.serial, default=None)
        template = PodTemplate() if newest is None else _template(newest.desired_resources, {})
        metadata = structs.replace(metadata, generation=state.replicas)
        spec = WorkloadSpec(state.replicas, Selector(match_labels=labels(state.model.name)), template)
        status = WorkloadStatus(state.replicas, pods, pods, pods, pods)
        return StoredWorkload(metadata, self._kind, state.model.api_version, spec, status)


class PodObjects:
    """The pods' API objects, rebuilt only when a pod changes."""

    def __init__(self, state: SimWorkload, start: dt.datetime) -> None:
        self._state = state
        self._start = start
        model = state.model
        self._owner = OwnerReference(
            kind=model.kind,
            name=model.name,
            uid=WORKLOAD_UID,
            api_version=model.api_version,
            controller=True,
        )
        self._built_at = -1
        self._objects: tuple[Pod, ...] = ()

    def read(self) -> tuple[Pod, ...]:
        """Returns all current pods."""
        if self._built_at != self._state.changes:
            self._objects = tuple(self._build(pod) for pod in self._state.pods)
            self._built_at = self._state.changes
        return self._objects

    def _build(self, pod: SimPod) -> Pod:
        model = self._state.model
        metadata = Meta(
            name=pod.name,
            namespace=model.namespace,
            uid=uid_of(pod),
            resource_version=str(self._state.changes),
            creation_timestamp=instant_at(self._start, pod.created),
            labels=labels(model.name),
            annotations={} if pod.deletion_cost is None else {DELETION_COST: pod.deletion_cost},
            owner_references=[self._owner],
        )
        conditions = [
            PodCondition(
                type="Ready",
                status="True" if pod.ready else "False",
                last_transition_time=instant_at(self._start, pod.ready_changed),
            )
        ]
        if pod.node is None and pod.refused:
            since = instant_at(self._start, pod.created)
            conditions.append(
                PodCondition("PodScheduled", "False", UNSCHEDULABLE, last_transition_time=since)
            )
        if pod.resize is not None and pod.resize.state:
            conditions.append(self._resize_condition(pod.resize))
        status = PodStatus(
            phase=pod.phase,
            start_time=None if pod.started is None else instant_at(self._start, pod.started),
            conditions=conditions,
            container_statuses=[self._container(pod, container) for container in pod.containers],
            resources=_of_pod(pod.resources),
            kept_running_since=None if pod.started is None else instant_at(self._start, pod.started),
        )
        return Pod(metadata=metadata, spec=pod_spec(pod.desired_resources), status=status)

    def _resize_condition(self, resize: Resize) -> PodCondition:
        """Returns the kubelet's report of a resize that waits or can't be made."""
        is_pending = resize.state in ("Deferred", "Infeasible")
        return PodCondition(
            type=RESIZE_PENDING if is_pending else RESIZE_IN_PROGRESS,
            status="True",
            reason=resize.state,
            message=message_of(resize),
            last_transition_time=instant_at(self._start, resize.since),
        )

    def _container(self, pod: SimPod, container: SimContainer) -> ContainerStatus:
        """Returns the kubelet's report of a container. It includes resources only while they differ from the pod's
        spec."""
        reported = None
        if pod.resize is not None:
            actual = pod.resources[container.name]
            reported = Resources(requests=_amounts(actual.requests), limits=_amounts(actual.limits))
        last = ContainerState()
        if container.oom_at is not None:
            last = ContainerState(
                terminated=Terminated(OOM_KILLED, instant_at(self._start, container.oom_at), 137)
            )
        elif container.failed_at is not None and container.runtime is not None:
            code = HEAP_EXIT_CODES[container.runtime.kind]
            last = ContainerState(
                terminated=Terminated(FAILED, instant_at(self._start, container.failed_at), code)
            )
        started = pod.ready or pod.blipped
        return ContainerStatus(name=container.name, last_state=last, started=started, resources=reported)


def uid_of(pod: SimPod) -> str:
    """Returns the pod's uid. Pods of a StatefulSet share names, but never uids."""
    return f"{pod.name}.{pod.serial}"
