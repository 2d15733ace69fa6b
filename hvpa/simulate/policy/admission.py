"""The VPA's webhook: the resources of a new pod under a VPA that acts, and what its recommendation says about one pod
(vertical-pod-autoscaler 1.8.1, `pkg/admission-controller/resource/pod` and `pkg/utils/vpa/{capping,
limit_and_request_scaling}.go`, where there is no LimitRange). It is held against the real webhook (`tests/recorded`).

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
"""No limit is larger: a Go `int64` has to hold it."""


class Recommended(NamedTuple):
    """What is recommended for a container of one pod: the target, and the range in which its requests may stay."""

    target: Amounts
    lower: Amounts
    upper: Amounts


def update_mode(vpa: Vpa) -> str:
    """The VPA's `updateMode`, `Recreate` where it has none."""
    policy = vpa.spec.update_policy
    return policy.update_mode or RECREATE if policy is not None else RECREATE


def admitted(template: Mapping[str, ResourceRequirements], vpa: Vpa) -> Mapping[str, ResourceRequirements]:
    """What a new pod of this template gets: requests as recommended; limits in the same proportion to them as the
    template's, unless the container's policy says RequestsOnly. Nothing changes without a recommendation, and nothing
    under a VPA whose mode is Off.

    Raises `QuantityError` for a quantity of the VPA that is none.
    """
    if update_mode(vpa) == "Off":
        return template
    found = recommended(template, vpa)
    return {
        name: _changed(own, found[name].target, vpa.spec.policy(name)) if name in found else own
        for name, own in template.items()
    }


def recommended(pod: Mapping[str, ResourceRequirements], vpa: Vpa) -> dict[str, Recommended]:
    """The recommendation for a pod with these resources, by container: inside what the policies allow and, where only
    requests are controlled, at most the container's limits. Raises `QuantityError`."""
    recommendation = vpa.status.recommendation
    found = recommendation.container_recommendations if recommendation is not None else None
    result: dict[str, Recommended] = {}
    for one in found or ():
        own = pod.get(one.container_name)
        if own is None:
            continue
        policy = vpa.spec.policy(one.container_name)
        result[one.container_name] = Recommended(
            _capped(one.target, policy, own.limits),
            _capped(one.lower_bound, policy, own.limits),
            _capped(one.upper_bound, policy, own.limits),
        )
    return result


def proportional_limit(limit: int, request: int, wanted: int) -> int | None:
    """The limit that has the same proportion to the wanted request as the present limit has to the present request, cut
    off to a whole unit; None where there is no limit or no wanted request. Without a request the two are equal.

    Example: a limit of 200m for a request of 150m becomes 133m for 100m.
    """
    if limit == 0 or wanted == 0:
        return None
    if request in (0, limit):
        return wanted
    return min(limit * wanted // request, _MAX_QUANTITY)


def _changed(own: ResourceRequirements, target: Amounts, policy: VpaContainerPolicy) -> ResourceRequirements:
    limits = dict(own.limits)
    if policy.controlled_values != REQUESTS_ONLY:
        for resource in RESOURCES:
            limit = proportional_limit(
                own.limits.get(resource, 0), own.requests.get(resource, 0), target.get(resource, 0)
            )
            if limit is not None:
                limits[resource] = limit
    return ResourceRequirements({**own.requests, **target}, limits)


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
