"""metrics-server in a simulation: the pods' usage as the HPA controller and the VPA recommender see it, and when.

Every `resolution` seconds it notes the CPU time and the memory of each container, and publishes the mean CPU usage
since the last note `delay` seconds later. As in metrics-server (`podStorage.Store`), it does not note a container that
does not run. A container has no CPU usage before the second note since its start, or before the first note if it
started at least 10 seconds and less than the resolution earlier. A pod is omitted while a running container has no
usage.
"""

from __future__ import annotations

import datetime as dt
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from hvpa.api.objects.read_models import MetricName, ObjectReference
from hvpa_lab.recommend.hpa.controller import MetricsError, PodReading
from hvpa_lab.simulate.cluster.objects import instant_at
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.cluster.state import SimContainer
from hvpa_lab.simulate.model import MetricsModel

FRESH = 10.0
"""Minimum seconds since a container's start for a first CPU usage (`freshContainerMinMetricsResolution`)."""


class Every:
    """A period that is first due `offset` seconds after the start."""

    __slots__ = ("_due", "_period")

    def __init__(self, period: float, offset: float = 0.0) -> None:
        self._period = period
        self._due = offset

    def due(self, now: float) -> bool:
        """Whether the period is due again; missed periods are skipped."""
        if now < self._due:
            return False
        self._due += ((now - self._due) // self._period + 1) * self._period
        return True


class ContainerUsage(msgspec.Struct, frozen=True, gc=False):
    """A container's published usage: CPU in millicores, memory in bytes."""

    pod: str
    container: str
    cpu: float
    memory: float


class Published(NamedTuple):
    """The last publication."""

    at: float
    """Time of publication, in seconds."""
    measured_at: float
    """Time of measurement, in seconds."""
    usage: tuple[ContainerUsage, ...]
    """Usage of all containers of all pods."""


class _Track:
    """A running container: the time of its last note, and its CPU time then (None: not noted since its last start)."""

    __slots__ = ("at", "container", "pod", "started", "total")

    def __init__(self, pod: str, container: SimContainer, started: float) -> None:
        self.pod = pod
        self.container = container
        self.started = started
        self.at: float | None = None
        self.total = 0.0

    def note(self, now: float, resolution: float) -> float | None:
        """Returns the mean CPU usage since the last note, or since a recent start; None without either."""
        before, at, total = self.total, self.at, self.container.cpu_total
        self.at, self.total = now, total
        if at is not None:
            return (total - before) / (now - at)
        age = now - self.started
        return (total - self.container.cpu_at_start) / age if FRESH <= age < resolution else None


class MetricsServer:
    """Notes usage when it is due and serves published usage; `hvpa_lab.recommend.hpa.controller.MetricsClient` of a
    simulation."""

    def __init__(self, model: MetricsModel, state: SimWorkload, start: dt.datetime) -> None:
        self._model = model
        self._state = state
        self._start = start
        self._window = dt.timedelta(seconds=model.resolution)
        self._period = Every(model.resolution, model.offset)
        self._tracks: dict[tuple[int, str], _Track] = {}
        self._seen_changes = -1
        self._coming: deque[Published] = deque()
        self.published: Published | None = None
        self.load = self.waiting = 0.0
        """Current load, and waiting work (load × seconds), for custom and external metrics."""

    def advance(self, now: float) -> None:
        """Notes and publishes usage that is due."""
        if self._period.due(now):
            self._note(now)
        while self._coming and self._coming[0].at <= now:
            self.published = self._coming.popleft()

    def _note(self, now: float) -> None:
        if self._seen_changes != self._state.changes:
            self._seen_changes = self._state.changes
            self._tracks = self._running()
        resolution, usage = self._model.resolution, list[ContainerUsage]()
        incomplete: set[str] = set()
        for track in self._tracks.values():
            container = track.container
            rate = track.note(now, resolution)
            if rate is None:
                incomplete.add(track.pod)
            else:
                usage.append(ContainerUsage(track.pod, container.name, rate, container.memory))
        if incomplete:
            usage = [container_usage for container_usage in usage if container_usage.pod not in incomplete]
        self._coming.append(Published(now + self._model.delay, now, tuple(usage)))

    def _running(self) -> dict[tuple[int, str], _Track]:
        """Returns all running containers, with the earlier notes of containers that have not restarted since."""
        tracks: dict[tuple[int, str], _Track] = {}
        for pod in self._state.pods:
            for container in pod.containers:
                if not container.running or container.started is None:
                    continue
                key = (pod.serial, container.name)
                known = self._tracks.get(key)
                if known is None or known.started != container.started:
                    known = _Track(pod.name, container, container.started)
                tracks[key] = known
        return tracks

    # --- hvpa_lab.recommend.hpa.controller.MetricsClient ----------------------------------------------------------
    def resource(self, resource: str, container: str) -> Mapping[str, PodReading]:
        """Returns the usage of a resource by pod, of a single container or of all containers together."""
        published = self.published
        sums: dict[str, float] = {}
        for container_usage in () if published is None else published.usage:
            if not container or container_usage.container == container:
                amount = container_usage.cpu if resource == "cpu" else container_usage.memory * 1000
                sums[container_usage.pod] = sums.get(container_usage.pod, 0.0) + amount
        if published is None or not sums:
            raise MetricsError("no metrics returned from resource metrics API")
        at = instant_at(self._start, published.measured_at)
        return {pod: PodReading(round(amount), at, self._window) for pod, amount in sums.items()}

    def pods(self, metric: MetricName) -> Mapping[str, PodReading]:
        """Returns the load of each ready pod."""
        if metric.name != self._model.load:
            raise self._unknown(metric)
        ready = [pod for pod in self._state.pods if pod.ready]
        if not ready or self.published is None:
            raise MetricsError("no metrics returned from custom metrics API")
        at = instant_at(self._start, self.published.at)
        load_per_part = self.load * 1000 / sum(pod.part for pod in ready)
        return {pod.name: PodReading(round(load_per_part * pod.part), at, self._window) for pod in ready}

    def object(self, metric: MetricName, described: ObjectReference) -> int:
        """Returns the metric of this name, regardless of the object."""
        return round(self._value(metric) * 1000)

    def external(self, metric: MetricName) -> Sequence[int]:
        """Returns the metric of this name."""
        return [round(self._value(metric) * 1000)]

    def _value(self, metric: MetricName) -> float:
        if metric.name == self._model.load:
            return self.load
        if metric.name == self._model.queue:
            return self.load + self.waiting
        if metric.name == self._model.share:
            return self.load / max(1, self._state.ready_replicas)
        raise self._unknown(metric)

    def _unknown(self, metric: MetricName) -> MetricsError:
        return MetricsError(f"a simulation has no metric {metric.name}, only {self._model.load}")
