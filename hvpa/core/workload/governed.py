"""The container resources that a usable VPA governs, with the pods' values, limited by the pod template's own resources
(`spec.template.spec.resources`).

The API server refuses a pod whose containers together request more than the pod (`validatePodResourceConsistency` in
pkg/apis/core/validation of Kubernetes 1.37), and a pod with a container whose limit is above the pod's limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from hvpa.api.objects.read_models import PodSpec
from hvpa.api.values.quantity import RESOURCES, Resource, readable_resource
from hvpa.core.model import ScalableState
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import ContainerResource, amount, container_resources, present_resources


def governed(observation: ScalableState) -> tuple[ContainerResource, ...]:
    """Returns the container resources that a usable VPA has targets for, limited by the pod's own resources."""
    return _within_pod(recommended(observation), observation.workload.spec.template.spec)


def recommended(observation: ScalableState) -> tuple[ContainerResource, ...]:
    """Returns the container resources that a usable VPA has targets for, regardless of the pod's own resources."""
    assert observation.vpa.object is not None
    resources = present_resources(observation.workload.spec.template.spec.containers)
    recommended_resources = []
    for container_resource in container_resources(observation.spec, observation.vpa.object, resources):
        given = (
            observation.pods.sizes.get(container_resource.key)
            if container_resource.request is None and container_resource.limit is None
            else None
        )
        # If the request is missing, use the request that the pods received (for example from a LimitRange).
        recommended_resources.append(
            container_resource if given is None else structs.replace(container_resource, request=given)
        )
    return tuple(recommended_resources)


def cut_short(observation: ScalableState) -> str:
    """Describes the recommendations that the pod's own resources reduce; empty if there are none."""
    if observation.workload.spec.template.spec.resources is None:
        return ""
    parts = []
    for free, bounded in zip(recommended(observation), governed(observation), strict=True):
        wanted, most = free.blended(FULL), bounded.blended(FULL)
        if most < wanted:
            texts = [readable_resource(bounded.resource, size) for size in (wanted, most)]
            parts.append(
                f"{bounded.container} {bounded.resource}: {texts[0]} recommended, {texts[1]} at most"
            )
    why = "the pod template's own resources (spec.template.spec.resources) are too small"
    return f"{why}: {', '.join(parts)}" if parts else ""


def _within_pod(unbounded: Sequence[ContainerResource], pod: PodSpec) -> tuple[ContainerResource, ...]:
    """Returns the container resources, each bounded by its part of the pod's own resources.

    Example: the pod requests 1000m, its containers 300m and 200m; 900m and 300m are recommended. The first container
    gets six sevenths of the remaining 500m, the second gets a seventh. So any combination of changes fits.
    """
    if pod.resources is None:
        return tuple(unbounded)
    left = {name: _room_in_pod(pod, name) for name in RESOURCES}
    rises = {free.key: max(0, free.blended(FULL) - free.current) for free in unbounded}
    bounded = []
    for container_resource in unbounded:
        resource, room = container_resource.resource, left[container_resource.resource]
        if room is not None:
            among = [rises[other.key] for other in unbounded if other.resource == resource]
            most = container_resource.current + _share(room, rises[container_resource.key], among)
            fixed = container_resource.bounds.fixed_limit
            bounds = structs.replace(
                container_resource.bounds, fixed_limit=most if fixed is None else min(fixed, most)
            )
            most_limit = amount(pod.resources.limits, resource)
            container_resource = structs.replace(container_resource, bounds=bounds, most_limit=most_limit)
        bounded.append(container_resource)
    return tuple(bounded)


def _room_in_pod(pod: PodSpec, resource: Resource) -> int | None:
    """Returns how much more the containers may request; None if the pod does not bound the resource. A missing pod
    request counts as the pod's limit, which no pod request may exceed."""
    assert pod.resources is not None
    whole = amount(pod.resources.limits | pod.resources.requests, resource)
    if whole is None:
        return None
    sidecars = [container for container in pod.init_containers if container.restart_policy == "Always"]
    # A missing request is equal to the limit, as in Kubernetes.
    requested = [
        container.resources.limits | container.resources.requests
        for container in (*pod.containers, *sidecars)
    ]
    return max(0, whole - sum(amount(requests, resource) or 0 for requests in requested))


def _share(room: int, rise: int, among: Sequence[int]) -> int:
    """Returns the part of `room` for a rise among all rises: the rise and an equal part of the remainder. If `room` is
    too small, all rises shrink in proportion. Example: of rises by 200m and 400m, the first gets 100m of 300m, and 200m
    + 150m of 900m."""
    total = sum(among)
    return room * rise // total if total > room else rise + (room - total) // len(among)
