"""The container resources that a usable VPA governs, with the pods' values, limited by a fixed limit of the pod itself
(`spec.template.spec.resources`) and by the largest node (`spec.vpa.maxAllowed`)."""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec import structs

from hvpa.api.values.quantity import MEMORY, RESOURCES, Resource, readable_resource
from hvpa.core.model import Finding, ScalableState
from hvpa.core.path.path import ResourceKey
from hvpa.core.rules import params_of
from hvpa.core.values.arithmetic import after_oom, ceil_div, is_same_size
from hvpa.core.values.weight import FULL
from hvpa.core.workload.containers import (
    HEAP,
    LARGEST_NODE,
    POD_RESOURCES,
    SHARED,
    Bound,
    ContainerResource,
    container_resources,
    present_resources,
    sharing,
)
from hvpa.core.workload.pod_level import least_shared, own_resources, requested, unshared
from hvpa.core.workload.runtimes import heaps_of, read_at_start


def governed(observation: ScalableState) -> tuple[ContainerResource, ...]:
    """Returns the container resources that a usable VPA has targets for, limited by the pod's own resources and by the
    largest node."""
    return _within_pod(observation, recommended(observation))


def recommended(observation: ScalableState) -> tuple[ContainerResource, ...]:
    """Returns the container resources that a usable VPA has targets for, regardless of the pod's own resources."""
    assert observation.vpa.object is not None
    resources = present_resources(observation.workload.spec.template.spec.containers)
    recommended_resources = []
    for container_resource in _with_runtimes(
        observation, container_resources(observation.spec, observation.vpa.object, resources)
    ):
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


def _with_runtimes(
    observation: ScalableState, resources: Sequence[ContainerResource]
) -> Sequence[ContainerResource]:
    """Returns the container resources with the rules of `spec.runtimes` for memory: whether only new pods get another
    size, and the need of their heaps. HVPA does not raise memory to that, and does not lower it below that: a heap that
    is a share of the limit would shrink with it, the VPA would see less usage, and recommend even less."""
    spec, template = observation.spec, observation.workload.spec.template.spec.containers
    if not spec.runtimes:
        return resources
    at_start = read_at_start(spec.runtimes, template) if spec.strategy.in_place else ()
    heaps, changed = heaps_of(spec.runtimes, template), []
    for item in resources:
        if item.resource == MEMORY:
            item = structs.replace(item, at_start=item.container in at_start)
            names = (
                sharing(present_resources(template), MEMORY)
                if item.container == SHARED
                else (item.container,)
            )
            own = [heap for name in names if (heap := heaps.get(name)) is not None]
            fixed = sum([heap.least_memory or 0 for heap in own])
            # Without a limit, a share is one of the node's memory.
            shares = [heap.least_limit(item.target) for heap in own if item.limit and heap.size is None]
            least = min(item.current, _request_for(observation, item, max([fixed, *shares])))
            if least > (item.bounds.lower or 0):
                bounds = structs.replace(item.bounds, lower=least)
                item = structs.replace(item, bounds=bounds, lower=HEAP)
        changed.append(item)
    return changed


def _request_for(observation: ScalableState, item: ContainerResource, limit: int) -> int:
    """Returns the request with which a container has at least this limit: without a limit, the request itself; 0 if the
    limit stays. Example: with requests of half the limits, a limit of 640Mi goes with a request of 320Mi."""
    gap = params_of(observation.spec.vpa.limits_requests_gap_scale_params, MEMORY)
    if not item.limit:
        return limit
    if not item.scales_limit:
        return 0
    if gap.value is not None or gap.percentage is not None:
        return min(max(0, limit - (gap.value or 0)), ceil_div(limit * 100, 100 + (gap.percentage or 0)))
    written = present_resources(observation.target.spec.template.spec.containers).get(item.container)
    pairs = [(item.current, item.limit)]
    if written is not None and (most := written.limits.get(MEMORY)):
        pairs.append((written.requests.get(MEMORY, most), most))
    return max([ceil_div(limit * request, most) for request, most in pairs])


def limits_of_memory(observation: ScalableState) -> dict[str, int]:
    """Returns the memory limits that the recommendation leads to; requests, for containers without a limit. In bytes,
    by container."""
    limits = {}
    for item in recommended(observation):
        if item.resource == MEMORY:
            wanted = item.blended(FULL)
            limits[item.container] = wanted * item.limit // max(1, item.current) if item.limit else wanted
    return limits


def kept_for_heaps(observation: ScalableState) -> Finding | None:
    """Returns the containers whose memory stays above the recommendation, because their heaps need it; None if there
    are none."""
    parts = []
    for item in recommended(observation):
        least = item.bounds.lower or 0
        if item.lower == HEAP and least > item.target and not is_same_size(least, item.target):
            kept, target = (readable_resource(MEMORY, size) for size in (least, item.target))
            parts.append(f"{item.container}: {kept} at least, {target} recommended")
    return Finding("HeapKept", f"the heap and all else need more: {'; '.join(parts)}") if parts else None


def cut_short(observation: ScalableState, measured: Container[ResourceKey] = ()) -> Finding | None:
    """Returns the recommendations that the pod's own limit or the largest node reduce, or the part of the pod's request
    that nothing recommends; None if there are none. More replicas make up for a node that is too small for `measured`
    resources."""
    template, node = observation.workload.spec.template.spec, observation.largest_node
    if template.resources is None and node is None:
        return None
    assert observation.vpa.object is not None
    if unknown := unshared(observation.vpa.object, template):
        why = "share the pod's request (spec.template.spec.resources), and not all of them have a recommendation"
        texts = [f"{resource}: {', '.join(names)} {why}" for resource, names in unknown.items()]
        return Finding("PodLevelResources", "; ".join(texts))
    parts, wholes = [], set()
    for free, bounded in zip(recommended(observation), governed(observation), strict=True):
        wanted, most = free.blended(FULL), bounded.blended(FULL)
        if most < wanted and not (bounded.whole == LARGEST_NODE and bounded.key in measured):
            texts = [readable_resource(bounded.resource, size) for size in (wanted, most)]
            parts.append(
                f"{bounded.container} {bounded.resource}: {texts[0]} recommended, {texts[1]} at most"
            )
            wholes.add(bounded.whole)
    if not parts:
        return None
    if wholes == {LARGEST_NODE}:
        why = (
            "the nodes are being listed"
            if node is not None and node.is_awaited
            else "the largest node is too small"
        )
        return Finding("LargestNode", f"{why} (vpa.maxAllowed): {', '.join(parts)}")
    why = "the pod template's own limit (spec.template.spec.resources) is too small"
    return Finding("PodLevelResources", f"{why}: {', '.join(parts)}")


def _within_pod(
    observation: ScalableState, unbounded: Sequence[ContainerResource]
) -> tuple[ContainerResource, ...]:
    """Returns the container resources, each bounded by its part of the pod's own limit or of the largest node.

    Containers that ran out of memory are served first. Example: the pod's limit is 1000m, its containers request 300m
    and 200m; 900m and 300m are recommended. The first container gets six sevenths of the remaining 500m, the second
    gets a seventh. So any combination of changes fits.
    """
    pod = observation.workload.spec.template.spec
    if pod.resources is None and observation.largest_node is None:
        return tuple(unbounded)
    rooms = {name: _room_in_pod(observation, unbounded, name) for name in RESOURCES}
    rises = {free.key: max(0, free.blended(FULL) - free.current) for free in unbounded}
    starving = {
        free.key: max(rises[free.key], after_oom(free.current) - free.current)
        for free in unbounded
        if free.resource == "memory" and free.container in observation.pods.starving
    }
    bounded = []
    for container_resource in unbounded:
        resource, room = container_resource.resource, rooms[container_resource.resource]
        if container_resource.container == SHARED:
            bounds = container_resource.bounds
            least = max(bounds.lower or 0, least_shared(pod, resource))
            container_resource = structs.replace(
                container_resource, bounds=structs.replace(bounds, lower=least)
            )
        if room is not None:
            first = [rise for key, rise in starving.items() if key.resource == resource]
            left = max(0, room.size - sum(first))
            among = [rises[other.key] for other in unbounded if other.resource == resource]
            rise = rises[container_resource.key]
            part = _share(left, max(0, rise - starving.get(container_resource.key, 0)), among)
            if (own := starving.get(container_resource.key)) is not None:
                part += min(own, room.size * own // max(1, sum(first)))
            most = container_resource.current + part
            fixed = container_resource.bounds.fixed_limit
            bounds = structs.replace(
                container_resource.bounds, fixed_limit=most if fixed is None else min(fixed, most)
            )
            container_resource = structs.replace(container_resource, bounds=bounds, whole=room.name)
        bounded.append(container_resource)
    return tuple(bounded)


def _room_in_pod(
    observation: ScalableState, governed_resources: Sequence[ContainerResource], resource: Resource
) -> Bound | None:
    """Returns how much more the containers may request, and what bounds that; None if nothing does. The pod's own
    request grows along, up to a limit of the pod that stays (`RequestsOnly`)."""
    pod, node = observation.workload.spec.template.spec, observation.largest_node
    of_template = requested(pod, resource)
    taken, rooms = sum(of_template.values()), []
    limit = own_resources(pod).limits.get(resource)
    if limit is not None and not all(
        one.scales_limit for one in governed_resources if one.resource == resource
    ):
        rooms.append(Bound(max(0, limit - taken), POD_RESOURCES))
    if node is not None and (node.is_awaited or resource in node.allocatable):
        # Pods may request more than the template: by a LimitRange, or by injected containers.
        present = {one.container: one.current for one in governed_resources if one.resource == resource}
        of_pods = observation.pods.totals.get(resource)
        taken = max(sum((of_template | present).values()), 0 if of_pods is None else of_pods.requested)
        rooms.append(Bound(max(0, node.allocatable.get(resource, 0) - taken), LARGEST_NODE))
    return min(rooms, key=lambda room: room.size, default=None)


def _share(room: int, rise: int, among: Sequence[int]) -> int:
    """Returns the part of `room` for a rise among all rises: the rise and an equal part of the remainder. If `room` is
    too small, all rises shrink in proportion. Example: of rises by 200m and 400m, the first gets 100m of 300m, and 200m
    + 150m of 900m."""
    total = sum(among)
    return room * rise // total if total > room else rise + (room - total) // len(among)
