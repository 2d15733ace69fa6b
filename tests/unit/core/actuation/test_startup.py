"""More CPU for the start of a pod: `hvpa.core.actuation.startup`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders.build import NOW, at, container, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.api.objects.read_models import Pod, PodCondition, PodStatus
from hvpa.core.model import Decision, RefusedResize
from tests.unit.core.actuation.sized_pods import (
    REQUESTS,
    RESTARTS,
    actuation,
    decision,
    resize_condition,
    resized,
    running,
    size_status,
)

SIZE: Final = {"requests": {"cpu": "1", "memory": "1Gi"}}
BOOSTED: Final = {"cpu": "3", "memory": "1Gi"}
BOOST: Final = {"container": "app", "cpu": {"factor": 3}}
UP: Final = {"requests": {"cpu": "3"}}
DOWN: Final = {"requests": {"cpu": "1"}}
KEY: Final = "Deployment.apps/web"


def starting(
    name: str = "web-1",
    requests: Mapping[str, str] = BOOSTED,
    seconds: float = 20,
    *,
    runs: float | None = None,
    ready: bool = False,
    changed: float | None = None,
    status: Mapping[str, Any] | None = None,
    **more: Any,
) -> Pod:
    """A pod that was created so many seconds ago. It `runs` for that long, and became ready, or not, `changed` seconds
    ago."""
    started = stamp(at(seconds=-seconds))
    since = stamp(at(seconds=-(seconds if changed is None else changed)))
    own = {"state": {"running": {"startedAt": stamp(at(seconds=-(seconds if runs is None else runs)))}}}
    change = {
        "metadata": {"creationTimestamp": started},
        "status": {
            "startTime": started,
            "conditions": [
                {"type": "Ready", "status": str(ready), "lastTransitionTime": since},
                *more.pop("conditions", ()),
            ],
        },
    }
    return running(name, requests, status=merged(own, status or {}), change=change, **more)


def boosted(
    pods: Sequence[Pod],
    boost: Mapping[str, Any] | None = None,
    size: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where pods get three times their CPU for their start."""
    spec = merged({"startupBoost": [merged(BOOST, boost or {})]}, rest.pop("spec", {}))
    since = rest.pop("since", at(hours=-1))
    return decision(pods, size or SIZE, spec=spec, since=since, **rest)


@pytest.mark.parametrize(
    ("boost", "pod", "change"),
    [
        ({}, starting(requests=REQUESTS), UP),
        ({}, starting(), None),
        ({}, starting(ready=True, changed=0), DOWN),
        ({"after": "30s"}, starting(ready=True, changed=10), None),
        ({"after": "30s"}, starting(ready=True, changed=30, seconds=60), DOWN),
        ({"after": "5m"}, starting(ready=True, changed=30, seconds=120), DOWN),
        ({}, starting(seconds=119), None),
        ({}, starting(seconds=120), DOWN),
        ({"atMost": "10s"}, starting(), DOWN),
        ({}, starting(seconds=600, runs=60), None),
        ({}, starting(seconds=600, runs=130), DOWN),
        ({"until": "Started"}, starting(status={"started": False}), None),
        ({"until": "Started"}, starting(status={"started": True}), DOWN),
        ({"until": "Started", "after": "30s"}, starting(status={"started": True}), None),
        ({"until": "Started", "after": "15s"}, starting(status={"started": True}, ready=True), DOWN),
        (
            {"cpu": {"factor": None, "value": "1500m"}},
            starting(requests=REQUESTS),
            {"requests": {"cpu": "1500m"}},
        ),
    ],
)
def test_a_pod_has_the_boost_until_it_has_started(
    boost: Mapping[str, Any], pod: Pod, change: Mapping[str, Any] | None
) -> None:
    assert resized(boosted([pod], boost)).get("web-1") == change


def test_a_pod_in_its_start_does_not_count_as_resized() -> None:
    outcome = boosted([starting(), running("web-2")])
    progress = actuation(outcome)
    assert (progress.resized, progress.waiting, progress.starting) == ("1/2", 1, 1)
    assert progress.message == "pod web-1: it starts with more CPU"
    assert outcome.recheck_after == dt.timedelta(seconds=100)


def test_a_pod_that_loses_readiness_or_restarts_later_gets_no_boost() -> None:
    lost = starting(requests=REQUESTS, seconds=90, changed=10)
    restarted = starting(
        requests=REQUESTS, seconds=3600, runs=5, status={"restartCount": 2, "started": False}
    )
    assert resized(boosted([lost, starting("web-2", REQUESTS, 3600, changed=10)])) == {}
    assert resized(boosted([restarted])) == {}


def test_restarts_do_not_make_the_boost_longer() -> None:
    often = {"restartCount": 3, "lastState": {"terminated": {"reason": "Error", "finishedAt": stamp(NOW)}}}
    assert resized(boosted([starting(seconds=100, runs=5, status=often)])) == {}
    assert resized(boosted([starting(seconds=121, runs=5, status=often)])) == {"web-1": DOWN}


def pending(*conditions: PodCondition) -> Pod:
    """A pod with the boost that has no node yet."""
    pod = starting()
    return structs.replace(pod, status=PodStatus(phase="Pending", conditions=list(conditions)))


def test_a_pod_that_no_node_has_room_for_loses_the_boost() -> None:
    unschedulable = PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
    assert resized(boosted([pending()])) == {}
    assert resized(boosted([pending(unschedulable)])) == {"web-1": DOWN}


def test_a_boost_without_room_is_taken_back_and_not_tried_again() -> None:
    deferred = starting(
        has={"requests": REQUESTS}, conditions=[resize_condition("Pending", "Deferred", seconds=1)]
    )
    outcome = boosted([deferred])
    assert resized(outcome) == {"web-1": DOWN}
    assert not actuation(outcome).deferred
    assert "no startup boost: pod web-1: the kubelet says Deferred" in actuation(outcome).message
    refused = outcome.resizes[0].refused
    assert [record.body["spec"] for record in refused] == [{"containers": [{"name": "app", "resources": UP}]}]
    again = boosted([starting(requests=REQUESTS)], refused_resizes=refused)
    assert again.resizes == ()
    assert actuation(again).resized == "1/1"


def test_a_boost_that_a_quota_refuses_is_left_out() -> None:
    body = {"metadata": {"uid": "web-1"}, "spec": {"containers": [{"name": "app", "resources": UP}]}}
    small = starting(requests={"cpu": "100m", "memory": "1Gi"})
    outcome = boosted([small], refused_resizes=(RefusedResize("web-1", body, "exceeded quota", NOW),))
    assert resized(outcome) == {"web-1": DOWN}
    assert actuation(outcome).message == "no startup boost: pod web-1: exceeded quota"
    assert actuation(outcome).infeasible == 0


def test_a_boost_ends_although_the_spec_has_none_any_more() -> None:
    """As a user removes it while a pod starts; the status has what the pod got."""
    status = boosted([starting()]).status
    assert status.actuation is not None
    assert [(had.name, had.requests) for had in status.actuation.boosts] == [("app", {"cpu": "3"})]
    own = hvpa({"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}}, size_status(1, {}))
    own = replace(own, status=own.status.model_copy(update={"actuation": status.actuation}))
    target = workload(1, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(own, target, None, vpa({"app": REQUESTS}), [starting()]))
    assert resized(outcome) == {"web-1": DOWN}
    assert actuation(outcome).boosts == status.actuation.boosts
    over = decided(objects(own, target, None, vpa({"app": REQUESTS}), [starting(requests=REQUESTS)]))
    assert (over.resizes, actuation(over).boosts) == ((), ())


def test_a_pod_in_its_start_follows_another_size() -> None:
    smaller = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    assert resized(boosted([starting()], size=smaller)) == {"web-1": {"requests": {"cpu": "1500m"}}}


@pytest.mark.parametrize("held", [{"updateMode": "Off"}, {"updateMode": "MaintenanceWindow"}])
def test_nothing_holds_a_boost_or_its_end(held: Mapping[str, Any]) -> None:
    spec = {"vpa": {way: {"updatePolicy": held} for way in ("scaleUp", "scaleDown")}}
    begins, ends = starting(requests=REQUESTS), starting("web-2", ready=True, changed=0)
    outcome = boosted([begins, ends], spec=spec, since=at(seconds=-1))
    assert resized(outcome) == {"web-1": UP, "web-2": DOWN}


def test_the_end_of_a_boost_comes_before_other_changes() -> None:
    pod = starting(requests={"cpu": "3", "memory": "3Gi"}, ready=True, changed=0)
    spec = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    assert resized(boosted([pod], spec=spec, since=at(seconds=-1))) == {"web-1": DOWN}


def test_a_limit_grows_in_proportion() -> None:
    limits = {"cpu": "1500m", "memory": "1Gi"}
    target = workload(1, containers=[container(requests=REQUESTS, limits=limits)])
    pod = starting(requests=REQUESTS, limits=limits)
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(1, {}),
    )
    outcome = decided(objects(own, target, None, vpa({"app": REQUESTS}), [pod]))
    assert resized(outcome) == {"web-1": {"requests": {"cpu": "3"}, "limits": {"cpu": "4500m"}}}
    only = [{"containerName": "app", "controlledValues": "RequestsOnly"}]
    vertical = {"template": {"spec": {"resourcePolicy": {"containerPolicies": only}}}}
    own = hvpa(
        {
            "updateStrategy": {"type": "InPlace"},
            "hpa": {"deploy": False},
            "vpa": vertical,
            "startupBoost": [BOOST],
        },
        size_status(1, {}),
    )
    outcome = decided(objects(own, target, None, vpa({"app": REQUESTS}), [pod]))
    assert resized(outcome) == {"web-1": {"requests": {"cpu": "1499m"}}}


@pytest.mark.parametrize(
    ("boost", "spec", "why"),
    [
        ({"container": "other"}, {}, "the pod template has no container other"),
        (
            {"cpu": {"factor": None, "value": "800m"}},
            {},
            "container app: a boost to 800m is not more than the 1 that it requests",
        ),
        ({}, {"resources": {}}, "container app: it requests no CPU"),
        (
            {},
            {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            "container app: a resize of its CPU restarts it",
        ),
    ],
)
def test_why_a_container_has_no_boost(boost: Mapping[str, Any], spec: Mapping[str, Any], why: str) -> None:
    template = {**container(requests=REQUESTS), **spec}
    own = hvpa(
        {
            "updateStrategy": {"type": "InPlace"},
            "hpa": {"deploy": False},
            "startupBoost": [merged(BOOST, boost)],
        },
        size_status(1, {}),
    )
    target = workload(1, containers=[template])
    outcome = decided(objects(own, target, None, vpa({"app": {}}), [running()]))
    assert outcome.resizes == ()
    assert actuation(outcome).message == f"no startup boost: {why}"


@pytest.mark.parametrize("policy", [None, RESTARTS])
def test_new_pods_are_created_with_the_boost(policy: Any) -> None:
    outcome = boosted([running()], creation_sizes=())
    assert outcome.creation_sizes == {KEY: "web; app 3: 1Gi:"}


def test_new_pods_have_no_boost_if_they_are_refused() -> None:
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": "exceeded quota",
    }
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(2, {"app": SIZE}, at(seconds=-5)),
    )
    missing = workload(2, change={"status": {"conditions": [failure]}})
    inputs = objects(own, missing, None, vpa({"app": REQUESTS}), [running()], creation_sizes=())
    outcome = decided(inputs)
    assert outcome.creation_sizes == {KEY: "web; app 1: 1Gi:"}
    assert "pods are missing, so new pods are created without it" in actuation(outcome).message
    without = decided(objects(own, workload(2), None, vpa({"app": REQUESTS}), [running()], creation_sizes=()))
    assert without.creation_sizes == {KEY: "web; app 3: 1Gi:"}


@given(
    seconds=st.integers(0, 400),
    runs=st.integers(0, 400),
    changed=st.integers(0, 400),
    ready=st.booleans(),
    restarts=st.integers(0, 3),
    until=st.sampled_from(["Ready", "Started"]),
)
def test_a_pod_never_has_the_boost_longer_than_allowed(
    seconds: int, runs: int, changed: int, ready: bool, restarts: int, until: str
) -> None:
    pod = starting(
        seconds=seconds,
        runs=min(runs, seconds),
        ready=ready,
        changed=changed,
        status={"restartCount": restarts},
    )
    outcome = boosted([pod], {"until": until})
    if min(runs, seconds) >= 120 or seconds >= 120 + 400:
        assert resized(outcome) == {"web-1": DOWN}
    else:
        assert resized(outcome) in ({}, {"web-1": DOWN})
