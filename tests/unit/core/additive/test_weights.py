"""Which interval counts (DESIGN 5.1)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from hvpa.core.values.weight import AvailableAxes, Bounds, percent, weight_at
from tests.unit.core.named import named


def interval(weight: float, start: int | None = None, last: int | None = None) -> dict[str, Any]:
    bounds = {"startReplicaCount": start, "lastReplicaCount": last}
    return {"vpaWeight": weight, **{name: count for name, count in bounds.items() if count is not None}}


README_1 = [interval(0, 1, 2), interval(0.6, 3, 7), interval(0, 7, 10)]
README_2 = [interval(1, 1, 1), interval(0.6, 2, 4), interval(0, 5, 10)]
GARDENER = [interval(100, 4, 4), interval(0, 2, 3)]
"""As gardener writes them: the interval at maxReplicas comes first."""
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
            "in any order: inside an entry that is later in the list": (GARDENER, 3, 4, 0),
            "in any order: at maxReplicas": (GARDENER, 4, 4, 100),
            "in any order: wants in, from the first of the list": (GARDENER, 4, 2, 0),
            "in any order: wants out, from the last of the list": (
                [interval(60, 5), interval(40, 1, 2), interval(100, 3, 4)],
                3,
                9,
                60,
            ),
            "in any order: wants in, the nearest by count and not in the list": (
                [interval(100, 5), interval(10, 1, 2), interval(30, 3, 4)],
                5,
                1,
                30,
            ),
            "in any order: an end that is missing": ([interval(100, 4), interval(0, None, 3)], 6, 2, 0),
            "an overlap: the first that matches counts": (
                [interval(100, 3, 5), interval(50, 1, 4)],
                4,
                4,
                100,
            ),
            "an overlap: wants in, where the later one counts": (
                [interval(100, 3, 5), interval(50, 1, 4)],
                4,
                1,
                50,
            ),
            "an overlap: wants out, and the later one counts below only": (
                [interval(100, 3, 5), interval(50, 1, 4)],
                4,
                9,
                100,
            ),
            "an overlap: an entry that never counts is no neighbour": (
                [interval(100, 1, 9), interval(50, 2, 3)],
                6,
                1,
                100,
            ),
            "a shared boundary is the neighbour's": ([interval(20, 1, 4), interval(100, 4, 6)], 5, 1, 20),
            "weights need not be whole": ([interval(12.5)], 1, 1, 12.5),
            "alone, a weight of 1 is a fraction": ([interval(1)], 1, 1, 100),
        }
    ),
)
def test_weight_based_scaling_intervals_the_first_that_contains_the_count_wins(
    intervals: list[dict[str, Any]], replicas: int, desired: int | None, expected: float
) -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": intervals}).spec
    assert spec is not None
    weight = weight_at(spec, replicas, desired, BOUNDS, AvailableAxes())
    assert weight.percent == expected
    assert weight.horizontal_ppm + weight.vertical_ppm == 1_000_000


@given(st.permutations([interval(40, 1, 2), interval(100, 3, 4), interval(60, 5, 8), interval(100, 9, 10)]))
def test_weight_based_scaling_intervals_without_an_overlap_need_no_order(
    intervals: list[dict[str, Any]],
) -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": intervals}).spec
    assert spec is not None
    expected = {(3, 1): 40, (3, 7): 60, (4, 4): 100, (9, 1): 60, (10, 10): 100, (2, 9): 40, (6, 1): 60}
    weights = {
        (replicas, desired): weight_at(spec, replicas, desired, BOUNDS, AvailableAxes()).percent
        for replicas, desired in expected
    }
    assert weights == expected


def _nearest(intervals: list[tuple[int, int, int]], replicas: int, step: int) -> int | None:
    """The weight of the first count, from `replicas` on by `step`, at which an interval with another weight than 100
    counts: found count by count."""
    count = replicas + step
    while 1 <= count <= 30:
        weight = next((weight for weight, start, last in intervals if start <= count <= last), None)
        if weight is not None and weight < 100:
            return weight
        count += step
    return None


_RANGES = st.tuples(st.sampled_from([0, 2, 40, 100]), st.integers(1, 12), st.integers(0, 6))


@given(st.lists(_RANGES, min_size=1, max_size=6), st.integers(1, 20), st.sampled_from([-1, 1]))
def test_weight_based_scaling_intervals_of_100_use_the_nearest_weight_below_100(
    ranges: list[tuple[int, int, int]], replicas: int, step: int
) -> None:
    intervals = [(100, replicas, replicas)] + [
        (weight, start, start + more) for weight, start, more in ranges
    ]
    spec = build.hvpa({"weightBasedScalingIntervals": [interval(*entry) for entry in intervals]}).spec
    assert spec is not None
    weight = weight_at(spec, replicas, replicas + step, Bounds(1, 30), AvailableAxes()).percent
    nearest = _nearest(intervals, replicas, step)
    assert weight == (100 if nearest is None else nearest)


@pytest.mark.parametrize(
    ("intervals", "axes", "expected"),
    named(
        {
            "a VPA alone": (None, AvailableAxes(vertical_only=True), (100, "no intervals and no HPA: all vertical")),
            "beside an HPA": (None, AvailableAxes(), (0, "no intervals: all horizontal")),
            "a hole": ([interval(30, 5)], AvailableAxes(), (0, "no interval contains 3 replicas: all horizontal")),
            "inside": ([interval(5, 1, 2), interval(30)], AvailableAxes(), (30, "interval 2 of 2 contains 3 replicas")),
            "weight 100": (
                [interval(100, 1, 3), interval(30)], AvailableAxes(),
                (30, "interval 1 has weight 100, the HPA recommends 5: using interval 2")),
            "a VPA without a target": (
                [interval(30)], AvailableAxes(vertical_usable=False),
                (0, "the vertical axis can't be used: scaling out is all horizontal")),
        }
    ),
)  # fmt: skip
def test_a_vpa_weight_comes_with_its_reason(
    intervals: list[dict[str, Any]] | None, axes: AvailableAxes, expected: tuple[int, str]
) -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": intervals}).spec
    assert spec is not None
    weight = weight_at(spec, 3, 5, BOUNDS, axes)
    assert (weight.percent, weight.why) == expected


def test_weight_based_scaling_intervals_without_an_end_reach_any_count() -> None:
    spec = build.hvpa({"weightBasedScalingIntervals": [interval(30)]}).spec
    assert spec is not None
    assert weight_at(spec, 999, None, Bounds(), AvailableAxes(vertical_only=True)).percent == 30


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
def test_weight_of_an_axis_that_can_not_be_used_does_not_hold_the_other(
    weight: int, desired: int, expected: int
) -> None:
    """Out, all of the step is the HPA's; in, its interval's share."""
    silent = {"status": {"conditions": [{"type": "RecommendationProvided", "status": "False"}]}}
    hpa = build.hpa(desired, 200 if desired > 6 else 10, replicas=6)
    hvpa = build.hvpa({"weightBasedScalingIntervals": [{"vpaWeight": weight}], "replicas": desired})
    decision = build.decided(build.objects(hvpa, build.workload(6), hpa, build.vpa({"app": {}}, silent)))
    assert (build.counts(decision).target, decision.blocked) == (expected, ())
