"""`status`: what was decided for running pods, how far they have got, the trial of a new size
(`spec.updateStrategy`), and the fast signal (`spec.fastSignal`)."""

from __future__ import annotations

import datetime as dt

from pydantic import Field

from hvpa.api.schema.base import StatusModel
from hvpa.api.schema.fields import RecordedDuration, Timestamp, Whole


class RecommendedContainer(StatusModel):
    """Resources of a container."""

    name: str
    """The container's name. `(shared)` stands for what containers without requests share of the pod's own resources."""
    requests: dict[str, str] = Field(default_factory=dict)
    """Requests by resource."""
    limits: dict[str, str] = Field(default_factory=dict)
    """Limits by resource."""


class BoostedContainer(RecommendedContainer):
    """CPU for the start of pods, and its duration."""

    at_most: RecordedDuration = Field(default=dt.timedelta(minutes=2), json_schema_extra={"default": "2m"})
    """How long the boost lasts at most (`spec.startupBoost`): the longest that pods with this CPU may have had."""


class CanaryRun(StatusModel):
    """A new size that HVPA tries on some pods first (`spec.updateStrategy.canary`)."""

    pods: tuple[str, ...] = ()
    """Names of the pods that get the new size first."""
    since: Timestamp | None = None
    """Time at which all of these pods had the new size. Missing until then."""
    previous: tuple[RecommendedContainer, ...] = ()
    """Size of the other pods. If the new size fails, all pods get it back."""


class CanaryMetric(StatusModel):
    """A metric of `spec.updateStrategy.canary.rollbackOnMetrics`: during a trial, and while it has no value."""

    metric: str
    """The metric's name and selector, such as `External p99{service=web}`."""
    above: str = ""
    """The threshold."""
    value: str = ""
    """The last value, written every 5 minutes, and when it passes the threshold; empty if there has been none."""
    time: Timestamp | None = None
    """Time at which this value was measured."""
    was_good: bool = False
    """Whether a value was at or below the threshold, since HVPA began to read the metric for this trial."""
    bad_since: Timestamp | None = None
    """Time of the first value above the threshold, after the last value that was not above it."""
    message: str = ""
    """Why the metric has no value now."""


class TemplateWrite(StatusModel):
    """HVPA's change of a pod template, for memory that containers read when they start (`spec.runtimes`)."""

    generation: Whole
    """Generation of the workload before the change."""
    time: Timestamp
    """Time of the change."""


class DesiredSize(StatusModel):
    """Decided replicas and resources of a workload whose pods are resized in place. HVPA stores them before it acts. If
    it is stopped in between, it continues from here (DESIGN 11.2)."""

    replicas: Whole
    """Number of replicas."""
    containers: tuple[RecommendedContainer, ...] = ()
    """Resources of the containers that HVPA scales."""
    since: Timestamp
    """Time of the last decision that changed the replicas or the resources."""
    canary: CanaryRun | None = Field(default=None, exclude_if=lambda value: value is None)
    """The canary of the new size, until it ends."""
    generation: Whole = 0
    """Generation of the workload when HVPA decided the replicas. While the workload still has this generation, HVPA has
    not written the replicas."""
    written: TemplateWrite | None = Field(default=None, exclude_if=lambda value: value is None)
    """When HVPA wrote this size to the pod template, for memory that containers read when they start."""


class Actuation(StatusModel):
    """Progress of the pods towards the desired size."""

    resized: str = ""
    """Pods that have the desired size, and all pods, such as 8/10."""
    pods: Whole = 0
    """Pods that run or will run."""
    in_progress: Whole = 0
    """Pods whose resize is in progress."""
    deferred: Whole = 0
    """Pods whose node has no room at present."""
    infeasible: Whole = 0
    """Pods that can't be resized."""
    waiting: Whole = 0
    """Pods that don't have the desired size and whose resize has not started, with those that start."""
    starting: Whole = Field(default=0, exclude_if=lambda value: value == 0)
    """Pods that have or get more CPU for their start (`spec.startupBoost`)."""
    size_at_creation: bool = False
    """Whether new pods start with the desired size, which requires config/size-at-creation. Otherwise HVPA resizes them
    when they run."""
    message: str = ""
    """Why pods are deferred, infeasible or waiting, and why a start has no boost. Also lists pods that match the
    selector but have another owner: HVPA does not resize them."""


class FastSignalStatus(StatusModel):
    """Usage that the kubelets of the pods report (`spec.fastSignal`)."""

    source: str = "/metrics/resource"
    """What HVPA reads from the kubelets."""
    nodes: Whole = 0
    """Number of nodes that run the pods."""
    silent: Whole = 0
    """Number of nodes whose kubelets report no usage; the condition FastSignal says why."""
    sampling_seconds: Whole | None = None
    """Seconds between two samples of a container, as measured, on the node that takes them least often. HVPA polls
    every 2 to 10 seconds."""
    last_sample_time: Timestamp | None = None
    """Time at which the newest sample arrived, written every 5 minutes. The condition FastSignal is False if no sample
    has arrived for a minute."""


class HeldRollout(StatusModel):
    """A rollout that HVPA started and keeps from replacing further pods for a time."""

    reason: str
    """What holds the rollout. MaintenanceWindow: no window is open. Canary: HVPA tries the new size on the first pods.
    Paused or Recommend: in this mode HVPA does not continue the rollout."""
    message: str = ""
    """Progress of the rollout, and when it continues."""
    until: Timestamp | None = None
    """Earliest time at which the rollout continues, if that depends on time."""
