"""Objects in the API versions that HVPA reads, made of the older versions that dumps and repositories hold: HPAs of
autoscaling/v1, v2beta1 and v2beta2, VPAs of autoscaling.k8s.io/v1beta2.

What belongs here: plain values to plain values, as the API server converts them (`pkg/apis/autoscaling/v1` and
`v2beta1`, conversion.go, of Kubernetes). What is malformed stays as it is: the read-model refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from hvpa.api.values.documents import Plain
from hvpa.cli.input.files import below

_Converted = dict[str, Plain]
_ANNOTATIONS: Final = "autoscaling.alpha.kubernetes.io/"
"""Prefix of the annotations in which autoscaling/v1 has what its fields don't: `metrics`, `current-metrics`,
`conditions` and `behavior`."""


def hpa_of_v1(content: _Converted) -> _Converted:
    """An HPA of autoscaling/v1 as autoscaling/v2 has it: its one target is CPU utilization, the rest is in
    annotations."""
    spec, status = dict(_mapping(content, "spec")), dict(_mapping(content, "status"))
    target = spec.pop("targetCPUUtilizationPercentage", None)
    current = status.pop("currentCPUUtilizationPercentage", None)
    metrics = [_metric(one) for one in _annotated(content, "metrics", list)]
    if target is not None:
        metrics.append(_utilization("target", target) | {"type": "Resource"})
    if metrics:
        spec["metrics"] = metrics
    if behavior := _annotated(content, "behavior", dict):
        spec["behavior"] = behavior
    measured = [_current(one) for one in _annotated(content, "current-metrics", list)]
    if current is not None and not any(below(one, "resource", "name") == "cpu" for one in measured):
        measured.append(_utilization("current", current) | {"type": "Resource"})
    if measured:
        status["currentMetrics"] = measured
    if conditions := _annotated(content, "conditions", list):
        status["conditions"] = conditions
    return {**content, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def hpa_of_v2beta1(content: _Converted) -> _Converted:
    """An HPA of autoscaling/v2beta1 as autoscaling/v2 has it: targets and metrics have other names."""
    spec, status = dict(_mapping(content, "spec")), dict(_mapping(content, "status"))
    if isinstance(metrics := spec.get("metrics"), list):
        spec["metrics"] = [_metric(one) for one in metrics]
    if isinstance(measured := status.get("currentMetrics"), list):
        status["currentMetrics"] = [_current(one) for one in measured]
    return {**content, "apiVersion": "autoscaling/v2", "spec": spec, "status": status}


def _renamed(version: str) -> Callable[[_Converted], _Converted]:
    """For a version whose fields are those of the version that is read."""
    return lambda content: {**content, "apiVersion": version}


OLDER: Final[Mapping[tuple[str, str], Callable[[_Converted], _Converted]]] = {
    ("HorizontalPodAutoscaler", "autoscaling/v1"): hpa_of_v1,
    ("HorizontalPodAutoscaler", "autoscaling/v2beta1"): hpa_of_v2beta1,
    ("HorizontalPodAutoscaler", "autoscaling/v2beta2"): _renamed("autoscaling/v2"),
    ("VerticalPodAutoscaler", "autoscaling.k8s.io/v1beta2"): _renamed("autoscaling.k8s.io/v1"),
}
"""By kind and version."""


# --- metrics ----------------------------------------------------------------------------------------------------------
_FIELDS: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
"""By a metric's type, the field that has its details."""
_TARGETS: Final = {
    "targetAverageUtilization": ("Utilization", "averageUtilization"),
    "targetAverageValue": ("AverageValue", "averageValue"),
    "averageValue": ("AverageValue", "averageValue"),
    "targetValue": ("Value", "value"),
}
"""Targets of v2beta1, those that count first before others: an Object metric has an average value beside a value."""
_VALUES: Final = {
    "currentAverageUtilization": "averageUtilization",
    "currentAverageValue": "averageValue",
    "averageValue": "averageValue",
    "currentValue": "value",
}
"""Measured values of v2beta1."""


def _metric(one: Plain) -> Plain:
    """A metric's target as v2 has it."""
    field, old = _details(one)
    if old is None:
        return one
    given = [(*names, old[name]) for name, names in _TARGETS.items() if name in old]
    target = {"type": given[0][0], given[0][1]: given[0][2]} if given else {}
    return {**one, field: {**_identity(field, old), "target": target}}


def _current(one: Plain) -> Plain:
    """A measured metric as v2 has it."""
    field, old = _details(one)
    if old is None:
        return one
    current = {names: old[name] for name, names in _VALUES.items() if name in old}
    return {**one, field: {**_identity(field, old), "current": current}}


def _details(one: Plain) -> tuple[str, dict[str, Plain] | None]:
    """The field of a metric's details, and these; None for a metric without."""
    field = _FIELDS.get(str(below(one, "type")), "")
    old = below(one, field)
    return field, old if isinstance(old, dict) else None


def _identity(field: str, old: Mapping[str, Plain]) -> dict[str, Plain]:
    """What is measured, as v2 has it: a resource by its name, any other metric by name and selector."""
    if field in ("resource", "containerResource"):
        return {name: old[name] for name in ("name", "container") if name in old}
    selector = old.get("metricSelector" if field == "external" else "selector")
    metric = {"name": old.get("metricName")} | ({} if selector is None else {"selector": selector})
    return {"metric": metric} | ({"describedObject": old.get("target")} if field == "object" else {})


def _utilization(field: str, percent: Plain) -> dict[str, Plain]:
    kind = {"type": "Utilization"} if field == "target" else {}
    return {"resource": {"name": "cpu", field: {**kind, "averageUtilization": percent}}}


def _annotated(content: _Converted, name: str, kind: type) -> Any:
    """What an annotation of autoscaling/v1 has as JSON; empty if it is absent or something else."""
    text = below(content, "metadata", "annotations", f"{_ANNOTATIONS}{name}")
    try:
        found = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, kind) else kind()


def _mapping(content: _Converted, name: str) -> Mapping[str, Plain]:
    found = content.get(name)
    return found if isinstance(found, dict) else {}
