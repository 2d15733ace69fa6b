"""What holds of every path and every demand."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hvpa.core.path.build import ResourceInterval, path_of_intervals, path_of_weights
from hvpa.core.path.curve import Margin, ResourceCurve, SizeBounds
from hvpa.core.path.path import Demand, Overlaps, Path, ResourceKey
from hvpa.core.values.weight import FULL, Bounds, WeightInterval

pytestmark = pytest.mark.long

CPU, MEMORY = ResourceKey("app", "cpu"), ResourceKey("app", "memory")
KEYS = (CPU, MEMORY)

AMOUNTS = st.one_of(st.integers(0, 300), st.integers(0, 10**6), st.integers(0, 2**40))
COUNTS = st.integers(1, 12)
MARGINS = st.builds(Margin, st.integers(0, 3000), st.integers(0, 90))
WEIGHTS = st.one_of(
    st.sampled_from((0, 30, 50, 60, 100)).map(lambda percent: percent * FULL // 100), st.integers(0, FULL)
)
WEIGHT_INTERVALS = st.lists(
    st.builds(WeightInterval, WEIGHTS, st.none() | COUNTS, st.none() | COUNTS), max_size=4
).map(tuple)
SIZE_BOUNDS = st.builds(
    SizeBounds,
    base=st.one_of(st.integers(0, 5000), st.integers(1, 2**34)),
    lower=st.integers(0, 3000),
    upper=st.none() | st.integers(1, 2**35),
    unit=st.sampled_from((1, 1, 1000)),
    reserve=st.just(Margin()) | MARGINS,
)
REPLICA_BOUNDS = st.builds(
    lambda lower, more: Bounds(lower, None if more is None else lower + more),
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(0, 10), st.integers(0, 3000)),
)


@st.composite
def resource_intervals(draw: Any, more: int = 4) -> tuple[ResourceInterval, ...]:
    rises = draw(
        st.lists(
            st.tuples(st.integers(1, 9), st.integers(0, 10**6), st.booleans()), min_size=1, max_size=more
        )
    )
    replicas = accumulate(rise[0] for rise in rises)
    sizes = accumulate((rise[1] for rise in rises), initial=draw(st.integers(1, 5000)))
    return tuple(
        ResourceInterval(count, size, fixed_size)
        for count, size, (_, _, fixed_size) in zip(replicas, sizes, rises, strict=False)
    )


@st.composite
def paths(draw: Any, keys: tuple[ResourceKey, ...] = KEYS) -> Path:
    counts, size_bounds_of = draw(REPLICA_BOUNDS), [draw(SIZE_BOUNDS) for _ in keys]
    if draw(st.booleans()):
        return path_of_weights(draw(WEIGHT_INTERVALS), counts, tuple(zip(keys, size_bounds_of, strict=True)))
    written = [draw(resource_intervals()) for _ in keys]
    return path_of_intervals(counts, tuple(zip(keys, size_bounds_of, written, strict=True)))


@st.composite
def curves(draw: Any) -> ResourceCurve:
    path: Path = draw(paths((CPU,)))
    return path.curves[CPU]


DEMANDS = st.fixed_dictionaries(dict.fromkeys(KEYS, AMOUNTS))


def least_size(curve: ResourceCurve, replicas: int) -> int:
    """The size that pods keep at this count whatever the demand, inside the bounds; the least one elsewhere."""
    return curve.size_bounds.clamp(curve.fixed_size(replicas))


def capacity(path: Path, key: ResourceKey, replicas: int, size: int) -> int:
    return replicas * path.curves[key].size_bounds.reserve.work(size)


def more(demand: Demand, added: Demand) -> dict[ResourceKey, int]:
    return {key: amount + added[key] for key, amount in demand.items()}


@given(paths(), DEMANDS, DEMANDS)
def test_replicas_and_capacity_never_fall_as_demand_grows(path: Path, demand: Demand, added: Demand) -> None:
    before, after = path.point(demand), path.point(more(demand, added))
    assert before.replicas <= after.replicas
    for key, amount in added.items():
        own = path.curves[key].count(demand[key])
        if own == before.replicas and path.curves[key].count(demand[key] + amount) == after.replicas:
            small = capacity(path, key, before.replicas, before.sizes[key])
            assert small <= capacity(path, key, after.replicas, after.sizes[key])


@given(paths(), DEMANDS)
def test_capacity_is_the_demand_up_to_rounding_inside_bounds_but_for_fixed_size_stretches(
    path: Path, demand: Demand
) -> None:
    point = path.point(demand)
    for key, amount in demand.items():
        size_bounds, size = path.curves[key].size_bounds, point.sizes[key]
        if key in point.saturated:
            assert size == size_bounds.upper
            assert capacity(path, key, point.replicas, size) < amount
        else:
            assert capacity(path, key, point.replicas, size) >= amount
        least = least_size(path.curves[key], point.replicas)
        assert size >= least
        if size > least:
            assert capacity(path, key, point.replicas, max(0, size - size_bounds.unit)) < amount


@given(paths(), DEMANDS)
def test_bounds_are_respected_and_saturation_is_at_the_last_count_alone(path: Path, demand: Demand) -> None:
    point = path.point(demand)
    assert path.counts.contains(point.replicas)
    for key, size in point.sizes.items():
        assert size == path.curves[key].size_bounds.clamp(size)
    assert not point.saturated or point.replicas == path.counts.upper


@given(paths(), DEMANDS)
def test_the_path_of_what_a_point_holds_is_that_point(path: Path, demand: Demand) -> None:
    point = path.point(demand)
    held = {key: capacity(path, key, point.replicas, size) for key, size in point.sizes.items()}
    again = path.point(held)
    assert again.replicas == point.replicas
    for key, size in point.sizes.items():
        if (
            key in point.saturated
        ):  # several sizes may leave as much for work: the bound is the largest of them
            assert capacity(path, key, again.replicas, again.sizes[key]) == held[key]
        else:
            assert again.sizes[key] == size


@given(curves(), st.integers(0, 40))
def test_a_boundary_is_served_by_its_count_and_one_more_by_the_next(curve: ResourceCurve, step: int) -> None:
    count = curve.counts.lower + step
    assume(curve.counts.contains(count))
    reach = curve.reach(count)
    if reach is None:
        assert curve.count(2**62) <= count
        return
    assert curve.count(reach) == count
    assert curve.count(reach + 1) == curve.counts.clamp(count + 1)


@given(st.integers(1, 99), st.integers(1, 50_000), st.integers(1, 5), st.integers(1, 400))
def test_a_power_is_exact(percent: int, base: int, origin: int, added: int) -> None:
    interval = WeightInterval(percent * FULL // 100)
    counts, count = Bounds(origin, None), origin + added
    path = path_of_weights((interval,), counts, ((CPU, SizeBounds(base=base)),))
    top, up, down = path.curves[CPU].top(count), percent, 100 - percent
    exact = base**down * count**up  # (base * (count / origin) ** (up / down) * origin ** (up / down)) ** down
    if top is None:
        assert (2**63 - 1) ** down * origin**up < exact
    else:
        assert (top - 1) ** down * origin**up < exact <= top**down * origin**up


@given(paths(), st.integers(0, 40), AMOUNTS, AMOUNTS)
def test_on_a_fixed_size_stretch_the_size_is_the_stretchs_while_it_serves(
    path: Path, step: int, demand: int, added: int
) -> None:
    for curve in path.curves.values():
        count = curve.counts.lower + step
        least = least_size(curve, count)
        if (
            curve.counts.contains(count)
            and curve.fixed_size(count)
            and demand <= count * curve.size_bounds.reserve.work(least)
        ):
            assert curve.size(count, demand) == curve.size(count, 0) == least
            assert curve.size(count, demand + added) >= least


@given(WEIGHT_INTERVALS, st.integers(1, 5), st.integers(0, 10), SIZE_BOUNDS, AMOUNTS)
def test_weights_written_out_are_the_same_path(
    weights: tuple[WeightInterval, ...], lower: int, more: int, size_bounds: SizeBounds, demand: int
) -> None:
    drawn = path_of_weights(weights, Bounds(lower, lower + more), ((CPU, size_bounds),))
    curve = drawn.curves[CPU]
    tops = [curve.top(count) for count in range(lower, lower + more + 1)]
    assume(None not in tops)
    rows = tuple(
        ResourceInterval(count, top or 1, curve.fixed_size(count) > 0)
        for count, top in enumerate(tops, lower)
    )
    written = path_of_intervals(drawn.counts, ((CPU, size_bounds, rows),))
    demand = min(demand, curve.reach(lower + more) or 0)
    point = drawn.point({CPU: demand})
    assert written.count({CPU: demand}) == point.replicas
    if (
        point.replicas not in curve.vertical_stretches
    ):  # where fixed-size and vertical stretches meet, which can't be written
        assert written.point({CPU: demand}) == point


@given(paths(), DEMANDS, MARGINS, MARGINS, st.integers(1, 3020))
def test_an_overlap_only_holds_replicas_that_are_there(
    path: Path, demand: Demand, cpu: Margin, memory: Margin, current: int
) -> None:
    overlaps: Overlaps = {"cpu": cpu, "memory": memory}
    out, inside = path.count(demand), path.count_in(demand, overlaps)
    settled, binding = path.settled(current, demand, overlaps)
    assert out <= inside == path.count_in(demand, overlaps, out)
    assert settled == max(out, min(current, inside))
    assert path.settled(settled, demand, overlaps) == (settled, binding)
    counts = {key: path.curves[key].count(amount) for key, amount in demand.items()}
    assert (out, binding) == (max(counts.values()), max(counts, key=counts.__getitem__))
    for key, curve in path.curves.items():
        count, margin = curve.count(overlaps[key.resource].raised(demand[key])), overlaps[key.resource]
        reach = curve.reach(count)
        if reach is not None and count != curve.counts.upper:
            assert demand[key] <= max(0, reach - max(margin.value, -(-reach * margin.percentage // 100)))


@given(MARGINS, st.integers(0, 10**5))
def test_base_usage_comes_off_and_back_on(margin: Margin, work: int) -> None:
    size = margin.size(work)
    assert margin.work(size) >= work
    assert size == 0 or margin.work(size - 1) < work


@given(paths(), DEMANDS, DEMANDS)
def test_present_demand_is_served_and_takes_no_fewer_replicas_than_the_path(
    path: Path, usual: Demand, present: Demand
) -> None:
    start = path.point(usual)
    point, sizes = path.present(start, present), start.sizes
    assert path.counts.contains(point.replicas)
    for key, amount in present.items():
        held = capacity(path, key, point.replicas, point.sizes[key])
        assert point.sizes[key] >= sizes[key]
        assert held >= amount or key in point.saturated
        if point.sizes[key] > sizes[key]:
            assert path.curves[key].count(amount) <= point.replicas


@given(paths(), DEMANDS, DEMANDS, DEMANDS)
def test_present_demand_never_takes_replicas_away_as_it_grows(
    path: Path, usual: Demand, present: Demand, added: Demand
) -> None:
    start = path.point(usual)
    before, after = path.present(start, present), path.present(start, more(present, added))
    assert before.replicas <= after.replicas


@given(paths(), DEMANDS)
def test_usual_demand_that_is_present_too_is_where_it_is(path: Path, usual: Demand) -> None:
    point = path.point(usual)
    present = path.present(point, usual)
    assert present.sizes == point.sizes
    assert present.replicas <= point.replicas


@given(paths(), DEMANDS, DEMANDS, st.integers(1, 3020))
def test_pods_are_enlarged_only_where_they_do_not_serve(
    path: Path, usual: Demand, present: Demand, replicas: int
) -> None:
    sizes, replicas = path.point(usual).sizes, path.counts.clamp(replicas)
    for key, size in path.enlarged(replicas, sizes, present).items():
        serves = capacity(path, key, replicas, sizes[key]) >= present[key]
        assert size == sizes[key] if serves else size == max(sizes[key], path.sizes(replicas, present)[key])
