"""Both axes solved together, before any gate (DESIGN 5.4, 5.5): what a decision wants, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import GIB, at
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision
from hvpa.core.model import LargestNode
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.view import SolutionView
from hvpa.core.values.arithmetic import ceil_div
from hvpa.core.values.lately import Lately
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
    usually,
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
    container_policy = {"containerName": "*", **of}
    return {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [container_policy]}}}}}


def because(decision: Decision) -> str:
    return view(decision).because


def without_node(seconds: float) -> dict[str, Any]:
    """The change of a pod that the scheduler has found no node for, for so long."""
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition = {**scheduled, "lastTransitionTime": build.stamp(at(seconds=-seconds))}
    return {"status": {"phase": "Pending", "conditions": [condition]}}


def usual_count(decision: Decision) -> int:
    point = view(decision).usual
    assert point is not None
    return point.replicas


# --- DESIGN's examples -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("replicas", "request_", "used", "now"),
    [(1, "1", "5", 4), (5, "1", "1", 5), (10, "500m", "500m", 10), (2, "4", "2500m", 3), (1, "5", "5", 3)],
)
def test_five_cores_at_weight_50_are_three_pods_of_five_thirds_from_wherever_it_comes(
    replicas: int, request_: str, used: str, now: int
) -> None:
    """Pods that are smaller count as such until they are replaced: 1 core of one pod, and 4 cores of 3 new ones."""
    base = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
    objects = one_core(replicas, used, used, {"trajectory": EXACT}, request=request_, status=base)
    assert wanted(build.decided(objects)) == (now, {CPU: 1667})
    each = f"{ceil_div(5000, now)}m"
    later = one_core(now, each, each, {"trajectory": EXACT}, request="1667m", status=base)
    assert wanted(build.decided(later)) == (3, {CPU: 1667})


def test_trajectory_intervals_of_five_rows_take_4_replicas_for_4_cpu_and_26gi() -> None:
    """And one more, as long as the pod that is there has 2Gi: 3 of 6.5Gi and that one serve less than 26Gi."""
    readings = [value("cpu", "500m", "4"), value("memory", "2Gi", "26Gi")]
    objects = state(1, [app("500m", "2Gi")], readings, {"app": {"cpu": "4", "memory": "26Gi"}}, TABLE)
    decision = build.decided(objects)
    assert (usual_count(decision), count(decision)) == (4, 5)
    # a fourth of 26Gi, in whole kilobytes
    assert wanted(decision) == (5, {CPU: 1000, MEMORY: 6_979_322_000})
    assert [item.usual_replicas for item in view(decision).items] == [3, 4]
    assert because(decision) == "memory needs 5 replicas"


Amounts = dict[str, dict[str, str]]


@pytest.mark.parametrize("resizes", [False, True])
@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_a_metric_of_two_containers_requires_replicas_for_their_total(
    resource: Resource, resizes: bool
) -> None:
    """4 pods are at the metric's target. The agent has three times its first request."""
    unit = {"cpu": "m", "memory": "M"}[resource]
    first: Amounts = {name: {resource: f"{size}{unit}"} for name, size in (("app", 1000), ("agent", 100))}
    now: Amounts = {name: {resource: f"{size}{unit}"} for name, size in (("app", 800), ("agent", 300))}
    containers = [build.container(name, amounts) for name, amounts in now.items()]
    readings = [value(resource, f"550{unit}", f"550{unit}")]
    status = {"axes": {"vertical": {"base": first}}}
    decision = build.decided(state(4, containers, readings, now, status=status), resizes=resizes)
    assert count(decision) == 4
    assert len({(item.usual_replicas, item.present_replicas) for item in view(decision).items}) == 1


def test_trajectory_intervals_without_an_hpa_serve_the_usual_demand() -> None:
    spec = {**TABLE, "hpa": {"deploy": False}}
    decision = build.decided(
        state(1, [app("500m", "2Gi")], [], {"app": {"cpu": "4", "memory": "26Gi"}}, spec)
    )
    assert (usual_count(decision), count(decision), requests(decision)["cpu"]) == (4, 5, 1000)
    assert because(decision) == "the usual demand of app memory needs 5 replicas"
    assert decision.weight_ppm is None
    demands = {(item.present, item.present_from, item.present_replicas) for item in view(decision).items}
    assert demands == {(None, "", None)}, "the present demand is not measured"
    held = {**spec, "vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    more = build.decided(state(1, [app("500m", "2Gi")], [], {"app": {"cpu": "2"}}, held))
    assert (count(more), requests(more)["cpu"]) == (4, 500), "more replicas make up for sizes that are held"


def test_the_demand_of_each_metric_is_reported_for_the_recent_minutes() -> None:
    assert decide(2, "1500m", "1").called_for == {"cpu app/cpu": 3000}
    assert decide(2, None, "1").called_for is None


def test_trajectory_without_intervals_and_an_hpa_keeps_replicas() -> None:
    spec = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": None}
    decision = decide(2, None, "4", spec)
    assert (wanted(decision), requests(decision)) == ((2, {}), {"cpu": 4000})
    assert decision.weight_ppm == 1_000_000
    assert count(decision) == 2


# --- containers and resources ----------------------------------------------------------------------------------------
def test_several_containers_share_what_is_measured_of_the_pod() -> None:
    decision = build.decided(state(2, TWO, [value("cpu", "1500m", "3")], TWO_TARGETS))
    # Two pods have 1500m each, and a third one of 3000m makes 6000m.
    assert wanted(decision) == (3, {CPU: 2000, SIDE: 1000})
    assert [(item.key, item.present, item.present_from) for item in view(decision).items] == [
        (CPU, 4000, "HPA: cpu"),
        (SIDE, 2000, "HPA: cpu"),
        (MEMORY, None, ""),
    ]


def test_containers_share_what_is_measured_by_targets_of_now_not_by_requests_at_first_sight() -> None:
    status = {"axes": {"vertical": {"base": {"app": {"cpu": "100m"}, "side": {"cpu": "1400m"}}}}}
    decision = build.decided(state(2, TWO, [value("cpu", "1500m", "3")], TWO_TARGETS, status=status))
    assert [item.present for item in view(decision).items if item.key.resource == "cpu"] == [4000, 2000]


def test_a_request_that_a_limit_range_gave_the_pods_is_the_containers_own() -> None:
    """The template has none. It stays so while that request is near to what is wanted, and at a decision of another
    size the template gets that."""
    template, pods = (
        [app(memory="1Gi")],
        [build.pod(f"web-{index}", containers=[app("1", "1Gi")]) for index in (0, 1)],
    )
    for used, target, is_set in (("700m", "1", False), ("1500m", "3", True)):
        reading = utilization("cpu", 70, 100 * int(used[:-1]) // 1000, used)
        decision = build.decided(state(2, template, [reading], {"app": {"cpu": target}}, pods=pods))
        assert [item.current for item in view(decision).items] == [1000]
        assert ("cpu" in requests(decision)) is is_set


def test_a_metric_of_one_container_speaks_of_that_one() -> None:
    readings = [value("cpu", "1", "1", "app"), value("cpu", "500m", "2", "side")]
    decision = build.decided(state(2, TWO, readings, {**TWO_TARGETS, "app": {"cpu": "1"}}))
    assert [(item.key, item.present, item.present_from) for item in view(decision).items][:2] == [
        (CPU, 2000, "HPA: cpu of app"),
        (SIDE, 4000, "HPA: cpu of side"),
    ]
    assert because(decision) == "cpu of side needs 5 replicas", "2 of 500m and 3 of 1000m"


def test_a_container_with_mode_off_keeps_its_size_and_counts_in_what_pods_serve() -> None:
    off = policy(containerName="side", mode="Off")
    decision = build.decided(state(2, TWO, [value("cpu", "1500m", "3")], TWO_TARGETS, off))
    assert requests(decision, "side") == {"cpu": 500}
    assert requests(decision)["cpu"] == 2000
    # Of 6000m 1739m are those of the side: its targets are 1000m for 870m of each pod. 2 pods of 1000m serve 2000m of
    # the rest, and 2 of 2000m what is left.
    assert count(decision) == 4


@pytest.mark.parametrize(
    ("resource", "target", "limit", "expected"),
    [
        (
            "cpu",
            "460m",
            None,
            500,
        ),  # pods use half of their target together, so the app takes half of its request
        ("cpu", "920m", None, 800),  # 800m were seen in use
        ("cpu", "2300m", None, 2000),
        ("cpu", "1150m", "1", 1150),  # 1 core was seen in use, which is the limit
        ("cpu", "1150m", "2", 1000),
        ("memory", "460M", None, 500_000_000),
        ("memory", "920M", None, 800_000_000),
        ("memory", "2300M", None, 1_000_000_000),
        ("memory", "1150M", "1G", 1_000_000_000),
    ],
)
def test_beside_a_container_of_mode_off_sizes_are_no_less_than_what_the_vpa_saw_in_use(
    resource: Resource, target: str, limit: str | None, expected: int
) -> None:
    """CPU is raised to it, memory is only not lowered below it."""
    core = "1" if resource == "cpu" else "1G"
    pods = [app(name=name, **{resource: core}) for name in ("app", "side")]
    if limit is not None:
        pods[0]["resources"]["limits"] = {resource: limit}
    weights = [{"vpaWeight": 100}]
    off = policy(containerName="side", mode="Off")
    spec = {**off, "trajectory": EXACT, "weightBasedScalingIntervals": weights}
    readings = [utilization(resource, 50, 25, "500m" if resource == "cpu" else "500M")]
    decision = build.decided(state(1, pods, readings, {"app": {resource: target}}, spec), resizes=True)
    assert wanted(decision)[1] == {ResourceKey("app", resource): expected}


def test_beside_a_container_of_mode_off_no_size_is_more_than_four_targets() -> None:
    """Pods of 1 core and 1 core use 16 cores. The VPA, whose target is 500m, saw the app use 435m."""
    off = {**policy(containerName="side", mode="Off"), "weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    pods = [app("1"), app("1", name="side")]
    readings = [utilization("cpu", 50, 800, "16")]
    decision = build.decided(state(1, pods, readings, {"app": {"cpu": "500m"}}, off), resizes=True)
    assert (count(decision), requests(decision)) == (10, {"cpu": 2000}), "4 targets; the rest are replicas"


@pytest.mark.parametrize(("request_", "expected"), [("1200m", 3), ("1800m", 2)])
def test_in_place_pods_become_fewer_as_soon_as_they_have_the_size_for_it(
    request_: str, expected: int
) -> None:
    """3.6 cores are 2 pods of 1800m, with the overlap to spare: the path serves 4 cores with 2. If the third one stayed
    until they had more than 1800m, noise would take the size back and forth."""
    status = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
    decision = decide(3, "1200m", "1", request=request_, status=status, resizes=True)
    assert wanted(decision) == (2, {CPU: 1800})
    assert count(decision) == expected


@pytest.mark.parametrize("resizes", [False, True])
@pytest.mark.parametrize(("percent", "expected"), [(25, 10), (22, 10), (20, 9)])
@pytest.mark.parametrize("sidecar", ["", "measured", "not measured"])
def test_beside_memory_alone_pods_become_fewer_with_the_overlap_to_spare(
    percent: int, expected: int, resizes: bool, sidecar: str
) -> None:
    """10 pods have twice the memory of before, and the same CPU: they stay as many as with the first memory. A sidecar
    of mode Off that the metric measures has half of that, and a quarter now."""
    memory, containers, spec = "2Gi", [app("500m", "2Gi")], {}
    if sidecar:
        memory = "3Gi" if sidecar == "measured" else "2Gi"
        containers = [app("500m", memory), app("100m", "1Gi", name="side")]
        spec = policy(containerName="side", mode="Off")
    base = {"app": {"cpu": "500m", "memory": "1Gi"}, "side": {"cpu": "100m", "memory": "1Gi"}}
    status = {"axes": {"vertical": {"base": base if sidecar else {"app": base["app"]}}}}
    used, container = (
        f"{percent * (40 if sidecar == 'measured' else 20)}Mi",
        "app" * (sidecar == "not measured"),
    )
    readings, targets = [utilization("memory", 50, percent, used, container)], {"app": {"memory": memory}}
    observed = state(10, containers, readings, targets, spec, status=status)
    assert wanted(build.decided(observed, resizes=resizes))[0] == expected


def test_pods_that_stay_small_are_joined_by_more_and_sizes_stay() -> None:
    """A Deployment is paused: 3 of its 4 pods keep 500m. They use 2 of the 4 cores that are called for; the path has 3
    pods of 1334m."""
    pods = [build.pod(f"web-{index}", containers=[app("500m" if index else "1")]) for index in range(4)]
    paused = {"spec": {"paused": True}}
    readings, targets = [utilization("cpu", 50, 80, "500m")], {"app": {"cpu": "1"}}
    objects = state(4, [app("500m")], readings, targets, workload=paused, pods=pods)
    decision = build.decided(objects)
    assert (count(decision), wanted(decision)[1]) == (8, {CPU: 500})


def test_a_resource_that_only_the_vpa_sees_follows_the_vpa_alone() -> None:
    def decided(*readings: Reading) -> Decision:
        return build.decided(
            state(
                4,
                [app("1", "1Gi")],
                [value("cpu", "1", "1"), *readings],
                {"app": {"memory": "3Gi", "cpu": "1"}},
            )
        )

    decision = decided()
    cpu, memory = view(decision).items
    assert (memory.usual, memory.usual_from, memory.present) == (None, "the VPA's target", None)
    assert cpu.usual_from == "HPA: mean of its measurements"
    assert requests(decision)["memory"] == 3 * GIB // 1000 * 1000 + 1000
    assert requests(decided(external("10", "30"))) == requests(decision), "whatever else is measured"
    assert count(decision) == 4


def test_a_resource_that_only_the_hpa_sees_takes_replicas() -> None:
    decision = build.decided(
        state(2, [app("1", "1Gi")], [value("memory", "1Gi", "3Gi")], {"app": {"cpu": "1"}})
    )
    assert (count(decision), requests(decision)) == (6, {"cpu": 1000, "memory": GIB})
    assert because(decision) == "memory needs 6 replicas"
    at_most = build.decided(
        state(4, [app("1", "1Gi")], [value("memory", "1Gi", "4Gi")], {"app": {"cpu": "1"}}), resizes=True
    )
    assert count(at_most) == 10
    assert because(at_most) == "memory needs 16 replicas; the maximum is 10"


def test_an_external_metric_takes_replicas_and_no_larger_pods() -> None:
    decision = build.decided(state(2, [app("1")], [external("10", "30")], {"app": {"cpu": "1"}}))
    assert (count(decision), requests(decision)) == (6, {"cpu": 1000})
    assert because(decision) == "External queue needs 6 replicas"
    beyond = build.decided(state(10, [app("1")], [external("10", "30")], {"app": {"cpu": "1"}}))
    assert (wanted(beyond), requests(beyond)) == ((10, {}), {"cpu": 1000})


def test_without_a_vpa_the_hpa_takes_replicas_and_without_requests_too() -> None:
    for container in (app("1"), app()):
        decision = build.decided(state(2, [container], [value("cpu", "1", "3")]))
        assert (count(decision), view(decision).usual, view(decision).items) == (6, None, ())


def test_a_target_of_nothing_is_no_reason_to_stumble() -> None:
    decision = build.decided(state(2, [app()], [value("cpu", "1", "1")], {"app": {"cpu": "0"}}))
    assert wanted(decision) == (2, {})


def test_base_usage_is_taken_off_every_pod_and_put_back() -> None:
    trajectory = {**EXACT, "baseResourcesPerReplica": {"cpu": {"value": "200m"}}}
    objects = one_core(2, "1", "2", {"trajectory": trajectory})
    decision = build.decided(objects)
    # usual: 2 x (2000m - 200m); the path's first boundaries are 1 x 800m, 2 x 1800m
    assert view(decision).items[0].usual == 3600
    assert wanted(decision) == (2, {CPU: 2000})  # 1600m are used now, and a pod of 1000m has 800m for work


# --- overlap ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("target", "size"),
    [("1", 1000), ("1100m", 1000), ("1101m", 1101), ("800m", 1000), ("799m", 799)],
)
def test_a_size_is_raised_beyond_the_overlap_and_lowered_beyond_twice_the_overlap(
    target: str, size: int
) -> None:
    decision = decide(2, "1", target)
    assert wanted(decision)[1] == {CPU: size}


@pytest.mark.parametrize(
    ("target", "expected"),
    [("1100m", 1000), ("1101m", 1101), ("1126Mi", GIB), ("1127Mi", 1_181_746_000)],
)
def test_what_follows_the_vpa_alone_is_raised_beyond_the_overlap_too(target: str, expected: int) -> None:
    """In place, where no change is too small."""
    resource = "memory" if target.endswith("i") else "cpu"
    spec = {"hpa": {"deploy": False}}
    objects = state(2, [app("1", "1Gi")], [], {"app": {resource: target}}, spec)
    assert requests(build.decided(objects, resizes=True))[resource] == expected


def test_replicas_make_up_for_a_size_that_is_left_alone() -> None:
    base = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
    spec = {"trajectory": {"overlap": {"cpu": {"value": "250m"}}}}
    decision = build.decided(one_core(3, "1400m", "1400m", spec, request="1250m", status=base))
    assert view(decision).items[0].usual == 4200  # for which the path has 3 x 1400m
    assert wanted(decision) == (4, {CPU: 1250})


def test_replicas_stay_inside_the_overlap_and_inside_the_tolerance() -> None:
    def needed(used: str, replicas: int = 5, **spec: Any) -> int:
        return count(decide(replicas, used, "1", spec))

    fixed_size: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    assert [needed(used, **fixed_size) for used in ("700m", "730m", "1", "1090m", "1110m")] == [4, 5, 5, 5, 6]
    assert (
        because(decide(5, "730m", "1", fixed_size))
        == "cpu needs 4 replicas; the difference is within the overlap"
    )


def test_pods_that_use_more_than_they_request_are_joined_by_more_and_are_no_larger_for_it() -> None:
    fixed_size: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    decision = decide(4, "1200m", "1", fixed_size)
    assert count(decision) == 7, "115 percent call for 4.6 pods; 1.5 times that are 6.9"
    assert because(decision) == "cpu beyond its requests needs 7 replicas"
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


def test_in_place_sizes_follow_present_demand_and_what_is_not_measured_does_not() -> None:
    decision = in_place([value("cpu", "1", "2500m")])
    assert wanted(decision) == (4, {CPU: 2500})
    assert (count(decision), requests(decision), decision.blocked) == (4, {"cpu": 2500, "memory": GIB}, ())


def test_in_place_pods_that_use_more_than_they_request_grow_by_half_as_much_again() -> None:
    decision = in_place([value("cpu", "1", "1200m")])
    assert wanted(decision) == (3, {CPU: 2300}), "115 percent call for 4600m, and 1.5 times that is 6900m"
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    usual = decision.status.axes.vertical.usual_demand
    assert [demand.present for demand in usual if demand.resource == "cpu"] == [4800], "it is in no mean"


@pytest.mark.parametrize("limit", [None, "1Gi", "2Gi"])
def test_in_place_measured_memory_follows_its_metric_as_cpu_does(limit: str | None) -> None:
    """The VPA's target, 1Gi, is of no account where a metric measures memory."""
    targets, quiet = {"app": {"cpu": "1", "memory": "1Gi"}}, value("cpu", "1", "100m")

    def decision(used: str) -> Decision:
        limits = {} if limit is None else {"memory": limit}
        made = [build.container("app", {"cpu": "1", "memory": "1Gi"}, limits)]
        objects = state(4, made, [quiet, value("memory", "1Gi", used)], targets, {"trajectory": EXACT})
        return build.decided(objects, resizes=True)

    assert wanted(decision("100Mi")) == (1, {CPU: 400, MEMORY: 419_431_000}), "4 x 100m and 4 x 100Mi"
    assert requests(decision("100Mi")) == {"cpu": 400, "memory": 419_431_000}
    assert requests(decision("2Gi"))["memory"] == 8 * GIB // 3 // 1000 * 1000 + 1000


def test_in_place_pods_get_the_size_of_all_replicas_also_while_few_serve() -> None:
    """One pod serves 5 cores, for which the path has 3 x 1667m: it gets no more than that."""
    decision = build.decided(one_core(1, "5", "1", {"trajectory": EXACT}), resizes=True)
    assert (wanted(decision), count(decision)) == ((3, {CPU: 1667}), 3)


def test_in_place_a_single_pod_keeps_its_cpu_until_the_second_serves() -> None:
    """2 cores are 2 x 1 core on the path."""
    objects = one_core(1, "2", "1", {"trajectory": EXACT}, request="2", status=usually(1))
    assert wanted(build.decided(objects, resizes=True)) == (2, {CPU: 2000})


@pytest.mark.parametrize(
    ("third", "size", "stays"),
    [
        (None, 2000, "kept until new pods are ready"),
        ({"ready": False}, 2000, "kept until new pods are ready"),
        ({"ready": False, "change": without_node(seconds=29)}, 2000, "kept until new pods are ready"),
        ({"ready": False, "change": without_node(seconds=30)}, 1500, ""),
        ({"ready": False, "change": without_node(seconds=89)}, 1500, ""),
        ({"ready": False, "change": without_node(seconds=90)}, 2250, ""),
        ({}, 1500, ""),
    ],
    ids=[
        "to be created",
        "starts",
        "no node at first",
        "no node",
        "no node still",
        "stays pending",
        "serves",
    ],
)
def test_in_place_cpu_is_kept_until_new_pods_serve_unless_it_is_in_their_way(
    third: dict[str, Any] | None, size: int, stays: str
) -> None:
    """2 pods of 2 cores serve 4.5 cores, for which the path has 3 x 1500m."""
    made = [app("2")]
    pods = [build.pod(f"web-{index}", containers=made) for index in range(2)]
    if third is not None:
        pods.append(build.pod("web-2", containers=made, **third))
    used = "1500m" if third == {} else "2250m"
    spec = {"trajectory": EXACT}
    objects = one_core(len(pods), used, "1", spec, request="2", status=usually(1), pods=pods)
    decision = build.decided(objects, resizes=True)
    assert (wanted(decision), count(decision)) == ((3, {CPU: size}), 3)
    (item, *_) = view(decision).items
    assert item.stays == stays


@pytest.mark.parametrize(("ready", "memory"), [(False, 2 * GIB), (True, 1_610_613_000)])
def test_in_place_measured_memory_is_kept_until_new_pods_serve(ready: bool, memory: int) -> None:
    """2 pods of 2Gi serve 4.5Gi, for which the path has 3 x 1.5Gi."""
    made = [app("1", "2Gi")]
    pods = [build.pod(f"web-{index}", containers=made, ready=index < 2 or ready) for index in range(3)]
    base = {"axes": {"vertical": {"base": {"app": {"cpu": "1", "memory": "1Gi"}}}}}
    readings = [value("cpu", "1", "100m"), value("memory", "1Gi", "1536Mi")]
    targets = {"app": {"cpu": "1", "memory": "2Gi"}}
    observed = state(3, made, readings, targets, {"trajectory": EXACT}, status=base, pods=pods)
    decision = build.decided(observed, resizes=True)
    assert (requests(decision)["memory"], count(decision)) == (memory, 3)
    (item,) = [item for item in view(decision).items if item.key.resource == "memory"]
    assert item.stays == ("" if ready else "kept until new pods are ready")


@pytest.mark.parametrize(
    ("seconds", "third", "size"), [(59, None, 2000), (60, None, 1000), (59, without_node(seconds=30), 1000)]
)
def test_in_place_no_size_is_lowered_within_a_minute_of_a_raise_unless_it_is_in_the_way(
    seconds: float, third: dict[str, Any] | None, size: int
) -> None:
    """2 pods of 2 cores use 2 cores, for which the path has 2 x 1 core."""
    made = [app("2")]
    pods = [build.pod(f"web-{index}", containers=made) for index in range(2)]
    if third is not None:
        pods.append(build.pod("web-2", containers=made, ready=False, change=third))
    raised = {"axes": {"vertical": {"lastScaleUpTime": build.stamp(at(seconds=-seconds))}}}
    spec, status = {"trajectory": EXACT}, build.merged(usually(1), raised)
    decision = build.decided(one_core(2, "1", "1", spec, request="2", status=status, pods=pods), resizes=True)
    assert wanted(decision) == (2, {CPU: size})
    (item, *_) = view(decision).items
    assert item.stays == ("raised less than a minute ago" if size == 2000 else "")


# --- what is needed --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("resizes", [False, True])
@pytest.mark.parametrize(
    ("replicas", "readings", "expected"),
    [
        (3, [value("cpu", "1", "5")], 4),
        (10, [value("cpu", "1", "1500m")], 4),
        (3, [value("cpu", "1", "1"), external("10", "20")], 6),
        (3, [], None),
    ],
)
def test_what_is_needed_is_so_however_many_pods_there_are(
    replicas: int, readings: list[Reading], expected: int | None, resizes: bool
) -> None:
    """15 cores are 4 x 3750m on the path; the queue calls for twice the 3 pods."""
    targets = {"app": {"cpu": "1500m" if replicas == 10 else "5"}}
    solution = view(build.decided(state(replicas, [app("1")], readings, targets), resizes=resizes))
    assert isinstance(solution, SolutionView)
    assert solution.joint.needed == expected


# --- ends ------------------------------------------------------------------------------------------------------------
def test_what_cannot_be_served_is_saturated_and_reported() -> None:
    most = policy(maxAllowed={"cpu": "2"})
    objects = one_core(10, "3", "3", most, request="2")
    decision = build.decided(objects)
    assert view(decision).wanted.saturated == (CPU,)
    assert because(decision) == "cpu beyond its requests needs 35 replicas; the maximum is 10"
    ready = decision.status.conditions[0]
    assert (ready.type, ready.status, ready.reason) == ("Ready", "True", "Saturated")
    assert ready.message == (
        "app cpu: needs about 60 cores, but 10 replicas (maxReplicas) of 2 cores (maxAllowed) serve 20 cores"
    )
    assert [event.reason for event in decision.events] == ["Saturated"]


def test_replicas_serve_what_the_largest_node_has_no_room_for() -> None:
    """10 cores of demand: 3 x 3333m on the path, and 5 x 2 cores where no node has more."""
    spec = {"vpa": {"maxAllowed": "LargestNode"}}
    objects = one_core(2, "4", "4", spec, request="2")
    node = LargestNode({"cpu": 2000, "memory": 64 * GIB})
    free, bounded = build.decided(objects), build.decided(replace(objects, largest_node=node))
    assert count(bounded) > count(free)
    assert view(bounded).wanted.sizes[CPU] == 2000 < view(free).wanted.sizes[CPU]
    assert view(bounded).items[0].bound == "the largest node"
    assert build.condition(bounded, "Ready").reason != "Saturated"


def test_min_replicas_is_the_least() -> None:
    spec = {"hpa": {"template": {"spec": {"minReplicas": 3}}}}
    decision = decide(5, "100m", "1", spec)
    assert count(decision) == 3
    assert because(decision) == "cpu needs 1 replica; the minimum is 3"


def test_utilization_of_pods_that_have_another_size_than_the_template() -> None:
    old = [build.pod(f"web-{index}", containers=[app("500m")]) for index in range(4)]
    objects = state(4, [app("1")], [utilization("cpu", 50, 100, None)], {"app": {"cpu": "1"}}, pods=old)
    assert view(build.decided(objects)).items[0].present == 4000


# --- why a request stays ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("replicas", "used", "usual", "resizes", "reason"),
    [
        pytest.param(1, "1", 1000, False, "", id="it is the one of the path"),
        pytest.param(1, "200m", 900, False, "close enough to 900m", id="it is near"),
        pytest.param(1, None, 200, True, "not lowered while the HPA has no metrics", id="no metrics"),
        pytest.param(2, None, 1800, True, "", id="fewer and larger ones would do, and no metrics"),
        pytest.param(
            1,
            "200m",
            200,
            True,
            "not lowered: the demand before the operator's start is unknown",
            id="after a restart",
        ),
    ],
)
def test_a_request_that_stays_has_its_reason(
    replicas: int, used: str | None, usual: int, resizes: bool, reason: str
) -> None:
    """A core is not near to 200m: such a request has another reason to stay."""
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 50 if used is not None else 100}]}
    objects = one_core(replicas, used, "1", spec, status=usually(usual))
    if used is not None and resizes:
        objects = replace(objects, lately=Lately(at(minutes=-4)))
    (item,) = view(build.decided(objects, resizes=resizes)).items
    assert (item.size, item.stays) == (item.current, reason)


def test_what_replicas_nearly_serve_is_said_so() -> None:
    """2 pods of 1 core use 2.1 cores at a target of 1: 3 would serve them, and 2 do within the tolerance."""
    decision = decide(2, "1050m", "1")
    assert view(decision).because == "cpu needs 3 replicas; 2 replicas nearly suffice"
