"""The spec of an Hvpa (DESIGN 3.1 and 3.2), composed of the other models of this package.

`hvpa.core.spec.check` checks cron expressions and time zone names, because the API server can't check them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Final, Literal, Self

from pydantic import Field, WithJsonSchema

from hvpa.api.hvpa.actuation import FastSignal, Review, Runtime, StartupBoost, UpdateStrategy
from hvpa.api.hvpa.intervals import (
    INTERVAL_RULES,
    Overlap,
    ScalingInterval,
    interval_overlaps,
    weights_in_ppm,
)
from hvpa.api.hvpa.scaling import Fallback, HpaScaleUp, ScaleParams, ScaleType, VpaScaleDown, VpaScaleUp
from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.hvpa.templates import HpaTemplate, VpaTemplate
from hvpa.api.hvpa.trajectory import Trajectory
from hvpa.api.hvpa.windows import (
    MOST_WINDOWS,
    Forecast,
    MaintenanceTimeWindow,
    MaintenanceWindow,
    ScheduledFloor,
)
from hvpa.api.schema.base import Rule, SpecModel, keeps
from hvpa.api.schema.fields import LIST_LENGTH, ApiVersion, Count, Flag, KindName, ObjectName

Mode = Literal["Apply", "Review", "Recommend", "Paused"]
APPLYING: Final = frozenset({"Apply", "Review"})
"""Modes in which HVPA changes the workload."""
Blend = Literal["Additive", "Trajectory"]

_NAME_OR_DEPLOY = Rule(
    "!has(self.name) || !has(self.deploy) || !self.deploy",
    lambda axis: axis.name is None or not axis.deploy,
    "either name an existing object or deploy a new object, not both",
    ".name",
)


_EACH_ONCE = Rule(
    "self.all(one, self.exists_one(other, other.container == one.container))",
    lambda entries: len({entry.container for entry in entries}) == len(entries),
    "must name each container once",
)


class TargetRef(SpecModel):
    """The workload to scale, in the Hvpa's namespace."""

    api_version: ApiVersion | None = None
    """The workload's API version, such as apps/v1."""
    kind: KindName
    """The workload's kind: Deployment, StatefulSet, DaemonSet, ReplicaSet or ReplicationController. With an
    updateStrategy of type InPlace, it may be any kind with a scale subresource."""
    name: ObjectName
    """The workload's name."""


class HpaSpec(SpecModel):
    """Horizontal scaling: the number of replicas."""

    RULES = (
        _NAME_OR_DEPLOY,
        Rule(
            "!has(self.deploy) || !self.deploy || (has(self.template) && has(self.template.spec)"
            " && has(self.template.spec.maxReplicas) && self.template.spec.maxReplicas > 0)",
            lambda axis: not axis.deploy or axis.template.spec is not None,
            "is required and must be greater than 0 if deploy is true",
            ".template.spec.maxReplicas",
        ),
        Rule(
            "!has(self.deploy) || !self.deploy || !has(self.template) || !has(self.template.spec)"
            " || !has(self.template.spec.minReplicas) || self.template.spec.minReplicas > 0"
            " || (has(self.template.spec.metrics)"
            " && self.template.spec.metrics.exists(metric, metric.type in ['Object', 'External']))",
            lambda axis: not axis.deploy or axis.template.spec is None or axis.template.spec.can_leave_zero,
            "0 needs a metric of type Object or External, because the others need pods",
            ".template.spec.minReplicas",
        ),
        Rule(
            "!has(self.deploy) || !self.deploy || !has(self.template) || !has(self.template.spec)"
            " || !has(self.template.spec.minReplicas) || !has(self.template.spec.maxReplicas)"
            " || self.template.spec.minReplicas <= self.template.spec.maxReplicas",
            lambda axis: not axis.deploy or axis.template.spec is None or axis.template.spec.is_in_order,
            "must not be greater than maxReplicas",
            ".template.spec.minReplicas",
        ),
    )

    name: ObjectName | None = None
    """Name of an existing HorizontalPodAutoscaler that HVPA reads instead of creating its own. It must target this
    Hvpa, or, in mode Recommend, the workload."""
    deploy: Flag = False
    """Whether HVPA creates and owns a HorizontalPodAutoscaler made from the template."""
    selector: LabelSelector = LabelSelector()
    """HorizontalPodAutoscalers that HVPA may adopt. An empty selector selects nothing."""
    template: HpaTemplate = HpaTemplate()
    """Template of the HorizontalPodAutoscaler that HVPA creates."""
    scale_up: HpaScaleUp = HpaScaleUp()
    """When HVPA adds replicas."""
    scale_down: ScaleType = ScaleType()
    """When HVPA removes replicas."""
    fallback: Fallback | None = None
    """Replicas while the HorizontalPodAutoscaler has no metrics. If not set, they stay."""
    schedule: Annotated[tuple[ScheduledFloor, ...], Field(max_length=MOST_WINDOWS)] = ()
    """Minimum numbers of replicas at scheduled times, for load that is known in advance. The largest minimum that is
    active applies, in addition to minReplicas of the HorizontalPodAutoscaler, which does not change."""


class VpaSpec(SpecModel):
    """Vertical scaling: the requests of each container."""

    RULES = (_NAME_OR_DEPLOY,)

    name: ObjectName | None = None
    """Name of an existing VerticalPodAutoscaler that HVPA reads instead of creating its own. Its update mode must be
    Off; in mode Recommend, any mode is accepted."""
    deploy: Flag = False
    """Whether HVPA creates and owns a VerticalPodAutoscaler made from the template."""
    selector: LabelSelector = LabelSelector()
    """VerticalPodAutoscalers that HVPA may adopt. An empty selector selects nothing."""
    template: VpaTemplate = VpaTemplate()
    """Template of the VerticalPodAutoscaler that HVPA creates."""
    scale_up: VpaScaleUp = VpaScaleUp()
    """When HVPA raises requests."""
    scale_down: VpaScaleDown = VpaScaleDown()
    """When HVPA lowers requests."""
    limits_requests_gap_scale_params: ScaleParams = ScaleParams()
    """Gap between a limit and its request: the larger of value and percentage of the request. If neither is set, the
    limit keeps its ratio to the request."""
    max_allowed: (
        Annotated[Literal["LargestNode"], WithJsonSchema({"type": "string", "enum": ["LargestNode"]})] | None
    ) = None
    """LargestNode: HVPA raises no request beyond what the largest node for these pods can hold; replicas serve the
    rest. The operator must be allowed to read nodes."""


class HvpaSpec(SpecModel):
    """Configures how HVPA scales one workload horizontally and vertically."""

    RULES = (
        Rule(
            "!has(self.trajectory) || !has(self.blend) || self.blend != 'Additive'",
            lambda spec: spec.trajectory is None or spec.blend != "Additive",
            "must not be Additive if trajectory is set",
            ".blend",
        ),
        Rule(
            "!has(self.trajectory) || !has(self.trajectory.intervals) || self.trajectory.intervals.size() == 0"
            " || !has(self.weightBasedScalingIntervals) || self.weightBasedScalingIntervals.size() == 0",
            lambda spec: (
                not (spec.trajectory and spec.trajectory.intervals and spec.weight_based_scaling_intervals)
            ),
            "must not be set together with weightBasedScalingIntervals:"
            " either intervals or weights define the path",
            ".trajectory.intervals",
        ),
        Rule(
            "!has(self.startupBoost) || self.startupBoost.size() == 0"
            " || (has(self.updateStrategy) && has(self.updateStrategy.type)"
            " ? self.updateStrategy.type != 'Rollout'"
            " : (has(self.blend) ? self.blend == 'Trajectory' : has(self.trajectory)))",
            lambda spec: not spec.startup_boost or spec.strategy.in_place,
            "needs updateStrategy.type InPlace or InPlaceOrRollout: the boost ends with a resize",
            ".startupBoost",
        ),
        Rule(
            "!has(self.hpa) || !has(self.hpa.fallback) || !has(self.hpa.fallback.replicas)"
            " || self.hpa.fallback.replicas != 'AsUsual' || has(self.forecast)",
            lambda spec: (
                spec.hpa.fallback is None
                or spec.hpa.fallback.replicas != "AsUsual"
                or spec.forecast is not None
            ),
            "AsUsual needs spec.forecast, which records the replicas by time of day",
            ".hpa.fallback.replicas",
        ),
    )

    replicas: Count | None = None
    """The HorizontalPodAutoscaler's desired replicas, which it writes through the scale subresource. The operator
    maintains this field. It is not the workload's number of replicas."""
    target_ref: TargetRef
    """The workload to scale."""
    hpa: HpaSpec = HpaSpec()
    """Horizontal scaling."""
    vpa: VpaSpec = VpaSpec()
    """Vertical scaling."""
    weight_based_scaling_intervals: Annotated[
        tuple[ScalingInterval, ...], Field(max_length=LIST_LENGTH), *keeps(*INTERVAL_RULES)
    ] = ()
    """Share of a change that is vertical, by current number of replicas. The list may have any order: the first
    interval that contains the number applies. Weights are percentages, or fractions if no weight is above 1."""
    maintenance_time_window: MaintenanceTimeWindow | None = None
    """Daily window for scaling directions with update mode MaintenanceWindow."""
    maintenance_windows: Annotated[tuple[MaintenanceWindow, ...], Field(max_length=MOST_WINDOWS)] = ()
    """Additional maintenance windows, defined by cron expressions."""
    mode: Mode = "Apply"
    """Apply: HVPA scales the workload. Review: HVPA scales replicas, and changes requests once they are approved (`hvpa
    approve`). Recommend: HVPA reads the workload's HPA and VPA as they are, shows in the
    status what Apply would do, and changes nothing. Paused: like Recommend, but with the condition Paused; use it to
    stop scaling during an incident."""
    blend: Blend | None = None
    """How HVPA combines the two recommendations. Additive: each axis makes a weighted part of its recommender's step.
    Trajectory: each level of demand maps to one fixed combination of replica count and pod size. If not set: Trajectory
    if trajectory is set, otherwise Additive."""
    trajectory: Trajectory | None = None
    """The path along which HVPA scales both axes together."""
    forecast: Forecast | None = None
    """Minimum number of replicas by time of day, from the replicas that were needed on previous days. If not set, there
    is no forecast."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a new size reaches the pods."""
    fast_signal: FastSignal = FastSignal()
    """Raises requests on usage that the kubelets report, if pods are resized in place."""
    startup_boost: Annotated[tuple[StartupBoost, ...], Field(max_length=20), *keeps(_EACH_ONCE)] = ()
    """More CPU for containers while their pods start, if pods are resized in place."""
    runtimes: Annotated[tuple[Runtime, ...], Field(max_length=20), *keeps(_EACH_ONCE)] = ()
    """Runtimes of containers that size their heap when they start. HVPA changes their memory accordingly."""
    review: Review = Review()
    """Rules for approval, with mode Review."""

    @property
    def applies(self) -> bool:
        """Whether HVPA changes the workload."""
        return self.mode in APPLYING

    @property
    def strategy(self) -> UpdateStrategy:
        """Returns `update_strategy` with its effective type (DESIGN 5.6)."""
        strategy = self.update_strategy
        if strategy.type is not None:
            return strategy
        return strategy.resizing if self.joint else strategy.replacing

    def at_the_end(self) -> Self:
        """Returns this spec as the Hvpa is deleted: its pods have no startup boost and no deletion cost."""
        strategy = self.update_strategy.model_copy(update={"pod_deletion_cost": "Never"})
        return self.model_copy(update={"startup_boost": (), "update_strategy": strategy})

    def without_resizes(self) -> Self:
        """Returns this spec for an API server that can't resize pods: the default strategy becomes Rollout."""
        if self.update_strategy.type is not None:
            return self
        return self.model_copy(update={"update_strategy": self.update_strategy.replacing})

    def replacing_pods(self) -> Self:
        """Returns this spec with Rollout instead of InPlaceOrRollout, for pods that could not be resized."""
        named = self.update_strategy
        strategy = named.replacing if named.is_default else named.model_copy(update={"type": "Rollout"})
        return self.model_copy(update={"update_strategy": strategy})

    @property
    def polls_kubelets(self) -> bool:
        """Whether HVPA polls the kubelets of the pods (`fast_signal`): it may raise requests of pods in place."""
        may_raise = self.applies and self.vpa.scale_up.update_policy.update_mode != "Off"
        return self.fast_signal.mode == "Raise" and self.strategy.in_place and may_raise

    @cached_property
    def joint(self) -> bool:
        """Whether HVPA solves both axes together, on a path (`Trajectory`)."""
        return self.blend == "Trajectory" or (self.blend is None and self.trajectory is not None)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Returns one sentence for each setting that is allowed but probably a mistake."""
        return tuple(
            f"spec.weightBasedScalingIntervals[{overlap.later}] {overlap}" for overlap in self.overlaps
        )

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Returns the intervals that share more than a boundary with an earlier entry of the list."""
        template = self.hpa.template.spec if self.hpa.deploy else None
        lower = 1 if template is None else template.min_replicas or 1
        return interval_overlaps(self.weight_based_scaling_intervals, lower)

    @cached_property
    def weights_ppm(self) -> tuple[int, ...]:
        """Returns the vertical weight of each interval in parts per million (see `weights_in_ppm`)."""
        return weights_in_ppm(self.weight_based_scaling_intervals)
