"""A kubelet's report of a pod's resize, and the parts that it refuses.

A pod's resize is done as a whole (measured: docs/in-place.md). A memory limit below what a container uses, page cache
included, is not lowered (`PodResizeInProgress`, reason Error, up to 15 seconds later), and until it is put back nothing
else of the pod is resized. A resource that is infeasible (`PodResizePending`: a static CPU manager, for one) keeps the
others that were requested with it from being allocated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Final

from hvpa.api.objects.read_models import Pod, PodCondition, condition
from hvpa.api.values.quantity import RESOURCES, Resource
from hvpa.core.actuation.desired import Sizes, by_section
from hvpa.core.model import ResourceRequirements

RESIZE_PENDING: Final = "PodResizePending"
RESIZE_IN_PROGRESS: Final = "PodResizeInProgress"
INFEASIBLE: Final = "Infeasible"
ERROR: Final = "Error"
RESTART: Final = "RestartContainer"
ALL: Final[frozenset[Resource]] = frozenset(RESOURCES)
_USED: Final = re.compile(r'container "([^"]+)" memory limit \(\d+\) below current usage \((\d{1,18})\)')


def fresh(pod: Pod, kind: str) -> PodCondition | None:
    """The condition, if it is True and of the pod's present spec."""
    found = condition(pod.status.conditions, kind)
    if found is None or found.status != "True":
        return None
    is_old = 0 < found.observed_generation < pod.metadata.generation
    return None if is_old else found


def resize_error(pod: Pod) -> PodCondition | None:
    """The reason why the kubelet can't carry out a resize that it has allocated."""
    found = fresh(pod, RESIZE_IN_PROGRESS)
    return found if found is not None and found.reason == ERROR else None


def infeasible(pod: Pod) -> PodCondition | None:
    """The reason why the kubelet never allocates the resources of the pod's spec."""
    found = fresh(pod, RESIZE_PENDING)
    return found if found is not None and found.reason == INFEASIBLE else None


def resources_named(message: str) -> frozenset[Resource]:
    """The one resource that a message names, such as `alongside CPU Manager policy "static"`; empty for none or both,
    which says nothing."""
    named = frozenset(one for one in RESOURCES if re.search(rf"\b{one}\b", message, re.IGNORECASE))
    return named if named != ALL else frozenset()


def lowered_limits(present: Sizes, gaps: Sizes) -> dict[str, int]:
    """The memory limits that have yet to become lower, by container."""
    return {
        name: limit
        for name, one in gaps.items()
        if (limit := one.limits.get("memory")) is not None and limit < present[name].limits.get("memory", 0)
    }


def used_at_least(message: str, limits: Mapping[str, int]) -> dict[str, int]:
    """Memory that the containers with these refused limits use, by the kubelet's message. Kubernetes 1.37 names the
    pod's usage for each of them, so this may be more than they use, and 0 before its first sample: then their limits
    are taken for it."""
    named = dict(_USED.findall(message))
    found = {name: max(limit, int(named[name])) for name, limit in limits.items() if name in named}
    return found or dict(limits)


def only(size: ResourceRequirements, resources: Set[Resource]) -> ResourceRequirements:
    """The part of a size that is of these resources."""
    return by_section(lambda part: {key: value for key, value in part.items() if key in resources}, size)
