"""The kubelet's report of a pod's resize, and the parts of a resize that it refuses.

The kubelet resizes a pod as a whole (measured: docs/in-place.md). It does not lower a memory limit below the
container's usage, page cache included: it reports `PodResizeInProgress` with reason Error, up to 15 seconds later.
Until the limit is put back, it resizes nothing else of the pod. If a resource is infeasible (`PodResizePending`, for
example because of a static CPU manager), the kubelet does not allocate the other resources of the request either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Final

import msgspec

from hvpa.api.objects.read_models import Pod, PodCondition, condition
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.actuation.desired import ContainerSizes, by_section
from hvpa.core.model import ResourceRequirements
from hvpa.core.workload.nodes import never_resized

RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"
ERROR: Final = "Error"
ALL: Final[frozenset[Resource]] = frozenset(RESOURCES)
_USED: Final = re.compile(r'container "([^"]+)" memory limit \(\d+\) below current usage \((\d{1,18})\)')


def fresh(pod: Pod, kind: str) -> PodCondition | None:
    """Returns the condition if it is True and describes the pod's current spec."""
    pod_condition = condition(pod.status.conditions, kind)
    if pod_condition is None or pod_condition.status != "True":
        return None
    is_old = 0 < pod_condition.observed_generation < pod.metadata.generation
    return None if is_old else pod_condition


def resize_error(pod: Pod) -> PodCondition | None:
    """Returns the condition that reports why the kubelet can't apply a resize that it has allocated."""
    progress = fresh(pod, RESIZE_IN_PROGRESS)
    return progress if progress is not None and progress.reason == ERROR else None


def infeasible(pod: Pod) -> PodCondition | None:
    """Returns the condition that reports why the kubelet will never allocate the resources in the pod's spec. If no
    size would do, the message says so."""
    pending = fresh(pod, RESIZE_PENDING)
    if pending is None or pending.reason != INFEASIBLE:
        return None
    if not (never := never_resized(pending.message)):
        return pending
    what = " and ".join(["CPU" if resource == "cpu" else resource for resource in sorted(never)])
    note = f"{pending.message.rstrip('. ')}: on such a node, only new pods get another {what} size"
    return msgspec.structs.replace(pending, message=note)


def resources_named(message: str) -> frozenset[Resource]:
    """Returns the resource that a message names, such as `alongside CPU Manager policy "static"`; empty if it names
    both or neither."""
    if never := never_resized(message):
        return never
    named = frozenset(
        resource for resource in RESOURCES if re.search(rf"\b{resource}\b", message, re.IGNORECASE)
    )
    return named if named != ALL else frozenset()


def lowered_limits(present: ContainerSizes, gaps: ContainerSizes) -> dict[str, int]:
    """Returns the memory limits, by container, that the kubelet has not lowered yet."""
    return {
        name: limit
        for name, gap in gaps.items()
        if (limit := gap.limits.get("memory")) is not None and limit < present[name].limits.get("memory", 0)
    }


def used_at_least(message: str, limits: Mapping[str, int]) -> dict[str, int]:
    """Returns the memory usage of the containers with these refused limits, taken from the kubelet's message.
    Kubernetes 1.37 reports the pod's usage for each container, so the figure may be too high. Before the first sample
    it is 0; then the limits are returned."""
    named = dict(_USED.findall(message))
    usage = {name: max(limit, int(named[name])) for name, limit in limits.items() if name in named}
    return usage or dict(limits)


def only(size: ResourceRequirements, resources: Set[Resource]) -> ResourceRequirements:
    """Returns the part of a size that covers these resources."""
    return by_section(
        lambda part: {resource: amount for resource, amount in part.items() if resource in resources}, size
    )
