"""The trusted part of the HPA's desired replicas, and the value of the Hvpa's `spec.replicas` (DESIGN 4).

The HPA writes its desired replicas into the Hvpa's `spec.replicas` and reads that field back as its current count. A
metric within tolerance proposes the current count, so an old number would stay for ever. HVPA therefore trusts it only
between the workload's count and its own estimate from the same measurements.
"""

from __future__ import annotations

import datetime as dt
import math

from msgspec import Struct, structs

from hvpa.api.hvpa.status import ScaleReplicasCorrection
from hvpa.api.objects.read_models import DEFAULT_METRICS, Hpa, condition
from hvpa.api.values import text
from hvpa.api.values.quantity import MEMORY, RESOURCES, Resource
from hvpa.core.model import Finding, Observation, ScalableObservation, ScalableState, Unknown
from hvpa.core.recommenders.estimate import (
    MICRO,
    OF_RESOURCES,
    MetricDemand,
    Readings,
    estimate_replicas,
    is_never_stale,
    least_by_limits,
    measured_from,
    metric_demands,
    readings_of,
    with_unproven,
)
from hvpa.core.values.clock import Clock
from hvpa.core.values.tuning import HPA_SILENT, MAX_CORRECTIONS, METRICS_AWAITED, SETTLING
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.managers import replicas_set_at

TOO_MANY_REPLICAS = "TooManyReplicas"
"""Reason of the HPA's `ScalingLimited` if it would exceed maxReplicas (podautoscaler/horizontal.go)."""
SCALED_TO_ZERO = "ScaledToZero"
"""The HPA's condition that it has scaled to 0 itself (podautoscaler/horizontal.go)."""
_NO_METRICS = Finding("NoMetrics", "the HPA has measured none of its metrics yet")
_KEDA = ("ScaledObject", "keda.sh")
"""Kind and group of the controller of KEDA's HPAs."""
MOST_METRICS = 100
"""Maximum number of metrics of an HPA that HVPA reads; the same as for an HPA that it creates."""


class DesiredReplicas(Struct, frozen=True):
    """The HPA's recommendation, as far as HVPA trusts it. The demands serve joint decisions and forecasts."""

    replicas: int | None
    """The trusted desired replicas (None: the HPA's count is not used)."""
    estimate: int | None = None
    """HVPA's own count for the HPA's measurements (DESIGN 4, e); None if no metric has a value."""
    beyond_max: bool = False
    """Whether the HPA would scale out further than maxReplicas."""
    scale_replicas: int | None = None
    """The count to write to `spec.replicas`."""
    correction: ScaleReplicasCorrection | None = None
    """The record of that write if it corrects the HPA."""
    problem: Finding | None = None
    measured: tuple[MetricDemand, ...] = ()
    """The demand of each metric, in fractions of pods."""
    demands: tuple[MetricDemand, ...] = ()
    """Like `measured`, limited to the HPA's desired replicas."""
    held: tuple[MetricDemand, ...] = ()
    """The demand of desired replicas above `measured`, because the HPA is slower to scale in."""
    unmeasured: bool = False
    """Whether a metric has no value."""
    is_relative: bool = False
    """Whether a metric's target is a percentage of the requests."""
    of_memory_alone: bool = False
    """Whether all targets are percentages of memory requests."""
    unknown: Unknown | None = None
    """Why the demand is unknown for now."""
    metered: tuple[tuple[Resource, str], ...] | None = None
    """The resources that the HPA's metrics measure, with or without a value, and their container ("": whole pod); None
    while there is no HPA."""
    switched: int | None = None
    """The count that switches the workload off or on again: `switched_replicas`."""


def is_of_keda(hpa: Hpa) -> bool:
    """Return whether KEDA created the HPA."""
    controller = hpa.metadata.controller()
    return controller is not None and (controller.kind, controller.api_version.partition("/")[0]) == _KEDA


def switched_replicas(hpa: Hpa, observation: ScalableObservation, bounds: Bounds) -> int | None:
    """Return the count in `spec.replicas` if it switches the workload off (0) or on again; None if it does neither, or
    if the workload has 0 replicas for another reason.

    KEDA switches without its HPA. Since Kubernetes 1.37, an HPA with minReplicas 0 switches, too, and reports
    `ScaledToZero`. It never leaves a 0 that another client wrote.
    """
    wanted, applied_from = observation.spec.replicas, observation.horizontal.applied_from
    if wanted == 0:
        return 0 if is_of_keda(hpa) or is_scaled_to_zero(hpa) else None
    is_ours = applied_from is not None and applied_from.replicas == 0
    is_off = observation.workload.spec.replicas == 0 and is_ours
    if not wanted or not is_off:
        return None
    if is_of_keda(hpa):
        return bounds.clamp(wanted)
    can_switch = hpa.spec.min_replicas == 0 or condition(hpa.status.conditions, SCALED_TO_ZERO) is not None
    return wanted if can_switch and bounds.contains(wanted) else None


def is_scaled_to_zero(hpa: Hpa) -> bool:
    """Return whether the HPA reports that it has scaled to 0."""
    reported = condition(hpa.status.conditions, SCALED_TO_ZERO)
    return reported is not None and reported.status == "True"


def is_switching_off(hpa: Hpa, observation: ScalableObservation) -> bool:
    """Return whether the HPA has written 0 into `spec.replicas`, but not yet its status. If another client wrote the 0,
    the HPA reports `ScalingDisabled`."""
    active = condition(hpa.status.conditions, "ScalingActive")
    is_disabled = active is not None and active.reason == "ScalingDisabled"
    return hpa.spec.min_replicas == 0 and observation.spec.replicas == 0 and not is_disabled


def metered(hpa: Hpa) -> tuple[tuple[Resource, str], ...]:
    """Return the resources that the HPA's metrics measure, and their container ("": whole pod)."""
    sources = [(metric.type, metric.source()) for metric in hpa.spec.metrics or DEFAULT_METRICS]
    of_resource = [source for kind, source in sources if source is not None and kind in OF_RESOURCES]
    return tuple(
        [
            (resource, source.container)
            for source in of_resource
            for resource in RESOURCES
            if source.name == resource
        ]
    )


def is_relative(hpa: Hpa) -> bool:
    """Return whether a metric's target is a percentage of the requests."""
    sources = [metric.source() for metric in hpa.spec.metrics or DEFAULT_METRICS]
    return any([source is not None and source.target.average_utilization is not None for source in sources])


def is_of_memory_alone(hpa: Hpa) -> bool:
    """Return whether all targets are percentages of memory requests."""
    sources = [metric.source() for metric in hpa.spec.metrics or DEFAULT_METRICS]
    return all(
        [
            source is not None and source.name == MEMORY and source.target.average_utilization is not None
            for source in sources
        ]
    )


def trusted_replicas(
    hpa: Hpa, observation: ScalableObservation, bounds: Bounds, clock: Clock
) -> DesiredReplicas:
    """Return the desired replicas of an HPA that only recommends, given `spec.replicas` and its last correction."""
    problem, readings = _unusable(hpa, clock), readings_of(observation, hpa, clock)
    estimate = None if problem else estimate_replicas(observation, hpa, readings, clock)
    if estimate is None:
        inside = put_inside(observation.spec.replicas, observation.workload.spec.replicas, bounds)
        return structs.replace(
            _unknown_replicas(hpa, observation, bounds, problem, clock), scale_replicas=inside
        )
    asked = _whole_replicas(hpa, observation, bounds, estimate, readings, clock)
    assert asked.replicas is not None
    replicas = with_unproven(observation, asked.replicas, clock)
    desired = structs.replace(asked, replicas=replicas)
    if not (observation.spec.joint or observation.spec.forecast):
        return desired
    recommendation = _with_demands(desired, observation, readings, clock)
    if not observation.spec.joint:
        return recommendation
    as_desired = _as_desired(recommendation.measured, asked.replicas * MICRO)
    # Desired replicas above the measured demand keep replicas but do not make pods larger: they are counted in present
    # pods, so as a demand they would grow with the pods.
    if asked.replicas > bounds.clamp(estimate):
        return structs.replace(recommendation, held=as_desired)
    return (
        recommendation
        if asked.replicas == bounds.clamp(estimate)
        else structs.replace(recommendation, demands=as_desired)
    )


def measured_replicas(
    hpa: Hpa, observation: ScalableObservation, bounds: Bounds, clock: Clock
) -> DesiredReplicas:
    """Return the count for the measurements of an HPA that is read as it is: HVPA's own estimate (DESIGN 4, e), inside
    the bounds.

    That HPA does not point at this Hvpa. HVPA does not use its desired replicas, which its `behavior` may limit, nor
    the Hvpa's `spec.replicas`, which no HPA writes.
    """
    problem = _unusable(hpa, clock)
    if hpa.spec.scale_target_ref.kind != observation.workload.kind:
        # Its `currentReplicas` are the count in another Hvpa's `spec.replicas`, not a number of pods.
        hpa = structs.replace(hpa, status=structs.replace(hpa.status, current_replicas=0))
    readings = readings_of(observation, hpa, clock)
    estimate = None if problem else estimate_replicas(observation, hpa, readings, clock)
    if estimate is None:
        return _unknown_replicas(hpa, observation, bounds, problem, clock)
    beyond = bounds.upper is not None and estimate > bounds.upper
    replicas = with_unproven(observation, bounds.clamp(estimate), clock)
    desired = DesiredReplicas(replicas, estimate, beyond, correction=observation.horizontal.correction)
    return (
        _with_demands(desired, observation, readings, clock)
        if observation.spec.joint or observation.spec.forecast
        else desired
    )


def _with_demands(
    desired: DesiredReplicas, observation: ScalableObservation, readings: Readings, clock: Clock
) -> DesiredReplicas:
    measured, unmeasured = metric_demands(observation, readings, clock)
    return structs.replace(desired, measured=measured, demands=measured, unmeasured=unmeasured)


def _as_desired(demands: tuple[MetricDemand, ...], pods: int) -> tuple[MetricDemand, ...]:
    """Return demands whose largest equals the desired replicas themselves, which are more accurate (DESIGN 4)."""
    largest = max(range(len(demands)), key=lambda index: demands[index].pods)
    return tuple(
        demand.scaled(pods) if index == largest or demand.pods > pods else demand
        for index, demand in enumerate(demands)
    )


def _whole_replicas(
    hpa: Hpa,
    observation: ScalableObservation,
    bounds: Bounds,
    estimate: int,
    readings: Readings,
    clock: Clock,
) -> DesiredReplicas:
    """Return the desired replicas without the demand of each metric. `estimate` is HVPA's own."""
    present, scale_replicas = observation.workload.spec.replicas, observation.spec.replicas
    measured, corrected = estimate, observation.horizontal.correction
    # Unless minReplicas is 0, 0 means that the HPA has not decided yet.
    asked = hpa.status.desired_replicas or (0 if bounds.lower == 0 else present)
    if present == 0:
        inside = put_inside(scale_replicas, asked, bounds)
        return DesiredReplicas(bounds.clamp(asked), estimate, False, inside, corrected)
    if was_lowered(observation, clock) is not None:
        # The measurement is of the pods before the change, so the last trusted count for them still holds.
        estimate = max(estimate, min(asked, last_recommended(observation)))
    estimate = bounds.clamp(estimate)
    by_limits = min(estimate, least_by_limits(observation, readings))
    low, high = max(by_limits, min(present, estimate)), max(present, estimate)
    if (least := _least_without_boosts(hpa, observation, readings, asked)) is not None:
        low = max(low, min(max(present, estimate), least))
    if observation.spec.joint and asked > high and is_never_stale(readings):
        high = asked  # it is a count of other pods, so `present` does not limit it; the HPA may be slow to scale in
    trusted = bounds.clamp(min(max(asked, low), high))
    limited = condition(hpa.status.conditions, "ScalingLimited")
    is_limited = limited is not None and (limited.status, limited.reason) == ("True", TOO_MANY_REPLICAS)
    beyond = is_limited and bounds.upper is not None and asked >= bounds.upper
    inside = put_inside(scale_replicas, trusted, bounds)
    if inside is None and asked == trusted:
        return DesiredReplicas(trusted, measured, beyond)
    believed = DesiredReplicas(trusted, measured, beyond, inside, corrected)
    # If `spec.replicas` differs from the HPA's status, the HPA has yet to read or report it.
    if (
        inside is not None
        or 0 < by_limits == trusted
        or (observation.pods.boosted is not None and trusted > asked)
        or scale_replicas != asked
        or (observation.spec.joint and _is_measuring(observation, clock))
    ):
        return believed
    return _with_correction(believed, asked, estimate)


def _least_without_boosts(
    hpa: Hpa, observation: ScalableObservation, readings: Readings, asked: int
) -> int | None:
    """Return the count that the HPA would ask for if no pod had more CPU for its start; None if that changes nothing.

    The HPA divides usage by the requests of ready pods, and, to scale out, also of pods that are not ready. Example: 4
    pods of 500m are ready and 2 of 1500m start. All requests are 5/3 of the usual ones, so 8 becomes 14. HVPA does not
    go beyond the HPA's `behavior`. Ready pods that still have a boost may use it all, which is no demand, so HVPA then
    adds no pods to the HPA's count.
    """
    boosted, limited = observation.pods.boosted, condition(hpa.status.conditions, "ScalingLimited")
    known = [reading for reading in readings if reading is not None]
    leading = max(known, key=lambda reading: reading.have / reading.wanted, default=None)
    is_of_cpu = leading is not None and leading.source.name == "cpu" and not leading.is_absolute
    present = observation.workload.spec.replicas
    if boosted is None or not is_of_cpu:
        return None
    if asked < present:
        return min(present, math.ceil(asked * boosted[1]))
    is_limited = limited is not None and limited.status == "True"
    return None if is_limited or boosted[1] != 1 else math.ceil(asked * boosted[0])


def _is_measuring(observation: Observation, clock: Clock) -> bool:
    """Return whether pods became ready, or the count changed, so recently that the HPA may count other pods than HVPA.
    The HPA counts a pod a metric window after it became ready, which takes 10 to 60 seconds. Until then its desired
    replicas don't contradict its own metrics (docs/decisions/0024)."""
    changes = (observation.pods.last_ready_at, observation.horizontal.last_scale_time)
    return any([clock.held_until(when, SETTLING) is not None for when in changes])


def _unknown_replicas(
    hpa: Hpa, observation: ScalableObservation, bounds: Bounds, problem: Finding | None, clock: Clock
) -> DesiredReplicas:
    """Return the desired replicas of an HPA that has measured none of the present pods. Without metrics they are
    unknown. If the pods are merely too young for metrics, the last recommendation stands."""
    corrected = observation.horizontal.correction
    if (
        problem is None
        and hpa.status.current_metrics
        and (until := measured_from(observation, clock)) is not None
    ):
        waiting = Unknown(f"the {len(observation.pods.ready_since)} ready pods are not measured yet", until)
        return DesiredReplicas(
            bounds.clamp(last_recommended(observation)), correction=corrected, unknown=waiting
        )
    active, waited = condition(hpa.status.conditions, "ScalingActive"), None
    if active is not None and active.status != "True":
        waited = clock.held_until(active.last_transition_time, HPA_SILENT)
    unknown = None if waited is None else Unknown("the HPA has no metrics", waited)
    return DesiredReplicas(None, correction=corrected, problem=problem or _NO_METRICS, unknown=unknown)


def last_recommended(observation: ScalableState) -> int:
    """Return the last recommended replicas from the status, or the present replicas if there are none."""
    before = observation.status.recommended
    return (
        observation.workload.spec.replicas if before is None or before.replicas is None else before.replicas
    )


def was_lowered(observation: ScalableState, clock: Clock) -> dt.datetime | None:
    """Return until when a metric may be a mean over pods that another client has removed: another client recently set
    fewer replicas than the last recommendation. None otherwise.

    Example: 10 pods use half of their target each, and a client sets 2. Until the HPA has measured these, 2 pods at
    half of the target seem to be enough.
    """
    if observation.workload.spec.replicas >= last_recommended(observation):
        return None
    return clock.held_until(replicas_set_at(observation.workload), SETTLING)


def put_inside(scale_replicas: int | None, count: int, bounds: Bounds) -> int | None:
    """Return the count inside the bounds to write to `spec.replicas`; None if its present count is inside."""
    return bounds.clamp(count) if scale_replicas is None or not bounds.contains(scale_replicas) else None


def _with_correction(desired: DesiredReplicas, asked: int, estimate: int) -> DesiredReplicas:
    """Correct `spec.replicas` if the HPA keeps desired replicas that HVPA does not trust, at most twice in a row for
    the same status.

    A status is the same if its desired replicas are the same. Its resource version changes whenever the HPA repeats its
    desired replicas. If HVPA compared versions, HVPA and an HPA whose estimates differ (with another tolerance, for
    example) would overwrite each other for ever.
    """
    status, before = f"{asked}/{estimate}", desired.correction
    count = before.count + 1 if before is not None and before.hpa_status == status else 1
    if count > MAX_CORRECTIONS:
        why = f"the HPA still recommends {text.counted(asked)} although its metrics yield {estimate}"
        stale = Finding("StaleDesiredReplicas", f"{why}; HVPA uses {desired.replicas}")
        return structs.replace(desired, problem=stale)
    correction = ScaleReplicasCorrection(hpa_status=status, count=count)
    return structs.replace(desired, scale_replicas=desired.replicas, correction=correction)


def _unusable(hpa: Hpa, clock: Clock) -> Finding | None:
    """Return why the HPA's count is not used. Example: an HPA without metrics since 10:00:00 has the reason
    `NoMetrics`, which is normal at a start, and from 10:01:00 on `FailedGetResourceMetric`, which is a warning."""
    if len(hpa.spec.metrics) > MOST_METRICS:
        return Finding("TooManyMetrics", f"the HPA has more than {MOST_METRICS} metrics")
    active = condition(hpa.status.conditions, "ScalingActive")
    if active is None or active.status == "True":
        return None
    reason = text.reason(active.reason, "ScalingInactive")
    why = active.message or "the HPA is not active"
    gets_none = reason.startswith("FailedGet") and reason.endswith("Metric")
    if gets_none and clock.held_until(active.last_transition_time, METRICS_AWAITED) is not None:
        return Finding("NoMetrics", f"no metrics for less than a minute ({reason}: {why})")
    return Finding(reason, why)
