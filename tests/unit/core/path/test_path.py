"""The path from total demand to replicas and sizes, by example (DESIGN 5.4, 5.5)."""

from __future__ import annotations

import pytest

from builders import build
from builders.build import GIB
from hvpa.core.path.build import ResourceInterval, path_of_intervals, path_of_weights
from hvpa.core.path.curve import Margin, SizeBounds
from hvpa.core.path.path import DEFAULT_OVERLAP, Overlaps, Path, Point, ResourceKey
from hvpa.core.values.weight import FULL, Bounds, WeightInterval, weight_intervals
from tests.unit.core.named import named

CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
PERCENT = FULL // 100
TEN, FIVE = Bounds(1, 10), Bounds(1, 5)
CORE, HALF = SizeBounds(base=1000), SizeBounds(base=500)
FIVE_CPU = tuple(ResourceInterval(n, size) for n, size in enumerate((500, 1000, 2000, 4000, 8000), 1))
FIVE_MEMORY = tuple(ResourceInterval(n, size * GIB) for n, size in enumerate((2, 4, 8, 16, 32), 1))
FIVE_ROWS = path_of_intervals(FIVE, ((CPU, HALF, FIVE_CPU), (MEMORY, SizeBounds(base=2 * GIB), FIVE_MEMORY)))


def weighted(
    *intervals: tuple[float, int | None, int | None], counts: Bounds = TEN, bounds: SizeBounds = CORE
) -> Path:
    """A path of one CPU container resource; weights in percent, from one count to another."""
    parts = tuple(WeightInterval(round(weight * PERCENT), start, last) for weight, start, last in intervals)
    return path_of_weights(parts, counts, ((CPU, bounds),))


HALF_AND_HALF, HORIZONTAL = (50, None, None), (0, None, None)


def written(*parts: ResourceInterval, counts: Bounds = FIVE, bounds: SizeBounds = HALF) -> Path:
    return path_of_intervals(counts, ((CPU, bounds, parts),))


def tops(path: Path, last: int = 10) -> list[int | None]:
    return [path.curves[CPU].top(count) for count in range(path.counts.lower, last + 1)]


def cpu(replicas: int, size: int, *, saturated: bool = False) -> Point:
    """A point of one CPU container resource."""
    return Point(replicas, {CPU: size}, CPU, (CPU,) if saturated else ())


def usual(replicas: int, size: int) -> Point:
    return Point(replicas, {CPU: size}, None, ())


# --- the point of a demand -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("demand", "replicas"),
    [(1, 1), (500, 1), (501, 2), (2000, 2), (6000, 3), (6001, 4), (16000, 4), (16001, 5)],
)
def test_the_five_row_table_serves_a_total_with_the_row_that_reaches_it(demand: int, replicas: int) -> None:
    assert FIVE_ROWS.count({CPU: demand}) == FIVE_ROWS.curves[CPU].count(demand) == replicas


def test_the_container_resource_that_needs_most_replicas_decides() -> None:
    demand = {CPU: 4000, MEMORY: 26 * GIB}
    assert {key: FIVE_ROWS.curves[key].count(amount) for key, amount in demand.items()} == {CPU: 3, MEMORY: 4}
    assert FIVE_ROWS.point(demand) == Point(4, {CPU: 1000, MEMORY: 26 * GIB // 4}, MEMORY, ())
    beyond = FIVE_ROWS.point({CPU: 40_001, MEMORY: GIB})
    assert beyond == Point(5, {CPU: 8000, MEMORY: GIB // 5 + 1}, CPU, (CPU,)), "beyond the last row"
    assert FIVE_ROWS.point({}) == Point(1, {}, None, ())


HELD = SizeBounds(base=1000, lower=500, upper=4000)
UNEVEN = SizeBounds(base=1500, unit=1000)
RISING = weighted((0, 1, 3), (50, 3, 5), (0, 5, None), bounds=UNEVEN)
VERTICAL_FIRST = weighted((100, 1, 1), (60, 2, 4), (0, 5, 10), bounds=SizeBounds(base=400, upper=3000))
STEPPED = written(ResourceInterval(1, 100), ResourceInterval(3, 300, True), ResourceInterval(5, 500))
ONE_COUNT = weighted(HORIZONTAL, counts=Bounds(4, 4), bounds=SizeBounds(base=100, upper=1000))
NOT_WRITTEN = written(bounds=SizeBounds(base=500, upper=900))


@pytest.mark.parametrize(
    ("path", "demand", "point"),
    named(
        {
            "5 cores at weight 50; Additive: 9 cores": (weighted(HALF_AND_HALF), 5000, cpu(3, 1667)),
            "gardener's second example is vertical at first": (VERTICAL_FIRST, 2999, cpu(1, 2999)),
            "and at maxAllowed horizontal": (VERTICAL_FIRST, 3001, cpu(2, 1501)),
            "at maxReplicas all the rest is vertical": (
                weighted((0, 1, 3), (60, 4, 10), bounds=SizeBounds(base=100)),
                10**9,
                cpu(10, 10**8),
            ),
            "one count is all vertical": (ONE_COUNT, 3999, cpu(4, 1000)),
            "up to maxAllowed": (ONE_COUNT, 4001, cpu(4, 1000, saturated=True)),
            "without intervals all is vertical": (NOT_WRITTEN, 900, cpu(1, 900)),
            "up to the bound": (NOT_WRITTEN, 901, cpu(2, 451)),
            "and both ends are reached": (NOT_WRITTEN, 4501, cpu(5, 900, saturated=True)),
            "on a fixed-size stretch pods keep their size": (RISING, 0, cpu(1, 1500)),
            "as long as it serves": (RISING, 1500, cpu(1, 1500)),
            "then there are more of them": (RISING, 1501, cpu(2, 1500)),
            "up to its last count": (RISING, 4500, cpu(3, 1500)),
            "on the way up the size follows the demand": (RISING, 4501, cpu(4, 2000)),
            "to the next fixed size": (RISING, 15_001, cpu(6, 3000)),
            "horizontalOnly has a fixed size": (STEPPED, 101, cpu(2, 300)),
            "base usage is put back on every size: the boundaries are 1 x 800, 2 x 1800, 3 x 2800": (
                weighted(HALF_AND_HALF, bounds=SizeBounds(base=1000, reserve=Margin(200))),
                3601,
                cpu(3, 1401),
            ),
        }
    ),
)
def test_the_point_that_serves_a_demand(path: Path, demand: int, point: Point) -> None:
    assert path.point({CPU: demand}) == point


@pytest.mark.parametrize(
    ("path", "replicas", "demand", "size"),
    named(
        {
            "on a fixed-size stretch a held count is made up for by size": (RISING, 2, 4000, 2000),
            "the size is fixed to the very end": (RISING, 10, 1, 3000),
            "whole units are no reason to change it": (weighted(HORIZONTAL, bounds=UNEVEN), 10, 1, 1500),
            "maxAllowed": (written(ResourceInterval(3, 300, True), bounds=SizeBounds(upper=200)), 2, 1, 200),
            "fewer pods are larger": (weighted(HALF_AND_HALF, bounds=HELD), 2, 5000, 2500),
            "and more no less than minAllowed": (weighted(HALF_AND_HALF, bounds=HELD), 10, 3000, 500),
            "rounded up to whole units": (
                weighted(HALF_AND_HALF, bounds=SizeBounds(base=GIB, unit=1000)),
                3,
                3 * 10**9 + 1,
                1_000_001_000,
            ),
            "not above the curve": (
                weighted(HALF_AND_HALF, bounds=SizeBounds(base=GIB, unit=1000)),
                1,
                GIB,
                GIB,
            ),
            "no demand, no size": (weighted(HALF_AND_HALF, bounds=SizeBounds(reserve=Margin(200))), 1, 0, 0),
        }
    ),
)
def test_the_size_at_a_count(path: Path, replicas: int, demand: int, size: int) -> None:
    assert path.sizes(replicas, {CPU: demand}) == {CPU: size}


def test_horizontal_only_has_a_fixed_size_and_linear_is_not() -> None:
    assert [STEPPED.sizes(count, {CPU: 1})[CPU] for count in range(1, 6)] == [1, 300, 300, 1, 1]


def test_a_count_that_is_held_can_be_too_small_for_any_size() -> None:
    path = weighted(HALF_AND_HALF, bounds=HELD)
    assert [path.short(2, {CPU: demand}) for demand in (8000, 8001)] == [(), (CPU,)]


# --- the curve of weights --------------------------------------------------------------------------------------------
SMALL, BOUNDED = SizeBounds(base=10), SizeBounds(base=10, upper=100)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    named(
        {
            "no interval that holds a count: all horizontal": ([], [10, 10, 10, 10, 10]),
            "0 before the first and after the last": ([(50, 2, 3)], [10, 10, 15, 20, 20]),
            "0 in a gap": ([(50, 1, 2), (50, 4, None)], [10, 20, 30, 30, 38]),
            "a shared boundary is the later's": ([(50, 1, 3), (0, 3, None)], [10, 20, 30, 30, 30]),
            "overlapping: the first that matches": ([(50, 1, 4), (0, 2, 6)], [10, 20, 30, 40, 40]),
            "out of order": ([(0, 4, 6), (50, 1, 3)], [10, 20, 30, 40, 40]),
            "equal neighbours are one": ([(50, 1, 2), (50, 3, None)], [10, 20, 30, 40, 50]),
            "no width is enough for 100": ([(0, 1, 2), (100, 3, 3), (0, 3, None)], [10, 10, 100, 100, 100]),
            "maxAllowed, then all horizontal": ([(80, 1, None)], [10, 100, 100, 100, 100]),
            "once at maxAllowed, always": ([(80, 1, 3), (50, 4, None)], [10, 100, 100, 100, 100]),
            "beyond all quantities": ([(99.9999, 1, 3), (0, 4, None)], [10, 100, 100, 100, 100]),
        }
    ),
)
def test_the_weight_that_a_count_is_left_with(
    intervals: list[tuple[float, int, int]], expected: list[int]
) -> None:
    assert tops(weighted(*intervals, counts=Bounds(1, 6), bounds=BOUNDED), 5) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # 400 * (n / 3) ** 1.5 from 3 to 7; at the last count the rest is vertical up to maxAllowed
        pytest.param(
            weighted((0, 1, 2), (60, 3, 7), (0, 7, 10), bounds=SizeBounds(base=400, upper=3000)),
            [400, 400, 400, 616, 861, 1132, 1426, 1426, 1426, 3000],
            id="gardener's first example is flat, rises and is flat",
        ),
        pytest.param(VERTICAL_FIRST, [3000] * 10, id="gardener's second example"),
        pytest.param(
            weighted((0, 1, 3), (60, 4, 10), bounds=SizeBounds(base=100)),
            [100, 100, 100, 100, 140, 184, 232, 283, 338, None],
            id="gardener's third example ends with larger pods",
        ),
        pytest.param(
            weighted((99.9999, 1, 3), (50, 4, None), counts=Bounds(1, None), bounds=SMALL),
            [10, None, None, None, None],
            id="a weight beyond all quantities has no end without maxAllowed",
        ),
        pytest.param(
            weighted((50, 1, None), counts=Bounds(3, 10), bounds=SizeBounds(base=300)),
            [300, 400, 500],
            id="a path that begins at more replicas begins at its base there",
        ),
    ],
)
def test_the_curve_of_weights(path: Path, expected: list[int | None]) -> None:
    assert tops(path, path.counts.lower + len(expected) - 1) == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    named(
        {
            "no base: vertical up to maxAllowed": (SizeBounds(base=0, upper=70), [70, 70, 70]),
            "no base and no end": (SizeBounds(base=0), [None, None, None]),
            "minAllowed is the base": (SizeBounds(base=0, lower=10, upper=70), [10, 20, 30]),
            "a base above maxAllowed": (SizeBounds(base=90, upper=70), [70, 70, 70]),
            "maxAllowed wins over minAllowed": (SizeBounds(base=9, lower=90, upper=70), [70, 70, 70]),
            "whole units above the base": (SizeBounds(base=1500, unit=1000), [1500, 3000, 5000]),
            "and the upper bound": (SizeBounds(base=1500, upper=4500, unit=1000), [1500, 3000, 4500]),
        }
    ),
)
def test_bounds_of_the_size(bounds: SizeBounds, expected: list[int | None]) -> None:
    assert tops(weighted(HALF_AND_HALF, bounds=bounds), 3) == expected


def test_the_path_has_one_replica_at_least() -> None:
    assert weighted(HORIZONTAL, counts=Bounds(0, 0)).counts == Bounds(1, 1)


def test_without_an_end_to_replicas_or_sizes_a_demand_is_still_found() -> None:
    path = weighted(HORIZONTAL, counts=Bounds(2, None), bounds=SizeBounds(base=1))
    for demand, expected in [(0, 2), (2, 2), (3, 3), (10**12, 10**12), (10**12 + 1, 10**12 + 1)]:
        assert path.count({CPU: demand}) == expected
    vertical = weighted((100, 1, 1), (60, 2, 4), bounds=SizeBounds(base=400))
    assert vertical.count({CPU: 10**9}) == written(bounds=HALF).count({CPU: 10**9}) == 1


def test_the_weights_of_an_hvpa() -> None:
    fractions = [{"vpaWeight": 0.6, "startReplicaCount": 2, "lastReplicaCount": 4}, {"vpaWeight": 1}]
    spec = build.hvpa({"weightBasedScalingIntervals": fractions}).spec
    plain = build.hvpa({"weightBasedScalingIntervals": None}).spec
    assert spec is not None
    assert plain is not None
    assert weight_intervals(spec, False) == (WeightInterval(60 * PERCENT, 2, 4), WeightInterval(FULL))
    assert weight_intervals(plain, True) == (WeightInterval(FULL),)
    assert weight_intervals(plain, False) == (WeightInterval(0),)


# --- the curve of intervals that are written out ---------------------------------------------------------------------
TWO = (ResourceInterval(1, 100), ResourceInterval(5, 300))


@pytest.mark.parametrize(
    ("path", "expected"),
    named(
        {
            "linear from nothing is flat": (written(ResourceInterval(5, 100)), [100] * 5),
            "linear shares 100, 450, 800, 1150, 1500": (written(*TWO), [100, 225, 267, 288, 300]),
            "horizontalOnly": (written(TWO[0], ResourceInterval(5, 300, True)), [100] + [300] * 4),
            "after the last all is horizontal": (written(ResourceInterval(2, 100)), [100] * 5),
            "maxReplicas comes before the last interval": (
                written(ResourceInterval(2, 100), ResourceInterval(9, 900)),
                [100, 100, 443, 615, 900],
            ),
            "minReplicas moves no boundary": (written(*TWO, counts=Bounds(3, 5)), [267, 288, 300]),
            "bounds": (written(*TWO, bounds=SizeBounds(lower=110, upper=270)), [110, 225, 267, 270, 270]),
            "minAllowed beyond the end": (written(*TWO, bounds=SizeBounds(lower=400)), [400] * 5),
            "whole units": (written(*TWO, bounds=SizeBounds(unit=50)), [100, 250, 300, 300, 300]),
        }
    ),
)
def test_effective_intervals(path: Path, expected: list[int]) -> None:
    assert tops(path, 5) == expected


# --- overlap and base usage ------------------------------------------------------------------------------------------
def test_an_overlap_lowers_the_boundaries_for_scaling_in() -> None:
    # the table of gardener's redesign: 30 percent below 2, 6 and 16 cores; 250m below 500m
    overlap: Overlaps = {"cpu": Margin(250, 30)}
    for boundary, replicas in [(250, 1), (1400, 2), (4200, 3), (11_200, 4)]:
        assert FIVE_ROWS.count_in({CPU: boundary}, overlap) == replicas
        assert FIVE_ROWS.count_in({CPU: boundary + 1}, overlap) == replicas + 1


@pytest.mark.parametrize(
    ("current", "demand", "overlap", "expected"),
    [
        (4, 5400, DEFAULT_OVERLAP, 3),
        (4, 5401, DEFAULT_OVERLAP, 4),
        (4, 16_000, DEFAULT_OVERLAP, 4),
        (4, 16_001, DEFAULT_OVERLAP, 5),
        (4, 6000, Margin(), 3),
        (4, 6001, Margin(), 4),
        (9, 40_000, DEFAULT_OVERLAP, 5),
        pytest.param(4, 0, Margin(10**6, 90), 1, id="no demand scales in past any overlap"),
    ],
)
def test_replicas_stay_inside_the_overlap(current: int, demand: int, overlap: Margin, expected: int) -> None:
    assert FIVE_ROWS.settled(current, {CPU: demand}, {"cpu": overlap}) == (expected, CPU)


@pytest.mark.parametrize(
    ("margin", "size", "work"),
    [
        (Margin(), 1000, 1000),
        (Margin(50, 5), 800, 750),
        (Margin(50, 5), 2000, 1900),
        (Margin(950), 1000, 100),
        (Margin(950), 1009, 101),
        (Margin(0, 95), 1000, 100),
    ],
)
def test_base_usage_is_the_larger_share_but_leaves_a_tenth(margin: Margin, size: int, work: int) -> None:
    assert margin.work(size) == work
    assert margin.work(margin.size(work) - 1) < work <= margin.work(margin.size(work))


# --- present demand --------------------------------------------------------------------------------------------------
WALLED = weighted((0, 1, 2), (100, 3, 3), (0, 4, None), bounds=SizeBounds(base=1000, upper=4000))


@pytest.mark.parametrize(
    ("path", "start", "demand", "point"),
    named(
        {
            "it takes replicas, and no larger pods": (
                weighted(HALF_AND_HALF),
                usual(1, 1000),
                5000,
                cpu(5, 1000),
            ),
            "nor smaller ones": (weighted(HALF_AND_HALF), usual(3, 1667), 1000, cpu(1, 1667)),
            "below the base point replicas, too": (weighted(HALF_AND_HALF), usual(1, 300), 900, cpu(3, 300)),
            "and from there beyond it": (weighted(HALF_AND_HALF), usual(1, 300), 2001, cpu(7, 300)),
            "up to a vertical stretch": (WALLED, usual(1, 1000), 3000, cpu(3, 1000)),
            "there pods grow at once": (WALLED, usual(1, 1000), 3001, cpu(3, 1001)),
            "to its end": (WALLED, usual(1, 1000), 12_000, cpu(3, 4000)),
            "and beyond it there are more of them": (WALLED, usual(1, 1000), 12_001, cpu(4, 3001)),
            "until both ends are reached": (WALLED, usual(1, 1000), 40_001, cpu(10, 4000, saturated=True)),
            "at maxReplicas pods grow": (weighted(HORIZONTAL), usual(1, 1000), 10_001, cpu(10, 1001)),
            "also from nothing": (weighted(HORIZONTAL), usual(1, 0), 10**5, cpu(10, 10**4)),
        }
    ),
)
def test_present_demand(path: Path, start: Point, demand: int, point: Point) -> None:
    assert path.present(start, {CPU: demand}) == point


def test_at_fewer_replicas_a_fixed_size_is_no_reason_for_larger_pods() -> None:
    bounds = ((CPU, CORE), (MEMORY, SizeBounds(base=GIB)))
    path = path_of_weights((WeightInterval(0, 1, 3), WeightInterval(50 * PERCENT, 3)), TEN, bounds)
    start = path.point({CPU: 8000, MEMORY: GIB})
    assert start == Point(5, {CPU: 1600, MEMORY: GIB // 5 + 1}, CPU, ())
    assert path.present(start, {CPU: 3200, MEMORY: 5}) == Point(2, start.sizes, CPU, ())
    assert path.present(start, {MEMORY: 5}) == Point(1, start.sizes, MEMORY, ())


@pytest.mark.parametrize(("memory", "replicas", "size"), [(2, 2, 1), (3, 3, 1), (6, 3, 2)])
def test_replicas_of_the_usual_point_are_kept_rather_than_larger_pods(
    memory: int, replicas: int, size: int
) -> None:
    # memory has a vertical stretch at one replica, and three because CPU asks for them
    path = path_of_weights((WeightInterval(0),), TEN, ((CPU, CORE), (MEMORY, SizeBounds(base=0))))
    start = path.point({CPU: 3000, MEMORY: 3 * GIB})
    assert start == Point(3, {CPU: 1000, MEMORY: GIB}, CPU, ())
    point = path.present(start, {CPU: 1000, MEMORY: memory * GIB})
    assert point == Point(replicas, {CPU: 1000, MEMORY: size * GIB}, MEMORY, ())


def test_paths_of_the_same_arguments_are_equal() -> None:
    assert weighted((50, 1, 5)) == weighted((50, 1, 5)) != weighted((50, 1, 4))
    assert written(*FIVE_CPU) == written(*FIVE_CPU)
    assert FIVE_ROWS.curves[CPU].edge(3) == (2000, 6000)
