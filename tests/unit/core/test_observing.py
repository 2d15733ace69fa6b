"""What can be decided upon at all (DESIGN 4, 8; bad input)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at, stamp
from hvpa.core import Decision, Objects, Settings, decide, observe
from hvpa.core.model import OtherHvpa, ReplicaView
from hvpa.core.workload.containers import recommendations

TARGETS = {"app": {"cpu": "3", "memory": "1Gi"}}


def usual(**change: Any) -> Objects:
    fields: dict[str, Any] = {"horizontal": build.hpa(6, 100), "vertical": build.vpa(TARGETS)}
    return build.objects(**{**fields, **change})


def condition(decision: Decision, kind: str) -> tuple[str, str]:
    status_condition = build.condition(decision, kind)
    return status_condition.status, status_condition.reason


MANY_LABELS = {f"label-{number}": "x" for number in range(201)}
LONG = "v" * 32_768
ROLLOUT = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
UNREADABLE = {"schedule": "0 1 * * *", "duration": "1h", "timeZone": "Mars/Olympus"}
GOING = {"metadata": {"deletionTimestamp": build.LONG_AGO}}


def of(**spec: Any) -> Objects:
    """With this in the Hvpa's spec."""
    return usual(hvpa_object=build.hvpa(spec))


WRONG: dict[str, tuple[Objects, str, str]] = {
    "a spec that does not validate": (
        of(hpa={"scaleUp": {"stabilizationDuration": "x"}}), "InvalidSpec", "spec.hpa.scaleUp.stabilizationDuration"),
    "a window that cannot be read": (
        of(maintenanceWindows=[UNREADABLE]), "InvalidSpec", "spec.maintenanceWindows[0].timeZone"),
    "a kind that is not supported": (of(targetRef={"kind": "CronJob"}), "UnsupportedTarget", "CronJob"),
    "a group that is not supported": (of(targetRef={"apiVersion": "x/v1"}), "UnsupportedTarget", "x/v1"),
    "a kind of another version": (
        of(targetRef={"apiVersion": "apps/v1", "kind": "ReplicationController"}),
        "UnsupportedTarget", "apps/v1 ReplicationController is not supported"),
    "a path for a kind without replicas": (
        of(targetRef={"kind": "DaemonSet"}, blend="Trajectory"),
        "UnsupportedTarget", "a DaemonSet has no replica count"),
    "a kind that can't be listed": (
        replace(of(targetRef={"kind": "DaemonSet"}), unlisted="the list fails"),
        "TargetUnreadable", "DaemonSet web can't be read: the list fails"),
    "a custom kind whose template would have to be changed": (
        of(targetRef=ROLLOUT), "UnsupportedTarget",
        "the pod template of a Rollout can't be changed; set spec.updateStrategy.type to InPlace"),
    "a custom kind that can't be read": (
        replace(of(targetRef=ROLLOUT, updateStrategy={"type": "InPlace"}), unlisted="no right"),
        "TargetUnreadable", "Rollout web can't be read: no right"),
    "a target with two Hvpas": (replace(usual(), others=(OtherHvpa("a"), OtherHvpa("b"))), "TargetShared", "a, b"),
    "a target with many Hvpas": (
        replace(usual(), others=tuple(map(OtherHvpa, "abcdefghijk"))), "TargetShared", "more than 10 other Hvpas"),
    "no target": (replace(usual(), workload=None), "TargetNotFound", "Deployment web"),
    "a target that is being deleted": (usual(target=build.workload(change=GOING)), "TargetNotFound", "web"),
    "a target with many containers": (
        usual(target=build.workload(containers=[build.container(f"c{number}") for number in range(101)])),
        "UnsupportedTarget", "more than 100 containers"),
    "a target with a long selector": (
        usual(target=build.workload(change={"spec": {"selector": {"matchLabels": {"app": LONG}}}})),
        "UnsupportedTarget", "more than 32768 characters"),
    "a target whose selector has many labels": (
        usual(target=build.workload(change={"spec": {"selector": {"matchLabels": MANY_LABELS}}})),
        "UnsupportedTarget", "more than 200 labels, conditions and values"),
    "a target whose selector has many values": (
        usual(target=build.workload(change={"spec": {"selector": {"matchExpressions": [
            {"key": "app", "operator": "In", "values": [*MANY_LABELS][:200]}]}}})),
        "UnsupportedTarget", "more than 200 labels, conditions and values"),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "reason", "text"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_reported_once_and_nothing_is_scaled(seen: Objects, reason: str, text: str) -> None:
    decision = build.decided(seen)
    assert condition(decision, "Ready") == ("False", reason)
    assert text in build.condition(decision, "Ready").message
    assert written(decision) == (None, None, ())
    assert decision.recheck_after is None
    assert condition(decision, "HpaActive") == condition(decision, "VpaActive") == ("False", "NotReady")
    assert [(event.type, event.reason) for event in decision.events] == [("Warning", reason)]
    again = build.decided(replace(seen, hvpa=build.with_status(seen.hvpa, decision.status)))
    assert again.events == ()
    assert again.status == decision.status


def written(decision: Decision) -> tuple[object, ...]:
    return decision.workload_patch, decision.scale_replicas, decision.owned


def test_a_spec_that_cannot_be_read_without_a_reason_is_reported_too() -> None:
    decision = build.decided(usual(hvpa_object=replace(build.hvpa(), spec=None)))
    assert condition(decision, "Ready") == ("False", "InvalidSpec")


def test_what_was_known_stays_in_the_status_while_something_is_wrong() -> None:
    good = build.decided(usual())
    broken = replace(usual(), workload=None, hvpa=build.with_status(build.hvpa(), good.status))
    status = build.decided(broken).status
    assert status.axes == good.status.axes
    assert status.last_blocked_scaling == ()


def test_a_stateful_set_is_a_target_too() -> None:
    spec = {"targetRef": {"kind": "StatefulSet", "apiVersion": None}}
    decision = build.decided(usual(hvpa_object=build.hvpa(spec), target=build.workload(kind="StatefulSet")))
    assert condition(decision, "Ready") == ("True", "Reconciled")


def test_an_hvpa_that_is_being_deleted_does_nothing() -> None:
    hvpa = build.hvpa(metadata={"deletionTimestamp": build.LONG_AGO})
    decision = build.decided(usual(hvpa_object=hvpa))
    assert decision.status == hvpa.status
    assert written(decision) == (None, None, ())
    assert decision.events == ()


def test_without_any_recommender_it_is_not_ready() -> None:
    hvpa = build.hvpa({"hpa": {"deploy": False}, "vpa": {"deploy": False}})
    decision = build.decided(build.objects(hvpa))
    assert condition(decision, "Ready") == ("False", "NoRecommender")
    assert decision.workload_patch is None


# --- the VPA's recommendation ----------------------------------------------------------------------------------------
def true(kind: str, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", **more}


PROVIDED = true("RecommendationProvided")
UNUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no condition": ({"conditions": []}, "NoRecommendation"),
    "not provided": (
        {"conditions": [{**PROVIDED, "status": "False", "message": "No pods match"}]}, "NoRecommendation"),
    "no recommendation": ({"recommendation": None}, "NoRecommendation"),
    "nor any of a container": ({"recommendation": {"containerRecommendations": None}}, "NoRecommendation"),
    **{kind: ({"conditions": [PROVIDED, true(kind, reason="why")]}, kind)
       for kind in ("ConfigUnsupported", "ConfigDeprecated", "LowConfidence")},
}  # fmt: skip


@pytest.mark.parametrize(("status", "reason"), UNUSED.values(), ids=UNUSED)
def test_a_recommendation_that_does_not_count(status: dict[str, Any], reason: str) -> None:
    decision = build.decided(usual(vertical=build.vpa(TARGETS, {"status": status})))
    assert condition(decision, "VpaActive") == ("False", reason)
    assert decision.containers["app"].requests["cpu"] == 1000
    assert build.counts(decision).target == 6, "an axis that can't be used does not hold back the other"


def test_conditions_that_are_false_do_not_matter() -> None:
    conditions = [PROVIDED, {**true("LowConfidence"), "status": "False"}]
    vertical = build.vpa(TARGETS, {"status": {"conditions": conditions}})
    assert condition(build.decided(usual(vertical=vertical)), "VpaActive") == ("True", "Recommending")


def test_a_cluster_without_vpas_is_reported() -> None:
    decision = build.decided(replace(usual(vertical=None), vpa_served=False))
    assert condition(decision, "VpaActive") == ("False", "VpaNotServed")
    assert [change.kind for change in decision.owned] == ["HorizontalPodAutoscaler"]
    without = replace(
        usual(hvpa_object=build.hvpa({"vpa": {"deploy": False}}), vertical=None), vpa_served=False
    )
    assert condition(build.decided(without), "VpaActive")[1] == "NotConfigured"


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        pytest.param(59, 3000, id="young history only raises"),
        pytest.param(60, 2000, id="after minHistory it lowers"),
    ],
)
def test_min_history_of_a_young_vpa_only_raises(age: int, expected: int) -> None:
    big = build.workload(containers=[build.container(requests={"cpu": "3", "memory": "1Gi"})])
    vertical = build.vpa({"app": {"cpu": "1", "memory": "3Gi"}}, since=stamp(at(minutes=-age)))
    decision = build.decided(usual(horizontal=build.hpa(3), target=big, vertical=vertical))
    assert decision.containers["app"].requests["cpu"] == expected
    assert decision.containers["app"].requests["memory"] == 2_147_484_000
    if age < 60:
        assert condition(decision, "VpaActive") == ("True", "YoungHistory")
        assert decision.recheck_after == dt.timedelta(minutes=1)


def test_min_history_does_not_hold_a_history_of_unknown_age() -> None:
    big = build.workload(containers=[build.container(requests={"cpu": "3", "memory": "1Gi"})])
    vertical = build.vpa({"app": {"cpu": "1"}}, {"status": {"conditions": [PROVIDED]}})
    decision = build.decided(usual(target=big, vertical=vertical, horizontal=build.hpa(3)))
    assert decision.containers["app"].requests["cpu"] == 2000


@pytest.mark.parametrize(
    ("blend", "uncapped", "cpu"),
    [
        pytest.param("Additive", {"uncappedTarget": {"cpu": "300m"}}, "2", id="a capped target counts"),
        pytest.param(
            "Trajectory", {"uncappedTarget": {"cpu": "300m"}}, "300m", id="jointly, an uncapped one"
        ),
        pytest.param("Trajectory", {}, "2", id="where there is no other, the capped one"),
    ],
)
def test_a_joint_decision_goes_by_what_is_not_capped(blend: str, uncapped: dict[str, Any], cpu: str) -> None:
    targets = [{"containerName": "app", "target": {"cpu": "2"}, **uncapped}]
    vpa = build.vpa(change={"status": {"recommendation": {"containerRecommendations": targets}}})
    observation = observe(usual(vertical=vpa, hvpa_object=build.hvpa({"blend": blend})), NOW, Settings())
    assert observation.vpa.object is not None
    assert recommendations(observation.vpa.object)["app"].target == {"cpu": cpu}


# --- the rest --------------------------------------------------------------------------------------------------------
def test_now_is_the_same_instant_in_any_zone() -> None:
    objects, elsewhere = usual(), NOW.astimezone(dt.timezone(dt.timedelta(hours=5)))
    assert decide(observe(objects, elsewhere, Settings())) == decide(observe(objects, NOW, Settings()))


def test_a_target_at_0_replicas_is_left_alone() -> None:
    decision = build.decided(usual(target=build.workload(0)))
    assert condition(decision, "Ready") == ("True", "ScaledToZero")
    assert condition(decision, "HpaActive") == ("False", "NoPods")
    assert decision.workload_patch is None
    assert build.counts(decision) == ReplicaView(current=0, hpa=None, target=0, recommended=0)
    assert [event.reason for event in decision.events] == ["ScaledToZero"]


def daemons(spec: dict[str, Any], **rest: Any) -> Decision:
    """A decision on a DaemonSet of four pods whose VPA wants 3 cores."""
    hvpa = build.hvpa({"targetRef": {"kind": "DaemonSet"}, **spec}, rest.pop("status", None))
    target = build.workload(4, kind="DaemonSet")
    objects = build.objects(hvpa, target, build.hpa(6, 100), build.vpa(TARGETS), **rest)
    return build.decided(objects)


def test_a_daemonset_is_scaled_by_its_requests_alone() -> None:
    decision = daemons({"weightBasedScalingIntervals": [{"vpaWeight": 100}]})
    assert condition(decision, "HpaActive") == ("False", "NoReplicaCount")
    assert "a DaemonSet has no replica count" in build.condition(decision, "HpaActive").message
    assert decision.workload_patch is not None
    spec: Any = decision.workload_patch.body["spec"]
    assert spec.keys() == {"template"}
    assert [change.kind for change in decision.owned] == ["VerticalPodAutoscaler"]


def test_a_daemonset_without_an_hpa_needs_none() -> None:
    decision = daemons({"hpa": {"deploy": False}})
    assert condition(decision, "HpaActive") == ("False", "NotConfigured")
    assert condition(decision, "Ready")[0] == "True"


def test_nodes_that_come_are_no_change_of_a_daemonsets_size() -> None:
    size = {"name": "app", "requests": {"cpu": "3", "memory": "1Gi"}}
    desired = {"replicas": 3, "containers": [size], "since": build.stamp(at(hours=-1)), "generation": 1}
    spec = {"hpa": {"deploy": False}, "updateStrategy": {"type": "InPlace"}}
    decision = daemons(spec, status={"desired": desired})
    assert decision.workload_patch is None
    assert decision.status.desired is not None
    assert (decision.status.desired.replicas, decision.status.desired.since) == (4, at(hours=-1))
