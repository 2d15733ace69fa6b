"""Joint decisions where the HPA says nothing, or not all, or what it says is of other pods (DESIGN 4, 5.4)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import GIB, NOW, at, stamp
from hvpa.api.hvpa.status import to_wire
from hvpa.api.objects.read_models import Pod
from hvpa.core import Decision, Objects
from hvpa.core.path.path import ResourceKey
from hvpa.core.recommenders.estimate import estimate_replicas, readings_of
from hvpa.core.values.clock import Clock
from tests.unit.core.trajectory.jointly import (
    EXACT,
    Reading,
    app,
    count,
    decide,
    external,
    held,
    one_core,
    requests,
    state,
    usually,
    utilization,
    value,
    view,
    wanted,
)

CPU = ResourceKey("app", "cpu")


def test_a_silence_of_less_than_five_minutes_changes_nothing() -> None:
    """As long as new pods may take until the HPA counts them."""

    def silent(minutes: float) -> Objects:
        since = stamp(at(minutes=-minutes))
        active = {"type": "ScalingActive", "status": "False", "reason": "No", "lastTransitionTime": since}
        return one_core(4, None, "1", hpa={"status": {"conditions": [active]}}, status=usually(12_000))

    brief = build.decided(silent(4))
    assert wanted(brief) == (4, {CPU: 1000})
    assert (count(brief), requests(brief), held(brief)) == (4, {"cpu": 1000}, [])
    assert view(brief).because == (
        "the HPA has no metrics: HVPA keeps the last recommendation, 4 replicas, until 2026-11-21T10:01:00Z"
    )
    assert brief.recheck_after == dt.timedelta(minutes=1)
    assert wanted(build.decided(silent(5))) == (4, {CPU: 3000})


@pytest.mark.parametrize("resizes", [False, True])
@pytest.mark.parametrize(("known", "size"), [(400, 1000), (12_000, 3000), (None, 1000)])
def test_while_the_hpa_is_silent_nothing_shrinks_and_pods_grow_for_usual_demand(
    known: int | None, size: int, resizes: bool
) -> None:
    """12 cores take 4 pods of 3. Where nothing was measured ever, pods keep what they have."""
    status = None if known is None else usually(known)
    decision = build.decided(one_core(4, None, "9", status=status), resizes=resizes)
    assert wanted(decision) == (4, {CPU: size})
    assert view(decision).because == "the HPA has no metrics, so HVPA does not follow lower demand"
    alone = build.decided(state(4, [app("1")]))
    assert (wanted(alone), count(alone)) == ((4, {}), 4)


def test_while_the_hpa_is_silent_more_replicas_than_the_path_has_are_no_reason_for_larger_pods() -> None:
    """4 cores are 2 x 2 cores on the path; the 4 pods of 1 core stay."""
    assert wanted(build.decided(one_core(4, None, "1", status=usually(4000)))) == (4, {CPU: 1000})


def test_while_the_hpa_is_silent_replicas_are_added_for_usual_demand() -> None:
    decision = decide(2, None, "1", status=usually(16_000))
    assert wanted(decision) == (4, {CPU: 4000})
    assert view(decision).because == "the usual demand needs 4 replicas; the HPA has no metrics"


def test_a_metric_without_a_value_takes_no_replica_away() -> None:
    readings: list[Reading] = [value("cpu", "1", "100m"), value("memory", "1Gi", None)]
    objects = state(4, [app("1", "1Gi")], readings, {"app": {"cpu": "1"}}, desired=4)
    assert count(build.decided(objects)) == 4
    assert view(build.decided(objects)).because == "HVPA removes no replica: a metric has no value"
    assert count(build.decided(objects, resizes=True)) == 4


def test_replicas_stay_as_long_as_the_hpa_remembers_more() -> None:
    def held_at(desired: int, resizes: bool = False) -> tuple[int, str]:
        readings = [value("cpu", "1", "250m")]
        objects = state(
            8, [app("1")], readings, {"app": {"cpu": "250m"}}, {"trajectory": EXACT}, desired=desired
        )
        decision = build.decided(objects, resizes=resizes)
        return count(decision), view(decision).because

    remembered = "cpu needs 2 replicas now; the HPA still recommends more"
    assert [held_at(desired) for desired in (2, 6, 8)] == [
        (2, "cpu needs 2 replicas"),
        (6, remembered),
        (8, remembered),
    ]
    assert [held_at(desired, resizes=True)[0] for desired in (6, 8)] == [2, 2], (
        "what was called for of late counts"
    )


@pytest.mark.parametrize(("seconds", "replicas"), [(-59, 4), (-60, 2)])
def test_measurement_of_the_settled_workload_comes_before_fewer_replicas(
    seconds: float, replicas: int
) -> None:
    def young(name: str, since: float) -> Any:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(seconds=since))}
        return build.pod(name, change={"status": {"conditions": [ready]}}, containers=[app("1")])

    def decided(**rest: Any) -> Decision:
        readings = [value("cpu", "1", "500m")]
        return build.decided(
            state(4, [app("1")], readings, {"app": {"cpu": "1"}}, {"trajectory": EXACT}, **rest)
        )

    pods = [young(f"web-{index}", seconds if index else -3600) for index in range(4)]
    assert count(decided(pods=pods)) == replicas
    scaled = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=seconds))}}}
    decision = decided(status=scaled)
    assert count(decision) == replicas
    if replicas == 4:
        assert view(decision).because == (
            "HVPA removes no replica: the HPA has not measured the current pods yet"
        )
        assert decision.recheck_after is not None
        assert decision.recheck_after.total_seconds() == 60 + seconds


# --- pods that are too young to be measured --------------------------------------------------------------------------
READINGS = {"AverageValue": value("cpu", "1", "1"), "Utilization": utilization("cpu", 50, 50, "500m")}
CONTESTED = {"count": 2, "time": stamp(at(seconds=-20))}


def ready_for(seconds: float, number: int) -> list[Any]:
    """Pods of one core that started and have been ready for so long."""
    since = stamp(at(seconds=-seconds))
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    change = {"status": {"conditions": ready, "startTime": since}}
    return [build.pod(f"web-{index}", change=change, containers=[app("1")]) for index in range(number)]


@pytest.mark.parametrize(("number", "expected"), [(9, 9), (10, 3)])
def test_a_tenth_of_the_pods_may_be_too_young_to_be_measured(number: int, expected: int) -> None:
    """They use a quarter of a core each; one is ready for 20 seconds."""
    pods = [*ready_for(20, 1), *ready_for(3600, number)[1:]]
    reading = [value("cpu", "1", "250m")]
    objects = state(number, [app("1")], reading, {"app": {"cpu": "1"}}, {"trajectory": EXACT}, pods=pods)
    assert count(build.decided(objects)) == expected


def replaced(
    replicas: int,
    last: int | None = 10,
    applied_from: int | None = None,
    contested: bool = False,
    **rest: Any,
) -> Objects:
    """Pods that are all ready for ten seconds; `last` were recommended last, and we set `applied_from`."""
    axis: dict[str, Any] = {}
    if applied_from is not None:
        axis = {
            "lastScaleTime": stamp(at(minutes=-5)),
            "appliedFrom": {"replicas": applied_from, "desired": applied_from, "weight": 0},
        }
    if contested:
        axis["setBack"] = CONTESTED
    status: dict[str, Any] = {"axes": {"horizontal": axis}}
    if last is not None:
        status["recommended"] = {"replicas": last}
    spec = {"trajectory": EXACT, "weightBasedScalingIntervals": [{"vpaWeight": 0}], **rest.pop("spec", {})}
    made = {"pods": ready_for(10, replicas), "desired": 10, "status": status, **rest}
    reading = made.pop("reading", READINGS["AverageValue"])
    return state(replicas, [app("1")], [reading], {"app": {"cpu": "1"}}, spec, **made)


def set_by(manager: str, seconds: float) -> dict[str, Any]:
    """A workload whose replicas this manager set so long ago."""
    entry = {
        "manager": manager,
        "time": stamp(at(seconds=-seconds)),
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    return {"metadata": {"managedFields": [entry]}}


def conditions(decision: Decision) -> dict[str, tuple[str, str]]:
    return {condition.type: (condition.status, condition.reason) for condition in decision.status.conditions}


def recommended(decision: Decision) -> int | None:
    assert decision.status.recommended is not None
    return decision.status.recommended.replicas


@pytest.mark.parametrize("reading", READINGS)
def test_contested_goes_on_while_no_pod_is_measured(reading: str) -> None:
    objects = replaced(2, applied_from=10, contested=True, reading=READINGS[reading])
    decision = build.decided(objects)
    assert (count(decision), recommended(decision)) == (2, 10)
    assert held(decision) == [("up", "replicas", "Contested")]
    statuses = conditions(decision)
    assert statuses["Ready"] == ("False", "Contested")
    assert statuses["Contested"] == ("True", "SetBack")
    assert statuses["HpaActive"] == ("True", "Recommending")
    assert "ScalingUnblocked" not in [event.reason for event in decision.events]
    assert view(decision).because == (
        "the 2 ready pods are not measured yet: HVPA keeps the last recommendation, 10 replicas, until "
        "2026-11-21T10:00:20Z"
    )
    assert decision.steps[1] == (
        "replicas: 2 now, the HPA recommends 10; 10 recommended last, because the 2 ready pods are not measured yet"
    )


def test_contested_first_time_replicas_are_set_again_at_once() -> None:
    decision = build.decided(replaced(2, applied_from=10))
    assert count(decision) == 10
    assert "ready pods are not measured yet" in next(
        event.message for event in decision.events if event.reason == "ScaledOut"
    )
    fewer = build.decided(replaced(2, applied_from=4))
    assert (count(fewer), recommended(fewer)) == (4, 10), "no more than we had set"
    assert count(build.decided(replaced(2, last=3, applied_from=4))) == 3, "nor than was recommended last"


@pytest.mark.parametrize("resizes", [False, True])
def test_measurement_holds_replicas_both_ways_until_a_pod_is_measured(resizes: bool) -> None:
    for replicas, last, way, ours in ((10, 4, "down", None), (4, 10, "up", None), (4, 10, "up", 4)):
        decision = build.decided(replaced(replicas, last, ours), resizes=resizes)
        assert (count(decision), recommended(decision)) == (replicas, last)
        assert held(decision) == [(way, "replicas", "Measurement")]
        assert decision.blocked[0].until == at(seconds=20)
        assert decision.recheck_after == dt.timedelta(seconds=20)
        assert conditions(decision)["Ready"] == ("True", "HeldBack")
        assert decision.steps[1] == (
            f"replicas: {replicas} now, the HPA recommends {last}; {last} recommended last, because the {replicas} "
            "ready pods are not measured yet; the next measurement is due at 2026-11-21T10:00:20Z"
        )
    nothing = build.decided(replaced(10, None), resizes=resizes)
    assert (count(nothing), recommended(nothing), held(nothing)) == (10, 10, [])
    assert conditions(nothing)["Ready"] == ("True", "Reconciled")


def test_measurement_does_not_hold_a_count_outside_the_bounds() -> None:
    assert (
        count(build.decided(replaced(2, 20, spec={"hpa": {"template": {"spec": {"minReplicas": 3}}}}))) == 3
    )
    assert recommended(build.decided(replaced(2, 20))) == 10


def test_usage_of_nothing_that_is_measured_is_no_demand() -> None:
    idle = value("cpu", "1", "0")
    decision = build.decided(replaced(4, 10, reading=idle, pods=ready_for(60, 4), desired=1))
    assert (count(decision), recommended(decision)) == (1, 1)


def test_a_metric_that_is_no_mean_over_pods_speaks_of_young_ones_as_well() -> None:
    queue = build.decided(replaced(2, None, reading=external("10", "30"), desired=6))
    assert count(queue) == 6
    objects = state(
        2,
        [app("1")],
        [external("10", "30"), value("cpu", "1", "100m")],
        {"app": {"cpu": "1"}},
        pods=ready_for(10, 2),
    )
    assert count(build.decided(objects)) == 6
    assert view(build.decided(objects)).because == "External queue needs 6 replicas"


def test_a_pod_that_became_ready_by_a_clock_that_was_wrong_counts() -> None:
    objects = replaced(4, None, pods=ready_for(-3600, 4), desired=4)
    observation, hpa = build.scalable(objects, at()), objects.hpas[0]
    clock = Clock(observation.now)
    assert estimate_replicas(observation, hpa, readings_of(observation, hpa, clock), clock) == 4


@pytest.mark.parametrize(
    ("seconds", "manager", "expected"), [(20, "kubectl", 10), (60, "kubectl", 2), (20, "hvpa", 2)]
)
def test_contested_goes_on_until_the_pods_that_are_left_are_measured(
    seconds: float, manager: str, expected: int
) -> None:
    """The mean over ten pods says nothing of the two that are left."""
    left: dict[str, Any] = {"pods": ready_for(3600, 2), "workload": set_by(manager, seconds)}
    contested = build.decided(replaced(2, applied_from=10, contested=True, **left))
    assert (count(contested), recommended(contested)) == (2, expected)
    is_held = [("up", "replicas", "Contested")] if expected == 10 else []
    assert held(contested) == is_held
    assert count(build.decided(replaced(2, applied_from=10, **left))) == expected
    assert count(build.decided(replaced(2, applied_from=10, **left), resizes=True)) == expected


def test_contested_is_not_ended_by_one_measured_pod_of_many() -> None:
    pods = [*ready_for(40, 1), *ready_for(20, 1)]
    decision = build.decided(replaced(2, applied_from=10, contested=True, pods=pods))
    assert held(decision) == [("up", "replicas", "Contested")]
    assert recommended(decision) == 10


def test_contested_is_not_ended_by_pods_that_are_not_ready() -> None:
    unready = {"conditions": [{"type": "Ready", "status": "False"}]}
    change = {"metadata": {"creationTimestamp": stamp(at(seconds=-20))}, "status": unready}
    pods = [build.pod(f"web-{index}", change=change, containers=[app("1")]) for index in range(2)]
    decision = build.decided(replaced(2, applied_from=10, contested=True, pods=pods))
    assert held(decision) == [("up", "replicas", "Contested")]


def test_max_step_goes_no_further_for_an_old_recommendation() -> None:
    """Ten were recommended, of which four are set; the pods that are measured by now call for fewer."""
    objects = replaced(4, applied_from=4, pods=[*ready_for(40, 2), *ready_for(20, 2)], desired=2)
    axis = {
        "lastScaleTime": stamp(at(minutes=-5)),
        "appliedFrom": {"replicas": 4, "desired": 10, "weight": 0, "goal": 10},
    }
    status = {"axes": {"horizontal": axis}, "recommended": {"replicas": 10}}
    begun = build.objects(
        build.hvpa({"blend": "Trajectory", "replicas": 2, "trajectory": EXACT}, status),
        objects.workload,
        objects.hpas[0],
        objects.vpas[0],
        objects.pods,
    )
    assert count(build.decided(begun)) == 4


def test_max_step_goal_stays_when_min_replicas_is_raised_before_a_measurement() -> None:
    applied_from = {"replicas": 4, "desired": 10, "weight": 0, "goal": 10}
    axis = {"lastScaleTime": stamp(at(minutes=-5)), "appliedFrom": applied_from}
    status = {"axes": {"horizontal": axis}, "recommended": {"replicas": 10}}
    raised = {"hpa": {"template": {"spec": {"minReplicas": 6}}}}
    decision = build.decided(replaced(4, spec=raised, status=status))
    assert (count(decision), held(decision)) == (6, [("up", "replicas", "Measurement")])
    assert to_wire(decision.status)["axes"]["horizontal"]["appliedFrom"] == {**applied_from, "replicas": 6}


def test_contested_goes_on_while_the_hpa_is_silent_for_a_moment() -> None:
    active = {
        "type": "ScalingActive",
        "status": "False",
        "reason": "No",
        "lastTransitionTime": stamp(at(minutes=-1)),
    }
    silent = {"status": {"conditions": [active]}}
    decision = build.decided(replaced(2, applied_from=10, contested=True, hpa=silent))
    assert held(decision) == [("up", "replicas", "Contested")]
    assert (recommended(decision), conditions(decision)["HpaActive"]) == (10, ("False", "No"))


def test_measurement_of_an_hpa_that_is_read_as_it_is_is_awaited_as_well() -> None:
    """In mode Recommend, of a workload that another HPA scales."""
    of_workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    other = {"metadata": {"ownerReferences": [], "labels": {}}, "spec": {"scaleTargetRef": of_workload}}
    decision = build.decided(replaced(2, spec={"mode": "Recommend"}, hpa=other))
    assert (count(decision), recommended(decision)) == (2, 10)
    assert held(decision) == [("up", "replicas", "Measurement")]
    assert conditions(decision)["HpaActive"][0] == "True"


def test_update_policy_off_for_sizes_does_not_hold_a_count_that_was_taken_away() -> None:
    """A count that another client took away comes back also where requests are held."""
    off = {
        "vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}},
        "weightBasedScalingIntervals": [{"vpaWeight": 50}],
    }
    left: dict[str, Any] = {"pods": ready_for(3600, 2), "workload": set_by("kubectl", 20), "spec": off}
    objects = replaced(2, applied_from=10, **left)
    larger = build.objects(
        objects.hvpa, objects.workload, objects.hpas[0], build.vpa({"app": {"cpu": "5"}}), objects.pods
    )
    decision = build.decided(larger)
    assert count(decision) == 10
    assert requests(decision) == {"cpu": 1000}


@pytest.mark.parametrize("resizes", [False, True])
def test_idle_pods_keep_their_memory(resizes: bool) -> None:
    """Their CPU is next to nothing, but the recommender's least target is not: it needs no fewer pods."""
    least = {"hpa": {"template": {"spec": {"minReplicas": 4}}}, "trajectory": EXACT}
    targets = {"app": {"cpu": "25m", "memory": "1Gi"}}
    objects = state(4, [app("25m", "1Gi")], [value("cpu", "100m", "1m")], targets, least)
    decision = build.decided(objects, resizes=resizes)
    assert (wanted(decision)[0], requests(decision)["memory"]) == (4, GIB)


@pytest.mark.long
@given(
    st.lists(st.integers(0, 80), min_size=2, max_size=5),
    st.sampled_from(["400m", "900m", "1100m", "1900m"]),
    st.sampled_from(["900m", "1500m"]),
    st.floats(0, 1),
)
def test_until_it_looks_again_young_pods_change_nothing(
    ready_for: list[int], used: str, target: str, part: float
) -> None:
    """The HPA counts each of them half a minute after it became ready."""

    def pod(index: int, seconds: int) -> Pod:
        since = stamp(at(seconds=-seconds))
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        return build.pod(f"web-{index}", change={"status": {"conditions": ready, "startTime": since}})

    pods = [pod(index, seconds) for index, seconds in enumerate(ready_for)]
    objects = one_core(len(pods), used, target, pods=pods)
    first = build.decided(objects)
    later = NOW + (first.recheck_after or dt.timedelta(days=1)) * part * 0.999_999
    second = build.decided(objects, later)
    assert (second.replicas, second.containers, second.blocked) == (
        first.replicas,
        first.containers,
        first.blocked,
    )
