"""More CPU for the start of a pod: `hvpa.core.actuation.startup`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders.build import (
    NOW,
    at,
    condition,
    container,
    decided,
    hvpa,
    merged,
    objects,
    pod,
    scalable,
    stamp,
    vpa,
    workload,
)
from builders.build import hpa as build_hpa
from hvpa.api.objects.read_models import Pod, PodCondition, PodStatus
from hvpa.core.model import Decision, LargestNode, RefusedResize
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
HAD: Final = {"boosts": [{"name": "app", "requests": {"cpu": "3"}}]}
"""The status, if pods of 1 core have or had 3 for their start."""


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


def decided_for(
    pods: Sequence[Pod],
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    template: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where the pods have the template's size, which is the usual state of a new Hvpa."""
    usual = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]}
    own = hvpa({**usual, **(spec or {})}, merged(size_status(len(pods), {}), status or {}))
    target = workload(len(pods), containers=[{**container(requests=REQUESTS), **(template or {})}])
    recommended = rest.pop("vertical", None) or vpa({"app": REQUESTS})
    return decided(objects(own, target, None, recommended, pods, **rest))


def test_a_boost_ends_although_the_spec_has_none_any_more() -> None:
    """As a user removes it while a pod starts; the status names the container."""
    (record,) = boosted([starting()]).status.boosts
    assert (record.name, record.requests) == ("app", {"cpu": "3"})
    over = decided_for([starting()], {"startupBoost": []}, HAD)
    assert (resized(over), over.status.boosts) == ({"web-1": DOWN}, (record,))
    gone = decided_for([starting(requests=REQUESTS)], {"startupBoost": []}, HAD)
    assert (gone.resizes, gone.status.boosts) == ((), ())


@pytest.mark.parametrize("change", [{"cpu": {"factor": 4}}, {"cpu": {"value": "500m"}}])
def test_a_boost_ends_although_the_spec_has_another_by_then(change: Mapping[str, Any]) -> None:
    pod = starting(ready=True, changed=0)
    outcome = decided_for([pod], {"startupBoost": [{**BOOST, **change}]}, HAD)
    assert resized(outcome) == {"web-1": DOWN}


def test_a_boost_ends_at_the_size_of_an_edited_template() -> None:
    edited = {"resources": {"requests": {"cpu": "1200m", "memory": "1Gi"}}}
    outcome = decided_for([starting(ready=True, changed=0)], status=HAD, template=edited)
    assert resized(outcome) == {"web-1": {"requests": {"cpu": "1200m"}}}


def test_a_boosted_limit_ends_too() -> None:
    limits = {"resources": {"requests": dict(REQUESTS), "limits": {"cpu": "2"}}}
    pod = starting(limits={"cpu": "6"}, ready=True, changed=0)
    expected = {"web-1": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
    assert resized(decided_for([pod], template=limits)) == expected


@pytest.mark.parametrize("spec", [{"updateStrategy": {"type": "Rollout"}, "startupBoost": []}, {}])
def test_a_boost_ends_although_pods_are_replaced_now(spec: Mapping[str, Any]) -> None:
    replacing = {"replacing": {"since": stamp(at(minutes=-1)), "message": "no room"}, **HAD}
    strategy = {"updateStrategy": {"type": "InPlaceOrRollout"}}
    outcome = decided_for([starting()], {**strategy, **spec}, replacing)
    assert resized(outcome) == {"web-1": DOWN}
    assert [record.name for record in outcome.status.boosts] == ["app"]
    over = decided_for([starting(requests=REQUESTS)], {**strategy, **spec}, replacing)
    assert over.resizes == ()


def test_the_end_of_a_boost_is_tried_again_although_pods_are_replaced_now() -> None:
    body = {"metadata": {"uid": "web-1"}, "spec": {"containers": [{"name": "app", "resources": DOWN}]}}
    refused = (RefusedResize("web-1", body, "forbidden", NOW, of_start=True),)
    spec = {"updateStrategy": {"type": "Rollout"}, "startupBoost": []}
    outcome = decided_for([starting(seconds=9000)], spec, HAD, refused_resizes=refused)
    assert (outcome.resizes, [record.name for record in outcome.status.boosts]) == ((), ["app"])
    assert resized(decided_for([starting(seconds=9000)], spec, HAD)) == {"web-1": DOWN}


@pytest.mark.parametrize("seconds", [300, 3600])
def test_a_size_that_is_lowered_is_no_boost(seconds: float) -> None:
    """Two cores were decided before; no boost has two cores."""
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    old = starting(requests={"cpu": "2", "memory": "1Gi"}, seconds=seconds, ready=True)
    assert resized(boosted([old], spec=held, since=at(seconds=-1))) == {}
    assert resized(boosted([old], since=at(seconds=-1))) == {"web-1": DOWN}


def test_pods_of_an_older_template_keep_their_size() -> None:
    older = starting(requests={"cpu": "2", "memory": "1Gi"}, seconds=300, ready=True)
    assert decided_for([older]).resizes == ()


def test_an_old_pod_with_a_size_like_a_boost_keeps_its_gates() -> None:
    """Three cores were decided before, and now one, of which the boost is three."""
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    old = starting(seconds=3600, ready=True)
    assert resized(boosted([old], spec=held, since=at(seconds=-1))) == {}


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


def test_a_pod_with_resources_of_its_own_has_no_boost() -> None:
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(1, {}),
    )
    target = workload(
        1,
        containers=[container(requests=REQUESTS)],
        change={"spec": {"template": {"spec": {"resources": {"requests": {"cpu": "2"}}}}}},
    )
    outcome = decided(objects(own, target, None, vpa({"app": REQUESTS}), [starting(requests=REQUESTS)]))
    assert outcome.resizes == ()
    assert "the pod template has CPU of its own" in actuation(outcome).message


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


def test_a_boost_never_becomes_the_size_before_a_size_that_no_pod_can_have() -> None:
    large = {"requests": {"cpu": "40", "memory": "1Gi"}}
    refused = resize_condition("Pending", "Infeasible", minutes=1)
    pods = [
        starting(
            "web-1", large["requests"], 200, has={"requests": BOOSTED}, ready=True, conditions=[refused]
        ),
        running("web-2", large["requests"], {"requests": REQUESTS}, conditions=[refused]),
    ]
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(2, {"app": large}, at(minutes=-10)),
    )
    target = workload(2, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(own, target, None, vpa({"app": large["requests"]}), pods))
    assert outcome.status.desired is not None
    assert outcome.status.desired.containers[0].requests["cpu"] == "1"


def test_new_pods_have_no_boost_that_nobody_would_end() -> None:
    entry = ((KEY, "web; app 3: 1Gi:"),)
    for mode in ("Recommend", "Paused"):
        outcome = boosted([running()], spec={"mode": mode}, creation_sizes=entry)
        assert outcome.creation_sizes == {KEY: "web; app 1: 1Gi:"}
        other = boosted([running()], spec={"mode": mode}, creation_sizes=((KEY, "web; app 7: 1Gi:"),))
        assert other.creation_sizes == {}


@pytest.mark.parametrize("mode", ["Recommend", "Paused"])
@pytest.mark.parametrize("boost", [[], [{**BOOST, "cpu": {"factor": 4}}]])
@pytest.mark.parametrize(
    ("size", "entry", "usual"),
    [
        ({"app": SIZE}, "web; app 3: 1Gi:; side 3: :", "web; app 1: 1Gi:; side 3: :"),
        ({}, "web; app 3: 1Gi:", "web; app : 1Gi:"),
        ({}, "web; app 3: :; side 1: :", "web; side 1: :"),
        ({}, "web; app 3: :", None),
        ({}, "web; ", ...),
    ],
)
def test_an_edit_of_mode_and_boost_at_once_leaves_no_boost_to_new_pods(
    mode: str, boost: Sequence[Any], size: Mapping[str, Any], entry: str, usual: Any
) -> None:
    """Nobody would end the boosts of these pods. The boost stays known, so that pods that have it by then lose it."""
    spec = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "mode": mode}
    own = hvpa({**spec, "startupBoost": boost}, merged(size_status(1, size), HAD))
    target = workload(1, containers=[container(requests=REQUESTS)])
    inputs = objects(own, target, None, vpa({"app": REQUESTS}), [running()], creation_sizes=((KEY, entry),))
    outcome = decided(inputs)
    assert outcome.creation_sizes == ({} if usual is ... else {KEY: usual})
    recorded = [boost.requests["cpu"] for boost in outcome.status.boosts]
    assert ("3" in recorded) == ("app 3:" in entry)


def test_without_a_workload_no_entry_of_new_pods_changes() -> None:
    own = hvpa({"mode": "Paused"}, HAD)
    entries = ((KEY, "web; app 3: 1Gi:"),)
    outcome = decided(replace(objects(own, creation_sizes=entries), workload=None))
    assert outcome.creation_sizes == {}


@pytest.mark.parametrize("runs", [5, 34])
def test_a_boost_ends_although_containers_began_late(runs: float) -> None:
    """The image was pulled for 15 minutes, and a size was decided meanwhile."""
    held = {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}
    late = starting(seconds=900 + runs, runs=runs, ready=True, changed=0)
    outcome = boosted([late], spec=held, since=at(seconds=-120))
    assert resized(outcome) == {"web-1": DOWN}


def _waiting(kind: str, requests: Mapping[str, str], seconds: float, *, ready: bool, has: str = "3") -> Pod:
    """A pod with 1 GiB that waits for 2 GiB."""
    actual = {"requests": {"cpu": has, "memory": "1Gi"}}
    pending = [resize_condition("Pending", kind, seconds=seconds - 1)]
    return starting("web-1", requests, seconds, has=actual, ready=ready, conditions=pending)


@pytest.mark.parametrize("seconds", [200, 90000])
@pytest.mark.parametrize("kind", ["Deferred", "Infeasible"])
@pytest.mark.parametrize(
    "spec", [{}, {"updateStrategy": {"type": "Rollout"}, "startupBoost": []}, {"startupBoost": []}]
)
def test_a_boost_ends_although_memory_waits(kind: str, seconds: float, spec: Mapping[str, Any]) -> None:
    """The kubelet allocates a resize as a whole, so the memory is set back until the container has its usual CPU."""
    size = {"requests": {"cpu": "1", "memory": "2Gi"}}
    usual = {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]}
    own = hvpa({**usual, **spec}, merged(size_status(1, {"app": size}), HAD))
    target = workload(1, containers=[container(requests=REQUESTS)])

    def outcome_for(pod: Pod) -> Decision:
        return decided(objects(own, target, None, vpa({"app": size["requests"]}), [pod]))

    outcome = outcome_for(_waiting(kind, size["requests"], seconds, ready=True))
    assert resized(outcome) == {"web-1": {"requests": {"memory": "1Gi"}}}
    assert [boost.requests for boost in outcome.status.boosts] == [{"cpu": "3"}]
    answering = starting("web-1", REQUESTS, seconds, has={"requests": BOOSTED}, ready=True)
    assert resized(outcome_for(answering)) == {}


def test_pods_of_an_older_template_may_lack_the_container() -> None:
    own = hvpa(
        {
            "updateStrategy": {"type": "InPlace"},
            "hpa": {"deploy": False},
            "startupBoost": [{**BOOST, "container": "side"}],
        },
        size_status(1, {"app": SIZE}),
    )
    target = workload(1, containers=[container(requests=REQUESTS), container("side", requests=REQUESTS)])
    pods = [_waiting("Deferred", {"cpu": "1", "memory": "2Gi"}, 20, ready=False, has="1")]
    outcome = decided(objects(own, target, None, vpa({"app": REQUESTS}), pods))
    assert resized(outcome) == {"web-1": {"requests": {"memory": "1Gi"}}}


def test_a_start_keeps_its_boost_while_memory_waits() -> None:
    size = {"requests": {"cpu": "1", "memory": "2Gi"}}
    pods = [_waiting("Deferred", {"cpu": "3", "memory": "2Gi"}, 20, ready=False)]
    outcome = boosted(pods, size=size)
    assert resized(outcome) == {}
    assert "no startup boost" not in actuation(outcome).message


@pytest.mark.parametrize("seconds", [500, 800, 90000])
def test_memory_that_waits_makes_no_boost_a_size(seconds: float) -> None:
    size = {"requests": {"cpu": "2", "memory": "4Gi"}}
    pods = [_waiting("Deferred", size["requests"], seconds, ready=True, has="6")]
    spec = {
        "updateStrategy": {"type": "InPlace"},
        "blend": "Additive",
        "hpa": {"template": {"spec": {"maxReplicas": 20}}},
        "startupBoost": [BOOST],
    }
    status = merged(
        size_status(1, {"app": size}, at(hours=-3)), {"boosts": [{"name": "app", "requests": {"cpu": "6"}}]}
    )
    in_charge = build_hpa(1, change={"spec": {"maxReplicas": 20}})
    target = workload(1, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(hvpa(spec, status), target, in_charge, vpa({"app": size["requests"]}), pods))
    assert outcome.status.rolled_back is None
    assert outcome.status.desired is not None
    assert outcome.status.desired.containers[0].requests == {"cpu": "2", "memory": "4Gi"}


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


# --- capacity of nobody ----------------------------------------------------------------------------------------------
def test_other_containers_count_as_they_are() -> None:
    both = [container(requests=BOOSTED), container("side", requests={"cpu": "100m", "memory": "1Gi"})]
    template = [container(requests=REQUESTS), both[1]]
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(1, {}),
    )
    young = pod("web-1", containers=both, change={"status": {"startTime": stamp(at(seconds=-9))}})
    seen = scalable(objects(own, workload(1, containers=template), None, vpa({"app": REQUESTS}), [young]))
    assert (seen.pods.boosted, seen.pods.unlike) == ((Fraction(31, 11), Fraction(31, 11)), {})


def test_decisions_see_pods_without_their_boosts() -> None:
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(3, {"app": SIZE}),
    )
    pods = [starting(), starting("web-2", ready=True, changed=0), running("web-3")]
    inputs = objects(
        own, workload(3, containers=[container(requests=REQUESTS)]), None, vpa({"app": REQUESTS}), pods
    )
    observation = scalable(inputs)
    assert (observation.pods.boosted, observation.pods.unlike) == ((Fraction(7, 3), Fraction(2)), {})
    assert [pod.spec.containers[0].resources.requests["cpu"] for pod in observation.resizable] == [
        "3",
        "3",
        "1",
    ]
    without = scalable(replace(inputs, pods=(running("web-3"),)))
    assert without.pods.boosted is None


def scaled(
    asked: int,
    pods: Sequence[Pod],
    blend: str = "Additive",
    metric: Mapping[str, Any] | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
) -> int:
    """How many replicas 4 become where the HPA asks for so many. Its target is 50 percent of the CPU."""
    target = metric or {"type": "Utilization", "averageUtilization": 50}
    kind, field = ("External", "external") if metric else ("Resource", "resource")
    name = {"metric": {"name": "queue"}} if metric else {"name": "cpu"}
    current = {"averageValue": "100"} if metric else {"averageUtilization": 80, "averageValue": "800m"}
    if asked < 4:
        current = {"averageUtilization": 20, "averageValue": "200m"}
    measured = build_hpa(
        asked,
        change={
            "spec": {"maxReplicas": 20, "metrics": [{"type": kind, field: {**name, "target": target}}]},
            "status": {
                "currentReplicas": 4,
                "currentMetrics": [{"type": kind, field: {**name, "current": current}}],
                "conditions": list(conditions),
            },
        },
    )
    spec = {
        "updateStrategy": {"type": "InPlace"},
        "blend": blend,
        "hpa": {"template": {"spec": {"maxReplicas": 20}}},
        "startupBoost": [{**BOOST, "after": "5m", "atMost": "10m"}],
        "weightBasedScalingIntervals": [{"vpaWeight": 0}],
    }
    own = hvpa(spec, size_status(4, {"app": SIZE}, at(hours=-1)))
    present = workload(4, containers=[container(requests=REQUESTS)])
    outcome = decided(objects(own, present, measured, vpa({"app": REQUESTS}), pods))
    assert outcome.replicas is not None
    return outcome.replicas.target


def four(size: Mapping[str, str], ready: bool) -> list[Pod]:
    """Three pods of one core, and one of this size that started a minute ago."""
    young = starting("new-1", size, 60, ready=ready, changed=45 if ready else None)
    return [*[running(f"web-{number}") for number in range(3)], young]


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
def test_replicas_grow_as_without_a_boost(blend: str) -> None:
    """Three pods use 80 percent, and one starts. The HPA divides by 6 cores instead of 4: it asks for 4, not 5."""
    assert scaled(5, four(REQUESTS, ready=False), blend) == 5
    assert scaled(4, four(BOOSTED, ready=False), blend) == 5


def test_a_boost_changes_nothing_beyond_the_hpas_behavior_or_for_other_metrics() -> None:
    limited = {"type": "ScalingLimited", "status": "True", "reason": "ScaleUpLimit", "message": ""}
    assert scaled(4, four(BOOSTED, ready=False), conditions=[limited]) == 4
    queue = {"type": "AverageValue", "averageValue": "80"}
    assert scaled(5, four(BOOSTED, ready=False), metric=queue) == scaled(
        5, four(REQUESTS, ready=False), metric=queue
    )


def test_a_boost_removes_no_replicas() -> None:
    """The HPA divides usage by 6 cores instead of 4."""
    assert scaled(2, four(REQUESTS, ready=True)) == 2
    assert scaled(2, four(BOOSTED, ready=True)) == 3


def test_a_pod_that_has_been_larger_for_long_counts_as_it_is() -> None:
    own = hvpa(
        {"updateStrategy": {"type": "InPlace"}, "hpa": {"deploy": False}, "startupBoost": [BOOST]},
        size_status(1, {"app": SIZE}),
    )
    target = workload(1, containers=[container(requests=REQUESTS)])
    inputs = objects(
        own, target, None, vpa({"app": REQUESTS}), [starting(seconds=3600, ready=True, changed=600)]
    )
    assert scalable(inputs).pods.boosted is None


def test_a_pod_in_its_start_follows_another_size() -> None:
    smaller = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    assert resized(boosted([starting()], size=smaller)) == {"web-1": {"requests": {"cpu": "1500m"}}}


def test_an_end_that_is_refused_stays_visible() -> None:
    body = {"metadata": {"uid": "web-1"}, "spec": {"containers": [{"name": "app", "resources": DOWN}]}}
    refused = RefusedResize("web-1", body, "a webhook says no", NOW, of_start=True)
    outcome = decided_for([starting(ready=True, changed=0)], refused_resizes=(refused,))
    assert (outcome.resizes, actuation(outcome).resized, actuation(outcome).infeasible) == ((), "0/1", 1)
    assert condition(outcome, "Ready").reason == "PodsNotResized"


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
