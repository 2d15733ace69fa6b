"""Both axes solved together, before any gate (DESIGN 5.4, 5.5): what a decision wants, and why."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from builders import build
from builders.build import GIB, at, stamp
from hvpa.api.hvpa.status import to_wire
from hvpa.api.objects.read_models import Pod
from hvpa.core import Decision
from hvpa.core.path.path import ResourceKey
from tests.unit.core.trajectory.jointly import (
    EXACT,
    Reading,
    app,
    count,
    decide,
    external,
    one_core,
    requests,
    state,
    utilization,
    value,
    view,
    wanted,
)

CPU, SIDE, MEMORY = ResourceKey("app", "cpu"), ResourceKey("side", "cpu"), ResourceKey("app", "memory")
ROWS = [
    {"maxReplicas": replicas, "maxResources": {"cpu": cpu, "memory": memory}}
    for replicas, cpu, memory in (
        (1, "500m", "2Gi"),
        (2, "1", "4Gi"),
        (3, "2", "8Gi"),
        (4, "4", "16Gi"),
        (5, "8", "32Gi"),
    )
]
TABLE: dict[str, Any] = {"trajectory": {"intervals": ROWS}, "weightBasedScalingIntervals": None}
TWO = [app("1", "1Gi"), app("500m", name="side")]
TWO_TARGETS = {"app": {"cpu": "2", "memory": "1Gi"}, "side": {"cpu": "1"}}


def policy(**of: Any) -> dict[str, Any]:
    """A spec whose VPA has this policy for the container, all where none is named."""
    one = {"containerName": "*", **of}
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [one]}}}}}


def because(decision: Decision) -> str:
    return view(decision).because


# --- DESIGN's examples -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("replicas", "request_", "used"),
    [(1, "1", "5"), (5, "1", "1"), (10, "500m", "500m"), (2, "4", "2500m"), (1, "5", "5")],
)
def test_five_cores_at_weight_50_are_three_pods_of_five_thirds_from_wherever_it_comes(
    replicas: int, request_: str, used: str
) -> None:
    base = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
    seen = one_core(replicas, used, used, {"trajectory": EXACT}, request=request_, status=base)
    assert wanted(build.decided(seen)) == (3, {CPU: 1667})


def test_4_cpu_and_26gi_take_4_replicas_of_the_five_row_table() -> None:
    readings = [value("cpu", "500m", "4"), value("memory", "2Gi", "26Gi")]
    seen = state(1, [app("500m", "2Gi")], readings, {"app": {"cpu": "4", "memory": "26Gi"}}, TABLE)
    decision = build.decided(seen)
    assert count(decision) == 4
    assert requests(decision) == {
        "cpu": 1000,
        "memory": 6_979_322_000,
    }  # a fourth of 26Gi, in whole kilobytes
    assert [item.usual_replicas for item in view(decision).items] == [3, 4]
    assert because(decision) == "memory asks for 4 replicas"


def test_without_an_hpa_usual_demand_takes_what_is_written() -> None:
    spec = {**TABLE, "hpa": {"deploy": False}}
    decision = build.decided(
        state(1, [app("500m", "2Gi")], [], {"app": {"cpu": "4", "memory": "26Gi"}}, spec)
    )
    assert (count(decision), requests(decision)["cpu"]) == (4, 1000)
    assert because(decision) == "the usual demand of app memory asks for 4 replicas"
    assert decision.weight_ppm is None
    found = {(one.present, one.present_from, one.present_replicas) for one in view(decision).items}
    assert found == {(None, "", None)}, "the present demand is not measured"
    held = {**spec, "vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    more = build.decided(state(1, [app("500m", "2Gi")], [], {"app": {"cpu": "2"}}, held))
    assert (count(more), requests(more)["cpu"]) == (4, 500), "more replicas make up for sizes that are held"


def test_without_an_hpa_and_without_intervals_replicas_stay() -> None:
    spec = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": None}
    decision = decide(2, None, "4", spec)
    assert wanted(decision) == (2, {CPU: 4000})
    assert decision.weight_ppm == 1_000_000
    assert count(decision) == 2


# --- containers and resources ----------------------------------------------------------------------------------------
def test_several_containers_share_what_is_measured_of_the_pod() -> None:
    decision = build.decided(state(2, TWO, [value("cpu", "1500m", "3")], TWO_TARGETS))
    assert wanted(decision) == (2, {CPU: 2000, SIDE: 1000, MEMORY: 1_073_742_000})
    assert [(item.present, item.present_from) for item in view(decision).items] == [
        (4000, "HPA: cpu"),
        (None, ""),
        (2000, "HPA: cpu"),
    ]


def test_containers_share_what_is_measured_by_targets_of_now_not_by_requests_at_first_sight() -> None:
    status = {"axes": {"vertical": {"base": {"app": {"cpu": "100m"}, "side": {"cpu": "1400m"}}}}}
    one = build.decided(state(2, TWO, [value("cpu", "1500m", "3")], TWO_TARGETS, status=status))
    assert [item.present for item in view(one).items if item.key.resource == "cpu"] == [4000, 2000]


def test_a_request_that_a_limit_range_gave_the_pods_is_the_containers_own() -> None:
    """The template has none. It stays so while that request is near to what is wanted, and at a decision of another
    size the template gets that."""
    template, pods = (
        [app(memory="1Gi")],
        [build.pod(f"web-{index}", containers=[app("1", "1Gi")]) for index in (0, 1)],
    )
    for used, target, is_set in (("700m", "1", False), ("1500m", "3", True)):
        reading = utilization("cpu", 70, 100 * int(used[:-1]) // 1000, used)
        one = build.decided(state(2, template, [reading], {"app": {"cpu": target}}, pods=pods))
        assert [item.current for item in view(one).items] == [1000]
        assert ("cpu" in requests(one)) is is_set


def test_a_metric_of_one_container_speaks_of_that_one() -> None:
    readings = [value("cpu", "1", "1", "app"), value("cpu", "500m", "2", "side")]
    decision = build.decided(state(2, TWO, readings, {**TWO_TARGETS, "app": {"cpu": "1"}}))
    assert [(item.key, item.present, item.present_from) for item in view(decision).items] == [
        (CPU, 2000, "HPA: cpu of app"),
        (SIDE, 4000, "HPA: cpu of side"),
    ]
    assert because(decision) == "cpu of side asks for 4 replicas"


def test_a_container_with_mode_off_keeps_its_size_and_counts_in_what_pods_serve() -> None:
    off = policy(containerName="side", mode="Off")
    decision = build.decided(state(2, TWO, [value("cpu", "1500m", "3")], TWO_TARGETS, off))
    assert requests(decision, "side") == {"cpu": 500}
    assert requests(decision)["cpu"] == 2000
    # 6000m of both containers together, and each pod has 2000m + 500m now
    assert count(decision) == 3


def test_a_resource_that_only_the_vpa_sees_follows_the_usual_count() -> None:
    decision = build.decided(
        state(4, [app("1", "1Gi")], [value("cpu", "1", "1")], {"app": {"cpu": "1", "memory": "3Gi"}})
    )
    memory = view(decision).items[1]
    assert (memory.usual, memory.usual_from) == (12 * GIB, "VPA: 3Gi each of 4.00 pods")
    assert memory.present is None
    assert view(decision).items[0].usual_from == "HPA: mean of what it measured"
    assert requests(decision)["memory"] == 3 * GIB // 1000 * 1000 + 1000


def test_a_resource_that_only_the_hpa_sees_takes_replicas() -> None:
    decision = build.decided(
        state(2, [app("1", "1Gi")], [value("memory", "1Gi", "3Gi")], {"app": {"cpu": "1"}})
    )
    assert (count(decision), requests(decision)) == (6, {"cpu": 1000, "memory": GIB})
    assert because(decision) == "memory asks for 6 replicas"
    at_most = build.decided(
        state(4, [app("1", "1Gi")], [value("memory", "1Gi", "4Gi")], {"app": {"cpu": "1"}}), resizes=True
    )
    assert count(at_most) == 10
    assert because(at_most) == "memory asks for 16 replicas, and there may be no more than 10"


def test_an_external_metric_takes_replicas_and_in_the_end_larger_pods() -> None:
    decision = build.decided(state(2, [app("1")], [external("10", "30")], {"app": {"cpu": "1"}}))
    assert (count(decision), requests(decision)) == (6, {"cpu": 1000})
    assert because(decision) == "External queue asks for 6 replicas"
    beyond = build.decided(state(10, [app("1")], [external("10", "30")], {"app": {"cpu": "1"}}))
    assert wanted(beyond) == (10, {CPU: 3000})


def test_where_cpu_is_not_governed_an_external_metric_speaks_of_memory() -> None:
    decision = build.decided(state(2, [app(None, "1Gi")], [external("10", "30")], {"app": {"memory": "1Gi"}}))
    assert (count(decision), view(decision).items[0].present) == (6, 6 * GIB)


def test_without_a_vpa_the_hpa_takes_replicas_and_without_requests_too() -> None:
    for container in (app("1"), app()):
        decision = build.decided(state(2, [container], [value("cpu", "1", "3")]))
        assert (count(decision), view(decision).usual, view(decision).items) == (6, None, ())


def test_a_target_of_nothing_is_no_reason_to_stumble() -> None:
    decision = build.decided(state(2, [app()], [value("cpu", "1", "1")], {"app": {"cpu": "0"}}))
    assert wanted(decision) == (2, {})


def test_base_usage_is_taken_off_every_pod_and_put_back() -> None:
    trajectory = {**EXACT, "baseResourcesPerReplica": {"cpu": {"value": "200m"}}}
    seen = one_core(2, "1", "2", {"trajectory": trajectory})
    decision = build.decided(seen)
    # usual: 2 x (2000m - 200m); the path's first boundaries are 1 x 800m, 2 x 1800m
    assert view(decision).items[0].usual == 3600
    assert wanted(decision) == (1, {CPU: 2000})  # 1600m are used now, and a pod of 2000m has 1800m for work


# --- overlap ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("target", "size"), [("1", 1000), ("1190m", 1000), ("1201m", 1201), ("810m", 1000), ("799m", 799)]
)
def test_a_size_stays_within_twice_the_overlap(target: str, size: int) -> None:
    decision = decide(2, "1", target)
    assert wanted(decision)[1] == {CPU: size}


@pytest.mark.parametrize(("target", "size"), [("1090m", 1000), ("1101m", 1101), ("810m", 1000)])
def test_where_replicas_cannot_make_up_for_it_a_small_size_stays_within_the_overlap_once(
    target: str, size: int
) -> None:
    decision = decide(2, None, target, {"hpa": {"deploy": False}})
    assert wanted(decision) == (2, {CPU: size})


@pytest.mark.parametrize(
    ("target", "size"), [("1050Mi", GIB), ("1150Mi", 1_205_863_000), ("900Mi", GIB), ("800Mi", 838_861_000)]
)
def test_memory_that_is_too_small_stays_within_the_overlap_once(target: str, size: int) -> None:
    spec = {"hpa": {"deploy": False}}
    decision = build.decided(state(2, [app(None, "1Gi")], [], {"app": {"memory": target}}, spec))
    assert wanted(decision) == (2, {MEMORY: size})


def test_replicas_make_up_for_a_size_that_is_left_alone() -> None:
    base = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
    readings = [value("cpu", "1", "2200m")]
    decision = build.decided(state(2, [app("1250m")], readings, {"app": {"cpu": "2200m"}}, status=base))
    assert view(decision).items[0].usual == 4400  # for which the path has 3 x 1467m
    assert wanted(decision) == (4, {CPU: 1250})


def test_replicas_stay_inside_the_overlap_and_inside_the_tolerance() -> None:
    def needed(used: str, replicas: int = 5, **spec: Any) -> int:
        return count(decide(replicas, used, "1", spec))

    fixed_size: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    assert [needed(used, **fixed_size) for used in ("700m", "730m", "1", "1090m", "1110m")] == [4, 5, 5, 5, 6]
    assert (
        because(decide(5, "730m", "1", fixed_size)) == "cpu asks for 4 replicas, which is inside the overlap"
    )


def test_pods_that_use_more_than_they_request_are_joined_by_more_and_are_no_larger_for_it() -> None:
    fixed_size: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    decision = decide(4, "1200m", "1", fixed_size)
    assert count(decision) == 7, "115 percent call for 4.6 pods; 1.5 times that are 6.9"
    assert because(decision) == "cpu beyond its requests asks for 7 replicas"
    assert count(decide(4, "1140m", "1", fixed_size)) == 5
    only_larger = decide(1, "1200m", "1", {"weightBasedScalingIntervals": [{"vpaWeight": 100}]})
    assert wanted(only_larger) == (1, {CPU: 1200}), "pods are not replaced for what is not measured"


def test_weight_0_leaves_the_size_alone() -> None:
    fixed_size: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    for target in ("10m", "1", "3"):
        decision = decide(2, "1", target, fixed_size)
        assert wanted(decision) == (2, {CPU: 1000})


# --- pods that are resized in place ----------------------------------------------------------------------------------
def in_place(readings: list[Reading], cpu: str = "1") -> Decision:
    """A decision on 4 pods of 1 core and 1Gi that are resized in place: sizes follow the present demand, too."""
    targets = {"app": {"cpu": cpu, "memory": "1Gi"}}
    return build.decided(state(4, [app("1", "1Gi")], readings, targets, {"trajectory": EXACT}), resizes=True)


def test_in_place_sizes_follow_present_demand_and_what_is_not_measured_grows_with_it() -> None:
    decision = in_place([value("cpu", "1", "2500m")])
    assert wanted(decision) == (4, {CPU: 2500, MEMORY: 2_684_355_000})
    assert (count(decision), decision.blocked) == (4, ())


def test_in_place_pods_that_use_more_than_they_request_grow_by_twice_as_much() -> None:
    decision = in_place([value("cpu", "1", "1200m")])
    assert wanted(decision)[1][CPU] * wanted(decision)[0] == 9200, "115 percent call for 4600m"
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    usual = decision.status.axes.vertical.usual_demand
    assert [one.present for one in usual if one.resource == "cpu"] == [4800], "it is in no mean"


def test_in_place_what_saturated_pods_got_is_not_taken_back_by_the_measurement_of_the_pods_before() -> None:
    targets, reading = {"app": {"cpu": "1", "memory": "1Gi"}}, value("cpu", "1", "1200m")
    spec = {"trajectory": EXACT}
    first = build.decided(state(4, [app("1", "1Gi")], [reading], targets, spec), resizes=True)
    assert wanted(first) == (4, {CPU: 2300, MEMORY: 1_288_491_000}), (
        "4800m are measured, and 4600m × 2 are served"
    )
    grown = [build.pod(f"web-{index}", containers=[app("2300m", "1288491k")]) for index in range(4)]
    seen = state(4, [app("1", "1Gi")], [reading], targets, spec, status=to_wire(first.status), pods=grown)

    def after(seconds: int) -> Decision:
        return build.decided(seen, build.NOW + dt.timedelta(seconds=seconds), resizes=True)

    soon = after(1)
    assert (wanted(soon), soon.resizes) == (wanted(first), ())
    assert [(one.reason, one.until) for one in soon.blocked] == [
        ("Measurement", build.NOW + dt.timedelta(seconds=60))
    ]
    assert wanted(after(59)) == wanted(first)
    assert wanted(after(60))[1][CPU] == 1600, "3 pods of 1600m serve the 4800m that were measured"


def test_in_place_cpu_shrinks_and_memory_keeps_its_usual_demand() -> None:
    quiet = value("cpu", "1", "100m")
    decision = in_place([quiet, value("memory", "1Gi", "100Mi")])
    assert wanted(decision) == (2, {CPU: 200, MEMORY: 2 * GIB // 1000 * 1000 + 1000})
    assert count(decision) == 2, "at once: no pod is replaced"
    more = in_place([quiet, value("memory", "1Gi", "2Gi")])
    assert wanted(more)[1][MEMORY] == 8 * GIB // 3 // 1000 * 1000 + 1000


def test_in_place_the_limits_hold_the_peaks_of_memory() -> None:
    """The VPA's target is 1Gi for each of 4 pods. With limits of 2Gi they may request half of that, or what is used."""
    targets, quiet = {"app": {"cpu": "1", "memory": "1Gi"}}, value("cpu", "1", "100m")

    def memory(limit: str, used: str = "100Mi") -> int:
        made = [build.container("app", {"cpu": "1", "memory": "1Gi"}, {"memory": limit})]
        seen = state(4, made, [quiet, value("memory", "1Gi", used)], targets, {"trajectory": EXACT})
        return wanted(build.decided(seen, resizes=True))[1][MEMORY]

    assert memory("2Gi") == GIB // 1000 * 1000 + 1000
    assert memory("1Gi") == 2 * GIB // 1000 * 1000 + 1000, "the limit is no larger than the request"
    assert memory("2Gi", "2Gi") == memory("1Gi", "2Gi") == 8 * GIB // 3 // 1000 * 1000 + 1000


@pytest.mark.parametrize(
    ("limit", "hours", "days_since_oom", "expected"),
    [
        ("2Gi", 0, None, 3 * GIB),
        ("2Gi", 3, None, 1.5 * GIB),
        ("2Gi", 9, None, 0.375 * GIB),
        ("1Gi", 3, None, 3 * GIB),
        ("1Gi", 9, None, 0.75 * GIB),
        ("2Gi", 9, 7, 4 * GIB),
        ("2Gi", 9, 9, 0.375 * GIB),
    ],
)
def test_in_place_no_more_memory_is_kept_than_all_pods_had_of_late(
    limit: str, hours: float, days_since_oom: int | None, expected: float
) -> None:
    """The VPA's target is 2Gi, which one pod had; all 4 together never called for more than 4Gi, so many hours ago. Of
    that 1.5 times is provided for, if no container ran out of memory in the last eight days."""
    targets, quiet = {"app": {"cpu": "1", "memory": "2Gi"}}, value("cpu", "1", "500m")
    made = [build.container("app", {"cpu": "1", "memory": "1Gi"}, {"memory": limit})]
    known = {
        "container": "app",
        "resource": "memory",
        "mean": 10 * 2**20,
        "weight": 9e4,
        "present": 10 * 2**20,
    }
    known |= {"time": stamp(build.NOW), "peak": 4 * GIB, "peakTime": stamp(at(hours=-hours))}
    vertical: dict[str, Any] = {"usualDemand": [known], "base": {"app": {"cpu": "1", "memory": "100Mi"}}}
    if days_since_oom is not None:
        vertical["overrides"] = [{"container": "app", "time": stamp(at(days=-days_since_oom))}]
    seen = state(
        4,
        made,
        [quiet, value("memory", "100Mi", "10Mi")],
        targets,
        {"trajectory": EXACT},
        status={"axes": {"vertical": vertical}},
    )
    replicas, sizes = wanted(build.decided(seen, resizes=True))
    assert replicas * sizes[MEMORY] == pytest.approx(expected, rel=1e-4), (replicas, sizes)


def test_in_place_nothing_is_taken_away_while_containers_that_ran_out_of_memory_may_wait() -> None:
    made, targets = [app("1", "1Gi")], {"app": {"cpu": "1", "memory": "2Gi"}}
    pods = [build.oom_killed(build.NOW - dt.timedelta(minutes=4), containers=made), *started(3, made)]
    seen = state(4, made, [value("cpu", "1", "100m")], targets, {"trajectory": EXACT}, pods=pods)
    held = build.decided(seen, resizes=True)
    assert wanted(held)[1][CPU] == 1000
    assert wanted(held)[0] == 4
    later = build.decided(seen, build.NOW + dt.timedelta(minutes=1), resizes=True)
    assert wanted(later) == (1, {CPU: 400}), "memory that ran out asks for no replicas"


def started(count: int, made: list[dict[str, Any]]) -> list[Pod]:
    return [build.pod(f"web-{index}", containers=made) for index in range(1, count + 1)]


# --- ends ------------------------------------------------------------------------------------------------------------
def test_what_cannot_be_served_is_saturated_and_reported() -> None:
    most = policy(maxAllowed={"cpu": "2"})
    seen = one_core(10, "3", "3", most, request="2")
    decision = build.decided(seen)
    assert view(decision).wanted.saturated == (CPU,)
    assert (
        because(decision) == "cpu beyond its requests asks for 35 replicas, and there may be no more than 10"
    )
    ready = decision.status.conditions[0]
    assert (ready.type, ready.status, ready.reason) == ("Ready", "True", "Saturated")
    assert ready.message == (
        "app cpu: about 60 cores needed, and 10 replicas (maxReplicas) of 2 cores (maxAllowed) serve 20 cores"
    )
    assert [event.reason for event in decision.events] == ["Saturated"]


def test_an_end_that_only_usual_demand_goes_beyond_is_no_news_without_a_present_one() -> None:
    spec = {**policy(maxAllowed={"cpu": "2"}), "hpa": {"deploy": False}}
    decision = decide(3, None, "3", spec, request="2")
    assert decision.status.conditions[0].message.startswith(
        "app cpu: about 9 cores needed, and "
        "3 replicas (as many as there are) of 2 cores (maxAllowed) serve 6 cores"
    )


def test_min_replicas_is_the_least() -> None:
    spec = {"hpa": {"template": {"spec": {"minReplicas": 3}}}}
    decision = decide(5, "100m", "1", spec)
    assert count(decision) == 3
    assert because(decision) == "cpu asks for 1 replica, and there may be no fewer than 3"


def test_utilization_of_pods_that_have_another_size_than_the_template() -> None:
    old = [build.pod(f"web-{index}", containers=[app("500m")]) for index in range(4)]
    seen = state(4, [app("1")], [utilization("cpu", 50, 100, None)], {"app": {"cpu": "1"}}, pods=old)
    assert view(build.decided(seen)).items[0].present == 4000


# --- why a request stays ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("replicas", "used", "target", "resizes", "reason"),
    [
        pytest.param(1, "1", "1", False, "", id="it is the one of the path"),
        pytest.param(1, "200m", "900m", False, "near enough to 900m", id="it is near"),
        pytest.param(1, None, "200m", True, "nothing shrinks while the HPA has no metrics", id="no metrics"),
        pytest.param(2, None, "900m", True, "", id="fewer and larger ones would do, and no metrics"),
        pytest.param(
            1,
            "200m",
            "200m",
            True,
            "nothing shrinks: the HPA has yet to measure the pods that there are now",
            id="not measured",
        ),
    ],
)
def test_a_request_that_stays_has_its_reason(
    replicas: int, used: str | None, target: str, resizes: bool, reason: str
) -> None:
    """A core is not near to 200m: such a request has another reason to stay."""
    status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-20))}}}
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 50 if used is not None else 100}]}
    (item,) = view(decide(replicas, used, target, spec, status=status, resizes=resizes)).items
    assert (item.size, item.stays) == (item.current, reason)
