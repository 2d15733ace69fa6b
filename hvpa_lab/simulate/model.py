"""Input and output of a simulation: plain values that all parts of this package share.

Amounts that Kubernetes stores as integers (requests, limits) are whole millicores and bytes. Measured amounts (usage,
demand) are floats in the same units. Times inside a simulation are float seconds since the scenario's start; instants
outside are aware datetimes.
"""

from __future__ import annotations

import datetime as dt
import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from hvpa.api.objects.kinds import DEFAULT_API_VERSION, is_custom
from hvpa.api.values.quantity import Resource
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.pod_level import POD
from hvpa_lab.recommend.hpa.controller import HpaSettings
from hvpa_lab.recommend.vpa.recommender import VpaSettings

PolicyKind = Literal["Hvpa", "HPA", "VPA", "HPA+VPA", "Fixed"]
ResizeMode = Literal["Recreate", "InPlace"]


class Load(Protocol):
    """The load over time, in the scenario's units (for example requests per second, jobs or percent)."""

    def at(self, seconds: float) -> float:
        """Returns the load at this time since the scenario's start; each value holds until the next."""
        ...


RuntimeKind = Literal["Java", "Node"]


@dataclass(frozen=True, slots=True)
class RuntimeModel:
    """A runtime that sizes its heap when its container starts (docs/runtimes.md)."""

    kind: RuntimeKind
    heap: int | str
    """Maximum heap: bytes, or a percentage of the memory limit at the start ("75%")."""

    def heap_at(self, limit: float) -> float:
        """Returns the maximum heap in bytes of a container that starts with this memory limit. Example: 75 % of 1 GiB
        is 768 MiB."""
        if isinstance(self.heap, str):
            return limit * int(self.heap.removesuffix("%")) / 100
        return self.heap


@dataclass(frozen=True, slots=True)
class ContainerModel:
    """A container of the workload: its initial resources, and its usage under load. CPU in millicores, memory in
    bytes."""

    name: str
    requests: Mapping[Resource, int]
    limits: Mapping[Resource, int]
    cpu_base: float = 0.0
    """CPU that each replica uses without load."""
    cpu_per_unit: float = 0.0
    """CPU per unit of load that the replica serves."""
    cpu_start_up: float | None = None
    """Replaces `cpu_base` until the pod is ready."""
    memory_base: float = 0.0
    """Memory that each replica uses without load."""
    memory_per_unit: float = 0.0
    """Memory per unit of load that the replica serves."""
    memory_leak: float = 0.0
    """Bytes per second since the container's start that are never freed."""
    memory_kept: float = 0.0
    """Share of the load's memory that stays when the load falls, until a restart. Example: with 0.5, a container that
    rose from 100 to 300 MiB keeps 200 MiB after the load is gone."""
    runtime: RuntimeModel | None = None
    """Its heap holds all memory except `memory_base`; None: no bound but the memory limit."""


@dataclass(frozen=True, slots=True)
class WorkloadModel:
    """The workload that the scenario defines.

    A custom kind is simulated as a Deployment whose pod template never changes. A ReplicaSet and a
    ReplicationController never replace pods. A DaemonSet always has the same number of pods. A StatefulSet replaces
    pods individually.
    """

    kind: str
    name: str
    namespace: str
    replicas: int
    containers: tuple[ContainerModel, ...]
    start_up: float = 0.0
    """Seconds from a container's start until it is ready."""
    termination_grace: float = 0.0
    """Seconds that a deleted pod keeps its place on the node without serving."""
    max_surge: int | str = "25%"
    """A count, or a percentage ("25%"), as in a Deployment."""
    max_unavailable: int | str = "25%"
    """A count, or a percentage ("25%"), as in a Deployment."""
    resize: ResizeMode = "InPlace"
    """How pods get the resources of a changed template: by replacement, or by a resize in place if possible."""
    resize_delay: float = 0.0
    """Seconds that a resize in place takes."""
    resize_deferred: float = 0.0
    """Seconds for which the kubelet defers a resize to larger resources, regardless of its node."""
    resize_refused: bool = False
    """The kubelet refuses all resizes."""
    blips: tuple[tuple[float, float], ...] = ()
    """Times at which a ready pod becomes unready, and the pod's position among the ready pods (0 to 1)."""
    blip_length: float = 0.0
    """Seconds that the pod stays unready."""
    spread: float = 0.0
    """Relative standard deviation of the pods' shares of the load, drawn from `seed` for each pod."""
    seed: int = 0
    api_version: str = DEFAULT_API_VERSION
    resources: ResourceRequirements | None = None
    """Initial resources of the pod itself (`spec.template.spec.resources`), which its containers share."""

    @property
    def template(self) -> dict[str, ResourceRequirements]:
        """Initial resources of each container, and of the pod itself (`POD`) if it has any."""
        own = {} if self.resources is None else {POD: self.resources}
        parts = {
            one.name: ResourceRequirements(dict(one.requests), dict(one.limits)) for one in self.containers
        }
        return {**parts, **own}

    @property
    def has_ordinals(self) -> bool:
        """Whether a replacement has the same name as its predecessor, as in a StatefulSet."""
        return self.kind == "StatefulSet"

    @property
    def is_custom(self) -> bool:
        """Whether only the workload's `scale` subresource is known."""
        return is_custom(self.api_version, self.kind)


@dataclass(frozen=True, slots=True)
class NodeModel:
    """The nodes that the pods run on."""

    cpu: int | None = None
    """Allocatable millicores of a node; None: unlimited."""
    memory: int | None = None
    """Allocatable bytes of a node; None: unlimited."""
    headroom: int | str | None = None
    """CPU that a pod may use beyond its request, because neighbours use the rest of the node: millicores, or a
    percentage of the request ("20%"). None: the whole node."""
    count: int | None = None
    """Maximum number of nodes; None: unlimited."""
    start_up: float = 0.0
    """Seconds until a new node can be used."""

    def beyond(self, request: int) -> float:
        """Returns the CPU in millicores that a pod may use beyond this request."""
        if isinstance(self.headroom, str):
            return request * int(self.headroom.removesuffix("%")) / 100
        return math.inf if self.headroom is None else self.headroom


KubeletKind = Literal["Default", "Housekeeping1s", "StatsFromCRI"]
"""A kubelet's settings: none, `--housekeeping-interval=1s`, or the feature gate PodAndContainerStatsFromCRI."""


@dataclass(frozen=True, slots=True)
class MetricsModel:
    """metrics-server: every `resolution` seconds, `offset` seconds after the start, it publishes the mean CPU usage
    since its last measurement, and the memory, as of `delay` seconds ago. The other fields are names of custom and
    external metrics."""

    resolution: float = 15.0
    delay: float = 0.0
    offset: float = 0.0
    load: str = "load"
    """The load, in its own units."""
    share: str | None = None
    """The load per ready pod; None: no such metric."""
    queue: str | None = None
    """Jobs in a queue, each of which takes a second: the load of a second, and all waiting work. None: no such
    metric."""
    kubelets: KubeletKind = "Default"
    """How often kubelets take samples, for the fast signal."""


@dataclass(frozen=True, slots=True)
class Controllers:
    """Periods (seconds) and flags of the recommenders, and the time of each controller's first sync (seconds)."""

    hpa: HpaSettings = field(default_factory=HpaSettings)
    vpa: VpaSettings = field(default_factory=VpaSettings)
    hpa_offset: float = 0.0
    vpa_period: float = 60.0
    vpa_offset: float = 0.0
    updater_period: float = 60.0
    updater_offset: float = 60.0


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to scale the workload."""

    name: str
    kind: PolicyKind
    hvpa: Mapping[str, object] | None = None
    """Manifest of an Hvpa."""
    hpa: Mapping[str, object] | None = None
    """Spec of an HPA (autoscaling/v2) that acts by itself."""
    vpa: Mapping[str, object] | None = None
    """Spec of a VPA (autoscaling.k8s.io/v1) that acts by itself. Without Hvpa, HPA and VPA the size is fixed."""
    replicas: int | None = None
    """Initial replicas, if they differ from the workload's."""
    resources: Mapping[str, ResourceRequirements] = field(default_factory=dict)
    """Initial resources of containers, and of the pod itself (`POD`), that differ from the workload's."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load, a workload, its environment, and the policies to compare. Times in seconds."""

    name: str
    description: str
    start: dt.datetime
    duration: float
    step: float
    load: Load
    workload: WorkloadModel
    policies: tuple[Policy, ...]
    nodes: NodeModel = NodeModel()
    metrics: MetricsModel = MetricsModel()
    controllers: Controllers = field(default_factory=Controllers)
    warm_up: float = 0.0
    """The time before this is simulated but not counted in the totals."""
    backlog: float = 0.0
    """Unserved work waits, up to this many seconds' worth of load; the rest is lost."""
    notes: tuple[str, ...] = ()
    """Notes for the reader (for example gaps in the load)."""


class Tick(NamedTuple):
    """State of the pods in a step. CPU in millicores, averaged over the step; memory in bytes and pod counts at its
    end."""

    demand: float
    """CPU that the load needs, including the replicas' base usage."""
    unmet: float
    """Demand that no pod served."""
    capacity: float
    """Maximum demand that the ready pods could have served."""
    used_cpu: float
    used_memory: float
    requested_cpu: int
    requested_memory: int
    pods: int
    ready: int
    ooms: int
    restarts: int
    """Containers restarted, and pods that replaced others (rollout, eviction)."""


class SimulationEvent(NamedTuple):
    """An event with its reason."""

    time: float
    """Time in seconds."""
    kind: str
    """Replicas, Requests, Blocked, OOM, Evicted, Unschedulable, Condition or Event."""
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Reaction:
    """A rise of the load, and the policy's reaction.

    Each phase is a duration in seconds; None if the policy did not reach its end before the next rise, or without an
    HPA.
    """

    start: float
    """Start of the rise in seconds."""
    end: float
    """End of the rise in seconds."""
    tolerance: float | None
    """Until usage exceeded the tolerance."""
    metric_age: float | None
    """Until a metric showed it."""
    hpa_period: float | None
    """Until the HPA synced."""
    gates: float | None
    """Until the change was made (stabilization, minChange, windows)."""
    start_up: float | None
    """Until the new pods were ready."""
    unmet_seconds: float
    """Seconds of unmet demand from the rise's start to the next rise or the scenario's end."""
    total: float | None = None
    """Seconds from the rise's start until replicas or requests were first raised; None if they were not."""
    cover_seconds: float = 0.0
    """Seconds until ready pods covered the demand: the longest continuous time of unmet demand from the rise's start to
    the next rise. 0 if demand was always covered; 90 if demand was unmet for 30 s, and later for 90 s."""
    covered: bool = True
    """False if that longest time had not ended when the next rise began."""


Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]


class Totals(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Figures of a policy over the scenario after its warm-up, as in the JSON. Slack is 1 - used / requested (0 if
    nothing was requested)."""

    core_hours_requested: Amount
    core_hours_used: Amount
    gib_hours_requested: Amount
    gib_hours_used: Amount
    slack_cpu: float
    slack_memory: float
    unmet_core_seconds: Annotated[Amount, Meta(description="Demand for CPU that no pod served.")]
    unmet_share: Annotated[float, Meta(ge=0, le=1, description="Share of time with unmet demand.")]
    ooms: Annotated[
        Count, Meta(description="Containers that ended because they ran out of memory, or of heap.")
    ]
    restarts: Annotated[Count, Meta(description="Restarted containers and replacement pods.")]
    replica_changes: Count
    request_changes: Count
    node_hours: Amount
    reaction_median_seconds: Annotated[
        float | None,
        Meta(description="Seconds from a rise of the load to the first change; null without a change."),
    ]
    reaction_max_seconds: float | None
    demand_core_seconds: Annotated[Amount, Meta(description="All demand for CPU.")]
    unmet_demand_share: Annotated[
        float, Meta(ge=0, description="Share of the demand for CPU that no pod served.")
    ]
    cover_median_seconds: Annotated[
        float | None, Meta(description="The median of the rises' coverSeconds; null without rises.")
    ]
    cover_max_seconds: Annotated[
        float | None, Meta(description="The longest of the rises' coverSeconds; null without rises.")
    ]


def _floats() -> array[float]:
    return array("d")


def _integers() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class Series:
    """Recorded values of each step (index i is time i * step), in the order of a `Tick`. CPU in millicores, memory in
    bytes."""

    step: float
    load: array[float]
    requests: Mapping[tuple[str, Resource], array[float]]
    """Mean over the pods, by container and resource. `POD` is the pod itself, if it has resources of its own."""
    demand: array[float] = field(default_factory=_floats)
    unmet: array[float] = field(default_factory=_floats)
    capacity: array[float] = field(default_factory=_floats)
    used_cpu: array[float] = field(default_factory=_floats)
    used_memory: array[float] = field(default_factory=_floats)
    requested_cpu: array[float] = field(default_factory=_floats)
    requested_memory: array[float] = field(default_factory=_floats)
    replicas: array[int] = field(default_factory=_integers)
    ready: array[int] = field(default_factory=_integers)


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """The complete result of a policy."""

    name: str
    kind: PolicyKind
    totals: Totals
    series: Series
    events: tuple[SimulationEvent, ...]
    reactions: tuple[Reaction, ...]
    dropped_events: int = 0
    """Number of events that were not kept."""


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The results of a scenario under all its policies."""

    name: str
    description: str
    start: dt.datetime
    duration: float
    step: float
    warm_up: float
    seed: int
    notes: tuple[str, ...]
    policies: tuple[PolicyResult, ...]
