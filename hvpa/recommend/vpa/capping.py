"""From amounts to a recommendation as the VPA's status shows it, within what the container's policy allows
(vertical-pod-autoscaler 1.7.3, `pkg/utils/vpa/capping.go` and `routines/capping_post_processor.go`)."""

from __future__ import annotations

import math
from typing import NamedTuple

from hvpa.api.objects.read_models import ContainerRecommendation, Quantity, VpaContainerPolicy
from hvpa.api.values.quantity import CPU, MEMORY, Resource, parse_quantity
from hvpa.recommend.golang.quantities import canonical, format_milli
from hvpa.recommend.vpa.estimate import Amounts
from hvpa.recommend.vpa.settings import VpaSettings


class Cap(NamedTuple):
    """What a policy allows of one resource: the least and most whole amounts (None: no bound), and the quantities that
    stand in for what is beyond. Where the least is above the most, the most counts, as in Go."""

    least: int | None
    least_text: str
    most: int | None
    most_text: str

    def applied(self, resource: Resource, amount: int) -> str:
        """The amount as a quantity, or the bound that it is beyond."""
        if self.least is not None and amount < self.least:
            return self.least_text
        if self.most is not None and amount > self.most:
            return self.most_text
        return _text(resource, amount)


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
            resource: _cap(resource, policy.min_allowed.get(resource), policy.max_allowed.get(resource, most))
            for resource, most in everywhere.items()
            if controlled is None or resource in controlled
        }

    def recommendation(self, container: str, cpu: Amounts, memory: Amounts) -> ContainerRecommendation:
        """The amounts as recommendation: target and bounds capped, the uncapped target as it is."""
        amounts: dict[Resource, Amounts] = {CPU: cpu, MEMORY: memory}
        caps = self._caps
        return ContainerRecommendation(
            container_name=container,
            target={one: cap.applied(one, amounts[one].target) for one, cap in caps.items()},
            lower_bound={one: cap.applied(one, amounts[one].lower) for one, cap in caps.items()},
            upper_bound={one: cap.applied(one, amounts[one].upper) for one, cap in caps.items()},
            uncapped_target={one: _text(one, amounts[one].target) for one in caps},
        )


def _text(resource: Resource, amount: int) -> str:
    """Millicores or bytes as Go prints them: `25m`, `2`, `250Mi`, `274357142`."""
    return format_milli(amount) if resource == CPU else format_milli(amount * 1000, binary=True)


def _cap(resource: Resource, least: Quantity | None, most: Quantity | None) -> Cap:
    """A bound of 0 is none."""
    unit = 1000 if resource == CPU else 1
    low, high = parse_quantity(least or 0) * unit, parse_quantity(most or 0) * unit
    reversed_bounds = low and high and low > high
    return Cap(
        math.ceil(low) if low else None,
        canonical((most if reversed_bounds else least) or 0),
        math.floor(high) if high else None,
        canonical(most or 0),
    )
