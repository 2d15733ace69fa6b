"""The status of an Hvpa: what the operator reports, and what it must remember, some of it in annotations of the
workload (DESIGN 3 and 8).

Reading is lenient: a status that another version or gardener's controller wrote must never stop the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec
from pydantic import BaseModel, Field, WithJsonSchema

from hvpa.api.hvpa.actuation import StrategyType
from hvpa.api.schema.base import StatusModel, read_json
from hvpa.api.schema.fields import Real, Timestamp, Whole

Axis = Literal["horizontal", "vertical"]
Direction = Literal["up", "down"]
_NUMBER = WithJsonSchema({"type": "number"})
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class StatusUpdatePolicy(StatusModel):
    """Update policy of a direction, as it was in the spec."""

    update_mode: str = "Auto"
    """Off, Auto or MaintenanceWindow."""


class HpaScalingStatus(StatusModel):
    """Replicas of a scaling."""

    current_replicas: Whole | None = None
    """Replicas before."""
    desired_replicas: Whole | None = None
    """Replicas after, or wanted."""


class ContainerTarget(StatusModel):
    """Requests of one container."""

    container_name: str = ""
    """The container's name."""
    target: dict[str, str] = Field(default_factory=dict)
    """Requests by resource."""


class VpaRecommendationStatus(StatusModel):
    """Requests by container."""

    container_recommendations: tuple[ContainerTarget, ...] = ()
    """Requests by container."""


class VpaScalingStatus(StatusModel):
    """Requests of a scaling."""

    recommendation: VpaRecommendationStatus | None = None
    """Requests after, or wanted."""


class BlockedScaling(StatusModel):
    """A change that is wanted and held back."""

    reason: str
    """What holds it back."""
    axis: Axis
    """Horizontal or vertical."""
    direction: Direction
    """Up or down."""
    container: str | None = None
    """The container (vertical)."""
    resource: str | None = None
    """The resource: cpu or memory (vertical)."""
    current: str | None = None
    """Present number of replicas or request."""
    wanted: str | None = None
    """What would be applied."""
    until: Timestamp | None = None
    """When the gate opens, where time opens it."""
    hpa_status: HpaScalingStatus | None = None
    """Replicas: present and wanted."""
    vpa_status: VpaScalingStatus | None = None
    """Requests that are wanted."""


class LastScaling(StatusModel):
    """The last change of the workload."""

    last_scale_time: Timestamp | None = None
    """When it was."""
    hpa_status: HpaScalingStatus | None = None
    """Replicas: before and after."""
    vpa_status: VpaScalingStatus | None = None
    """Requests after."""


class LastError(StatusModel):
    """The last error."""

    description: str = ""
    """What went wrong."""
    last_update_time: Timestamp | None = None
    """When it was."""
    last_operation: str | None = None
    """What was being done."""


class StatusCondition(StatusModel):
    """A condition of the Hvpa."""

    type: str
    """Which condition."""
    status: str = "Unknown"
    """True, False or Unknown."""
    reason: str = ""
    """Why, in one word."""
    message: str = ""
    """Why, in a sentence."""
    last_transition_time: Timestamp | None = None
    """Since when the status is what it is."""
    observed_generation: Whole | None = None
    """Generation of the spec that this speaks of."""


class RecommendedContainer(StatusModel):
    """Resources of one container."""

    name: str
    """The container's name."""
    requests: dict[str, str] = Field(default_factory=dict)
    """Requests by resource."""
    limits: dict[str, str] = Field(default_factory=dict)
    """Limits by resource."""


class Recommended(StatusModel):
    """What is recommended, before gates and maxStep: what would be applied if nothing were blocked."""

    replicas: Whole | None = None
    """Number of replicas."""
    containers: tuple[RecommendedContainer, ...] = ()
    """Resources by container."""


# --- what was decided and how far the pods have got (`spec.updateStrategy` InPlace and InPlaceOrRollout) ---
class CanaryRun(StatusModel):
    """A size that is tried on some pods (`spec.updateStrategy.canary`)."""

    pods: tuple[str, ...] = ()
    """Names of these pods."""
    since: Timestamp | None = None
    """Since when all of them have the new size; missing before that."""
    previous: tuple[RecommendedContainer, ...] = ()
    """What the other pods have, and all pods again if the new size fails."""


class DesiredSize(StatusModel):
    """What was decided for a workload whose pods are resized in place. It is written before anything is acted upon, so
    that an operator that is killed in between goes on from there (DESIGN 11.2)."""

    replicas: Whole
    """Number of replicas."""
    containers: tuple[RecommendedContainer, ...] = ()
    """Resources of the containers that are scaled."""
    since: Timestamp
    """When the replicas or the resources were last decided to be others."""
    canary: CanaryRun | None = Field(default=None, exclude_if=lambda value: value is None)
    """Where the resources are tried on some pods first: until that is over."""
    generation: Whole = 0
    """Generation of the workload when the replicas were decided: as long as the workload has this one, the replicas
    have not been written yet."""


class Actuation(StatusModel):
    """How many pods have the desired size, and where the others stand."""

    resized: str = ""
    """Pods that have the desired size, and all of them, such as 8/10."""
    pods: Whole = 0
    """Pods that run or will run."""
    in_progress: Whole = 0
    """Pods that are being resized."""
    deferred: Whole = 0
    """Pods whose node has no room at present."""
    infeasible: Whole = 0
    """Pods that can't be resized."""
    waiting: Whole = 0
    """Pods of another size that are not resized yet."""
    size_at_creation: bool = False
    """Whether new pods are created with the size that was decided, since config/size-at-creation is installed. Without
    that they are resized once they run."""
    message: str = ""
    """Why pods are deferred, infeasible or waiting; and which pods the selector matches that have another owner: they
    are not resized."""


class HeldRollout(StatusModel):
    """A rollout that the operator began, and keeps from replacing further pods for a time."""

    reason: str
    """What holds it: MaintenanceWindow (no window is open), Canary (the new size is tried on the first pods), or the
    mode (Paused or Recommend), in which the operator does not let it go on."""
    message: str = ""
    """How far it is, and when it goes on."""
    until: Timestamp | None = None
    """When it goes on at the earliest, where that is a matter of time."""


# --- what a restart must not lose, by axis; a copy of it stands in an annotation of the workload ---
class AppliedReplicas(StatusModel):
    """The HPA's desired replicas that the last horizontal step was blended from."""

    replicas: Whole
    """The count that was set."""
    desired: Whole
    """The count that the HorizontalPodAutoscaler wanted."""
    weight: Real
    """The vertical weight in percent that it was blended with."""
    goal: Whole | None = None
    """The count that the desired replicas were blended to, where `maxStep` cut the step: the rest is to come."""


class SetBack(StatusModel):
    """How often another client undid a change of the operator."""

    count: Whole
    """How often."""
    time: Timestamp
    """When the change was last made again."""


class RefusedChange(StatusModel):
    """A change of the workload that the API server refused."""

    container: str | None = None
    """The container's name (vertical)."""
    resource: str | None = None
    """The resource: cpu or memory (vertical)."""
    current: Whole
    """What stood there: replicas, millicores or bytes."""
    wanted: Whole
    """What was refused."""


class Refusal(StatusModel):
    """What the API server last refused of an axis."""

    count: Whole
    """How often in a row."""
    time: Timestamp
    """When it was last refused."""
    message: str = ""
    """The message of the API server."""
    changes: tuple[RefusedChange, ...] = ()
    """What was refused."""


class _OfRequest(StatusModel):
    container: str
    """The container's name."""
    resource: str
    """The resource: cpu or memory."""


class FailedChange(_OfRequest):
    """A change of a request that the pods did not stand."""

    previous: Whole
    """The request before, which the pods have again: millicores or bytes."""
    failed: Whole
    """The request that failed."""


class Replacing(StatusModel):
    """Pods could not be resized, so that the pod template was patched: `InPlaceOrRollout` is `Rollout` for a day."""

    since: Timestamp
    """When that was."""
    message: str = ""
    """Why they could not."""


class RolledBack(StatusModel):
    """A size that failed on the pods that it was tried on (`spec.updateStrategy.canary`). It is not tried again for a
    day, twice as long each time that it fails again."""

    count: Whole
    """How often in a row."""
    time: Timestamp
    """When it was last taken back."""
    message: str = ""
    """The pod that failed, and how."""
    changes: tuple[FailedChange, ...] = ()
    """What was taken back."""


class ScaleReplicasCorrection(StatusModel):
    """How often `spec.replicas` was corrected for one status of the HorizontalPodAutoscaler."""

    hpa_status: str
    """Which status: the count it asks for, and the operator's own estimate from its metrics, as `asked/estimated`."""
    count: Whole
    """How often."""


class HorizontalAxis(StatusModel):
    """What the operator remembers of horizontal scaling."""

    last_scale_time: Timestamp | None = None
    """When replicas were last changed."""
    applied_from: AppliedReplicas | None = None
    """What the last step was blended from."""
    set_back: SetBack | None = None
    """Changes that another client undid."""
    correction: ScaleReplicasCorrection | None = None
    """Corrections of `spec.replicas`, into which the HorizontalPodAutoscaler writes its desired replicas."""
    refused: Refusal | None = None
    """What the API server refused."""


class AppliedTarget(_OfRequest):
    """The target that the last step of a request was blended from."""

    target: str
    """The request that the VerticalPodAutoscaler recommended."""
    weight: Real
    """The vertical weight in percent that it was blended with."""
    request: str
    """The request that was set."""
    small_steps: Whole | None = None
    """How many steps in a row `minChangeTimeout` let through that are smaller than `minChange` (absent: none). Each
    doubles the timeout."""


class Pending(_OfRequest):
    """A change that has been wanted without interruption."""

    direction: str
    """Up or down."""
    since: Timestamp
    """Since when."""


class MemoryOverride(StatusModel):
    """When a container's memory was last raised because it ran out of it."""

    container: str
    """The container's name."""
    time: Timestamp
    """When it was."""
    memory: str | None = None
    """The request that it was raised to."""


class TrustedHistory(StatusModel):
    """How large the upper bound of a VerticalPodAutoscaler's recommendation is, by which the operator notices that the
    recommender has lost its history."""

    container: str
    """The container's name."""
    ratio: Real
    """The upper bound in multiples of the uncapped target, as it was with the longest history."""
    short_since: Timestamp | None = None
    """When the history began, while it is shorter than `vpa.scaleDown.minHistory`: requests are only raised."""


class UsualReplicas(StatusModel):
    """The mean of the replica counts that a VerticalPodAutoscaler's targets speak of (DESIGN 5.4). Each count weighs as
    much as its pods had time to show what they use, and half of that a day later."""

    mean: Real
    """The mean count at `time`."""
    weight: Real
    """What the mean weighs at `time`, in replicas times seconds."""
    time: Timestamp
    """Up to when counts are in the mean."""
    replicas: Whole
    """The count since then."""


class UsualDemand(_OfRequest):
    """The mean over time of what the HorizontalPodAutoscaler measured of one container's one resource, all pods
    together. What was a day ago weighs half."""

    mean: Real
    """The mean demand at `time`, in millicores or bytes of requests."""
    weight: Real
    """What the mean weighs at `time`, in seconds."""
    time: Timestamp
    """Up to when demand is in the mean."""
    present: Whole
    """The demand since then."""


class VerticalAxis(StatusModel):
    """What the operator remembers of vertical scaling."""

    last_scale_time: Timestamp | None = None
    """When requests were last changed."""
    last_scale_up_time: Timestamp | None = None
    """When a request was last raised."""
    applied_from: tuple[AppliedTarget, ...] = ()
    """What the last steps were blended from."""
    pending: tuple[Pending, ...] = ()
    """Changes that wait."""
    overrides: tuple[MemoryOverride, ...] = ()
    """Raises for containers that ran out of memory."""
    set_back: SetBack | None = None
    """Changes that another client undid."""
    refused: Refusal | None = None
    """What the API server refused."""
    base: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Requests by container and resource where the path begins, as they were when the target was first seen."""
    history: tuple[TrustedHistory, ...] = ()
    """How far the history of recommendations goes."""
    usual_replicas: UsualReplicas | None = None
    """The replica counts that targets speak of, where no HorizontalPodAutoscaler is configured."""
    usual_demand: tuple[UsualDemand, ...] = ()
    """What was measured, over time."""


class Axes(StatusModel):
    """What the operator remembers, by axis."""

    horizontal: HorizontalAxis | None = None
    """Horizontal scaling."""
    vertical: VerticalAxis | None = None
    """Vertical scaling."""


# --- a rollout that the operator began: an annotation of the workload, written in one patch with what it is about ---
ROLLOUT: Final = "hvpa.autoscaling.k8s.io/rollout"
"""The annotation's key."""


class RolloutRecord(StatusModel):
    """A rollout that the operator began by a change of the pod template."""

    generation: Whole
    """Generation of the workload after the operator's last write: another one: a client has changed it since."""
    since: Timestamp
    """When the template was changed."""
    up: bool = False
    """Whether a request or limit was raised."""
    down: bool = False
    """Whether one was lowered."""
    held: bool = False
    """Whether the operator keeps the workload from replacing pods."""
    partition: Whole = 0
    """The partition that a StatefulSet had before the operator held it."""
    previous: tuple[RecommendedContainer, ...] = ()
    """While the new size is tried on the first pods: what the template had before."""
    rolled_back: RolledBack | None = Field(default=None, exclude_if=lambda value: value is None)
    """What this rollout takes back."""


# --- how many replicas were needed at each time of day (`spec.forecast`) ---
class ForecastRecord(StatusModel):
    """What the forecast says, and what it is made of."""

    message: str = ""
    """Whether the forecast is used, and how far it was off in the last 24 hours."""
    replicas: Whole | None = None
    """The floor of the number of replicas that it makes now. Missing where the forecast is not used."""
    off_percent: Whole | None = None
    """How far it was off in the last 24 hours, in percent of what was needed. Missing where that is not known yet."""
    time: Timestamp | None = None
    """When the last measurement was due."""
    samples: tuple[Whole, ...] = ()
    """The replicas that were needed in that quarter of an hour, measured once in five minutes."""
    values: str = ""
    """The replicas that were needed in the quarters of an hour before that one, the oldest first; a dash where that is
    not known. Not meant for other readers."""


# --- the whole ---
class HvpaStatus(StatusModel):
    """What the operator reports of an Hvpa, and what it must remember."""

    replicas: Whole | None = None
    """Present number of replicas of the workload."""
    target_selector: str | None = None
    """Selector of the workload's pods, as text: the HorizontalPodAutoscaler finds them by it."""
    hpa_scale_up_update_policy: StatusUpdatePolicy | None = None
    """Update policy of adding replicas."""
    hpa_scale_down_update_policy: StatusUpdatePolicy | None = None
    """Update policy of taking replicas away."""
    vpa_scale_up_update_policy: StatusUpdatePolicy | None = None
    """Update policy of raising requests."""
    vpa_scale_down_update_policy: StatusUpdatePolicy | None = None
    """Update policy of lowering requests."""
    hpa_weight: Annotated[int | _Finite, _NUMBER] | None = None
    """Present horizontal weight in percent."""
    vpa_weight: Annotated[int | _Finite, _NUMBER] | None = None
    """Present vertical weight in percent."""
    override_scale_up_stabilization: bool | None = None
    """Whether a container ran out of memory, so that scaling up does not wait."""
    last_blocked_scaling: tuple[BlockedScaling, ...] = ()
    """Changes that are wanted and held back."""
    last_scaling: LastScaling | None = None
    """The last change of the workload."""
    last_error: LastError | None = None
    """The last error."""
    conditions: tuple[StatusCondition, ...] = ()
    """Conditions: Ready, HpaActive, VpaActive, ScalingBlocked, Paused, Contested."""
    recommended: Recommended | None = None
    """What is recommended, before gates and maxStep: what would be applied if nothing were blocked."""
    update_strategy: StrategyType | None = Field(default=None, exclude_if=lambda value: value is None)
    """How sizes reach the pods, if the spec of a Trajectory names no type, or another one is used."""
    replacing: Replacing | None = Field(default=None, exclude_if=lambda value: value is None)
    """Since when pods are replaced although they are to be resized, and why."""
    desired: DesiredSize | None = None
    """What was decided, where pods are resized in place."""
    actuation: Actuation | None = None
    """How far the pods have got, where they are resized in place."""
    rollout: HeldRollout | None = Field(default=None, exclude_if=lambda value: value is None)
    """What holds a rollout that the operator began."""
    rolled_back: RolledBack | None = Field(default=None, exclude_if=lambda value: value is None)
    """The last size that failed on the pods that it was tried on."""
    forecast: ForecastRecord | None = Field(default=None, exclude_if=lambda value: value is None)
    """What the forecast says (`spec.forecast`), and what it is made of."""
    axes: Axes | None = None
    """What the operator remembers; not meant for other readers."""


MOST_STATUS: Final = 256 * 1024
"""Bytes of a status that is read in full. The operator's own, with 100 containers that all change, have up to
140 KB."""
MOST_FIELD: Final = 32 * 1024
"""Bytes of a top-level field that is read of a larger status, which is none of the operator's."""
_UNREADABLE: Final = (ValueError, msgspec.MsgspecError, RecursionError)


def read_status(raw: bytes) -> tuple[HvpaStatus, tuple[str, ...]]:
    """The status, and the names of the top-level fields that could not be read and are missing from it. Never
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
    """As `read_status`, of a status that is too large: its large fields are not read."""
    fields: dict[str, msgspec.Raw] = {}
    with suppress(*_UNREADABLE):
        fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    small = {name: value for name, value in fields.items() if len(value) <= MOST_FIELD}
    rest = msgspec.json.encode(small)
    if len(rest) > MOST_STATUS:  # very many unknown fields
        return HvpaStatus(), tuple(sorted(fields))
    status, bad = read_status(rest)
    return status, tuple(sorted({*bad, *(fields.keys() - small.keys())}))


def _is_readable(fields: Mapping[str, object]) -> bool:
    try:
        read_json(HvpaStatus, msgspec.json.encode(fields))
    except _UNREADABLE:
        return False
    return True


def to_wire(model: BaseModel, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The model as it is written: camelCase, timestamps as text, without what is absent and without empty lists;
    where `fields` are given (as pydantic's `include`: True, or the fields within), of these alone."""
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
