"""Inputs of the HPA model: the controller's settings, the metrics, and the target's scale. No algorithm is here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hvpa.api.objects.read_models import MetricName, ObjectReference


@dataclass(frozen=True, slots=True)
class HpaSettings:
    """Flags of kube-controller-manager (`--horizontal-pod-autoscaler-…`) with their defaults. Times are in seconds; the
    tolerance is a fraction."""

    sync_period: float = 15.0
    """Interval at which the caller of the model calls `sync`."""
    tolerance: float = 0.1
    downscale_stabilization: float = 300.0
    """Applies to HPAs whose behaviour does not set a window."""
    cpu_initialization_period: float = 300.0
    initial_readiness_delay: float = 30.0


class PodReading(NamedTuple):
    """A metric of a pod in milli-units (millicores for CPU, bytes × 1000 for memory): the mean over the `window` that
    ends at `timestamp`."""

    value: int
    timestamp: dt.datetime
    window: dt.timedelta


class MetricsError(Exception):
    """A metric is not available. The text goes into conditions and events."""


class MetricsClient(Protocol):
    """Responses of the metrics API servers to the HPA controller (`podautoscaler/metrics.MetricsClient`), in
    milli-units. Every method raises `MetricsError` when the real client returns an error."""

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        """Returns usage by pod name, of a container or, if `container` is "", of the whole pod. Pods without a
        measurement are left out. If no pod is measured, the real client's error is `no metrics returned from resource
        metrics API`. An empty mapping means pods without this resource."""
        ...

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        """Returns a custom metric of the pods, by pod name."""
        ...

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        """Returns a custom metric of an object."""
        ...

    def external(self, metric: MetricName) -> Sequence[int]:
        """Returns all values of an external metric."""
        ...


class Scale(NamedTuple):
    """The target's scale subresource: `spec.replicas`, `status.replicas`, and its selector in the text form of `kubectl
    --selector` ("" if there is none)."""

    replicas: int
    current: int
    selector: str
