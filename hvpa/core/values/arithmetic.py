"""Blends recommendations with current values, and limits with requests (DESIGN 5.2, 5.3).

All arithmetic uses integers: replicas, millicores, bytes, and weights in parts per million.
"""

from __future__ import annotations

import msgspec

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.values.quantity import Resource
from hvpa.core.values.tuning import OOM_LEAST, OOM_PERCENT, ROUNDED
from hvpa.core.values.weight import FULL

KILOBYTE = 1000
LARGEST = (2**63 - 1) // KILOBYTE * KILOBYTE
"""Largest request or limit that HVPA sets, in millicores or bytes: Kubernetes holds no larger quantity."""
UNIT: dict[Resource, int] = {"cpu": 1, "memory": KILOBYTE}
"""Requests are whole millicores and whole kilobytes (1000 bytes)."""


def ceil_div(numerator: int, denominator: int) -> int:
    """Returns the quotient, rounded up."""
    return -(-numerator // denominator)


def round_up(amount: int, unit: int) -> int:
    """Returns `amount`, rounded up to a multiple of `unit`."""
    return ceil_div(amount, unit) * unit


def after_oom(current: int) -> int:
    """Returns the memory of a container that ran out of `current` bytes. Example: 1Gi becomes 1.2Gi."""
    return max(ceil_div(current * OOM_PERCENT, 100), current + OOM_LEAST)


def two_digits(value: int) -> int:
    """Returns `value`, rounded up to two digits. Example: 1234 becomes 1300."""
    return round_up(value, 10 ** max(0, len(str(value)) - 2))


def blend_replicas(current: int, desired: int, horizontal_ppm: int) -> int:
    """Returns `current + (desired - current) * weight`, rounded towards the desired replicas: up when scaling out, down
    when scaling in (DESIGN 5.2). Example with weight 0.5: 5 to 8 gives 7, 8 to 5 gives 6."""
    scaled = (desired - current) * horizontal_ppm
    return current + (ceil_div(scaled, FULL) if desired > current else scaled // FULL)


def blend_request(resource: Resource, current: int, target: int, vertical_ppm: int) -> int:
    """Returns `current + (target - current) * weight`, see `move_request`. Example: 1000m, target 2000m, weight 0.3:
    1300m."""
    return move_request(resource, current, target - current, vertical_ppm)


def move_request(resource: Resource, current: int, moved: int, vertical_ppm: int) -> int:
    """Returns `current + moved * weight`, rounded up to whole millicores or kilobytes. Rounding never crosses
    `current`, so a request does not rise for a lower target. Example: 1Gi minus 324 bytes at weight 1 stays 1Gi (not
    1073742k)."""
    change = moved * vertical_ppm
    if change == 0:
        return current
    wanted = round_up(ceil_div(current * FULL + change, FULL), UNIT[resource])
    return wanted if change > 0 else min(wanted, current)


class RequestBounds(msgspec.Struct, frozen=True, gc=False):
    """Bounds of a request."""

    lower: int | None = None
    """The VPA policy's `minAllowed`."""
    upper: int | None = None
    """The VPA policy's `maxAllowed`."""
    fixed_limit: int | None = None
    """A bound that can't be exceeded: a fixed limit, or the remainder of the pod's own resources."""

    def clamp(self, request: int) -> int:
        """Returns the nearest request inside. `fixed_limit` wins over `maxAllowed`, which wins over `minAllowed`."""
        request = min(request, LARGEST)
        if self.lower is not None:
            request = max(request, self.lower)
        if self.upper is not None:
            request = min(request, self.upper)
        if self.fixed_limit is not None:
            request = min(request, self.fixed_limit)
        return request


def is_same_size(current: int, wanted: int) -> bool:
    """Whether a request differs from the current request by less than 1/1000, which counts as no change. Example:
    1073742k and 1Gi."""
    return current == wanted or abs(wanted - current) * ROUNDED < current


def scale_limit(
    resource: Resource,
    request: int,
    old_request: int | None,
    old_limit: int | None,
    gap: CpuParams | MemoryParams,
) -> int | None:
    """Returns the limit for a new `request`, from the current pair in the pod template (DESIGN 5.3); None if there was
    no limit.

    If the old limit equals the old request, or there was no request, the limit equals the new request. Otherwise it
    keeps the distance of the gap parameters or, without them, the old ratio. It is never below the request. Example
    without gap parameters: 500m and 1000m become 800m and 1600m.
    """
    if old_limit is None:
        return None
    if not old_request or old_limit == old_request:
        return request
    if gap.percentage is None and gap.value is None:
        scaled = ceil_div(request * old_limit, old_request)
    else:
        by_percentage = 0 if gap.percentage is None else ceil_div(request * (100 + gap.percentage), 100)
        scaled = max(by_percentage, 0 if gap.value is None else request + gap.value)
    return max(request, round_up(min(scaled, LARGEST), UNIT[resource]))


def threshold(value: int | None, percentage: int | None, current: int) -> int:
    """Returns the smallest allowed change: the smaller of `value` and `percentage` of `current`, the only value that is
    set, or 0 if none is (DESIGN 6.3). Example: 100m and 10 percent at 500m: 50m."""
    by_percentage = None if percentage is None else ceil_div(current * percentage, 100)
    if value is None:
        return by_percentage or 0
    return value if by_percentage is None else min(value, by_percentage)
