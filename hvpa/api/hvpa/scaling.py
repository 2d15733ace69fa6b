"""The four directions of scaling: when each may act, and how small a change is not worth it."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Literal

from pydantic import Field

from hvpa.api.schema.base import SpecModel
from hvpa.api.schema.fields import (
    Bytes,
    Count,
    Duration,
    GrowthFactor,
    Millicores,
    PositiveCount,
    ReplicaAmount,
)

UpdateMode = Literal["Off", "Auto", "MaintenanceWindow"]


class UpdatePolicy(SpecModel):
    """Whether a direction may act."""

    update_mode: UpdateMode = "Auto"
    """Off: never; Auto: at any time; MaintenanceWindow: while a maintenance window is open."""


class CpuParams(SpecModel):
    """An amount of CPU. The model holds millicores; it is made from a quantity (`"200m"`, `2` for two cores)."""

    value: Millicores | None = None
    """Amount, as a quantity."""
    percentage: Count | None = None
    """Amount, as a percentage: of the present amount, where the field does not say of what."""


class MemoryParams(SpecModel):
    """An amount of memory. The model holds bytes; it is made from a quantity (`"200M"`)."""

    value: Bytes | None = None
    """Amount, as a quantity."""
    percentage: Count | None = None
    """Amount, as a percentage: of the present amount, where the field does not say of what."""


class ReplicasParams(SpecModel):
    """A number of replicas."""

    value: ReplicaAmount | None = None
    """Number of replicas."""
    percentage: Count | None = None
    """Number of replicas, as a percentage of the present one."""


class ScaleParams(SpecModel):
    """Amounts by resource, absolute or relative."""

    cpu: CpuParams = CpuParams()
    """CPU."""
    memory: MemoryParams = MemoryParams()
    """Memory."""
    replicas: ReplicasParams = ReplicasParams()
    """Replicas."""


class ScaleType(SpecModel):
    """When one direction acts."""

    update_policy: UpdatePolicy = UpdatePolicy()
    """Whether this direction may act."""
    stabilization_duration: Duration = Field(default=dt.timedelta(0), json_schema_extra={"default": "0s"})
    """How long after the last change of its axis this direction waits (a Go duration, such as 3m)."""
    min_change: ScaleParams = ScaleParams()
    """Smallest change that is made: the smaller of value and percentage if both are set. If neither is: 200m CPU and
    200M memory; with blend Trajectory and pods resized in place, any change."""


class MaxStep(SpecModel):
    """The largest step out: to at most the larger of `minimum` and `factor` times the present number of replicas
    (`ScaleUpLimitMinimum` and `ScaleUpLimitFactor` of Postmates' Configurable HPA, whose defaults these are)."""

    factor: GrowthFactor = 2
    """How many times the present number of replicas one step may set. Rounded up."""
    minimum: PositiveCount = 4
    """What one step may set in any case."""

    def limit(self, current: int) -> int:
        """The largest count that one step from `current` may set."""
        # The factor as it was written: 1.1 times 10 is 11, while in floats it is a little more.
        return max(self.minimum, math.ceil(current * Fraction(str(self.factor))))


class HpaScaleUp(ScaleType):
    """When replicas are added."""

    max_step: MaxStep | None = None
    """The largest step; the rest follows in further steps, 15 seconds apart. Any step where it is missing."""


class VpaScaleUp(ScaleType):
    """When requests are raised."""

    min_change_timeout: Duration = Field(
        default=dt.timedelta(minutes=15), json_schema_extra={"default": "15m"}
    )
    """After how long a rise that is smaller than minChange is made all the same, if it was wanted all the time."""


class VpaScaleDown(ScaleType):
    """When requests are lowered."""

    stabilization_duration: Duration = Field(default=dt.timedelta(0), json_schema_extra={"default": "0s"})
    """How long after the last change of requests they may be lowered (a Go duration, such as 3m). With blend Trajectory
    0 means 6 hours; 5 minutes for pods resized in place, of a resource that a metric measures."""
    min_history: Duration = Field(default=dt.timedelta(hours=1), json_schema_extra={"default": "1h"})
    """How much history the VerticalPodAutoscaler's recommender must have before requests are lowered, by its upper
    bounds; and how long there must have been recommendations."""
