"""An HPA's spec in a form ready for use: with the API server's defaults, quantities in milli-units, and periods as
timedeltas. Source: `pkg/apis/autoscaling/v2/defaults.go` and horizontal.go."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import (
    DEFAULT_METRICS,
    HpaBehavior,
    HpaScalingPolicy,
    HpaScalingRules,
    HpaSpecRead,
    Metric,
    MetricSource,
    Quantity,
)
from hvpa.recommend.golang import approximate_float, milli_value
from hvpa.recommend.hpa.inputs import HpaSettings

_DEFAULT_UP: Final = HpaScalingRules(
    stabilization_window_seconds=0,
    select_policy="Max",
    policies=[
        HpaScalingPolicy(type="Pods", value=4, period_seconds=15),
        HpaScalingPolicy(type="Percent", value=100, period_seconds=15),
    ],
)
_DEFAULT_DOWN: Final = HpaScalingRules(
    select_policy="Max", policies=[HpaScalingPolicy(type="Percent", value=100, period_seconds=15)]
)
_FIELDS: Final = {
    "Resource": "resource",
    "ContainerResource": "container_resource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


class Tolerance(NamedTuple):
    """A usage ratio between `low` and `high` causes no change."""

    low: float
    high: float

    def covers(self, ratio: float) -> bool:
        """Whether the ratio is close enough to 1 (`Tolerances.isWithin`). False for NaN."""
        return self.low <= ratio <= self.high


class PolicyPlan(NamedTuple):
    """A scaling policy; `type` is Pods or Percent."""

    type: str
    value: int
    period: dt.timedelta


class DirectionPlan(NamedTuple):
    """A direction of the behaviour with all defaults. `select` is Max, Min or Disabled."""

    window: dt.timedelta
    select: str
    policies: tuple[PolicyPlan, ...]
    longest: dt.timedelta
    """The longest period of the policies."""


class BehaviorPlan(NamedTuple):
    """The rules of both directions."""

    up: DirectionPlan
    down: DirectionPlan


@dataclass(frozen=True, slots=True)
class MetricPlan:
    """A metric of the spec: its source (empty if the spec has none for the metric's type) and its targets in percent
    and milli-units (None if not set)."""

    type: str
    source: MetricSource
    utilization: int | None
    average: int | None
    value: int | None


@dataclass(frozen=True, slots=True)
class HpaPlan:
    """The spec. Without a behaviour, the limits of older versions apply."""

    minimum: int
    maximum: int
    measures_without_pods: bool
    """Whether there is an Object or External metric. Only these have values while there are no pods."""
    metrics: tuple[MetricPlan, ...]
    tolerance: Tolerance
    behavior: BehaviorPlan | None


def make_plan(spec: HpaSpecRead, settings: HpaSettings) -> HpaPlan:
    """Returns the spec with defaults. Raises `QuantityError` if a target or tolerance is not a quantity."""
    behavior = None
    if spec.behavior is not None:
        up = _rules(spec.behavior.scale_up, _DEFAULT_UP, 0)
        down = _rules(spec.behavior.scale_down, _DEFAULT_DOWN, int(settings.downscale_stabilization))
        behavior = BehaviorPlan(up, down)
    metrics = tuple(_metric(metric) for metric in spec.metrics or DEFAULT_METRICS)
    return HpaPlan(
        minimum=spec.min_replicas,
        maximum=spec.max_replicas,
        measures_without_pods=any(metric.type in ("Object", "External") for metric in metrics),
        metrics=metrics,
        tolerance=_tolerance(spec.behavior, settings.tolerance),
        behavior=behavior,
    )


def _tolerance(behavior: HpaBehavior | None, default: float) -> Tolerance:
    """Returns each direction's own tolerance, or the flag's (since 1.35)."""

    def of(rules: HpaScalingRules | None) -> float:
        return default if rules is None or rules.tolerance is None else approximate_float(rules.tolerance)

    rules = behavior or HpaBehavior()
    return Tolerance(1.0 - of(rules.scale_down), 1.0 + of(rules.scale_up))


def _rules(rules: HpaScalingRules | None, default: HpaScalingRules, window: int) -> DirectionPlan:
    """Returns the rules over the defaults. An empty list of policies counts as set."""
    given = rules or default
    seconds = given.stabilization_window_seconds
    policies = given.policies if given.policies is not None else default.policies or []
    made = tuple(PolicyPlan(p.type, p.value, dt.timedelta(seconds=p.period_seconds)) for p in policies)
    return DirectionPlan(
        window=dt.timedelta(seconds=window if seconds is None else seconds),
        select=given.select_policy or "Max",
        policies=made,
        longest=max((policy.period for policy in made), default=dt.timedelta()),
    )


def _metric(metric: Metric) -> MetricPlan:
    source: MetricSource = getattr(metric, _FIELDS.get(metric.type, ""), None) or MetricSource()
    target = source.target
    average, value = _milli(target.average_value), _milli(target.value)
    return MetricPlan(metric.type, source, target.average_utilization, average, value)


def _milli(quantity: Quantity | None) -> int | None:
    return None if quantity is None else milli_value(quantity)
