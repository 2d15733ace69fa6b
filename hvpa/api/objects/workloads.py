"""Read-models of what is scaled: Deployments, StatefulSets and their pods."""

from __future__ import annotations

from typing import Literal

import msgspec

from hvpa.api.objects.meta import Condition, Count, Instant, Int, Meta, ReadModel, ResourceList


class SelectorRequirement(ReadModel, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: str
    values: frozenset[str] | None = None


class Selector(ReadModel, frozen=True):
    """A label selector of a workload (`metav1.LabelSelector`)."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class Resources(ReadModel, frozen=True):
    """Requests and limits of a container; other resources than CPU and memory are carried but never changed."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class Container(ReadModel, frozen=True):
    """A container of a pod template or pod."""

    name: str
    resources: Resources = Resources()
    restart_policy: str = ""
    """Of init containers only: `Always` makes one a sidecar, which runs beside the containers."""


class PodSpec(ReadModel, frozen=True):
    """The containers of a pod or pod template. Init containers, and the requests of a pod as a whole, are not scaled;
    they count where the HPA adds up what a pod requests."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: Resources | None = None


class PodTemplate(ReadModel, frozen=True):
    """A workload's pod template."""

    spec: PodSpec = PodSpec()


class RollingUpdate(ReadModel, frozen=True):
    """What of a StatefulSet's rolling update decides whether a rollout can complete."""

    partition: Count | None = None


class UpdateStrategy(ReadModel, frozen=True):
    """A StatefulSet's update strategy (a Deployment's is under `strategy` and always replaces all pods)."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(ReadModel, frozen=True):
    """The spec of a Deployment or StatefulSet."""

    replicas: Count = 1
    selector: Selector = Selector()
    template: PodTemplate = PodTemplate()
    update_strategy: UpdateStrategy | None = None
    progress_deadline_seconds: Count | None = None
    paused: bool = False


class Progress(Condition, frozen=True):
    """A condition of a workload. Of those of a Deployment, `Progressing` says when the rollout last went on, and
    `ReplicaFailure` why no pods can be created."""

    last_update_time: Instant | None = None


class WorkloadStatus(ReadModel, frozen=True):
    """The status of a Deployment or StatefulSet."""

    observed_generation: Int = 0
    replicas: Count = 0
    updated_replicas: Count = 0
    ready_replicas: Count = 0
    available_replicas: Count = 0
    conditions: list[Progress] = []


class _OwnedResources(ReadModel, frozen=True):
    """The keys of `f:resources` in a managedFields entry (presence means ownership)."""

    requests: dict[str, dict[str, object]] | None = msgspec.field(default=None, name="f:requests")
    limits: dict[str, dict[str, object]] | None = msgspec.field(default=None, name="f:limits")


class _OwnedContainer(ReadModel, frozen=True):
    resources: _OwnedResources | None = msgspec.field(default=None, name="f:resources")


class _OwnedPodSpec(ReadModel, frozen=True):
    containers: dict[str, _OwnedContainer] | None = msgspec.field(default=None, name="f:containers")


class _OwnedTemplate(ReadModel, frozen=True):
    spec: _OwnedPodSpec | None = msgspec.field(default=None, name="f:spec")


class _OwnedSpec(ReadModel, frozen=True):
    replicas: dict[str, object] | None = msgspec.field(default=None, name="f:replicas")
    template: _OwnedTemplate | None = msgspec.field(default=None, name="f:template")


class _OwnedFields(ReadModel, frozen=True):
    spec: _OwnedSpec | None = msgspec.field(default=None, name="f:spec")


class ManagedFields(ReadModel, frozen=True):
    """A `metadata.managedFields` entry, reduced to whether it owns `replicas` and containers' resources."""

    manager: str = ""
    time: Instant | None = None
    fields: _OwnedFields = msgspec.field(default=_OwnedFields(), name="fieldsV1")

    def owns_replicas(self) -> bool:
        """Whether this manager set `.spec.replicas`."""
        return self.fields.spec is not None and self.fields.spec.replicas is not None

    def owns_resources(self) -> bool:
        """Whether this manager set a request or limit of a container."""
        spec = self.fields.spec
        if spec is None or spec.template is None or spec.template.spec is None:
            return False
        return any(c.resources is not None for c in (spec.template.spec.containers or {}).values())


class WorkloadMeta(Meta, frozen=True):
    """`metadata` of a workload, with who set what."""

    managed_fields: list[ManagedFields] = []


WorkloadKind = Literal["Deployment", "StatefulSet"]
WORKLOAD_API_VERSION = "apps/v1"


class Workload(ReadModel, frozen=True):
    """A Deployment or StatefulSet; `kind` is filled in by the reader, since list items don't carry it."""

    metadata: WorkloadMeta
    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class Terminated(ReadModel, frozen=True):
    """Why and when a container ended."""

    reason: str = ""
    finished_at: Instant | None = None


class Waiting(ReadModel, frozen=True):
    """Why a container does not run yet, or not any more."""

    reason: str = ""
    message: str = ""


class ContainerState(ReadModel, frozen=True):
    """The parts of a container's state that say why it does not run."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(ReadModel, frozen=True):
    """What the kubelet reports of a container."""

    name: str
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    restart_count: Count = 0


class PodStatus(ReadModel, frozen=True):
    """A pod's status."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: Instant | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(ReadModel, frozen=True):
    """A pod."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
