"""What a simulation is made of and what comes out of it: plain values that the parts of this room share.

Amounts are whole millicores and bytes where Kubernetes keeps them so (requests, limits), floats of the same units where
they are measured (usage, demand). Times inside a simulation are float seconds since the scenario's start; instants that
leave it are aware datetimes.
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
from hvpa.recommend.hpa.controller import HpaSettings
from hvpa.recommend.vpa.recommender import VpaSettings

PolicyKind = Literal["Hvpa", "HPA", "VPA", "HPA+VPA", "Fixed"]
ResizeMode = Literal["Recreate", "InPlace"]


class Load(Protocol):
    """The load over time, in the scenario's units (requests per second, jobs, percent: whatever was recorded)."""

    def at(self, seconds: float) -> float:
        """The load at this time since the scenario's start; what was last known holds until the next value."""
        ...


@dataclass(frozen=True, slots=True)
class ContainerModel:
    """A container of the workload: what it is given at first, and what it uses under load.

    CPU in millicores, memory in bytes. `cpu_base` and `memory_base` are used by each replica without any load,
    `cpu_per_unit` and `memory_per_unit` come with each unit of the load that the replica serves, `cpu_start_up` takes
    the place of `cpu_base` until the pod is ready. `memory_leak` is bytes per second since the container's start that
    are never given back, `memory_kept` the share of what the load took that is kept when the load falls: with 0.5, a
    container that went from 100 to 300 MiB and should be back at 100 has 200 MiB, until it starts anew.
    """

    name: str
    requests: Mapping[Resource, int]
    limits: Mapping[Resource, int]
    cpu_base: float = 0.0
    cpu_per_unit: float = 0.0
    cpu_start_up: float | None = None
    memory_base: float = 0.0
    memory_per_unit: float = 0.0
    memory_leak: float = 0.0
    memory_kept: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkloadModel:
    """The workload as the scenario sets it up. A custom kind is simulated as a Deployment whose pod template nobody
    changes; a ReplicaSet and a ReplicationController never replace pods; a DaemonSet has the same number of pods all
    the time. `max_surge` and `max_unavailable` are counts or percentages ("25%"), as a Deployment's; a StatefulSet
    replaces one pod at a time. `start_up` is the time in seconds from a container's start until it is ready,
    `termination_grace` how long a deleted pod keeps its place on the node, serving nothing. `resize` is how pods come
    to the resources of a changed template: others take their place, or they are resized in place, as far as that can
    be done; `resize_delay` is how long that takes, in seconds. The kubelet defers a resize to more for
    `resize_deferred` seconds whatever its node has, or refuses all (`resize_refused`). `blips` are the times at which
    a pod that is ready is not for `blip_length` seconds, with the place of that pod among them (0 to 1). A pod's part
    of the load is larger or smaller than the others' by the relative standard deviation `spread`, drawn from `seed`
    for each pod."""

    kind: str
    name: str
    namespace: str
    replicas: int
    containers: tuple[ContainerModel, ...]
    start_up: float = 0.0
    termination_grace: float = 0.0
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"
    resize: ResizeMode = "InPlace"
    resize_delay: float = 0.0
    resize_deferred: float = 0.0
    resize_refused: bool = False
    blips: tuple[tuple[float, float], ...] = ()
    blip_length: float = 0.0
    spread: float = 0.0
    seed: int = 0
    api_version: str = DEFAULT_API_VERSION

    @property
    def has_ordinals(self) -> bool:
        """Whether a pod that is replaced has its successor's name, as a StatefulSet's."""
        return self.kind == "StatefulSet"

    @property
    def is_custom(self) -> bool:
        """Whether its `scale` subresource is all that is known of it."""
        return is_custom(self.api_version, self.kind)


@dataclass(frozen=True, slots=True)
class NodeModel:
    """The nodes that the pods run on; `cpu` and `memory` are one node's allocatable millicores and bytes (None: without
    end). `count` is how many there may be (None: any number), `start_up` the seconds until one that is added can be
    used. `headroom` is the CPU that a pod may use beyond its request, because neighbours use the rest of the node:
    millicores, or a percentage of the request ("20%"); None: all that the node has."""

    cpu: int | None = None
    memory: int | None = None
    headroom: int | str | None = None
    count: int | None = None
    start_up: float = 0.0

    def beyond(self, request: int) -> float:
        """The CPU in millicores that a pod may use beyond this request."""
        if isinstance(self.headroom, str):
            return request * int(self.headroom.removesuffix("%")) / 100
        return math.inf if self.headroom is None else self.headroom


@dataclass(frozen=True, slots=True)
class MetricsModel:
    """metrics-server: every `resolution` seconds, `offset` after the start, it publishes the mean CPU usage since it
    last looked and the memory, as they were `delay` seconds ago. The rest are names of custom and external metrics
    (None: there is none): `load` is the load itself, in its own units, `share` what each ready pod has of it, and
    `queue` the jobs in a queue of which each takes a second: a second's worth of the load, and all that waits."""

    resolution: float = 15.0
    delay: float = 0.0
    offset: float = 0.0
    load: str = "load"
    share: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Controllers:
    """Periods (seconds) and flags of the recommenders, and when each controller first looks (seconds)."""

    hpa: HpaSettings = field(default_factory=HpaSettings)
    vpa: VpaSettings = field(default_factory=VpaSettings)
    hpa_offset: float = 0.0
    vpa_period: float = 60.0
    vpa_offset: float = 0.0
    updater_period: float = 60.0
    updater_offset: float = 60.0


@dataclass(frozen=True, slots=True)
class Policy:
    """One way to scale the workload: an Hvpa's manifest, specs of an HPA (autoscaling/v2) and of a VPA
    (autoscaling.k8s.io/v1) that act by themselves, or neither (a fixed size). `replicas` and `resources` replace what
    the workload begins with."""

    name: str
    kind: PolicyKind
    hvpa: Mapping[str, object] | None = None
    hpa: Mapping[str, object] | None = None
    vpa: Mapping[str, object] | None = None
    replicas: int | None = None
    resources: Mapping[str, ResourceRequirements] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load, a workload, where it runs, and the policies to compare. Times in seconds; what happens before `warm_up`
    is simulated and does not count in the totals. `backlog`: work that no pod serves waits, up to so many seconds'
    worth of the load; only the rest is lost. `notes` is what the reader should know (gaps in the load)."""

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
    backlog: float = 0.0
    notes: tuple[str, ...] = ()


class Tick(NamedTuple):
    """What the pods did in one step. CPU in millicores, mean over the step; memory in bytes at its end; counts of pods
    at its end. `demand` is what the load needs, the replicas' base included, `unmet` the part of it that no pod
    served; `capacity` is what the ready pods could have served at most."""

    demand: float
    unmet: float
    capacity: float
    used_cpu: float
    used_memory: float
    requested_cpu: int
    requested_memory: int
    pods: int
    ready: int
    ooms: int
    restarts: int
    """Containers that were started again after an OOM, and pods that took the place of others (rollout, eviction)."""


class SimulationEvent(NamedTuple):
    """Something that happened, with its reason: `time` in seconds; `kind` is Replicas, Requests, Blocked, OOM, Evicted,
    Unschedulable, Condition or Event."""

    time: float
    kind: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Reaction:
    """A rise of the load and how the policy reacted to it. `start` and `end` are the rise's in seconds.

    Each phase is a length in seconds, None where it was not reached before the next rise or no HPA took part: until
    usage left the tolerance, until a metric showed it, until the HPA looked, until the change was made (stabilization,
    minChange, windows), until the new pods were ready. `unmet_seconds` is how long demand went unmet from the rise's
    start until the next one (or the scenario's end).

    `cover_seconds` is how long it took until the pods that were ready covered the demand: the longest time without a
    break in which demand went unmet, from the rise's start until the next one. 0 where they covered it all along; 90
    where demand outgrew them for 30 s, and later for 90 s. `covered` is False where that longest time had not ended
    when the next rise began.
    """

    start: float
    end: float
    tolerance: float | None
    metric_age: float | None
    hpa_period: float | None
    gates: float | None
    start_up: float | None
    unmet_seconds: float
    total: float | None = None
    """Seconds from the rise's start until replicas or requests were first raised; None where they were not."""
    cover_seconds: float = 0.0
    covered: bool = True


Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]


class Totals(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One policy's figures over the scenario after its warm-up, as the JSON has them. Slack is 1 - used / requested (0
    where nothing was requested)."""

    core_hours_requested: Amount
    core_hours_used: Amount
    gib_hours_requested: Amount
    gib_hours_used: Amount
    slack_cpu: float
    slack_memory: float
    unmet_core_seconds: Annotated[Amount, Meta(description="Demand for CPU that no pod served.")]
    unmet_share: Annotated[float, Meta(ge=0, le=1, description="Share of time in which demand went unmet.")]
    ooms: Annotated[Count, Meta(description="Containers killed for want of memory.")]
    restarts: Annotated[
        Count, Meta(description="Containers started again, and pods that took the place of others.")
    ]
    replica_changes: Count
    request_changes: Count
    node_hours: Amount
    reaction_median_seconds: Annotated[
        float | None,
        Meta(description="From a rise of the load to the first change; null where none was made."),
    ]
    reaction_max_seconds: float | None
    demand_core_seconds: Annotated[Amount, Meta(description="All demand for CPU.")]
    unmet_demand_share: Annotated[
        float, Meta(ge=0, description="Share of the demand for CPU that no pod served.")
    ]
    cover_median_seconds: Annotated[
        float | None, Meta(description="The median of the rises' coverSeconds; null without rises.")
    ]
    cover_max_seconds: Annotated[float | None, Meta(description="The longest of them.")]


def _floats() -> array[float]:
    return array("d")


def _integers() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class Series:
    """What was recorded at each step (index i is time i * step), in the order of a `Tick`. CPU in millicores, memory in
    bytes; `requests` are the mean over the pods, by container and resource."""

    step: float
    load: array[float]
    requests: Mapping[tuple[str, Resource], array[float]]
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
    """All that one policy did."""

    name: str
    kind: PolicyKind
    totals: Totals
    series: Series
    events: tuple[SimulationEvent, ...]
    reactions: tuple[Reaction, ...]
    dropped_events: int = 0
    """Events beyond what is kept."""


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """A scenario under all its policies."""

    name: str
    description: str
    start: dt.datetime
    duration: float
    step: float
    warm_up: float
    seed: int
    notes: tuple[str, ...]
    policies: tuple[PolicyResult, ...]
