"""How far the HPA's wish is trusted, and what its mailbox must hold (DESIGN 4).

The HPA writes its wish into the Hvpa's `spec.replicas`, the mailbox, and reads it back as the present count. A metric
within tolerance proposes whatever stands there, so an old wish would stay for ever. It is therefore believed only
between the workload's count and the operator's own estimate from the same measurements.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from msgspec import Struct, structs

from hvpa.api.objects import Hpa, HpaSpecRead, Metric, MetricSource, MetricValue, Workload, condition
from hvpa.api.quantity import QuantityError, parse_quantity
from hvpa.api.status import MailboxCorrection
from hvpa.core.blend import ceil_div
from hvpa.core.memo import remembered
from hvpa.core.model import Finding, Observation, PodsSeen, Settings
from hvpa.core.weights import FULL, Bounds

MAX_CORRECTIONS = 2
"""How often in a row the mailbox is set right for one and the same HPA status (DESIGN 4)."""
TOO_MANY_REPLICAS = "TooManyReplicas"
"""Reason of the HPA's `ScalingLimited` where it wants more than maxReplicas (podautoscaler/horizontal.go)."""

_DEFAULT_METRICS = (
    Metric(
        type="Resource",
        resource=MetricSource(name="cpu", target=MetricValue(type="Utilization", average_utilization=80)),
    ),
)
"""What the API server fills in where an HPA names no metric (`SetDefaults_HorizontalPodAutoscaler`)."""


_NO_SOURCE = MetricSource()


class Wish(Struct, frozen=True):
    """What the HPA is believed to want.

    `replicas` is the trusted wish (None: the HPA has no say), `beyond_max` whether it would go out further than
    maxReplicas. `mailbox` is the count to be written to `spec.replicas`, `correction` the record of that write where it
    corrects the HPA.
    """

    replicas: int | None
    beyond_max: bool = False
    mailbox: int | None = None
    correction: MailboxCorrection | None = None
    problem: Finding | None = None


def trusted_wish(hpa: Hpa, seen: Observation, bounds: Bounds) -> Wish:
    """The wish of an HPA that only recommends, given the mailbox's content and its last correction."""
    assert seen.spec is not None and seen.workload is not None
    present, mailbox, corrected = seen.workload.spec.replicas, seen.spec.replicas, seen.horizontal.mailbox
    problem = _unusable(hpa)
    reckoned = None if problem else estimate_replicas(hpa, seen.workload, seen.pods, seen.settings)
    if reckoned is None:
        problem = problem or Finding("NoMetrics", "the HPA has measured none of its metrics yet")
        return Wish(None, mailbox=put_inside(mailbox, present, bounds), correction=corrected, problem=problem)
    estimate = bounds.clamp(reckoned)
    said = hpa.status.desired_replicas or present
    low, high = min(present, estimate), max(present, estimate)
    trusted = bounds.clamp(min(max(said, low), high))
    limited = condition(hpa.status.conditions, "ScalingLimited")
    beyond = (
        bounds.upper is not None
        and limited is not None
        and limited.status == "True"
        and limited.reason == TOO_MANY_REPLICAS
        and said >= bounds.upper
    )
    inside = put_inside(mailbox, trusted, bounds)
    if inside is None and said == trusted:
        return Wish(trusted, beyond)
    believed = Wish(trusted, beyond, inside, corrected)
    if inside is not None:
        return believed
    # Where the mailbox holds another count than the HPA's status, the HPA has yet to see or to tell of it.
    return believed if mailbox != said else _corrected(believed, said, estimate)


def put_inside(mailbox: int | None, count: int, bounds: Bounds) -> int | None:
    """What to write to a mailbox that must hold a count inside the bounds; None where it does."""
    return bounds.clamp(count) if mailbox is None or not bounds.contains(mailbox) else None


def _corrected(wish: Wish, said: int, estimate: int) -> Wish:
    """The HPA stands by a wish that is not believed: set the mailbox right, at most twice in a row for the same
    status.

    A status is the same when it says the same. Its resource version changes whenever the HPA repeats its wish, so by
    that two who reckon differently (with another tolerance, say) would write against each other for ever.
    """
    told, before = f"{said}/{estimate}", wish.correction
    count = before.count + 1 if before is not None and before.hpa_status == told else 1
    if count > MAX_CORRECTIONS:
        text = f"the HPA keeps asking for {said} replicas though its metrics call for {estimate}"
        return structs.replace(wish, problem=Finding("StaleWish", f"{text}; {wish.replicas} is used"))
    return structs.replace(
        wish, mailbox=wish.replicas, correction=MailboxCorrection(hpa_status=told, count=count)
    )


def _unusable(hpa: Hpa) -> Finding | None:
    active = condition(hpa.status.conditions, "ScalingActive")
    if active is not None and active.status != "True":
        return Finding(active.reason or "ScalingInactive", active.message or "the HPA is not active")
    return None


class _Asked(Struct, frozen=True):
    """A metric of an HPA's spec, made ready: whose it is, and from where it is to be counted as another load."""

    metric: Metric
    source: MetricSource
    identity: tuple[object, ...]
    up: Fraction
    down: Fraction


def estimate_replicas(hpa: Hpa, workload: Workload, pods: PodsSeen, settings: Settings) -> int | None:
    """The largest count that a measured metric calls for: the present one within tolerance, else ratio times counted
    pods, rounded up. Not below the present count while a metric has no value; None when none has one.

    Source: the HPA's algorithm, `GetResourceReplicas` and its siblings in podautoscaler/replica_calculator.go.
    """
    present = workload.spec.replicas
    proposals: list[int] = []
    missing = False
    for index, asked in enumerate(_asked(hpa.spec, settings)):
        proposal = _proposal(asked, _measurement(index, asked, hpa), hpa, workload, pods)
        if proposal is None:
            missing = True
        else:
            proposals.append(proposal)
    if not proposals:
        return None
    return max(*proposals, present) if missing else max(proposals)


@remembered
def _asked(spec: HpaSpecRead, settings: Settings) -> tuple[_Asked, ...]:
    up, down = _tolerance(spec, settings, up=True), _tolerance(spec, settings, up=False)
    return tuple(
        _Asked(metric, metric.source() or _NO_SOURCE, _identity(metric), up, down)
        for metric in spec.metrics or _DEFAULT_METRICS
    )


def _proposal(
    asked: _Asked, measured: MetricSource | None, hpa: Hpa, workload: Workload, pods: PodsSeen
) -> int | None:
    """The count that one metric calls for; None where it has no value."""
    if measured is None:
        return None
    ratio = _ratio(asked.source.target, measured.current)
    if ratio is None:
        return None
    have, wanted = ratio
    tolerance = asked.up if have > wanted else asked.down
    if abs(have - wanted) * tolerance.denominator <= wanted * tolerance.numerator:
        return workload.spec.replicas
    counted = _counted_pods(asked.metric, asked.source, hpa, workload, pods)
    return ceil_div(have * counted, wanted)


def _identity(metric: Metric) -> tuple[object, ...]:
    source = metric.source() or _NO_SOURCE
    return (metric.type, source.name, source.container, source.metric.name, source.described_object)


def _measurement(index: int, asked: _Asked, hpa: Hpa) -> MetricSource | None:
    """What was measured of a metric. The status lists the metrics in the order of the spec (`computeReplicasForMetrics`
    in podautoscaler/horizontal.go), which tells those apart that differ by their label selector alone."""
    measured = hpa.status.current_metrics or []
    if index < len(measured) and _identity(measured[index]) == asked.identity:
        return measured[index].source()
    for candidate in measured:
        if _identity(candidate) == asked.identity:
            return candidate.source()
    return None


def _ratio(target: MetricValue, current: MetricValue) -> tuple[int, int] | None:
    """Measured over wanted, as numerator and denominator; None when either is missing or does not parse."""
    try:
        if target.average_utilization:
            if current.average_utilization is None:
                return None
            return current.average_utilization, target.average_utilization
        for wanted, have in ((target.average_value, current.average_value), (target.value, current.value)):
            if wanted is not None and have is not None and (divisor := parse_quantity(wanted)) > 0:
                measured = parse_quantity(have)
                return measured.numerator * divisor.denominator, measured.denominator * divisor.numerator
    except QuantityError:
        return None
    return None


def _tolerance(spec: HpaSpecRead, settings: Settings, *, up: bool) -> Fraction:
    rules = None
    if spec.behavior is not None:
        rules = spec.behavior.scale_up if up else spec.behavior.scale_down
    if rules is not None and rules.tolerance is not None:
        try:
            return parse_quantity(rules.tolerance)
        except QuantityError:
            pass
    return _parts_per_million(settings.hpa_tolerance_ppm)


@lru_cache
def _parts_per_million(ppm: int) -> Fraction:
    return Fraction(ppm, FULL)


def _counted_pods(metric: Metric, source: MetricSource, hpa: Hpa, workload: Workload, pods: PodsSeen) -> int:
    """The pods the HPA counted: for CPU and for `Value` targets the ready ones, for other pod metrics the running ones,
    for `AverageValue` of Object and External `status.replicas`. Not more than there were when it measured; where no pod
    is known, as many."""
    status = workload.status
    seen = hpa.status.current_replicas or status.replicas or workload.spec.replicas
    if metric.type in ("Object", "External"):
        if source.target.average_value is not None:
            return seen
        counted = pods.ready or status.ready_replicas
    elif source.name == "cpu":
        counted = pods.ready or status.ready_replicas
    else:
        counted = pods.running or status.replicas
    return min(counted or seen, seen)
