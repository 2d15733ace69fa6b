"""Status, conditions and events (DESIGN 3, 6.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.api.hvpa.status import HvpaStatus, to_wire
from hvpa.core import Decision, Objects, Settings, observe
from hvpa.core.deciding import as_far_as
from hvpa.core.model import OtherHvpa
from hvpa.core.report.status import failed_status, still_failing, unapplied_status

TARGETS = {"app": {"cpu": "2", "memory": "1Gi"}}
OFF = {"updatePolicy": {"updateMode": "Off"}}


def usual(spec: dict[str, Any] | None = None, status: HvpaStatus | None = None, **rest: Any) -> Objects:
    hvpa = build.hvpa({"replicas": 6, **(spec or {})})
    hvpa = hvpa if status is None else build.with_status(hvpa, status)
    return build.objects(hvpa, rest.pop("target", None), build.hpa(6, 100), build.vpa(TARGETS), **rest)


def reasons(decision: Decision) -> list[str]:
    """Of the events on the Hvpa."""
    return [event.reason for event in decision.events if event.involved is None]


def test_the_status_has_what_the_scale_subresource_needs_policies_and_weights() -> None:
    target = build.workload(3, change={"status": {"replicas": 4}})
    status = build.decided(usual({"hpa": {"scaleDown": OFF}}, target=target)).status
    assert (status.replicas, status.target_selector) == (4, "app=web")
    modes = [
        status.hpa_scale_up_update_policy,
        status.hpa_scale_down_update_policy,
        status.vpa_scale_up_update_policy,
        status.vpa_scale_down_update_policy,
    ]
    assert [mode.update_mode for mode in modes if mode is not None] == ["Auto", "Off", "Auto", "Auto"]
    assert (status.hpa_weight, status.vpa_weight) == (50, 50)


@pytest.mark.parametrize(
    ("blend", "named", "reported"),
    [
        ("Trajectory", None, "InPlaceOrRollout"),
        ("Trajectory", "Rollout", None),
        ("Additive", None, None),
    ],
)
def test_the_status_says_which_update_strategy_is_used_where_the_spec_does_not(
    blend: str, named: str | None, reported: str | None
) -> None:
    strategy = None if named is None else {"type": named}
    objects = usual({"blend": blend, "updateStrategy": strategy})
    status = build.decided(objects).status
    assert status.update_strategy == reported
    assert to_wire(status).get("updateStrategy") == reported
    if reported is not None:
        assert objects.hvpa.spec is not None
        old = replace(objects, hvpa=replace(objects.hvpa, spec=objects.hvpa.spec.without_resizes()))
        assert build.decided(old).status.update_strategy == "Rollout"


def test_weights_stay_as_they_were_at_0_replicas() -> None:
    before = build.decided(usual()).status
    assert build.decided(usual(status=before, target=build.workload(0))).status.vpa_weight == 50


def test_the_last_scaling_is_reported_and_stays() -> None:
    objects = usual()
    first = build.decided(objects)
    last = first.status.last_scaling
    assert last is not None
    target = {"containerName": "app", "target": {"cpu": "1500m", "memory": "1Gi"}}
    assert to_wire(last) == {
        "lastScaleTime": stamp(NOW),
        "hpaStatus": {"currentReplicas": 3, "desiredReplicas": 5},
        "vpaStatus": {"recommendation": {"containerRecommendations": [target]}},
    }
    assert build.decided(build.apply(objects, first), at(seconds=30)).status.last_scaling == last
    only_replicas = build.decided(usual({"weightBasedScalingIntervals": None})).status.last_scaling
    assert only_replicas is not None
    assert only_replicas.vpa_status is None


@pytest.mark.parametrize("kind", ["Rollout", "InPlace"])
def test_the_size_before_the_last_change_of_requests_is_reported_and_stays(kind: str) -> None:
    objects = usual({"updateStrategy": {"type": kind}})
    decision = build.decided(objects)
    first = decision.status
    before = {"name": "app", "requests": {"cpu": "1", "memory": "1Gi"}, "limits": {}}
    assert to_wire(first)["previousSize"] == {"time": stamp(NOW), "replicas": 3, "containers": [before]}
    assert (
        build.decided(build.apply(objects, decision), at(seconds=30)).status.previous_size
        == first.previous_size
    )
    observation = observe(objects, NOW, Settings())
    not_resized = as_far_as(observation, decision, {"horizontal"}).status
    assert not_resized.previous_size == (None if not_resized.desired is None else first.previous_size)
    assert as_far_as(observation, decision, {"vertical"}).status.previous_size == first.previous_size
    if kind == "Rollout":  # in place, both axes are one write of the status
        assert unapplied_status(HvpaStatus(), first, {"horizontal"}).previous_size == first.previous_size
    assert unapplied_status(HvpaStatus(), first, {"vertical"}).previous_size is None


@pytest.mark.parametrize(
    "changes",
    [{"mode": "Recommend"}, {"weightBasedScalingIntervals": None}],
)
def test_no_previous_size_is_reported_if_no_request_changes(changes: dict[str, Any]) -> None:
    assert "previousSize" not in to_wire(build.decided(usual(changes)).status)


def test_a_condition_keeps_its_time_while_its_status_does() -> None:
    first = build.decided(usual({"mode": "Recommend"})).status
    later = build.decided(usual({"mode": "Paused"}, first), at(hours=1)).status
    before = {entry.type: entry for entry in first.conditions}
    after = {entry.type: entry for entry in later.conditions}
    assert list(after) == ["Ready", "HpaActive", "VpaActive", "ScalingBlocked", "Paused", "Contested"]
    assert after["Ready"].last_transition_time == NOW, "True before and after"
    assert (before["Ready"].reason, after["Ready"].reason) == ("Recommend", "Paused")
    assert after["Paused"].last_transition_time == at(hours=1), "False before, True after"
    assert after["HpaActive"] == before["HpaActive"]


@pytest.mark.parametrize(("generation", "reported"), [(7, 7), (-760, 0)])
def test_a_condition_has_the_generation_that_it_is_about(generation: int, reported: int) -> None:
    hvpa = build.hvpa(metadata={"generation": generation})
    status = build.decided(build.objects(hvpa, horizontal=build.hpa())).status
    assert {entry.observed_generation for entry in status.conditions} == {reported}


def test_weight_based_scaling_intervals_that_overlap_are_reported_once() -> None:
    rows = [{"vpaWeight": 50, "lastReplicaCount": 5}, {"vpaWeight": 20, "startReplicaCount": 3}]
    spec = {"weightBasedScalingIntervals": rows}
    first = build.decided(usual(spec))
    assert "overlaps" in first.status.conditions[0].message
    assert "SpecWarning" in reasons(first)
    assert "SpecWarning" not in reasons(build.decided(usual(spec, first.status)))
    idle = {**spec, "hpa": {"deploy": False}, "vpa": {"deploy": False}}
    second = build.decided(usual(idle))
    assert "SpecWarning" not in reasons(build.decided(usual(idle, second.status)))


def test_what_begins_to_block_and_that_nothing_blocks_any_more_are_events() -> None:
    spec = {"hpa": {"scaleUp": OFF}, "weightBasedScalingIntervals": None}
    first = build.decided(usual(spec))
    assert [(event.type, event.reason, event.message) for event in first.events] == [
        ("Normal", "ScalingBlocked", "replicas 3 -> 6 held by UpdatePolicy"),
        ("Normal", "ScalingBlocked", "app cpu 1 -> 2 held by Weight"),
    ]
    assert build.decided(usual(spec, first.status)).events == ()
    calm = build.with_status(build.hvpa({"replicas": 3}), first.status)
    free = build.objects(calm, None, build.hpa(), build.vpa({"app": {"cpu": "1"}}))
    assert reasons(build.decided(free)) == ["ScalingUnblocked"]


FOREIGN_HPA = build.hpa(
    change={
        "metadata": {"name": "other", "ownerReferences": None, "labels": None},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"others": (OtherHvpa("other"),)}, ["TargetShared"]),
        ({"workload": None}, ["TargetNotFound"]),
        ({"hpas": (FOREIGN_HPA,), "vpas": (build.vpa({"app": {"cpu": "1"}}),)}, ["ForeignHpa"]),
        ({"vpas": (), "hpas": (build.hpa(),)}, []),
        ({"workload": build.workload(0)}, ["ScaledToZero"]),
    ],
)
def test_where_scaling_stops_that_is_reported_and_not_that_nothing_is_held_back(
    change: dict[str, Any], expected: list[str]
) -> None:
    spec = {"hpa": {"scaleUp": OFF}, "weightBasedScalingIntervals": None}
    held = build.decided(usual(spec))
    assert held.blocked
    hvpa = build.with_status(build.hvpa({"replicas": 3}), held.status)
    decision = build.decided(replace(usual(), hvpa=hvpa, **change))
    assert not decision.blocked
    assert reasons(decision) == expected


def test_stabilization_window_event_says_until_when() -> None:
    status = {"axes": {"horizontal": {"lastScaleTime": build.stamp(NOW)}}}
    spec = {"replicas": 6, "hpa": {"scaleUp": {"stabilizationDuration": "5m"}}, "vpa": {"deploy": False}}
    objects = build.objects(build.hvpa(spec, status), None, build.hpa(6, 100))
    message = build.decided(objects).events[0].message
    assert message == "replicas 3 -> 6 held by StabilizationWindow until 2026-11-21T10:05:00Z"


def test_a_step_is_one_event_whatever_it_changes() -> None:
    vpa = build.vpa({"app": {"cpu": "3", "memory": "256Mi"}})
    decision = build.decided(
        build.objects(build.hvpa({"replicas": 1}), build.workload(5), build.hpa(1, 10, replicas=5), vpa)
    )
    events = [(event.reason, event.involved is None) for event in decision.events]
    assert events == [("Scaled", True), ("Scaled", False)], "one on the Hvpa, one on its workload"
    assert decision.events[0].message.startswith("replicas 5 -> 3, cpu 1 -> ")


def test_a_failed_write_is_on_top_of_what_was_decided_and_reported_once() -> None:
    before = build.decided(usual()).status
    failed = failed_status(before, before, "PatchWorkload", "no", NOW)
    assert failed.last_error is not None
    error = {"description": "no", "lastOperation": "PatchWorkload", "lastUpdateTime": stamp(NOW)}
    assert to_wire(failed.last_error) == error
    ready = failed.conditions[0]
    assert (ready.type, ready.status, ready.reason) == ("Ready", "False", "WriteFailed")
    assert (ready.message, ready.last_transition_time) == ("PatchWorkload: no", NOW)
    assert failed.conditions[1:] == before.conditions[1:]
    again = failed_status(failed, failed, "ChangeOwned", "no", at(hours=1))
    assert again.conditions[0].last_transition_time == NOW
    assert failed_status(failed, failed, "PatchWorkload", "no", at(hours=1)) == failed
    assert failed_status(failed, failed, "PatchWorkload", "never", at(hours=1)) != failed
    assert build.decided(usual(status=failed)).status.last_error is None
    [ready] = failed_status(HvpaStatus(), HvpaStatus(), "Decide", "no", NOW).conditions
    assert (ready.status, ready.reason, ready.observed_generation) == ("False", "DecisionFailed", None)


def test_what_was_not_applied_is_not_remembered_and_all_else_is_as_decided() -> None:
    silent = [{"type": "ScalingActive", "status": "False", "reason": "FailedGetX"}]
    hpa = build.hpa(3, None, {"status": {"conditions": silent}})
    first = build.decided(build.objects(build.hvpa(), None, hpa, build.vpa(TARGETS)))
    before = failed_status(first.status, first.status, "PatchWorkload", "no", NOW)
    decision = build.decided(usual(status=before), at(minutes=1))
    axes = {axis for axis, _ in decision.applied}
    assert axes == {"horizontal", "vertical"}
    kept = unapplied_status(before, decision.status, axes)
    failed = failed_status(before, kept, "PatchWorkload", "no", at(minutes=1))
    assert [condition.reason for condition in before.conditions[:2]] == ["WriteFailed", "FailedGetX"]
    assert [condition.reason for condition in failed.conditions[:2]] == ["WriteFailed", "Recommending"]
    assert (failed.axes, failed.last_scaling) == (before.axes, before.last_scaling)
    assert failed.last_error == before.last_error
    assert failed.conditions[0].last_transition_time == before.conditions[0].last_transition_time
    assert unapplied_status(before, decision.status, ()) is decision.status
    without = unapplied_status(before, decision.status, {"vertical"}).axes
    assert without is not None
    assert decision.status.axes is not None
    assert without.horizontal == decision.status.axes.horizontal
    assert unapplied_status(HvpaStatus(), decision.status, axes).axes is None


def test_while_a_failed_write_is_tried_again_the_status_says_so_still() -> None:
    first = build.decided(usual()).status
    before = failed_status(first, first, "ChangeOwned", "no", NOW)
    then = build.decided(usual(status=before)).status
    assert then.last_error is None
    reported = still_failing(then, before)
    assert reported.last_error == before.last_error
    assert reported.conditions == (before.conditions[0], *then.conditions[1:])


ZONE = {"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h", "timeZone": "Mars/Utopia"}]}


@pytest.mark.parametrize(
    ("change", "spec", "replicas", "selector"),
    [
        pytest.param({"workload": None}, {}, None, None, id="of a target that is gone no number is left"),
        pytest.param(
            {"others": (OtherHvpa("other"),)}, {}, None, "app=web", id="of one that is shared no count"
        ),
        pytest.param({}, ZONE, 7, "app=web", id="of one that is not scaled for a faulty spec the count"),
    ],
)
def test_of_what_is_not_scaled_nothing_old_is_left(
    change: dict[str, Any], spec: dict[str, Any], replicas: int | None, selector: str | None
) -> None:
    before = build.decided(usual()).status
    status = build.decided(replace(usual(spec, before, target=build.workload(7)), **change)).status
    assert (status.replicas, status.target_selector) == (replicas, selector)
    assert (status.recommended, status.hpa_weight, status.vpa_weight) == (None, None, None)
    assert status.axes == before.axes
    known = {condition.type: condition for condition in status.conditions}
    blocked, ready = known["ScalingBlocked"], known["Ready"]
    assert (blocked.status, blocked.reason) == ("True", ready.reason), "the column BLOCKED"
    assert blocked.message == f"HVPA scales nothing: {ready.message}"


def test_in_place_a_status_whose_writes_failed_keeps_all_that_was_decided_before() -> None:
    objects = usual({"updateStrategy": {"type": "InPlace"}})
    decided, before = build.decided(objects).status, objects.hvpa.status
    assert decided.desired is not None
    status = unapplied_status(before, decided, {"horizontal"})
    names = ("axes", "last_scaling", "desired", "actuation")
    assert [getattr(status, name) for name in names] == [getattr(before, name) for name in names]
    assert status.conditions == decided.conditions
