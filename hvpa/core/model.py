"""What goes into a decision and what comes out of it: frozen values, no behaviour beyond small look-ups.

`Objects` is what the cluster port hands over, `Observation` what `observe` makes of it, `Decision` what `decide`
answers. What every decision makes anew is a msgspec struct, which costs a tenth of a frozen dataclass to make.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

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
from hvpa.api.values.quantity import Resource
from hvpa.core.path.path import Path, Point, ResourceKey
from hvpa.core.rules import Figures, Rules
from hvpa.core.values.lately import Demands, Lately

OwnedKind = Literal["HorizontalPodAutoscaler", "VerticalPodAutoscaler"]
T = TypeVar("T")

FIELD_MANAGER = "hvpa"
LAST_APPLIED = "hvpa.autoscaling.k8s.io/last-applied"
"""Annotation of the workload: the axes' times, the values set and what they were blended from (DESIGN 8)."""
MOST_RIVALS = 10
"""Other Hvpas with the same target that a message names. Whoever looks for them may stop at one more."""
TEMPLATE_HASH = "hvpa.autoscaling.k8s.io/template-hash"
"""Annotation of an owned HPA or VPA: a hash of the manifest that was last applied to it."""
_BEGINNING = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same for every Hvpa of an operator."""

    hpa_tolerance_ppm: int = 100_000
    """kube-controller-manager's `--horizontal-pod-autoscaler-tolerance` (0.1 by default), in parts per million."""
    vpa_period: dt.timedelta = dt.timedelta(minutes=1)
    """How often the VPA's recommender writes: its `--recommender-interval` (1 minute by default), or how long one of
    its rounds takes."""


class OtherHvpa(msgspec.Struct, frozen=True, gc=False):
    """Another live Hvpa with the same target: its name, whether its mode is Apply, what its spec deploys, and when it
    was created (None: unknown, which counts as the beginning of time)."""

    name: str
    applies: bool = True
    deploys_hpa: bool = False
    deploys_vpa: bool = False
    created: dt.datetime | None = None

    @property
    def rank(self) -> tuple[bool, bool, dt.datetime, str]:
        """The order among Hvpas with the same target, the smallest first: those in mode Apply, then those that deploy
        an HPA, then the oldest. Where several could create an HPA or VPA, the first one does."""
        return (not self.applies, not self.deploys_hpa, self.created or _BEGINNING, self.name)


class RefusedResize(msgspec.Struct, frozen=True, gc=False):
    """A resize of a pod that the API server or the kubelet refused: what was asked for, the message, when it did so
    last, how often in a row, and whether it would have refused any size. If the kubelet refused memory limits, `used`
    is what these containers use at least, and `body` is empty. It is not kept across a restart of the operator: then it
    is tried once more."""

    uid: str
    body: Mapping[str, object]
    message: str
    time: dt.datetime
    count: int = 1
    of_any_size: bool = False
    used: Mapping[str, int] = {}


class MemoryUse(msgspec.Struct, frozen=True, gc=False):
    """What pods used of memory when they were last measured, in bytes by pod and container, and when that was read."""

    time: dt.datetime
    of: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that may have to do with one Hvpa, as the cluster holds them; who belongs to whom is not yet decided.

    `others` are other live Hvpas with the same target, by rank (the first MOST_RIVALS + 1 at most), `hpas` and `vpas`
    every one that is owned by this Hvpa, targets it, its workload or one of the `others`, is named by it, or holds a
    name that it would give; `pods` those that the workload's selector matches. `vpa_served`: whether the cluster
    knows VerticalPodAutoscalers at all. `refused_resizes` are of these pods. `creation_sizes` are the sizes of new pods
    that were written for this Hvpa, by owner; None where the cluster has no policy that goes by them. `memory_use` is
    of these pods; None where it was not asked for.
    """

    hvpa: HvpaObject
    workload: Workload | None = None
    others: tuple[OtherHvpa, ...] = ()
    hpas: tuple[Hpa, ...] = ()
    vpas: tuple[Vpa, ...] = ()
    pods: tuple[Pod, ...] = ()
    vpa_served: bool = True
    refused_resizes: tuple[RefusedResize, ...] = ()
    creation_sizes: tuple[tuple[str, str], ...] | None = None
    memory_use: MemoryUse | None = None
    unlisted: str | None = None
    """Why workloads of the target's kind can't be read, empty while that is not known yet; None where they can."""
    silent_recommenders: Mapping[str, dt.datetime] = field(default_factory=dict)
    """VPA recommenders that are silent, by name (empty: the default one), and their last sign of life."""
    checkpoints: tuple[VpaCheckpoint, ...] = ()
    """What the recommender saved of the VPAs; empty also if it can't be read."""
    postponed: bool = False
    """Whether this decision is late because the namespace was over its budget of computing time."""
    lately: Lately | None = None
    """What the HPA's metrics called for of late, where the caller has watched them."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """Why something is as it is: a condition's reason and message."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class OwnedChange:
    """One write to an HPA or VPA: `apply` (server-side apply of `manifest`), `delete`, or `release` (drop our owner
    reference). `uid` and `resource_version` make delete and release conditional."""

    action: Literal["apply", "delete", "release"]
    kind: OwnedKind
    name: str
    manifest: Mapping[str, object] | None = None
    uid: str = ""
    resource_version: str = ""
    owner_references: tuple[Mapping[str, object], ...] = ()
    """`release` only: the owner references that stay."""


class Standing(msgspec.Struct, frozen=True, gc=False):
    """How a recommender stands to this Hvpa, without what it recommends."""

    configured: bool
    """Whether the spec asks for one."""
    problem: Finding | None = None
    """Why it can't be used."""
    changes: tuple[OwnedChange, ...] = ()
    in_charge: bool = False
    """Whether this Hvpa's recommender may govern the axis (owned, being created, or named and fit, or read as it is);
    False where it is not configured, not found, refused or a foreign one acts."""
    read_as_is: Finding | None = None
    """Whose it is, where it is another's and read as it is (`Recommend` only). Such an HPA does not know this Hvpa: its
    measurements count, and not the count that it asks for."""


class Recommender(Standing, Generic[T], frozen=True, gc=False):
    """A recommender as far as this Hvpa may use it, with its object where there is one."""

    object: T | None = None


class BoundRatio(msgspec.Struct, frozen=True, gc=False):
    """The upper bound of a container's recommendation in multiples of its uncapped target, rounded up. `capped`: the
    bound is `maxAllowed`, and without that it would be larger."""

    container: str
    ratio: float
    capped: bool = False


class PodShape(msgspec.Struct, frozen=True, gc=False):
    """What so many pods have, in millicores and bytes by container: by the kubelet or by their spec, whichever is less.
    `refuses`: the kubelet has put their resize off, or can't do it."""

    sizes: Mapping[str, Mapping[Resource, int]]
    count: int = 1
    refuses: bool = False


class PodTotal(msgspec.Struct, frozen=True, gc=False):
    """What a pod requests of one resource by the HPA's rules, in millicores or bytes: the mean of the ready ones,
    rounded up. `is_whole`: requests of the pods themselves say so (pod-level `resources`), not their containers'."""

    requested: int
    is_whole: bool = False


class StuckPods(msgspec.Struct, frozen=True, gc=False):
    """Pods that can't run for one and the same reason: the name of the first of them and its message, and how many
    there are. Reported from `since` to before `until` (None: without such a limit)."""

    reason: str
    pod: str
    message: str = ""
    count: int = 1
    since: dt.datetime | None = None
    until: dt.datetime | None = None


class PodsSeen(msgspec.Struct, frozen=True, gc=False):
    """What a decision needs of the pods: counts by state, who starves, and when the last one became ready."""

    ready: int = 0
    running: int = 0
    others_ready: int = 0
    """Pods that the workload's selector matches and that belong to another owner: the HPA counts them as well."""
    others_running: int = 0
    last_ready_at: dt.datetime | None = None
    unready: tuple[str, ...] = ()
    """Names of pods that are not ready (ten at most)."""
    newest_unready: dt.datetime | None = None
    """When the last one of those that are not ready was created; None where all are."""
    unready_since: dt.datetime | None = None
    """When a pod last became unready, of those that are not ready; None if all are, or none says it."""
    terminating: int = 0
    stuck: tuple[StuckPods, ...] = ()
    """Those that can't be scheduled or started, by reason."""
    starving: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    """Containers that were OOMKilled, or whose pod was evicted for memory, within the last day and with at least the
    template's memory, and when that was last."""
    living: int = 0
    """Pods that run or will run."""
    unlike: Mapping[frozenset[ResourceKey], int] = msgspec.field(default_factory=dict)
    """How many of them have other requests or limits than the template, by the container resources that differ."""

    counted_from: tuple[dt.datetime, ...] = ()
    """From when on the HPA counts the CPU of each pod that it counts, in order. A pod that lost its readiness later
    than when it started counts as before."""

    failed: int = 0
    """Those of which a container failed within the last ten minutes: what they use since is no measure of demand."""
    unproven_until: tuple[dt.datetime, ...] = ()
    """Until when each of them counts as one that failed, or each of the others as new, in order."""

    running_from: tuple[dt.datetime, ...] = ()
    """From when on other metrics than CPU can be of each pod that runs, in order."""

    # For joint decisions only: what containers and native sidecars request in the mean, rounded up, and what pods have
    # by size, what pods request as a whole, the names of containers and native sidecars, and since when the ready pods
    # are ready, in order.
    sizes: Mapping[ResourceKey, int] = msgspec.field(default_factory=dict)
    shapes: tuple[PodShape, ...] = ()
    totals: Mapping[Resource, PodTotal] = msgspec.field(default_factory=dict)
    containers: frozenset[str] = frozenset()
    ready_since: tuple[dt.datetime, ...] = ()


class ObservedState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a decision depends on, but for the time and for what the HPA says: most of it is the same for long."""

    metadata: Meta
    spec: HvpaSpec | None
    status: HvpaStatus
    problem: Finding | None
    """Why nothing can be scaled at all (invalid spec, no target, two Hvpas on one target); None when all is well."""
    workload: Workload | None
    """The target; None where nothing can be scaled. Where pods are resized in place, with the replicas and resources
    that were decided."""
    target: Workload | None
    """The target as it is, as far as there is one, be it scaled or not."""
    horizontal: HorizontalAxis
    vertical: VerticalAxis
    legacy_override: bool
    """`overrideScaleUpStabilization` of a status that gardener's controller wrote."""
    hpa: Standing
    vpa: Recommender[Vpa]
    pods: PodsSeen
    history: tuple[BoundRatio, ...] = ()
    """How large the upper bounds of the VPA's recommendation are, which tells how far its history goes."""
    rollout: RolloutRecord | None = None
    """The rollout of the target that the operator began, if it did."""
    resizable: tuple[Pod, ...] = ()
    """The workload's own pods, if they are resized in place or a size is tried on some first."""
    others: tuple[Pod, ...] = ()
    """Pods that the workload's selector matches and that belong to another owner, likewise."""

    # As in `Objects`.
    refused_resizes: tuple[RefusedResize, ...] = ()
    creation_sizes: tuple[tuple[str, str], ...] | None = None
    memory_use: MemoryUse | None = None
    postponed: bool = False
    lately: Lately | None = None


class Observation(ObservedState, frozen=True, kw_only=True):
    """Everything a decision depends on, resolved: the same observation always gives the same decision."""

    now: dt.datetime
    changes_at: dt.datetime | None
    """When time alone makes another observation of the same objects (None: never)."""
    settings: Settings
    hpa: Recommender[Hpa]


class WorkloadPatch(msgspec.Struct, frozen=True, gc=False):
    """The one write to the workload: a strategic merge patch, conditional on `resource_version`; or of its replicas
    alone, by its `scale` subresource."""

    kind: str
    name: str
    resource_version: str
    body: Mapping[str, object]
    is_scale: bool = False
    api_version: str = DEFAULT_API_VERSION


class PodResize(msgspec.Struct, frozen=True, gc=False):
    """A write to the `resize` subresource of a pod: a strategic merge patch, conditional on the pod's uid.
    `lowers_limit`: it lowers a memory limit, which is not to come near what is used. `refused`: what the kubelet
    refused and this puts back."""

    pod: str
    uid: str
    body: Mapping[str, object]
    lowers_limit: bool = False
    refused: tuple[RefusedResize, ...] = ()


class Involved(msgspec.Struct, frozen=True, gc=False):
    """The object that an Event is about, in the Hvpa's namespace."""

    api_version: str
    kind: str
    name: str
    uid: str
    resource_version: str


class Event(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes Event: on `involved`, or on the Hvpa where that is None."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    involved: Involved | None = None


class Blocked(msgspec.Struct, frozen=True, gc=False):
    """A change that is wanted and held back. `current` and `wanted` are replicas, millicores or bytes."""

    axis: Axis
    direction: Direction
    reason: str
    current: int
    wanted: int
    container: str | None = None
    resource: Resource | None = None
    until: dt.datetime | None = None
    figures: Figures | None = None
    """By which figures the gate holds it back (None: by none)."""


class ResourceRequirements(msgspec.Struct, frozen=True, gc=False):
    """Requests and limits of CPU (millicores) and memory (bytes) of one container."""

    requests: Mapping[Resource, int]
    limits: Mapping[Resource, int]


class ReplicaView(msgspec.Struct, frozen=True, gc=False):
    """Replica counts of a decision: now, the HPA's trusted desired replicas, after this decision, and if nothing were
    blocked."""

    current: int
    hpa: int | None
    target: int
    recommended: int


class JointResource(msgspec.Struct, frozen=True, gc=False):
    """One container's one resource in a joint decision (DESIGN 5.4), in millicores or bytes.

    `base` is its size where the path begins, `usual` and `present` are the demand of all pods together without their
    base usage (None: unknown), `usual_from` and `present_from` their sources, in words, `usual_replicas` and
    `present_replicas` the counts that they ask for. `current` is the request now, `size` the one that is wanted;
    `stays` is why it stays although the path has another one, in words (empty: it has the same, or it does not stay);
    `bound` is the name of what sets the largest size.
    """

    key: ResourceKey
    base: int
    current: int
    size: int
    usual: int | None = None
    usual_from: str = ""
    usual_replicas: int | None = None
    present: int | None = None
    present_from: str = ""
    present_replicas: int | None = None
    stays: str = ""
    bound: str = ""


class JointView(Protocol):
    """A joint decision, as people are shown it. Most decisions are not, so each part is found when it is asked for."""

    @property
    def path(self) -> Path:
        """The path."""

    @property
    def items(self) -> tuple[JointResource, ...]:
        """Each container's resources."""

    @property
    def usual(self) -> Point | None:
        """The point of the path that serves the usual demand (None: no container resource has one)."""

    @property
    def wanted(self) -> Point:
        """Where the path leads when nothing is blocked."""

    @property
    def because(self) -> str:
        """What bound the count, in words."""


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What to write, in this order: workload, status, `spec.replicas`, owned objects, events; and when to look again.
    Where pods are resized in place: status, sizes of new pods, workload, pods, then the rest.

    `status` holds when all writes succeed. `weight_ppm` is the vertical weight in parts per million. `containers` is
    what the workload is set to after this decision, `recommended` what it would be set to if nothing were blocked,
    `steps` the reasoning in words for `explain`.
    """

    status: HvpaStatus
    workload_patch: WorkloadPatch | None = None
    scale_replicas: int | None = None
    owned: tuple[OwnedChange, ...] = ()
    events: tuple[Event, ...] = ()
    recheck_after: dt.timedelta | None = None
    replicas: ReplicaView | None = None
    weight_ppm: int | None = None
    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    recommended: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    applied: tuple[tuple[Axis, Direction], ...] = ()
    """The axes and directions in which this decision changes the workload (for metrics and events)."""
    patched: tuple[Axis, ...] = ()
    """The axes that `workload_patch` changes: in place, also what was decided earlier and is not written yet."""
    rules: tuple[Rules, ...] = ()
    """The waits and thresholds of each direction, by which its gates decided."""
    rollout_gaps: tuple[str, ...] = ()
    """What the workload's last rollout lacks, in words."""
    settles_at: dt.datetime | None = None
    """Until when changes wait for that rollout, past or to come (None: it is complete, or no clock ends it)."""
    joint: JointView | None = None
    """How both axes were solved together (`Trajectory` only)."""
    resizes: tuple[PodResize, ...] = ()
    """Pods to be resized in place."""
    creation_sizes: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    """Sizes of new pods to be written, by owner; None for one that goes."""
    called_for: Demands | None = None
    """What the HPA's metrics call for, to be watched by the caller (`Objects.lately`); None where nobody asks."""
