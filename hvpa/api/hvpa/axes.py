"""What the operator must remember between two decisions, by axis: `status.axes` (DESIGN 3 and 8).

What belongs here: what a restart must not lose, and no more. A copy of it stands in an annotation of the workload. The
rest of the status is in `hvpa.api.hvpa.status`.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, WithJsonSchema

from hvpa.api.schema.base import StatusModel
from hvpa.api.schema.fields import INT64_MAX, Timestamp

_LARGEST: Final = 1e30
"""Above every number that is remembered: amounts of 19 digits, weights of seconds times replicas."""


Whole = Annotated[int, Field(ge=0, le=INT64_MAX), WithJsonSchema({"type": "integer"})]
"""A whole number that is not negative. Somebody else may have written another: then the record can't be read."""
Real = Annotated[float, Field(ge=0, le=_LARGEST, allow_inf_nan=False), WithJsonSchema({"type": "number"})]
"""A number that is not negative."""


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
    """How often somebody undid a change of the operator."""

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
    """What the API server said."""
    changes: tuple[RefusedChange, ...] = ()
    """What was refused."""


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
    """Changes that somebody undid."""
    correction: ScaleReplicasCorrection | None = None
    """Corrections of `spec.replicas`, into which the HorizontalPodAutoscaler writes its desired replicas."""
    refused: Refusal | None = None
    """What the API server refused."""


class AppliedTarget(StatusModel):
    """The target that the last step of a request was blended from."""

    container: str
    """The container's name."""
    resource: str
    """The resource: cpu or memory."""
    target: str
    """The request that the VerticalPodAutoscaler recommended."""
    weight: Real
    """The vertical weight in percent that it was blended with."""
    request: str
    """The request that was set."""
    small_steps: Whole | None = None
    """How many steps in a row `minChangeTimeout` let through that are smaller than `minChange` (absent: none). Each
    doubles the timeout."""


class Pending(StatusModel):
    """A change that has been wanted without interruption."""

    container: str
    """The container's name."""
    resource: str
    """The resource: cpu or memory."""
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


class UsualDemand(StatusModel):
    """The mean over time of what the HorizontalPodAutoscaler measured of one container's one resource, all pods
    together. What was a day ago weighs half."""

    container: str
    """The container's name."""
    resource: str
    """The resource: cpu or memory."""
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
    """Changes that somebody undid."""
    refused: Refusal | None = None
    """What the API server refused."""
    base: dict[str, dict[str, str]] = Field(default_factory=dict, exclude_if=lambda value: not value)
    """Requests by container and resource where the path begins, as they were when the target was first seen."""
    usual_replicas: UsualReplicas | None = None
    """The replica counts that targets speak of, where no metric measures what they are about."""
    usual_demand: tuple[UsualDemand, ...] = ()
    """What was measured, over time."""


class Axes(StatusModel):
    """What the operator remembers, by axis."""

    horizontal: HorizontalAxis | None = None
    """Horizontal scaling."""
    vertical: VerticalAxis | None = None
    """Vertical scaling."""
