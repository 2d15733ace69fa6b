"""What the pods that there are serve, with the sizes that they have (DESIGN 5.4, sentences 5 and 9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvpa.core.model import PodShape
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.estimate import MICRO
from hvpa.core.trajectory.capacity import Capacity
from hvpa.core.trajectory.demand import MetricRequirement, Requests, pods_needed
from tests.unit.core.named import named

CPU, SIDE = ResourceKey("app", "cpu"), ResourceKey("side", "cpu")
PLAIN = Requests({CPU: 1000}, {}, {}, {}, {CPU: 1000})


def pods(size: int, count: int = 1, refuses: bool = False) -> PodShape:
    return PodShape({"app": {"cpu": size}}, count, refuses)


def needed(
    required: int, *shapes: PodShape, size: int = 2000, resized: bool = False, of: Requests = PLAIN
) -> int:
    requirement = MetricRequirement("cpu", (CPU,), required, 0)
    return Capacity(shapes).needed(requirement, {CPU: size}, of, resized=resized)


@pytest.mark.parametrize(
    ("required", "expected"),
    [(0, 0), (1, 1), (3000, 3), (4000, 4), (4001, 5), (7000, 6), (8001, 7)],
)
def test_pods_serve_with_what_they_have_and_new_ones_with_their_size(required: int, expected: int) -> None:
    """There are 4 pods of 1 core, and new ones have 2."""
    assert needed(required, pods(1000, 4)) == expected


@pytest.mark.parametrize(
    ("shapes", "required", "size", "resized", "expected"),
    named(
        {
            "in place they have the size in a moment": ((pods(1000, 4),), 7000, 2000, True, 4),
            "but those that refuse it": ((pods(1000, 3, True), pods(1000)), 7000, 2000, True, 5),
            "those that refuse a smaller size are large": ((pods(4000, 2, True),), 7000, 2000, True, 2),
            "the smallest first": ((pods(3000), pods(500, 2)), 2000, 3000, False, 3),
            "what is to be smaller counts as that": ((pods(4000, 2),), 7000, 2000, False, 4),
            "pods of nothing": ((pods(0, 3),), 4000, 2000, False, 5),
            "pods of nothing, which is what they will have": ((pods(0, 3),), 4, 0, False, 7),
            "no pods": ((), 4000, 2000, False, 2),
            "a pod without the container": ((PodShape({}, 1),), 4000, 2000, False, 2),
        }
    ),
)
def test_how_many_pods_it_takes(
    shapes: tuple[PodShape, ...], required: int, size: int, resized: bool, expected: int
) -> None:
    assert needed(required, *shapes, size=size, resized=resized) == expected


@pytest.mark.parametrize(("size", "expected"), [(2000, 12), (500, 14), (0, 7000)])
def test_where_small_pods_stay_all_are_worth_as_much(size: int, expected: int) -> None:
    """3 pods of 600m stay beside 5 of 2 cores: a Service gives each the same load. Smaller new ones bind as well."""
    requirement = MetricRequirement("cpu", (CPU,), 7000, 0)
    mixed = Capacity((pods(2000, 5), pods(600, 3)), stays_mixed=True)
    assert mixed.needed(requirement, {CPU: size}, PLAIN, resized=False) == expected
    assert Capacity(stays_mixed=True).needed(requirement, {CPU: 2000}, PLAIN, resized=False) == 4, (
        "there are none"
    )


def test_what_covers_no_request_is_counted_in_pods() -> None:
    queue = MetricRequirement("queue", (), 0, 2_500_000)
    assert Capacity((pods(1, 9),)).needed(queue, {}, PLAIN, resized=False) == 3


def test_base_usage_serves_nothing() -> None:
    idle = Requests({CPU: 1000}, {}, {}, {CPU: Margin(500)}, {CPU: 1000})
    assert needed(2000, pods(1000, 2), of=idle) == 3  # 2 x 500m, and 1500m of a new one


def test_containers_serve_together() -> None:
    both = MetricRequirement("cpu", (CPU, SIDE), 3000, 0)
    shape = PodShape({"app": {"cpu": 1000}, "side": {"cpu": 250}}, 2)
    of = Requests({CPU: 1000, SIDE: 500}, {}, {}, {}, {CPU: 1000, SIDE: 500})
    assert (
        Capacity((shape,)).needed(both, {CPU: 1000, SIDE: 500}, of, resized=False) == 3
    )  # 2 x 1250m + 1500m


SHAPES = st.lists(st.builds(pods, st.integers(0, 5000), st.integers(1, 5), st.booleans()), max_size=5)


@given(SHAPES, st.integers(0, 50_000), st.integers(1, 5000), st.booleans())
def test_it_is_the_smallest_count_that_serves_in_any_order(
    shapes: list[PodShape], required: int, size: int, resized: bool
) -> None:
    count = needed(required, *shapes, size=size, resized=resized)
    assert needed(required, *reversed(shapes), size=size, resized=resized) == count
    have = sorted(serves for shape in shapes for serves in [_has(shape, size, resized)] * shape.count)
    have += [size] * count
    assert sum(have[:count]) >= required
    assert count == 0 or sum(have[: count - 1]) < required


def _has(shape: PodShape, size: int, resized: bool) -> int:
    own = shape.sizes["app"]["cpu"]
    if shape.refuses:
        return own
    return size if resized else min(own, size)


@given(st.integers(0, 50_000), st.integers(1, 5000))
def test_without_pods_it_is_as_if_all_were_new(required: int, size: int) -> None:
    requirement = MetricRequirement("cpu", (CPU,), required, MICRO)
    assert needed(required, size=size) == pods_needed(requirement, {CPU: size}, PLAIN)
