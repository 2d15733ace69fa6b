"""Judges a trial by metrics of the service (`spec.updateStrategy.canary.rollbackOnMetrics`, decision 0078)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.hvpa.status import CanaryMetric
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import MetricValue, ResourceRequirements, ScalableState
from hvpa.core.values.clock import after

FRESH: Final = dt.timedelta(minutes=2)
"""How old a value may be at the end of a trial. Adapters measure once or twice a minute."""


class Verdict(NamedTuple):
    """What the metrics say of a trial."""

    failure: str = ""
    """Why the new size is rolled back; empty if it is not."""
    is_over: bool = False
    """Whether the trial is over."""


def rollback_metrics(spec: HvpaSpec | None) -> tuple[RollbackMetric, ...]:
    """Returns the metrics that judge the Hvpa's trials; none if it makes no trials or changes nothing."""
    if spec is None or spec.mode != "Apply" or spec.strategy.canary is None:
        return ()
    return spec.strategy.canary.rollback_on_metrics


def with_values(
    spec: HvpaSpec, known: Sequence[CanaryMetric], values: Sequence[MetricValue] | None
) -> tuple[CanaryMetric, ...]:
    """Returns the record of each metric that judges trials, in the spec's order, with the values that were read last
    (None: none yet)."""
    records = []
    for index, metric in enumerate(rollback_metrics(spec)):
        record = known[index] if index < len(known) and known[index].metric == metric.text else None
        read = values[index] if values is not None and index < len(values) else None
        records.append(_with_value(metric, record or CanaryMetric(metric=metric.text), read))
    return tuple(records)


def _with_value(metric: RollbackMetric, record: CanaryMetric, read: MetricValue | None) -> CanaryMetric:
    if read is None:
        return record
    if not read.value or read.time is None:
        return record.model_copy(update={"message": read.problem})
    good_at = record.good_at if metric.is_exceeded(read.value) else read.time
    return record.model_copy(
        update={"value": read.value, "time": read.time, "good_at": good_at, "message": ""}
    )


def trial_end(
    context: GateContext, observation: ScalableState, since: dt.datetime
) -> tuple[dt.datetime, str]:
    """Returns when a trial ends whose pods have the new size since `since`, and the metrics that lack a fresh value
    then, in words (empty: none). A trial whose metrics are unknown lasts twice as long."""
    canary = context.spec.strategy.canary
    assert canary is not None, "a trial has a canary"
    until = after(since, canary.duration)
    if not context.clock.is_past(until):
        return until, ""
    unknown = [
        record.metric
        for record in observation.canary_metrics
        if record.time is None or record.time <= since or context.clock.held_until(record.time, FRESH) is None
    ]
    return (after(until, canary.duration) if unknown else until), ", ".join(unknown)


def judged(
    context: GateContext,
    observation: ScalableState,
    since: dt.datetime,
    sizes: tuple[Mapping[str, ResourceRequirements], Mapping[str, ResourceRequirements]],
) -> Verdict:
    """Judges a trial whose pods have the new size since `since`. `sizes` are the size before and the new size.

    A metric fails it if it is above its threshold now and was not above it before, since the trial began. Without a
    fresh value of a metric by the end, a size that lowers a request is rolled back, because nothing shows that the
    service bears it; raises stay.
    """
    for metric, record in zip(rollback_metrics(context.spec), observation.canary_metrics, strict=True):
        is_new = record.good_at is not None and record.time is not None and record.time > since
        if is_new and metric.is_exceeded(record.value):
            return Verdict(f"{metric.text} is {record.value}, above {metric.above}")
    until, unknown = trial_end(context, observation, since)
    if not context.clock.is_past(until):
        return Verdict()
    if unknown and _lowers(*sizes):
        return Verdict(f"no value of {unknown} by the end of the trial")
    return Verdict(is_over=True)


def _lowers(before: Mapping[str, ResourceRequirements], then: Mapping[str, ResourceRequirements]) -> bool:
    """Returns whether the new size lowers a request."""
    return any(
        request < before[name].requests.get(resource, 0)
        for name, size in then.items()
        if name in before
        for resource, request in size.requests.items()
    )
