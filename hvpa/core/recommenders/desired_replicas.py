"""How far the HPA's desired replicas are trusted, and what the Hvpa's `spec.replicas` must hold (DESIGN 4).

The HPA writes its desired replicas into the Hvpa's `spec.replicas`, and reads that field back as its current count. A
metric within tolerance proposes whatever stands there, so an old number would stay for ever. It is therefore
believed only between the workload's count and the operator's own estimate from the same measurements.
"""

from __future__ import annotations

import datetime as dt

from msgspec import Struct, structs

from hvpa.api.hvpa.status import ScaleReplicasCorrection
from hvpa.api.objects.read_models import DEFAULT_METRICS, Hpa, condition
from hvpa.api.values import text
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.model import Finding, Observation, ObservedState
from hvpa.core.recommenders.estimate import (
    MICRO,
    SETTLING,
    MetricDemand,
    Readings,
    estimate_replicas,
    is_never_stale,
    measured_from,
    metric_demands,
    readings_of,
    with_unproven,
)
from hvpa.core.values.clock import Clock
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.managers import replicas_set_at

MAX_CORRECTIONS = 2
"""How often in a row `spec.replicas` is set right for one and the same HPA status (DESIGN 4)."""
TOO_MANY_REPLICAS = "TooManyReplicas"
"""Reason of the HPA's `ScalingLimited` where it wants more than maxReplicas (podautoscaler/horizontal.go)."""
HPA_SILENT = dt.timedelta(minutes=5)
"""How long an HPA without metrics is waited for: new pods count for it after five minutes at the latest
(`--horizontal-pod-autoscaler-cpu-initialization-period`)."""
_NO_METRICS = Finding("NoMetrics", "the HPA has measured none of its metrics yet")
METRICS_AWAITED = dt.timedelta(minutes=1)
"""How long an HPA's metrics are waited for before action is needed: new pods have none until they are scraped, and
so most creations and rollouts leave the HPA without metrics for 4 to 15 seconds."""
_KEDA = ("ScaledObject", "keda.sh")
"""Kind and group of the controller of the HPAs that KEDA creates."""
MOST_METRICS = 100
"""Metrics of an HPA that is read, as of one that is deployed."""


class Unknown(Struct, frozen=True):
    """Why the demand is not known, and until when that is waited for: the last recommendation stands until then."""

    why: str
    until: dt.datetime


class DesiredReplicas(Struct, frozen=True):
    """What the HPA is believed to want.

    `replicas` is the trusted desired replicas (None: the HPA's are not used), `beyond_max` whether it would go out
    further than maxReplicas. `scale_replicas` is the count to be written to `spec.replicas`, `correction` the record of
    that write where it corrects the HPA. For a joint decision and a forecast: `measured` is what each metric calls for,
    in fractions of pods, `demands` the same as far as the HPA stands by it, `held` that of desired replicas above it,
    since the HPA is slower to scale in; `unmeasured`: a metric has no value.
    """

    replicas: int | None
    beyond_max: bool = False
    scale_replicas: int | None = None
    correction: ScaleReplicasCorrection | None = None
    problem: Finding | None = None
    measured: tuple[MetricDemand, ...] = ()
    demands: tuple[MetricDemand, ...] = ()
    held: tuple[MetricDemand, ...] = ()
    unmeasured: bool = False
    is_relative: bool = False
    """Whether a metric's target is a percentage of the requests."""
    unknown: Unknown | None = None
    """Why the demand is not known for the moment."""
    metered: tuple[tuple[Resource, str], ...] | None = None
    """Which resources the HPA's metrics measure, with or without a value, and of which container ("": of the pod); None
    while there is no HPA."""
    switched: int | None = None
    """The count that KEDA itself asks for: `switched_replicas`."""


def is_of_keda(hpa: Hpa) -> bool:
    """Whether KEDA created the HPA."""
    controller = hpa.metadata.controller()
    return controller is not None and (controller.kind, controller.api_version.partition("/")[0]) == _KEDA


def switched_replicas(hpa: Hpa, seen: Observation, bounds: Bounds) -> int | None:
    """The count that KEDA asks for past its HPA, which scales neither to 0 nor from there: to deactivate the workload,
    KEDA writes 0 into `spec.replicas`; to activate it again, 1 or minReplicas. None where KEDA does neither, and where
    the workload has 0 replicas that were not set for KEDA."""
    assert seen.spec is not None and seen.workload is not None
    wanted = seen.spec.replicas
    if not is_of_keda(hpa):
        return None
    if wanted == 0:
        return 0
    applied_from = seen.horizontal.applied_from
    is_ours = applied_from is not None and applied_from.replicas == 0
    return bounds.clamp(wanted) if wanted and seen.workload.spec.replicas == 0 and is_ours else None


def metered(hpa: Hpa) -> tuple[tuple[Resource, str], ...]:
    """Which resources the HPA's metrics measure, and of which container ("": of the pod)."""
    sources = [(one.type, one.source()) for one in hpa.spec.metrics or DEFAULT_METRICS]
    of_resource = [
        one for kind, one in sources if one is not None and kind in ("Resource", "ContainerResource")
    ]
    return tuple(
        [(resource, one.container) for one in of_resource for resource in RESOURCES if one.name == resource]
    )


def is_relative(hpa: Hpa) -> bool:
    """Whether a metric's target is a percentage of the requests."""
    sources = [one.source() for one in hpa.spec.metrics or DEFAULT_METRICS]
    return any([one is not None and one.target.average_utilization is not None for one in sources])


def trusted_replicas(hpa: Hpa, seen: Observation, bounds: Bounds, clock: Clock) -> DesiredReplicas:
    """The desired replicas of an HPA that only recommends, given `spec.replicas` and its last correction."""
    assert seen.spec is not None and seen.workload is not None
    problem, readings = _unusable(hpa, clock), readings_of(seen, hpa, clock)
    estimate = None if problem else estimate_replicas(seen, hpa, readings, clock)
    if estimate is None:
        inside = put_inside(seen.spec.replicas, seen.workload.spec.replicas, bounds)
        return structs.replace(_unknown_replicas(hpa, seen, bounds, problem, clock), scale_replicas=inside)
    asked = _whole_replicas(hpa, seen, bounds, estimate, is_never_stale(readings), clock)
    assert asked.replicas is not None
    desired = structs.replace(asked, replicas=with_unproven(seen, asked.replicas, clock))
    if not (seen.spec.joint or seen.spec.forecast):
        return desired
    found = _with_demands(desired, seen, readings, clock)
    if not seen.spec.joint:
        return found
    as_desired = _as_desired(found.measured, asked.replicas * MICRO)
    # More than the metrics call for is a reason to keep replicas, and none for larger pods: it is counted in pods as
    # they are, and would grow with them.
    if asked.replicas > bounds.clamp(estimate):
        return structs.replace(found, held=as_desired)
    return found if asked.replicas == bounds.clamp(estimate) else structs.replace(found, demands=as_desired)


def measured_replicas(hpa: Hpa, seen: Observation, bounds: Bounds, clock: Clock) -> DesiredReplicas:
    """What the measurements of an HPA call for that is read as it is: the operator's own estimate (DESIGN 4, e), inside
    the bounds. That HPA does not ask this Hvpa for a count. So neither its desired replicas are used, which its
    `behavior` may hold back, nor `spec.replicas` of the Hvpa, to which no HPA writes."""
    assert seen.spec is not None and seen.workload is not None
    problem = _unusable(hpa, clock)
    if hpa.spec.scale_target_ref.kind != seen.workload.kind:
        # Its `currentReplicas` are the count that it asks another Hvpa for, and no pods.
        hpa = structs.replace(hpa, status=structs.replace(hpa.status, current_replicas=0))
    readings = readings_of(seen, hpa, clock)
    estimate = None if problem else estimate_replicas(seen, hpa, readings, clock)
    if estimate is None:
        return _unknown_replicas(hpa, seen, bounds, problem, clock)
    beyond = bounds.upper is not None and estimate > bounds.upper
    replicas = with_unproven(seen, bounds.clamp(estimate), clock)
    desired = DesiredReplicas(replicas, beyond, correction=seen.horizontal.correction)
    return _with_demands(desired, seen, readings, clock) if seen.spec.joint or seen.spec.forecast else desired


def _with_demands(
    desired: DesiredReplicas, seen: Observation, readings: Readings, clock: Clock
) -> DesiredReplicas:
    measured, unmeasured = metric_demands(seen, readings, clock)
    return structs.replace(desired, measured=measured, demands=measured, unmeasured=unmeasured)


def _as_desired(demands: tuple[MetricDemand, ...], pods: int) -> tuple[MetricDemand, ...]:
    """Demands of which the largest is that of the desired replicas itself, since the HPA knows better (DESIGN 4)."""
    largest = max(range(len(demands)), key=lambda index: demands[index].pods)
    return tuple(
        one.scaled(pods) if index == largest or one.pods > pods else one for index, one in enumerate(demands)
    )


def _whole_replicas(
    hpa: Hpa, seen: Observation, bounds: Bounds, estimate: int, never_stale: bool, clock: Clock
) -> DesiredReplicas:
    """The desired replicas without what its metrics call for, given the operator's own estimate, and whether its
    measurements are `is_never_stale`."""
    assert seen.spec is not None and seen.workload is not None
    present, scale_replicas = seen.workload.spec.replicas, seen.spec.replicas
    corrected = seen.horizontal.correction
    # 0 is the count of an HPA that has not decided yet, but where minReplicas is 0.
    asked = hpa.status.desired_replicas or (0 if bounds.lower == 0 else present)
    if present == 0:
        inside = put_inside(scale_replicas, asked, bounds)
        return DesiredReplicas(bounds.clamp(asked), False, inside, corrected)
    if was_lowered(seen, clock) is not None:
        # The measurement is of the pods that were there before; their HPA's count stands as far as it was believed.
        estimate = max(estimate, min(asked, last_recommended(seen)))
    estimate = bounds.clamp(estimate)
    low, high = min(present, estimate), max(present, estimate)
    if seen.spec.joint and asked > high and never_stale:
        high = asked  # Of other pods than there are, for which `present` is no measure; it is in no hurry to scale in.
    trusted = bounds.clamp(min(max(asked, low), high))
    limited = condition(hpa.status.conditions, "ScalingLimited")
    is_limited = limited is not None and (limited.status, limited.reason) == ("True", TOO_MANY_REPLICAS)
    beyond = is_limited and bounds.upper is not None and asked >= bounds.upper
    inside = put_inside(scale_replicas, trusted, bounds)
    if inside is None and asked == trusted:
        return DesiredReplicas(trusted, beyond)
    believed = DesiredReplicas(trusted, beyond, inside, corrected)
    # Where `spec.replicas` holds another count than the HPA's status, the HPA has yet to see or to report it.
    if inside is not None or scale_replicas != asked or (seen.spec.joint and _is_measuring(seen, clock)):
        return believed
    return _corrected(believed, asked, estimate)


def _is_measuring(seen: Observation, clock: Clock) -> bool:
    """Whether pods became ready, or the count changed, so lately that the HPA may count other pods than the operator:
    it counts a pod once a metric window has passed since, which is between 10 and 60 seconds. What it asks for then is
    no contradiction to its own metrics (docs/decisions/0024)."""
    changes = (seen.pods.last_ready_at, seen.horizontal.last_scale_time)
    return any([clock.held_until(when, SETTLING) is not None for when in changes])


def _unknown_replicas(
    hpa: Hpa, seen: Observation, bounds: Bounds, problem: Finding | None, clock: Clock
) -> DesiredReplicas:
    """The desired replicas of an HPA that has measured none of the pods that there are. Without metrics none are known;
    where pods are only too young for them, it is taken to want what was recommended last."""
    corrected = seen.horizontal.correction
    if problem is None and hpa.status.current_metrics and (until := measured_from(seen, clock)) is not None:
        waiting = Unknown(f"the {len(seen.pods.ready_since)} ready pods are not measured yet", until)
        return DesiredReplicas(bounds.clamp(last_recommended(seen)), correction=corrected, unknown=waiting)
    active, waited = condition(hpa.status.conditions, "ScalingActive"), None
    if active is not None and active.status != "True":
        waited = clock.held_until(active.last_transition_time, HPA_SILENT)
    unknown = None if waited is None else Unknown("the HPA has no metrics", waited)
    return DesiredReplicas(None, correction=corrected, problem=problem or _NO_METRICS, unknown=unknown)


def last_recommended(seen: ObservedState) -> int:
    """The replicas that were recommended last, as the status has them; the present ones where there are none."""
    assert seen.workload is not None
    before = seen.status.recommended
    return seen.workload.spec.replicas if before is None or before.replicas is None else before.replicas


def was_lowered(seen: ObservedState, clock: Clock) -> dt.datetime | None:
    """Until when a metric may be a mean over pods that another client took away since: where there are fewer replicas
    than recommended last, and another client set them so lately. None where that is not so.

    Example: 10 pods use half of their target each, a client sets 2. Until the HPA has measured these, 2 pods of a half
    each seem to be enough."""
    assert seen.workload is not None
    if seen.workload.spec.replicas >= last_recommended(seen):
        return None
    return clock.held_until(replicas_set_at(seen.workload), SETTLING)


def put_inside(scale_replicas: int | None, count: int, bounds: Bounds) -> int | None:
    """What to write to `spec.replicas` that must hold a count inside the bounds; None where it does."""
    return bounds.clamp(count) if scale_replicas is None or not bounds.contains(scale_replicas) else None


def _corrected(desired: DesiredReplicas, asked: int, estimate: int) -> DesiredReplicas:
    """The HPA stands by desired replicas that are not believed: set `spec.replicas` right, at most twice in a row for
    the same status.

    A status is the same when it asks for the same. Its resource version changes whenever the HPA repeats its desired
    replicas, so by that two that estimate differently (with another tolerance, say) would write against each other for
    ever.
    """
    status, before = f"{asked}/{estimate}", desired.correction
    count = before.count + 1 if before is not None and before.hpa_status == status else 1
    if count > MAX_CORRECTIONS:
        why = f"the HPA keeps asking for {text.counted(asked)} though its metrics call for {estimate}"
        stale = Finding("StaleDesiredReplicas", f"{why}; {desired.replicas} is used")
        return structs.replace(desired, problem=stale)
    correction = ScaleReplicasCorrection(hpa_status=status, count=count)
    return structs.replace(desired, scale_replicas=desired.replicas, correction=correction)


def _unusable(hpa: Hpa, clock: Clock) -> Finding | None:
    """Why the HPA's count is not used. Example: an HPA that gets no metrics since 10:00:00 is `NoMetrics`, a reason of
    every start, and `FailedGetResourceMetric`, which is a warning, from 10:01:00 on."""
    if len(hpa.spec.metrics) > MOST_METRICS:
        return Finding("TooManyMetrics", f"the HPA has more than {MOST_METRICS} metrics")
    active = condition(hpa.status.conditions, "ScalingActive")
    if active is None or active.status == "True":
        return None
    reason = text.reason(active.reason, "ScalingInactive")
    why = active.message or "the HPA is not active"
    gets_none = reason.startswith("FailedGet") and reason.endswith("Metric")
    if gets_none and clock.held_until(active.last_transition_time, METRICS_AWAITED) is not None:
        return Finding("NoMetrics", f"for less than a minute, {reason}: {why}")
    return Finding(reason, why)
