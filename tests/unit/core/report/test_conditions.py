"""Condition `Ready`: what keeps a workload from what its recommendations and limits ask for (docs/decisions/0024)."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import LONG_AGO, NOW, at, stamp
from hvpa.core import Decision
from hvpa.core.model import Settings

TARGETS = {"app": {"cpu": "1", "memory": "1Gi"}}
"""What is requested."""


def decided(
    *,
    spec: Mapping[str, Any] | None = None,
    hpa: Mapping[str, Any] | None = None,
    vpa: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    pods: list[Any] | None = None,
    kind: str = "Deployment",
    replicas: int = 3,
    desired: int = 3,
    utilization: int | None = 50,
    targets: Mapping[str, Mapping[str, Any]] = TARGETS,
    status: Mapping[str, Any] | None = None,
    settings: Settings | None = None,
    silent: Mapping[str, dt.datetime] | None = None,
) -> Decision:
    """A decision on three replicas that are just right, but for what is changed."""
    reference = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}
    objects = build.objects(
        build.hvpa({**reference, **(spec or {})}, status),
        build.workload(replicas, change=target, kind=kind),
        build.hpa(desired, utilization, hpa, replicas),
        build.vpa(targets, build.merged({"spec": reference}, vpa or {})),
        pods,
    )
    if silent is not None:
        objects = dataclasses.replace(objects, silent_recommenders=silent)
    return build.decided(objects, settings=settings)


def found(decision: Decision, kind: str = "Ready") -> tuple[str, str]:
    condition = build.condition(decision, kind)
    return condition.status, condition.reason


def message(decision: Decision) -> str:
    return build.condition(decision, "Ready").message


def recheck(decision: Decision) -> float | None:
    return None if decision.recheck_after is None else decision.recheck_after.total_seconds()


def pod(name: str, **change: Any) -> Any:
    return build.pod(name, ready=False, change=change)


def made(seconds: float) -> dict[str, Any]:
    """A StatefulSet that lacks a pod, and has one that was made so long ago and is not ready."""
    created = {"creationTimestamp": stamp(at(seconds=-seconds))}
    return {"target": BEHIND, "kind": STATEFUL, "pods": [pod("web-1", metadata=created)]}


def lost_readiness(seconds: float) -> dict[str, Any]:
    """A Deployment whose rollout ended long ago, and a pod of it that is not ready since so many seconds."""
    since = entry("Ready", "False", "ContainersNotReady", lastTransitionTime=stamp(at(seconds=-seconds)))
    target = failing("Progressing", "True", "NewReplicaSetAvailable", availableReplicas=2)
    created = {"creationTimestamp": LONG_AGO}
    return {"target": target, "pods": [pod("web-1", metadata=created, status={"conditions": [since]})]}


def entry(kind: str, status: str, reason: str, why: str = "", **times: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": why, **times}


def unschedulable(name: str, since: str = LONG_AGO) -> Any:
    why = "0/3 nodes are available: 3 Insufficient cpu."
    scheduled = entry("PodScheduled", "False", "Unschedulable", why, lastTransitionTime=since)
    return pod(name, status={"phase": "Pending", "conditions": [scheduled]})


def container(
    state: Mapping[str, Any], part: str = "containerStatuses", name: str = "web-1", **more: Any
) -> Any:
    status = {"phase": "Pending", part: [{"name": "app", "state": state, **more}]}
    return pod(name, metadata={"creationTimestamp": LONG_AGO}, status=status)


def waiting(reason: str, why: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": why}}


def ended(when: str, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"reason": reason, "finishedAt": when}}


def failing(kind: str, status: str, reason: str, why: str = "", **more: int) -> dict[str, Any]:
    return {"status": {"conditions": [entry(kind, status, reason, why, lastUpdateTime=LONG_AGO)], **more}}


def ready(seconds: float) -> Any:
    """A pod with a container that ended a minute ago for the third time; the pod is ready since so many seconds."""
    looped = {"name": "app", "lastState": ended(stamp(at(minutes=-1))), "restartCount": 3}
    since = entry("Ready", "True", "", lastTransitionTime=stamp(at(seconds=-seconds)))
    return build.pod("web-1", change={"status": {"conditions": [since], "containerStatuses": [looped]}})


OFF = {"updatePolicy": {"updateMode": "Off"}}
AS_IT_SHOULD_BE = ("Reconciled", "HeldBack", "Recommend", "Paused")
MORE: dict[str, Any] = {"desired": 6, "utilization": 100}
STATEFUL = "StatefulSet"
BEHIND = {"status": {"availableReplicas": 2}}
RUNNING: dict[str, Any] = {"running": {}}
CRASHING = waiting("CrashLoopBackOff")
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "nothing differs": ({}, "Reconciled", "the workload follows its recommendations"),
    "a gate of the user's own": (
        {"spec": {"hpa": {"scaleUp": OFF}}, **MORE}, "HeldBack", "replicas 3 -> 5 held by UpdatePolicy"),
    "Recommend": ({"spec": {"mode": "Recommend"}, **MORE}, "Recommend", "the workload is not changed"),
    "Paused": ({"spec": {"mode": "Paused"}}, "Paused", "mode Paused"),
    "no metrics of the HPA": ({"utilization": None}, "HpaInactive", "NoMetrics: the HPA has"),
    "nothing to recommend, in mode Recommend as well": (
        {"spec": {"mode": "Recommend"}, "targets": {}},
        "VpaInactive", "the VPA's recommendation is not used, NoRecommendation"),
    "both recommenders: the message names the other one as well": (
        {"utilization": None, "targets": {}},
        "HpaInactive", "the VPA's recommendation is not used, NoRecommendation"),
    "a quota refuses pods": (
        {"target": failing("ReplicaFailure", "True", "FailedCreate", "exceeded quota: small")},
        "ReplicaFailure", "Deployment web can't create pods, FailedCreate: exceeded quota: small"),
    "no node has room": (
        {"pods": [unschedulable("web-2"), unschedulable("web-1")]}, "PodsUnschedulable",
        "2 pods, such as web-1 can't be scheduled: 0/3 nodes are available: 3 Insufficient cpu."),
    "no image": (
        {"pods": [container(waiting("ImagePullBackOff", "Back-off pulling image"))]},
        "PodsNotStarting", "pod web-1 can't start, ImagePullBackOff: container app"),
    "no image, at another instant": (
        {"pods": [container(waiting("ErrImagePull", "not found"))]},
        "PodsNotStarting", "pod web-1 can't start, ImagePullBackOff: container app"),
    "no secret": (
        {"pods": [container(waiting("CreateContainerConfigError", 'secret "s" not found'))]},
        "PodsNotStarting", 'pod web-1 can\'t start, CreateContainerConfigError: container app: secret "s" not found'),
    "an init container": (
        {"pods": [container(waiting("SetUp"), "initContainerStatuses")]}, "PodsNotStarting", "SetUp: container app"),
    "a container keeps terminating": (
        {"pods": [container(CRASHING, lastState=ended(LONG_AGO), restartCount=3)]},
        "PodsNotStarting", "pod web-1 can't start, CrashLoopBackOff: container app ended with Error"),
    "and runs in between": (
        {"pods": [container(RUNNING, lastState=ended(stamp(at(minutes=-9))), restartCount=3)]},
        "PodsNotStarting", "CrashLoopBackOff"),
    "and is ready in between, as soon as it runs": (
        {"pods": [ready(29)]},
        "PodsNotStarting", "CrashLoopBackOff"),
    "it has just ended": (
        {"pods": [container({**CRASHING, **ended(LONG_AGO)}, restartCount=9)]}, "PodsNotStarting", "ended with Error"),
    "the Deployment says that its rollout is stuck": (
        {"target": failing("Progressing", "False", "ProgressDeadlineExceeded", "it timed out", availableReplicas=2)},
        "ProgressDeadlineExceeded", "it timed out"),
    "a rollout of a StatefulSet past ten minutes": (
        made(600), "ProgressDeadlineExceeded",
        "the rollout of StatefulSet web is not progressing: 2 of 3 pods are available"),
    "a pod has failed its probe for ten minutes": (
        lost_readiness(600), "ProgressDeadlineExceeded", "2 of 3 pods are available"),
    "a paused Deployment whose pods are of an older template": (
        {"target": {"spec": {"paused": True}, "status": {"updatedReplicas": 1}}},
        "DeploymentPaused", "Deployment web is paused"),
    "a StatefulSet that can't make its pods": (
        {"target": {"status": {"replicas": 1, "availableReplicas": 1}}, "kind": STATEFUL, "pods": []},
        "PodsNotCreated", "StatefulSet web has 1 of 3 pods and does not create the rest"),
}  # fmt: skip
NO_OBSTACLES: dict[str, dict[str, Any]] = {
    "it refused them earlier": {"target": failing("ReplicaFailure", "False", "FailedCreate")},
    "a pod that has just been made": {"pods": [unschedulable("web-1", stamp(at(seconds=-29)))]},
    "a container is being created": {"pods": [container(waiting("ContainerCreating"))]},
    "it has run for ten minutes now": {
        "pods": [container(RUNNING, lastState=ended(stamp(at(minutes=-10))), restartCount=3)]},
    "its pod has been ready for half a minute since": {
        "pods": [ready(30)]},
    "it ended twice": {"pods": [container(CRASHING, lastState=ended(LONG_AGO), restartCount=2)]},
    "it is not known when it ended": {"pods": [container(RUNNING, lastState={"terminated": {}}, restartCount=5)]},
    "a rollout of a StatefulSet, not known since when": {
        "target": BEHIND, "kind": STATEFUL, "pods": [pod("web-1")]},
    "a rollout of a StatefulSet before that": made(599),
    "a pod that ran for hours fails its probe, for less than ten minutes": lost_readiness(599),
    "a paused one that is done": {"target": {"spec": {"paused": True}}},
    "a StatefulSet whose controller has not looked yet": {
        "target": {"status": {"replicas": 1, "observedGeneration": 0}}, "kind": STATEFUL, "pods": []},
    "a StatefulSet that waits for a pod to end": {
        "target": {"status": {"replicas": 2}}, "kind": STATEFUL,
        "pods": [pod("web-1", metadata={"deletionTimestamp": LONG_AGO})]},
    "a StatefulSet that was scaled a minute ago": {
        "target": {"status": {"replicas": 2}}, "kind": STATEFUL, "pods": [],
        "status": {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-59))}}}},
}  # fmt: skip


@pytest.mark.parametrize(("change", "reason", "text"), CASES.values(), ids=CASES)
def test_ready_says_what_keeps_the_workload_from_its_recommendations(
    change: dict[str, Any], reason: str, text: str
) -> None:
    decision = decided(**change)
    assert found(decision) == (str(reason in AS_IT_SHOULD_BE), reason)
    assert text in message(decision)


@pytest.mark.parametrize("change", NO_OBSTACLES.values(), ids=NO_OBSTACLES)
def test_it_is_reconciled_where_nothing_keeps_it_from_that(change: dict[str, Any]) -> None:
    assert found(decided(**change)) == ("True", "Reconciled")


def became_ready(*times: str) -> list[Any]:
    conditions = [[{"type": "Ready", "status": "True", "lastTransitionTime": when}] for when in times]
    return [
        build.pod(f"web-{number}", change={"status": {"conditions": pod_conditions}})
        for number, pod_conditions in enumerate(conditions)
    ]


@pytest.mark.parametrize(("seconds", "reason"), [(599, "Reconciled"), (600, "ProgressDeadlineExceeded")])
def test_a_status_that_lags_behind_is_no_stuck_rollout(seconds: int, reason: str) -> None:
    """After hours at rest a Deployment is scaled out; its pods are seen ready before its status counts them."""
    since = stamp(at(seconds=-seconds))
    behind = failing("Progressing", "True", "NewReplicaSetAvailable", availableReplicas=2)
    assert found(decided(target=behind, pods=became_ready(LONG_AGO, since, LONG_AGO)))[1] == reason
    # Or before they are created:
    behind["status"]["replicas"] = 2
    status = {"axes": {"horizontal": {"lastScaleTime": since}}}
    decision = decided(target=behind, pods=became_ready(LONG_AGO, LONG_AGO), status=status)
    assert found(decision)[1] == reason


def test_all_that_is_wrong_is_in_the_message() -> None:
    broken = failing("ReplicaFailure", "True", "FailedCreate", "exceeded quota")
    decision = decided(target=broken, pods=[unschedulable("web-1")], utilization=None)
    assert found(decision) == ("False", "ReplicaFailure")
    for part in ("exceeded quota", "can't be scheduled", "NoMetrics"):
        assert part in message(decision)


def test_a_target_without_replicas_has_no_failures_and_gives_its_recommender_nothing_to_see() -> None:
    decision = decided(replicas=0, desired=0, utilization=None, pods=[], vpa=spoken(9999))
    assert found(decision) == ("True", "ScaledToZero")
    assert found(decision, "VpaActive") == ("True", "Recommending")


def test_many_reasons_are_bounded_and_in_order() -> None:
    pods = [container(waiting(f"Reason{index}"), name=f"web-{index}") for index in range(9)]
    assert message(decided(pods=pods)) == message(decided(pods=pods[::-1]))
    assert message(decided(pods=pods)).count("can't start") == 5


def test_it_comes_back_when_the_clock_says_so() -> None:
    early = decided(pods=[unschedulable("web-1", stamp(at(seconds=-10)))])
    assert found(early) == ("True", "Reconciled")
    assert recheck(early) == 20
    calming = container(RUNNING, lastState=ended(stamp(at(minutes=-4))), restartCount=3)
    assert recheck(decided(pods=[calming])) == 360
    assert recheck(decided(pods=[ready(10)])) == 20
    assert recheck(decided(vpa=spoken(100))) == 80, "when the recommendation would be stale"


def test_maxreplicas_is_named_where_the_hpa_asks_for_more() -> None:
    limited = {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}
    hpa = {"status": {"conditions": [{"type": "ScalingActive", "status": "True"}, limited]}}
    decision = decided(spec={"replicas": 10}, replicas=10, desired=10, utilization=90, hpa=hpa)
    assert found(decision) == ("True", "Saturated")
    assert "the HPA recommends more replicas than maxReplicas, 10" in message(decision)


def test_contested_says_who_and_what_helps() -> None:
    target = {
        "metadata": {"managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}
    }
    last = stamp(at(seconds=-20))
    applied_from = {"replicas": 5, "desired": 6, "weight": 50}
    axis = {"lastScaleTime": last, "appliedFrom": applied_from, "setBack": {"count": 1, "time": last}}
    decision = decided(**MORE, target=target, status={"axes": {"horizontal": axis}})
    assert found(decision, "Contested") == ("True", "SetBack")
    expected = "kubectl keeps reverting replicas: remove spec.replicas from its manifest; retrying at "
    assert build.condition(decision, "Contested").message.startswith(expected + "2026-11-21T10:01:00")
    assert found(decision) == ("False", "Contested")
    assert [event.reason for event in decision.events if event.type == "Warning"] == ["SetBack"]


def test_recommend_names_apart_what_is_recommended_and_what_apply_would_hold_back() -> None:
    weight = {"weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    decision = decided(
        spec={"mode": "Recommend", **weight}, targets={"app": {"cpu": "1112m", "memory": "1Gi"}}
    )
    best = decision.status.recommended
    assert best is not None
    assert best.containers[0].requests["cpu"] == "1112m"
    assert found(decision) == ("True", "Recommend")
    first = (
        "mode Recommend: the workload is not changed; status.recommended has the recommendation before gates; "
        "in mode Apply"
    )
    assert message(decision).startswith(f"{first}: app cpu 1 -> 1112m held by MinChange until ")
    assert message(decided(spec={"mode": "Recommend"})) == f"{first}, no gate would hold it back"


# --- recommendations that are too old --------------------------------------------------------------------------------
def spoken(seconds: float, upper: str = "2147483649", **spec: Any) -> dict[str, Any]:
    """A VPA whose status was written so long ago."""
    recommended = {"containerName": "app", "target": TARGETS["app"], "upperBound": {"memory": upper}}
    managers = [
        {"manager": "kubectl", "time": stamp(NOW)},
        {"manager": "recommender", "subresource": "status", "time": stamp(at(seconds=-seconds))},
    ]
    return {
        "metadata": {"creationTimestamp": stamp(at(days=-10)), "managedFields": managers},
        "status": {"recommendation": {"containerRecommendations": [recommended]}},
        "spec": spec,
    }


def silent(part: str, field: str, value: str | None = None) -> dict[str, Any]:
    """One that is silent for long, with another field, or without it."""
    change = spoken(9999)
    return {**change, part: {**change[part], field: value}}


MOST: dict[str, Any] = {
    "resourcePolicy": {"containerPolicies": [{"containerName": "*", "maxAllowed": {"memory": "2Gi"}}]}
}
STALE: dict[str, tuple[dict[str, Any], bool]] = {
    "three minutes without a word": (spoken(180), True),
    "not quite": (spoken(179), False),
    "the bound is the target: the recommender's minimum": (spoken(9999, "1Gi"), False),
    "the bound is maxAllowed": (spoken(9999, **MOST), False),
    "a bound that can't be read": (spoken(9999, "much"), False),
    "a bound that is rounded, and says so by its suffix": (spoken(9999, "2048M"), False),
    "a bound that is rounded to whole MiB": (spoken(9999, "2147483648"), False),
    "another recommender": (spoken(9999, recommenders=[{"name": "mine"}]), False),
    "so old that its bounds hardly move": (silent("metadata", "creationTimestamp", "1990-01-01T00:00:00Z"), False),
    "of unknown age": (silent("metadata", "creationTimestamp"), False),
    "without a recommendation": (silent("status", "recommendation"), False),
}  # fmt: skip


@pytest.mark.parametrize(("vpa", "is_stale"), STALE.values(), ids=STALE)
def test_a_recommendation_is_stale_once_its_recommender_is_silent(
    vpa: dict[str, Any], is_stale: bool
) -> None:
    decision = decided(vpa=vpa)
    active = build.condition(decision, "VpaActive")
    assert (active.reason == "RecommendationStale") is is_stale
    if is_stale:
        assert "was last updated at 2026-11-21T09:57:00Z" in active.message
        assert found(decision) == ("False", "VpaInactive")


def test_a_recommendation_is_stale_once_its_recommender_saves_nothing() -> None:
    """Its status alone would not show it."""
    since = at(seconds=-200)
    decision = decided(vpa=spoken(9999, "1Gi"), silent={"": since})
    active = build.condition(decision, "VpaActive")
    assert active.reason == "RecommendationStale"
    assert (
        active.message
        == f"the VPA's recommender has written no checkpoints or recommendations since {stamp(since)}"
    )
    others = decided(vpa=spoken(9999, "1Gi", recommenders=[{"name": "mine"}]), silent={"": since})
    assert found(others, "VpaActive")[1] == "Recommending"


def test_a_slower_recommender_has_more_time() -> None:
    slow = Settings(vpa_period=Settings().vpa_period * 5)
    assert found(decided(vpa=spoken(800), settings=slow), "VpaActive")[1] == "Recommending"


# --- late decisions --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("seen", "reason", "text"),
    [
        (
            build.objects(horizontal=build.hpa(), vertical=build.vpa(TARGETS)),
            "DecisionPostponed",
            "; the workload follows",
        ),
        (build.objects(), "HpaInactive", "; the HPA's recommendation is not used"),
    ],
)
def test_a_late_decision_is_reported_beside_what_is_wrong_otherwise(
    seen: Any, reason: str, text: str
) -> None:
    decision = build.decided(replace(seen, postponed=True))
    assert found(decision) == ("False", reason)
    assert message(decision).startswith("this decision is late: the Hvpas of this namespace need more")
    assert text in message(decision)
    assert found(build.decided(seen)) != ("False", "DecisionPostponed")
