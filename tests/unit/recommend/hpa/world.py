"""Builders for the tests of the HPA model: specs and pods as the cluster sends them, metrics that are given by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hvpa.api.objects.read_models import (
    Condition,
    Hpa,
    HpaStatusRead,
    MetricName,
    ObjectReference,
    Pod,
    condition,
)
from hvpa.recommend.hpa.controller import (
    HorizontalAutoscaler,
    HpaResult,
    HpaSettings,
    MetricsError,
    PodReading,
    Scale,
)
from hvpa.recommend.hpa.plan import Tolerance
from hvpa.recommend.hpa.pods import TargetPods
from hvpa.recommend.hpa.replicas import Situation

NOW = dt.datetime(2026, 11, 21, 10, 0, 0, tzinfo=dt.UTC)
WINDOW = dt.timedelta(seconds=30)
SELECTOR = "app=web"
CPU_UTILIZATION = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}


def before(**ago: float) -> dt.datetime:
    return NOW - dt.timedelta(**ago)


def make_hpa(spec: Mapping[str, Any] | None = None, status: HpaStatusRead | None = None) -> Hpa:
    body = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minReplicas": 1, "maxReplicas": 10, "metrics": [CPU_UTILIZATION], **(spec or {})},
    }
    made = msgspec.json.decode(msgspec.json.encode(body), type=Hpa)
    return made if status is None else msgspec.structs.replace(made, status=status)


def make_pod(
    name: str = "p0",
    state: str = "ready",
    request: str | None = "1",
    container: str = "app",
    memory: str = "1Gi",
) -> Pod:
    """A pod in a state: ready, starting (ready, but its reading is older), unready (never was ready), was-ready, blank
    (no conditions), pending, failed, succeeded, deleted."""
    started = before(hours=1)
    status: dict[str, Any] = {"phase": "Running", "startTime": started}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
    metadata: dict[str, Any] = {"name": name, "labels": {"app": "web"}}
    match state:
        case "starting":
            status["startTime"] = ready["lastTransitionTime"] = before(seconds=20)
        case "unready":
            ready["status"] = "False"
        case "was-ready":
            ready |= {"status": "False", "lastTransitionTime": before(minutes=30)}
        case "pending" | "failed" | "succeeded":
            status["phase"] = state.capitalize()
        case "deleted":
            metadata["deletionTimestamp"] = NOW
    status["conditions"] = [] if state == "blank" else [ready]
    requests = {"memory": memory} | ({} if request is None else {"cpu": request})
    body = {
        "metadata": metadata,
        "spec": {"containers": [{"name": container, "resources": {"requests": requests}}]},
        "status": status,
    }
    return msgspec.convert(body, type=Pod)


def make_pods(*states: str, request: str | None = "1") -> list[Pod]:
    return [make_pod(f"p{index}", state, request) for index, state in enumerate(states)]


def readings(values: Sequence[int | None], when: dt.datetime = NOW) -> dict[str, PodReading]:
    """Readings of p0, p1, …; None is a pod that isn't measured."""
    return {f"p{i}": PodReading(value, when, WINDOW) for i, value in enumerate(values) if value is not None}


class Given:
    """Metrics given by hand, in milli-units; what isn't given can't be had."""

    def __init__(
        self,
        cpu: Sequence[int | None] | None = None,
        *,
        resources: Mapping[tuple[str, str], Mapping[str, PodReading]] | None = None,
        custom: Sequence[int | None] | None = None,
        value: int | None = None,
        values: Sequence[int] | None = None,
    ) -> None:
        self._resources = dict(resources or {})
        if cpu is not None:
            self._resources["cpu", ""] = readings(cpu)
        self._custom = custom
        self._value = value
        self._values = values

    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        if (resource, container) not in self._resources:
            raise MetricsError("no metrics returned from resource metrics API")
        return self._resources[resource, container]

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        if self._custom is None:
            raise MetricsError("unable to fetch metrics from custom metrics API: down")
        return readings(self._custom)

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        if self._value is None:
            raise MetricsError("unable to fetch metrics from custom metrics API: down")
        return self._value

    def external(self, metric: MetricName) -> Sequence[int]:
        if self._values is None:
            raise MetricsError("unable to fetch metrics from external metrics API: down")
        return self._values


def situation(
    pods: Sequence[Pod],
    metrics: Given,
    current: int,
    *,
    down: float = 0.1,
    up: float = 0.1,
    status_replicas: int | None = None,
) -> Situation:
    """What the calculation of one metric sees; the replica count stands in both halves of the scale."""
    counted = current if status_replicas is None else status_replicas
    return Situation(
        namespace="shop",
        scale=Scale(current, counted, SELECTOR),
        target=TargetPods(pods, before(minutes=5), dt.timedelta(seconds=30)),
        metrics=metrics,
        tolerance=Tolerance(1.0 - down, 1.0 + up),
    )


class Loop:
    """An HPA whose outcome is applied at once: status kept, count set, the pods are there and ready."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        replicas: int,
        settings: HpaSettings = HpaSettings(),  # noqa: B008
        request: str = "1",
    ) -> None:
        self.hpa = make_hpa(spec)
        self.replicas = replicas
        self.now = NOW
        self.autoscaler = HorizontalAutoscaler(settings)
        self._request = request

    def sync(self, usage: int, wait: float = 15.0) -> HpaResult:
        """One sync with every pod using this many millicores; then time goes on."""
        pods = make_pods(*["ready"] * self.replicas, request=self._request)
        scale = Scale(self.replicas, self.replicas, SELECTOR)
        outcome = self.autoscaler.sync(self.hpa, scale, pods, Given([usage] * self.replicas), self.now)
        self.hpa = msgspec.structs.replace(self.hpa, status=outcome.status)
        if outcome.replicas is not None:
            self.replicas = outcome.replicas
        self.now += dt.timedelta(seconds=wait)
        return outcome

    def counts(self, usage: int, times: int, wait: float = 15.0) -> list[int]:
        """The counts after each of some syncs."""
        found = []
        for _ in range(times):
            self.sync(usage, wait)
            found.append(self.replicas)
        return found


def sync_once(
    spec: Mapping[str, Any] | None,
    metrics: Given,
    pods: Sequence[Pod],
    scale: Scale,
    status: HpaStatusRead | None = None,
) -> HpaResult:
    return HorizontalAutoscaler().sync(make_hpa(spec, status), scale, pods, metrics, NOW)


def told(outcome: HpaResult, kind: str) -> Condition:
    found = condition(outcome.status.conditions, kind)
    assert found is not None, f"no condition {kind}"
    return found
