"""The status of an Hvpa: what the operator tells, and what it must remember (DESIGN 3 and 8).

Reading is lenient: a status that another version or gardener's controller wrote must never stop the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, Field, WithJsonSchema

from hvpa.api.hvpa.axes import (
    AppliedReplicas,
    AppliedTarget,
    Axes,
    HorizontalAxis,
    MemoryOverride,
    Pending,
    Refusal,
    RefusedChange,
    ScaleReplicasCorrection,
    SetBack,
    UsualDemand,
    UsualReplicas,
    VerticalAxis,
    Whole,
)
from hvpa.api.schema.base import StatusModel, read_json
from hvpa.api.schema.fields import Timestamp

__all__ = [
    "AppliedReplicas",
    "AppliedTarget",
    "Axes",
    "Axis",
    "BlockedScaling",
    "ContainerTarget",
    "Direction",
    "HorizontalAxis",
    "HpaScalingStatus",
    "HvpaStatus",
    "LastError",
    "LastScaling",
    "MemoryOverride",
    "Pending",
    "Recommended",
    "RecommendedContainer",
    "Refusal",
    "RefusedChange",
    "ScaleReplicasCorrection",
    "SetBack",
    "StatusCondition",
    "StatusModel",
    "StatusUpdatePolicy",
    "UsualDemand",
    "UsualReplicas",
    "VerticalAxis",
    "VpaRecommendationStatus",
    "VpaScalingStatus",
    "parse_status",
    "read_status",
    "to_wire",
]

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


class HvpaStatus(StatusModel):
    """What the operator tells of an Hvpa, and what it must remember."""

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
    axes: Axes | None = None
    """What the operator remembers; not meant for other readers."""


def parse_status(raw: bytes) -> HvpaStatus:
    """The status, without the top-level fields that can't be read. Never raises."""
    return read_status(raw)[0]


def read_status(raw: bytes) -> tuple[HvpaStatus, tuple[str, ...]]:
    """The status, and the names of the top-level fields that could not be read and are missing from it. Never
    raises."""
    try:
        return read_json(HvpaStatus, raw), ()
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return _readable(raw)


def _readable(raw: bytes) -> tuple[HvpaStatus, tuple[str, ...]]:
    """What of a status can be read, field by field."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return HvpaStatus(), ()
    if not isinstance(document, dict):
        return HvpaStatus(), ()
    fields: dict[str, object] = {}
    bad: list[str] = []
    for name, value in document.items():
        try:
            read_json(HvpaStatus, msgspec.json.encode({name: value}))
        except (ValueError, msgspec.MsgspecError, RecursionError):
            bad.append(name)
        else:
            fields[name] = value
    return read_json(HvpaStatus, msgspec.json.encode(fields)), tuple(sorted(bad))


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
