"""Input and output of a decision: frozen values without behaviour beyond small look-ups.

The cluster port returns `Objects`, `observe` turns them into an `Observation`, and `decide` returns a `Decision`.
Values that every decision creates are msgspec structs, which take a tenth of the time of a frozen dataclass.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.progress import CanaryMetric
from hvpa.api.hvpa.resource import API_VERSION as API_VERSION
from hvpa.api.hvpa.resource import GROUP as GROUP
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import Axis as Axis
from hvpa.api.hvpa.status import Direction as Direction
from hvpa.api.hvpa.status import HorizontalAxis, HvpaStatus, RolloutRecord, VerticalAxis
from hvpa.api.objects.checkpoints import VpaCheckpoint
from hvpa.api.objects.kinds import DEFAULT_API_VERSION
from hvpa.api.objects.read_models import Hpa, Meta, Pod, Vpa, Workload
from hvpa.api.schema.base import FieldPath
from hvpa.api.values.quantity import Resource
from hvpa.core.path.path import Path, Point, ResourceKey
from hvpa.core.rules import GateFigures, Rules
from hvpa.core.values.lately import Demands, Lately

OwnedKind = Literal["HorizontalPodAutoscaler", "VerticalPodAutoscaler"]
T = TypeVar("T")

FIELD_MANAGER = "hvpa"
LAST_APPLIED = "hvpa.autoscaling.k8s.io/last-applied"
"""Annotation of the workload: the axes' times, the values set, and the targets they were blended from (DESIGN 8)."""
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: of equally ready pods, a ReplicaSet deletes those with the lowest cost first (0 without it)."""
MOST_RIVALS = 10
"""Maximum number of other Hvpas with the same target that a message names. A search may stop at one more."""
TEMPLATE_HASH = "hvpa.autoscaling.k8s.io/template-hash"
"""Annotation of an owned HPA or VPA: a hash of the manifest last applied to it."""
ADOPTED = "hvpa.autoscaling.k8s.io/adopted"
"""Annotation of an HPA or VPA that acted before an Hvpa adopted it: that Hvpa, and the spec before."""
_BEGINNING = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that are the same for every Hvpa of an operator."""

    hpa_tolerance_ppm: int = 100_000
    """kube-controller-manager's `--horizontal-pod-autoscaler-tolerance` (0.1 by default), in parts per million."""
    vpa_period: dt.timedelta = dt.timedelta(minutes=1)
    """How often the VPA's recommender writes: its `--recommender-interval` (1 minute by default), or the duration of
    one of its rounds."""


class OtherHvpa(msgspec.Struct, frozen=True, gc=False):
    """Another live Hvpa with the same target."""

    name: str
    applies: bool = True
    """Whether it is in mode Apply."""
    deploys_hpa: bool = False
    deploys_vpa: bool = False
    created: dt.datetime | None = None
    """When it was created (None: unknown, which sorts before all times)."""

    @property
    def rank(self) -> tuple[bool, bool, dt.datetime, str]:
        """The order among Hvpas with the same target, smallest first: Hvpas in mode Apply, then Hvpas that deploy an
        HPA, then the oldest. If several could create an HPA or VPA, the first Hvpa does."""
        return (not self.applies, not self.deploys_hpa, self.created or _BEGINNING, self.name)


class RefusedResize(msgspec.Struct, frozen=True, gc=False):
    """A resize of a pod that the API server or the kubelet refused. After a restart of the operator the record is lost
    and the operator tries once more."""

    uid: str
    body: Mapping[str, object]
    """The requested patch; empty if the kubelet refused memory limits."""
    message: str
    time: dt.datetime
    """The last refusal."""
    count: int = 1
    """Number of refusals in a row."""
    of_any_size: bool = False
    """Whether a resize to any size would be refused."""
    used: Mapping[str, int] = {}
    """If the kubelet refused memory limits: the least memory use of these containers, in bytes."""
    of_start: bool = False
    """Whether it was only about CPU for the pod's start."""


class MemoryUse(msgspec.Struct, frozen=True, gc=False):
    """Memory use of pods at the last measurement."""

    time: dt.datetime
    """When it was read."""
    of: Mapping[tuple[str, str], int]
    """Bytes by pod and container."""


class PodUsage(NamedTuple):
    """What a kubelet reports of a container of a pod."""

    cpu: int | None = None
    """Millicores."""
    cpu_time: dt.datetime | None = None
    """When the newest sample of the CPU arrived."""
    memory: int | None = None
    """Bytes of the working set."""
    memory_time: dt.datetime | None = None
    """When the newest sample of the memory arrived."""
    grows: bool = False
    """The memory has grown since the sample before."""
    lasting_cpu: int | None = None
    """Millicores over at least a minute; None if that is not known."""

    @classmethod
    def together(cls, parts: Sequence[PodUsage]) -> PodUsage:
        """Returns the usage of several containers of a pod, as far as that of each is known. It is as old as the oldest
        of their samples."""
        return cls(
            cpu=_of_all(sum, [one.cpu for one in parts]),
            cpu_time=_of_all(min, [one.cpu_time for one in parts]),
            memory=_of_all(sum, [one.memory for one in parts]),
            memory_time=_of_all(min, [one.memory_time for one in parts]),
            grows=any(one.grows for one in parts),
            lasting_cpu=_of_all(sum, [one.lasting_cpu for one in parts]),
        )


def _of_all(rule: Callable[[Sequence[T]], T], values: Sequence[T | None]) -> T | None:
    """Returns `rule` of these values (such as their sum); None if one of them is unknown."""
    known = [value for value in values if value is not None]
    return rule(known) if known and len(known) == len(values) else None


class FastUsage(msgspec.Struct, frozen=True, gc=False):
    """What the kubelets report of the pods, for the fast signal."""

    time: dt.datetime | None = None
    """When the newest sample arrived; None: none yet."""
    of: Mapping[tuple[str, str], PodUsage] = {}
    """By pod and container."""
    nodes: int = 0
    """Number of nodes that run the pods."""
    silent: Mapping[str, str] = {}
    """Why a kubelet reports no usage, by its node's address."""
    sampling: float | None = None
    """Seconds between two samples of a container, on the node that takes them least often; None: not known yet."""


class MetricValue(NamedTuple):
    """What the metrics API answered about a metric of a canary."""

    value: str = ""
    """A valid quantity; empty if there is none."""
    time: dt.datetime | None = None
    """When it was measured."""
    problem: str = ""
    """Why there is no value."""


class LargestNode(NamedTuple):
    """The largest CPU and memory among the nodes that pods may use."""

    allocatable: Mapping[Resource, int] = {}
    """Millicores and bytes; may be of two nodes."""
    problem: str = ""
    """Why it is not known."""
    is_awaited: bool = False
    """The nodes are being listed."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that may concern one Hvpa, as the cluster has them. `observe` decides which of them belong to it."""

    hvpa: HvpaObject
    workload: Workload | None = None
    others: tuple[OtherHvpa, ...] = ()
    """Other live Hvpas with the same target, by rank (at most the first MOST_RIVALS + 1)."""
    hpas: tuple[Hpa, ...] = ()
    """The HPAs that this Hvpa owns or names, that target it, its workload or one of the `others`, or that hold a name
    it would use."""
    vpas: tuple[Vpa, ...] = ()
    """The VPAs, selected in the same way."""
    pods: tuple[Pod, ...] = ()
    """The pods that the workload's selector matches."""
    vpa_served: bool = True
    """Whether the cluster serves VerticalPodAutoscalers."""
    refused_resizes: tuple[RefusedResize, ...] = ()
    """Refused resizes of these pods."""
    creation_sizes: tuple[tuple[str, str], ...] | None = None
    """The sizes of new pods written for this Hvpa, by owner; None if no admission policy of the cluster applies
    them."""
    memory_use: MemoryUse | None = None
    """Memory use of these pods; None if it was not requested."""
    unlisted: str | None = None
    """Why workloads of the target's kind can't be read, empty while that is unknown; None if they can."""
    silent_recommenders: Mapping[str, dt.datetime] = field(default_factory=dict)
    """VPA recommenders that are silent, by name (empty: the default recommender), and their last sign of life."""
    checkpoints: tuple[VpaCheckpoint, ...] = ()
    """The VPAs' checkpoints that the recommender saved; also empty if they can't be read."""
    postponed: bool = False
    """Whether this decision is late because the namespace exceeded its budget of computing time."""
    lately: Lately | None = None
    """The recent demand that the HPA's metrics measured, if the caller has recorded it."""
    usage: FastUsage | None = None
    """What the kubelets report of these pods; None if they are not polled."""
    canary_values: tuple[MetricValue, ...] | None = None
    """The values of the metrics that judge a canary, in the spec's order; None if there is none yet."""
    largest_node: LargestNode | None = None
    """The largest node that the pods may use; None if the spec does not ask for it."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """A condition's reason and message."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class OwnedChange:
    """One write to an HPA or VPA: `apply` (server-side apply of `manifest`), `delete` (conditional on `uid`), or a JSON
    merge patch (`manifest`): `release` removes the mark of the Hvpa, and `return` also makes an adopted object as it
    was."""

    action: Literal["apply", "delete", "release", "return"]
    kind: OwnedKind
    name: str
    manifest: Mapping[str, object] | None = None
    uid: str = ""
    passed_on: tuple[FieldPath, ...] = ()
    """`apply` only: fields of the manifest's spec that HVPA does not know. It applies the manifest only if the API
    server takes all of them."""


class Standing(msgspec.Struct, frozen=True, gc=False):
    """How a recommender relates to this Hvpa, without its recommendation."""

    configured: bool
    """Whether the spec deploys or names a recommender."""
    problem: Finding | None = None
    """Why it can't be used."""
    changes: tuple[OwnedChange, ...] = ()
    in_charge: bool = False
    """Whether this Hvpa's recommender may govern the axis: it is owned, being created, named and suitable, or read as
    it is. False if it is not configured, not found or refused, or if a foreign object acts on the workload."""
    read_as_is: Finding | None = None
    """Whose recommender it is, if HVPA reads another owner's as it is (mode Recommend or Paused). Such an HPA does not
    point at this Hvpa: its measurements count, its desired replicas do not."""


class Recommender(Standing, Generic[T], frozen=True, gc=False):
    """A recommender that this Hvpa may use, with its object if it exists."""

    object: T | None = None


class BoundRatio(msgspec.Struct, frozen=True, gc=False):
    """Upper bound of a container's recommendation / its uncapped target, rounded up."""

    container: str
    ratio: float
    capped: bool = False
    """Whether the bound is `maxAllowed` and would be larger without it."""


class PodShape(msgspec.Struct, frozen=True, gc=False):
    """A size that `count` pods have, in millicores and bytes by container: the kubelet's or the spec's, whichever is
    smaller."""

    sizes: Mapping[str, Mapping[Resource, int]]
    count: int = 1
    refuses: bool = False
    """Whether the kubelet has deferred their resize, or can't do it."""


class PodTotal(msgspec.Struct, frozen=True, gc=False):
    """The mean request of the ready pods for one resource by the HPA's rules, in millicores or bytes, rounded up."""

    requested: int
    is_whole: bool = False
    """Whether this is a pod-level request (`resources` of the pod) and not the sum of its containers."""
    of_init: int = 0
    """The part of a pod-level request that is only room for init containers."""


class StuckPods(msgspec.Struct, frozen=True, gc=False):
    """Pods that can't run, all for the same reason."""

    reason: str
    pod: str
    """The first pod; `message` is about it."""
    message: str = ""
    count: int = 1
    since: dt.datetime | None = None
    """When reporting begins."""
    until: dt.datetime | None = None
    """When reporting ends (None: no limit)."""


class PodsSeen(msgspec.Struct, frozen=True, gc=False):
    """The state of the pods: counts by state, containers that ran out of memory, and the times from which the HPA
    counts pods."""

    ready: int = 0
    running: int = 0
    others_ready: int = 0
    """Ready pods that the workload's selector matches but that belong to another owner: the HPA counts them too."""
    others_running: int = 0
    """Running pods of other owners, likewise."""
    last_ready_at: dt.datetime | None = None
    unready: tuple[str, ...] = ()
    """Names of pods that are not ready (at most ten)."""
    newest_unready: dt.datetime | None = None
    """Creation time of the newest pod that is not ready; None if all are ready."""
    unready_since: dt.datetime | None = None
    """When an unready pod last lost readiness; None if all pods are ready or no pod reports it."""
    terminating: int = 0
    stuck: tuple[StuckPods, ...] = ()
    """Pods that can't be scheduled or started, by reason."""
    starving: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    """Containers that were OOMKilled, or whose pod was evicted for memory, in the last day and with at least the
    template's memory, and when this last happened."""
    living: int = 0
    """Pods that run or will run."""
    containers: frozenset[str] = frozenset()
    """Names of their containers and native sidecars."""
    unlike: Mapping[frozenset[ResourceKey], int] = msgspec.field(default_factory=dict)
    """Number of living pods whose requests or limits differ from the template, by the container resources that
    differ."""

    counted_from: tuple[dt.datetime, ...] = ()
    """For each pod, from when the HPA counts its CPU, in order. A pod that lost readiness after its start still
    counts."""

    failed: int = 0
    """Pods with a container that failed in the last ten minutes: their usage since then does not measure demand."""
    unproven_until: tuple[dt.datetime, ...] = ()
    """For each failed or new pod, until when it counts as such, in order."""

    running_from: tuple[dt.datetime, ...] = ()
    """For each running pod, when metrics other than CPU can include it, in order."""

    boosted: tuple[Fraction, Fraction] | None = None
    """If pods have more CPU for their start (their requests here are the usual ones): the CPU requests of all pods, and
    those of ready pods, relative to the usual ones."""

    # For joint decisions only.
    sizes: Mapping[ResourceKey, int] = msgspec.field(default_factory=dict)
    """Mean request of each container and native sidecar, rounded up."""
    shapes: tuple[PodShape, ...] = ()
    """The pods by size."""
    totals: Mapping[Resource, PodTotal] = msgspec.field(default_factory=dict)
    """The requests of a whole pod."""
    ready_since: tuple[dt.datetime, ...] = ()
    """When each ready pod became ready, in order."""


class _State(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The inputs of a decision except the time and the HPA's data; most of them change rarely."""

    metadata: Meta
    spec: HvpaSpec | None
    status: HvpaStatus
    problem: Finding | None
    workload: Workload | None
    target: Workload | None
    horizontal: HorizontalAxis
    vertical: VerticalAxis
    legacy_override: bool
    """`overrideScaleUpStabilization` of a status that gardener's controller wrote."""
    hpa: Standing
    vpa: Recommender[Vpa]
    pods: PodsSeen
    history: tuple[BoundRatio, ...] = ()
    """The ratios of the VPA's upper bounds, which show how long its history is."""
    rollout: RolloutRecord | None = None
    """The rollout of the target that the operator began, if any."""
    resizable: tuple[Pod, ...] = ()
    """The workload's own pods, if they are resized in place, a canary tries sizes, or pods are stuck."""
    others: tuple[Pod, ...] = ()
    """Pods that the workload's selector matches but that belong to another owner; for in-place resizes and canaries."""
    has_rival: bool = False
    """Whether another Hvpa in mode Apply has the same target."""

    # As in `Objects`.
    refused_resizes: tuple[RefusedResize, ...] = ()
    creation_sizes: tuple[tuple[str, str], ...] | None = None
    memory_use: MemoryUse | None = None
    postponed: bool = False
    lately: Lately | None = None
    usage: FastUsage | None = None
    canary_metrics: tuple[CanaryMetric, ...] = ()
    """The metrics that judge a canary, with their newest values."""
    canary_is_read: bool = False
    """Whether they have been read since this process started."""
    largest_node: LargestNode | None = None


class ScalableState(_State, frozen=True, kw_only=True, gc=False):
    """The spec is valid, and the target exists."""

    spec: HvpaSpec
    problem: None
    workload: Workload
    """The target. If pods are resized in place, it has the decided replicas and resources."""
    target: Workload
    """The target as it is in the cluster."""


class UnscalableState(_State, frozen=True, kw_only=True, gc=False):
    """Nothing can be scaled."""

    spec: HvpaSpec | None
    problem: Finding
    """Why: an invalid spec, no target, or two Hvpas with one target."""
    workload: None
    target: Workload | None
    """The target as it is in the cluster; None if it does not exist or is too large for a status."""


ObservedState = ScalableState | UnscalableState


class _Now(_State, frozen=True, kw_only=True):
    """All inputs of a decision, resolved: the same observation always gives the same decision."""

    now: dt.datetime
    changes_at: dt.datetime | None
    """When the passing of time alone changes the observation of the same objects (None: never)."""
    settings: Settings
    hpa: Recommender[Hpa]


class ScalableObservation(ScalableState, _Now, frozen=True, kw_only=True):
    """The observation of an Hvpa that can be scaled."""

    hpa: Recommender[Hpa]


class UnscalableObservation(UnscalableState, _Now, frozen=True, kw_only=True):
    """The observation of an Hvpa that can't be scaled."""

    hpa: Recommender[Hpa]


Observation = ScalableObservation | UnscalableObservation


class WorkloadPatch(msgspec.Struct, frozen=True, gc=False):
    """The only write to the workload: a strategic merge patch, conditional on `resource_version`."""

    kind: str
    name: str
    resource_version: str
    body: Mapping[str, object]
    is_scale: bool = False
    """Whether it changes only the replicas, through the `scale` subresource."""
    api_version: str = DEFAULT_API_VERSION


class PodResize(msgspec.Struct, frozen=True, gc=False):
    """A write to a pod's `resize` subresource: a strategic merge patch, conditional on the pod's uid."""

    pod: str
    uid: str
    body: Mapping[str, object]
    lowers_limit: bool = False
    """Whether it lowers a memory limit, which must not come close to the memory in use."""
    refused: tuple[RefusedResize, ...] = ()
    """Resizes that the kubelet refused and that this patch reverts."""
    of_start: bool = False
    """Whether it gives a pod more CPU for its start, or ends that."""


class PodCost(msgspec.Struct, frozen=True, gc=False):
    """A write of a pod's deletion cost, conditional on the pod's resource version."""

    pod: str
    uid: str
    resource_version: str
    cost: str | None
    """The new value of the annotation; None removes it."""


class Involved(msgspec.Struct, frozen=True, gc=False):
    """The object that an Event refers to, in the Hvpa's namespace."""

    api_version: str
    kind: str
    name: str
    uid: str
    resource_version: str


class Event(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes Event on `involved`, or on the Hvpa if that is None."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    involved: Involved | None = None


class Blocked(msgspec.Struct, frozen=True, gc=False):
    """A wanted change that a gate holds back. `current` and `wanted` are replicas, millicores or bytes."""

    axis: Axis
    direction: Direction
    reason: str
    current: int
    wanted: int
    container: str | None = None
    resource: Resource | None = None
    until: dt.datetime | None = None
    figures: GateFigures | None = None
    """The wait or threshold of the gate (None: it has neither)."""


class ResourceRequirements(msgspec.Struct, frozen=True, gc=False):
    """Requests and limits of one container: CPU in millicores, memory in bytes."""

    requests: Mapping[Resource, int]
    limits: Mapping[Resource, int]


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """Why the demand is unknown, and until when HVPA waits for it. Meanwhile the last recommendation counts."""

    why: str
    until: dt.datetime


class ReplicaView(msgspec.Struct, frozen=True, gc=False):
    """Replica counts of a decision."""

    current: int
    hpa: int | None
    """The HPA's desired replicas, as far as they are trusted."""
    target: int
    """The count after this decision."""
    recommended: int
    """The count if no gate blocked it."""


class JointResource(msgspec.Struct, frozen=True, gc=False):
    """One container resource in a joint decision (DESIGN 5.4), in millicores or bytes."""

    key: ResourceKey
    base: int
    """Its size at the start of the path."""
    current: int
    """The present request."""
    size: int
    """The wanted request."""
    usual: int | None = None
    """Usual demand of all pods together, without base usage (None: unknown)."""
    usual_from: str = ""
    """Source of the usual demand, in words."""
    usual_replicas: int | None = None
    """The count for the usual demand."""
    present: int | None = None
    """Present demand of all pods together, without base usage (None: unknown)."""
    present_from: str = ""
    """Source of the present demand, in words."""
    present_replicas: int | None = None
    """The count for the present demand."""
    stays: str = ""
    """Why the request stays although the path has another size, in words (empty: both agree, or the request
    changes)."""
    bound: str = ""
    """Name of the setting that gives the largest size."""


class JointView(Protocol):
    """A joint decision for display. Few decisions are displayed, so each part is computed on demand."""

    @property
    def path(self) -> Path:
        """The path."""

    @property
    def items(self) -> tuple[JointResource, ...]:
        """The container resources."""

    @property
    def usual(self) -> Point | None:
        """The point of the path that serves the usual demand (None: no container resource has a path)."""

    @property
    def wanted(self) -> Point:
        """The point of the path to reach if no gate blocks it."""

    @property
    def because(self) -> str:
        """The reason for the count, in words."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The writes, and when to decide again. Order of writes: workload, status, `spec.replicas`, owned objects, events.
    If pods are resized in place: status, sizes of new pods, deletion costs, workload, pods, then the rest."""

    status: HvpaStatus
    """The status once all writes have succeeded."""
    workload_patch: WorkloadPatch | None = None
    scale_replicas: int | None = None
    owned: tuple[OwnedChange, ...] = ()
    events: tuple[Event, ...] = ()
    recheck_after: dt.timedelta | None = None
    replicas: ReplicaView | None = None
    estimate: int | None = None
    """HVPA's own count for the HPA's measurements (DESIGN 4, e); None if no metric has a value, or HVPA needs none."""
    unknown: Unknown | None = None
    """Why the demand is unknown for now."""
    weight_ppm: int | None = None
    """The vertical weight, in parts per million."""
    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    """The workload's resources after this decision."""
    recommended: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    """The resources if no gate blocked a change."""
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    """The reasoning in words, for `explain`."""
    applied: tuple[tuple[Axis, Direction], ...] = ()
    """The axes and directions in which this decision changes the workload (for metrics and events)."""
    patched: tuple[Axis, ...] = ()
    """The axes that `workload_patch` changes; in place this includes earlier decisions that are not written yet."""
    rules: tuple[Rules, ...] = ()
    """The waits and thresholds of each direction, which its gates used."""
    rollout_gaps: tuple[str, ...] = ()
    """What the workload's last rollout still lacks, in words."""
    settles_at: dt.datetime | None = None
    """Until when changes wait for that rollout, past or future (None: it is complete, or no time limit ends it)."""
    joint: JointView | None = None
    """The joint solution of both axes (`Trajectory` only)."""
    resizes: tuple[PodResize, ...] = ()
    """Pods to resize in place."""
    costs: tuple[PodCost, ...] = ()
    """Deletion costs of pods to write before the workload."""
    creation_sizes: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    """Sizes of new pods to write, by owner; None to remove the entry."""
    reported: tuple[str, ...] = ()
    """The usage that kubelets report, for each raise by the fast signal."""
    ended: tuple[str, ...] = ()
    """The raises by the fast signal that this decision takes back."""
    called_for: Demands | None = None
    """The present demand of the HPA's metrics, which the caller records (`Objects.lately`); None if it has no use."""
    judged_by: tuple[RollbackMetric, ...] = ()
    """The metrics that judge a trial that begins or goes on."""
