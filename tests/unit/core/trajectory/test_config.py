"""From an Hvpa's spec to its path (DESIGN 5.4, 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from builders import build
from builders.build import GIB, MIB
from hvpa.api.hvpa.spec import HvpaSpec
from hvpa.core.path.curve import Margin, SizeBounds
from hvpa.core.path.path import Path, Point, ResourceKey
from hvpa.core.trajectory.config import overlaps_by_resource, path_of, reserves, trajectory_of
from hvpa.core.values.arithmetic import RequestBounds
from hvpa.core.values.weight import Bounds
from hvpa.core.workload.containers import ContainerResource
from tests.unit.core.trajectory.jointly import JOINT

CPU, SIDE, MEMORY = ResourceKey("app", "cpu"), ResourceKey("side", "cpu"), ResourceKey("app", "memory")
FIRST = {CPU: 600, SIDE: 200, MEMORY: GIB}
TEN = Bounds(1, 10)
ROWS = [
    {"maxReplicas": count, "maxResources": {"cpu": cpu, "memory": memory}}
    for count, cpu, memory in (
        (1, "500m", "2Gi"),
        (2, "1", "4Gi"),
        (3, "2", "8Gi"),
        (4, "4", "16Gi"),
        (5, "8", "32Gi"),
    )
]


def spec(**change: Any) -> HvpaSpec:
    hvpa_spec = build.hvpa({**JOINT, **change}).spec
    assert hvpa_spec is not None
    return hvpa_spec


def written(*rows: Mapping[str, Any], **trajectory: Any) -> HvpaSpec:
    return spec(weightBasedScalingIntervals=None, trajectory={"intervals": list(rows), **trajectory})


def item(key: ResourceKey, bounds: RequestBounds | None = None) -> ContainerResource:
    return ContainerResource(key.container, key.resource, 1, None, 1, bounds or RequestBounds(), True)


def path(of: HvpaSpec, *items: ContainerResource, counts: Bounds = TEN, vertical_only: bool = False) -> Path:
    return path_of(of, items, FIRST, counts, vertical_only)


def size_bounds(*, first: int = 600, of: HvpaSpec | None = None, **bounds: int | None) -> SizeBounds:
    resource = item(CPU, RequestBounds(**bounds))
    return path_of(of or spec(), (resource,), {CPU: first}, TEN, False).curves[CPU].size_bounds


def test_the_defaults_of_a_spec_that_says_nothing() -> None:
    assert trajectory_of(spec()).intervals == ()
    assert overlaps_by_resource(spec()) == {"cpu": Margin(0, 10), "memory": Margin(0, 10)}
    assert reserves(spec(), FIRST) == {}


def test_trajectory_overlap_that_is_set_replaces_the_default() -> None:
    given = spec(
        trajectory={"overlap": {"cpu": {"value": "250m"}, "memory": {"value": "1Mi", "percentage": 30}}}
    )
    assert overlaps_by_resource(given) == {"cpu": Margin(250, 0), "memory": Margin(MIB, 30)}
    assert overlaps_by_resource(spec(trajectory={"overlap": {"cpu": {"percentage": 0}}}))["cpu"] == Margin(
        0, 0
    )


def test_trajectory_base_resources_per_replica_are_shared_by_containers() -> None:
    given = spec(trajectory={"baseResourcesPerReplica": {"cpu": {"value": "101m", "percentage": 5}}})
    assert reserves(given, FIRST) == {CPU: Margin(76, 5), SIDE: Margin(26, 5)}
    assert reserves(given, {CPU: 0}) == {CPU: Margin(0, 5)}
    assert size_bounds(of=given).reserve == Margin(101, 5)


def test_the_path_begins_at_the_larger_of_min_allowed_and_the_request_at_first_sight() -> None:
    assert size_bounds() == SizeBounds(base=600, lower=25)
    assert size_bounds(lower=100) == SizeBounds(base=600, lower=100)
    assert size_bounds(lower=700) == SizeBounds(base=700, lower=700)
    assert size_bounds(upper=900) == SizeBounds(base=600, lower=25, upper=900)


@pytest.mark.parametrize(("first", "lower"), [(600, 25), (25, 25), (10, 10), (0, 1)])
def test_without_min_allowed_an_idle_pod_keeps_25m_or_its_smaller_first_request(
    first: int, lower: int
) -> None:
    """A request of 0 has no utilization, and the HPA would have no metrics."""
    assert size_bounds(first=first).lower == lower


def test_min_allowed_may_be_lower_than_that() -> None:
    assert size_bounds(lower=5).lower == 5


def test_a_limit_that_stays_put_is_the_end_as_well() -> None:
    assert size_bounds(fixed_limit=800).upper == 800
    assert size_bounds(fixed_limit=800, upper=700).upper == 700
    assert size_bounds(fixed_limit=800, upper=900).upper == 800


def test_memory_is_in_whole_kilobytes() -> None:
    scaling_path = path(spec(), item(CPU), item(MEMORY))
    assert [scaling_path.curves[key].size_bounds.unit for key in (CPU, MEMORY)] == [1, 1000]


def test_weights_draw_one_curve_for_each_container_resource() -> None:
    scaling_path = path(spec(), item(CPU), item(SIDE))
    assert [scaling_path.curves[key].top(3) for key in (CPU, SIDE)] == [1800, 600]
    assert scaling_path.point({CPU: 5400, SIDE: 1800}) == Point(3, {CPU: 1800, SIDE: 600}, CPU, ())


def test_without_weights_it_is_weight_50_or_where_there_is_no_hpa_all_vertical() -> None:
    """With weight 50, n pods of 600m x n serve 600m x n²: 3 serve 5400m, 4 serve 9600m."""
    bare = spec(weightBasedScalingIntervals=None)
    assert path(bare, item(CPU)).point({CPU: 6000}) == Point(4, {CPU: 1500}, CPU, ())
    assert path(bare, item(CPU), vertical_only=True).point({CPU: 6000}) == Point(1, {CPU: 6000}, CPU, ())


def test_trajectory_intervals_of_five_rows_serve_4_cpu_and_26gi_with_4_replicas() -> None:
    scaling_path = path_of(
        written(*ROWS), (item(CPU), item(MEMORY)), {CPU: 500, MEMORY: 2 * GIB}, Bounds(1, 5), False
    )
    demand = {CPU: 4000, MEMORY: 26 * GIB}
    assert {key: scaling_path.curves[key].count(amount) for key, amount in demand.items()} == {
        CPU: 3,
        MEMORY: 4,
    }
    point = scaling_path.point(demand)
    assert (point.replicas, point.binding, point.sizes[CPU]) == (4, MEMORY, 1000)
    assert 26 * GIB <= 4 * point.sizes[MEMORY] <= 26 * GIB + 4 * 1000


def test_trajectory_intervals_max_resources_are_shared_by_containers() -> None:
    rows = [
        {"maxReplicas": 2, "maxResources": {"cpu": "1"}},
        {"maxReplicas": 4, "maxResources": {"cpu": "1001m"}},
    ]
    scaling_path = path(written(*rows), item(CPU), item(SIDE))
    assert [scaling_path.curves[CPU].top(count) for count in (2, 4)] == [750, 751]
    assert [scaling_path.curves[SIDE].top(count) for count in (2, 4)] == [250, 251]
    tiny = path(written({"maxReplicas": 2, "maxResources": {"cpu": "1m"}}), item(CPU), item(SIDE))
    assert [tiny.curves[key].top(2) for key in (CPU, SIDE)] == [1, 1]


def test_trajectory_intervals_with_horizontal_only_have_a_fixed_size() -> None:
    scaling_path = path(
        written({"maxReplicas": 4, "maxResources": {"cpu": "800m"}, "extrapolation": "horizontalOnly"}),
        item(CPU),
    )
    assert scaling_path.sizes(2, {CPU: 1}) == {CPU: 600}  # three of four millicores are this container's


def test_trajectory_intervals_without_a_resource_leave_it_all_vertical() -> None:
    scaling_path = path(written({"maxReplicas": 4, "maxResources": {"cpu": "800m"}}), item(CPU), item(MEMORY))
    assert scaling_path.point({CPU: 1000, MEMORY: 7 * GIB}).replicas == 2
    assert scaling_path.curves[MEMORY].top(1) is None


@pytest.mark.parametrize(("quantity", "top"), [("0.0005", 1), ("500.5m", 501)])
def test_trajectory_intervals_quantities_are_rounded_up(quantity: str, top: int) -> None:
    scaling_path = path_of(
        written({"maxReplicas": 1, "maxResources": {"cpu": quantity}}), (item(CPU),), {CPU: 9}, TEN, False
    )
    assert scaling_path.curves[CPU].top(1) == top
