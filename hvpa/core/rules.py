"""The rules of each direction of scaling: how long a change waits and how small it may be, from the spec or, if it says
nothing, by default. The gates decide by these figures, and `explain` prints the same ones with their source."""

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
from hvpa.core.values.tuning import LONGEST_WINDOW, NOT_WORTH_REPLACING, SHRINKS_AFTER, STEADY

DEFAULT: Final = "default"
"""The source of a figure that no field of the spec sets."""
DEFAULT_MIN_CHANGE: Final[Mapping[Resource, int]] = {"cpu": 200, "memory": 200_000_000}
"""200m and 200M, gardener's defaults, if neither value nor percentage is set (DESIGN 6.3). A joint decision in place
has none: no pod is replaced, and the overlap of the path is enough of a minimum."""


class Figures(msgspec.Struct, frozen=True, gc=False):
    """The figures by which a gate holds a change back: how long it waits, or the smallest change (replicas, millicores
    or bytes), and the field that sets it."""

    wait: dt.timedelta | None = None
    least: int | None = None
    source: str = DEFAULT


class Wait(msgspec.Struct, frozen=True, gc=False):
    """How long a change waits, and the field that sets this."""

    duration: dt.timedelta
    source: str = DEFAULT

    @property
    def figures(self) -> Figures:
        """The wait of a change that it holds back."""
        return Figures(wait=self.duration, source=self.source)


class MinChange(msgspec.Struct, frozen=True, gc=False):
    """The smallest change that is made, and the field that sets it: the smaller of `value` and `percentage` of the
    present amount if both are set."""

    value: int | None = None
    percentage: int | None = None
    source: str = DEFAULT

    def of(self, current: int) -> int:
        """The smallest change of this amount. Of 100m and 10 percent, at 500m: 50m."""
        return threshold(self.value, self.percentage, current)


class Rules(msgspec.Struct, frozen=True):
    """The rules of one direction. `name` is its place in the spec, such as `vpa.scaleDown`."""

    name: str
    axis: Axis
    direction: Direction
    policy: ScaleType
    stabilization: Wait
    """How long a change waits after the last step of its axis."""
    min_change: Mapping[str, MinChange]
    """By resource; of replicas under `replicas`."""
    sustained: Wait | None = None
    """For how long `Trajectory` must want a lower request, or more CPU for the present demand alone, without
    interruption."""
    highest: Wait | None = None
    """In place, the highest demand of this time counts for lower sizes of the path, in place of `sustained`."""
    timeout: Wait | None = None
    """After how long a small rise of requests passes MinChange."""


def rules_of(spec: HvpaSpec) -> Mapping[tuple[Axis, Direction], Rules]:
    """The rules of all four directions."""
    hpa, vpa = spec.hpa, spec.vpa
    return {
        ("horizontal", "up"): _of_replicas("up", "hpa.scaleUp", hpa.scale_up),
        ("horizontal", "down"): _of_replicas("down", "hpa.scaleDown", hpa.scale_down),
        ("vertical", "up"): _of_requests(spec, "up", "vpa.scaleUp", vpa.scale_up),
        ("vertical", "down"): _of_requests(spec, "down", "vpa.scaleDown", vpa.scale_down),
    }


def _of_replicas(direction: Direction, name: str, policy: ScaleType) -> Rules:
    least = _min_change(f"{name}.minChange.replicas", policy.min_change.replicas, None)
    return Rules(name, "horizontal", direction, policy, _stabilization(name, policy), {"replicas": least})


def _of_requests(spec: HvpaSpec, direction: Direction, name: str, policy: ScaleType) -> Rules:
    in_place = spec.strategy.in_place
    least: dict[str, MinChange] = {
        resource: _min_change(
            f"{name}.minChange.{resource}",
            params_of(policy.min_change, resource),
            0 if spec.joint and in_place else DEFAULT_MIN_CHANGE[resource],
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
    """How long demand counts for whatever shrinks, if pods are resized in place. (A longer duration holds by its gate
    alone: each minute of the window takes memory.)"""
    wait = _duration("vpa.scaleDown", spec.vpa.scale_down) or Wait(STEADY)
    return Wait(min(wait.duration, LONGEST_WINDOW), wait.source)


def _min_change(
    name: str, params: CpuParams | MemoryParams | ReplicasParams, default: int | None
) -> MinChange:
    if params.value is None and params.percentage is None:
        return MinChange(default)
    return MinChange(params.value, params.percentage, name)


def params_of(params: ScaleParams, resource: Resource) -> CpuParams | MemoryParams:
    """One resource's parameters."""
    return params.cpu if resource == "cpu" else params.memory
