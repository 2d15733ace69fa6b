"""From amounts to a recommendation as the VPA's status shows it: what the container's policy says, and quantities as Go
prints them (vertical-pod-autoscaler 1.7.3, `pkg/utils/vpa/capping.go` and `routines/capping_post_processor.go`;
apimachinery's `Quantity.CanonicalizeBytes`)."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, NamedTuple

from hvpa.api.objects import ContainerRecommendation, Quantity, ResourceList, VpaContainerPolicy
from hvpa.api.quantity import CPU, MEMORY, Resource, parse_quantity
from hvpa.recommend.vpa_estimate import Amounts
from hvpa.recommend.vpa_settings import VpaSettings

_RESOURCES: Final[tuple[Resource, ...]] = (CPU, MEMORY)
_UNITS: Final[dict[Resource, int]] = {CPU: 1000, MEMORY: 1}
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]")


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
            amounts, text = (cpu, cpu_text) if resource == CPU else (memory, memory_text)
            target[resource] = _capped(cap, amounts.target) or text(amounts.target)
            lower[resource] = _capped(cap, amounts.lower) or text(amounts.lower)
            upper[resource] = _capped(cap, amounts.upper) or text(amounts.upper)
            uncapped[resource] = text(amounts.target)
        return ContainerRecommendation(
            container_name=container,
            target=target,
            lower_bound=lower,
            upper_bound=upper,
            uncapped_target=uncapped,
        )


@lru_cache(maxsize=16384)
def cpu_text(amount: int) -> str:
    """Millicores as Go prints them: `25m`, `2`, `100G`."""
    return _decimal(amount, -3)


@lru_cache(maxsize=16384)
def memory_text(amount: int) -> str:
    """Bytes as Go prints a quantity of the binary kind: `250Mi`, `274357142`."""
    return _binary(amount) if amount >= 1024 else _decimal(amount, 0)


def quantity_text(quantity: Quantity) -> str:
    """A quantity as Go prints it after reading it: `1024Mi` is `1Gi`, `0.5` is `500m`, `1e3` stays so. Raises
    `QuantityError`."""
    value = parse_quantity(quantity)
    text = str(quantity)
    if text.endswith("i") and abs(value) >= 1024 and value.denominator == 1:
        return _binary(int(value))
    return _decimal(math.ceil(value * 10**9), -9, by_exponent=_EXPONENT.search(text) is not None)


def _binary(amount: int) -> str:
    power = 0
    while amount % 1024 == 0 and power + 1 < len(_BINARY):
        amount //= 1024
        power += 1
    return f"{amount}{_BINARY[power]}"


def _decimal(amount: int, exponent: int, by_exponent: bool = False) -> str:
    if amount == 0:
        return "0"
    while amount % 1000 == 0 and exponent < 18:
        amount //= 1000
        exponent += 3
    if by_exponent and exponent != 0:
        return f"{amount}e{exponent}"
    return f"{amount}{_DECIMAL[exponent]}"


def _cap(resource: Resource, least: Quantity | None, most: Quantity | None) -> Cap:
    """A bound of 0 is none."""
    unit = _UNITS[resource]
    low = None if least is None else parse_quantity(least) * unit
    high = None if most is None else parse_quantity(most) * unit
    low_text = "" if least is None else quantity_text(least)
    high_text = "" if most is None else quantity_text(most)
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
