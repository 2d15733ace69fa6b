"""Judges a trial by metrics of the service (`spec.updateStrategy.canary.rollbackOnMetrics`, decision 0078)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.hvpa.actuation import RollbackMetric
from hvpa.api.hvpa.metrics import MetricIdentifier
from hvpa.api.hvpa.progress import CanaryMetric
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.api.values.text import one_line
from hvpa.core.gates.gates import GateContext
from hvpa.core.model import MetricValue, ResourceRequirements, ScalableState
from hvpa.core.values.clock import after
from hvpa.core.workload.selector import spec_selector_text

REFRESHED: Final = dt.timedelta(minutes=5)
"""How old the value in the status may be while it says the same. A trial may wait for days for the room of a node."""


LONGEST_NAME: Final = 200
"""Characters of a metric's name and selector in messages and in the status."""


class Verdict(NamedTuple):
    """What the metrics say of a trial."""

    failure: str = ""
    """Why the new size is rolled back; empty if it is not."""
    is_over: bool = False
    """Whether the trial is over."""
    until: dt.datetime | None = None
    """When it ends, past or future; None while pods lack the new size."""


def rollback_metrics(spec: HvpaSpec | None) -> tuple[RollbackMetric, ...]:
    """Returns the metrics that judge the Hvpa's trials; none if it makes no trials."""
    canary = None if spec is None else spec.strategy.canary
    return () if canary is None else canary.rollback_on_metrics


def metric_name(metric: RollbackMetric) -> str:
    """Returns a metric's name and selector, such as `External p99{service=web}` or `errors of Ingress web`."""
    if metric.object is not None:
        described = metric.object.described_object
        words = f"{_selected(metric.object.metric)} of {described.kind} {described.name}"
    else:
        words = "" if metric.external is None else f"External {_selected(metric.external.metric)}"
    return one_line(words, LONGEST_NAME)


def _selected(metric: MetricIdentifier) -> str:
    labels = "" if metric.selector is None else spec_selector_text(metric.selector)
    return f"{metric.name}{{{labels}}}" if labels else metric.name


def with_values(
    spec: HvpaSpec, known: Sequence[CanaryMetric], values: Sequence[MetricValue] | None
) -> tuple[CanaryMetric, ...]:
    """Returns the record of each metric that judges trials, in the spec's order, with the values that were read last
    (None: none yet). A metric with another selector or threshold is another metric."""
    records = {(record.metric, record.above): record for record in known}
    merged = []
    for index, metric in enumerate(rollback_metrics(spec)):
        name = metric_name(metric)
        record = records.get((name, metric.above)) or CanaryMetric(metric=name, above=metric.above)
        read = values[index] if values is not None and index < len(values) else None
        merged.append(record if read is None else _with_value(metric, record, read))
    return tuple(merged)


def _with_value(metric: RollbackMetric, record: CanaryMetric, read: MetricValue) -> CanaryMetric:
    if read.time is None:
        return record.model_copy(update={"message": read.problem or "no value"})
    is_bad = metric.is_exceeded(read.value)
    update = {
        "value": read.value,
        "time": read.time,
        "was_good": record.was_good or not is_bad,
        "bad_since": (record.bad_since or read.time) if is_bad else None,
        "message": "",
    }
    return record.model_copy(update=update)


def records_to_keep(
    known: tuple[CanaryMetric, ...], records: tuple[CanaryMetric, ...], *, is_trial: bool
) -> tuple[CanaryMetric, ...]:
    """Returns the records for the status. Without a trial these are only the metrics without a value."""
    if not is_trial:
        records = tuple(
            [
                CanaryMetric(metric=record.metric, above=record.above, message=record.message)
                for record in records
                if record.message
            ]
        )
    is_same = len(known) == len(records) and all(map(_says_the_same, known, records))
    return known if is_same else records


def _says_the_same(known: CanaryMetric, record: CanaryMetric) -> bool:
    update = {"value": known.value, "time": known.time}
    if record.model_copy(update=update) != known:
        return False
    if record.time is None or known.time is None:
        return record.time == known.time
    return abs(record.time - known.time) < REFRESHED


def trial_end(
    context: GateContext, observation: ScalableState, since: dt.datetime
) -> tuple[dt.datetime, tuple[CanaryMetric, ...]]:
    """Returns when a trial ends whose pods have the new size since `since`, and the metrics that have no value of the
    trial then. A trial whose metrics have no value lasts twice as long."""
    canary = context.spec.strategy.canary
    assert canary is not None, "a trial has a canary"
    until = after(since, canary.duration)
    if not context.clock.is_past(until):
        return until, ()
    lacking = [
        record
        for record in observation.canary_metrics
        if record.message or record.time is None or record.time <= since
    ]
    return (after(until, canary.duration) if lacking else until), tuple(lacking)


def judged(
    context: GateContext,
    observation: ScalableState,
    since: dt.datetime,
    sizes: tuple[Mapping[str, ResourceRequirements], Mapping[str, ResourceRequirements]],
) -> Verdict:
    """Judges a trial whose pods have the new size since `since`. `sizes` are the size before and the new size.

    A metric fails it if it has passed its threshold since then. If a metric has no value by the end, a size that lowers
    a request is rolled back, because nothing shows that the service bears it; raises stay. A metric that has only not
    been read again yet, after a restart or a jump of the clock, delays the end.
    """
    for record in observation.canary_metrics:
        if record.was_good and record.bad_since is not None and record.bad_since > since:
            return Verdict(f"{record.metric} is {record.value}, above {record.above}")
    until, lacking = trial_end(context, observation, since)
    is_awaited = bool(observation.canary_metrics) and not observation.canary_is_read
    if not context.clock.is_past(until) or is_awaited or any(not record.message for record in lacking):
        return Verdict(until=until)
    if lacking and _lowers(*sizes):
        why = "; ".join([f"{record.metric}: {record.message}" for record in lacking])
        return Verdict(f"no value by the end of the trial: {why}")
    return Verdict(is_over=True, until=until)


def _lowers(before: Mapping[str, ResourceRequirements], then: Mapping[str, ResourceRequirements]) -> bool:
    """Returns whether the new size lowers a request."""
    return any(
        request < before[name].requests.get(resource, 0)
        for name, size in then.items()
        if name in before
        for resource, request in size.requests.items()
    )
