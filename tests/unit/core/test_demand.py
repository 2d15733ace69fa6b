"""Usual and present demand, by container and resource (DESIGN 5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from hvpa.core.blend import RequestBounds
from hvpa.core.demand import (
    Claim,
    Requests,
    Usual,
    claims,
    limited,
    pods_needed,
    shared,
)
from hvpa.core.estimate import MICRO, MetricDemand
from hvpa.core.model import PodSize
from hvpa.core.path import Overlaps, SlotKey
from hvpa.core.path_curve import Margin
from hvpa.core.slots import Slot
from tests.unit.core.build import GIB

CPU, SIDE, MEMORY = SlotKey("app", "cpu"), SlotKey("side", "cpu"), SlotKey("app", "memory")
NOW = {CPU: 2000, SIDE: 500, MEMORY: 2 * GIB}
BARE = Requests(NOW, {CPU: 1000, SIDE: 1000, MEMORY: GIB}, {}, {})


def requests(
    pods: Mapping[SlotKey, PodSize] | None = None, reserve: Mapping[SlotKey, Margin] | None = None
) -> Requests:
    return Requests(NOW, BARE.first, pods or {}, reserve or {})


def slot(key: SlotKey, target: int) -> Slot:
    return Slot(key.container, key.resource, NOW[key], None, target, RequestBounds(), True)


def claim(demand: MetricDemand, of: Requests = BARE) -> Claim:
    (found,) = claims([demand], of, "cpu")
    return found


# --- what metrics call for -------------------------------------------------------------------------------------------
def test_an_absolute_target_speaks_of_the_requests_at_first_sight() -> None:
    pods = MetricDemand("cpu", 3 * MICRO, True, 100_000, "cpu", per_pod=800)
    assert claim(pods) == Claim("cpu", (CPU, SIDE), 6000, 3 * MICRO, 100_000)


def test_but_not_of_less_than_the_target_itself() -> None:
    pods = MetricDemand("cpu", 3 * MICRO, True, 0, "cpu", "app", per_pod=1500)
    assert claim(pods) == Claim("cpu", (CPU,), 4500, 3 * MICRO)
    both = MetricDemand("cpu", 3 * MICRO, True, 0, "cpu", per_pod=3000)
    assert claim(both).required == 9000


def test_a_request_that_was_never_seen_counts_as_it_is() -> None:
    later = Requests(NOW, {}, {}, {})
    assert claim(MetricDemand("cpu", 3 * MICRO, True, 0, "cpu"), later).required == 7500


def test_a_relative_target_speaks_of_the_pods_that_were_measured() -> None:
    pods = MetricDemand("cpu", 3 * MICRO, False, 0, "cpu")
    assert claim(pods).required == 7500
    behind = requests({CPU: PodSize(900, 1100)})
    assert claim(pods, behind).required == 3 * (1100 + 500)


def test_where_it_is_told_what_pods_request_that_counts() -> None:
    pods = MetricDemand("cpu", 3 * MICRO, False, 0, "cpu", requested=7001)
    assert claim(pods).required == 7001


def test_base_usage_of_the_measured_pods_is_taken_off_what_they_call_for() -> None:
    idle = {CPU: Margin(percentage=50)}
    relative = MetricDemand("cpu", 3 * MICRO, False, 0, "cpu", requested=7001, counted=3)
    assert claim(relative, requests(reserve=idle)).required == 7001 - 3 * 1000
    smaller = requests({CPU: PodSize(900, 1100)}, idle)
    assert claim(relative, smaller).required == 7001 - 3 * 550
    absolute = MetricDemand("cpu", 3 * MICRO, True, 0, "cpu", counted=2)
    assert claim(absolute, requests(reserve=idle)).required == 3 * 2000 - 2 * 1000
    many = MetricDemand("cpu", MICRO, True, 0, "cpu", counted=9)
    assert claim(many, requests(reserve=idle)).required == 0
    untold = MetricDemand("cpu", 3 * MICRO, False, 0, "cpu", counted=3)  # as much as so many pods do
    assert claim(untold, requests(reserve=idle)).required == 3 * 1500


def test_what_is_no_resource_speaks_of_the_spare_one() -> None:
    queue = MetricDemand("queue", 3 * MICRO, True)
    assert claims([queue], BARE, "memory") == (Claim("queue", (MEMORY,), 3 * GIB, 3 * MICRO),)
    assert claim(queue).keys == (CPU, SIDE)


def test_without_a_request_a_claim_is_one_of_pods() -> None:
    empty = Requests({CPU: 0}, {}, {}, {})
    queue = claim(MetricDemand("queue", 2_500_000, True, 100_000), empty)
    assert queue == Claim("queue", (), 0, 2_500_000, 100_000)
    assert pods_needed(queue, {CPU: 10**6}, empty) == 3
    assert shared([queue], {CPU: 1}, empty) == {}
    margins: Overlaps = {"cpu": Margin(10**9, 20), "memory": Margin()}
    assert queue.raised(margins).pods == 3_125_000  # 20 percent less is 2.5
    assert queue.tolerated().pods == 2_272_728  # 10 percent more is at least 2.5
    assert limited(queue, 2, empty).pods == 2 * MICRO
    assert limited(queue, 3, empty) == queue


def test_a_claim_is_raised_by_the_overlap_and_lowered_by_the_tolerance() -> None:
    one = Claim("cpu", (CPU,), 5000, 0, 100_000)
    assert one.raised({"cpu": Margin(0, 10), "memory": Margin(0, 50)}).required == 5556
    assert one.raised({"cpu": Margin(2000, 10), "memory": Margin()}).required == 7000
    assert one.tolerated().required == 4546
    assert Claim("cpu", (CPU,), 5000, 0).tolerated().required == 5000


def test_how_many_pods_a_claim_takes() -> None:
    one = Claim("cpu", (CPU, SIDE), 5001, 0)
    assert pods_needed(one, {}, BARE) == 3
    assert pods_needed(one, {CPU: 4501}, BARE) == 1  # with 500m of the other container
    assert pods_needed(one, {CPU: 0, SIDE: 0}, BARE) == 5001
    assert pods_needed(one, {}, requests(reserve={CPU: Margin(1000)})) == 4


def test_a_claim_is_no_more_than_so_many_pods_serve() -> None:
    one = Claim("cpu", (CPU, SIDE), 5001, 0)
    assert limited(one, 2, BARE).required == 5000
    assert limited(one, 3, BARE).required == 5001


def test_claims_are_shared_as_the_sizes_are_and_the_largest_counts() -> None:
    sizes = {CPU: 1500, MEMORY: GIB}
    both, own = Claim("cpu", (CPU, SIDE), 4000, 0), Claim("cpu of app", (CPU,), 3100, 0)
    assert shared([both], sizes, BARE) == {CPU: 3000}  # 1500 : 500, and the other one is not scaled
    assert shared([both, own], sizes, BARE) == shared([own, both], sizes, BARE) == {CPU: 3100}
    assert shared([both], {CPU: 0, SIDE: 0}, BARE) == {CPU: 0, SIDE: 0}


def test_requests_that_a_metric_covers() -> None:
    found = Requests({CPU: 1, SIDE: 2, MEMORY: 3, SlotKey("side", "memory"): 0}, {}, {}, {})
    assert found.covered("cpu", "") == (CPU, SIDE)
    assert found.covered("cpu", "side") == (SIDE,)
    assert found.covered("memory", "") == (MEMORY,)
    assert found.covered("memory", "side") == ()


# --- usual demand ----------------------------------------------------------------------------------------------------
SLOTS = (slot(CPU, 1000), slot(MEMORY, GIB))
MANY = 10
"""More pods than any of these targets speak of."""


def told(usual: Usual, slots: Sequence[Slot] = SLOTS, of: Requests = BARE) -> dict[SlotKey, int]:
    return usual.demand(slots, of, usual.count(slots, of, MANY))


def test_usual_demand_is_the_mean_of_what_was_measured_and_the_rest_follows_it() -> None:
    usual = Usual({CPU: 3500.0})
    assert usual.count(SLOTS, BARE, MANY) == 3.5
    assert told(usual) == {CPU: 3500, MEMORY: 3 * GIB + GIB // 2}


def test_the_means_are_known_rounded_up() -> None:
    assert Usual({CPU: 3500.2, MEMORY: 7.0}).known() == {CPU: 3501, MEMORY: 7}


@pytest.mark.parametrize(
    ("mean", "replicas", "serve", "count"),
    [
        pytest.param(3500.0, 2.0, 5, 3.5, id="targets tell of work"),
        pytest.param(40.0, 4.0, 1, 1, id="idle pods, whose targets are more than they use: those that serve"),
        pytest.param(40.0, 4.0, 6, 4, id="or as many as there were, where that is less"),
        pytest.param(9000.0, 4.0, 6, 6, id="targets with less headroom: those that serve"),
        pytest.param(9000.0, 7.5, 6, 7.5, id="or as many as there were, where that is more"),
    ],
)
def test_targets_speak_of_a_count_between_the_mean_one_and_the_one_that_serves(
    mean: float, replicas: float, serve: int, count: float
) -> None:
    assert Usual({CPU: mean}, replicas).count(SLOTS, BARE, serve) == count


def test_usual_demand_is_that_of_the_count_that_is_given() -> None:
    """Idle pods keep their memory: 40m of CPU are no twentieth of a pod."""
    assert Usual({CPU: 40.0}, 4.0).demand(SLOTS, BARE, 4) == {CPU: 40, MEMORY: 4 * GIB}


def test_of_measured_memory_the_larger_of_both_counts() -> None:
    for mean, expected in ((3.0 * GIB, 3 * GIB + GIB // 2), (4.0 * GIB, 4 * GIB)):
        assert told(Usual({CPU: 3500.0, MEMORY: mean})) == {CPU: 3500, MEMORY: expected}


def test_where_only_memory_is_measured_cpu_follows_it() -> None:
    assert told(Usual({MEMORY: 2.5 * GIB})) == {CPU: 2500, MEMORY: 2 * GIB + GIB // 2}


def test_where_nothing_is_measured_targets_speak_of_the_mean_count() -> None:
    usual = Usual({}, 2.5)
    assert usual.count(SLOTS, BARE, MANY) == 2.5
    assert told(usual) == {CPU: 2500, MEMORY: 2 * GIB + GIB // 2}
    assert told(Usual({})) == {CPU: 0, MEMORY: 0}


def test_a_measured_resource_without_any_target_tells_no_count() -> None:
    nothing = (slot(CPU, 0), slot(MEMORY, GIB))
    assert told(Usual({CPU: 700.0}, 2.0), nothing) == {CPU: 700, MEMORY: 2 * GIB}


def test_several_containers_are_one_pod() -> None:
    both = (slot(CPU, 1000), slot(SIDE, 500))
    assert Usual({CPU: 2000.0, SIDE: 1600.0}).count(both, BARE, MANY) == 2.4
    # what is not measured of the pod follows: the sidecar's target times the 2 pods that the other one fills
    assert told(Usual({CPU: 2000.0}), both) == {CPU: 2000, SIDE: 1000}


def test_base_usage_is_no_demand() -> None:
    less = requests(reserve={CPU: Margin(200), MEMORY: Margin(percentage=50)})
    assert told(Usual({CPU: 3200.0}), of=less) == {CPU: 3200, MEMORY: 2 * GIB}


@pytest.mark.parametrize(("mean", "expected"), [(1000.0000001, 1000), (1000.1, 1001)])
def test_what_floating_point_adds_is_not_rounded_up(mean: float, expected: int) -> None:
    assert told(Usual({CPU: mean}), SLOTS[:1]) == {CPU: expected}
