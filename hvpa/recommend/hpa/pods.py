"""The target's pods: what their readings are worth, and what they request. Source: `groupPods` and `calculateRequests`
in replica_calculator.go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import Container, Pod, PodSpec, ResourceList, condition
from hvpa.recommend.golang import milli_value
from hvpa.recommend.hpa.inputs import MetricsError, PodReading

NO_PODS: Final = "no pods returned by selector while calculating replica count"
_NO_READINGS: Final = "did not receive metrics for targeted pods (pods might be unready)"
_NEVER: Final = dt.datetime.min.replace(tzinfo=dt.UTC)
"""Go's zero time: a transition that has no time."""


class Groups(NamedTuple):
    """Names of the pods by what their readings are worth; ignored pods (deleted, failed) are in none of the lists.
    `left` and `total` are number and sum of the readings without those of unready and ignored pods, but with those of
    pods that the selector does not know, as in Go."""

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


# --- what pods request: the base of a utilization ---
def requests_of(pods: Sequence[Pod], container: str, resource: str) -> dict[str, int]:
    """Requests in milli-units by pod name: of one container or, where that is "", of all. Raises `MetricsError` for the
    first pod that lacks the container or one of the requests, `QuantityError` for a request that is no quantity."""
    return {pod.metadata.name: request_of(pod, container, resource) for pod in pods}


def request_of(pod: Pod, container: str, resource: str) -> int:
    """One pod's request. Where the pod as a whole has requests, they count, unless one container is asked for. Raises
    as `requests_of`."""
    whole = pod.spec.resources
    if whole is not None and whole.requests and not container:
        return _pod_level(pod, whole.requests, resource)
    request = 0
    for candidate in (*pod.spec.containers, *sidecars(pod.spec)):
        if container and candidate.name != container:
            continue
        quantity = candidate.resources.requests.get(resource)
        if quantity is None:
            what = f"{resource} in container {candidate.name} of Pod {pod.metadata.name}"
            raise MetricsError(f"missing request for {what}")
        request += milli_value(quantity)
        if container:
            return request
    if container:
        raise MetricsError(f"container {container} not found in Pod {pod.metadata.name}")
    return request


def sidecars(spec: PodSpec) -> list[Container]:
    """The init containers that go on running beside the containers (native sidecars)."""
    return [one for one in spec.init_containers if one.restart_policy == "Always"]


def _pod_level(pod: Pod, whole: ResourceList, resource: str) -> int:
    """The pod's own request; a resource that it leaves out is added up from the containers, at least what the greediest
    init container needs beside the sidecars before it (`PodRequests` in k8s.io/component-helpers/resource)."""
    if resource in whole:
        return milli_value(whole[resource])
    every = (*pod.spec.containers, *pod.spec.init_containers)
    if not any(resource in one.resources.requests for one in every):
        raise MetricsError(f"missing pod-level request for {resource} in Pod {pod.metadata.name}")
    beside = largest = 0
    for one in pod.spec.init_containers:
        request = milli_value(one.resources.requests.get(resource, 0))
        if one.restart_policy == "Always":
            beside += request
        largest = max(largest, beside if one.restart_policy == "Always" else beside + request)
    running = sum(milli_value(one.resources.requests.get(resource, 0)) for one in pod.spec.containers)
    return max(running + beside, largest)
