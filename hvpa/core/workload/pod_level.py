"""What a pod template's own resources (`spec.template.spec.resources`) leave for its containers.

The API server refuses a pod whose containers together request more than the pod (`validatePodResourceConsistency` in
pkg/apis/core/validation of Kubernetes 1.36), and one with a container whose limit is above the pod's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from hvpa.api.objects.read_models import PodSpec
from hvpa.api.values.quantity import Resource, readable_resource
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import RESOURCES, ContainerResource, amount


def within_pod(items: Sequence[ContainerResource], pod: PodSpec) -> tuple[ContainerResource, ...]:
    """The container resources, each bounded by what the pod's own resources leave for it.

    The pod requests 1000m, its containers 300m and 200m, for which 900m and 300m are recommended: of the 500m that are
    left the first gets six sevenths, the second one seventh. So they fit whichever of them are changed.
    """
    if pod.resources is None:
        return tuple(items)
    left = {one: _left(pod, one) for one in RESOURCES}
    limits = {one: amount(pod.resources.limits, one) for one in RESOURCES}
    rises = {one.key: max(0, one.blended(FULL) - one.current) for one in items}
    found = []
    for item in items:
        resource, room = item.resource, left[item.resource]
        if room is not None:
            among = [rises[one.key] for one in items if one.resource == resource]
            most = item.current + _share(room, rises[item.key], among)
            fixed = item.bounds.fixed_limit
            bounds = structs.replace(item.bounds, fixed_limit=most if fixed is None else min(fixed, most))
            item = structs.replace(item, bounds=bounds, most_limit=limits[resource])
        found.append(item)
    return tuple(found)


def cut_short(items: Iterable[ContainerResource], within: Iterable[ContainerResource]) -> list[str]:
    """Which recommendations the pod's own resources cut short, in words: `container resources` without, and `within`
    with them."""
    told = []
    for free, item in zip(items, within, strict=True):
        wanted, most = free.blended(FULL), item.blended(FULL)
        if most < wanted:
            texts = [readable_resource(item.resource, one) for one in (wanted, most)]
            told.append(f"{item.container} {item.resource}: {texts[0]} recommended, {texts[1]} at most")
    return told


def _left(pod: PodSpec, resource: Resource) -> int | None:
    """What the containers may request on top of what they do; None where the pod has no bound for the resource. A
    missing pod request counts as the pod's limit, which no pod request may exceed."""
    assert pod.resources is not None
    whole = amount(pod.resources.limits | pod.resources.requests, resource)
    if whole is None:
        return None
    sidecars = [one for one in pod.init_containers if one.restart_policy == "Always"]
    # A missing request is equal to the limit, as in Kubernetes.
    requested = [one.resources.limits | one.resources.requests for one in (*pod.containers, *sidecars)]
    return max(0, whole - sum(amount(one, resource) or 0 for one in requested))


def _share(room: int, rise: int, among: Sequence[int]) -> int:
    """How much of `room` goes to a rise `among` all: what it asks for and an equal part of the rest, or as much less as
    all of them."""
    total = sum(among)
    return room * rise // total if total > room else rise + (room - total) // len(among)
