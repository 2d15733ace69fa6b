"""What goes along when pods are replaced, what is too small for that, and memory that ran out (DESIGN 6.3, 6.4)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import GIB, MIB, NOW, at, stamp
from hvpa.api.hvpa.status import to_wire
from hvpa.core import Decision
from hvpa.core.model import PodShape
from hvpa.core.path.path import ResourceKey
from hvpa.core.trajectory.capacity import Capacity
from hvpa.core.trajectory.view import SolutionView
from tests.unit.core.trajectory.jointly import app, held, requests, state, utilization, value, view

# --- minChange, and what goes along ----------------------------------------------------------------------------------
LIMITED = {"vpa": {"scaleUp": {"minChange": {"cpu": {"value": "500m"}, "memory": {"value": "500Mi"}}}}}


def both(cpu: str, memory: str, now: dt.datetime = NOW, **rest: Any) -> Decision:
    """A decision on 2 pods of 1 core and 1Gi whose VPA has these targets, at weight 100: one replica count."""
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 100}], "hpa": {"deploy": False}, **LIMITED}
    objects = state(2, [app("1", "1Gi")], [], {"app": {"cpu": cpu, "memory": memory}}, spec, **rest)
    return build.decided(objects, now)


def test_min_change_judges_a_step_as_a_whole_and_small_changes_go_along() -> None:
    assert requests(both("1600m", "1300Mi")) == {"cpu": 1600, "memory": 1300 * MIB // 1000 * 1000 + 1000}
    assert requests(both("1300m", "1600Mi"))["cpu"] == 1300
    assert held(both("1300m", "1600Mi")) == []


def test_min_change_lets_a_near_size_go_along_and_never_alone() -> None:
    assert requests(both("1600m", "1050Mi"))["memory"] == 1050 * MIB // 1000 * 1000 + 1000
    alone = both("1050m", "1050Mi")
    assert requests(alone) == {"cpu": 1000, "memory": GIB}
    assert held(alone) == []


def test_the_same_memory_in_another_unit_does_not_go_along_and_is_not_shown() -> None:
    decision = both("1600m", "1073742k")
    assert requests(decision) == {"cpu": 1600, "memory": GIB}
    assert "memory" not in decision.events[0].message


def test_a_size_on_the_path_that_differs_by_a_rounding_is_the_present_one() -> None:
    measured = (utilization("cpu", 50, 90, "900m"), value("memory", "1Gi", "1073742k"))
    objects = state(2, [app("1", "1Gi")], measured, {"app": {"cpu": "1200m", "memory": "1Gi"}})
    item = next(item for item in view(build.decided(objects)).items if item.key.resource == "memory")
    assert (item.current, item.size) == (GIB, GIB)


def test_min_change_timeout_of_a_step_of_which_each_change_is_too_small() -> None:
    first = both("1300m", "1300Mi")
    assert requests(first) == {"cpu": 1000, "memory": GIB}
    assert held(first) == [("up", "cpu", "MinChange"), ("up", "memory", "MinChange")]
    assert first.recheck_after == dt.timedelta(minutes=15)
    status = to_wire(first.status)
    assert requests(both("1300m", "1300Mi", at(minutes=14), status=status))["cpu"] == 1000
    assert requests(both("1300m", "1300Mi", at(minutes=15), status=status))["cpu"] == 1300


@pytest.mark.parametrize(
    ("request_", "target", "is_held"),
    [("300m", "360m", False), ("300m", "358m", True), ("1500m", "1700m", False), ("1500m", "1698m", True)],
    ids=["20 percent", "less", "200m of a large pod", "less of a large pod"],
)
def test_min_change_is_by_default_at_most_20_percent(request_: str, target: str, is_held: bool) -> None:
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": 100}], "hpa": {"deploy": False}}
    decision = build.decided(
        state(2, [app(request_, "1Gi")], [], {"app": {"cpu": target, "memory": "1Gi"}}, spec)
    )
    assert held(decision) == [("up", "cpu", "MinChange")] * is_held
    assert (decision.workload_patch is None) is is_held


def test_update_policy_off_holds_a_small_change_that_would_go_along() -> None:
    spec = {"vpa": {**LIMITED["vpa"], "scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    objects = state(
        2,
        [app("1", "1Gi")],
        [],
        {"app": {"cpu": "1600m", "memory": "950Mi"}},
        {"weightBasedScalingIntervals": [{"vpaWeight": 100}], "hpa": {"deploy": False}, **spec},
    )
    decision = build.decided(objects)
    assert requests(decision) == {"cpu": 1600, "memory": GIB}
    assert held(decision) == []


# --- containers that ran out of memory -------------------------------------------------------------------------------
def raised(hours: float, *, killed: bool = False, target: str = "1Gi") -> Decision:
    """Two pods of 2Gi, raised so long ago since the container ran out; the VPA's target is less."""
    status = {"axes": {"vertical": {"overrides": [{"container": "app", "time": stamp(at(hours=-hours))}]}}}
    made = [app("1", "2Gi")]
    pods = [build.pod("web-0", containers=made), build.pod("web-1", containers=made)]
    if killed:
        pods[0] = build.oom_killed(at(minutes=-1), containers=made)
    spec = {"hpa": {"deploy": False}}
    return build.decided(
        state(2, made, [], {"app": {"cpu": "1", "memory": target}}, spec, status=status, pods=pods)
    )


def test_out_of_memory_holds_lower_memory_for_a_day_after_a_raise() -> None:
    young = raised(23)
    assert held(young) == [("down", "memory", "OutOfMemory")]
    assert young.blocked[0].until == at(hours=1)
    assert requests(young) == {"cpu": 1000, "memory": 2 * GIB}
    assert young.recheck_after == dt.timedelta(hours=1)
    assert held(raised(24)) == [("down", "memory", "SustainedDemand")], "then like any other"
    assert requests(raised(23, target="3Gi"))["memory"] == 3 * GIB // 1000 * 1000 + 1000


def test_out_of_memory_again_is_raised_again_unless_recent_raise_holds_it() -> None:
    assert requests(raised(23, killed=True))["memory"] == 2_576_981_000  # a fifth more, in whole kilobytes
    early = raised(1 / 12, killed=True)
    assert requests(early)["memory"] == 2 * GIB
    assert held(early) == [("up", "memory", "RecentRaise")]
    assert (early.blocked[0].until, early.blocked[0].wanted) == (at(minutes=5), 2_576_981_000)


def test_recent_raise_in_place_holds_the_next_raise_for_ten_minutes() -> None:
    def raised_again(seconds: int) -> Decision:
        status = {
            "axes": {"vertical": {"overrides": [{"container": "app", "time": stamp(at(seconds=-seconds))}]}}
        }
        made = [app("1", "2Gi")]
        pods = [build.oom_killed(at(seconds=-1), containers=made), build.pod("web-1", containers=made)]
        targets = {"app": {"cpu": "1", "memory": "1Gi"}}
        objects = state(2, made, [], targets, {"hpa": {"deploy": False}}, status=status, pods=pods)
        return build.decided(objects, resizes=True)

    assert requests(raised_again(600))["memory"] == 2_576_981_000
    early = raised_again(599)
    assert held(early) == [("up", "memory", "RecentRaise")]
    assert early.blocked[0].until == at(seconds=1)


def starving(memory: str, target: str, *measured: Any, resizes: bool = True) -> Decision:
    """Two pods with so much memory, of which one ran out of it a minute ago; the VPA targets so much."""
    made = [app("1", memory)]
    pods = [build.oom_killed(at(minutes=-1), containers=made), build.pod("web-2", containers=made)]
    targets = {"app": {"cpu": "1", "memory": target}}
    return build.decided(state(2, made, [*measured], targets, pods=pods), resizes=resizes)


@pytest.mark.parametrize("resizes", [True, False])
@pytest.mark.parametrize(
    ("memory", "target", "expected"),
    [
        ("100Mi", "100Mi", 209_716_000),
        ("1Gi", "1Gi", 1_288_491_000),
        ("1Gi", "2Gi", 2_147_484_000),
        ("1Gi", "256Mi", 1_073_741_824),
    ],
)
def test_out_of_memory_raises_unmeasured_memory_and_no_replicas(
    memory: str, target: str, expected: int, resizes: bool
) -> None:
    decision = starving(memory, target, value("cpu", "1", "1"), resizes=resizes)
    assert requests(decision)["memory"] == expected
    assert decision.replicas is not None
    assert decision.replicas.target == 2


def test_out_of_memory_raises_measured_memory_to_what_is_measured() -> None:
    """Two pods of 256Mi use 256Mi each of a target of 128Mi: that takes 1Gi together, 2 x 512Mi at weight 100."""
    decision = starving("256Mi", "256Mi", value("memory", "128Mi", "256Mi"))
    memory = requests(decision)["memory"]
    assert decision.replicas is not None
    assert decision.replicas.target * memory >= GIB
    override = decision.status.axes.vertical.overrides[0]  # type: ignore[union-attr]
    assert (override.container, override.time) == ("app", build.NOW)


@pytest.mark.parametrize("resizes", [True, False])
def test_out_of_memory_raises_measured_memory_to_the_vpas_target(resizes: bool) -> None:
    """Two pods of 256Mi use 1Mi each since, for which the path has its smallest size."""
    decision = starving("256Mi", "1Gi", value("memory", "128Mi", "1Mi"), resizes=resizes)
    assert requests(decision)["memory"] == GIB // 1000 * 1000 + 1000


@pytest.mark.parametrize("resizes", [True, False])
def test_recent_raise_lets_a_crash_loop_double_memory_in_ten_minutes_at_most(resizes: bool) -> None:
    """3 x 256Mi became 3 x 356Mi a minute ago; by 30 OOMs the VPA's target is 4Gi since. All pods failed, so replicas
    triple too; not in place, where an OOM does not count for some minutes after a raise."""
    raised = {"container": "app", "time": stamp(at(minutes=-1)), "memory": "356Mi"}

    def after(memory: str, minutes: float = 0) -> Decision:
        made = [app("1", memory)]
        status = {"axes": {"vertical": {"lastScaleUpTime": stamp(at(minutes=-1)), "overrides": [raised]}}}
        pods = [build.oom_killed(at(seconds=-50), f"web-{index}", containers=made) for index in range(3)]
        targets = {"app": {"cpu": "1", "memory": "4Gi"}}
        objects = state(3, made, [value("cpu", "1", "1")], targets, status=status, pods=pods)
        return build.decided(objects, at(minutes=minutes), resizes=resizes)

    first = after("356Mi")
    assert requests(first)["memory"] == 712 * 1024 * 1024
    assert first.replicas is not None
    assert first.replicas.target == (3 if resizes else 9)
    second = after("712Mi")
    assert requests(second)["memory"] == 712 * 1024 * 1024
    (waits,) = [hold for hold in second.blocked if hold.axis == "vertical"]
    assert (waits.direction, waits.resource, waits.reason) == ("up", "memory", "RecentRaise")
    assert waits.until == at(minutes=9)
    assert requests(after("712Mi", minutes=9))["memory"] >= 4 * GIB, "which the VPA has recommended for long"


def test_out_of_memory_raise_passes_the_stabilization_window_with_trajectory() -> None:
    made = [app("1", "1Gi")]
    pods = [build.oom_killed(at(minutes=-1), containers=made), build.pod("web-1", containers=made)]
    spec = {"vpa": {"scaleUp": {"stabilizationDuration": "1h"}}}
    last = {"axes": {"vertical": {"lastScaleTime": stamp(at(minutes=-30))}}}
    objects = state(
        2,
        made,
        [value("cpu", "1", "1")],
        {"app": {"cpu": "1", "memory": "1Gi"}},
        spec,
        pods=pods,
        status=last,
    )
    assert requests(build.decided(objects)) == {"cpu": 1000, "memory": 1_288_491_000}


def test_out_of_memory_holds_lower_memory_along_with_other_changes() -> None:
    status = {"axes": {"vertical": {"overrides": [{"container": "app", "time": stamp(at(hours=-2))}]}}}
    made = [app("1", "2Gi")]
    pods = [build.pod("web-0", containers=made), build.pod("web-1", containers=made)]
    targets = {"app": {"cpu": "3", "memory": "1900Mi"}}
    decision = build.decided(
        state(2, made, [], targets, {"hpa": {"deploy": False}}, status=status, pods=pods)
    )
    assert requests(decision)["cpu"] > 1000
    assert requests(decision)["memory"] == 2 * GIB


# --- pods that failed -------------------------------------------------------------------------------------------------
def failing(failed: int, *, resizes: bool, raised: bool = False, stepped: float = 3600) -> Decision:
    """10 pods of 2 cores and 2Gi, some of which ran out of memory, use 200m and 160Mi each; `stepped` seconds ago
    there came or went some."""
    made = [app("2", "2Gi")]
    pods = [build.oom_killed(at(minutes=-5), f"web-{index}", containers=made) for index in range(failed)]
    pods += [build.pod(f"web-{index}", containers=made) for index in range(failed, 10)]
    measured = [value("cpu", "1", "200m"), value("memory", "1Gi", "160Mi")]
    overrides = [{"container": "app", "time": stamp(at(minutes=-4))}] if raised else []
    base = {"app": {"cpu": "1", "memory": "1Gi"}}
    horizontal = {"lastScaleTime": stamp(at(seconds=-stepped))}
    status = {"axes": {"vertical": {"overrides": overrides, "base": base}, "horizontal": horizontal}}
    targets = {"app": {"cpu": "1", "memory": "1Gi"}}
    return build.decided(state(10, made, measured, targets, status=status, pods=pods), resizes=resizes)


@pytest.mark.parametrize(("resizes", "expected"), [(False, [2, 3, 6, 10]), (True, [2, 3, 6, 10])])
def test_replicas_fall_as_if_failed_pods_were_full(resizes: bool, expected: list[int]) -> None:
    """In place sizes fall as well, but for those of 4 and 10 failed pods."""
    decisions = [failing(failed, resizes=resizes) for failed in (0, 1, 4, 10)]
    assert [decision.replicas.target for decision in decisions] == expected  # type: ignore[union-attr]


def test_measurement_holds_fewer_replicas_and_says_that_pods_failed() -> None:
    decision = failing(4, resizes=True)
    assert ("down", "replicas", "Measurement") in held(decision)
    assert "4 that are new or failed recently" in view(decision).because
    (cpu,) = [item for item in view(decision).items if item.key.resource == "cpu"]
    assert cpu.stays == "not lowered: too many pods failed recently"


def test_in_place_no_size_is_lowered_where_more_than_a_tenth_failed() -> None:
    assert requests(failing(1, resizes=True))["cpu"] < 2000
    assert requests(failing(2, resizes=True))["cpu"] == 2000


def test_measurement_in_place_waits_for_a_step_and_then_for_failed_pods() -> None:
    for stepped, replicas, until in ((20, 10, at(seconds=40)), (60, 3, at(minutes=5))):
        decision = failing(1, resizes=True, stepped=stepped)
        assert (decision.replicas.target, held(decision)) == (replicas, [("down", "replicas", "Measurement")])  # type: ignore[union-attr]
        assert decision.blocked[0].until == until


def test_out_of_memory_in_place_holds_lower_measured_memory_for_a_day() -> None:
    assert ("down", "memory", "OutOfMemory") in held(failing(1, resizes=True, raised=True))


@pytest.mark.parametrize(("limit", "expected"), [(None, 4), ("2Gi", 4), ("8Gi", 8)])
@pytest.mark.parametrize("utilized", [True, False])
def test_out_of_memory_at_the_largest_size_counts_up_to_the_limit(
    limit: str | None, expected: int, utilized: bool
) -> None:
    """2 of 4 pods of 2Gi, which maxAllowed is, ran out of memory a minute ago, and use nothing since."""
    made = [build.container("app", {"cpu": "1", "memory": "2Gi"}, {} if limit is None else {"memory": limit})]
    pods = [build.oom_killed(at(minutes=-1), f"web-{index}", containers=made) for index in range(2)]
    pods += [build.pod(f"web-{index}", containers=made) for index in range(2, 4)]
    policy = {"containerName": "*", "maxAllowed": {"memory": "2Gi"}}
    spec = {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": [policy]}}}}}
    measured = utilization("memory", 100, 0, "0") if utilized else value("memory", "2Gi", "0")
    targets = {"app": {"cpu": "1", "memory": "2Gi"}}
    decision = build.decided(state(4, made, [measured], targets, spec, pods=pods))
    assert decision.replicas is not None
    assert decision.replicas.target == expected


@pytest.mark.parametrize(
    ("hours", "weight", "resizes", "demand"),
    [
        pytest.param(2, 50, True, 9600, id="pods that got more memory are not fewer"),
        pytest.param(25, 50, True, 8000, id="a day later they are"),
        pytest.param(2, 50, False, 8000, id="if pods are replaced they are"),
        pytest.param(2, 0, True, 8000, id="with weight 0, the HPA's count holds"),
    ],
)
def test_out_of_memory_counts_for_more_for_a_day(hours: int, weight: int, resizes: bool, demand: int) -> None:
    """8 pods got 1200Mi after an OOM, and use 800Mi at a target of 80 percent."""
    made = [app("1", "1200Mi")]
    overrides = [{"container": "app", "time": stamp(at(hours=-hours)), "memory": "1200Mi"}]
    base = {"app": {"cpu": "1", "memory": "1000Mi"}}
    status = {"axes": {"vertical": {"overrides": overrides, "base": base}}}
    spec = {"weightBasedScalingIntervals": [{"vpaWeight": weight}]}
    measured = [utilization("memory", 80, 67, "800Mi")]
    targets = {"app": {"cpu": "1", "memory": "1000Mi"}}
    decision = build.decided(state(8, made, measured, targets, spec, status=status), resizes=resizes)
    assert decision.called_for is not None
    assert round(decision.called_for["memory app/memory"] / MIB) == demand
    assert ("memory after an OOM needs" in view(decision).because) == (demand == 9600)


@pytest.mark.parametrize(("small", "expected"), [(1000, 1000), (400, 2000)])
def test_sizes_are_not_lowered_where_a_pod_that_refuses_its_resize_leaves_too_little(
    small: int, expected: int
) -> None:
    """2 cores are called for, which the path has 2 x 1 for. One of two pods keeps 400m: the other one keeps its 2."""
    solution = view(failing(0, resizes=True))
    assert isinstance(solution, SolutionView)
    shapes = [PodShape({"app": {"cpu": 2000}}), PodShape({"app": {"cpu": small}}, refuses=True)]
    joint = replace(solution.joint, capacity=Capacity(shapes))
    assert joint.sizes_at(2)[ResourceKey("app", "cpu")] == expected
