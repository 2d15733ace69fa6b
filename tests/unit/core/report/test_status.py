"""Status, conditions and events (DESIGN 3, 6.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at
from hvpa.api.hvpa.status import HvpaStatus
from hvpa.api.objects.read_models import Selector, SelectorRequirement
from hvpa.core import Objects
from hvpa.core.model import OtherHvpa
from hvpa.core.report.status import failed_status, still_failing, unapplied_status
from hvpa.core.workload.selector import selector_text

TARGETS = {"app": {"cpu": "2", "memory": "1Gi"}}
OFF = {"updatePolicy": {"updateMode": "Off"}}


def usual(spec: dict[str, Any] | None = None, status: HvpaStatus | None = None, **rest: Any) -> Objects:
    one = build.hvpa({"replicas": 6, **(spec or {})})
    one = one if status is None else build.with_status(one, status)
    return build.objects(one, rest.pop("target", None), build.hpa(6, 100), build.vpa(TARGETS), **rest)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(Selector(), "", id="empty"),
        pytest.param(Selector(match_labels={"b": "2", "a": "1"}), "a=1,b=2", id="labels, sorted"),
        pytest.param(
            Selector(
                match_labels={"app": "web"},
                match_expressions=[
                    SelectorRequirement("tier", "In", frozenset({"front", "back"})),
                    SelectorRequirement("env", "NotIn", frozenset({"test"})),
                    SelectorRequirement("canary", "DoesNotExist"),
                    SelectorRequirement("live", "Exists"),
                ],
            ),
            "app=web,!canary,env notin (test),live,tier in (back,front)",
            id="expressions",
        ),
    ],
)
def test_the_selector_is_told_as_text(selector: Selector, expected: str) -> None:
    assert selector_text(selector) == expected


def test_the_status_tells_what_the_scale_subresource_needs() -> None:
    status = build.decided(usual(target=build.workload(3, change={"status": {"replicas": 4}}))).status
    assert status.replicas == 4
    assert status.target_selector == "app=web"


def test_the_status_tells_policies_and_weights() -> None:
    status = build.decided(usual({"hpa": {"scaleDown": OFF}})).status
    modes = [
        status.hpa_scale_up_update_policy,
        status.hpa_scale_down_update_policy,
        status.vpa_scale_up_update_policy,
        status.vpa_scale_down_update_policy,
    ]
    assert [mode.update_mode for mode in modes if mode is not None] == ["Auto", "Off", "Auto", "Auto"]
    assert (status.hpa_weight, status.vpa_weight) == (50, 50)


def test_weights_stay_as_they_were_at_0_replicas() -> None:
    before = build.decided(usual()).status
    assert build.decided(usual(status=before, target=build.workload(0))).status.vpa_weight == 50


def test_the_last_scaling_is_told_and_stays() -> None:
    seen = usual()
    first = build.decided(seen)
    last = first.status.last_scaling
    assert last is not None
    assert last.hpa_status is not None
    assert (last.hpa_status.current_replicas, last.hpa_status.desired_replicas) == (3, 5)
    assert last.vpa_status is not None
    assert last.vpa_status.recommendation is not None
    (target,) = last.vpa_status.recommendation.container_recommendations
    assert target.target == {"cpu": "1500m", "memory": "1Gi"}
    assert build.decided(build.apply(seen, first), at(seconds=30)).status.last_scaling == last
    only_replicas = build.decided(usual({"weightBasedScalingIntervals": None})).status.last_scaling
    assert only_replicas is not None
    assert only_replicas.vpa_status is None


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


@pytest.mark.parametrize(("generation", "told"), [(7, 7), (-760, 0)])
def test_a_condition_tells_which_generation_it_speaks_of(generation: int, told: int) -> None:
    one = build.hvpa(metadata={"generation": generation})
    status = build.decided(build.objects(one, horizontal=build.hpa())).status
    assert {entry.observed_generation for entry in status.conditions} == {told}


def test_overlapping_intervals_are_told_once() -> None:
    rows = [{"vpaWeight": 50, "lastReplicaCount": 5}, {"vpaWeight": 20, "startReplicaCount": 3}]
    spec = {"weightBasedScalingIntervals": rows}
    first = build.decided(usual(spec))
    assert "overlaps" in first.status.conditions[0].message
    assert "SpecWarning" in [event.reason for event in first.events]
    assert "SpecWarning" not in [event.reason for event in build.decided(usual(spec, first.status)).events]
    idle = {**spec, "hpa": {"deploy": False}, "vpa": {"deploy": False}}
    second = build.decided(usual(idle))
    assert "SpecWarning" not in [event.reason for event in build.decided(usual(idle, second.status)).events]


def test_what_begins_to_block_and_that_nothing_blocks_any_more_are_events() -> None:
    spec = {"hpa": {"scaleUp": OFF}, "weightBasedScalingIntervals": None}
    first = build.decided(usual(spec))
    reasons = [(event.type, event.reason) for event in first.events]
    assert reasons == [("Normal", "ScalingBlocked"), ("Normal", "ScalingBlocked")]
    assert [event.message for event in first.events] == [
        "replicas 3 -> 6 held by UpdatePolicy",
        "app cpu 1 -> 2 held by Weight",
    ]
    assert build.decided(usual(spec, first.status)).events == ()
    free = build.objects(
        build.with_status(build.hvpa({"replicas": 3}), first.status),
        None,
        build.hpa(),
        build.vpa({"app": {"cpu": "1"}}),
    )
    assert [event.reason for event in build.decided(free).events] == ["ScalingUnblocked"]


FOREIGN_HPA = build.hpa(
    change={
        "metadata": {"name": "other", "ownerReferences": None, "labels": None},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
)


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"others": (OtherHvpa("other"),)}, ["TargetShared"]),
        ({"workload": None}, ["TargetNotFound"]),
        ({"hpas": (FOREIGN_HPA,), "vpas": (build.vpa({"app": {"cpu": "1"}}),)}, ["ForeignHpa"]),
        ({"vpas": (), "hpas": (build.hpa(),)}, []),
        ({"workload": build.workload(0)}, ["ScaledToZero"]),
    ],
)
def test_where_scaling_stops_that_is_reported_and_not_that_nothing_is_held_back(
    change: dict[str, Any], reasons: list[str]
) -> None:
    spec = {"hpa": {"scaleUp": OFF}, "weightBasedScalingIntervals": None}
    held = build.decided(usual(spec))
    assert held.blocked
    one = build.with_status(build.hvpa({"replicas": 3}), held.status)
    decision = build.decided(replace(usual(), hvpa=one, **change))
    assert not decision.blocked
    assert [event.reason for event in decision.events if event.involved is None] == reasons


def test_an_event_tells_until_when_something_is_held() -> None:
    status = {"axes": {"horizontal": {"lastScaleTime": build.stamp(NOW)}}}
    spec = {"replicas": 6, "hpa": {"scaleUp": {"stabilizationDuration": "5m"}}, "vpa": {"deploy": False}}
    seen = build.objects(build.hvpa(spec, status), None, build.hpa(6, 100))
    decision = build.decided(seen)
    assert decision.events[0].message == (
        "replicas 3 -> 6 held by StabilizationWindow until 2026-11-21T10:05:00Z"
    )


def test_a_step_is_one_event_whatever_it_changes() -> None:
    vpa = build.vpa({"app": {"cpu": "3", "memory": "256Mi"}})
    decision = build.decided(
        build.objects(build.hvpa({"replicas": 1}), build.workload(5), build.hpa(1, 10, replicas=5), vpa)
    )
    found = [(event.reason, event.involved is None) for event in decision.events]
    assert found == [("Scaled", True), ("Scaled", False)], "one on the Hvpa, one on its workload"
    assert decision.events[0].message.startswith("replicas 5 -> 3, cpu 1 -> ")


def condition_of(status: HvpaStatus, kind: str) -> tuple[str, str]:
    found = next(one for one in status.conditions if one.type == kind)
    return found.status, found.reason


def test_a_failed_write_is_on_top_of_what_was_decided_and_reported_once() -> None:
    before = build.decided(usual()).status
    failed = failed_status(before, before, "PatchWorkload", "no", NOW)
    assert failed.last_error is not None
    assert (failed.last_error.description, failed.last_error.last_operation) == ("no", "PatchWorkload")
    assert failed.last_error.last_update_time == NOW
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
    silent = {
        "status": {"conditions": [{"type": "ScalingActive", "status": "False", "reason": "FailedGetX"}]}
    }
    first = build.decided(build.objects(build.hvpa(), None, build.hpa(3, None, silent), build.vpa(TARGETS)))
    before = failed_status(first.status, first.status, "PatchWorkload", "no", NOW)
    assert condition_of(before, "HpaActive") == ("False", "FailedGetX")
    decision = build.decided(usual(status=before), at(minutes=1))
    assert {axis for axis, _ in decision.applied} == {"horizontal", "vertical"}
    axes = {axis for axis, _ in decision.applied}
    kept = unapplied_status(before, decision.status, axes)
    failed = failed_status(before, kept, "PatchWorkload", "no", at(minutes=1))
    assert condition_of(failed, "HpaActive") == ("True", "Recommending")
    assert condition_of(failed, "Ready") == ("False", "WriteFailed")
    assert (failed.axes, failed.last_scaling) == (before.axes, before.last_scaling)
    assert failed.last_error == before.last_error
    assert failed.conditions[0].last_transition_time == before.conditions[0].last_transition_time
    assert unapplied_status(before, decision.status, ()) is decision.status
    (horizontal,) = [
        unapplied_status(before, decision.status, {"vertical"}).axes,
    ]
    assert horizontal is not None
    assert decision.status.axes is not None
    assert horizontal.horizontal == decision.status.axes.horizontal
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
    known = {one.type: one for one in status.conditions}
    blocked, ready = known["ScalingBlocked"], known["Ready"]
    assert (blocked.status, blocked.reason) == ("True", ready.reason), "the column BLOCKED"
    assert blocked.message == f"nothing is scaled: {ready.message}"
