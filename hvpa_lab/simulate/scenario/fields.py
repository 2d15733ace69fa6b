"""Types of a scenario's fields: durations, amounts, numbers. Each type parses its value.

Requested amounts are whole millicores and bytes, rounded up; used amounts may have fractions.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, StringConstraints

from hvpa.api.schema.base import SpecModel, fault
from hvpa.api.schema.fields import Count
from hvpa.api.values.duration import DurationError, parse_duration
from hvpa.api.values.quantity import MIB, Resource, parse_cpu, parse_memory, parse_quantity
from hvpa.core.workload.runtimes import MOST_PERCENT

MAX_REPLICAS: Final = 10_000
"""Maximum initial replicas of a workload: each replica is simulated."""
_LONGEST_SECONDS: Final = 100 * 366 * 86400.0
_DAYS: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})d(.*)", re.ASCII | re.DOTALL)
_ANY_PERCENTAGE: Final = re.compile(r"(?:0|[1-9][0-9]{0,3})%", re.ASCII)
_PERCENTAGE: Final = re.compile(r"(?:100|[1-9]?[0-9])%", re.ASCII)


def seconds_of(value: object) -> float:
    """A Go duration, optionally with days in front (`30d`, `1d12h`), in seconds. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("must be a duration: a string such as 90s, 15m, 1h30m or 7d")
    days = _DAYS.fullmatch(value)
    seconds, rest = (float(days[1]) * 86400, days[2]) if days else (0.0, value)
    if rest or days is None:
        try:
            seconds += parse_duration(rest) / dt.timedelta(seconds=1)
        except DurationError:
            raise ValueError(f"{value[:64]!r} is not a duration (such as 90s, 15m, 1h30m or 7d)") from None
    if seconds > _LONGEST_SECONDS:
        raise ValueError("must be at most a hundred years")
    return seconds


def _positive_seconds(value: object) -> float:
    seconds = seconds_of(value)
    if seconds <= 0:
        raise ValueError("must be longer than 0")
    return seconds


def _quantity(value: object) -> str | int | float:
    """The value, if it is a non-negative quantity; a number may have a fraction, as in a pod's resources."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a quantity: a string or a number")
    if parse_quantity(value) < 0:
        raise ValueError("must not be negative")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    return float(value)


def _some_pods(value: object) -> int | str:
    if isinstance(value, str):
        if _PERCENTAGE.fullmatch(value) is None:
            raise ValueError("must be a number of pods, or a percentage from 0% to 100%")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_REPLICAS:
        raise ValueError("must be a number of pods, or a percentage such as 25%")
    return value


def _heap(value: object) -> int | str:
    if isinstance(value, str) and value.endswith("%"):
        if _PERCENTAGE.fullmatch(value) is None or not 1 <= int(value[:-1]) <= MOST_PERCENT:
            raise ValueError(
                f"must be an amount of memory, or a percentage of the limit from 1% to {MOST_PERCENT}%"
            )
        return value
    size = parse_memory(_quantity(value))
    if size < MIB:
        raise ValueError("must be at least 1Mi")
    return size


def _beyond(value: object) -> int | str:
    if isinstance(value, str) and value.endswith("%"):
        if _ANY_PERCENTAGE.fullmatch(value) is None:
            raise ValueError("must be an amount of CPU, or a percentage of the request such as 20%")
        return value
    return parse_cpu(_quantity(value))


Seconds = Annotated[float, BeforeValidator(seconds_of)]
PositiveSeconds = Annotated[float, BeforeValidator(_positive_seconds)]
_Quantity: Final = BeforeValidator(_quantity)  # runs before the validators to the left of it
Millicores = Annotated[int, BeforeValidator(parse_cpu), _Quantity]
Beyond = Annotated[int | str, BeforeValidator(_beyond)]
Heap = Annotated[int | str, BeforeValidator(_heap)]
Bytes = Annotated[int, BeforeValidator(parse_memory), _Quantity]
FineBytes = Annotated[float, BeforeValidator(lambda value: float(parse_quantity(value))), _Quantity]
FineMillicores = Annotated[
    float, BeforeValidator(lambda value: float(parse_quantity(value) * 1000)), _Quantity
]
Factor = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1e12, allow_inf_nan=False)]
Fraction = Annotated[float, BeforeValidator(_number), Field(ge=0, le=1)]
SomePods = Annotated[int | str, BeforeValidator(_some_pods)]
Replicas = Annotated[Count, Field(le=MAX_REPLICAS)]
KindName = Annotated[str, StringConstraints(strict=True, max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
"""A kind of workload. Example: `Rollout`."""
ApiVersion = Annotated[
    str,
    StringConstraints(strict=True, max_length=253, pattern=r"^([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?v[a-z0-9]+$"),
]
"""An API version. Examples: `apps/v1`, `argoproj.io/v1alpha1`."""
Label = Annotated[
    str, StringConstraints(strict=True, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
]
"""A valid name of a container, a workload or a namespace (RFC 1123)."""
PlainText = Annotated[str, StringConstraints(strict=True, max_length=10_000)]
Column = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=253)]
FileName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=4096)]


class Amounts(SpecModel):
    """CPU in millicores and memory in bytes."""

    cpu: Millicores | None = None
    memory: Bytes | None = None

    def by_resource(self) -> dict[Resource, int]:
        """The amounts that are set."""
        amounts: dict[Resource, int | None] = {"cpu": self.cpu, "memory": self.memory}
        return {resource: amount for resource, amount in amounts.items() if amount is not None}


def check_limits(requests: Amounts, limits: Amounts, *at: str) -> None:
    """Raise the `fault` if a request is above its limit."""
    for resource, limit in limits.by_resource().items():
        if requests.by_resource().get(resource, 0) > limit:
            raise fault("must not be less than the request", *at, resource)
