"""Narrow read models: the fields of workloads, pods, HorizontalPodAutoscalers (autoscaling/v2) and
VerticalPodAutoscalers (autoscaling.k8s.io/v1) that decisions need.

They are msgspec structs, because they arrive by the thousand and already validated
(docs/decisions/0001-read-models.md). Quantities stay as the server sent them. The code that uses them parses and caches
them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, Protocol, TypeVar

import msgspec

Quantity = str | int | float
Scalar = str | int | float | bool | None
ResourceList = dict[str, Quantity]
ConditionStatus = str
Instant = Annotated[dt.datetime, msgspec.Meta(tz=True)]
"""A point in time. A time without a zone is rejected."""


Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer as Go reads it."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""A number of replicas or pods."""


class ReadModel(msgspec.Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Base of all read models: frozen, camelCase on the wire, unknown fields ignored."""


class OwnerReference(ReadModel, frozen=True):
    """An entry of `metadata.ownerReferences`."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False
    block_owner_deletion: bool | None = None


class Meta(ReadModel, frozen=True):
    """The part of `metadata` that decisions and conditional writes need."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int = 0
    creation_timestamp: Instant | None = None
    deletion_timestamp: Instant | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []

    def controller(self) -> OwnerReference | None:
        """The owner that controls this object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Condition(ReadModel, frozen=True):
    """A status condition of any Kubernetes object."""

    type: str = ""
    status: ConditionStatus = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Instant | None = None


C = TypeVar("C", bound=Condition)


def condition(conditions: Sequence[C] | None, kind: str) -> C | None:
    """The condition of type `kind`, or None."""
    for entry in conditions or ():  # a loop: simulations do this for each pod at each sync
        if entry.type == kind:
            return entry
    return None


def set_anew(
    present: Condition | None, kind: str, setting: tuple[str, str, str], now: dt.datetime
) -> Condition:
    """Returns the condition with this status, reason and message. If the status is new, the transition time is `now`,
    in whole seconds as Kubernetes stores times."""
    since: dt.datetime | None = now.replace(microsecond=0)
    if present is not None and present.status == setting[0]:
        since = present.last_transition_time
    return Condition(kind, *setting, last_transition_time=since)


class RawHvpa(ReadModel, frozen=True):
    """An Hvpa before validation of its spec and status (see `hvpa.api.hvpa.resource.read_hvpa`)."""

    metadata: Meta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


# --- HorizontalPodAutoscaler and VerticalPodAutoscaler ---
class ObjectReference(ReadModel, frozen=True):
    """A reference to an object in the same namespace."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricName(ReadModel, frozen=True):
    """Name of a custom or external metric, and the `metav1.LabelSelector` that restricts it, as on the wire."""

    name: str = ""
    selector: dict[str, Any] | None = None


class MetricValue(ReadModel, frozen=True):
    """A metric's target (spec) or current value (status). Exactly one of the values is set."""

    type: str = ""
    value: Quantity | None = None
    average_value: Quantity | None = None
    average_utilization: Int | None = None


class MetricSource(ReadModel, frozen=True):
    """Any of the five metric sources, as target (`target`) or as measurement (`current`)."""

    name: str = ""
    container: str = ""
    metric: MetricName = MetricName()
    described_object: ObjectReference | None = None
    target: MetricValue = MetricValue()
    current: MetricValue = MetricValue()


class Metric(ReadModel, frozen=True):
    """An entry of `spec.metrics` or `status.currentMetrics`."""

    type: str = ""
    resource: MetricSource | None = None
    container_resource: MetricSource | None = None
    pods: MetricSource | None = None
    object: MetricSource | None = None
    external: MetricSource | None = None

    def source(self) -> MetricSource | None:
        """Returns the source that `type` names; None for the empty entry that the HPA writes for a metric without a
        value."""
        sources = (self.resource, self.container_resource, self.pods, self.object, self.external)
        return next((source for source in sources if source is not None), None)


DEFAULT_METRICS: Final = (
    Metric(
        type="Resource",
        resource=MetricSource(name="cpu", target=MetricValue(type="Utilization", average_utilization=80)),
    ),
)
"""Default that the API server sets for an HPA without metrics (`SetDefaults_HorizontalPodAutoscaler`)."""


class HpaScalingPolicy(ReadModel, frozen=True):
    """Largest change in a period: `value` pods or percent, according to `type` (Pods or Percent)."""

    type: str = ""
    value: Int = 0
    period_seconds: Int = 0


class HpaScalingRules(ReadModel, frozen=True):
    """A direction of `spec.behavior`. None means not set; the API server would set a default."""

    stabilization_window_seconds: Int | None = None
    select_policy: str | None = None
    policies: list[HpaScalingPolicy] | None = None
    tolerance: Quantity | None = None


class HpaBehavior(ReadModel, frozen=True):
    """`spec.behavior`."""

    scale_up: HpaScalingRules | None = None
    scale_down: HpaScalingRules | None = None


class HpaSpecRead(ReadModel, frozen=True):
    """An HPA's spec."""

    scale_target_ref: ObjectReference = ObjectReference()
    min_replicas: Count = 1
    max_replicas: Count = 1
    metrics: list[Metric] = []
    behavior: HpaBehavior | None = None


class HpaStatusRead(ReadModel, frozen=True):
    """An HPA's status."""

    current_replicas: Count = 0
    desired_replicas: Count = 0
    current_metrics: list[Metric] | None = None
    conditions: list[Condition] | None = None
    last_scale_time: Instant | None = None


_hpa_spec = lru_cache(maxsize=16)(msgspec.json.Decoder(HpaSpecRead).decode)
"""A simulation reads the same spec in each step and recognizes it by object identity. `hvpa.kube` caches specs
itself."""


class Hpa(ReadModel, frozen=True):
    """A HorizontalPodAutoscaler. The spec stays bytes, so that it can be compared with its template as a whole."""

    metadata: Meta
    raw_spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="spec")
    status: HpaStatusRead = HpaStatusRead()

    @property
    def spec(self) -> HpaSpecRead:
        """The decoded spec."""
        return _hpa_spec(bytes(self.raw_spec))


class ContainerRecommendation(ReadModel, frozen=True):
    """A VPA's recommendation for one container."""

    container_name: str
    target: ResourceList = {}
    lower_bound: ResourceList = {}
    upper_bound: ResourceList = {}
    uncapped_target: ResourceList = {}


class Recommendation(ReadModel, frozen=True):
    """A VPA's recommendation."""

    container_recommendations: list[ContainerRecommendation] | None = None


class VpaContainerPolicy(ReadModel, frozen=True):
    """A container policy of `spec.resourcePolicy`."""

    container_name: str = ""
    mode: str = "Auto"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: list[str] | None = None
    controlled_values: str = "RequestsAndLimits"


class VpaResourcePolicy(ReadModel, frozen=True):
    """`spec.resourcePolicy` of a VPA."""

    container_policies: list[VpaContainerPolicy] = []


class VpaUpdatePolicy(ReadModel, frozen=True):
    """`spec.updatePolicy` of a VPA."""

    update_mode: str = ""
    min_replicas: Count | None = None
    """If there are fewer pods, the updater changes none (None: the updater's own default)."""


class VpaRecommender(ReadModel, frozen=True):
    """The name of a recommender."""

    name: str = ""


class VpaSpecRead(ReadModel, frozen=True):
    """A VPA's spec."""

    target_ref: ObjectReference = ObjectReference()
    update_policy: VpaUpdatePolicy | None = None
    resource_policy: VpaResourcePolicy | None = None
    recommenders: list[VpaRecommender] | None = None
    """Recommenders of this VPA. If empty, the default recommender."""

    def policy(self, container: str) -> VpaContainerPolicy:
        """Returns the container's policy, as `policies_by_name` does."""
        return policies_by_name(self.resource_policy.container_policies if self.resource_policy else ())(
            container
        )


class _Named(Protocol):
    @property
    def container_name(self) -> str | None: ...


P = TypeVar("P", bound=_Named)


def policies_by_name(policies: Sequence[P]) -> Callable[[str], P | VpaContainerPolicy]:
    """Returns a function that finds a container's policy: the first policy of its own, otherwise the last policy for
    `*`, otherwise the default."""
    by_name = {policy.container_name: policy for policy in reversed(policies)}
    default = next(
        (policy for policy in reversed(policies) if policy.container_name == "*"), VpaContainerPolicy()
    )
    return lambda container: by_name.get(container, default)


class VpaStatusRead(ReadModel, frozen=True):
    """A VPA's status."""

    recommendation: Recommendation | None = None
    conditions: list[Condition] | None = None


_vpa_spec = lru_cache(maxsize=16)(msgspec.json.Decoder(VpaSpecRead).decode)
"""See `_hpa_spec`."""


class StatusWrite(ReadModel, frozen=True):
    """A `metadata.managedFields` entry, reduced to its time and subresource."""

    subresource: str = ""
    time: Instant | None = None


class VpaMeta(Meta, frozen=True):
    """`metadata` of a VPA, with the time of the last status write."""

    managed_fields: list[StatusWrite] = []

    def written_at(self) -> dt.datetime | None:
        """Returns the time of the last status change; None if no entry has it."""
        times = [
            write.time
            for write in self.managed_fields
            if write.subresource == "status" and write.time is not None
        ]
        return max(times, default=None)


class Vpa(ReadModel, frozen=True):
    """A VerticalPodAutoscaler. The spec stays bytes, like the HPA's."""

    metadata: VpaMeta
    raw_spec: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="spec")
    status: VpaStatusRead = VpaStatusRead()

    @property
    def spec(self) -> VpaSpecRead:
        """The decoded spec."""
        return _vpa_spec(bytes(self.raw_spec))


# --- workloads and pods ---
class SelectorRequirement(ReadModel, frozen=True):
    """An expression of a label selector."""

    key: str
    operator: str
    values: frozenset[str] | None = None


class Selector(ReadModel, frozen=True):
    """A label selector of a workload (`metav1.LabelSelector`)."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class Resources(ReadModel, frozen=True):
    """Requests and limits of a container. HVPA keeps resources other than CPU and memory unchanged."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ResizePolicy(ReadModel, frozen=True):
    """Effect of a resize on the container: none (NotRequired) or a restart (RestartContainer)."""

    resource_name: str = ""
    restart_policy: str = ""


class Container(ReadModel, frozen=True):
    """A container of a pod template or pod."""

    name: str
    resources: Resources = Resources()
    resize_policy: list[ResizePolicy] = []
    restart_policy: str = ""
    """For init containers only: `Always` makes it a sidecar, which runs next to the containers."""

    def restarts_for(self, resource: str) -> bool:
        """Whether a resize of this resource restarts the container."""
        return any(
            policy.resource_name == resource and policy.restart_policy == "RestartContainer"
            for policy in self.resize_policy
        )


class FieldRef(ReadModel, frozen=True):
    """The container's resource that an environment variable has, such as `limits.memory`."""

    resource: str = ""


class VariableSource(ReadModel, frozen=True):
    """The source of an environment variable."""

    resource_field_ref: FieldRef | None = None


class Variable(ReadModel, frozen=True):
    """An environment variable. In manifests that no API server has checked, the value may be a number."""

    name: str = ""
    text: Scalar = msgspec.field(default=None, name="value")
    value_from: VariableSource | None = None


class TemplateContainer(Container, frozen=True):
    """A container of a pod template, with command and environment, which show its runtime."""

    command: Sequence[Scalar] | None = None
    args: Sequence[Scalar] | None = None
    env: Sequence[Variable] | None = None


class PodSpec(ReadModel, frozen=True):
    """The containers of a pod or pod template, and the resources of the pod itself. HVPA does not scale init
    containers. They count when the HPA sums up the requests of a pod."""

    containers: Sequence[Container] = []
    init_containers: list[Container] = []
    resources: Resources | None = None


class Expression(ReadModel, frozen=True):
    """A requirement of a node affinity. `Gt` and `Lt` compare whole numbers."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(ReadModel, frozen=True):
    """Requirements that a node must all meet."""

    match_expressions: list[Expression] = []
    match_fields: list[Expression] = []


class NodeSelector(ReadModel, frozen=True):
    """Terms of which a node must meet one."""

    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(ReadModel, frozen=True):
    """The part of a node affinity that can exclude nodes."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(ReadModel, frozen=True):
    """The part of a pod's affinity that concerns nodes."""

    node_affinity: NodeAffinity | None = None


class Toleration(ReadModel, frozen=True):
    """A taint that a pod tolerates. An empty key, value or effect stands for any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class TemplateSpec(PodSpec, frozen=True):
    """The pod spec of a template, with the runtimes of its containers and the nodes that its pods may use."""

    containers: Sequence[TemplateContainer] = []
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []


class PodTemplate(ReadModel, frozen=True):
    """A workload's pod template."""

    spec: TemplateSpec = TemplateSpec()


class Taint(ReadModel, frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(ReadModel, frozen=True):
    """The part of a node's spec that can exclude pods."""

    taints: list[Taint] = []


class NodeStatus(ReadModel, frozen=True):
    """What a node has for pods."""

    allocatable: ResourceList = {}


class Namespace(ReadModel, frozen=True):
    """A namespace."""

    metadata: Meta


class Node(ReadModel, frozen=True):
    """A node."""

    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class RollingUpdate(ReadModel, frozen=True):
    """The part of a StatefulSet's rolling update that decides whether a rollout can complete."""

    partition: Count | None = None


class StatefulSetUpdateStrategy(ReadModel, frozen=True):
    """A StatefulSet's update strategy. (A Deployment's is under `strategy` and always replaces all pods.)"""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(ReadModel, frozen=True):
    """The spec of a workload. For a DaemonSet, `replicas` is the number of nodes on which its controller wants a
    pod."""

    replicas: Count = 1
    selector: Selector = Selector()
    template: PodTemplate = PodTemplate()
    update_strategy: StatefulSetUpdateStrategy | None = None
    progress_deadline_seconds: Count | None = None
    paused: bool = False


class WorkloadCondition(Condition, frozen=True):
    """A condition of a workload. For a Deployment, `Progressing` has the time of the rollout's last progress, and
    `ReplicaFailure` the reason why pods can't be created."""

    last_update_time: Instant | None = None


class WorkloadStatus(ReadModel, frozen=True):
    """The status of a workload. `hvpa.kube.objects.workloads` adds values that the kind does not report."""

    observed_generation: Int = 0
    replicas: Count = 0
    updated_replicas: Count = 0
    ready_replicas: Count = 0
    available_replicas: Count = 0
    conditions: list[WorkloadCondition] = []


class _OwnedResources(ReadModel, frozen=True):
    """The keys of `f:resources` in a managedFields entry. A key that is present means ownership."""

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
        """Whether this manager owns `.spec.replicas`."""
        return self.fields.spec is not None and self.fields.spec.replicas is not None

    def owns_resources(self) -> bool:
        """Whether this manager owns a request or limit of a container."""
        spec = self.fields.spec
        if spec is None or spec.template is None or spec.template.spec is None:
            return False
        return any(
            container.resources is not None for container in (spec.template.spec.containers or {}).values()
        )


class WorkloadMeta(Meta, frozen=True):
    """`metadata` of a workload, with the managers of its fields."""

    managed_fields: list[ManagedFields] = []


class Workload(ReadModel, frozen=True):
    """A workload. The reader sets `kind` and `api_version`, because list items don't have them."""

    metadata: WorkloadMeta
    kind: str = ""
    api_version: str = "apps/v1"
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class HvpaSizes(ReadModel, frozen=True):
    """The sizes of new pods in a namespace, by owner (`Deployment.apps/web`): the Hvpa that decided the size, and CPU
    and memory of each container as `REQUEST:LIMIT`. Example: `web; app 900m:1800m 700M:`."""

    metadata: Meta
    sizes: dict[str, str] = {}

    def by_hvpa(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """Returns the entries of each Hvpa, by owner."""
        entries_by_hvpa: dict[str, list[tuple[str, str]]] = {}
        for owner, size in sorted(self.sizes.items()):
            entries_by_hvpa.setdefault(size.partition(";")[0], []).append((owner, size))
        return {hvpa: tuple(entries) for hvpa, entries in entries_by_hvpa.items()}


class Terminated(ReadModel, frozen=True):
    """Reason, time and exit code of a container's end."""

    reason: str = ""
    finished_at: Instant | None = None
    exit_code: int = 0


class Waiting(ReadModel, frozen=True):
    """Reason why a container does not run yet, or no longer runs."""

    reason: str = ""
    message: str = ""


class Running(ReadModel, frozen=True):
    """Since when a container runs."""

    started_at: Instant | None = None


class ContainerState(ReadModel, frozen=True):
    """A container's state. The local copy keeps only the parts that explain why it does not run."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None
    running: Running | None = None


class ContainerStatus(ReadModel, frozen=True):
    """The kubelet's report about a container."""

    name: str
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    restart_count: Count = 0
    started: bool | None = None
    """Whether its startup probe has passed."""
    resources: Resources | None = None
    """Actual resources of the container. They differ from the spec while a resize is in progress. None if the kubelet
    is too old."""


class PodCondition(Condition, frozen=True):
    """A condition of a pod, with the generation of the pod that it is based on (0 from API servers that don't report
    it)."""

    observed_generation: Int = 0


class PodStatus(ReadModel, frozen=True):
    """A pod's status."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    start_time: Instant | None = None
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: Resources | None = None
    """Actual resources of the pod itself. None if it has none, or if the kubelet does not report them."""
    kept_running_since: Instant | None = None
    """In the local copy: see `running_since`."""

    @property
    def running_since(self) -> dt.datetime | None:
        """Since when all containers that run have run; None if none runs."""
        times = [
            status.state.running.started_at for status in self.container_statuses if status.state.running
        ]
        return max([time for time in times if time is not None], default=self.kept_running_since)


class Pod(ReadModel, frozen=True):
    """A pod."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
