"""Blending and limits (DESIGN 5.2, 5.3, 6.3)."""

from __future__ import annotations

import pytest

from builders.build import GIB
from hvpa.api.hvpa.scaling import CpuParams, MemoryParams
from hvpa.core.values.arithmetic import RequestBounds, blend_replicas, blend_request, scale_limit, threshold

PPM = 10_000
"""One percent in parts per million."""


@pytest.mark.parametrize(
    ("current", "desired", "horizontal_percent", "expected"),
    [
        pytest.param(3, 6, 40, 5, id="out: 3 + 3 x 0.4 = 4.2, rounded up to 5"),
        pytest.param(6, 3, 40, 4, id="in: 6 - 3 x 0.4 = 4.8, rounded down to 4"),
        pytest.param(1, 5, 50, 3, id="out by half: 1 + 4 x 0.5 = 3"),
        pytest.param(3, 6, 100, 6, id="full weight goes all the way out"),
        pytest.param(6, 3, 100, 3, id="full weight goes all the way in"),
        pytest.param(3, 6, 0, 3, id="no weight does not move out"),
        pytest.param(6, 3, 0, 6, id="no weight does not move in"),
        pytest.param(4, 4, 50, 4, id="the same count does not move"),
        pytest.param(10, 11, 1, 11, id="out: the smallest weight still moves by one"),
        pytest.param(10, 9, 1, 9, id="in: the smallest weight still moves by one"),
    ],
)
def test_replicas_are_blended_and_rounded_towards_the_wish(
    current: int, desired: int, horizontal_percent: int, expected: int
) -> None:
    assert blend_replicas(current, desired, horizontal_percent * PPM) == expected


@pytest.mark.parametrize(
    ("resource", "current", "target", "percent", "expected"),
    [
        pytest.param("cpu", 1000, 2000, 60, 1600, id="1 + (2 - 1) x 0.6 = 1600m"),
        pytest.param("cpu", 2000, 1000, 60, 1400, id="2 - (2 - 1) x 0.6 = 1400m"),
        pytest.param("cpu", 101, 100, 50, 101, id="100.5m is not whole: 101m"),
        pytest.param("cpu", 0, 500, 100, 500, id="from a missing request"),
        pytest.param("memory", GIB, 2 * GIB, 100, 2_147_484_000, id="2Gi in whole kilobytes is 2147484k"),
        pytest.param("memory", 1_000_000, 2_000_001, 50, 1_501_000, id="1500000.5 bytes are 1501k"),
        pytest.param("memory", GIB, GIB, 50, GIB, id="nothing to do leaves odd bytes alone"),
        pytest.param("cpu", 1000, 2000, 0, 1000, id="no weight, no change"),
    ],
)
def test_requests_are_blended_in_whole_units(
    resource: str, current: int, target: int, percent: int, expected: int
) -> None:
    assert blend_request(resource, current, target, percent * PPM) == expected  # type: ignore[arg-type]


NO_GAP = CpuParams()


@pytest.mark.parametrize(
    ("request_", "old_request", "old_limit", "gap", "expected"),
    [
        pytest.param(1000, 500, None, NO_GAP, None, id="no limit: none is set"),
        pytest.param(
            1000, 500, None, CpuParams(percentage=50), None, id="no limit, gap parameters: none is set"
        ),
        pytest.param(1000, None, 800, NO_GAP, 1000, id="limit but no request: the request"),
        pytest.param(1000, 0, 800, NO_GAP, 1000, id="a request of zero is no request"),
        pytest.param(1000, 500, 500, NO_GAP, 1000, id="limit equal to request: the request"),
        pytest.param(
            1000,
            500,
            500,
            CpuParams(value="1"),
            1000,
            id="limit equal to request: gap parameters don't count",
        ),
        pytest.param(1000, 400, 600, NO_GAP, 1500, id="proportional: 1000 x 600 / 400"),
        pytest.param(1000, 300, 700, NO_GAP, 2334, id="proportional, rounded up: 2333.3"),
        pytest.param(800, 500, 700, CpuParams(percentage=30), 1040, id="percentage alone: 800 x 1.3"),
        pytest.param(800, 500, 700, CpuParams(value="1"), 1800, id="value alone: 800 + 1000"),
        pytest.param(800, 500, 700, CpuParams(percentage=30, value="1"), 1800, id="both: the larger, value"),
        pytest.param(
            8000, 500, 700, CpuParams(percentage=30, value="1"), 10400, id="both: the larger, percentage"
        ),
        pytest.param(801, 500, 700, CpuParams(percentage=30), 1042, id="percentage, rounded up: 1041.3"),
        pytest.param(800, 500, 700, CpuParams(percentage=0), 800, id="a percentage of 0 is a gap of nothing"),
    ],
)
def test_limits_follow_requests(
    request_: int, old_request: int | None, old_limit: int | None, gap: CpuParams, expected: int | None
) -> None:
    assert scale_limit("cpu", request_, old_request, old_limit, gap) == expected


def test_memory_limits_are_whole_kilobytes() -> None:
    # 1_000_000 x 3 / 2 = 1_500_000 exactly; x 1.3333 would not be whole
    assert scale_limit("memory", 1_000_000, 3000, 4000, MemoryParams()) == 1_334_000
    assert scale_limit("memory", 1_000_000, 3000, 4000, MemoryParams(value="1")) == 1_001_000


@pytest.mark.parametrize(
    ("bounds", "request_", "expected"),
    [
        pytest.param(RequestBounds(), 5, 5, id="no bounds"),
        pytest.param(RequestBounds(lower=10), 5, 10, id="raised to minAllowed"),
        pytest.param(RequestBounds(upper=10), 15, 10, id="lowered to maxAllowed"),
        pytest.param(RequestBounds(fixed_limit=10), 15, 10, id="never above a limit that stays"),
        pytest.param(RequestBounds(lower=20, fixed_limit=10), 5, 10, id="the limit wins over minAllowed"),
        pytest.param(RequestBounds(lower=20, upper=10), 5, 10, id="maxAllowed wins over minAllowed"),
    ],
)
def test_requests_stay_inside_their_bounds(bounds: RequestBounds, request_: int, expected: int) -> None:
    assert bounds.clamp(request_) == expected


@pytest.mark.parametrize(
    ("value", "percentage", "current", "expected"),
    [
        pytest.param(3000, 80, 1000, 800, id="the smaller of both: 80 percent of 1000"),
        pytest.param(300, 80, 1000, 300, id="the smaller of both: the value"),
        pytest.param(300, None, 1000, 300, id="value alone"),
        pytest.param(None, 80, 1000, 800, id="percentage alone"),
        pytest.param(None, 80, 3, 3, id="80 percent of 3 is 2.4: a change of 2 is too small, of 3 not"),
        pytest.param(None, None, 1000, 0, id="none set: nothing is too small"),
        pytest.param(None, 80, 0, 0, id="of nothing, a percentage is nothing"),
    ],
)
def test_the_threshold_is_the_smaller_of_value_and_percentage(
    value: int | None, percentage: int | None, current: int, expected: int
) -> None:
    assert threshold(value, percentage, current) == expected
