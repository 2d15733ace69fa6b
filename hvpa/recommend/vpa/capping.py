"""From amounts to a recommendation as the VPA's status shows it, within what the container's policy allows
(vertical-pod-autoscaler 1.7.3, `pkg/utils/vpa/capping.go` and `routines/capping_post_processor.go`)."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from hvpa.api.objects.read_models import ContainerRecommendation, Quantity, ResourceList, VpaContainerPolicy
from hvpa.api.values.quantity import CPU, MEMORY, Resource, parse_quantity
from hvpa.recommend.golang.quantities import canonical, format_milli
from hvpa.recommend.vpa.estimate import Amounts
from hvpa.recommend.vpa.settings import VpaSettings

_RESOURCES: Final[tuple[Resource, ...]] = (CPU, MEMORY)
_UNITS: Final[dict[Resource, int]] = {CPU: 1000, MEMORY: 1}


class Cap(NamedTuple):
    """What a policy allows of one resource: the least and most whole amounts (None: no bound), and the quantities that
    stand in for what is beyond. Where the least is above the most, the most counts, as in Go."""

    least: int | None
    least_text: str
    most: int | None
    most_text: str


class ContainerCap:
    """A container's policy, ready to be applied: which resources are recommended, and their caps."""

    __slots__ = ("_caps",)

    def __init__(self, policy: VpaContainerPolicy, settings: VpaSettings) -> None:
        controlled = policy.controlled_resources
        everywhere: dict[Resource, Quantity | None] = {
            CPU: settings.max_allowed_cpu,
            MEMORY: settings.max_allowed_memory,
        }
        self._caps = {
            resource: _cap(
                resource,
                policy.min_allowed.get(resource),
                policy.max_allowed.get(resource, everywhere[resource]),
            )
            for resource in _RESOURCES
            if controlled is None or resource in controlled
        }

    def recommendation(self, container: str, cpu: Amounts, memory: Amounts) -> ContainerRecommendation:
        """The amounts as recommendation: target and bounds capped, the uncapped target as it is."""
        target: ResourceList = {}
        lower: ResourceList = {}
        upper: ResourceList = {}
        uncapped: ResourceList = {}
        for resource, cap in self._caps.items():
            amounts = cpu if resource == CPU else memory
            uncapped[resource] = _text(resource, amounts.target)
            target[resource] = _capped(cap, amounts.target) or uncapped[resource]
            lower[resource] = _capped(cap, amounts.lower) or _text(resource, amounts.lower)
            upper[resource] = _capped(cap, amounts.upper) or _text(resource, amounts.upper)
        return ContainerRecommendation(
            container_name=container,
            target=target,
            lower_bound=lower,
            upper_bound=upper,
            uncapped_target=uncapped,
        )


def _text(resource: Resource, amount: int) -> str:
    """Millicores or bytes as Go prints them: `25m`, `2`, `250Mi`, `274357142`."""
    return format_milli(amount) if resource == CPU else format_milli(amount * 1000, binary=True)


def _cap(resource: Resource, least: Quantity | None, most: Quantity | None) -> Cap:
    """A bound of 0 is none."""
    unit = _UNITS[resource]
    low = None if least is None else parse_quantity(least) * unit
    high = None if most is None else parse_quantity(most) * unit
    low_text = "" if least is None else canonical(least)
    high_text = "" if most is None else canonical(most)
    if low and high and low > high:
        low_text = high_text
    return Cap(
        math.ceil(low) if low else None,
        low_text,
        math.floor(high) if high else None,
        high_text,
    )


def _capped(cap: Cap, amount: int) -> str | None:
    """The quantity that stands in for the amount, or None where it is allowed."""
    if cap.least is not None and amount < cap.least:
        return cap.least_text
    if cap.most is not None and amount > cap.most:
        return cap.most_text
    return None
