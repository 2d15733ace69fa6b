"""Values of metrics that are neither CPU nor memory, from the APIs that adapters serve: external.metrics.k8s.io and
custom.metrics.k8s.io. The HPA controller reads the same (pkg/controller/podautoscaler/metrics/client.go)."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from fractions import Fraction
from typing import Final

import msgspec

from hvpa.api.hvpa.actuation import RollbackExternal, RollbackMetric, RollbackObject
from hvpa.api.hvpa.selector import LabelSelector
from hvpa.api.objects.read_models import Selector, SelectorRequirement
from hvpa.api.values.quantity import QuantityError, parse_quantity
from hvpa.api.values.text import one_line
from hvpa.core.model import MetricValue
from hvpa.core.workload.selector import selector_text
from hvpa.kube.client.discovery import served
from hvpa.kube.client.errors import ApiError, Unreachable, decoded
from hvpa.kube.client.paths import PathError, api_path, escaped_path
from hvpa.kube.client.transport import Transport
from hvpa.kube.objects.usage import METRICS_TIMEOUT

MOST_WORDS: Final = 200
"""Characters of a problem in the status."""


class _Value(msgspec.Struct):
    value: str | int = ""
    timestamp: dt.datetime | None = None


class _Values(msgspec.Struct):
    items: list[_Value] = []


_decode = msgspec.json.Decoder(_Values).decode


async def read_metric(transport: Transport, namespace: str, metric: RollbackMetric) -> MetricValue:
    """Returns the largest present value of a metric. Never raises: a metric without a value has a problem instead."""
    try:
        if metric.external is not None:
            values = await _external(transport, namespace, metric.external)
        else:
            assert metric.object is not None, "a metric is external or of an object"
            values = await _of_object(transport, namespace, metric.object)
    except (ApiError, Unreachable, PathError) as error:
        return MetricValue(problem=one_line(str(error), MOST_WORDS))
    newest: tuple[Fraction, MetricValue] | None = None
    for item in values.items:
        with suppress(QuantityError):
            amount = parse_quantity(item.value)
            if newest is None or amount > newest[0]:
                newest = amount, MetricValue(str(item.value), _aware(item.timestamp))
    return MetricValue(problem="the metrics API returns no value") if newest is None else newest[1]


def _aware(time: dt.datetime | None) -> dt.datetime | None:
    return time.replace(tzinfo=dt.UTC) if time is not None and time.tzinfo is None else time


def _text(selector: LabelSelector) -> str:
    conditions = [
        SelectorRequirement(key=entry.key, operator=entry.operator, values=frozenset(entry.values))
        for entry in selector.match_expressions
    ]
    return selector_text(Selector(match_labels=selector.match_labels, match_expressions=conditions))


async def _external(transport: Transport, namespace: str, source: RollbackExternal) -> _Values:
    metric = source.metric
    path = escaped_path("apis", "external.metrics.k8s.io", "v1beta1", "namespaces", namespace, metric.name)
    query = {"labelSelector": _text(metric.selector)} if metric.selector else {}
    response = await transport.request("GET", path, query, None, METRICS_TIMEOUT, "list")
    return decoded(_decode, response, "the metric's values")


async def _of_object(transport: Transport, namespace: str, source: RollbackObject) -> _Values:
    metric, described = source.metric, source.described_object
    query = {"metricLabelSelector": _text(metric.selector)} if metric.selector else {}
    version = described.api_version or "v1"
    kinds = await served(transport, api_path(version))
    plural = next((item.name for item in kinds if item.kind == described.kind and "/" not in item.name), None)
    if plural is None:
        raise Unreachable(f"the API server serves no {described.kind} in {version}")
    group = version.rpartition("/")[0]
    resource = f"{plural}.{group}" if group else plural

    async def read(custom: str) -> bytes:
        path = escaped_path(
            *("apis", "custom.metrics.k8s.io", custom),
            *("namespaces", namespace, resource, described.name, metric.name),
        )
        return await transport.request("GET", path, query, None, METRICS_TIMEOUT, "get")

    try:
        response = await read("v1beta2")
    except ApiError as error:
        if error.status != 404:
            raise
        response = await read("v1beta1")  # older adapters
    return decoded(_decode, response, "the metric's values")
