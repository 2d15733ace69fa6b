"""The status of an Hvpa: reports, and state that the operator must keep. Annotations of the workload hold a copy of
some of that state (DESIGN 3 and 8).

Reading is lenient: a status from another version or from gardener's controller must never stop the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import BaseModel, Field, WithJsonSchema

from hvpa.api.hvpa.actuation import StrategyType
from hvpa.api.hvpa.progress import (
    Actuation,
    BoostedContainer,
    CanaryMetric,
    DesiredSize,
    FastSignalStatus,
    HeldRollout,
    RecommendedContainer,
)
from hvpa.api.schema.base import StatusModel, read_json
from hvpa.api.schema.fields import Real, Timestamp, Whole

Axis = Literal["horizontal", "vertical"]
Direction = Literal["up", "down"]
_NUMBER = WithJsonSchema({"type": "number"})
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class StatusUpdatePolicy(StatusModel):
    """Update policy of a scaling direction, as set in the spec."""

    update_mode: str = "Auto"
    """Off, Auto or MaintenanceWindow."""


class HpaScalingStatus(StatusModel):
    """Replicas before and after a change."""

    current_replicas: Whole | None = None
    """Replicas before the change."""
    desired_replicas: Whole | None = None
    """Replicas after the change, or the replicas that HVPA would set."""


class ContainerTarget(StatusModel):
    """Requests of a container."""

    container_name: str = ""
    """The container's name."""
    target: dict[str, str] = Field(default_factory=dict)
    """Requests by resource."""


class VpaRecommendationStatus(StatusModel):
    """Requests by container."""

    container_recommendations: tuple[ContainerTarget, ...] = ()
    """Requests by container."""


class VpaScalingStatus(StatusModel):
    """Requests after a change."""

    recommendation: VpaRecommendationStatus | None = None
    """Requests after the change, or the requests that HVPA would set."""


class BlockedScaling(StatusModel):
    """A change that HVPA holds back."""

    reason: str
    """The gate that holds the change back."""
    axis: Axis
    """Axis: horizontal or vertical."""
    direction: Direction
    """Direction: up or down."""
    container: str | None = None
    """The container's name (vertical only)."""
    resource: str | None = None
    """The resource: cpu or memory (vertical only)."""
    current: str | None = None
    """Current number of replicas, or current request."""
    wanted: str | None = None
    """Number of replicas or request that HVPA would set."""
    until: Timestamp | None = None
    """Time at which the gate opens, if the gate depends on time."""
    hpa_status: HpaScalingStatus | None = None
    """Current replicas, and the replicas that HVPA would set."""
    vpa_status: VpaScalingStatus | None = None
    """Requests that HVPA would set."""


class LastScaling(StatusModel):
    """The last change of the workload."""

    last_scale_time: Timestamp | None = None
    """Time of the last scaling."""
    hpa_status: HpaScalingStatus | None = None
    """Replicas before and after."""
    vpa_status: VpaScalingStatus | None = None
    """Requests after the scaling."""


class PreviousSize(StatusModel):
    """Size of the pod template, or of pods that are resized in place, before HVPA last changed it. `hvpa undo` restores
    it."""

    time: Timestamp | None = None
    """Time of the change."""
    replicas: Whole = 0
    """Replicas before the change."""
    containers: tuple[RecommendedContainer, ...] = ()
    """Requests and limits of the changed containers before the change."""
    restored: Timestamp | None = None
    """Time at which all pods had this size again, after `hvpa undo` of pods that are resized in place."""


class OriginalSize(StatusModel):
    """Size of the workload before HVPA first changed it. The metrics `hvpa_saved_*` compare the present size with
    it."""

    since: Timestamp
    """Time of HVPA's first change."""
    replicas: Whole | None = None
    """Replicas before HVPA first changed them; missing if it has not changed them."""
    requests: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Requests by container and resource, each before HVPA first changed it; 0 if there was none."""


class LastError(StatusModel):
    """The last error."""

    description: str = ""
    """Description of the error."""
    last_update_time: Timestamp | None = None
    """Time of the error."""
    last_operation: str | None = None
    """Operation that failed."""


class StatusCondition(StatusModel):
    """A condition of the Hvpa."""

    type: str
    """Type of the condition."""
    status: str = "Unknown"
    """True, False or Unknown."""
    reason: str = ""
    """Reason for the status, as one word."""
    message: str = ""
    """Explanation of the status, for people."""
    last_transition_time: Timestamp | None = None
    """Time of the last status change."""
    observed_generation: Whole | None = None
    """Generation of the spec that the condition is based on."""


class Recommended(StatusModel):
    """Recommended values before gates and maxStep: HVPA would apply them if nothing were blocked."""

    replicas: Whole | None = None
    """Number of replicas."""
    containers: tuple[RecommendedContainer, ...] = ()
    """Resources by container."""


# --- what a restart must not lose, by axis; a copy of it stands in an annotation of the workload ---
class AppliedReplicas(StatusModel):
    """Inputs and result of the last horizontal step."""

    replicas: Whole
    """Number of replicas that HVPA set."""
    desired: Whole
    """Desired replicas of the HorizontalPodAutoscaler."""
    weight: Real
    """Vertical weight of the step, in percent."""
    goal: Whole | None = None
    """Number of replicas after blending, if `maxStep` limited the step: further steps follow."""


class SetBack(StatusModel):
    """Reverts of HVPA's changes by another client."""

    count: Whole
    """Number of reverts."""
    time: Timestamp
    """Time at which HVPA last repeated the change."""


class RefusedChange(StatusModel):
    """A change of the workload that the API server rejected."""

    container: str | None = None
    """The container's name (vertical only)."""
    resource: str | None = None
    """The resource: cpu or memory (vertical only)."""
    current: Whole
    """Value before the change: replicas, millicores or bytes."""
    wanted: Whole
    """Rejected value."""


class Refusal(StatusModel):
    """The last rejection by the API server on an axis."""

    count: Whole
    """Number of rejections in a row."""
    time: Timestamp
    """Time of the last rejection."""
    message: str = ""
    """Message of the API server."""
    changes: tuple[RefusedChange, ...] = ()
    """Rejected changes."""


class _OfRequest(StatusModel):
    container: str
    """The container's name."""
    resource: str
    """The resource: cpu or memory."""


class FailedChange(_OfRequest):
    """A change of a request that failed on the pods."""

    previous: Whole
    """Request before the change, which HVPA restored: millicores or bytes."""
    failed: Whole
    """Request that failed: millicores or bytes."""


class Replacing(StatusModel):
    """Pods could not be resized, so HVPA patched the pod template. For a day, it treats `InPlaceOrRollout` as
    `Rollout`."""

    since: Timestamp
    """Time of the fallback."""
    message: str = ""
    """Why the pods could not be resized."""


class RolledBack(StatusModel):
    """A size that failed on the first pods (`spec.updateStrategy.canary`), or that no node can take. HVPA does not try
    it again for a day. Each further failure doubles this time, up to 16 days."""

    count: Whole
    """Number of failures in a row."""
    time: Timestamp
    """Time of the last rollback."""
    message: str = ""
    """The pod or the metric for which the size failed, and the failure."""
    changes: tuple[FailedChange, ...] = ()
    """Changes that HVPA rolled back."""


class ScaleReplicasCorrection(StatusModel):
    """Corrections of `spec.replicas` for one status of the HorizontalPodAutoscaler."""

    hpa_status: str
    """The HorizontalPodAutoscaler's desired replicas, and HVPA's own estimate from its metrics, as
    `desired/estimated`."""
    count: Whole
    """Number of corrections."""


class HorizontalAxis(StatusModel):
    """State of horizontal scaling."""

    last_scale_time: Timestamp | None = None
    """Time of the last change of replicas."""
    applied_from: AppliedReplicas | None = None
    """Inputs and result of the last step."""
    set_back: SetBack | None = None
    """Reverts of HVPA's changes by another client."""
    correction: ScaleReplicasCorrection | None = None
    """Corrections of `spec.replicas`, where the HorizontalPodAutoscaler writes its desired replicas."""
    refused: Refusal | None = None
    """The last rejection by the API server."""


class AppliedTarget(_OfRequest):
    """Inputs and result of the last change of a request."""

    target: str
    """Target of the VerticalPodAutoscaler."""
    weight: Real
    """Vertical weight of the step, in percent."""
    request: str
    """Request that HVPA set."""
    small_steps: Whole | None = None
    """Number of consecutive steps smaller than `minChange` that `minChangeTimeout` allowed (missing: none). Each step
    doubles the timeout."""


class Pending(_OfRequest):
    """A change that has been recommended without interruption."""

    direction: str
    """Direction: up or down."""
    since: Timestamp
    """Time at which the change was first recommended."""


class MemoryOverride(StatusModel):
    """The last raise of a container's memory after it ran out of memory."""

    container: str
    """The container's name."""
    time: Timestamp
    """Time of the raise."""
    memory: str | None = None
    """Memory request after the raise."""


class FastRaise(_OfRequest):
    """The last raise of a request by the fast signal."""

    request: Whole
    """Request after the raise: millicores or bytes."""
    before: Whole | None = None
    """Request before the raise; absent if another change has set the same request since."""
    time: Timestamp
    """Time of the raise."""


class TrustedHistory(StatusModel):
    """Upper bound of a VerticalPodAutoscaler's recommendation, relative to its target. A jump shows that the
    recommender has lost its history."""

    container: str
    """The container's name."""
    ratio: Real
    """Upper bound divided by the uncapped target, at the longest history."""
    short_since: Timestamp | None = None
    """Start of the history, while it is shorter than `vpa.scaleDown.minHistory`. HVPA only raises requests then."""


class UsualReplicas(StatusModel):
    """Mean replica count over the time that a VerticalPodAutoscaler's targets cover (DESIGN 5.4). Each count is
    weighted by replicas times seconds. The weight halves each day."""

    mean: Real
    """Mean count at `time`."""
    weight: Real
    """Weight of the mean at `time`, in replicas times seconds."""
    time: Timestamp
    """Time up to which the mean includes counts."""
    replicas: Whole
    """Replica count since `time`."""


class UsualDemand(_OfRequest):
    """Mean demand for one resource of one container, for all pods together, as measured by the HorizontalPodAutoscaler.
    The weight of a measurement halves each day."""

    mean: Real
    """Mean demand at `time`, as a request in millicores or bytes."""
    weight: Real
    """Weight of the mean at `time`, in seconds."""
    time: Timestamp
    """Time up to which the mean includes demand."""
    present: Whole
    """Demand since `time`."""


class VerticalAxis(StatusModel):
    """State of vertical scaling."""

    last_scale_time: Timestamp | None = None
    """Time of the last change of requests."""
    last_scale_up_time: Timestamp | None = None
    """Time of the last raise of a request."""
    applied_from: tuple[AppliedTarget, ...] = ()
    """Inputs and results of the last steps."""
    pending: tuple[Pending, ...] = ()
    """Changes that are recommended but not made yet."""
    overrides: tuple[MemoryOverride, ...] = ()
    """Memory raises of containers that ran out of memory."""
    fast_raises: tuple[FastRaise, ...] = ()
    """Raises by the fast signal."""
    set_back: SetBack | None = None
    """Reverts of HVPA's changes by another client."""
    refused: Refusal | None = None
    """The last rejection by the API server."""
    base: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Requests by container and resource at the start of the path, as they were when HVPA first saw the target."""
    history: tuple[TrustedHistory, ...] = ()
    """History length of the VerticalPodAutoscaler's recommendations."""
    usual_replicas: UsualReplicas | None = None
    """Mean replica count that the targets cover, if no HorizontalPodAutoscaler is configured."""
    usual_demand: tuple[UsualDemand, ...] = ()
    """Mean measured demand, by container and resource."""


class Axes(StatusModel):
    """State that the operator keeps for each axis."""

    horizontal: HorizontalAxis | None = None
    """Horizontal scaling."""
    vertical: VerticalAxis | None = None
    """Vertical scaling."""


# --- a rollout that the operator began: an annotation of the workload, written in one patch with what it is about ---
ROLLOUT: Final = "hvpa.autoscaling.k8s.io/rollout"
"""Key of the annotation."""


class RolloutRecord(StatusModel):
    """A rollout that HVPA started by a change of the pod template."""

    generation: Whole
    """Generation of the workload after HVPA's last write. If it differs, another client has changed the workload
    since."""
    since: Timestamp
    """Time of the template change."""
    up: bool = False
    """Whether HVPA raised a request or limit."""
    down: bool = False
    """Whether HVPA lowered a request or limit."""
    held: bool = False
    """Whether HVPA keeps the workload from replacing pods."""
    partition: Whole = 0
    """Partition of the StatefulSet before HVPA held it."""
    previous: tuple[RecommendedContainer, ...] = ()
    """Size in the template before the change, while HVPA tries the new size on the first pods."""
    rolled_back: RolledBack | None = Field(default=None, exclude_if=lambda value: value is None)
    """Size that this rollout reverts."""


# --- how many replicas were needed at each time of day (`spec.forecast`) ---
class ForecastRecord(StatusModel):
    """The forecast, and the measurements it is based on."""

    message: str = ""
    """Whether HVPA uses the forecast, and its error in the last 24 hours."""
    replicas: Whole | None = None
    """Minimum number of replicas from the forecast at present. Missing if HVPA does not use the forecast."""
    off_percent: Whole | None = None
    """Error in the last 24 hours, in percent of the replicas that were needed. Missing if not yet known."""
    time: Timestamp | None = None
    """Time at which the last measurement was due."""
    samples: tuple[Whole, ...] = ()
    """Replicas needed in the quarter hour of `time`, measured every five minutes."""
    values: str = ""
    """Replicas needed in the quarter hours before that, oldest first; a dash if unknown. Internal: other clients must
    not rely on it."""


# --- the whole ---
class HvpaStatus(StatusModel):
    """Reports of the operator, and state that it must keep."""

    replicas: Whole | None = None
    """Current number of replicas of the workload."""
    target_selector: str | None = None
    """Selector of the workload's pods, as text. The HorizontalPodAutoscaler uses it to find the pods."""
    hpa_scale_up_update_policy: StatusUpdatePolicy | None = None
    """Update policy for adding replicas."""
    hpa_scale_down_update_policy: StatusUpdatePolicy | None = None
    """Update policy for removing replicas."""
    vpa_scale_up_update_policy: StatusUpdatePolicy | None = None
    """Update policy for raising requests."""
    vpa_scale_down_update_policy: StatusUpdatePolicy | None = None
    """Update policy for lowering requests."""
    hpa_weight: Annotated[int | _Finite, _NUMBER] | None = None
    """Current horizontal weight in percent."""
    vpa_weight: Annotated[int | _Finite, _NUMBER] | None = None
    """Current vertical weight in percent."""
    override_scale_up_stabilization: bool | None = None
    """Whether a container ran out of memory, so that scaling up skips stabilization."""
    last_blocked_scaling: tuple[BlockedScaling, ...] = ()
    """Changes that HVPA holds back."""
    last_scaling: LastScaling | None = None
    """The last change of the workload."""
    previous_size: PreviousSize | None = Field(default=None, exclude_if=lambda value: value is None)
    """Size before the last change of requests."""
    original_size: OriginalSize | None = Field(default=None, exclude_if=lambda value: value is None)
    """Size before HVPA first changed the workload; missing if it has changed nothing."""
    last_error: LastError | None = None
    """The last error."""
    conditions: tuple[StatusCondition, ...] = ()
    """Conditions: Ready, HpaActive, VpaActive, ScalingBlocked, Paused, Contested; with spec.fastSignal: FastSignal."""
    recommended: Recommended | None = None
    """Recommended values before gates and maxStep: HVPA would apply them if nothing were blocked."""
    update_strategy: StrategyType | None = Field(default=None, exclude_if=lambda value: value is None)
    """Effective update strategy, if blend is Trajectory and the spec sets no type, or if HVPA uses another type than
    the spec."""
    replacing: Replacing | None = Field(default=None, exclude_if=lambda value: value is None)
    """Set while HVPA replaces pods because they could not be resized: since when, and why."""
    desired: DesiredSize | None = None
    """Decided replicas and resources, if pods are resized in place."""
    actuation: Actuation | None = None
    """Progress of the pods towards the desired size, if they are resized in place."""
    boosts: tuple[BoostedContainer, ...] = Field(default=(), exclude_if=lambda value: not value)
    """CPU for the start of pods (`spec.startupBoost`), by container: of new pods, and of pods that still have it."""
    rollout: HeldRollout | None = Field(default=None, exclude_if=lambda value: value is None)
    """The rollout that HVPA started and holds."""
    rolled_back: RolledBack | None = Field(default=None, exclude_if=lambda value: value is None)
    """The last size that failed on the first pods, or that no node can take."""
    canary_metrics: tuple[CanaryMetric, ...] = Field(default=(), exclude_if=lambda value: not value)
    """The metrics that judge the size that HVPA tries now (`spec.updateStrategy.canary.rollbackOnMetrics`), and those
    that have no value."""
    forecast: ForecastRecord | None = Field(default=None, exclude_if=lambda value: value is None)
    """The forecast (`spec.forecast`), and the measurements it is based on."""
    fast_signal: FastSignalStatus | None = Field(default=None, exclude_if=lambda value: value is None)
    """Source and age of the fast signal (`spec.fastSignal`)."""
    axes: Axes | None = None
    """State that the operator keeps. Internal: other clients must not rely on it."""


MOST_STATUS: Final = 256 * 1024
"""Maximum size in bytes of a status that is read as a whole. The operator's own status has up to 160 KB, with 100
containers that all change."""
MOST_FIELD: Final = 32 * 1024
"""Maximum size in bytes of a top-level field that is read from a larger status, which the operator did not write."""
_UNREADABLE: Final = (ValueError, msgspec.MsgspecError, RecursionError)


def read_status(raw: bytes) -> tuple[HvpaStatus, tuple[str, ...]]:
    """Returns the status, and the names of top-level fields that could not be read and are missing from it. Never
    raises."""
    if len(raw) > MOST_STATUS:
        return _read_small_fields(raw)
    try:
        return read_json(HvpaStatus, raw), ()
    except _UNREADABLE:
        pass
    fields: dict[str, object] = {}
    with suppress(*_UNREADABLE):
        fields = msgspec.json.decode(raw, type=dict[str, Any])
    bad = [name for name, value in fields.items() if not _is_readable({name: value})]
    for name in bad:
        del fields[name]
    return read_json(HvpaStatus, msgspec.json.encode(fields)), tuple(sorted(bad))


def _read_small_fields(raw: bytes) -> tuple[HvpaStatus, tuple[str, ...]]:
    """Reads a status that is too large for `read_status`, without its large fields."""
    fields: dict[str, msgspec.Raw] = {}
    with suppress(*_UNREADABLE):
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    small = {name: value for name, value in fields.items() if len(value) <= MOST_FIELD}
    small_status = msgspec.json.encode(small)
    if len(small_status) > MOST_STATUS:  # very many unknown fields
        return HvpaStatus(), tuple(sorted(fields))
    status, bad = read_status(small_status)
    return status, tuple(sorted({*bad, *(fields.keys() - small.keys())}))


def _is_readable(fields: Mapping[str, object]) -> bool:
    try:
        read_json(HvpaStatus, msgspec.json.encode(fields))
    except _UNREADABLE:
        return False
    return True


def to_wire(model: BaseModel, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Returns the model as it is written: camelCase, timestamps as text, without absent values and empty lists.
    `fields` restricts the result (like pydantic's `include`: True, or a mapping of nested fields)."""
    include = None if fields is None else dict(fields)
    wire: dict[str, Any] = _without_empty_lists(
        model.model_dump(by_alias=True, exclude_none=True, mode="json", include=include)
    )
    return wire


_NESTED = (dict, list)


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_empty_lists(entry) if isinstance(entry, _NESTED) else entry
            for key, entry in value.items()
            if entry != []
        }
    return [_without_empty_lists(entry) if isinstance(entry, _NESTED) else entry for entry in value]
