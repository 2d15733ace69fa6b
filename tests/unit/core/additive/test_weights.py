"""Which interval counts (DESIGN 5.1)."""

from __future__ import annotations

from typing import Any

import pytest

from builders import build
from hvpa.core.values.weight import Axes, Bounds, percent, weight_at
from tests.unit.core.named import named


def interval(weight: float, start: int | None = None, last: int | None = None) -> dict[str, Any]:
    bounds = {"startReplicaCount": start, "lastReplicaCount": last}
    return {"vpaWeight": weight, **{name: count for name, count in bounds.items() if count is not None}}


README_1 = [interval(0, 1, 2), interval(0.6, 3, 7), interval(0, 7, 10)]
README_2 = [interval(1, 1, 1), interval(0.6, 2, 4), interval(0, 5, 10)]
BOUNDS = Bounds(1, 10)


@pytest.mark.parametrize(
    ("intervals", "replicas", "desired", "expected"),
    named(
        {
            "inside the first": (README_1, 1, 1, 0),
            "at the end of the first": (README_1, 2, 9, 0),
            "at the start of the second": (README_1, 3, 3, 60),
            "on a shared boundary the first that matches counts": (README_1, 7, 7, 60),
            "inside the last": (README_1, 8, 8, 0),
            "beyond all: no vertical weight": (README_1, 11, 11, 0),
            "before all: no vertical weight": ([interval(30, 3, 5)], 2, 2, 0),
            "in a gap: no vertical weight": ([interval(30, 2, 3), interval(40, 6, 8)], 4, 4, 0),
            "a missing start is minReplicas": ([interval(30, None, 5)], 1, 1, 30),
            "a missing last is maxReplicas": ([interval(30, 3, None)], 10, 10, 30),
            "both missing: from minReplicas to maxReplicas": ([interval(30)], 10, 10, 30),
            "both missing: not beyond maxReplicas": ([interval(30)], 11, 11, 0),
            "weight 100 counts while the HPA wants no other count": (README_2, 1, 1, 100),
            "weight 100 counts while the HPA has no say": (README_2, 1, None, 100),
            "weight 100 and the HPA wants out: the next one below 100": (README_2, 1, 3, 60),
            "wants in: the one before": (
                [interval(40, 1, 2), interval(100, 3, 4), interval(60, 5)],
                3,
                1,
                40,
            ),
            "wants out: the one after": (
                [interval(40, 1, 2), interval(100, 3, 4), interval(60, 5)],
                3,
                5,
                60,
            ),
            "the nearest below 100": ([interval(100, 1, 2), interval(100, 3, 4), interval(20, 5)], 1, 9, 20),
            "none on that side: it stays 100": ([interval(100, 1, 3), interval(20, 4)], 3, 1, 100),
            "none after the last: it stays 100": ([interval(20, 1, 2), interval(100, 3)], 3, 9, 100),
            "weights need not be whole": ([interval(12.5)], 1, 1, 12.5),
            "alone, a weight of 1 is a fraction": ([interval(1)], 1, 1, 100),
        }
    ),
)
def test_the_weight_is_that_of_the_first_interval_that_contains_the_count(
    intervals: list[dict[str, Any]], replicas: int, desired: int | None, expected: float
) -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": intervals}).spec
    assert spec is not None
    weight = weight_at(spec, replicas, desired, BOUNDS, Axes())
    assert weight.percent == expected
    assert weight.horizontal_ppm + weight.vertical_ppm == 1_000_000


@pytest.mark.parametrize(("vertical_only", "expected"), [(True, 100), (False, 0)])
def test_without_intervals_only_a_vpa_alone_scales_vertically(vertical_only: bool, expected: int) -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": None}).spec
    assert spec is not None
    assert weight_at(spec, 3, 5, BOUNDS, Axes(vertical_only)).percent == expected


def test_without_an_hpa_a_missing_end_reaches_to_any_count() -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": [interval(30)]}).spec
    assert spec is not None
    assert weight_at(spec, 999, None, Bounds(), Axes(vertical_only=True)).percent == 30


@pytest.mark.parametrize(("ppm", "expected"), [(0, 0), (600_000, 60), (1_000_000, 100), (125_000, 12.5)])
def test_percentages_are_whole_numbers_where_they_are(ppm: int, expected: float) -> None:
    assert percent(ppm) == expected
    assert isinstance(percent(ppm), type(expected))


def test_bounds_bring_counts_inside() -> None:
    assert [Bounds(2, 5).clamp(count) for count in (0, 2, 4, 9)] == [2, 2, 4, 5]
    assert Bounds().clamp(10_000) == 10_000
    assert Bounds(2, 5).contains(5)
    assert not Bounds(2, 5).contains(1)


@pytest.mark.parametrize(("weight", "desired", "expected"), [(100, 9, 9), (50, 2, 4)])
def test_an_axis_that_can_not_be_used_does_not_hold_back_the_other(
    weight: int, desired: int, expected: int
) -> None:
    """Out, all of the step is the HPA's; in, its interval's share."""
    silent = {"status": {"conditions": [{"type": "RecommendationProvided", "status": "False"}]}}
    hpa = build.hpa(desired, 200 if desired > 6 else 10, replicas=6)
    one = build.hvpa({"weightBasedScalingIntervals": [{"vpaWeight": weight}], "replicas": desired})
    decision = build.decided(build.objects(one, build.workload(6), hpa, build.vpa({"app": {}}, silent)))
    assert (build.counts(decision).target, decision.blocked) == (expected, ())
