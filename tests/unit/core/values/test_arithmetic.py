"""Blending, limits and waits (DESIGN 5.2, 5.3, 6.3)."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

import pytest

from builders.build import GIB
from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.core.values.arithmetic import RequestBounds, blend_replicas, blend_request, scale_limit, threshold
from hvpa.core.values.clock import after, doubled

Cases = dict[str, tuple[Any, ...]]
PPM: Final = 10_000
"""One percent in parts per million."""

REPLICAS: Final[Cases] = {
    "out: 3 + 3 x 0.4 = 4.2, rounded up to 5": (3, 6, 40, 5),
    "in: 6 - 3 x 0.4 = 4.8, rounded down to 4": (6, 3, 40, 4),
    "out by half: 1 + 4 x 0.5 = 3": (1, 5, 50, 3),
    "full weight goes all the way out": (3, 6, 100, 6),
    "full weight goes all the way in": (6, 3, 100, 3),
    "no weight does not move out": (3, 6, 0, 3),
    "no weight does not move in": (6, 3, 0, 6),
    "the same count does not move": (4, 4, 50, 4),
    "out: the smallest weight still moves by one": (10, 11, 1, 11),
    "in: the smallest weight still moves by one": (10, 9, 1, 9),
}


@pytest.mark.parametrize(("current", "desired", "percent", "expected"), REPLICAS.values(), ids=REPLICAS)
def test_weight_blends_replicas_rounded_towards_the_desired_ones(
    current: int, desired: int, percent: int, expected: int
) -> None:
    assert blend_replicas(current, desired, percent * PPM) == expected


REQUESTS: Final[Cases] = {
    "1 + (2 - 1) x 0.6 = 1600m": ("cpu", 1000, 2000, 60, 1600),
    "2 - (2 - 1) x 0.6 = 1400m": ("cpu", 2000, 1000, 60, 1400),
    "100.5m is not whole: 101m": ("cpu", 101, 100, 50, 101),
    "from a missing request": ("cpu", 0, 500, 100, 500),
    "2Gi in whole kilobytes is 2147484k": ("memory", GIB, 2 * GIB, 100, 2_147_484_000),
    "1500000.5 bytes are 1501k": ("memory", 1_000_000, 2_000_001, 50, 1_501_000),
    "nothing to do leaves odd bytes alone": ("memory", GIB, GIB, 50, GIB),
    "no weight, no change": ("cpu", 1000, 2000, 0, 1000),
}


@pytest.mark.parametrize(
    ("resource", "current", "target", "percent", "expected"), REQUESTS.values(), ids=REQUESTS
)
def test_weight_blends_requests_in_whole_units(
    resource: Any, current: int, target: int, percent: int, expected: int
) -> None:
    assert blend_request(resource, current, target, percent * PPM) == expected


NO_GAP: Final = CpuParams()
CORE: Final = CpuParams(value="1")
THIRTY: Final = CpuParams(percentage=30)
BOTH: Final = CpuParams(percentage=30, value="1")
LIMITS: Final[Cases] = {
    "no limit: none is set": (1000, 500, None, NO_GAP, None),
    "no limit, gap parameters: none is set": (1000, 500, None, THIRTY, None),
    "limit but no request: the request": (1000, None, 800, NO_GAP, 1000),
    "a request of zero is no request": (1000, 0, 800, NO_GAP, 1000),
    "limit equal to request: the request": (1000, 500, 500, NO_GAP, 1000),
    "limit equal to request: gap parameters don't count": (1000, 500, 500, CORE, 1000),
    "proportional: 1000 x 600 / 400": (1000, 400, 600, NO_GAP, 1500),
    "proportional, rounded up: 2333.3": (1000, 300, 700, NO_GAP, 2334),
    "percentage alone: 800 x 1.3": (800, 500, 700, THIRTY, 1040),
    "value alone: 800 + 1000": (800, 500, 700, CORE, 1800),
    "both: the larger, value": (800, 500, 700, BOTH, 1800),
    "both: the larger, percentage": (8000, 500, 700, BOTH, 10400),
    "percentage, rounded up: 1041.3": (801, 500, 700, THIRTY, 1042),
    "a percentage of 0 is a gap of nothing": (800, 500, 700, CpuParams(percentage=0), 800),
}


@pytest.mark.parametrize(
    ("wanted", "old_request", "old_limit", "gap", "expected"), LIMITS.values(), ids=LIMITS
)
def test_limits_requests_gap_scale_params_or_the_ratio_set_the_limit(
    wanted: int, old_request: int | None, old_limit: int | None, gap: CpuParams, expected: int | None
) -> None:
    assert scale_limit("cpu", wanted, old_request, old_limit, gap) == expected


def test_memory_limits_are_whole_kilobytes() -> None:
    # 1_000_000 x 4 / 3 is not whole
    assert scale_limit("memory", 1_000_000, 3000, 4000, MemoryParams()) == 1_334_000
    assert scale_limit("memory", 1_000_000, 3000, 4000, MemoryParams(value="1")) == 1_001_000


BOUNDS: Final[Cases] = {
    "no bounds": (RequestBounds(), 5, 5),
    "raised to minAllowed": (RequestBounds(lower=10), 5, 10),
    "lowered to maxAllowed": (RequestBounds(upper=10), 15, 10),
    "never above a limit that stays": (RequestBounds(fixed_limit=10), 15, 10),
    "the limit wins over minAllowed": (RequestBounds(lower=20, fixed_limit=10), 5, 10),
    "maxAllowed wins over minAllowed": (RequestBounds(lower=20, upper=10), 5, 10),
}


@pytest.mark.parametrize(("bounds", "wanted", "expected"), BOUNDS.values(), ids=BOUNDS)
def test_min_allowed_max_allowed_and_a_fixed_limit_bound_requests(
    bounds: RequestBounds, wanted: int, expected: int
) -> None:
    assert bounds.clamp(wanted) == expected


THRESHOLDS: Final[Cases] = {
    "the smaller of both: 80 percent of 1000": (3000, 80, 1000, 800),
    "the smaller of both: the value": (300, 80, 1000, 300),
    "value alone": (300, None, 1000, 300),
    "percentage alone": (None, 80, 1000, 800),
    "80 percent of 3 is 2.4: a change of 2 is too small, of 3 not": (None, 80, 3, 3),
    "none set: nothing is too small": (None, None, 1000, 0),
    "of nothing, a percentage is nothing": (None, 80, 0, 0),
}


@pytest.mark.parametrize(("value", "percentage", "current", "expected"), THRESHOLDS.values(), ids=THRESHOLDS)
def test_min_change_threshold_is_the_smaller_of_value_and_percentage(
    value: int | None, percentage: int | None, current: int, expected: int
) -> None:
    assert threshold(value, percentage, current) == expected


@pytest.mark.parametrize(
    ("first", "times", "expected"), [(5, -1, 5), (5, 0, 5), (5, 3, 40), (5, 99, 60), (0, 3, 0), (90, 3, 90)]
)
def test_a_wait_doubles_up_to_the_longest_one(first: int, times: int, expected: int) -> None:
    """Of an hour; one that is longer from the beginning, or nothing, stays."""
    minute = dt.timedelta(minutes=1)
    assert doubled(first * minute, times, 60 * minute) == expected * minute


def test_the_longest_duration_ends_at_the_last_instant() -> None:
    late = dt.datetime(9998, 1, 1, tzinfo=dt.UTC)
    assert after(late, dt.timedelta(days=9999)) == dt.datetime.max.replace(tzinfo=dt.UTC)
