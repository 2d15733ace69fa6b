"""The rules of each direction of scaling: how long a change waits, and its minimum size, from the spec or by default.
The gates use these figures, and `explain` prints them with their source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import structs

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams, ReplicasParams, ScaleParams, ScaleType
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import Axis, Direction
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.values.arithmetic import threshold
from hvpa.core.values.tuning import (
    DEFAULT_MIN_CHANGE,
    JOINT_MIN_CHANGE_PERCENT,
    LONGEST_WINDOW,
    NOT_WORTH_REPLACING,
    SHRINKS_AFTER,
    STEADY,
)

DEFAULT: Final = "default"
"""Source of a figure that no field of the spec sets."""


class GateFigures(msgspec.Struct, frozen=True, gc=False):
    """The figures by which a gate holds a change back."""

    wait: dt.timedelta | None = None
    """How long the change waits."""
    least: int | None = None
    """The smallest change, in replicas, millicores or bytes."""
    source: str = DEFAULT
    """The field that sets the figure."""


class Wait(msgspec.Struct, frozen=True, gc=False):
    """How long a change waits, and the field that sets it."""

    duration: dt.timedelta
    source: str = DEFAULT

    @property
    def figures(self) -> GateFigures:
        """The figures of a change that waits."""
        return GateFigures(wait=self.duration, source=self.source)


class MinChange(msgspec.Struct, frozen=True, gc=False):
    """The smallest change that HVPA makes, and the field that sets it: the smaller of `value` and `percentage` of the
    present amount if both are set."""

    value: int | None = None
    percentage: int | None = None
    source: str = DEFAULT

    def of(self, current: int) -> int:
        """Return the smallest change of this amount. Example: 100m and 10 percent, at 500m: 50m."""
        return threshold(self.value, self.percentage, current)


class Rules(msgspec.Struct, frozen=True):
    """The rules of one direction."""

    name: str
    """Its place in the spec, such as `vpa.scaleDown`."""
    axis: Axis
    direction: Direction
    policy: ScaleType
    stabilization: Wait
    """How long a change waits after the last step of its axis."""
    min_change: Mapping[str, MinChange]
    """By resource; for replicas, under `replicas`."""
    sustained: Wait | None = None
    """How long `Trajectory` must require a lower request, or more CPU for the present demand only, without
    interruption."""
    highest: Wait | None = None
    """In place, the path's lower sizes follow the highest demand of this period, instead of `sustained`."""
    timeout: Wait | None = None
    """How long before a small raise of requests passes MinChange."""


MIN_CHANGE_REPLACING: Final[Mapping[Resource, MinChange]] = {
    resource: MinChange(DEFAULT_MIN_CHANGE[resource], JOINT_MIN_CHANGE_PERCENT) for resource in RESOURCES
}
"""The smallest change of a request with `Trajectory`, if the spec sets none and pods are replaced for it."""


def rules_of(spec: HvpaSpec) -> Mapping[tuple[Axis, Direction], Rules]:
    """Return the rules of all four directions."""
    hpa, vpa = spec.hpa, spec.vpa
    return {
        ("horizontal", "up"): _of_replicas("up", "hpa.scaleUp", hpa.scale_up),
        ("horizontal", "down"): _of_replicas("down", "hpa.scaleDown", hpa.scale_down),
        ("vertical", "up"): _of_requests(spec, "up", "vpa.scaleUp", vpa.scale_up),
        ("vertical", "down"): _of_requests(spec, "down", "vpa.scaleDown", vpa.scale_down),
    }


def _of_replicas(direction: Direction, name: str, policy: ScaleType) -> Rules:
    least = _min_change(f"{name}.minChange.replicas", policy.min_change.replicas, MinChange())
    return Rules(name, "horizontal", direction, policy, _stabilization(name, policy), {"replicas": least})


def _of_requests(spec: HvpaSpec, direction: Direction, name: str, policy: ScaleType) -> Rules:
    in_place = spec.strategy.in_place
    least = {
        str(resource): _min_change(
            f"{name}.minChange.{resource}",
            params_of(policy.min_change, resource),
            _default_min_change(spec, resource),
        )
        for resource in RESOURCES
    }
    rules = Rules(name, "vertical", direction, policy, _stabilization(name, policy), least)
    if direction == "up":
        sustained = Wait(NOT_WORTH_REPLACING) if spec.joint and not in_place else None
        timeout = Wait(spec.vpa.scale_up.min_change_timeout, f"{name}.minChangeTimeout")
        return structs.replace(rules, sustained=sustained, timeout=timeout)
    if not spec.joint:
        return rules
    highest = highest_demand(spec) if in_place else None
    return structs.replace(rules, sustained=_duration(name, policy) or Wait(SHRINKS_AFTER), highest=highest)


def _stabilization(name: str, policy: ScaleType) -> Wait:
    return _duration(name, policy) or Wait(dt.timedelta())


def _duration(name: str, policy: ScaleType) -> Wait | None:
    duration = policy.stabilization_duration
    return Wait(duration, f"{name}.stabilizationDuration") if duration else None


def highest_demand(spec: HvpaSpec) -> Wait:
    """Return how long demand counts against scaling down if pods are resized in place. A longer duration is enforced by
    its gate alone, because each minute of this period takes memory."""
    wait = _duration("vpa.scaleDown", spec.vpa.scale_down) or Wait(STEADY)
    return Wait(min(wait.duration, LONGEST_WINDOW), wait.source)


def _default_min_change(spec: HvpaSpec, resource: Resource) -> MinChange:
    """Return the smallest change of a request if the spec sets none. A joint decision in place has no minimum: it
    replaces no pod, and the overlap of the path already prevents small changes."""
    if spec.joint and spec.strategy.in_place:
        return MinChange(0)
    return MIN_CHANGE_REPLACING[resource] if spec.joint else MinChange(DEFAULT_MIN_CHANGE[resource])


def _min_change(
    name: str, params: CpuParams | MemoryParams | ReplicasParams, default: MinChange
) -> MinChange:
    if params.value is None and params.percentage is None:
        return default
    return MinChange(params.value, params.percentage, name)


def params_of(params: ScaleParams, resource: Resource) -> CpuParams | MemoryParams:
    """Return the parameters of one resource."""
    return params.cpu if resource == "cpu" else params.memory
