"""Values of metrics that are neither CPU nor memory, from the APIs that adapters serve: external.metrics.k8s.io and
custom.metrics.k8s.io. The HPA controller reads the same (pkg/controller/podautoscaler/metrics/client.go)."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from operator import itemgetter
from typing import Final

import msgspec

from hvpa.api.hvpa.actuation import RollbackExternal, RollbackMetric, RollbackObject
from hvpa.api.values.quantity import QuantityError, parse_quantity
from hvpa.api.values.text import one_line
from hvpa.core.model import MetricValue
from hvpa.core.workload.selector import spec_selector_text
from hvpa.kube.client.discovery import served
from hvpa.kube.client.errors import ApiError, Unreachable, decoded
from hvpa.kube.client.paths import PathError, api_path, escaped_path
from hvpa.kube.client.transport import Transport

MOST_WORDS: Final = 200
"""Characters of a problem in the status."""
MOST_BYTES: Final = 2**16
"""Bytes of an answer: some hundred series. A larger answer would delay the decisions of all Hvpas."""
FRESH: Final = dt.timedelta(minutes=2)
"""How old a value may be. Adapters measure once or twice a minute."""
TIMEOUT: Final = 30.0
"""Seconds. The caller ends a reading sooner: a request that times out ends a connection that all requests share."""
Plurals = dict[tuple[str, str], str]
"""Resources by API version and kind."""


class _Value(msgspec.Struct):
    value: str | int | float = ""
    timestamp: dt.datetime | None = None


class _Values(msgspec.Struct):
    items: list[_Value] = []


_decode = msgspec.json.Decoder(_Values).decode


async def read_metric(
    transport: Transport, namespace: str, metric: RollbackMetric, now: dt.datetime, plurals: Plurals
) -> MetricValue:
    """Returns the largest of a metric's fresh values. Never raises: a metric without a value has a problem instead.

    `plurals` remembers the resources of kinds. A value without a time, or of a clock that is ahead, is of `now`.
    """
    try:
        if metric.external is not None:
            values = await _external(transport, namespace, metric.external)
        else:
            assert metric.object is not None, "a metric is external or of an object"
            values = await _of_object(transport, namespace, metric.object, plurals)
        return _largest(values, now)
    except (ApiError, Unreachable, PathError, QuantityError) as error:
        return MetricValue(problem=one_line(str(error), MOST_WORDS))


def _largest(values: _Values, now: dt.datetime) -> MetricValue:
    """Returns the largest fresh value. Raises QuantityError if a value is no quantity."""
    found: list[tuple[Fraction, MetricValue]] = []
    newest: dt.datetime | None = None
    for item in values.items:
        text, time = str(item.value), min(_aware(item.timestamp) or now, now)
        amount = parse_quantity(text)
        newest = time if newest is None else max(newest, time)
        if now - time <= FRESH:
            found.append((amount, MetricValue(text, time)))
    if newest is None:
        return MetricValue(problem="the metrics API returns no value")
    if not found:
        return MetricValue(problem=f"the newest value is of {newest:%Y-%m-%dT%H:%M:%SZ}")
    return max(found, key=itemgetter(0))[1]


def _aware(time: dt.datetime | None) -> dt.datetime | None:
    return time.replace(tzinfo=dt.UTC) if time is not None and time.tzinfo is None else time


async def _external(transport: Transport, namespace: str, source: RollbackExternal) -> _Values:
    metric = source.metric
    path = escaped_path("apis", "external.metrics.k8s.io", "v1beta1", "namespaces", namespace, metric.name)
    query = {"labelSelector": spec_selector_text(metric.selector)} if metric.selector else {}
    return decoded(_decode, await transport.page(path, query, TIMEOUT, MOST_BYTES), "the metric's values")


async def _of_object(
    transport: Transport, namespace: str, source: RollbackObject, plurals: Plurals
) -> _Values:
    metric, described = source.metric, source.described_object
    query = {"metricLabelSelector": spec_selector_text(metric.selector)} if metric.selector else {}
    version = described.api_version or "v1"
    plural = plurals.get((version, described.kind))
    if plural is None:
        kinds = await served(transport, api_path(version))
        names = [item.name for item in kinds if item.kind == described.kind and "/" not in item.name]
        if not names:
            raise Unreachable(f"the API server serves no {described.kind} in {version}")
        plural = plurals[version, described.kind] = names[0]
    group = version.rpartition("/")[0]
    resource = f"{plural}.{group}" if group else plural

    async def read(custom: str) -> bytes:
        path = escaped_path(
            *("apis", "custom.metrics.k8s.io", custom),
            *("namespaces", namespace, resource, described.name, metric.name),
        )
        return await transport.page(path, query, TIMEOUT, MOST_BYTES)

    try:
        response = await read("v1beta2")
    except ApiError as error:
        if error.status != 404:
            raise
        response = await read("v1beta1")  # older adapters
    return decoded(_decode, response, "the metric's values")
