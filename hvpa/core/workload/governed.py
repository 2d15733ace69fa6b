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
    found = []
    for one in container_resources(observation.spec, observation.vpa.object, resources):
        given = observation.pods.sizes.get(one.key) if one.request is None and one.limit is None else None
        # If the request is missing, use the request that the pods received (for example from a LimitRange).
        found.append(one if given is None else structs.replace(one, request=given))
    return tuple(found)


def cut_short(observation: ScalableState) -> str:
    """Describes the recommendations that the pod's own resources reduce; empty if there are none."""
    if observation.workload.spec.template.spec.resources is None:
        return ""
    parts = []
    for free, item in zip(recommended(observation), governed(observation), strict=True):
        wanted, most = free.blended(FULL), item.blended(FULL)
        if most < wanted:
            texts = [readable_resource(item.resource, one) for one in (wanted, most)]
            parts.append(f"{item.container} {item.resource}: {texts[0]} recommended, {texts[1]} at most")
    why = "the pod template's own resources (spec.template.spec.resources) are too small"
    return f"{why}: {', '.join(parts)}" if parts else ""


def _within_pod(items: Sequence[ContainerResource], pod: PodSpec) -> tuple[ContainerResource, ...]:
    """Returns the container resources, each bounded by its part of the pod's own resources.

    Example: the pod requests 1000m, its containers 300m and 200m; 900m and 300m are recommended. The first container
    gets six sevenths of the remaining 500m, the second gets a seventh. So any combination of changes fits.
    """
    if pod.resources is None:
        return tuple(items)
    left = {one: _left(pod, one) for one in RESOURCES}
    rises = {one.key: max(0, one.blended(FULL) - one.current) for one in items}
    found = []
    for item in items:
        resource, room = item.resource, left[item.resource]
        if room is not None:
            among = [rises[one.key] for one in items if one.resource == resource]
            most = item.current + _share(room, rises[item.key], among)
            fixed = item.bounds.fixed_limit
            bounds = structs.replace(item.bounds, fixed_limit=most if fixed is None else min(fixed, most))
            most_limit = amount(pod.resources.limits, resource)
            item = structs.replace(item, bounds=bounds, most_limit=most_limit)
        found.append(item)
    return tuple(found)


def _left(pod: PodSpec, resource: Resource) -> int | None:
    """Returns how much more the containers may request; None if the pod does not bound the resource. A missing pod
    request counts as the pod's limit, which no pod request may exceed."""
    assert pod.resources is not None
    whole = amount(pod.resources.limits | pod.resources.requests, resource)
    if whole is None:
        return None
    sidecars = [one for one in pod.init_containers if one.restart_policy == "Always"]
    # A missing request is equal to the limit, as in Kubernetes.
    requested = [one.resources.limits | one.resources.requests for one in (*pod.containers, *sidecars)]
    return max(0, whole - sum(amount(one, resource) or 0 for one in requested))


def _share(room: int, rise: int, among: Sequence[int]) -> int:
    """Returns the part of `room` for a rise among all rises: the rise and an equal part of the remainder. If `room` is
    too small, all rises shrink in proportion. Example: of rises by 200m and 400m, the first gets 100m of 300m, and 200m
    + 150m of 900m."""
    total = sum(among)
    return room * rise // total if total > room else rise + (room - total) // len(among)
