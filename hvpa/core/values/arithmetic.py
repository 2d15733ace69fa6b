"""Blending a recommendation with the present value, and limits with requests (DESIGN 5.2, 5.3).

All arithmetic is on whole numbers: replicas, millicores, bytes, and weights in parts per million.
"""

from __future__ import annotations

import msgspec

from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.api.values.quantity import Resource
from hvpa.core.values.tuning import ROUNDED
from hvpa.core.values.weight import FULL

KILOBYTE = 1000
LARGEST = (2**63 - 1) // KILOBYTE * KILOBYTE
"""The largest request or limit that is set, in millicores or bytes: Kubernetes holds no larger quantity."""
UNIT: dict[Resource, int] = {"cpu": 1, "memory": KILOBYTE}
"""Requests are set in whole millicores and whole kilobytes (of 1000 bytes)."""


def ceil_div(numerator: int, denominator: int) -> int:
    """The quotient rounded up."""
    return -(-numerator // denominator)


def round_up(amount: int, unit: int) -> int:
    """`amount` rounded up to a multiple of `unit`."""
    return ceil_div(amount, unit) * unit


def two_digits(value: int) -> int:
    """`value` rounded up to two digits: of 1234, 1300."""
    return round_up(value, 10 ** max(0, len(str(value)) - 2))


def blend_replicas(current: int, desired: int, horizontal_ppm: int) -> int:
    """`current + (desired - current) * weight`, rounded towards the desired replicas: up when scaling out,
    down when scaling in (DESIGN 5.2). Example with weight 0.5: from 5 to 8 desired it is 7, from 8 to 5 it is 6."""
    scaled = (desired - current) * horizontal_ppm
    return current + (ceil_div(scaled, FULL) if desired > current else scaled // FULL)


def blend_request(resource: Resource, current: int, target: int, vertical_ppm: int) -> int:
    """`current + (target - current) * weight`, see `move_request`. 1000m, target 2000m, weight 0.3: 1300m."""
    return move_request(resource, current, target - current, vertical_ppm)


def move_request(resource: Resource, current: int, moved: int, vertical_ppm: int) -> int:
    """`current + moved * weight`, rounded up to whole millicores or kilobytes, but never across `current`: a request
    does not rise for a target below it. 1Gi, 324 bytes less, weight 1: 1Gi, and not 1073742k."""
    change = moved * vertical_ppm
    if change == 0:
        return current
    wanted = round_up(ceil_div(current * FULL + change, FULL), UNIT[resource])
    return wanted if change > 0 else min(wanted, current)


class RequestBounds(msgspec.Struct, frozen=True, gc=False):
    """What a request must stay within: the VPA policy's `minAllowed` and `maxAllowed`, and what can't be exceeded: a
    limit that stays put, or what the pod's own resources leave."""

    lower: int | None = None
    upper: int | None = None
    fixed_limit: int | None = None

    def clamp(self, request: int) -> int:
        """The nearest request inside; the limit wins over `maxAllowed`, that over `minAllowed`."""
        request = min(request, LARGEST)
        if self.lower is not None:
            request = max(request, self.lower)
        if self.upper is not None:
            request = min(request, self.upper)
        if self.fixed_limit is not None:
            request = min(request, self.fixed_limit)
        return request


def is_same_size(current: int, wanted: int) -> bool:
    """Whether a request differs by less than one part of a thousand from the present one, which is no change: 1073742k
    beside 1Gi."""
    return current == wanted or abs(wanted - current) * ROUNDED < current


def scale_limit(
    resource: Resource,
    request: int,
    old_request: int | None,
    old_limit: int | None,
    gap: CpuParams | MemoryParams,
) -> int | None:
    """The limit that goes with a new `request`, from the pair that the pod template has now (DESIGN 5.3).

    None where no limit was set. The limit follows the request where it was equal to it or the request was missing,
    keeps the given distance where there are gap parameters, and else the ratio of the old pair. Never below the
    request.
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
    """The smallest change that is big enough: the smaller of `value` and `percentage` of `current` when both are set,
    the one that is set otherwise, 0 when none is (DESIGN 6.3). A change is too small when it is below it. Example:
    of 100m and 10 percent, at 500m, it is 50m."""
    by_percentage = None if percentage is None else ceil_div(current * percentage, 100)
    if value is None:
        return by_percentage or 0
    return value if by_percentage is None else min(value, by_percentage)
