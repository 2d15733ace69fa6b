"""What the HPA model is given: the controller's settings, the metrics, the target's scale. No algorithm here."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hvpa.api.objects.read_models import MetricName, ObjectReference


@dataclass(frozen=True, slots=True)
class HpaSettings:
    """Flags of kube-controller-manager (`--horizontal-pod-autoscaler-…`) with their defaults; times in seconds, the
    tolerance as a fraction. Who drives the model calls `sync` every `sync_period`. `downscale_stabilization` holds for
    HPAs whose behaviour does not set it."""

    sync_period: float = 15.0
    tolerance: float = 0.1
    downscale_stabilization: float = 300.0
    cpu_initialization_period: float = 300.0
    initial_readiness_delay: float = 30.0


class PodReading(NamedTuple):
    """A metric of one pod in milli-units (millicores for CPU, bytes × 1000 for memory): the mean over the `window` that
    ends at `timestamp`."""

    value: int
    timestamp: dt.datetime
    window: dt.timedelta


class MetricsError(Exception):
    """A metric could not be had; the text goes into conditions and events."""


class Metrics(Protocol):
    """What the metrics API servers report to the HPA controller (`podautoscaler/metrics.MetricsClient`), in
    milli-units. Every method raises `MetricsError` where the real client returns an error."""

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        """Usage by pod name, of one container or, where that is "", of the whole pod; pods that are not measured are
        left out. Where no pod at all is measured, the real client's error is `no metrics returned from resource metrics
        API`; an empty mapping means pods without this resource."""
        ...

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        """A custom metric of the pods, by pod name."""
        ...

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        """A custom metric of one object."""
        ...

    def external(self, metric: MetricName) -> Sequence[int]:
        """All values of an external metric."""
        ...


class Scale(NamedTuple):
    """The target's scale subresource: `spec.replicas`, `status.replicas`, and its selector in the text form that
    `kubectl --selector` takes ("" where there is none)."""

    replicas: int
    current: int
    selector: str
