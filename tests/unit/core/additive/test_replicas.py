"""The horizontal axis, as decided (DESIGN 5.2, 6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.core import Decision, Objects
from tests.unit.core.named import named

ONLY_HPA: dict[str, Any] = {"vpa": {"deploy": False}}
AT_REST = build.vpa({"app": {"cpu": "1", "memory": "1Gi"}})
"""A VPA that recommends what is requested already."""
WINDOW = {"begin": "220000+0000", "end": "230000+0000"}


def seen(
    desired: int = 6,
    replicas: int = 3,
    weight: float | None = 50,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Objects:
    """An Hvpa whose HPA wants `desired replicas` of `replicas` replicas, and whose metrics say so too."""
    intervals = None if weight is None else [{"vpaWeight": weight}]
    inside = min(max(desired, 1), 10)
    whole = build.merged({"replicas": inside, "weightBasedScalingIntervals": intervals}, spec or {})
    utilization = 50 * desired // min(replicas, 10)
    hpa = build.hpa(inside, utilization, replicas=min(replicas, 10))
    target = rest.pop("target", None) or build.workload(replicas)
    return build.objects(build.hvpa(whole, status), target, rest.pop("horizontal", hpa), AT_REST, **rest)


def target(decision: Decision) -> int:
    assert decision.replicas is not None
    return decision.replicas.target


def hold(decision: Decision) -> tuple[str, str, int, int, dt.datetime | None]:
    (entry,) = decision.blocked
    assert entry.axis == "horizontal"
    return entry.reason, entry.direction, entry.current, entry.wanted, entry.until


def axis(last: dt.datetime | None = None, **more: Any) -> dict[str, Any]:
    return {"axes": {"horizontal": {**({"lastScaleTime": stamp(last)} if last else {}), **more}}}


@pytest.mark.parametrize(
    ("desired", "replicas", "weight", "expected"),
    named(
        {
            "out: ceil(3 + 3 x 0.4)": (6, 3, 60, 5),
            "in: floor(6 - 3 x 0.4)": (3, 6, 60, 4),
            "weight 0 is all horizontal": (6, 3, 0, 6),
            "so is none at all": (6, 3, None, 6),
            "nothing to do": (3, 3, 50, 3),
            "not beyond maxReplicas": (20, 8, 0, 10),
            "not below minReplicas": (0, 3, 0, 1),
        }
    ),
)
def test_weight_blends_the_replica_count(
    desired: int, replicas: int, weight: float | None, expected: int
) -> None:
    decision = build.decided(seen(desired, replicas, weight))
    assert target(decision) == expected
    patch = decision.workload_patch
    assert (patch is None) == (expected == replicas)
    if patch is not None:
        assert patch.body["spec"] == {"replicas": expected}
        assert decision.applied == (("horizontal", "up" if expected > replicas else "down"),)


# --- one step per recommendation -------------------------------------------------------------------------------------
def step(before: Objects, now: dt.datetime = NOW) -> tuple[Decision, Objects]:
    decision = build.decided(before, now)
    return decision, build.apply(before, decision)


def recorded(decision: Decision) -> tuple[int, int, float]:
    """The count that is set, and the desired replicas and the weight that it was blended from."""
    axes = decision.status.axes
    assert axes is not None
    assert axes.horizontal is not None
    assert axes.horizontal.applied_from is not None
    applied_from = axes.horizontal.applied_from
    return applied_from.replicas, applied_from.desired, applied_from.weight


def test_measurement_holds_the_next_step_until_the_hpa_has_measured_anew() -> None:
    decision, after = step(seen(5, 1))
    assert target(decision) == 3  # 1 + 4 x 0.5
    for when in (NOW, at(seconds=59)):
        again = build.decided(after, when)
        assert target(again) == 3
        assert hold(again) == ("Measurement", "up", 3, 4, at(seconds=60)), "what waits is reported"
        assert again.status.recommended is not None
        assert again.status.recommended.replicas == 4
        assert again.recheck_after == at(seconds=60) - when, "and it looks again when the HPA has"
    assert target(build.decided(after, at(seconds=60))) == 4, "by then, 5 is what is wanted of 3"


def test_measurement_holds_a_second_step_during_an_unfinished_rollout() -> None:
    _, after = step(seen(5, 1))
    behind = build.workload(
        3, change={"metadata": {"annotations": dict(_annotations(after))}, "status": {"availableReplicas": 2}}
    )
    later = build.decided(build.objects(after.hvpa, behind, after.hpas[0], AT_REST), at(minutes=9))
    assert hold(later) == ("Measurement", "up", 3, 4, None)
    assert later.recheck_after is None


def test_measurement_does_not_wait_for_ever_for_a_pod_that_is_never_ready() -> None:
    applied_from = axis(at(hours=-8), appliedFrom={"replicas": 15, "desired": 20, "weight": 50})
    created = {"metadata": {"creationTimestamp": stamp(at(hours=-8))}}
    pods = [build.pod(f"web-{index}", change=created) for index in range(14)]
    stuck = build.pod("web-14", ready=False, change=created)
    behind = build.workload(15, change={"status": {"availableReplicas": 14, "readyReplicas": 14}})
    objects = build.objects(
        build.hvpa({"replicas": 20, "hpa": {"template": {"spec": {"maxReplicas": 30}}}}, applied_from),
        behind,
        build.hpa(20, 72, {"spec": {"maxReplicas": 30}}, replicas=15),
        AT_REST,
        pods=[*pods, stuck],
    )
    assert target(build.decided(objects)) == 18, "15 + 5 x 0.5, eight hours after the deadline"


@pytest.mark.parametrize(
    ("target_change", "pods", "until"),
    named(
        {
            "a young pod": ({}, {"creationTimestamp": stamp(at(minutes=-2))}, at(minutes=9)),
            "nearly there": ({}, {"creationTimestamp": stamp(at(minutes=-9.5))}, at(seconds=90)),
            "a deadline of its own": (
                {"spec": {"progressDeadlineSeconds": 3600}},
                {"creationTimestamp": stamp(at(minutes=-2))},
                at(minutes=59),
            ),
            "no deadline": (
                {"spec": {"progressDeadlineSeconds": 2**31 - 1}},
                {"creationTimestamp": stamp(at(minutes=-20))},
                None,
            ),
            "the controller has not seen the spec": (
                {"metadata": {"generation": 2}},
                {"creationTimestamp": stamp(at(minutes=-20))},
                None,
            ),
            "nothing is known of the pods": ({}, {}, None),
        }
    ),
)
def test_measurement_waits_for_a_rollout_until_its_progress_deadline(
    target_change: dict[str, Any], pods: dict[str, Any], until: dt.datetime | None
) -> None:
    applied_from = axis(appliedFrom={"replicas": 3, "desired": 6, "weight": 50})
    behind = build.workload(3, change=build.merged({"status": {"availableReplicas": 2}}, target_change))
    all_pods = [build.pod("a"), build.pod("b"), build.pod("c", ready=False, change={"metadata": pods})]
    hpa = build.hpa(6, 150)  # of the two that are ready
    decision = build.decided(seen(6, 3, status=applied_from, target=behind, pods=all_pods, horizontal=hpa))
    assert hold(decision) == ("Measurement", "up", 3, 5, until)


def _annotations(objects: Objects) -> Mapping[str, str]:
    assert objects.workload is not None
    return objects.workload.metadata.annotations


def test_measurement_waits_for_pods_that_have_just_become_ready() -> None:
    applied_from = axis(at(minutes=-10), appliedFrom={"replicas": 3, "desired": 6, "weight": 50})
    ready = {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(seconds=-20))}]
    }
    pods = [build.pod("a"), build.pod("b"), build.pod("c", change={"status": ready})]
    decision = build.decided(seen(6, 3, status=applied_from, pods=pods))
    assert target(decision) == 3
    assert decision.recheck_after == dt.timedelta(seconds=40)


def test_measurement_does_not_hold_other_desired_replicas() -> None:
    _, after = step(seen(5, 1))
    anew = seen(8, 3)
    decision = build.decided(build.objects(after.hvpa, after.workload, anew.hpas[0], AT_REST))
    assert target(decision) == 6  # 3 + 5 x 0.5 = 5.5


def test_weight_and_desired_replicas_of_a_step_are_recorded() -> None:
    decision, _ = step(seen(6, 3, 60))
    assert recorded(decision) == (5, 6, 60)
    assert decision.status.last_scaling is not None
    assert decision.status.last_scaling.last_scale_time == NOW


def test_measurement_holds_the_same_desired_replicas_in_another_interval_too() -> None:
    intervals = [{"vpaWeight": 50, "lastReplicaCount": 4}, {"vpaWeight": 20, "startReplicaCount": 5}]
    decision, after = step(seen(10, 1, spec={"weightBasedScalingIntervals": intervals}))
    assert target(decision) == 6
    assert target(build.decided(after)) == 6


# --- gates -----------------------------------------------------------------------------------------------------------
def out(**policy: Any) -> dict[str, Any]:
    return {"hpa": {"scaleUp": policy}}


def into(**policy: Any) -> dict[str, Any]:
    return {"hpa": {"scaleDown": policy}}


OFF = {"updatePolicy": {"updateMode": "Off"}}
IN_WINDOW = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
JUST_NOW = axis(at(minutes=-1))


@pytest.mark.parametrize(
    ("objects", "expected"),
    named(
        {
            "Paused": (seen(spec={"mode": "Paused"}), ("Paused", "up", 3, 5, None)),
            "Weight: 100, out": (seen(weight=100), ("Weight", "up", 3, 6, None)),
            "Weight: 100, in": (seen(2, 4, weight=100), ("Weight", "down", 4, 2, None)),
            "UpdatePolicy: scaling out is Off": (seen(spec=out(**OFF)), ("UpdatePolicy", "up", 3, 5, None)),
            "UpdatePolicy: scaling in is Off": (
                seen(2, 4, spec=into(**OFF)),
                ("UpdatePolicy", "down", 4, 3, None),
            ),
            "StabilizationWindow: scaled a minute ago": (
                seen(spec=out(stabilizationDuration="3m"), status=JUST_NOW),
                ("StabilizationWindow", "up", 3, 5, at(minutes=2)),
            ),
            "StabilizationWindow: a step up holds the next step down": (
                seen(2, 4, spec=into(stabilizationDuration="1h30m"), status=JUST_NOW),
                ("StabilizationWindow", "down", 4, 3, at(minutes=89)),
            ),
            "MaintenanceWindow: none is open": (
                seen(spec={**out(**IN_WINDOW), "maintenanceTimeWindow": WINDOW}),
                ("MaintenanceWindow", "up", 3, 5, at(hours=12)),
            ),
            "MinChange: a change of 2 of 3": (
                seen(spec=out(minChange={"replicas": {"value": 3}})),
                ("MinChange", "up", 3, 5, None),
            ),
            "MinChange: a change of 2 where 70 percent of 3 are 2.1": (
                seen(spec=out(minChange={"replicas": {"percentage": 70}})),
                ("MinChange", "up", 3, 5, None),
            ),
        }
    ),
)
def test_each_gate_that_holds_replicas_is_reported_with_reason_and_until(
    objects: Objects, expected: tuple[Any, ...]
) -> None:
    decision = build.decided(objects)
    assert hold(decision) == expected
    assert decision.workload_patch is None
    assert target(decision) == expected[2]
    (held_step,) = decision.status.last_blocked_scaling
    assert (held_step.reason, held_step.axis, held_step.direction) == (expected[0], "horizontal", expected[1])
    assert (held_step.current, held_step.wanted, held_step.until) == (
        str(expected[2]),
        str(expected[3]),
        expected[4],
    )
    assert held_step.hpa_status is not None
    assert (held_step.hpa_status.current_replicas, held_step.hpa_status.desired_replicas) == (
        expected[2],
        expected[3],
    )
    blocked = next(
        condition for condition in decision.status.conditions if condition.type == "ScalingBlocked"
    )
    assert (blocked.status, blocked.reason) == ("True", expected[0])
    until = expected[4]
    assert decision.recheck_after == (None if until is None else until - NOW)
    assert "ScalingBlocked" in [event.reason for event in decision.events]


@pytest.mark.parametrize(
    "objects",
    named(
        {
            "UpdatePolicy: the other direction is Off": seen(2, 4, spec=out(**OFF)),
            "StabilizationWindow: the duration is over": seen(
                spec=out(stabilizationDuration="1m"), status=JUST_NOW
            ),
            "MinChange: a change of 2 of 2": seen(spec=out(minChange={"replicas": {"value": 2}})),
            "MinChange: the smaller of value and percentage": seen(
                spec=out(minChange={"replicas": {"value": 3, "percentage": 50}})
            ),
            "MaintenanceWindow: one is open": seen(
                spec={
                    **out(**IN_WINDOW),
                    "maintenanceTimeWindow": {"begin": "100000+0000", "end": "110000+0000"},
                }
            ),
            "Rollout: under way": seen(target=build.workload(3, change={"status": {"updatedReplicas": 1}})),
            "StabilizationWindow: the other axis has just been scaled": seen(
                spec={"vpa": {"deploy": True}, **out(stabilizationDuration="1h")},
                status={"axes": {"vertical": {"lastScaleTime": stamp(NOW)}}},
            ),
        }
    ),
)
def test_each_gate_lets_replicas_pass_where_its_rule_is_met(objects: Objects) -> None:
    decision = build.decided(objects)
    assert decision.blocked == ()
    assert len(decision.applied) == 1


def test_stabilization_window_counts_gardeners_time_for_every_direction() -> None:
    legacy = {"lastScaling": {"lastScaleTime": stamp(at(minutes=-1))}}
    decision = build.decided(seen(spec=out(stabilizationDuration="3m"), status=legacy))
    assert hold(decision)[0] == "StabilizationWindow"


def test_stabilization_window_does_not_hold_scaling_out_for_a_starving_pod() -> None:
    starving = [build.oom_killed(at(minutes=-1))]
    held: dict[str, Any] = {
        "spec": {**out(stabilizationDuration="3m"), **into(stabilizationDuration="3m")},
        "status": JUST_NOW,
    }
    assert target(build.decided(seen(**held, pods=[*starving, build.pod("b"), build.pod("c")]))) == 5
    decision = build.decided(seen(2, 4, **held, pods=[*starving, *(build.pod(name) for name in "bcd")]))
    assert hold(decision)[0] == "StabilizationWindow", "nothing gets easier on the way in"


# --- counts outside the bounds ---------------------------------------------------------------------------------------
HELD_UP = {
    "hpa": {
        "scaleUp": {"stabilizationDuration": "1h", "minChange": {"replicas": {"value": 99}}},
        "scaleDown": {"stabilizationDuration": "1h", "minChange": {"replicas": {"value": 99}}},
    }
}


@pytest.mark.parametrize(
    ("objects", "expected"),
    named(
        {
            "above maxReplicas": (seen(10, 14), 10),
            "below minReplicas": (seen(2, 1, spec={"hpa": {"template": {"spec": {"minReplicas": 2}}}}), 2),
            "past StabilizationWindow and MinChange": (seen(10, 14, spec=HELD_UP, status=JUST_NOW), 10),
            "past Weight": (seen(10, 14, weight=100), 10),
            "just inside, while the rest of the way is held": (
                seen(4, 14, spec=HELD_UP, status=JUST_NOW),
                10,
            ),
            "Paused holds it": (seen(10, 14, spec={"mode": "Paused"}), 14),
            "mode Off holds it": (seen(10, 14, spec=into(**OFF)), 14),
            "a closed window holds it": (
                seen(10, 14, spec={**into(**IN_WINDOW), "maintenanceTimeWindow": WINDOW}),
                14,
            ),
            "without metrics": (seen(10, 14, horizontal=build.hpa(0, None)), 10),
        }
    ),
)
def test_a_count_outside_min_replicas_and_max_replicas_is_brought_inside_at_once(
    objects: Objects, expected: int
) -> None:
    assert target(build.decided(objects)) == expected


def test_stabilization_window_and_min_change_hold_the_way_inside_the_bounds() -> None:
    decision, after = step(seen(4, 14, spec=HELD_UP, status=JUST_NOW))
    assert hold(decision)[:4] == ("StabilizationWindow", "down", 14, 4), "in no interval: all is horizontal"
    assert (target(decision), recorded(decision)) == (10, (10, 10, 0))
    later = build.objects(after.hvpa, after.workload, seen(4, 10).hpas[0], AT_REST)
    assert hold(build.decided(later, at(hours=2)))[0] == "MinChange"


# --- other clients ---------------------------------------------------------------------------------------------------
def set_back(after: Objects, replicas: int, status: Any) -> Objects:
    managed = [{"manager": "flux", "time": stamp(NOW), "fieldsV1": {"f:spec": {"f:replicas": {}}}}]
    change = {"metadata": {"annotations": dict(_annotations(after)), "managedFields": managed}}
    return build.objects(
        build.with_status(after.hvpa, status), build.workload(replicas, change=change), after.hpas[0]
    )


def test_contested_holds_replicas_that_another_client_sets_back_twice() -> None:
    decision, after = step(seen(6, 3, 0))
    assert target(decision) == 6
    second = build.decided(set_back(after, 3, decision.status), at(minutes=1))
    assert target(second) == 6, "the first time it is made again at once"
    assert second.status.axes is not None
    third = build.decided(set_back(build.apply(after, second), 3, second.status), at(minutes=20))
    assert hold(third) == ("Contested", "up", 3, 6, at(minutes=21))
    contested = next(condition for condition in third.status.conditions if condition.type == "Contested")
    assert contested.status == "True"
    assert "flux" in contested.message
    assert "replicas" in contested.message
    waiting = build.decided(set_back(after, 3, third.status), at(minutes=20, seconds=20))
    assert waiting.status == third.status, "it stays at rest while it waits"
    assert waiting.recheck_after == dt.timedelta(seconds=40)
    fourth = build.decided(set_back(after, 3, third.status), at(minutes=21))
    assert target(fourth) == 6, "when the wait is over it is tried again"
    fifth = build.decided(set_back(build.apply(after, fourth), 3, fourth.status), at(minutes=26))
    assert hold(fifth)[4] == at(minutes=28), "and the next wait is longer"


def undone(replicas: int, when: dt.datetime, count: int = 2) -> dict[str, Any]:
    """A status by which another client has set back the replicas that we had set so often, last at that time."""
    applied_from = {"replicas": replicas, "desired": replicas, "weight": 0}
    return axis(at(minutes=-2), setBack={"count": count, "time": stamp(when)}, appliedFrom=applied_from)


def contested(
    *, seconds: float, utilization: int | None = 50, change: dict[str, Any] | None = None
) -> Objects:
    """Another client set 2 replicas so long ago, again, where we had set 10 as the HPA asked."""
    status = {**undone(10, at(seconds=-20)), "recommended": {"replicas": 10}}
    managed = [
        {"manager": "flux", "time": stamp(at(seconds=-seconds)), "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    ]
    return build.objects(
        build.hvpa({"replicas": 10, "weightBasedScalingIntervals": [{"vpaWeight": 0}]}, status),
        build.workload(2, change={"metadata": {"managedFields": managed}}),
        build.hpa(10, utilization, change, replicas=10),
    )


def test_contested_is_not_ended_by_a_measurement_of_pods_that_were_taken_away() -> None:
    """Ten pods at their target, of which two are left: what these use is measured a minute later."""
    decision = build.decided(contested(seconds=20))
    assert hold(decision) == ("Contested", "up", 2, 10, at(seconds=40))
    assert decision.scale_replicas is None, "the HPA's count stands"
    assert build.decided(contested(seconds=60)).blocked == ()


def test_contested_is_not_ended_by_a_silence_of_the_hpa() -> None:
    def silent(minutes: float) -> Decision:
        since = stamp(at(minutes=-minutes))
        active = {"type": "ScalingActive", "status": "False", "reason": "No", "lastTransitionTime": since}
        return build.decided(
            contested(seconds=600, utilization=None, change={"status": {"conditions": [active]}})
        )

    brief = silent(4)
    assert hold(brief) == ("Contested", "up", 2, 10, at(seconds=40))
    assert brief.status.recommended is not None
    assert brief.status.recommended.replicas == 10
    assert brief.steps[1] == (
        "replicas: 2 now, the HPA has no recommendation; 10 recommended last, because the HPA has no metrics"
    )
    assert silent(5).blocked == ()


def test_contested_goes_on_while_the_field_is_set_back_and_ends_when_it_stays() -> None:
    status = undone(6, at(seconds=-30))
    assert hold(build.decided(seen(6, 3, 0, status=status)))[0] == "Contested"
    assert target(build.decided(seen(8, 6, 0, status=status))) == 8


def test_contested_holds_a_count_outside_the_bounds_too() -> None:
    decision = build.decided(seen(10, 14, 0, status=undone(10, at(minutes=-1))))
    assert hold(decision)[0] == "Contested"
    assert target(decision) == 14


def test_contested_never_holds_in_mode_recommend() -> None:
    status = undone(6, at(minutes=-2), count=1)
    decision = build.decided(seen(6, 3, 0, spec={"mode": "Recommend"}, status=status))
    assert decision.blocked == ()
    assert decision.status.recommended is not None
    assert decision.status.recommended.replicas == 6
