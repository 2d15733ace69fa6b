"""Condition `Ready`: what keeps a workload from what its recommendations and limits ask for (docs/decisions/0024)."""

from __future__ import annotations

from collections.abc import Mapping
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
    desired: int = 3,
    utilization: int | None = 50,
    targets: Mapping[str, Mapping[str, Any]] = TARGETS,
    status: Mapping[str, Any] | None = None,
) -> Decision:
    """A decision on three replicas that are just right, but for what is changed."""
    one = build.hvpa(spec, status)
    hvpa_target = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}
    if kind != "Deployment":
        one = build.hvpa({**(spec or {}), **hvpa_target}, status)
    own = {"spec": {"targetRef": hvpa_target["targetRef"]}}
    return build.decided(
        build.objects(
            one,
            build.workload(3, change=target, kind=kind),
            build.hpa(desired, utilization, hpa),
            build.vpa(targets, build.merged(own, vpa or {})),
            pods,
        )
    )


def ready(decision: Decision) -> tuple[str, str]:
    found = decision.status.conditions[0]
    assert found.type == "Ready"
    return found.status, found.reason


def message(decision: Decision) -> str:
    return decision.status.conditions[0].message


def pod(name: str, **change: Any) -> Any:
    return build.pod(name, ready=False, change=change)


def made(seconds: float) -> dict[str, Any]:
    """A StatefulSet that lacks a pod, and has one that was made so long ago and is not ready."""
    created = {"creationTimestamp": stamp(at(seconds=-seconds))}
    return {"target": BEHIND, "kind": STATEFUL, "pods": [pod("web-1", metadata=created)]}


def unschedulable(name: str, since: str = LONG_AGO) -> Any:
    why = "0/3 nodes are available: 3 Insufficient cpu."
    entry = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": why,
        "lastTransitionTime": since,
    }
    return pod(name, status={"phase": "Pending", "conditions": [entry]})


def container(
    state: Mapping[str, Any], part: str = "containerStatuses", name: str = "web-1", **more: Any
) -> Any:
    return pod(
        name,
        metadata={"creationTimestamp": LONG_AGO},
        status={"phase": "Pending", part: [{"name": "app", "state": state, **more}]},
    )


def waiting(reason: str, why: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": why}}


def ended(when: str, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"reason": reason, "finishedAt": when}}


def failing(kind: str, status: str, reason: str, why: str) -> dict[str, Any]:
    entry = {"type": kind, "status": status, "reason": reason, "message": why, "lastUpdateTime": LONG_AGO}
    return {"status": {"conditions": [entry]}}


def test_it_is_reconciled_where_nothing_differs() -> None:
    decision = decided()
    assert ready(decision) == ("True", "Reconciled")
    assert message(decision) == "the workload follows its recommendations"


OFF = {"updatePolicy": {"updateMode": "Off"}}
AS_IT_SHOULD_BE = ("HeldBack", "Recommend", "Paused")
MORE: dict[str, Any] = {"desired": 6, "utilization": 100}


STATEFUL = "StatefulSet"
BEHIND = {"status": {"availableReplicas": 2}}
RUNNING: dict[str, Any] = {"running": {}}
CRASHING = waiting("CrashLoopBackOff")
CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "a gate of the user's own": (
        {"spec": {"hpa": {"scaleUp": OFF}}, **MORE},
        "HeldBack",
        "replicas 3 -> 5 held by UpdatePolicy",
    ),
    "Recommend": ({"spec": {"mode": "Recommend"}, **MORE}, "Recommend", "nothing is changed"),
    "Paused": ({"spec": {"mode": "Paused"}}, "Paused", "mode Paused"),
    "no metrics of the HPA": ({"utilization": None}, "HpaInactive", "NoMetrics: the HPA has"),
    "nothing to recommend, in mode Recommend as well": (
        {"spec": {"mode": "Recommend"}, "targets": {}},
        "VpaInactive",
        "the VPA's recommendation is not used, NoRecommendation",
    ),
    "both recommenders: the message names the other one as well": (
        {"utilization": None, "targets": {}},
        "HpaInactive",
        "the VPA's recommendation is not used, NoRecommendation",
    ),
    "a quota refuses pods": (
        {"target": failing("ReplicaFailure", "True", "FailedCreate", "exceeded quota: small")},
        "ReplicaFailure",
        "Deployment web can't create pods, FailedCreate: exceeded quota: small",
    ),
    "no node has room": (
        {"pods": [unschedulable("web-2"), unschedulable("web-1")]},
        "PodsUnschedulable",
        "2 pods, such as web-1 can't be scheduled: 0/3 nodes are available: 3 Insufficient cpu.",
    ),
    "no image": (
        {"pods": [container(waiting("ImagePullBackOff", "Back-off pulling image"))]},
        "PodsNotStarting",
        "pod web-1 can't start, ImagePullBackOff: container app",
    ),
    "no image, at another instant": (
        {"pods": [container(waiting("ErrImagePull", "not found"))]},
        "PodsNotStarting",
        "pod web-1 can't start, ImagePullBackOff: container app",
    ),
    "no secret": (
        {"pods": [container(waiting("CreateContainerConfigError", 'secret "s" not found'))]},
        "PodsNotStarting",
        'pod web-1 can\'t start, CreateContainerConfigError: container app: secret "s" not found',
    ),
    "an init container": (
        {"pods": [container(waiting("SetUp", ""), "initContainerStatuses")]},
        "PodsNotStarting",
        "SetUp: container app",
    ),
    "a container ends again and again": (
        {"pods": [container(CRASHING, lastState=ended(LONG_AGO), restartCount=3)]},
        "PodsNotStarting",
        "pod web-1 can't start, CrashLoopBackOff: container app ended with Error",
    ),
    "and runs in between": (
        {"pods": [container(RUNNING, lastState=ended(stamp(at(minutes=-9))), restartCount=3)]},
        "PodsNotStarting",
        "CrashLoopBackOff",
    ),
    "it has just ended": (
        {"pods": [container({**CRASHING, **ended(LONG_AGO)}, restartCount=9)]},
        "PodsNotStarting",
        "ended with Error",
    ),
    "the Deployment says that its rollout is stuck": (
        {
            "target": build.merged(
                failing("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "x" has timed out'),
                {"status": {"availableReplicas": 2}},
            )
        },
        "ProgressDeadlineExceeded",
        'ReplicaSet "x" has timed out',
    ),
    "a rollout of a StatefulSet past ten minutes": (
        made(600),
        "ProgressDeadlineExceeded",
        "the rollout of StatefulSet web does not go on: 2 of 3 pods are available",
    ),
    "a paused Deployment whose pods are of an older template": (
        {"target": {"spec": {"paused": True}, "status": {"updatedReplicas": 1}}},
        "DeploymentPaused",
        "Deployment web is paused",
    ),
    "a StatefulSet that can't make its pods": (
        {"target": {"status": {"replicas": 1, "availableReplicas": 1}}, "kind": STATEFUL, "pods": []},
        "PodsNotCreated",
        "StatefulSet web has 1 of 3 pods and creates no more",
    ),
}
NO_OBSTACLES: dict[str, dict[str, Any]] = {
    "it refused them earlier": {"target": failing("ReplicaFailure", "False", "FailedCreate", "")},
    "a pod that has just been made": {"pods": [unschedulable("web-1", stamp(at(seconds=-29)))]},
    "a container is being created": {"pods": [container(waiting("ContainerCreating"))]},
    "it has run for ten minutes now": {
        "pods": [container(RUNNING, lastState=ended(stamp(at(minutes=-10))), restartCount=3)]
    },
    "it ended twice": {"pods": [container(CRASHING, lastState=ended(LONG_AGO), restartCount=2)]},
    "nobody knows when it ended": {
        "pods": [container(RUNNING, lastState={"terminated": {}}, restartCount=5)]
    },
    "a rollout of a StatefulSet, nobody knows since when": {
        "target": BEHIND,
        "kind": STATEFUL,
        "pods": [pod("web-1")],
    },
    "a rollout of a StatefulSet before that": made(599),
    "a paused one that is done": {"target": {"spec": {"paused": True}}},
    "a StatefulSet whose controller has not looked yet": {
        "target": {"status": {"replicas": 1, "observedGeneration": 0}},
        "kind": STATEFUL,
        "pods": [],
    },
    "a StatefulSet that waits for a pod to end": {
        "target": {"status": {"replicas": 2}},
        "kind": STATEFUL,
        "pods": [pod("web-1", metadata={"deletionTimestamp": LONG_AGO})],
    },
    "a StatefulSet that was scaled a minute ago": {
        "target": {"status": {"replicas": 2}},
        "kind": STATEFUL,
        "pods": [],
        "status": {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-59))}}},
    },
}


@pytest.mark.parametrize(("change", "reason", "text"), CASES.values(), ids=CASES)
def test_ready_says_what_keeps_the_workload_from_its_recommendations(
    change: dict[str, Any], reason: str, text: str
) -> None:
    decision = decided(**change)
    assert ready(decision) == (str(reason in AS_IT_SHOULD_BE), reason)
    assert text in message(decision)


@pytest.mark.parametrize("change", NO_OBSTACLES.values(), ids=NO_OBSTACLES)
def test_it_is_reconciled_where_nothing_keeps_it_from_that(change: dict[str, Any]) -> None:
    assert ready(decided(**change)) == ("True", "Reconciled")


def became_ready(name: str, when: str) -> Any:
    entry = {"type": "Ready", "status": "True", "lastTransitionTime": when}
    return build.pod(name, change={"status": {"conditions": [entry]}})


@pytest.mark.parametrize(("seconds", "reason"), [(599, "Reconciled"), (600, "ProgressDeadlineExceeded")])
def test_a_status_that_lags_behind_pods_that_have_become_ready_is_no_stuck_rollout(
    seconds: int, reason: str
) -> None:
    """After hours at rest a Deployment is scaled out; its pods are seen ready before its status counts them."""
    behind = failing("Progressing", "True", "NewReplicaSetAvailable", "")
    behind["status"]["availableReplicas"] = 2
    since = stamp(at(seconds=-seconds))
    pods = [became_ready("web-1", LONG_AGO), became_ready("web-2", since), became_ready("web-3", LONG_AGO)]
    assert ready(decided(target=behind, pods=pods))[1] == reason


def test_pods_that_are_yet_to_be_created_are_no_stuck_rollout() -> None:
    behind = failing("Progressing", "True", "NewReplicaSetAvailable", "")
    behind["status"] |= {"replicas": 2, "availableReplicas": 2}
    for seconds, reason in ((599, "Reconciled"), (600, "ProgressDeadlineExceeded")):
        status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-seconds))}}}
        pods = [became_ready("web-1", LONG_AGO), became_ready("web-2", LONG_AGO)]
        assert ready(decided(target=behind, pods=pods, status=status))[1] == reason


def test_all_that_is_wrong_is_in_the_message() -> None:
    broken = failing("ReplicaFailure", "True", "FailedCreate", "exceeded quota")
    decision = decided(target=broken, pods=[unschedulable("web-1")], utilization=None)
    assert ready(decision) == ("False", "ReplicaFailure")
    for part in ("exceeded quota", "can't be scheduled", "NoMetrics"):
        assert part in message(decision)


def test_a_target_without_replicas_has_no_failures() -> None:
    one = build.objects(
        target=build.workload(0), horizontal=build.hpa(0, None), vertical=build.vpa(), pods=[]
    )
    assert ready(build.decided(one)) == ("True", "ScaledToZero")


def test_many_reasons_are_bounded_and_in_order() -> None:
    pods = [container(waiting(f"Reason{index}"), name=f"web-{index}") for index in range(9)]
    first, second = decided(pods=pods), decided(pods=pods[::-1])
    assert message(first) == message(second)
    assert message(first).count("can't start") == 5


def test_it_comes_back_when_the_clock_says_so() -> None:
    early = decided(pods=[unschedulable("web-1", stamp(at(seconds=-10)))])
    assert ready(early) == ("True", "Reconciled")
    assert early.recheck_after is not None
    assert early.recheck_after.total_seconds() == 20
    calming = decided(pods=[container(RUNNING, lastState=ended(stamp(at(minutes=-4))), restartCount=3)])
    assert calming.recheck_after is not None
    assert calming.recheck_after.total_seconds() == 360


def test_maxreplicas_is_named_where_the_hpa_asks_for_more() -> None:
    limited = {
        "status": {
            "conditions": [
                {"type": "ScalingActive", "status": "True"},
                {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"},
            ]
        }
    }
    seen = build.objects(
        build.hvpa({"replicas": 10}), build.workload(10), build.hpa(10, 90, limited, 10), build.vpa(TARGETS)
    )
    decision = build.decided(seen)
    assert ready(decision) == ("True", "Saturated")
    assert "the HPA asks for more replicas than maxReplicas, 10" in message(decision)


def test_contested_says_who_and_what_helps() -> None:
    target = {
        "metadata": {
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
        }
    }
    last = stamp(at(seconds=-20))
    axes = {
        "horizontal": {
            "lastScaleTime": last,
            "appliedFrom": {"replicas": 5, "desired": 6, "weight": 50},
            "setBack": {"count": 1, "time": last},
        }
    }
    decision = decided(**MORE, target=target, status={"axes": axes})
    kinds = {one.type: one for one in decision.status.conditions}
    assert (kinds["Contested"].status, kinds["Contested"].reason) == ("True", "SetBack")
    expected = "kubectl keeps reverting replicas: remove spec.replicas from what it applies; retrying at "
    assert kinds["Contested"].message.startswith(expected + "2026-11-21T10:01:00")
    assert ready(decision) == ("False", "Contested")
    assert [one.reason for one in decision.events if one.type == "Warning"] == ["SetBack"]


# --- recommendations that are too old --------------------------------------------------------------------------------
def spoken(seconds: float, upper: str = "2147483649", **spec: Any) -> dict[str, Any]:
    """A VPA whose status was written so long ago."""
    entry = {"containerName": "app", "target": TARGETS["app"], "upperBound": {"memory": upper}}
    return {
        "metadata": {
            "creationTimestamp": stamp(at(days=-10)),
            "managedFields": [
                {"manager": "kubectl", "time": stamp(NOW)},
                {"manager": "recommender", "subresource": "status", "time": stamp(at(seconds=-seconds))},
            ],
        },
        "status": {"recommendation": {"containerRecommendations": [entry]}},
        "spec": spec,
    }


def without(part: str, field: str) -> dict[str, Any]:
    """One that is silent for long, and lacks a field."""
    silent = spoken(9999)
    return {**silent, part: {**silent[part], field: None}}


MOST: dict[str, Any] = {
    "resourcePolicy": {"containerPolicies": [{"containerName": "*", "maxAllowed": {"memory": "2Gi"}}]}
}


@pytest.mark.parametrize(
    ("vpa", "is_stale"),
    [
        pytest.param(spoken(180), True, id="three minutes without a word"),
        pytest.param(spoken(179), False, id="not quite"),
        pytest.param(spoken(9999, "1Gi"), False, id="the bound is the target: the recommender's minimum"),
        pytest.param(spoken(9999, **MOST), False, id="the bound is maxAllowed"),
        pytest.param(spoken(9999, "much"), False, id="a bound that can't be read"),
        pytest.param(spoken(9999, "2048M"), False, id="a bound that is rounded, and says so by its suffix"),
        pytest.param(spoken(9999, "2147483648"), False, id="a bound that is rounded to whole MiB"),
        pytest.param(spoken(9999, recommenders=[{"name": "mine"}]), False, id="another recommender"),
        pytest.param(
            build.merged(spoken(9999), {"metadata": {"creationTimestamp": "1990-01-01T00:00:00Z"}}),
            False,
            id="so old that its bounds hardly move",
        ),
        pytest.param(without("metadata", "creationTimestamp"), False, id="of unknown age"),
        pytest.param(
            without("status", "recommendation"),
            False,
            id="without a recommendation",
        ),
    ],
)
def test_a_recommendation_is_stale_once_its_recommender_is_silent(
    vpa: dict[str, Any], is_stale: bool
) -> None:
    decision = decided(vpa=vpa)
    active = build.condition(decision, "VpaActive")
    assert (active.reason == "RecommendationStale") is is_stale
    if is_stale:
        assert "was last updated at 2026-11-21T09:57:00Z" in active.message
        assert ready(decision) == ("False", "VpaInactive")


def test_it_is_looked_at_again_when_the_recommendation_would_be_stale() -> None:
    decision = decided(vpa=spoken(100))
    assert decision.recheck_after is not None
    assert decision.recheck_after.total_seconds() == 80


def test_a_slower_recommender_has_more_time() -> None:
    seen = build.objects(
        horizontal=build.hpa(), vertical=build.vpa(TARGETS, spoken(800)), target=build.workload(3)
    )
    period = Settings().vpa_period * 5
    active = build.condition(build.decided(seen, settings=Settings(vpa_period=period)), "VpaActive")
    assert active.reason == "Recommending"


def test_a_target_without_replicas_gives_its_recommender_nothing_to_see() -> None:
    seen = build.objects(
        target=build.workload(0),
        horizontal=build.hpa(0, None),
        vertical=build.vpa(TARGETS, spoken(9999)),
        pods=[],
    )
    active = build.condition(build.decided(seen), "VpaActive")
    assert active.reason == "Recommending"


def test_recommend_names_apart_what_is_recommended_and_what_apply_would_hold_back() -> None:
    targets = {"app": {"cpu": "1112m", "memory": "1Gi"}}
    off = {"weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    decision = decided(spec={"mode": "Recommend", **off}, targets=targets)
    best = decision.status.recommended
    assert best is not None
    assert best.containers[0].requests["cpu"] == "1112m"
    assert ready(decision) == ("True", "Recommend")
    before_gates = (
        "mode Recommend: nothing is changed; status.recommended is what is recommended before gates"
    )
    first = f"{before_gates}; in mode Apply, "
    held = "app cpu 1 -> 1112m held by MinChange until "
    assert message(decision).startswith(f"{first}gates would now hold back {held}")
    just_right = decided(spec={"mode": "Recommend"})
    assert message(just_right) == f"{first}gates would now hold back nothing of it"
