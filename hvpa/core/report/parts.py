"""The parts of a decision before they are put into words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import msgspec

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.progress import BoostedContainer, DesiredSize
from hvpa.api.hvpa.status import ForecastRecord, HorizontalAxis, RolledBack, VerticalAxis
from hvpa.core.actuation.pods import Resizing
from hvpa.core.actuation.rollouts import RolloutStep
from hvpa.core.model import Axis, Blocked, Direction, JointView, PodResize, ResourceRequirements
from hvpa.core.recommenders.desired_replicas import DesiredReplicas
from hvpa.core.values.lately import Demands
from hvpa.core.values.weight import EffectiveWeight


class AxesResult(msgspec.Struct, frozen=True, gc=False):
    """The result of both axes. All fields are empty if HVPA could decide nothing."""

    desired: DesiredReplicas = DesiredReplicas(None)
    weight: EffectiveWeight | None = None
    target: int = 0
    recommended_replicas: int = 0
    containers: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    recommended: Mapping[str, ResourceRequirements] = msgspec.field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    horizontal: HorizontalAxis | None = None
    vertical: VerticalAxis | None = None
    blocked: tuple[Blocked, ...] = ()
    steps: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    """The usage that kubelets report, for each raise by the fast signal."""
    ended: tuple[str, ...] = ()
    """The raises by the fast signal that are taken back."""
    applied: tuple[tuple[Axis, Direction], ...] = ()
    scaled_to_zero: bool = False
    young_until: dt.datetime | None = None
    lost_until: Mapping[str, dt.datetime] = msgspec.field(default_factory=dict)
    """Containers whose recommendations have lost their history, and until when nothing is lowered for that reason."""
    without_request: tuple[str, ...] = ()
    joint: JointView | None = None
    called_for: Demands | None = None
    upper: int | None = None
    """maxReplicas, if there is an HPA."""
    needed: int | None = None
    """The replicas that the demand needs, whatever the present count (None: unknown). For `spec.forecast` only."""


class DecisionParts(msgspec.Struct, frozen=True, gc=False):
    """The results of both axes, and their effect on rollouts and running pods."""

    axes: AxesResult = AxesResult()
    blocked: tuple[Blocked, ...] = ()
    """The changes that a gate blocks, and those that the API server refused."""
    rollout: RolloutStep = RolloutStep()
    """The next step of the rollout that the operator began."""
    rolled_back: RolledBack | None = None
    """The size that this decision rolls back."""
    undone: RolledBack | None = None
    """The step that this decision takes back, as `hvpa undo` demands."""
    desired_size: DesiredSize | None = None
    """The decided size, kept in the status if pods are resized in place."""
    resizing: Resizing | None = None
    """Progress of the pods if they are resized in place."""
    resizes: tuple[PodResize, ...] = ()
    """The resizes that are due now."""
    boosts: tuple[BoostedContainer, ...] = ()
    """As in the status."""
    falls_back: bool = False
    """Whether the pod template gets the desired size, for pods that can't be resized in place."""
    forecast: ForecastRecord | None = None
    """The forecast's record in the status."""
    judged_by: tuple[RollbackMetric, ...] = ()
    """As in `Decision`."""
