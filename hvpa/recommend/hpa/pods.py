"""The target's pods: whether their readings count, and their requests. Source: `groupPods` and `calculateRequests` in
replica_calculator.go."""

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
"""Go's zero time, for a transition without a time."""


class Groups(NamedTuple):
    """Names of the pods, grouped by the use of their readings. Ignored pods (deleted, failed) are in no list."""

    ready: list[str]
    unready: list[str]
    missing: list[str]
    left: int
    """Number of readings without those of unready and ignored pods. As in Go, it includes readings of pods that the
    selector does not select."""
    total: int
    """Sum of these readings."""


class TargetPods(NamedTuple):
    """The pods that a target's selector selects."""

    pods: Sequence[Pod]
    starting_since: dt.datetime
    """A pod that started later is in its initialization period."""
    readiness_delay: dt.timedelta
    """Time after its start within which a pod may become ready."""

    def group(self, readings: Mapping[str, PodReading], resource: str) -> Groups:
        """Groups the pods (`groupPods`) and leaves out the readings of unready and ignored pods. Raises
        `MetricsError`."""
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
        """Whether a pod's CPU usage does not count yet, because the pod is starting or has never been ready."""
        ready = condition(pod.status.conditions, "Ready")
        started = pod.status.start_time
        if ready is None or started is None:
            return True
        changed = ready.last_transition_time or _NEVER
        if started > self.starting_since:
            return ready.status == "False" or reading.timestamp < changed + reading.window
        return ready.status == "False" and started + self.readiness_delay > changed


def runs_and_is_ready(pod: Pod) -> bool:
    """Whether a pod runs and is ready."""
    ready = condition(pod.status.conditions, "Ready")
    return pod.status.phase == "Running" and ready is not None and ready.status == "True"


# --- what pods request: the base of a utilization ---
def requests_of(pods: Sequence[Pod], container: str, resource: str) -> dict[str, int]:
    """Returns requests in milli-units by pod name, of the container or, if `container` is "", of all containers. Raises
    `MetricsError` for the first pod without the container or without a request, `QuantityError` for an invalid
    quantity."""
    return {pod.metadata.name: request_of(pod, container, resource) for pod in pods}


def request_of(pod: Pod, container: str, resource: str) -> int:
    """Returns a pod's request. Pod-level requests take precedence, unless a container is given. Raises the same errors
    as `requests_of`."""
    whole = pod.spec.resources
    if whole is not None and whole.requests and not container:
        return _pod_level(pod, whole.requests, resource)
    request = 0
    for candidate in lasting(pod.spec):
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


def lasting(spec: PodSpec) -> Sequence[Container]:
    """Returns the containers that run until the pod ends: its containers and native sidecars."""
    return [*spec.containers, *sidecars(spec)] if spec.init_containers else spec.containers


def sidecars(spec: PodSpec) -> list[Container]:
    """Returns the init containers that continue to run next to the containers (native sidecars)."""
    return [container for container in spec.init_containers if container.restart_policy == "Always"]


def _pod_level(pod: Pod, whole: ResourceList, resource: str) -> int:
    """Returns the pod-level request. If it does not include the resource, returns the sum over the containers, or the
    need of the largest init container with the sidecars before it if that is more (`PodRequests` in
    k8s.io/component-helpers/resource)."""
    if resource in whole:
        return milli_value(whole[resource])
    every = (*pod.spec.containers, *pod.spec.init_containers)
    if not any(resource in container.resources.requests for container in every):
        raise MetricsError(f"missing pod-level request for {resource} in Pod {pod.metadata.name}")
    beside = largest = 0
    for container in pod.spec.init_containers:
        request = milli_value(container.resources.requests.get(resource, 0))
        if container.restart_policy == "Always":
            beside += request
        largest = max(largest, beside if container.restart_policy == "Always" else beside + request)
    running = sum(
        milli_value(container.resources.requests.get(resource, 0)) for container in pod.spec.containers
    )
    return max(running + beside, largest)
