"""The target's pods, by what their readings are worth. Source: `groupPods` in replica_calculator.go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Pod, condition
from hvpa.recommend.hpa.inputs import MetricsError, PodReading

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


class TargetPods(NamedTuple):
    """The pods that a target's selector selects. A pod that started after `starting_since` is within the initialization
    period; `readiness_delay` is how late after its start a pod may become ready."""

    pods: Sequence[Pod]
    starting_since: dt.datetime
    readiness_delay: dt.timedelta

    def group(self, readings: Mapping[str, PodReading], resource: str) -> Groups:
        """`groupPods`, and what follows it: unready and ignored pods' readings don't count. Raises `MetricsError`."""
        if not self.pods:
            raise MetricsError(NO_PODS)
        ready: list[str] = []
        unready: list[str] = []
        missing: list[str] = []
        count = len(readings)
        total = sum([reading.value for reading in readings.values()])
        for pod in self.pods:
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
        if started > self.starting_since:
            return ready.status == "False" or reading.timestamp < changed + reading.window
        return ready.status == "False" and started + self.readiness_delay > changed


def is_ready(pod: Pod) -> bool:
    """Whether a pod runs and is ready."""
    ready = condition(pod.status.conditions, "Ready")
    return pod.status.phase == "Running" and ready is not None and ready.status == "True"
