"""The path from total demand to replicas and sizes, by example (DESIGN 5.4, 5.5)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from builders import build
from hvpa.api.schema.fields import INT64_MAX
from hvpa.core.path.build import (
    ResourceInterval,
    WeightInterval,
    path_of_intervals,
    path_of_weights,
    weight_intervals,
)
from hvpa.core.path.curve import Margin, ResourceCurve, SizeBounds
from hvpa.core.path.path import DEFAULT_OVERLAP, Overlaps, Path, Point, ResourceKey
from hvpa.core.values.weight import FULL, Bounds

GIB = 1024**3
CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
PERCENT = FULL // 100
TEN, FIVE = Bounds(1, 10), Bounds(1, 5)
CORE, HALF = SizeBounds(base=1000), SizeBounds(base=500)
FIVE_CPU = tuple(ResourceInterval(n, size) for n, size in enumerate((500, 1000, 2000, 4000, 8000), 1))
FIVE_MEMORY = tuple(ResourceInterval(n, size * GIB) for n, size in enumerate((2, 4, 8, 16, 32), 1))


def weighted(
    *intervals: tuple[float, int | None, int | None],
    counts: Bounds = TEN,
    size_bounds: SizeBounds = CORE,
) -> Path:
    """A path of one CPU container resource; weights in percent."""
    parts = tuple(WeightInterval(round(weight * PERCENT), start, last) for weight, start, last in intervals)
    return path_of_weights(parts, counts, ((CPU, size_bounds),))


def written(*parts: ResourceInterval, counts: Bounds = FIVE, size_bounds: SizeBounds = HALF) -> Path:
    return path_of_intervals(counts, ((CPU, size_bounds, parts),))


def curve(path: Path) -> ResourceCurve:
    return path.curves[CPU]


def tops(path: Path, last: int = 10) -> list[int | None]:
    return [curve(path).top(count) for count in range(path.counts.lower, last + 1)]


FIVE_ROWS = path_of_intervals(
    Bounds(1, 5), ((CPU, SizeBounds(base=500), FIVE_CPU), (MEMORY, SizeBounds(base=2 * GIB), FIVE_MEMORY))
)


def test_five_cores_at_weight_50_are_three_pods_of_five_thirds() -> None:
    path = weighted((50, None, None))
    assert path.point({CPU: 5000}) == Point(3, {CPU: 1667}, CPU, ())
    assert 3 * 1667 < 9 * 1000  # what Additive allocates for the same demand


@pytest.mark.parametrize(
    ("demand", "replicas"),
    [(1, 1), (500, 1), (501, 2), (2000, 2), (6000, 3), (6001, 4), (16000, 4), (16001, 5)],
)
def test_the_five_row_table_serves_a_total_with_the_row_that_reaches_it(demand: int, replicas: int) -> None:
    assert FIVE_ROWS.count({CPU: demand}) == replicas


def test_the_slot_that_needs_most_replicas_decides() -> None:
    demand = {CPU: 4000, MEMORY: 26 * GIB}
    assert FIVE_ROWS.counts_of(demand) == {CPU: 3, MEMORY: 4}
    assert FIVE_ROWS.point(demand) == Point(4, {CPU: 1000, MEMORY: 26 * GIB // 4}, MEMORY, ())


def test_beyond_the_last_row_the_table_is_saturated() -> None:
    point = FIVE_ROWS.point({CPU: 40_001, MEMORY: GIB})
    assert point == Point(5, {CPU: 8000, MEMORY: GIB // 5 + 1}, CPU, (CPU,))


def test_a_slot_without_a_path_and_a_slot_without_a_demand_have_no_say() -> None:
    other = ResourceKey("sidecar", "cpu")
    assert FIVE_ROWS.point({other: 10**6}) == Point(1, {}, None, ())
    assert FIVE_ROWS.point({other: 10**6, CPU: 700}) == Point(2, {CPU: 350}, CPU, ())
    assert FIVE_ROWS.present(usual(1, {CPU: 500}), {other: 5, MEMORY: 5}) == Point(1, {CPU: 500}, None, ())


# --- weights ---------------------------------------------------------------------------------------------------------
def test_the_first_example_of_gardener_is_flat_rises_and_is_flat() -> None:
    path = weighted((0, 1, 2), (60, 3, 7), (0, 7, 10), size_bounds=SizeBounds(base=400, upper=3000))
    # 400 * (n / 3) ** 1.5 from 3 to 7; at the last count the rest is vertical up to maxAllowed
    assert tops(path) == [400, 400, 400, 616, 861, 1132, 1426, 1426, 1426, 3000]


def test_the_second_example_of_gardener_is_vertical_at_one_and_horizontal_at_max_allowed() -> None:
    intervals = ((100.0, 1, 1), (60.0, 2, 4), (0.0, 5, 10))
    path = weighted(*intervals, size_bounds=SizeBounds(base=400, upper=3000))
    assert tops(path) == [3000] * 10
    assert path.point({CPU: 2999}) == Point(1, {CPU: 2999}, CPU, ())
    assert path.point({CPU: 3001}) == Point(2, {CPU: 1501}, CPU, ())
    assert weighted(*intervals, size_bounds=SizeBounds(base=400)).count({CPU: 10**9}) == 1  # it never ends


def test_the_third_example_of_gardener_ends_with_larger_pods_at_max_replicas() -> None:
    path = weighted((0, 1, 3), (60, 4, 10), size_bounds=SizeBounds(base=100))
    assert tops(path) == [100, 100, 100, 100, 140, 184, 232, 283, 338, None]
    assert path.point({CPU: 10**9}) == Point(10, {CPU: 10**8}, CPU, ())


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        pytest.param([], [10, 10, 10, 10, 10], id="no interval that holds a count: all horizontal"),
        pytest.param([(50, 2, 3)], [10, 10, 15, 20, 20], id="0 before the first and after the last"),
        pytest.param([(50, 1, 2), (50, 4, None)], [10, 20, 30, 30, 38], id="0 in a gap"),
        pytest.param([(50, 1, 3), (0, 3, None)], [10, 20, 30, 30, 30], id="a shared boundary is the later's"),
        pytest.param([(50, 1, 4), (0, 2, 6)], [10, 20, 30, 40, 40], id="overlapping: the first that matches"),
        pytest.param([(0, 4, 6), (50, 1, 3)], [10, 20, 30, 40, 40], id="out of order"),
        pytest.param([(50, 1, 2), (50, 3, None)], [10, 20, 30, 40, 50], id="equal neighbours are one"),
        pytest.param(
            [(0, 1, 2), (100, 3, 3), (0, 3, None)], [10, 10, 100, 100, 100], id="no width is enough for 100"
        ),
        pytest.param([(80, 1, None)], [10, 100, 100, 100, 100], id="maxAllowed, then all horizontal"),
        pytest.param([(80, 1, 3), (50, 4, None)], [10, 100, 100, 100, 100], id="once at maxAllowed, always"),
        pytest.param([(99.9999, 1, 3), (0, 4, None)], [10, 100, 100, 100, 100], id="beyond all quantities"),
    ],
)
def test_the_weight_that_a_count_is_left_with(
    intervals: list[tuple[float, int, int]], expected: list[int]
) -> None:
    path = weighted(*intervals, counts=Bounds(1, 6), size_bounds=SizeBounds(base=10, upper=100))
    assert tops(path, 5) == expected


def test_a_weight_beyond_all_quantities_without_an_upper_bound_has_no_end() -> None:
    path = weighted((99.9999, 1, 3), (50, 4, None), counts=Bounds(1, None), size_bounds=SizeBounds(base=10))
    assert tops(path, 5) == [10, None, None, None, None]
    assert path.point({CPU: 10**12}) == Point(2, {CPU: 10**12 // 2}, CPU, ())


def test_a_path_that_begins_at_more_replicas_begins_at_its_base_there() -> None:
    path = weighted((50, 1, None), counts=Bounds(3, 10), size_bounds=SizeBounds(base=300))
    assert tops(path, 5) == [300, 400, 500]
    with pytest.raises(ValueError, match="begins at 3 replicas: there is no size for 2"):
        curve(path).top(2)


def test_one_replica_count_is_all_vertical() -> None:
    path = weighted((0, None, None), counts=Bounds(4, 4), size_bounds=SizeBounds(base=100, upper=1000))
    assert path.point({CPU: 3999}) == Point(4, {CPU: 1000}, CPU, ())
    assert path.point({CPU: 4001}) == Point(4, {CPU: 1000}, CPU, (CPU,))
    assert weighted((0, None, None), counts=Bounds(0, 0)).counts == Bounds(1, 1)


@pytest.mark.parametrize(
    ("size_bounds", "expected"),
    [
        pytest.param(SizeBounds(base=0, upper=70), [70, 70, 70], id="no base: vertical up to maxAllowed"),
        pytest.param(SizeBounds(base=0), [None, None, None], id="no base and no end"),
        pytest.param(SizeBounds(base=0, lower=10, upper=70), [10, 20, 30], id="minAllowed is the base"),
        pytest.param(SizeBounds(base=90, upper=70), [70, 70, 70], id="a base above maxAllowed"),
        pytest.param(
            SizeBounds(base=9, lower=90, upper=70), [70, 70, 70], id="maxAllowed wins over minAllowed"
        ),
        pytest.param(SizeBounds(base=9, upper=0), [1, 1, 1], id="nothing is smaller than one unit"),
        pytest.param(SizeBounds(base=1500, unit=1000), [1500, 3000, 5000], id="whole units above the base"),
        pytest.param(
            SizeBounds(base=1500, upper=4500, unit=1000), [1500, 3000, 4500], id="and the upper bound"
        ),
    ],
)
def test_bounds_of_the_size(size_bounds: SizeBounds, expected: list[int | None]) -> None:
    assert tops(weighted((50, None, None), size_bounds=size_bounds), 3) == expected


def test_without_an_end_to_replicas_a_demand_is_still_found() -> None:
    path = weighted((0, None, None), counts=Bounds(2, None), size_bounds=SizeBounds(base=1))
    for demand, expected in [(0, 2), (2, 2), (3, 3), (10**12, 10**12), (10**12 + 1, 10**12 + 1)]:
        assert path.count({CPU: demand}) == expected


def test_sizes_are_rounded_up_to_whole_units_but_not_above_the_curve() -> None:
    path = weighted((50, None, None), size_bounds=SizeBounds(base=1_073_741_824, unit=1000))
    assert path.sizes(3, {CPU: 3 * 10**9 + 1}) == {CPU: 1_000_001_000}
    assert path.sizes(1, {CPU: 1_073_741_824}) == {CPU: 1_073_741_824}


def test_on_a_flat_stretch_pods_keep_their_size_whatever_the_demand() -> None:
    path = weighted((0, 1, 3), (50, 3, 5), (0, 5, None), size_bounds=SizeBounds(base=1500, unit=1000))
    assert [path.point({CPU: demand}) for demand in (0, 1, 1500, 1501, 4500)] == [
        Point(1, {CPU: 1500}, CPU, ()),
        Point(1, {CPU: 1500}, CPU, ()),
        Point(1, {CPU: 1500}, CPU, ()),
        Point(2, {CPU: 1500}, CPU, ()),
        Point(3, {CPU: 1500}, CPU, ()),
    ]
    assert path.point({CPU: 4501}) == Point(4, {CPU: 2000}, CPU, ())  # on its way up it follows the demand
    assert path.point({CPU: 15_001}) == Point(6, {CPU: 3000}, CPU, ())
    assert path.sizes(2, {CPU: 4000}) == {
        CPU: 2000
    }  # a count that is held is made up for by size all the same
    assert path.sizes(10, {CPU: 1}) == {
        CPU: 3000
    }  # flat to the very end, and whole units are no reason to change
    uneven = weighted((0, None, None), size_bounds=SizeBounds(base=1500, unit=1000))
    assert uneven.sizes(10, {CPU: 1}) == {CPU: 1500}


def test_horizontal_only_is_flat_and_linear_is_not() -> None:
    path = written(ResourceInterval(1, 100), ResourceInterval(3, 300, True), ResourceInterval(5, 500))
    assert [path.sizes(count, {CPU: 1})[CPU] for count in range(1, 6)] == [1, 300, 300, 1, 1]
    assert path.point({CPU: 101}) == Point(2, {CPU: 300}, CPU, ())
    bounded = written(ResourceInterval(3, 300, True), size_bounds=SizeBounds(upper=200))
    assert bounded.sizes(2, {CPU: 1}) == {CPU: 200}


def test_a_count_that_is_held_is_made_up_for_by_size() -> None:
    path = weighted((50, None, None), size_bounds=SizeBounds(base=1000, lower=500, upper=4000))
    assert path.sizes(2, {CPU: 5000}) == {CPU: 2500}
    assert path.sizes(10, {CPU: 3000}) == {CPU: 500}
    assert path.short(2, {CPU: 8000}) == ()
    assert path.short(2, {CPU: 8001}) == (CPU,)


def test_the_weights_of_an_hvpa() -> None:
    fractions = [{"vpaWeight": 0.6, "startReplicaCount": 2, "lastReplicaCount": 4}, {"vpaWeight": 1}]
    spec = build.hvpa({"weightBasedScalingIntervals": fractions}).spec
    plain = build.hvpa({"weightBasedScalingIntervals": None}).spec
    assert spec is not None
    assert plain is not None
    assert weight_intervals(spec, False) == (WeightInterval(60 * PERCENT, 2, 4), WeightInterval(FULL))
    assert weight_intervals(plain, True) == (WeightInterval(FULL),)
    assert weight_intervals(plain, False) == (WeightInterval(0),)


# --- intervals that are written out -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        pytest.param([ResourceInterval(5, 100)], [100] * 5, id="linear from nothing is flat"),
        pytest.param(
            [ResourceInterval(1, 100), ResourceInterval(5, 300)],  # totals 100, 450, 800, 1150, 1500
            [100, 225, 267, 288, 300],
            id="linear shares totals",
        ),
        pytest.param(
            [ResourceInterval(1, 100), ResourceInterval(5, 300, True)],
            [100, 300, 300, 300, 300],
            id="horizontalOnly",
        ),
        pytest.param([ResourceInterval(2, 100)], [100] * 5, id="after the last all is horizontal"),
        pytest.param(
            [ResourceInterval(2, 100), ResourceInterval(9, 900)],
            [100, 100, 443, 615, 900],
            id="maxReplicas first",
        ),
    ],
)
def test_effective_intervals(parts: list[ResourceInterval], expected: list[int]) -> None:
    assert tops(written(*parts), 5) == expected


def test_min_replicas_moves_no_boundary() -> None:
    parts = (ResourceInterval(1, 100), ResourceInterval(5, 300))
    assert tops(written(*parts, counts=Bounds(3, 5)), 5) == tops(written(*parts), 5)[2:]


def test_bounds_and_units_of_what_is_written() -> None:
    parts = (ResourceInterval(1, 100), ResourceInterval(5, 300))
    assert tops(written(*parts, size_bounds=SizeBounds(lower=110, upper=270)), 5) == [110, 225, 267, 270, 270]
    assert tops(written(*parts, size_bounds=SizeBounds(lower=400)), 5) == [400] * 5
    assert tops(written(*parts, size_bounds=SizeBounds(unit=50)), 5) == [100, 250, 300, 300, 300]


def test_a_slot_without_intervals_is_all_vertical_and_has_a_say_at_its_upper_bound_alone() -> None:
    path = written(size_bounds=SizeBounds(base=500, upper=900))
    assert path.point({CPU: 900}) == Point(1, {CPU: 900}, CPU, ())
    assert path.point({CPU: 901}) == Point(2, {CPU: 451}, CPU, ())
    assert path.point({CPU: 4501}) == Point(5, {CPU: 900}, CPU, (CPU,))
    assert written(size_bounds=SizeBounds(base=500)).point({CPU: 10**9}) == Point(1, {CPU: 10**9}, CPU, ())
    assert tops(written(size_bounds=SizeBounds(upper=0)), 5) == [1] * 5  # nothing is smaller than one unit


@pytest.mark.parametrize(
    "parts",
    [
        [ResourceInterval(0, 100)],
        [ResourceInterval(2, 100), ResourceInterval(2, 200)],
        [ResourceInterval(2, 100), ResourceInterval(3, 99)],
        [ResourceInterval(2, 0)],
    ],
)
def test_what_is_written_must_rise(parts: list[ResourceInterval]) -> None:
    with pytest.raises(ValueError, match="replicas must rise and sizes must not fall"):
        written(*parts)


# --- overlap ---------------------------------------------------------------------------------------------------------
def test_an_overlap_lowers_the_boundaries_for_scaling_in() -> None:
    # the table of gardener's redesign: 30 percent below 2, 6 and 16 cores; 250m below 500m
    overlap: Overlaps = {"cpu": Margin(250, 30)}
    for boundary, replicas in [(250, 1), (1400, 2), (4200, 3), (11_200, 4)]:
        assert FIVE_ROWS.count_in({CPU: boundary}, overlap) == replicas
        assert FIVE_ROWS.count_in({CPU: boundary + 1}, overlap) == replicas + 1


def test_replicas_stay_inside_the_overlap() -> None:
    overlap: Overlaps = {"cpu": DEFAULT_OVERLAP}
    assert [FIVE_ROWS.settled(4, {CPU: demand}, overlap) for demand in (5400, 5401, 16_000, 16_001)] == [
        3,
        4,
        4,
        5,
    ]
    assert [FIVE_ROWS.settled(4, {CPU: demand}, {}) for demand in (5401, 6000, 6001)] == [3, 3, 4]
    assert FIVE_ROWS.settled(9, {CPU: 40_000}, overlap) == 5


def test_no_demand_scales_in_past_any_overlap_and_no_demand_past_a_whole_one() -> None:
    assert FIVE_ROWS.settled(4, {CPU: 0}, {"cpu": Margin(10**6, 100)}) == 1
    assert FIVE_ROWS.settled(4, {CPU: 1}, {"cpu": Margin(0, 100)}) == 4
    assert Margin(0, 100).raised(INT64_MAX + 5) == INT64_MAX + 5


# --- base usage ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("margin", "size", "work"),
    [
        (Margin(), 1000, 1000),
        (Margin(50, 5), 800, 750),
        (Margin(50, 5), 2000, 1900),
        (Margin(950), 1000, 100),
        (Margin(950), 1009, 101),
        (Margin(0, 95), 1000, 100),
        (Margin(0, 100), 1000, 100),
    ],
)
def test_base_usage_is_the_larger_share_but_leaves_a_tenth(margin: Margin, size: int, work: int) -> None:
    assert margin.work(size) == work
    assert margin.work(margin.size(work) - 1) < work <= margin.work(margin.size(work))


def test_base_usage_is_put_back_on_every_size() -> None:
    path = weighted((50, None, None), size_bounds=SizeBounds(base=1000, reserve=Margin(200)))
    # boundaries: 1 * 800, 2 * 1800, 3 * 2800
    assert path.count({CPU: 3600}) == 2
    assert path.point({CPU: 3601}) == Point(3, {CPU: 1401}, CPU, ())
    assert path.sizes(1, {CPU: 0}) == {CPU: 0}


# --- present demand --------------------------------------------------------------------------------------------------
def usual(replicas: int, sizes: dict[ResourceKey, int]) -> Point:
    return Point(replicas, sizes, None, ())


def test_present_demand_takes_replicas_and_leaves_the_size_to_usual_demand() -> None:
    path = weighted((50, None, None))
    assert path.present(path.point({CPU: 1000}), {CPU: 5000}) == Point(5, {CPU: 1000}, CPU, ())
    assert path.present(path.point({CPU: 5000}), {CPU: 1000}) == Point(1, {CPU: 1667}, CPU, ())


def test_below_the_base_point_pods_are_more_as_well() -> None:
    path = weighted((50, None, None), size_bounds=SizeBounds(base=1000))
    assert path.present(usual(1, {CPU: 300}), {CPU: 900}) == Point(3, {CPU: 300}, CPU, ())
    assert path.present(usual(1, {CPU: 300}), {CPU: 2001}) == Point(7, {CPU: 300}, CPU, ())


def test_at_fewer_replicas_a_flat_stretch_is_no_reason_for_larger_pods() -> None:
    size_bounds_of = ((CPU, CORE), (MEMORY, SizeBounds(base=GIB)))
    path = path_of_weights((WeightInterval(0, 1, 3), WeightInterval(50 * PERCENT, 3)), TEN, size_bounds_of)
    start = path.point({CPU: 8000, MEMORY: GIB})
    assert start == Point(5, {CPU: 1600, MEMORY: GIB // 5 + 1}, CPU, ())
    assert path.present(start, {CPU: 3200, MEMORY: 5}) == Point(2, start.sizes, CPU, ())


def test_on_a_vertical_stretch_pods_grow_at_once_and_beyond_it_they_are_more() -> None:
    path = weighted((0, 1, 2), (100, 3, 3), (0, 4, None), size_bounds=SizeBounds(base=1000, upper=4000))
    start = path.point({CPU: 1000})
    assert [path.present(start, {CPU: demand}) for demand in (3000, 3001, 12_000, 12_001, 40_001)] == [
        Point(3, {CPU: 1000}, CPU, ()),
        Point(3, {CPU: 1001}, CPU, ()),
        Point(3, {CPU: 4000}, CPU, ()),
        Point(4, {CPU: 3001}, CPU, ()),
        Point(10, {CPU: 4000}, CPU, (CPU,)),
    ]


def test_at_max_replicas_pods_grow_at_once() -> None:
    path = weighted((0, None, None))
    assert path.present(usual(1, {CPU: 1000}), {CPU: 10_001}) == Point(10, {CPU: 1001}, CPU, ())
    assert path.present(usual(1, {CPU: 0}), {CPU: 10**5}) == Point(10, {CPU: 10**4}, CPU, ())


def test_replicas_of_the_usual_point_are_kept_rather_than_larger_pods() -> None:
    # memory has a vertical stretch at one replica, and three because CPU asks for them
    size_bounds_of = ((CPU, SizeBounds(base=1000)), (MEMORY, SizeBounds(base=0)))
    path = path_of_weights((WeightInterval(0),), TEN, size_bounds_of)
    start = path.point({CPU: 3000, MEMORY: 3 * GIB})
    assert start == Point(3, {CPU: 1000, MEMORY: GIB}, CPU, ())
    assert path.present(start, {CPU: 1000, MEMORY: 3 * GIB}) == Point(3, {CPU: 1000, MEMORY: GIB}, MEMORY, ())
    assert path.present(start, {CPU: 1000, MEMORY: 6 * GIB}) == Point(
        3, {CPU: 1000, MEMORY: 2 * GIB}, MEMORY, ()
    )
    assert path.present(start, {CPU: 1000, MEMORY: 2 * GIB}) == Point(2, {CPU: 1000, MEMORY: GIB}, MEMORY, ())


# --- keeping boundaries ----------------------------------------------------------------------------------------------
def test_boundaries_are_kept_but_not_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hvpa.core.path.curve._REMEMBERED", 3)
    path = weighted((50, None, None), size_bounds=SizeBounds(base=777))
    demands = [17 * step * step for step in range(80)]
    expected = [path.count({CPU: demand}) for demand in demands]
    assert all(before <= after for before, after in pairwise(expected))
    assert len(curve(path)._edges) <= 3


def test_paths_are_built_once() -> None:
    assert weighted((50, 1, 5)) is weighted((50, 1, 5))
    assert written(*FIVE_CPU) is written(*FIVE_CPU)
