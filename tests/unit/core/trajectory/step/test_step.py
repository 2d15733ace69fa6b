"""One step of a joint decision: what its gates hold, and how the other axis is solved again (DESIGN 5.4, 5.5, 6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from builders import build
from builders.build import at, stamp
from hvpa.core import Decision, Objects
from tests.unit.core.trajectory.jointly import (
    EXACT,
    app,
    count,
    decide,
    held,
    one_core,
    requests,
    state,
    usually,
    value,
    view,
    wanted_down,
)

OFF = {"updatePolicy": {"updateMode": "Off"}}
WINDOW = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
CLOSED = {"maintenanceTimeWindow": {"begin": "220000-0000", "end": "230000-0000"}}
BUSY = {"status": {"updatedReplicas": 1}}


def grown(spec: Mapping[str, Any] | None = None, minutes: float = 60, **rest: Any) -> Decision:
    """A decision on one pod of 1 core that uses 5, for which the path has 3 x 1667m; both axes scaled so long ago.
    For as long as that pod has 1 core, 3 more serve the other 4."""
    last = {"lastScaleTime": stamp(at(minutes=-minutes))}
    status = {"axes": {"horizontal": last, "vertical": last}}
    resizes = rest.pop("resizes", False)
    objects = one_core(1, "5", "5", {**(spec or {})}, status=status, **rest)
    return build.decided(objects, resizes=resizes)


def shrunk(spec: Mapping[str, Any] | None = None, minutes: float = 60, **rest: Any) -> Decision:
    """A decision on 5 pods of 4 cores of which each uses 500m: `minutes` after a horizontal step, and the six hours
    after a vertical one, for which less was wanted."""
    last, resized = {"lastScaleTime": stamp(at(minutes=-minutes))}, {"lastScaleTime": stamp(at(hours=-6))}
    vertical = {**wanted_down(6), **resized, "base": {"app": {"cpu": "1"}}}
    status = {"axes": {"horizontal": last, "vertical": vertical}}
    resizes = rest.pop("resizes", False)
    asked = {"trajectory": EXACT, **(spec or {})}
    objects = one_core(5, "500m", "500m", asked, request="4", status=status, **rest)
    return build.decided(objects, resizes=resizes)


def outcome(decision: Decision) -> tuple[int, int]:
    return count(decision), requests(decision)["cpu"]


def axis(of: str, direction: str, **policy: Any) -> dict[str, Any]:
    """A spec with this policy for one direction of one axis."""
    return {of: {direction: policy}}


def recommended(decision: Decision) -> tuple[int | None, dict[str, str]]:
    recommendation = decision.status.recommended
    assert recommendation is not None
    return recommendation.replicas, recommendation.containers[0].requests


# --- one decision, one patch -----------------------------------------------------------------------------------------
def test_both_axes_go_in_one_patch() -> None:
    decision = grown()
    assert outcome(decision) == (4, 1667)
    assert decision.applied == (("horizontal", "up"), ("vertical", "up"))
    assert decision.workload_patch is not None
    spec: Any = decision.workload_patch.body["spec"]
    assert spec["replicas"] == 4
    assert spec["template"]["spec"]["containers"] == [
        {"name": "app", "resources": {"requests": {"cpu": "1667m"}}}
    ]
    [event] = [event for event in decision.events if event.involved is None]
    assert event.reason == "Scaled"
    assert event.message.startswith("replicas 1 -> 4, cpu 1 -> 1667m of app; HPA: ")
    assert decision.weight_ppm == 500_000


def test_smaller_pods_and_fewer_of_them_go_together_as_far_as_both_serve() -> None:
    # 2.5 cores are usual and present: 2 x 1250m on the path
    assert outcome(shrunk()) == (2, 1250)


# --- the horizontal axis is held: pods grow --------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("spec", "minutes", "reason"),
    [
        (axis("hpa", "scaleUp", **OFF), 60, "UpdatePolicy"),
        ({**axis("hpa", "scaleUp", **WINDOW), **CLOSED}, 60, "MaintenanceWindow"),
        (axis("hpa", "scaleUp", stabilizationDuration="10m"), 4, "StabilizationWindow"),
        (axis("hpa", "scaleUp", minChange={"replicas": {"value": 4}}), 60, "MinChange"),
    ],
)
def test_each_gate_that_holds_more_replicas_makes_pods_grow_instead(
    spec: dict[str, Any], minutes: float, reason: str
) -> None:
    decision = grown(spec, minutes)
    assert outcome(decision) == (1, 5000)
    assert held(decision) == [("up", "replicas", reason)]
    assert recommended(decision) == (4, {"cpu": "1667m"})


def test_stabilization_window_of_five_minutes_is_waited_for_without_larger_pods() -> None:
    decision = grown(axis("hpa", "scaleUp", stabilizationDuration="10m"), 5)
    assert outcome(decision) == (1, 1667)
    assert held(decision) == [("up", "replicas", "StabilizationWindow")]
    assert decision.recheck_after == dt.timedelta(minutes=5)


def test_stabilization_window_is_decided_on_again_when_five_minutes_are_left() -> None:
    spec = axis("hpa", "scaleUp", stabilizationDuration="10m")
    decision = grown(spec, 4)
    assert outcome(decision) == (1, 5000), "six minutes are too long"
    assert decision.recheck_after == dt.timedelta(minutes=1), "five are not"


def test_stabilization_window_in_place_is_not_waited_for() -> None:
    wait = axis("hpa", "scaleUp", stabilizationDuration="10m")
    assert outcome(grown(wait, 5, resizes=True)) == (1, 5000)


def test_update_policy_off_for_replicas_keeps_sizes_that_are_near_enough() -> None:
    readings = [value("cpu", "1", "1080m")]
    objects = state(
        2, [app("1")], readings, {"app": {"cpu": "1"}}, {"trajectory": EXACT, **axis("hpa", "scaleUp", **OFF)}
    )
    assert outcome(build.decided(objects)) == (2, 1000)  # inside the tolerance
    near = {"trajectory": {"overlap": {"cpu": {"value": "150m"}}}, **axis("hpa", "scaleUp", **OFF)}
    more = one_core(2, "1130m", "1", near)
    assert (outcome(build.decided(more)), held(build.decided(more))) == (
        (2, 1000),
        [("up", "replicas", "UpdatePolicy")],
    )


def test_update_policy_off_below_min_replicas_makes_pods_grow_instead() -> None:
    spec = {"hpa": {"scaleUp": OFF, "template": {"spec": {"minReplicas": 3}}}}
    assert outcome(grown(spec)) == (1, 5000)


def test_update_policy_off_on_both_axes_changes_nothing_and_reports_both() -> None:
    decision = grown({**axis("hpa", "scaleUp", **OFF), **axis("vpa", "scaleUp", **OFF)})
    assert outcome(decision) == (1, 1000)
    assert held(decision) == [("up", "replicas", "UpdatePolicy"), ("up", "cpu", "UpdatePolicy")]
    assert decision.workload_patch is None
    assert recommended(decision) == (4, {"cpu": "1667m"})


# --- the vertical axis is held: there are more of them ---------------------------------------------------------------
@pytest.mark.parametrize(
    ("spec", "minutes", "rest", "reason"),
    [
        (axis("vpa", "scaleUp", **OFF), 60, {}, "UpdatePolicy"),
        ({**axis("vpa", "scaleUp", **WINDOW), **CLOSED}, 60, {}, "MaintenanceWindow"),
        (axis("vpa", "scaleUp", stabilizationDuration="10m"), 9, {}, "StabilizationWindow"),
        (axis("vpa", "scaleUp", minChange={"cpu": {"value": "1"}}), 60, {}, "MinChange"),
        ({}, 60, {"workload": {"status": {"updatedReplicas": 0}}}, "Rollout"),
    ],
)
def test_each_gate_that_holds_larger_pods_adds_replicas_instead(
    spec: dict[str, Any], minutes: float, rest: dict[str, Any], reason: str
) -> None:
    decision = grown(spec, minutes, **rest)
    assert outcome(decision) == (5, 1000)
    assert held(decision) == [("up", "cpu", reason)]
    assert recommended(decision) == (4, {"cpu": "1667m"})


def test_update_policy_off_for_sizes_adds_no_replicas_beyond_max_replicas() -> None:
    spec = {"hpa": {"template": {"spec": {"maxReplicas": 3}}}, "vpa": {"scaleUp": OFF}}
    assert outcome(grown(spec)) == (3, 1000)


def test_update_policy_off_in_place_is_made_up_for_by_the_other_axis() -> None:
    in_place = {"updateStrategy": {"type": "InPlace"}}
    held_count = grown({**in_place, **axis("hpa", "scaleUp", **OFF)}).status.desired
    assert held_count is not None
    assert (held_count.replicas, held_count.containers[0].requests) == (1, {"cpu": "5"})
    held_sizes = grown({**in_place, **axis("vpa", "scaleUp", **OFF)}).status.desired
    assert held_sizes is not None
    assert (held_sizes.replicas, held_sizes.containers) == (5, ())


def kept_large(wait: str, seconds: float = 0, replicas: int = 5, used: str = "500m", **rest: Any) -> Decision:
    """A decision on pods of 4 cores that use 2500m together, for which the path has 2 x 1250m in place; they were
    resized 6 hours ago, and scaled horizontally an hour or so many `seconds` ago."""
    last = stamp(at(seconds=-seconds) if seconds else at(minutes=-60))
    vertical = {"lastScaleTime": stamp(at(hours=-6)), "base": {"app": {"cpu": "1"}}}
    status = {"axes": {"horizontal": {"lastScaleTime": last}, "vertical": vertical}, **rest}
    spec = {"trajectory": EXACT, **axis("vpa", "scaleDown", stabilizationDuration=wait)}
    objects = one_core(replicas, used, used, spec, request="4", status=status)
    return build.decided(objects, resizes=True)


def test_stabilization_window_in_place_that_keeps_pods_large_lowers_replicas() -> None:
    assert outcome(kept_large("5h")) == (2, 1250)
    assert outcome(kept_large("6h1m")) == (1, 4000)
    without_end = axis("vpa", "scaleDown", updatePolicy={"updateMode": "Off"})
    assert outcome(shrunk(without_end, resizes=True)) == (1, 4000)


def test_stabilization_window_in_place_adds_no_large_pods_after_a_step_in() -> None:
    """One of 4 cores is left, and serves what it is measured to use: not two, which the path has for it."""
    before = {"recommended": {"replicas": 2}}
    decision = kept_large("7h", seconds=40, replicas=1, used="2500m", **before)
    assert outcome(decision) == (1, 4000)
    assert outcome(kept_large("7h", seconds=40, replicas=1, used="4500m", **before))[0] == 2, (
        "it does not serve"
    )


def test_rollout_in_place_holds_nothing() -> None:
    assert outcome(grown({}, resizes=True, workload={"status": {"updatedReplicas": 0}})) == (3, 1667)


@pytest.mark.parametrize(
    ("spec", "expected", "reasons"),
    [
        (axis("vpa", "scaleDown", **OFF), (1, 4000), [("down", "cpu", "UpdatePolicy")]),
        (axis("hpa", "scaleDown", **OFF), (5, 1250), [("down", "replicas", "UpdatePolicy")]),
        (
            axis("hpa", "scaleDown", stabilizationDuration="2h"),
            (5, 1250),
            [("down", "replicas", "StabilizationWindow")],
        ),
        (
            axis("hpa", "scaleDown", minChange={"replicas": {"value": 4}}),
            (5, 1250),
            [("down", "replicas", "MinChange")],
        ),
    ],
)
def test_each_gate_that_holds_a_decrease_is_reported_and_the_other_axis_shrinks(
    spec: dict[str, Any], expected: tuple[int, int], reasons: list[tuple[str, str, str]]
) -> None:
    decision = shrunk(spec)
    assert outcome(decision) == expected
    assert held(decision) == reasons


def test_min_history_of_a_young_vpa_lowers_nothing() -> None:
    young = build.vpa({"app": {"cpu": "500m"}}, since=stamp(at(minutes=-30)))
    objects = state(5, [app("4")], [value("cpu", "1", "500m")], {}, {"trajectory": EXACT})
    decision = build.decided(_with_vpa(objects, young))
    assert requests(decision) == {"cpu": 4000}
    assert decision.status.conditions[2].reason == "YoungHistory"


def test_min_history_without_an_hpa_holds_replicas_where_history_was_lost() -> None:
    """10 pods of 4 cores, for which the row has 2 by a target of 500m each. An upper bound of 200 cores says that the
    recommender knows next to nothing; what a VPA of 30 days knew before is gone."""
    rows = [{"maxReplicas": 10, "maxResources": {"cpu": "4"}, "extrapolation": "horizontalOnly"}]
    spec = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": None, "trajectory": {"intervals": rows}}
    objects = state(10, [app("4")], [], {}, spec)

    def by(upper: str) -> Decision:
        bound = {"containerName": "app", "target": {"cpu": "500m"}, "upperBound": {"cpu": upper}}
        change = {"status": {"recommendation": {"containerRecommendations": [bound]}}}
        return build.decided(_with_vpa(objects, build.vpa({"app": {"cpu": "500m"}}, change)))

    assert count(by("600m")) == 2
    assert view(by("600m")).items[0].usual_from == "VPA: mean of its targets per pod"
    lost = by("2000")
    assert (count(lost), ("down", "replicas", "MinHistory") in held(lost)) == (10, True)


def _with_vpa(objects: Objects, vpa: Any) -> Objects:
    return build.objects(objects.hvpa, objects.workload, objects.hpas[0], vpa, objects.pods)


def test_contested_requests_are_made_up_for_by_more_replicas() -> None:
    applied_from = {"container": "app", "resource": "cpu", "target": "2", "weight": 100, "request": "2"}
    when = stamp(at(minutes=-10))
    vertical = {"lastScaleTime": when, "appliedFrom": [applied_from], "setBack": {"count": 1, "time": when}}
    objects = one_core(1, "5", "5", status={"axes": {"vertical": vertical}})
    decision = build.decided(objects)
    assert outcome(decision) == (5, 1000)
    assert held(decision) == [("up", "cpu", "Contested")]
    assert decision.status.conditions[5].status == "True"


# --- nothing dips below the present demand on the way ----------------------------------------------------------------
def test_pod_replacement_holds_fewer_replicas_until_the_larger_pods_are_there() -> None:
    def decided(template: str, pods: list[str], mode: str = "Apply", **rest: Any) -> Decision:
        made = [build.pod(f"web-{index}", containers=[app(size)]) for index, size in enumerate(pods)]
        base = {"axes": {"vertical": {"base": {"app": {"cpu": "1"}}}}}
        spec = {"trajectory": EXACT, "mode": mode}
        readings = [value("cpu", "1", "1")]
        targets = {"app": {"cpu": "1"}}
        objects = state(5, [app(template)], readings, targets, spec, pods=made, status=base, **rest)
        return build.decided(objects)

    first = decided("1", ["1"] * 5)
    assert outcome(first) == (5, 1667)  # larger pods first
    assert held(first) == [("down", "replicas", "PodReplacement")]
    assert any(text == "replicas: 3 once enough pods have their new size" for text in first.steps)
    assert recommended(first) == (5, {"cpu": "1667m"})
    looking = decided("1", ["1"] * 5, mode="Recommend")
    assert looking.workload_patch is None
    assert held(looking) == [("down", "replicas", "PodReplacement")], "no rollout is under way"
    half = decided("1667m", ["1", "1", "1667m", "1667m", "1667m"], workload=BUSY)
    assert outcome(half) == (4, 1667), "2 x 1000m and 2 x 1667m: the smallest pods may be those that stay"
    assert held(half) == [("down", "replicas", "PodReplacement")]
    done = decided("1667m", ["1667m"] * 5)
    assert outcome(done) == (3, 1667)
    assert held(done) == []


def test_paused_is_reported_instead_of_pod_replacement() -> None:
    readings = [value("cpu", "1", "1")]
    spec = {"trajectory": EXACT, "mode": "Paused"}
    decision = decide(10, "500m", "500m", spec)
    assert {reason for _, _, reason in held(decision)} == {"Paused"}
    assert build.decided(state(5, [app("1")], readings, {"app": {"cpu": "1"}}, spec)).workload_patch is None


# --- modes and recommenders ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("mode", "reasons"), [("Recommend", []), ("Paused", ["Paused", "Paused"])])
def test_recommend_and_paused_apply_nothing_with_trajectory(mode: str, reasons: list[str]) -> None:
    decision = grown({"mode": mode})
    assert outcome(decision) == (1, 1000)
    assert decision.workload_patch is None
    assert decision.applied == ()
    assert [reason for _, _, reason in held(decision)] == reasons
    assert recommended(decision) == (4, {"cpu": "1667m"})
    assert view(decision).wanted.replicas == 4


def test_where_a_foreign_hpa_acts_replicas_stay_and_pods_grow() -> None:
    foreign = build.hpa(
        change={
            "metadata": {"name": "other", "uid": "o", "labels": {"of": "none"}, "ownerReferences": []},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
        }
    )
    objects = one_core(1, None, "5", status=usually(5000))
    decision = build.decided(
        build.objects(objects.hvpa, objects.workload, foreign, objects.vpas[0], objects.pods)
    )
    assert outcome(decision) == (1, 5000)
    assert decision.status.conditions[1].reason == "ForeignHpa"
    assert decision.replicas is not None
    assert decision.replicas.recommended == 1


def test_where_the_vpa_has_no_say_replicas_serve_alone() -> None:
    unsure = {"status": {"conditions": [{"type": "LowConfidence", "status": "True"}]}}
    assert outcome(grown(vpa=unsure)) == (5, 1000)
