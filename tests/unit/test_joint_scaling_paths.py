"""docs/joint-scaling.md: its paths, by weights and written out, are what the code makes of them."""

from __future__ import annotations

import math

import pytest

from hvpa.api.values.quantity import format_cpu, format_memory, parse_cpu
from hvpa.core.path.path import Path as ScalingPath
from hvpa.core.path.path import Point
from hvpa.core.values.weight import Bounds
from tests.unit.joint_page import (
    BASE_USAGE,
    CPU,
    FIVE_ROWS,
    GIB,
    MEMORY,
    ONE_LINE,
    WEIGHTS,
    WRITTEN,
    path,
    pods,
    table,
)


def shown(point: Point) -> str:
    """A point as the page writes it."""
    return pods(point.replicas, point.sizes[CPU])


# --- paths -----------------------------------------------------------------------------------------------------------
TEN = Bounds(1, 10)
SHAPES = table("| demand | weight 0 | weight 30 | weight 50 | weight 80 | weight 100 |")


@pytest.mark.parametrize("weight", [0, 30, 50, 80, 100])
def test_the_shapes_by_weight(weight: int) -> None:
    made = path({"weightBasedScalingIntervals": [{"vpaWeight": weight}]}, 1000, 8000, TEN)
    bounds = (
        "Base 1 core, minReplicas 1, maxReplicas 10, `minAllowed` 1 core, `maxAllowed` 8 cores; one weight"
    )
    assert bounds in ONE_LINE
    assert [row["demand"] for row in SHAPES] == ["1", "2", "5", "10", "20"]
    for row in SHAPES:
        assert row[f"weight {weight}"] == shown(made.point({CPU: parse_cpu(row["demand"])}))


def test_a_weight_for_a_largest_demand() -> None:
    weight = 1 - math.log(5) / math.log(20)
    told = f"1 - ln(5) / ln(20) = {weight:.3f}, so {math.ceil(weight * 100)}."
    assert f"w = 1 - ln(n) / ln(D / b), rounded up. For 20 cores on 5 pods of base 1 core: {told}" in ONE_LINE
    counts = [
        path({"weightBasedScalingIntervals": [{"vpaWeight": one}]}, 1000, 8000, TEN)
        .point({CPU: 20_000})
        .replicas
        for one in (46, 47)
    ]
    assert counts == [6, 5]
    steep = path({"weightBasedScalingIntervals": [{"vpaWeight": 80}]}, 100, 10**6, TEN)
    assert "80 and above is nearly vertical: 2 pods serve 32 times the base" in ONE_LINE
    assert steep.curves[CPU].reach(2) == 32 * 100


def test_the_path_that_is_written_out() -> None:
    made = path(FIVE_ROWS, 500, 8000, Bounds(1, 5), 2 * GIB)
    demand = {CPU: 4000, MEMORY: 26 * GIB}
    counts, point = made.counts_of(demand), made.point(demand)
    tops = [format_cpu(made.curves[CPU].top(3) or 0), format_memory(made.curves[MEMORY].top(4) or 0)]
    size = point.sizes[MEMORY]
    assert (counts[CPU], counts[MEMORY], point.replicas) == (3, 4, 4)
    assert 0 <= size - 6656 * 1024**2 < 1000
    told = [
        f"takes {counts[CPU]} replicas for CPU (3 × {tops[0]} cores), {counts[MEMORY]} for memory (4 × {tops[1]}),",
        f"so there are {point.replicas}, of {format_cpu(point.sizes[CPU])} core and {format_memory(size)} each (6656Mi",
    ]
    assert f"A demand of 4 cores and 26Gi {' '.join(told)}" in ONE_LINE


def converted() -> tuple[ScalingPath, ScalingPath]:
    return path(WEIGHTS, 500, 3000, TEN), path(WRITTEN, 500, 3000, TEN)


def test_what_a_conversion_serves_by_count() -> None:
    rows = table("| replicas | by weights | serve | by intervals | serve |")
    assert [int(row["replicas"]) for row in rows] == [1, 3, 4, 5, 6, 9, 10]
    for row in rows:
        for made, name, serve in zip(
            converted(), ("by weights", "by intervals"), ("serve", "serve'"), strict=True
        ):
            top, reach = made.curves[CPU].edge(int(row["replicas"]))
            assert (row[name], row[serve]) == (format_cpu(top or 0), format_cpu(reach or 0))


def test_what_a_conversion_makes_of_a_demand() -> None:
    rows = table("| demand | by weights | by intervals |")
    assert "Base 500m, minReplicas 1, maxReplicas 10, `maxAllowed` 3 cores:" in ONE_LINE
    assert len(rows) == 6
    for row in rows:
        demand = {CPU: parse_cpu(row["demand"])}
        assert [row["by weights"], row["by intervals"]] == [shown(made.point(demand)) for made in converted()]


def test_a_conversion_with_an_interval_for_each_count_serves_the_same() -> None:
    intervals = list(WRITTEN["trajectory"]["intervals"])
    intervals[1:1] = [
        {"maxReplicas": 4, "maxResources": {"cpu": "667m"}},
        {"maxReplicas": 5, "maxResources": {"cpu": "834m"}},
    ]
    assert "an interval for 4 replicas (667m) and one for 5 (834m) it is the same" in ONE_LINE
    exact, weights = path({"trajectory": {"intervals": intervals}}, 500, 3000, TEN), converted()[0]
    for count in range(1, 11):
        assert exact.curves[CPU].edge(count) == weights.curves[CPU].edge(count)


def test_base_usage() -> None:
    change = {**BASE_USAGE, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    made = path(change, 1000, 8000, TEN)
    work = 5 * made.curves[CPU].size_bounds.reserve.work(1000)
    point = made.point({CPU: work})
    size, total = point.sizes[CPU], point.replicas * point.sizes[CPU]
    assert (
        f"At weight 50 and base 1 core, 5 pods of 1 core do the work of {format_cpu(work)} cores" in ONE_LINE
    )
    assert (
        f"takes {point.replicas} pods of {size}m: {work}m / {point.replicas} and the 200m. Together {total}m"
        in ONE_LINE
    )


@pytest.mark.parametrize("weight", [0, 30, 50, 80])
def test_the_formulas_of_a_weight(weight: int) -> None:
    curve = path({"weightBasedScalingIntervals": [{"vpaWeight": weight}]}, 1000, 10**9, TEN).curves[CPU]
    assert "n pods have at most base × n^(w / (1 - w)) each" in ONE_LINE
    assert "at most base × n^(1 / (1 - w)) together: base × n at weight 0, base × n² at weight 50" in ONE_LINE
    for count in range(1, 10):
        exact = 1000 * count ** (weight / (100 - weight))
        assert exact - 1e-6 <= (curve.top(count) or 0) < exact + 1
