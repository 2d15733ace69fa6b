"""The target's pods, by what their readings are worth. Source: `groupPods` in replica_calculator.go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.meta import condition
from hvpa.api.objects.workloads import Pod
from hvpa.recommend.hpa.inputs import MetricsError, PodReading
from hvpa.recommend.hpa.requests import requests_of

NO_PODS: Final = "no pods returned by selector while calculating replica count"
_NO_READINGS: Final = "did not receive metrics for targeted pods (pods might be unready)"
_NEVER: Final = dt.datetime.min.replace(tzinfo=dt.UTC)
"""Go's zero time: a transition that has no time."""


class Groups(NamedTuple):
    """Names of the pods by what their readings are worth; ignored pods (deleted, failed) are in none of the lists.

    `left` and `total` are number and sum of the readings without those of unready and ignored pods. Readings of pods
    that the selector does not know are among them, as in Go.
    """

    ready: list[str]
    unready: list[str]
    missing: list[str]
    left: int
    total: int


class Roster:
    """The pods that a target's selector selects. `starting_since` and `readiness_delay` are those of the present sync:
    a pod that started after the one is within the initialization period, the other is how late it may be ready.

    Most pods have long been settled: they count as ready whenever they are measured, and will for as long as they are
    the same. The others are looked at in each sync.
    """

    def __init__(
        self, pods: Sequence[Pod], starting_since: dt.datetime, readiness_delay: dt.timedelta
    ) -> None:
        self.pods = pods
        self._since = starting_since
        self._delay = readiness_delay
        self._settled: list[str] = []
        self._others: Sequence[Pod] = pods
        self._requests: dict[tuple[str, str], Mapping[str, int]] = {}
        self._sort()

    def advance(self, starting_since: dt.datetime) -> None:
        """Another sync of the same pods."""
        if starting_since < self._since:
            self._settled, self._others = [], self.pods
        self._since = starting_since
        if self._others:
            self._sort()

    def _sort(self) -> None:
        others: list[Pod] = []
        for pod in self._others:
            if self._is_settled(pod):
                self._settled.append(pod.metadata.name)
            else:
                others.append(pod)
        self._others = others

    def _is_settled(self, pod: Pod) -> bool:
        if pod.status.phase in ("Failed", "Pending") or pod.metadata.deletion_timestamp is not None:
            return False
        started = pod.status.start_time
        return started is not None and started <= self._since and not self._was_never_ready(pod, started)

    def requests(self, container: str, resource: str) -> Mapping[str, int]:
        """What `requests_of` says of these pods, and raises."""
        found = self._requests.get((container, resource))
        if found is None:
            found = self._requests[container, resource] = requests_of(self.pods, container, resource)
        return found

    def group(self, readings: Mapping[str, PodReading], resource: str) -> Groups:
        """`groupPods`, and what follows it: unready and ignored pods' readings don't count. Raises `MetricsError`."""
        if not self.pods:
            raise MetricsError(NO_PODS)
        ready = [name for name in self._settled if name in readings]
        missing: list[str] = []
        if len(ready) < len(self._settled):
            missing = [name for name in self._settled if name not in readings]
        unready: list[str] = []
        count = len(readings)
        total = sum([reading.value for reading in readings.values()])
        for pod in self._others:
            name = pod.metadata.name
            phase = pod.status.phase
            reading = readings.get(name)
            if phase == "Failed" or pod.metadata.deletion_timestamp is not None:
                pass
            elif phase == "Pending":
                unready.append(name)
            elif reading is None:
                missing.append(name)
            elif resource == "cpu" and self._is_unready(pod, reading):
                unready.append(name)
            else:
                ready.append(name)
                continue
            if reading is not None:
                count -= 1
                total -= reading.value
        if count == 0:
            raise MetricsError(_NO_READINGS)
        return Groups(ready, unready, missing, count, total)

    def _is_unready(self, pod: Pod, reading: PodReading) -> bool:
        """Whether a pod's CPU is not to be trusted yet: it starts, or has never been ready."""
        ready = condition(pod.status.conditions, "Ready")
        started = pod.status.start_time
        if ready is None or started is None:
            return True
        changed = ready.last_transition_time or _NEVER
        if started > self._since:
            return ready.status == "False" or reading.timestamp < changed + reading.window
        return self._was_never_ready(pod, started)

    def _was_never_ready(self, pod: Pod, started: dt.datetime) -> bool:
        ready = condition(pod.status.conditions, "Ready")
        if ready is None:
            return True
        return ready.status == "False" and started + self._delay > (ready.last_transition_time or _NEVER)


def is_ready(pod: Pod) -> bool:
    """Whether a pod runs and is ready."""
    ready = condition(pod.status.conditions, "Ready")
    return pod.status.phase == "Running" and ready is not None and ready.status == "True"
