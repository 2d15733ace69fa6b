"""The VPA's webhook: the resources of a new pod under a VPA that acts, and the recommendation for a pod
(vertical-pod-autoscaler 1.8.1, `pkg/admission-controller/resource/pod` and `pkg/utils/vpa/{capping,
limit_and_request_scaling}.go`, without a LimitRange). `tests/recorded` compares it with the real webhook.

CPU in whole millicores, memory in whole bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import ResourceList, Vpa, VpaContainerPolicy
from hvpa.api.values.quantity import RESOURCES, Resource, parse_resource
from hvpa.core.model import ResourceRequirements

Amounts = dict[Resource, int]
RECREATE: Final = "Recreate"
REQUESTS_ONLY: Final = "RequestsOnly"
_MAX_QUANTITY: Final = 2**63 - 1
"""Largest limit: it must fit in a Go `int64`."""


class RecommendedRequests(NamedTuple):
    """The recommendation for a container of a pod."""

    target: Amounts
    lower: Amounts
    """The updater changes lower requests."""
    upper: Amounts
    """The updater changes higher requests."""


def update_mode(vpa: Vpa) -> str:
    """The VPA's `updateMode`; `Recreate` by default."""
    policy = vpa.spec.update_policy
    return policy.update_mode or RECREATE if policy is not None else RECREATE


def admitted(template: Mapping[str, ResourceRequirements], vpa: Vpa) -> Mapping[str, ResourceRequirements]:
    """The resources of a new pod of this template, by container. Requests are the recommended targets. Limits keep
    their proportion to the requests, unless the container's policy has RequestsOnly. If there is no recommendation, or
    the VPA's mode is Off, the template's resources are unchanged.

    Raises `QuantityError` if the VPA has an invalid quantity.
    """
    if update_mode(vpa) == "Off":
        return template
    recommendations = recommended(template, vpa)
    return {
        name: _changed(requirements, recommendations[name].target, vpa.spec.policy(name))
        if name in recommendations
        else requirements
        for name, requirements in template.items()
    }


def recommended(pod: Mapping[str, ResourceRequirements], vpa: Vpa) -> dict[str, RecommendedRequests]:
    """The recommendation for a pod with these resources, by container: inside the policies' bounds and, with
    RequestsOnly, at most the container's limits. Raises `QuantityError`."""
    recommendation = vpa.status.recommendation
    entries = recommendation.container_recommendations if recommendation is not None else None
    result: dict[str, RecommendedRequests] = {}
    for entry in entries or ():
        current = pod.get(entry.container_name)
        if current is None:
            continue
        policy = vpa.spec.policy(entry.container_name)
        result[entry.container_name] = RecommendedRequests(
            _capped(entry.target, policy, current.limits),
            _capped(entry.lower_bound, policy, current.limits),
            _capped(entry.upper_bound, policy, current.limits),
        )
    return result


def proportional_limit(limit: int, request: int, wanted: int) -> int | None:
    """The new limit, `limit * wanted / request` rounded down to a whole unit. If there is no request, limit and request
    are equal. Without a limit or a wanted request it is None.

    Example: a limit of 200m for a request of 150m becomes 133m for 100m.
    """
    if limit == 0 or wanted == 0:
        return None
    if request in (0, limit):
        return wanted
    return min(limit * wanted // request, _MAX_QUANTITY)


def _changed(
    current: ResourceRequirements, target: Amounts, policy: VpaContainerPolicy
) -> ResourceRequirements:
    limits = dict(current.limits)
    if policy.controlled_values != REQUESTS_ONLY:
        for resource in RESOURCES:
            limit = proportional_limit(
                current.limits.get(resource, 0), current.requests.get(resource, 0), target.get(resource, 0)
            )
            if limit is not None:
                limits[resource] = limit
    return ResourceRequirements({**current.requests, **target}, limits)


def _capped(amounts: ResourceList, policy: VpaContainerPolicy, limits: Mapping[Resource, int]) -> Amounts:
    result: Amounts = {}
    for resource in RESOURCES:
        if resource not in amounts:
            continue
        amount = parse_resource(resource, amounts[resource])
        least = parse_resource(resource, policy.min_allowed.get(resource, 0))
        most = parse_resource(resource, policy.max_allowed.get(resource, 0))
        amount = max(amount, least)
        if most:
            amount = min(amount, most)
        if policy.controlled_values == REQUESTS_ONLY and resource in limits:
            amount = min(amount, limits[resource])
        result[resource] = amount
    return result
