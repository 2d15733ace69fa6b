"""More CPU for the start of a pod: `hvpa.core.actuation.startup`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs

from builders.build import (
    NOW,
    at,
    container,
    decided,
    hvpa,
    merged,
    objects,
    pod,
    stamp,
    vpa,
    workload,
)
from hvpa.api.objects.read_models import Pod, PodCondition, PodStatus
from hvpa.core.model import LargestNode, RefusedResize
from tests.unit.core.actuation.sized_pods import (
    REQUESTS,
    RESTARTS,
    actuation,
    resize_condition,
    resized,
    running,
    size_status,
)
from tests.unit.core.actuation.starting_pods import (
    BOOST,
    BOOSTED,
    DOWN,
    KEY,
    SIZE,
    UP,
    boosted,
    decided_for,
    starting,
)


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


@pytest.mark.parametrize(
    ("boost", "pod"),
    [
        ({}, starting(requests=REQUESTS, seconds=90, changed=10)),
        ({}, starting(requests=REQUESTS, seconds=3600, changed=10)),
        ({}, starting(requests=REQUESTS, seconds=90, runs=5, changed=10, status={"restartCount": 1})),
        ({"atMost": "24h"}, starting(requests=REQUESTS, seconds=7200, changed=10)),
        (
            {"until": "Started"},
            starting(requests=REQUESTS, seconds=90, changed=10, status={"started": False, "restartCount": 1}),
        ),
        ({}, starting(requests=REQUESTS, seconds=3600, runs=5, status={"restartCount": 2, "started": False})),
    ],
)
def test_a_pod_that_has_been_ready_gets_no_second_boost(boost: Mapping[str, Any], pod: Pod) -> None:
    assert resized(boosted([pod], boost)) == {}


@pytest.mark.parametrize("ready", [True, False])
def test_a_blip_does_not_interrupt_a_boost_that_lasts_beyond_readiness(ready: bool) -> None:
    assert resized(boosted([starting(seconds=90, ready=ready, changed=20)], {"after": "1m"})) == {}


def test_a_clock_ahead_gives_no_boost() -> None:
    assert resized(boosted([starting(seconds=-3600)])) == {"web-1": DOWN}


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


def test_pods_of_an_older_template_keep_their_size() -> None:
    older = starting(requests={"cpu": "2", "memory": "1Gi"}, seconds=300, ready=True)
    assert decided_for([older]).resizes == ()


def test_a_boost_fits_the_largest_node() -> None:
    node = LargestNode({"cpu": 2500, "memory": 2**34})
    outcome = decided_for([starting(requests=REQUESTS)], largest_node=node, creation_sizes=())
    assert resized(outcome) == {"web-1": {"requests": {"cpu": "2500m"}}}
    assert outcome.creation_sizes == {KEY: "web; app 2500m: :"}


def test_a_limit_of_others_bounds_a_boost() -> None:
    """The template has no limit; a LimitRange gave 2 cores."""
    pod = starting(requests=REQUESTS, limits={"cpu": "2"})
    assert resized(decided_for([pod])) == {"web-1": {"requests": {"cpu": "1999m"}}}
    assert decided_for([pod], creation_sizes=()).creation_sizes == {KEY: "web; app 1999m: :"}


def test_the_begin_of_a_boost_carries_nothing_else() -> None:
    """Memory waits for its window, and follows in a resize of its own."""
    held = {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    larger = {"requests": {"cpu": "1", "memory": "4Gi"}}
    pod = starting(requests=REQUESTS)
    assert resized(boosted([pod], size=larger, spec=held, since=at(seconds=-1))) == {"web-1": UP}
    has_it = boosted([starting()], size=larger, spec=held, since=at(seconds=-1))
    assert has_it.resizes == ()
    assert resized(boosted([starting()], size=larger)) == {"web-1": {"requests": {"memory": "4Gi"}}}


def test_each_container_has_its_own_start() -> None:
    spec = {"startupBoost": [BOOST, {"container": "side", "cpu": {"factor": 2}, "atMost": "1h"}]}
    both = [container(requests=REQUESTS), container("side", requests={"cpu": "100m", "memory": "1Gi"})]
    own = hvpa({"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, **spec}, size_status(1, {}))
    began = stamp(at(minutes=-5))
    status = {
        "startTime": began,
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": began}],
    }
    boosts = [container(requests=BOOSTED), container("side", requests={"cpu": "200m", "memory": "1Gi"})]
    old = pod("web-1", containers=boosts, change={"status": status})
    outcome = decided(objects(own, workload(1, containers=both), None, vpa({"app": REQUESTS}), [old]))
    assert resized(outcome) == {"web-1": DOWN}


def test_a_canary_in_its_start_can_fail() -> None:
    killed = starting(
        status={"lastState": {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(at(seconds=-2))}}}
    )
    run = {"pods": ["web-1"], "previous": [{"name": "app", "requests": {"cpu": "2", "memory": "1Gi"}}]}
    own = hvpa(
        {
            "updateStrategy": {"type": "InPlace", "canary": {}},
            "hpa": {"deploy": False},
            "startupBoost": [BOOST],
        },
        size_status(2, {"app": SIZE}, at(minutes=-1), canary=run),
    )
    outcome = decided(objects(own, workload(2), None, vpa({"app": REQUESTS}), [killed, running("web-2")]))
    assert outcome.status.rolled_back is not None
    assert "ran out of memory" in outcome.status.rolled_back.message


def test_all_boosts_and_sidecars_fit_the_largest_node() -> None:
    """4 cores: 1 is the sidecar's, 2 are requested, 1 is left."""
    sidecar = {**container("mesh", requests={"cpu": "1"}), "restartPolicy": "Always"}
    own = hvpa(
        {
            "updateStrategy": {"type": "InPlace"},
            "hpa": {"deploy": False},
            "startupBoost": [BOOST, {**BOOST, "container": "side"}],
        },
        size_status(1, {}),
    )
    containers = [container(requests=REQUESTS), container("side", requests={"cpu": "1"})]
    target, template = (
        workload(1, containers=containers),
        pod("x", change={"spec": {"initContainers": [sidecar]}}),
    )
    inner = structs.replace(target.spec.template.spec, init_containers=template.spec.init_containers)
    target = structs.replace(
        target,
        spec=structs.replace(target.spec, template=structs.replace(target.spec.template, spec=inner)),
    )
    node = LargestNode({"cpu": 4000})
    inputs = objects(
        own, target, None, vpa({"app": REQUESTS}), [running()], creation_sizes=(), largest_node=node
    )
    assert decided(inputs).creation_sizes == {KEY: "web; app 2: :"}


def test_pods_that_replace_others_have_no_boost() -> None:
    stuck = running(
        "web-1",
        {"cpu": "2", "memory": "1Gi"},
        {"requests": REQUESTS},
        conditions=[resize_condition("Pending", "Infeasible", minutes=1)],
    )
    size = {"requests": {"cpu": "2", "memory": "1Gi"}}
    entry = ((KEY, "web; app 6: 1Gi:"),)
    outcome = boosted([stuck], size=size, strategy={"type": "InPlaceOrRollout"}, creation_sizes=entry)
    assert outcome.creation_sizes in ({KEY: "web; app 2: 1Gi:"}, {KEY: None})


def test_a_refused_boost_says_nothing_about_the_size() -> None:
    refused = (RefusedResize("web-1", {}, "exceeded quota", NOW, of_start=True),)
    late = running(
        "web-1",
        {"cpu": "2", "memory": "1Gi"},
        {"requests": REQUESTS},
        conditions=[resize_condition("Pending", "Deferred", hours=1)],
    )
    size = {"requests": {"cpu": "2", "memory": "1Gi"}}
    outcome = boosted([late], size=size, refused_resizes=refused, creation_sizes=((KEY, "web; app 6: 1Gi:"),))
    assert KEY not in outcome.creation_sizes or outcome.creation_sizes[KEY] is not None


def test_a_pod_in_its_start_follows_another_size() -> None:
    smaller = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    assert resized(boosted([starting()], size=smaller)) == {"web-1": {"requests": {"cpu": "1500m"}}}


def test_a_pod_without_conditions_starts() -> None:
    bare = starting(requests=REQUESTS)
    bare = structs.replace(bare, status=structs.replace(bare.status, conditions=[]))
    assert resized(boosted([bare])) == {"web-1": UP}


@pytest.mark.parametrize("held", [{"updateMode": "Off"}, {"updateMode": "MaintenanceWindow"}])
def test_nothing_holds_a_boost_or_its_end(held: Mapping[str, Any]) -> None:
    spec = {"vpa": {way: {"updatePolicy": held} for way in ("scaleUp", "scaleDown")}}
    begins, ends = starting(requests=REQUESTS), starting("web-2", ready=True, changed=0)
    outcome = boosted([begins, ends], spec=spec, since=at(seconds=-1))
    assert resized(outcome) == {"web-1": UP, "web-2": DOWN}


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
            "container app: a boost to 800m CPU is not more than its usual request, 1 CPU",
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
    assert "new pods are refused, so they are created without it" in actuation(outcome).message
    without = decided(objects(own, workload(2), None, vpa({"app": REQUESTS}), [running()], creation_sizes=()))
    assert without.creation_sizes == {KEY: "web; app 3: 1Gi:"}
