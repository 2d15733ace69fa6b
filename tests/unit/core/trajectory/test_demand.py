"""Usual and present demand, by container and resource (DESIGN 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders.build import GIB
from hvpa.api.values.quantity import Resource
from hvpa.core.model import PodTotal
from hvpa.core.path.curve import Margin
from hvpa.core.path.path import Overlaps, ResourceKey
from hvpa.core.recommenders.estimate import MICRO, MetricDemand
from hvpa.core.trajectory.demand import (
    MetricRequirement,
    Requests,
    boosted,
    by_sizes,
    by_targets,
    pods_needed,
    requirements,
)
from hvpa.core.values.arithmetic import ceil_div

CPU, SIDE, MEMORY = ResourceKey("app", "cpu"), ResourceKey("side", "cpu"), ResourceKey("app", "memory")
NOW = {CPU: 2000, SIDE: 500, MEMORY: 2 * GIB}
TARGETS = {CPU: 1500, SIDE: 500, MEMORY: GIB}
BARE = Requests(NOW, {CPU: 1000, SIDE: 1000, MEMORY: GIB}, {}, {}, TARGETS)


def requests(
    pods: Mapping[ResourceKey, int] | None = None, reserve: Mapping[ResourceKey, Margin] | None = None
) -> Requests:
    return Requests(NOW, BARE.first, pods or {}, reserve or {}, TARGETS)


def requirement(demand: MetricDemand, of: Requests = BARE) -> MetricRequirement:
    (requirement,) = requirements([demand], of)
    return requirement


# --- saturated pods ---------------------------------------------------------------------------------------------------
def boosted_pods(used: int | None, of: Requests = BARE, **change: Any) -> int:
    """Millionths of pods that 3 pods call for where each uses so much."""
    (demand,) = boosted([structs.replace(OF_CPU, used=used, counted=3, **change)], of)
    assert demand.counted == 3
    return demand.pods


def test_what_saturated_pods_use_counts_for_more_and_what_is_measured_beyond_that_as_it_is() -> None:
    # Pods that request 2500m, target 100 percent.
    assert boosted_pods(2874) == boosted_pods(None) == boosted_pods(0) == 3 * MICRO, "below 115 percent"
    assert boosted_pods(2875) == 4_500_000
    assert boosted_pods(3000) == 4_312_500, "what 115 percent call for, times 1.5"
    assert boosted_pods(4313) == boosted_pods(8000) == 3 * MICRO, "they can use more, and do"


def test_a_target_above_the_requests_is_no_saturation() -> None:
    # At 150 percent pods that request 2500m are to use 3750m.
    assert boosted_pods(4312, utilization=150) == 3 * MICRO
    assert boosted_pods(4313, utilization=150) == 4_499_479
    assert boosted_pods(2875, utilization=80) == 4_500_000
    # 3000m of pods that had 2000m at first sight are 3750m of the ones of 2500m.
    absolute: dict[str, Any] = {"absolute": True, "per_pod": 3000}
    assert boosted_pods(4312, **absolute) == 3 * MICRO
    assert boosted_pods(4313, **absolute) == 4_499_479


def test_pods_that_use_all_their_limits_allow_are_saturated() -> None:
    """98 percent of limits of 2500m are 2450m, and 1.5 times that count."""

    def of(limits: Mapping[ResourceKey, int], **rest: Any) -> Requests:
        return Requests(NOW, BARE.first, {}, {}, TARGETS, limits, **rest)

    both = {CPU: 2000, SIDE: 500}
    assert boosted_pods(2449, of=of(both)) == 3 * MICRO
    assert boosted_pods(2450, of=of(both)) == 4_500_000
    assert boosted_pods(1960, of=of(both), container="app") == 4_500_000
    assert boosted_pods(2450, of=of({CPU: 2000})) == 3 * MICRO, "the other container may use more"
    proxy = {"cpu": PodTotal(2600)}
    assert boosted_pods(2548, of=of(both, totals=proxy)) == 3 * MICRO, "an injected one may as well"


def test_only_cpu_is_boosted_and_by_the_requests_of_the_pods_that_were_measured() -> None:
    assert boosted_pods(4 * GIB, resource="memory") == 3 * MICRO
    assert boosted_pods(3000, of=requests({CPU: 2500})) == 3 * MICRO
    assert boosted_pods(2300, container="app") == 4_500_000
    assert boosted_pods(2300, of=Requests({CPU: 0}, {}, {}, {}, TARGETS)) == 3 * MICRO, "nothing is requested"


@given(st.integers(0, 10**6))
def test_a_boost_never_takes_away_and_more_use_never_calls_for_less(used: int) -> None:
    def called(use: int) -> int:  # of pods that request 2500m, target 100 percent
        (demand,) = boosted([structs.replace(OF_CPU, pods=use * 400, used=use, counted=1)], BARE)
        return demand.pods

    assert used * 400 <= called(used) <= max(used * 400, 2876 * 4 * 150)
    assert called(used) <= called(used + 1) + 1


# --- what metrics call for -------------------------------------------------------------------------------------------
OF_CPU = MetricDemand("cpu", 3 * MICRO, False, 0, "cpu")
"""Calls for three pods as they were measured."""
ABSOLUTE = structs.replace(OF_CPU, absolute=True)
"""For three pods as they were at first sight: 2000m each."""
BEHIND = {CPU: 1100}
"""Pods that do not have the template's size yet."""


def required(demand: MetricDemand, of: Requests = BARE, **change: Any) -> int:
    return requirement(structs.replace(demand, **change), of).required


def test_an_absolute_target_is_meant_for_the_requests_at_first_sight() -> None:
    pods = structs.replace(ABSOLUTE, tolerance=100_000, per_pod=800)
    assert requirement(pods) == MetricRequirement("cpu", (CPU, SIDE), 6000, 3 * MICRO, 100_000)
    assert required(ABSOLUTE, per_pod=3000) == 6000, "also a target above them"
    assert required(ABSOLUTE, per_pod=1500, container="app") == 3000
    assert required(ABSOLUTE, Requests(NOW, {}, {}, {}, TARGETS)) == 7500, (
        "what was never seen counts as it is"
    )


def test_a_relative_target_is_meant_for_the_pods_that_were_measured() -> None:
    assert required(OF_CPU) == 7500
    assert required(OF_CPU, requests(BEHIND)) == 3 * (1100 + 500)
    assert required(OF_CPU, requested=7001) == 7001, "where it is measured, what pods request counts"


@given(
    st.integers(0, 10 * MICRO),
    st.integers(1, 4000),
    st.integers(1, 4000),
    st.integers(0, 4000),
    st.booleans(),
)
def test_at_weight_0_no_more_is_called_for_than_the_hpas_own_count(
    pods: int, app: int, target: int, beside: int, absolute: bool
) -> None:
    """Pods of an app and a sidecar, whose idle request the HPA counts."""
    totals: dict[Resource, PodTotal] = {"cpu": PodTotal(app + beside)}
    of = Requests({CPU: app}, {CPU: app}, {CPU: app}, {}, {CPU: target}, totals=totals, horizontal=True)
    demand = MetricDemand("cpu", pods, absolute, 0, "cpu", "", None, app + beside, 3, 100, 100)
    cpu_requirement = requirement(demand, of)
    assert pods_needed(cpu_requirement, {CPU: app}, of) <= ceil_div(pods, MICRO)
    if not beside:
        assert pods_needed(cpu_requirement, {CPU: app}, of) == ceil_div(pods, MICRO)


def test_base_usage_of_the_measured_pods_is_taken_off_what_they_call_for() -> None:
    idle = {CPU: Margin(percentage=50)}
    of = requests(reserve=idle)
    assert required(OF_CPU, of, requested=7001, counted=3) == 7001 - 3 * 1000
    assert required(OF_CPU, requests(BEHIND, idle), requested=7001, counted=3) == 7001 - 3 * 550
    assert required(ABSOLUTE, of, counted=2) == 3 * 2000 - 2 * 1000
    assert required(ABSOLUTE, of, pods=MICRO, counted=9) == 0
    assert required(OF_CPU, of, counted=3) == 3 * 1500, "not measured: as much as so many pods do"


def test_what_is_no_resource_calls_for_pods_and_for_no_size() -> None:
    queue = MetricDemand("queue", 3 * MICRO, True)
    assert requirement(queue) == MetricRequirement("queue", (), 0, 3 * MICRO)
    off = Requests({CPU: 500}, {CPU: 250}, {}, {}, {})
    assert requirement(OF_CPU, off).keys == (), "no VPA governs it"


def test_without_a_request_a_requirement_is_one_of_pods() -> None:
    empty = Requests({CPU: 0}, {}, {}, {}, TARGETS)
    queue = requirement(structs.replace(OF_CPU, pods=2_500_000, tolerance=100_000), empty)
    assert queue == MetricRequirement("cpu", (), 0, 2_500_000, 100_000)
    assert pods_needed(queue, {CPU: 10**6}, empty) == 3
    assert by_sizes([queue], {CPU: 1}, empty) == by_targets([queue], empty) == {}
    margins: Overlaps = {"cpu": Margin(10**9, 20), "memory": Margin()}
    assert queue.raised(margins).pods == 3_125_000  # 20 percent less is 2.5
    assert queue.tolerated().pods == 2_272_728  # 10 percent more is at least 2.5


def test_a_requirement_is_raised_by_the_overlap_and_lowered_by_the_tolerance() -> None:
    requirement = MetricRequirement("cpu", (CPU,), 5000, 0, 100_000)
    assert requirement.raised({"cpu": Margin(0, 10), "memory": Margin(0, 50)}).required == 5556
    assert requirement.raised({"cpu": Margin(2000, 10), "memory": Margin()}).required == 7000
    assert requirement.tolerated().required == 4546
    assert structs.replace(requirement, tolerance=0).tolerated().required == 5000


def test_a_requirement_of_another_amount_is_one_of_requests_or_of_pods() -> None:
    cpu, pods = MetricRequirement("cpu", (CPU,), 5000, 2 * MICRO), MetricRequirement("queue", (), 0, MICRO)
    assert (cpu.amount, pods.amount) == (5000, MICRO)
    assert cpu.scaled(5000) is cpu
    assert cpu.scaled(7) == structs.replace(cpu, required=7)
    assert pods.scaled(7) == structs.replace(pods, pods=7)


BOTH, APP = MetricRequirement("cpu", (CPU, SIDE), 4000, 0), MetricRequirement("cpu of app", (CPU,), 3100, 0)


def test_how_many_pods_a_requirement_takes() -> None:
    requirement = structs.replace(BOTH, required=5001)
    assert pods_needed(requirement, NOW, BARE) == 3
    assert pods_needed(requirement, {CPU: 4501, SIDE: 500}, BARE) == 1
    assert pods_needed(requirement, {CPU: 0, SIDE: 0}, BARE) == 5001
    assert pods_needed(requirement, NOW, requests(reserve={CPU: Margin(1000)})) == 4


def test_for_a_count_requirements_are_shared_as_the_sizes_are_and_the_largest_counts() -> None:
    sizes = {CPU: 1500, SIDE: 500}
    assert by_sizes([BOTH], sizes, BARE) == {CPU: 3000, SIDE: 1000}
    assert by_sizes([BOTH, APP], sizes, BARE) == by_sizes([APP, BOTH], sizes, BARE) == {CPU: 3100, SIDE: 1000}
    assert by_sizes([BOTH], {CPU: 0, SIDE: 0}, BARE) == {CPU: 0, SIDE: 0}


def test_demand_is_shared_as_the_vpas_targets_are_whatever_pods_request() -> None:
    assert by_targets([BOTH], BARE) == {CPU: 3000, SIDE: 1000}  # 1500 : 500; the requests are 2000 : 500
    assert by_targets([BOTH, APP], BARE) == by_targets([APP, BOTH], BARE) == {CPU: 3100, SIDE: 1000}
    less = requests(reserve={CPU: Margin(1000)})
    assert by_targets([BOTH], less) == {CPU: 2000, SIDE: 2000}, "without base usage: 1500 - 1000 : 500"
    nothing = Requests(NOW, {}, {}, {}, {CPU: 0, SIDE: 0})
    assert by_targets([BOTH], nothing) == {CPU: 3200, SIDE: 800}, "without any target as requests are"


def test_requests_that_a_metric_covers() -> None:
    now = {CPU: 1, SIDE: 2, MEMORY: 3, ResourceKey("side", "memory"): 0, ResourceKey("off", "cpu"): 4}
    requests = Requests(now, {}, {}, {}, {**TARGETS, ResourceKey("side", "memory"): GIB})
    assert requests.covered("cpu", "") == (CPU, SIDE)
    assert requests.covered("cpu", "side") == (SIDE,)
    assert requests.covered("memory", "") == (MEMORY,)
    assert requests.covered("memory", "side") == ()


# --- what pods have beside what is governed --------------------------------------------------------------------------
PROXY = ResourceKey("proxy", "cpu")
MEASURED = MetricDemand("cpu", 4 * MICRO, False, 0, "cpu", requested=4000, counted=4, utilization=50)
"""Four pods use 2000m, half of what they request."""


def beside(
    app: int = 500,
    proxy: int | None = None,
    total: PodTotal = PodTotal(1000),  # noqa: B008 - frozen
    reserve: Mapping[ResourceKey, Margin] | None = None,
) -> Requests:
    """An app of 500m, whose VPA target is `app`, in pods that request `total`. The proxy has a VPA target or none."""
    pods = {CPU: 500, PROXY: 500}
    others = {} if proxy is None else {PROXY: proxy}
    return Requests({CPU: 500}, {CPU: 500}, pods, reserve or {}, {CPU: app}, {}, others, {"cpu": total})


def test_what_other_containers_use_is_taken_off_and_what_they_request_serves_nobody_else() -> None:
    """Targets are alike, so half of the 4000m that are called for is the app's: 4 pods of 500m."""
    cpu_requirement = requirement(MEASURED, beside(288, 288))
    assert cpu_requirement == MetricRequirement("cpu", (CPU,), 2000, 4 * MICRO)
    assert pods_needed(cpu_requirement, {CPU: 500}, beside()) == 4
    assert (
        by_sizes([cpu_requirement], {CPU: 500}, beside())
        == by_targets([cpu_requirement], beside(288, 288))
        == {CPU: 2000}
    )


def test_of_a_measurement_the_governed_part_is_that_of_its_targets() -> None:
    def own(app: int, proxy: int | None) -> int:
        return requirement(MEASURED, beside(app, proxy)).required

    assert own(518, 58) == pytest.approx(3600, abs=5), "58 of 576 are a tenth"
    assert own(288, None) == pytest.approx(2000, abs=5), "250m are the app's by its target, and 250m are left"
    assert own(575, None) == 2000, "nothing is left by the app's target, but pods request enough together"
    assert own(100, None) == 2000, "no more is the other's than its request"
    # No target of the app yet. The proxy's 288m are of 250m, which at a target of 50 percent call for 500m of each pod.
    assert own(0, 288) == pytest.approx(2000, abs=5)


@pytest.mark.parametrize(
    ("called", "app"), [(0, 0), (1000, 500), (2000, 1000), (4000, 2000), (5000, 3000), (16_000, 14_000)]
)
def test_a_container_without_a_target_keeps_its_request_and_what_is_called_for_beyond_is_the_apps(
    called: int, app: int
) -> None:
    """4 pods request 500m for the app and 500m for the other. The app's VPA target is the recommender's least, however
    little it uses: without a share for the other, each further pod would call for one more."""
    measured = structs.replace(MEASURED, pods=called * 1000, requested=called)
    assert requirement(measured, beside(2000)).required == app


def test_what_other_containers_use_beyond_their_requests_at_the_target_is_no_demand() -> None:
    """Eight pods: the app uses 125m of each, the proxy 500m. The HPA would go out for ever. The app's part, a fifth,
    calls for 2000m: 4 pods, of which it uses 250m each, half of its requests. There it rests."""
    greedy = structs.replace(MEASURED, pods=10 * MICRO, requested=10_000, counted=8)
    assert requirement(greedy, beside(144, 576)).required == 2000
    resting = structs.replace(MEASURED, pods=6 * MICRO, requested=6000, counted=4)
    assert requirement(resting, beside(288, 576)).required == 2000


def test_a_load_that_the_vpa_has_not_seen_is_not_taken_for_the_proxys() -> None:
    """The targets are of an idle app (12m) and its proxy (575m for 500m). Now 2000m are used in each pod, 1500m of them
    by the app: 12 cores of the 16 that are called for are the app's."""
    burst = structs.replace(MEASURED, pods=16 * MICRO, requested=16_000, counted=4)
    assert requirement(burst, beside(12, 575)).required == 12_000


@given(
    target=st.integers(20, 95),
    other=st.integers(50, 2000),
    share=st.integers(0, 100),
    begin=st.integers(1, 40),
    known=st.booleans(),
    with_load=st.booleans(),
)
def test_at_constant_load_counts_come_to_rest_where_the_app_alone_is_at_the_target(
    target: int, other: int, share: int, begin: int, known: bool, with_load: bool
) -> None:
    """An app of 500m that uses 4 cores in sum, beside a proxy that uses a share of its request, in each pod or with the
    load. A proxy without a VPA target counts as the app: each pod brings its use along, which may take yet another."""
    work, proxy = 4000, other * share // 100
    enough = ceil_div(work * 100, target * 500)  # the count at which the app alone is at the target
    targets = {CPU: ceil_div(work * 115, enough * 100)}
    others = {PROXY: ceil_div(proxy * 115, 100)} if known else {}
    pods = {CPU: 500, PROXY: other}
    of = Requests({CPU: 500}, {CPU: 500}, pods, {}, targets, {}, others, {"cpu": PodTotal(500 + other)})
    counts, at_rest = [begin], False
    for _ in range(500):
        count = counts[-1]
        called = ceil_div((work + (enough if with_load else count) * proxy) * 100, target)
        demand = MetricDemand("cpu", 0, False, 0, "cpu", requested=called, counted=count, utilization=target)
        needed = pods_needed(requirement(demand, of), {CPU: 500}, of)
        # What a proxy uses with the load is rounded by whole pods: one more or less, which the overlap holds.
        at_rest = needed == count or (with_load and abs(needed - count) == 1)
        if at_rest or needed > 1000:
            break
        counts.append(needed)
    if known and not with_load:
        assert max(counts) <= max(begin, enough) + 1
    runs_away = not known and not with_load and proxy * 100 >= target * 500 - 500
    assert at_rest or runs_away


def test_an_absolute_target_of_the_whole_pod_speaks_of_the_pod_at_first_sight() -> None:
    """4 pods of 500m and the proxy's 500m are called for. The proxy's target of 575m is of 500m: half of the use."""
    value = MetricDemand("cpu", 4 * MICRO, True, 0, "cpu", per_pod=500, counted=4)
    total: dict[Resource, PodTotal] = {"cpu": PodTotal(1500)}
    alone = Requests({CPU: 1000}, {CPU: 500}, {CPU: 1000}, {}, {CPU: 575}, totals=total)
    assert requirement(value, alone).required == 2667, "1000m of the 1500m that pods request are the app's"
    larger = structs.replace(alone, pods={CPU: 1000, PROXY: 500}, others={PROXY: 575})
    assert requirement(value, larger).required == 2000
    container = structs.replace(value, container="app")
    assert requirement(container, larger) == MetricRequirement("cpu", (CPU,), 2000, 4 * MICRO)


def test_a_governed_container_that_requests_nothing_yet_uses_its_part() -> None:
    """Only an AverageValue has a value then. Of pods that use 500m in each, 400m are the app's."""
    value = MetricDemand("cpu", 4 * MICRO, True, 0, "cpu", per_pod=500, counted=4)
    now = {CPU: 500, SIDE: 0}
    cpu_requirement = requirement(value, Requests(now, {CPU: 500}, {CPU: 500}, {}, {CPU: 460, SIDE: 115}))
    assert (cpu_requirement.keys, cpu_requirement.required) == ((CPU,), 1600)


def test_a_metric_of_an_injected_container_is_one_of_pods() -> None:
    proxy = MetricDemand("cpu of proxy", 3 * MICRO, False, 0, "cpu", "proxy", 1500, None, 4, 50)
    assert requirement(proxy, beside()) == MetricRequirement("cpu of proxy", (), 0, 3 * MICRO)
    unknown = structs.replace(proxy, container="gone")
    assert requirement(unknown, beside()) == MetricRequirement("cpu of proxy", (), 0, 3 * MICRO)


def test_requests_of_the_pods_themselves_hold_whatever_their_containers_request() -> None:
    whole = beside(1150, total=PodTotal(2000, True))
    assert requirement(structs.replace(MEASURED, requested=8000), whole) == MetricRequirement(
        "cpu", (), 0, 4 * MICRO
    )
    value = MetricDemand("cpu", 4_500_000, True, 0, "cpu", per_pod=1000, counted=4)
    assert requirement(value, whole) == MetricRequirement("cpu", (), 0, 4_500_000)


def test_base_usage_is_that_of_what_is_governed() -> None:
    less = beside(288, 288, reserve={CPU: Margin(100)})
    assert requirement(MEASURED, less).required == 1600, "2000m of the app less 4 x 100m"
    untold = MetricDemand("cpu", 3 * MICRO, False, 0, "cpu", counted=4, utilization=50)
    assert requirement(untold, less).required == 1200, "3 x (1000m - 100m), less the proxies' half of 3000m"
