"""The requests that a workload had when HVPA first saw it. They are kept in the status (`axes.vertical.base`)."""

from __future__ import annotations

from collections.abc import Mapping

from hvpa.api.values.quantity import RESOURCES, format_resource
from hvpa.core.model import ObservedState, ResourceRequirements
from hvpa.core.path.path import ResourceKey
from hvpa.core.workload.containers import amount, recommendations, request_now


def present_requests(
    observation: ObservedState, resources: Mapping[str, ResourceRequirements]
) -> dict[ResourceKey, int]:
    """Return the present requests of these containers, in millicores or bytes. A missing request counts as its limit;
    without a limit, as the LimitRange's request in the pods; otherwise as 0."""
    return {
        (key := ResourceKey(name, resource)): request_now(container, key, observation.pods)
        for name, container in resources.items()
        for resource in RESOURCES
    }


def first_requests(observation: ObservedState, requests: Mapping[ResourceKey, int]) -> dict[ResourceKey, int]:
    """Return the requests when each was first seen, given the present `requests`. If there was no request, the VPA's
    target takes its place; without a target, the key is missing."""
    targets = recommendations(observation.vpa.object) if observation.vpa.object is not None else {}
    first: dict[ResourceKey, int] = {}
    for key, request in requests.items():
        known = amount(observation.vertical.base.get(key.container, {}), key.resource)
        target = targets.get(key.container)
        size = known or request or (amount(target.target, key.resource) if target is not None else None)
        if size is not None:
            first[key] = size
    return first


def as_base(first: Mapping[ResourceKey, int]) -> dict[str, dict[str, str]]:
    """Return the first requests in the status's form."""
    base: dict[str, dict[str, str]] = {}
    for key, size in first.items():
        base.setdefault(key.container, {})[key.resource] = format_resource(key.resource, size)
    return base
