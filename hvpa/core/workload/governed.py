"""The container resources that a usable VPA governs, as the pods have them."""

from __future__ import annotations

from msgspec import structs

from hvpa.core.model import ObservedState, PodsSeen
from hvpa.core.workload.containers import ContainerResource, container_resources, present_resources
from hvpa.core.workload.pod_level import within_pod


def governed(seen: ObservedState) -> tuple[ContainerResource, ...]:
    """What a usable VPA has targets for, within the pod's own resources."""
    assert seen.workload is not None
    return within_pod(recommended(seen), seen.workload.spec.template.spec)


def recommended(seen: ObservedState) -> tuple[ContainerResource, ...]:
    """What a usable VPA has targets for, whatever the pod's own resources leave."""
    assert seen.workload is not None and seen.vpa.object is not None and seen.spec is not None
    resources = present_resources(seen.workload.spec.template.spec.containers)
    return tuple(
        [_as_pods_have(one, seen.pods) for one in container_resources(seen.spec, seen.vpa.object, resources)]
    )


def _as_pods_have(item: ContainerResource, pods: PodsSeen) -> ContainerResource:
    """A container resource without a request, with the one that its pods were given (by a LimitRange, say)."""
    if item.request is not None or item.limit is not None or item.key not in pods.sizes:
        return item
    return structs.replace(item, request=pods.sizes[item.key].mean)
