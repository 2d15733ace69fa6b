"""An exact model of the HPA controller of Kubernetes 1.37: the decision for an HPA at each sync.

Source: `pkg/controller/podautoscaler` of Kubernetes (horizontal.go, `reconcileAutoscaler` and the functions that it
calls), with the defaults of the feature gates: HPAScaleToZero is on since 1.37. The caller provides the scale, one HPA,
and the time of each sync. Therefore the model does not cover failures to read or write the scale, pods that several
HPAs select, and the immediate sync of a new or changed HPA (since 1.37; before, after a period).

The parts: inputs.py (inputs), plan.py (the spec), metrics.py, replicas.py and pods.py (the count of a metric),
scaling_history.py (windows and policies), selector.py (label selectors), recommend/golang (Go's arithmetic and text).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import (
    Condition,
    Hpa,
    HpaSpecRead,
    HpaStatusRead,
    Metric,
    Pod,
    condition,
    set_anew,
)
from hvpa.recommend.hpa.inputs import HpaSettings, MetricsClient, MetricsError, PodReading, Scale
from hvpa.recommend.hpa.pods import TargetPods
from hvpa.recommend.hpa.selector import SelectorError, matches, parse_selector
from hvpa_lab.recommend.hpa.metrics import MetricFault, evaluate
from hvpa_lab.recommend.hpa.plan import HpaPlan, make_plan
from hvpa_lab.recommend.hpa.replicas import Situation
from hvpa_lab.recommend.hpa.scaling_history import ReplicaLimits, ScalingHistory, limit

__all__ = [
    "HorizontalAutoscaler",
    "HpaResult",
    "HpaSettings",
    "MetricsClient",
    "MetricsError",
    "PodReading",
    "Scale",
]

_ABLE: Final = "AbleToScale"
_ACTIVE: Final = "ScalingActive"
_LIMITED: Final = "ScalingLimited"
_GOT_SCALE: Final = (
    "True",
    "SucceededGetScale",
    "the HPA controller was able to get the target's current scale",
)
_DISABLED: Final = (
    "False",
    "ScalingDisabled",
    "scaling is disabled since the replica count of the target is zero",
)
_NO_SELECTOR: Final = ("False", "InvalidSelector", "the HPA target's scale is missing a selector")
_NO_VALUE: Final = Metric()
"""The entry that Go writes for a metric without a value."""
_ABOVE: Final = "Current number of replicas above Spec.MaxReplicas"
_BELOW: Final = "Current number of replicas below Spec.MinReplicas"
_TO_ZERO: Final = ("True", "ScaledToZero", "the HPA controller scaled the workload to zero")
_NOT_TO_ZERO: Final = (
    "False",
    "NotScaledToZero",
    "the HPA controller did not scale the workload to zero",
)


class HpaResult(NamedTuple):
    """The result of a sync."""

    status: HpaStatusRead
    """The complete status. It is the HPA's own object if nothing changed."""
    replicas: int | None
    """The count to write to the scale subresource; None if nothing is written."""
    events: tuple[tuple[str, str, str], ...]
    """Events as (type, reason, message)."""


class _Step(NamedTuple):
    """A change of the count."""

    current: int
    desired: int
    reason: str
    """Reason for the event; empty if only past recommendations cause the change."""


Setting = tuple[str, str, str]
"""Values of a condition: status, reason, message."""

_SCALED_TO_ZERO: Final = "ScaledToZero"


class _SyncReport:
    """The output that a sync collects."""

    __slots__ = ("conditions", "events", "metrics")

    def __init__(self) -> None:
        self.conditions: dict[str, Setting] = {}
        """Settings by type. The last setting of a type applies."""
        self.events: list[tuple[str, str, str]] = []
        self.metrics: list[Metric] | None = None
        """Entries of the status; None if no metric was evaluated."""

    def warn(self, reason: str, message: str) -> None:
        """Adds an event of type Warning."""
        self.events.append(("Warning", reason, message))

    def result(
        self, old: HpaStatusRead, current: int, desired: int, now: dt.datetime, rescaled: bool = False
    ) -> HpaResult:
        """Returns the next status and the events. With `rescaled`, the desired count is written as well."""
        status = self._status(old, current, desired, now, rescaled)
        return HpaResult(status, desired if rescaled else None, tuple(self.events))

    def _status(
        self, old: HpaStatusRead, current: int, desired: int, now: dt.datetime, rescaled: bool
    ) -> HpaStatusRead:
        """Returns the next status, or `old` itself if nothing differs. In that case nothing is written."""
        now = now if now.microsecond == 0 else now.replace(microsecond=0)  # as times are stored
        status = HpaStatusRead(
            current_replicas=current,
            desired_replicas=desired,
            current_metrics=self.metrics if self.metrics or old.current_metrics else old.current_metrics,
            conditions=self._conditions(old.conditions, now),
            last_scale_time=now if rescaled else old.last_scale_time,
        )
        return old if status == old and not rescaled else status

    def _conditions(self, old: list[Condition] | None, now: dt.datetime) -> list[Condition] | None:
        """Returns the conditions with the new settings; new conditions follow the old ones. Only a change of the status
        counts as a transition."""
        conditions = {previous.type: previous for previous in old or ()}
        for kind, setting in self.conditions.items():
            conditions[kind] = set_anew(conditions.get(kind), kind, setting, now)
        return list(conditions.values())


class _NoCount(Exception):
    """The metrics give no count. The text is the text of the event."""


class HorizontalAutoscaler:
    """The controller's state for an HPA: past recommendations and scale events."""

    def __init__(self, settings: HpaSettings = HpaSettings()) -> None:  # noqa: B008 - frozen
        self._settings = settings
        self._window = dt.timedelta(seconds=settings.downscale_stabilization)
        self._initialization = dt.timedelta(seconds=settings.cpu_initialization_period)
        self._readiness_delay = dt.timedelta(seconds=settings.initial_readiness_delay)
        self._history = ScalingHistory()
        self._spec: HpaSpecRead | None = None
        self._plan: HpaPlan | None = None

    def sync(
        self, hpa: Hpa, scale: Scale, pods: Sequence[Pod], metrics: MetricsClient, now: dt.datetime
    ) -> HpaResult:
        """Makes one decision (`reconcileAutoscaler`). Of `pods`, only those count that the scale's selector selects.
        `now` is timezone-aware. Raises `QuantityError` if the spec or a pod's request contains an invalid quantity."""
        plan = self._plan_of(hpa)
        report = _SyncReport()
        report.conditions[_ABLE] = _GOT_SCALE
        current = scale.replicas
        self._history.begin(current, now)
        if current == 0 and not _leaves_zero(hpa, plan):
            report.conditions[_ACTIVE] = _DISABLED
            return report.result(hpa.status, 0, 0, now)
        if current > plan.maximum:
            return self._rescale(hpa, plan, report, _Step(current, plan.maximum, _ABOVE), now)
        if 0 < current < plan.minimum:
            return self._rescale(hpa, plan, report, _Step(current, plan.minimum, _BELOW), now)
        try:
            selected = _select(report, scale.selector, pods)
            target = TargetPods(selected, now - self._initialization, self._readiness_delay)
            situation = Situation(hpa.metadata.namespace, scale, target, metrics, plan.tolerance)
            proposed = _propose(plan, report, situation)
        except _NoCount as error:
            report.warn("FailedComputeMetricsReplicas", str(error))
            return report.result(hpa.status, current, hpa.status.desired_replicas, now)
        desired, reason = self._normalize(plan, report, proposed, now), proposed.reason
        if desired < plan.minimum and current == 0:
            desired, reason = plan.minimum, reason or _BELOW
        if desired == current:
            return report.result(hpa.status, current, current, now)
        return self._rescale(hpa, plan, report, _Step(current, desired, reason), now)

    def _plan_of(self, hpa: Hpa) -> HpaPlan:
        """Returns the plan of the spec, cached by the spec object: the same bytes give the same object."""
        spec = hpa.spec
        if self._plan is None or spec is not self._spec:
            self._plan, self._spec = make_plan(spec, self._settings), spec
        return self._plan

    def _normalize(self, plan: HpaPlan, report: _SyncReport, step: _Step, now: dt.datetime) -> int:
        """Applies stabilization windows, policies and limits (`normalizeDesiredReplicas`, `…WithBehaviors`)."""
        limits = ReplicaLimits(step.current, plan.minimum, plan.maximum)
        if plan.behavior is None:
            stable, able = self._history.stabilize(step.desired, self._window, now)
            desired, limited = limit(stable, limits)
        else:
            stable, able = self._history.stabilize_by_rules(step.desired, step.current, plan.behavior, now)
            desired, limited = self._history.limit_by_rules(stable, limits, plan.behavior, now)
        report.conditions[_ABLE] = ("True", *able)
        report.conditions[_LIMITED] = ("False" if desired == stable else "True", *limited)
        return desired

    def _rescale(
        self, hpa: Hpa, plan: HpaPlan, report: _SyncReport, step: _Step, now: dt.datetime
    ) -> HpaResult:
        """Returns the result of a change of the count, with its conditions and event, and records the change."""
        current, desired, reason = step
        message = f"the HPA controller was able to update the target scale to {desired}"
        report.conditions[_ABLE] = ("True", "SucceededRescale", message)
        to_zero = desired == 0 and plan.measures_without_pods
        report.conditions[_SCALED_TO_ZERO] = _TO_ZERO if to_zero else _NOT_TO_ZERO
        report.events.append(("Normal", "SuccessfulRescale", f"New size: {desired}; reason: {reason}"))
        if plan.behavior is not None:
            self._history.store(current, desired, plan.behavior, now)
        return report.result(hpa.status, current, desired, now, rescaled=True)


def _leaves_zero(hpa: Hpa, plan: HpaPlan) -> bool:
    """Whether this HPA has scaled the target to 0 replicas itself, and may scale it out again
    (`shouldComputeMetricsForZeroReplicas`)."""
    scaled_to_zero = condition(hpa.status.conditions, _SCALED_TO_ZERO)
    return (
        scaled_to_zero is not None
        and scaled_to_zero.status == "True"
        and (plan.minimum != 0 or plan.measures_without_pods)
    )


def _propose(plan: HpaPlan, report: _SyncReport, situation: Situation) -> _Step:
    """Returns the count that the metrics require, before it is normalized. Raises `_NoCount`."""
    current = situation.scale.replicas
    replicas, name = _highest(plan, report, situation)
    desired = max(replicas, 0)
    if desired > current:
        return _Step(current, desired, f"{name} above target")
    return _Step(current, desired, "All metrics below target" if desired < current else "")


def _select(report: _SyncReport, selector: str, pods: Sequence[Pod]) -> list[Pod]:
    """Returns the target's pods (`validateAndParseSelector`). Raises `_NoCount`."""
    if not selector:
        report.warn("SelectorRequired", "selector is required")
        report.conditions[_ACTIVE] = _NO_SELECTOR
        raise _NoCount("selector is required")
    try:
        requirements = parse_selector(selector)
    except SelectorError as error:
        message = f"couldn't convert selector into a corresponding internal selector object: {error}"
        report.warn("InvalidSelector", message)
        report.conditions[_ACTIVE] = ("False", "InvalidSelector", message)
        raise _NoCount(message) from None
    return [pod for pod in pods if matches(requirements, pod.metadata.labels)]


def _highest(plan: HpaPlan, report: _SyncReport, situation: Situation) -> tuple[int, str]:
    """Returns the highest count of all metrics, and the name of that metric (`computeReplicasForMetrics`). Raises
    `_NoCount` if no metric gives a count, or if some metrics fail while the others would remove pods."""
    replicas, name = 0, ""
    first: MetricFault | None = None
    invalid = 0
    report.metrics = statuses = []
    for metric in plan.metrics:
        try:
            result = evaluate(metric, situation)
        except MetricFault as fault:
            report.warn(fault.reason, fault.cause)
            statuses.append(_NO_VALUE)
            invalid += 1
            first = first or fault
            continue
        statuses.append(result.status)
        if replicas == 0 or result.replicas > replicas:
            replicas, name = result.replicas, result.name
    if first is not None and (invalid >= len(plan.metrics) or replicas < situation.scale.replicas):
        message = f"the HPA was unable to compute the replica count: {first.cause}"
        report.conditions[_ACTIVE] = ("False", first.reason, message)
        count = f"{invalid} invalid out of {len(plan.metrics)}"
        raise _NoCount(f"invalid metrics ({count}), first error is: {first}")
    message = f"the HPA was able to successfully calculate a replica count from {name}"
    report.conditions[_ACTIVE] = ("True", "ValidMetricFound", message)
    return replicas, name
