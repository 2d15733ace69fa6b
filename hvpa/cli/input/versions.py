"""Converts older API versions, as found in dumps and repositories, to the versions that HVPA reads.

These are HPAs of autoscaling/v1, v2beta1 and v2beta2, and VPAs of autoscaling.k8s.io/v1beta2. Plain values are
converted to plain values, as by the API server (`pkg/apis/autoscaling/v1` and `v2beta1`, conversion.go, of
Kubernetes). Malformed values stay unchanged: the read-model refuses them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from hvpa.api.values.documents import Plain
from hvpa.cli.input.files import value_at

_Converted = dict[str, Plain]
_ANNOTATIONS: Final = "autoscaling.alpha.kubernetes.io/"
"""Prefix of the annotations for values without a field in autoscaling/v1: `metrics`, `current-metrics`, `conditions`
and `behavior`."""


def hpa_of_v1(content: _Converted) -> _Converted:
    """An HPA of autoscaling/v1 in autoscaling/v2: its only target is CPU utilization, the rest is in annotations."""
    spec, status = dict(_mapping(content, "spec")), dict(_mapping(content, "status"))
    target = spec.pop("targetCPUUtilizationPercentage", None)
    current = status.pop("currentCPUUtilizationPercentage", None)
    metrics = [_metric(metric) for metric in _annotated(content, "metrics", list)]
    if target is not None:
        metrics.append(_utilization("target", target) | {"type": "Resource"})
    if metrics:
        spec["metrics"] = metrics
    if behavior := _annotated(content, "behavior", dict):
        spec["behavior"] = behavior
    measured = [_current(metric) for metric in _annotated(content, "current-metrics", list)]
    if current is not None and not any(value_at(metric, "resource", "name") == "cpu" for metric in measured):
        measured.append(_utilization("current", current) | {"type": "Resource"})
    if measured:
        status["currentMetrics"] = measured
    if conditions := _annotated(content, "conditions", list):
        status["conditions"] = conditions
    return {**content, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def hpa_of_v2beta1(content: _Converted) -> _Converted:
    """An HPA of autoscaling/v2beta1 in autoscaling/v2: targets and metrics have other names."""
    spec, status = dict(_mapping(content, "spec")), dict(_mapping(content, "status"))
    if isinstance(metrics := spec.get("metrics"), list):
        spec["metrics"] = [_metric(metric) for metric in metrics]
    if isinstance(measured := status.get("currentMetrics"), list):
        status["currentMetrics"] = [_current(metric) for metric in measured]
    return {**content, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def _renamed(version: str) -> Callable[[_Converted], _Converted]:
    """A converter for a version with the same fields."""
    return lambda content: {**content, "apiVersion": version}


OLDER: Final[Mapping[tuple[str, str], Callable[[_Converted], _Converted]]] = {
    ("HorizontalPodAutoscaler", "autoscaling/v1"): hpa_of_v1,
    ("HorizontalPodAutoscaler", "autoscaling/v2beta1"): hpa_of_v2beta1,
    ("HorizontalPodAutoscaler", "autoscaling/v2beta2"): _renamed("autoscaling/v2"),
    ("VerticalPodAutoscaler", "autoscaling.k8s.io/v1beta2"): _renamed("autoscaling.k8s.io/v1"),
}
"""Converters by kind and version."""


# --- metrics ----------------------------------------------------------------------------------------------------------
_FIELDS: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
"""The field of a metric's details, by the metric's type."""
_TARGETS: Final = {
    "targetAverageUtilization": ("Utilization", "averageUtilization"),
    "targetAverageValue": ("AverageValue", "averageValue"),
    "averageValue": ("AverageValue", "averageValue"),
    "targetValue": ("Value", "value"),
}
"""Targets of v2beta1, in order of precedence: an Object metric may have an average value as well as a value."""
_VALUES: Final = {
    "currentAverageUtilization": "averageUtilization",
    "currentAverageValue": "averageValue",
    "averageValue": "averageValue",
    "currentValue": "value",
}
"""Measured values of v2beta1."""


def _metric(metric: Plain) -> Plain:
    """A metric's target in v2 form."""
    field, old = _details(metric)
    if old is None:
        return metric
    given = [(*names, old[name]) for name, names in _TARGETS.items() if name in old]
    target = {"type": given[0][0], given[0][1]: given[0][2]} if given else {}
    return {**metric, field: {**_identity(field, old), "target": target}}


def _current(metric: Plain) -> Plain:
    """A measured metric in v2 form."""
    field, old = _details(metric)
    if old is None:
        return metric
    current = {names: old[name] for name, names in _VALUES.items() if name in old}
    return {**metric, field: {**_identity(field, old), "current": current}}


def _details(metric: Plain) -> tuple[str, dict[str, Plain] | None]:
    """The field of a metric's details, and the details; None for a metric without details."""
    field = _FIELDS.get(str(value_at(metric, "type")), "")
    old = value_at(metric, field)
    return field, old if isinstance(old, dict) else None


def _identity(field: str, old: Mapping[str, Plain]) -> dict[str, Plain]:
    """The measured object in v2 form: a resource by its name, any other metric by name and selector."""
    if field in ("resource", "containerResource"):
        return {name: old[name] for name in ("name", "container") if name in old}
    selector = old.get("metricSelector" if field == "external" else "selector")
    metric = {"name": old.get("metricName")} | ({} if selector is None else {"selector": selector})
    return {"metric": metric} | ({"describedObject": old.get("target")} if field == "object" else {})


def _utilization(field: str, percent: Plain) -> dict[str, Plain]:
    kind = {"type": "Utilization"} if field == "target" else {}
    return {"resource": {"name": "cpu", field: {**kind, "averageUtilization": percent}}}


def _annotated(content: _Converted, name: str, kind: type) -> Any:
    """The JSON value of an autoscaling/v1 annotation; empty if missing or of another type."""
    text = value_at(content, "metadata", "annotations", f"{_ANNOTATIONS}{name}")
    try:
        annotation = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        annotation = None
    return annotation if isinstance(annotation, kind) else kind()


def _mapping(content: _Converted, name: str) -> Mapping[str, Plain]:
    mapping = content.get(name)
    return mapping if isinstance(mapping, dict) else {}
