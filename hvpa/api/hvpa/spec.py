"""The spec of an Hvpa (DESIGN 3.1 and 3.2), put together from the other models of this package.

Cron expressions and names of time zones are judged in `hvpa.core.spec.check`: the API server can't judge
them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field

from hvpa.api.hvpa.actuation import UpdateStrategy
from hvpa.api.hvpa.forecast import Forecast
from hvpa.api.hvpa.intervals import INTERVAL_RULES, Overlap, ScalingInterval, overlaps, weights_in_ppm
from hvpa.api.hvpa.scaling import HpaScaleUp, ScaleParams, ScaleType, VpaScaleDown, VpaScaleUp
from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.hvpa.templates import HpaTemplate, VpaTemplate
from hvpa.api.hvpa.trajectory import Trajectory
from hvpa.api.hvpa.windows import MOST_WINDOWS, MaintenanceTimeWindow, MaintenanceWindow, ScheduledFloor
from hvpa.api.schema.base import Rule, SpecModel, keeps
from hvpa.api.schema.fields import LIST_LENGTH, ApiVersion, Count, Flag, KindName, ObjectName

Mode = Literal["Apply", "Recommend", "Paused"]
Blend = Literal["Additive", "Trajectory"]

_NAME_OR_DEPLOY = Rule(
    "!has(self.name) || !has(self.deploy) || !self.deploy",
    lambda axis: axis.name is None or not axis.deploy,
    "name an existing object, or deploy one: not both",
    ".name",
)


class TargetRef(SpecModel):
    """The workload that is scaled, in the Hvpa's namespace."""

    api_version: ApiVersion | None = None
    """The workload's API version, such as apps/v1."""
    kind: KindName
    """The workload's kind: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, or, with an
    updateStrategy of type InPlace, any kind with a scale subresource."""
    name: ObjectName
    """The workload's name."""


class HpaSpec(SpecModel):
    """Horizontal scaling: how many replicas."""

    RULES = (
        _NAME_OR_DEPLOY,
        Rule(
            "!has(self.deploy) || !self.deploy || (has(self.template) && has(self.template.spec)"
            " && has(self.template.spec.maxReplicas) && self.template.spec.maxReplicas > 0)",
            lambda axis: not axis.deploy or axis.template.spec is not None,
            "is required where deploy is true, and greater than 0",
            ".template.spec.maxReplicas",
        ),
        Rule(
            "!has(self.deploy) || !self.deploy || !has(self.template) || !has(self.template.spec)"
            " || !has(self.template.spec.minReplicas) || self.template.spec.minReplicas > 0",
            lambda axis: (
                not axis.deploy or axis.template.spec is None or axis.template.spec.min_replicas != 0
            ),
            "must be greater than 0 where deploy is true: HVPA leaves a workload at 0 replicas alone",
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
    """Name of an existing HorizontalPodAutoscaler to read instead of deploying one; it must target this Hvpa, or
    in mode Recommend the workload."""
    deploy: Flag = False
    """Whether a HorizontalPodAutoscaler is created from the template, and owned."""
    selector: LabelSelector = LabelSelector()
    """HorizontalPodAutoscalers that may be adopted."""
    template: HpaTemplate = HpaTemplate()
    """The HorizontalPodAutoscaler that is deployed."""
    scale_up: HpaScaleUp = HpaScaleUp()
    """When replicas are added."""
    scale_down: ScaleType = ScaleType()
    """When replicas are taken away."""
    schedule: Annotated[tuple[ScheduledFloor, ...], Field(max_length=MOST_WINDOWS)] = ()
    """Floors of the number of replicas by cron expressions, for load that is known in advance. The largest one that has
    begun counts, beside the HorizontalPodAutoscaler's minReplicas, which stays as it is."""


class VpaSpec(SpecModel):
    """Vertical scaling: how large the requests of each container."""

    RULES = (_NAME_OR_DEPLOY,)

    name: ObjectName | None = None
    """Name of an existing VerticalPodAutoscaler to read instead of deploying one; its update mode must be Off, or
    in mode Recommend any."""
    deploy: Flag = False
    """Whether a VerticalPodAutoscaler is created from the template, and owned."""
    selector: LabelSelector = LabelSelector()
    """VerticalPodAutoscalers that may be adopted."""
    template: VpaTemplate = VpaTemplate()
    """The VerticalPodAutoscaler that is deployed."""
    scale_up: VpaScaleUp = VpaScaleUp()
    """When requests are raised."""
    scale_down: VpaScaleDown = VpaScaleDown()
    """When requests are lowered."""
    limits_requests_gap_scale_params: ScaleParams = ScaleParams()
    """How far a limit is kept above its request: by value or by percentage of the request, whichever is more.
    In proportion where nothing is set."""


class HvpaSpec(SpecModel):
    """How a workload is scaled horizontally and vertically."""

    RULES = (
        Rule(
            "!has(self.trajectory) || !has(self.blend) || self.blend != 'Additive'",
            lambda spec: spec.trajectory is None or spec.blend != "Additive",
            "must not be Additive where trajectory is set",
            ".blend",
        ),
        Rule(
            "!has(self.trajectory) || !has(self.trajectory.intervals) || self.trajectory.intervals.size() == 0"
            " || !has(self.weightBasedScalingIntervals) || self.weightBasedScalingIntervals.size() == 0",
            lambda spec: (
                not (spec.trajectory and spec.trajectory.intervals and spec.weight_based_scaling_intervals)
            ),
            "must not be set beside weightBasedScalingIntervals:"
            " the path is either written out or drawn by weights",
            ".trajectory.intervals",
        ),
    )

    replicas: Count | None = None
    """Where the HorizontalPodAutoscaler writes the number of replicas that it wants, through the scale
    subresource. Kept by the operator; not the number of replicas of the workload."""
    target_ref: TargetRef
    """The workload that is scaled."""
    hpa: HpaSpec = HpaSpec()
    """Horizontal scaling."""
    vpa: VpaSpec = VpaSpec()
    """Vertical scaling."""
    weight_based_scaling_intervals: Annotated[
        tuple[ScalingInterval, ...], Field(max_length=LIST_LENGTH), *keeps(*INTERVAL_RULES)
    ] = ()
    """How much of a change is vertical, by the present number of replicas. The list may have any order: the first
    interval that holds the number counts. Weights are percentages, or fractions where none is above 1."""
    maintenance_time_window: MaintenanceTimeWindow | None = None
    """Daily window for directions whose update mode is MaintenanceWindow."""
    maintenance_windows: Annotated[tuple[MaintenanceWindow, ...], Field(max_length=MOST_WINDOWS)] = ()
    """Further windows, by cron expressions."""
    mode: Mode = "Apply"
    """Apply scales the workload; Recommend reads the HPA and VPA of the workload as they are, shows in the status what
    Apply would do, and changes nothing; Paused is like Recommend, but sets the condition Paused: use it to stop scaling
    in an incident."""
    blend: Blend | None = None
    """How two recommendations become one change. Additive: each axis takes its share of its recommender's step.
    Trajectory: every level of demand maps to one fixed combination of replica count and pod size. Where it is
    missing: Trajectory if trajectory is set, else Additive."""
    trajectory: Trajectory | None = None
    """The path that both axes are scaled along together."""
    forecast: Forecast | None = None
    """A floor of the number of replicas by the time of day, from what was needed on the days before. Off where it is
    missing."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """How a changed size reaches the pods."""

    @property
    def strategy(self) -> UpdateStrategy:
        """`update_strategy` with the type that counts (DESIGN 5.6)."""
        found = self.update_strategy
        if found.type is not None:
            return found
        return found.resizing if self.joint else found.replacing

    def without_resizes(self) -> Self:
        """The same for an API server that can't resize pods, where the default strategy is Rollout."""
        if self.update_strategy.type is not None:
            return self
        return self.model_copy(update={"update_strategy": self.update_strategy.replacing})

    def replacing_pods(self) -> Self:
        """The same with Rollout in place of InPlaceOrRollout, whose pods could not be resized."""
        named = self.update_strategy
        strategy = named.replacing if named.is_default else named.model_copy(update={"type": "Rollout"})
        return self.model_copy(update={"update_strategy": strategy})

    @cached_property
    def joint(self) -> bool:
        """Whether both axes are solved together, on a path (`Trajectory`)."""
        return self.blend == "Trajectory" or (self.blend is None and self.trajectory is not None)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and probably not meant, a sentence each."""
        return tuple(f"spec.weightBasedScalingIntervals[{one.later}] {one}" for one in self.overlaps)

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Intervals that share more than a boundary with an earlier entry of the list."""
        template = self.hpa.template.spec if self.hpa.deploy else None
        lower = 1 if template is None else template.min_replicas or 1
        return overlaps(self.weight_based_scaling_intervals, lower)

    @cached_property
    def weights_ppm(self) -> tuple[int, ...]:
        """The vertical weight of each interval in parts per million: fractions and percentages by `weights_in_ppm`."""
        return weights_in_ppm(self.weight_based_scaling_intervals)
