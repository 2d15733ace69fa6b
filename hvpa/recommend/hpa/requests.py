"""What pods request: the base of a utilization. Source: `calculateRequests` in replica_calculator.go."""

from __future__ import annotations

from collections.abc import Sequence

from hvpa.api.objects.read_models import Container, Pod, PodSpec, ResourceList
from hvpa.recommend.golang.quantities import milli_value
from hvpa.recommend.hpa.inputs import MetricsError


def requests_of(pods: Sequence[Pod], container: str, resource: str) -> dict[str, int]:
    """Requests in milli-units by pod name: of one container or, where that is "", of all.

    Raises `MetricsError` for the first pod that lacks the container or one of the requests, `QuantityError` for a
    request that is no quantity.
    """
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
