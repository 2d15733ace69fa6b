"""Amounts of CPU and memory that are valid quantities but surely mistakes: `memory: 128m`, `averageValue: 300` for CPU.

This module checks quantities as the user wrote them, so it reads the spec as plain values. The spec has already been
validated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

from hvpa.api.values.quantity import MEMORY, RESOURCES, parse_quantity
from hvpa.core.spec.review import Remark

Use = Literal["least", "most", "change"]
"""Purpose of an amount: a pod's or container's own size or part of it, an upper bound, or the size of a change."""

_Amount = tuple[str, str, Any, Use]
"""Its path, resource, quantity and purpose."""
_MAPS: Final[dict[str, Use]] = {"minAllowed": "least", "maxAllowed": "most", "maxResources": "most"}
"""Fields that hold amounts by resource."""
_PARAMS: Final[dict[str, Use]] = {
    "minChange": "change",
    "limitsRequestsGapScaleParams": "change",
    "overlap": "change",
    "baseResourcesPerReplica": "change",
}
"""Fields that hold `value` and `percentage` by resource."""
_SOURCES: Final = ("resource", "containerResource")
_SMALLEST_MEMORY: Final = 10**6
"""Bytes; no container can run with less."""
_SMALLEST_CHANGE: Final = 1000
"""Bytes, because requests are set in whole kilobytes. A value of 1 byte counts as "any change"."""
_LARGEST_MEMORY: Final = 64 * 2**40
"""Bytes, 64Ti: more than the largest machines have."""
_CORES: Final[dict[Use, int]] = {"least": 64, "most": 256, "change": 64}
"""Cores from which the value was probably meant as millicores: few containers need this many, but an upper bound may be
higher."""
_SUFFIX: Final = re.compile(r"(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$")
_BELOW_ONE: Final = {"m": "thousandths", "u": "millionths", "n": "billionths"}


def review_amounts(spec: Any) -> tuple[Remark, ...]:
    """Return the remarks on the amounts in a valid spec, in the order of the spec."""
    return tuple(
        Remark(path, *remark)
        for path, resource, amount, use in _amounts(spec, "spec")
        for remark in (_memory(str(amount), use) if resource == MEMORY else _cpu(str(amount), use),)
        if remark is not None
    )


def _amounts(value: Any, path: str) -> Iterator[_Amount]:
    """Yield each amount of CPU or memory at or below a path."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _amounts(entry, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for key, entry in value.items():
        below = f"{path}.{key}"
        here = _of_field(key, entry, below) if isinstance(entry, dict) else None
        yield from _amounts(entry, below) if here is None else here


def _of_field(key: str, entry: dict[str, Any], path: str) -> list[_Amount] | None:
    """Return the amounts of a field that holds some; None for other fields."""
    if key in _MAPS:
        show = "{}.{}" if key == "maxResources" else "{}[{}]"  # as paths name entries of maps
        return [
            (show.format(path, resource), resource, entry[resource], _MAPS[key])
            for resource in RESOURCES
            if resource in entry
        ]
    if key in _PARAMS:
        return [
            (f"{path}.{resource}.value", resource, entry[resource]["value"], _PARAMS[key])
            for resource in RESOURCES
            if "value" in entry.get(resource, {})
        ]
    if key in _SOURCES and entry.get("name") in RESOURCES:
        return list(_of_metric(entry, path))
    return None


def _of_metric(source: dict[str, Any], path: str) -> Iterator[_Amount]:
    if "targetAverageValue" in source:
        yield f"{path}.targetAverageValue", source["name"], source["targetAverageValue"], "least"
    elif "averageValue" in source.get("target", {}):
        yield f"{path}.target.averageValue", source["name"], source["target"]["averageValue"], "least"


def _memory(amount: str, use: Use) -> tuple[str, str] | None:
    size, suffix = parse_quantity(amount), _suffix(amount)
    number = amount.removesuffix(suffix)
    as_mebibytes, check = f"write {number}Mi for mebibytes", "check the unit: Mi is a mebibyte, Gi a gibibyte"
    if suffix in _BELOW_ONE and size > 0:
        return f"{amount} of memory is {number} {_BELOW_ONE[suffix]} of a byte", as_mebibytes
    if (use == "change" and 1 < size < _SMALLEST_CHANGE) or (use != "change" and 0 < size < _SMALLEST_MEMORY):
        return f"{amount} of memory is {float(size):,.10g} bytes", check if suffix else as_mebibytes
    return (f"{amount} of memory is more than a machine has", check) if size > _LARGEST_MEMORY else None


def _cpu(amount: str, use: Use) -> tuple[str, str] | None:
    cores = parse_quantity(amount)
    if cores < _CORES[use]:
        return None
    as_thousandths = f"write {amount}m for thousandths of a core"
    remedy = "CPU is measured in cores: 500m is half a core" if _suffix(amount) else as_thousandths
    return f"{amount} of CPU is {float(cores):,.10g} cores", remedy


def _suffix(amount: str) -> str:
    return str(_SUFFIX.findall(amount)[0])
