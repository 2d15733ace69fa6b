"""The four directions of scaling: when each direction may act, and the smallest change that it makes."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from hvpa.api.schema.base import SpecModel
from hvpa.api.schema.fields import (
    INT32_MAX,
    Bytes,
    Count,
    Duration,
    GrowthFactor,
    Millicores,
    PositiveCount,
    PositiveDuration,
    ReplicaAmount,
)

UpdateMode = Literal["Off", "Auto", "MaintenanceWindow"]


class UpdatePolicy(SpecModel):
    """Whether a scaling direction may act."""

    update_mode: UpdateMode = "Auto"
    """Off: never. Auto: at any time. MaintenanceWindow: only while a maintenance window is open."""


class CpuParams(SpecModel):
    """An amount of CPU. The model stores millicores and accepts a quantity (`"200m"`; `2` means two cores)."""

    value: Millicores | None = None
    """Amount as a quantity."""
    percentage: Count | None = None
    """Amount as a percentage, of the current amount unless the field names another base."""


class MemoryParams(SpecModel):
    """An amount of memory. The model stores bytes and accepts a quantity (`"200M"`)."""

    value: Bytes | None = None
    """Amount as a quantity."""
    percentage: Count | None = None
    """Amount as a percentage, of the current amount unless the field names another base."""


class ReplicasParams(SpecModel):
    """A number of replicas."""

    value: ReplicaAmount | None = None
    """Number of replicas."""
    percentage: Count | None = None
    """Percentage of the current number of replicas."""


class ScaleParams(SpecModel):
    """Amounts by resource, absolute or relative."""

    cpu: CpuParams = CpuParams()
    """CPU."""
    memory: MemoryParams = MemoryParams()
    """Memory."""
    replicas: ReplicasParams = ReplicasParams()
    """Replicas."""


class ScaleType(SpecModel):
    """When a scaling direction acts."""

    update_policy: UpdatePolicy = UpdatePolicy()
    """Whether this direction may act."""
    stabilization_duration: Duration = Field(default=dt.timedelta(0), json_schema_extra={"default": "0s"})
    """Minimum time between the last change of the same axis and a change in this direction (a Go duration, such as
    3m)."""
    min_change: ScaleParams = ScaleParams()
    """Smallest change that HVPA makes: the smaller of value and percentage if both are set. Defaults: 200m CPU and 200M
    memory. With blend Trajectory the default is the smaller of these and 20 percent, or any change if pods are resized
    in place."""


class MaxStep(SpecModel):
    """The largest step that adds replicas: to at most the larger of `minimum` and `factor` times the current number of
    replicas. Field names and defaults follow `ScaleUpLimitFactor` and `ScaleUpLimitMinimum` of Postmates' Configurable
    HPA."""

    factor: GrowthFactor = 2
    """Largest ratio of the new to the current number of replicas in one step. The result is rounded up."""
    minimum: PositiveCount = 4
    """Number of replicas that a step may always set, whatever the factor."""

    def limit(self, current: int) -> int:
        """Returns the largest count that one step from `current` may set. Example: factor 1.1 at 20 replicas allows
        22."""
        # The factor as written: 1.1 times 10 is 11, but slightly more in floats.
        return max(self.minimum, math.ceil(current * Fraction(str(self.factor))))


class HpaScaleUp(ScaleType):
    """When HVPA adds replicas."""

    max_step: MaxStep | None = None
    """The largest step. The remaining replicas follow in further steps, 15 seconds apart. If not set, steps are not
    limited."""


def _fallback_replicas(value: object) -> int | str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= INT32_MAX:
        return value
    if value in ("Current", "AsUsual"):
        return str(value)
    raise ValueError("must be Current, AsUsual or a positive number of replicas")


class Fallback(SpecModel):
    """Replicas while the HorizontalPodAutoscaler has no metrics. HVPA then removes none in any case."""

    after: PositiveDuration = Field(default=dt.timedelta(minutes=5), json_schema_extra={"default": "5m"})
    """How long the metrics must be lost before."""
    replicas: Annotated[
        int | str,
        BeforeValidator(_fallback_replicas),
        WithJsonSchema(
            {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "minimum": 1,
                "maximum": INT32_MAX,
                "maxLength": 7,
                "pattern": "^(Current|AsUsual)$",
            }
        ),
    ] = "Current"
    """Current: the replicas stay. AsUsual: at least as many as this time of day needed on previous days, by the record
    of spec.forecast. A number: at least this many. maxReplicas still applies."""


class VpaScaleUp(ScaleType):
    """When HVPA raises requests."""

    min_change_timeout: Duration = Field(
        default=dt.timedelta(minutes=15), json_schema_extra={"default": "15m"}
    )
    """How long a raise smaller than minChange must be recommended without interruption before HVPA makes it anyway. The
    raise must be at least a tenth of the request or half of minChange, whichever is smaller. Each such step doubles the
    time, up to a day."""


class VpaScaleDown(ScaleType):
    """When HVPA lowers requests."""

    stabilization_duration: Duration = Field(default=dt.timedelta(0), json_schema_extra={"default": "0s"})
    """Minimum time between the last change of requests and a lowering (a Go duration, such as 3m). With blend
    Trajectory, 0 means 6 hours, or 5 minutes if pods are resized in place and a metric measures the resource."""
    min_history: Duration = Field(default=dt.timedelta(hours=1), json_schema_extra={"default": "1h"})
    """History that the VerticalPodAutoscaler's recommender must have before HVPA lowers requests, judged by its
    checkpoint or, if HVPA can't read that, by its upper bounds. Recommendations must also have existed for at least
    this time."""
