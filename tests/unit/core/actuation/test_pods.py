"""Resizes of running pods: `hvpa.core.actuation.pods`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.build import MIB, NOW, at, container, decided, hvpa, merged, objects, pod, stamp, vpa, workload
from hvpa.api.objects.read_models import Pod
from hvpa.core.actuation.pod import is_governed, qos_class, reported_since
from hvpa.core.model import Decision, MemoryUse, RefusedResize

OWNER = {"ownerReferences": [{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}]}
REQUESTS = {"cpu": "1", "memory": "1Gi"}
LARGER = {"cpu": "2", "memory": "2Gi"}
RESTARTS = [
    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
    {"resourceName": "memory", "restartPolicy": "RestartContainer"},
]


def running(
    name: str = "web-1",
    requests: Mapping[str, str] = REQUESTS,
    has: Mapping[str, Any] | None = None,
    limits: Mapping[str, str] | None = None,
    conditions: Sequence[Mapping[str, Any]] = (),
    ready: bool = True,
    change: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Pod:
    """A pod of the usual Deployment that `has` these resources (what its spec says, where that is left out); `more` is
    merged into its container."""
    spec = merged(container(requests=requests, limits=limits), more or {})
    found = spec["resources"] if has is None else has
    reported = [
        {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(at(hours=-1))},
        *conditions,
    ]
    status = {"containerStatuses": [{"name": "app", "resources": found}], "conditions": reported}
    document = {"metadata": {**OWNER, "generation": 2}, "status": status}
    return pod(name, containers=[spec], change=merged(document, change or {}))


def resize_condition(kind: str, reason: str = "", generation: int = 2, **age: float) -> dict[str, Any]:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": f"the kubelet says {reason or 'nothing'}",
        "lastTransitionTime": stamp(at(**{key: -value for key, value in age.items()})),
        "observedGeneration": generation,
    }


def decision(
    pods: Sequence[Pod],
    size: Mapping[str, Any] | None = None,
    strategy: Mapping[str, Any] | None = None,
    since: dt.datetime | None = None,
    spec: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Decision:
    """What is decided where `size` (requests and limits of `app`) was decided before, and the VPA wants no other."""
    wanted = size or {"requests": LARGER}
    desired = {
        "replicas": len(pods),
        "containers": [{"name": "app", **wanted}],
        "since": stamp(since or at(minutes=-1)),
        "generation": 1,
    }
    strategies = {"updateStrategy": {"type": "InPlace", **(strategy or {})}, "hpa": {"deploy": False}}
    decided_at = {"lastScaleTime": desired["since"], "lastScaleUpTime": desired["since"]}
    one = hvpa(merged(strategies, spec or {}), {"desired": desired, "axes": {"vertical": decided_at}})
    target = vpa({"app": wanted["requests"]})
    return decided(objects(one, workload(len(pods)), None, target, pods, **rest))


def resized(found: Decision) -> dict[str, Any]:
    """By pod what it is asked to have."""
    return {one.pod: one.body["spec"]["containers"][0]["resources"] for one in found.resizes}  # type: ignore[index]


def test_a_pod_of_another_size_is_asked_to_have_the_desired_one() -> None:
    found = decision([running("web-1"), running("web-2", LARGER)])
    assert [one.body for one in found.resizes] == [
        {
            "metadata": {"uid": "web-1"},
            "spec": {
                "containers": [{"name": "app", "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}]
            },
        }
    ]
    assert found.status.actuation is not None
    assert found.status.actuation.resized == "1/2"
    assert (found.status.actuation.waiting, found.status.actuation.pods) == (1, 2)
    assert found.workload_patch is None


def test_raises_come_first() -> None:
    smaller = running("web-1", {"cpu": "3", "memory": "3Gi"})
    assert list(resized(decision([smaller, running("web-2")]))) == ["web-2", "web-1"]


@pytest.mark.parametrize("mode", ["Recommend", "Paused"])
def test_no_pod_is_resized_unless_the_mode_is_apply(mode: str) -> None:
    found = decision([running()], spec={"mode": mode})
    assert not found.resizes
    assert found.status.desired is not None


@pytest.mark.parametrize(
    ("conditions", "has", "state", "message"),
    [
        ([], None, "resized", ""),
        ([], {"requests": REQUESTS}, "in_progress", ""),
        ([resize_condition("PodResizeInProgress", minutes=1)], {"requests": REQUESTS}, "in_progress", ""),
        (
            [resize_condition("PodResizePending", "Deferred", minutes=1)],
            {"requests": REQUESTS},
            "deferred",
            "pod web-1: the kubelet says Deferred",
        ),
        (
            [resize_condition("PodResizePending", "Infeasible", minutes=1)],
            {"requests": REQUESTS},
            "infeasible",
            "pod web-1: the kubelet says Infeasible",
        ),
        (  # of the spec before
            [resize_condition("PodResizePending", "Infeasible", generation=1)],
            {"requests": REQUESTS},
            "in_progress",
            "",
        ),
    ],
)
def test_where_a_pod_stands_that_was_asked(
    conditions: Sequence[Mapping[str, Any]], has: Mapping[str, Any] | None, state: str, message: str
) -> None:
    pods = [running(requests=LARGER, has=has, conditions=conditions)]
    found = decision(pods, strategy={"type": "InPlaceOrRollout"})
    assert found.status.actuation is not None
    if state != "resized":
        assert getattr(found.status.actuation, state) == 1
    assert found.status.actuation.resized == ("1/1" if state == "resized" else "0/1")
    assert found.status.actuation.message == message
    assert not found.resizes


@pytest.mark.parametrize(
    ("state", "conditions", "since"),
    [
        ("deferred", [resize_condition("PodResizePending", "Deferred", minutes=2)], at(minutes=-2)),
        ("in_progress", [resize_condition("PodResizeInProgress", minutes=9)], at(minutes=-9)),
        ("in_progress", [resize_condition("PodResizeInProgress", generation=1, minutes=9)], None),
        ("resized", [resize_condition("PodResizeInProgress", minutes=9)], None),
        ("deferred", [], None),
    ],
)
def test_since_when_a_pod_is_in_its_state_is_said_by_the_kubelet_of_its_present_spec(
    state: str, conditions: Sequence[Mapping[str, Any]], since: dt.datetime | None
) -> None:
    assert reported_since(running(conditions=conditions), state) == since


def ready_of(found: Decision) -> tuple[str, str]:
    (one,) = [one for one in found.status.conditions if one.type == "Ready"]
    return one.reason, one.message


def test_a_resize_that_takes_too_long_is_reported() -> None:
    asked = running(
        requests=LARGER, has={"requests": REQUESTS}, change={"status": {"startTime": stamp(at(hours=-2))}}
    )
    early = decision([asked], since=at(minutes=-4))
    assert early.recheck_after == dt.timedelta(minutes=1)
    assert ready_of(early)[0] != "PodsNotResized"
    late = decision([asked, running("web-2", LARGER, {"requests": REQUESTS})], since=at(minutes=-6))
    assert ready_of(late) == (
        "PodsNotResized",
        "pod web-1 (and 1 more pods): the kubelet has not answered",
    )


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        (running(requests={}, has={}), "a pod of QoS class BestEffort can't be resized"),
        (
            running(limits={"cpu": "2", "memory": "2Gi"}),
            "its QoS class would change from Burstable to Guaranteed, which is fixed for a pod's life",
        ),
    ],
)
def test_a_pod_keeps_its_qos_class(pods: Pod, why: str) -> None:
    size = {"requests": LARGER, "limits": LARGER} if pods.spec.containers[0].resources.limits else None
    found = decision([pods], size)
    assert not found.resizes
    assert found.status.actuation is not None
    assert found.status.actuation.infeasible == 1
    assert found.status.actuation.message == f"pod web-1: {why}"


def test_a_guaranteed_pod_stays_guaranteed() -> None:
    guaranteed = running(limits=REQUESTS)
    assert resized(decision([guaranteed], {"requests": LARGER, "limits": LARGER})) == {
        "web-1": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    }


def test_a_memory_limit_falls_by_a_fifth_at_a_time() -> None:
    """Of a Guaranteed pod the request goes with it; CPU falls at once."""
    small = {"requests": {"cpu": "500m", "memory": "500M"}, "limits": {"cpu": "500m", "memory": "500M"}}
    has: Mapping[str, str] = {"cpu": "1", "memory": "1G"}
    steps = []
    while True:
        found = resized(decision([running(requests=has, limits=has)], small))
        if not found:
            break
        has = {**has, **found["web-1"]["limits"]}
        steps.append(has["memory"])
    assert steps == ["800M", "640M", "512M", "500M"]
    assert has["cpu"] == "500m"


SMALL = {"requests": {"cpu": "1", "memory": "500M"}, "limits": {"cpu": "1", "memory": "500M"}}


@pytest.mark.parametrize(
    ("used", "limit"),
    [(0, "800M"), (400, "800M"), (700, "805M"), (869, "999350k"), (870, None), (2000, None)],
)
def test_a_memory_limit_stays_above_what_is_used_by_the_recommender_s_margin(
    used: int, limit: str | None
) -> None:
    """From 1000 MB to 500 MB, while so many MB are used."""
    large = {"cpu": "1", "memory": "1G"}
    use = MemoryUse(NOW, {("web-1", "app"): used * 10**6} if used else {})
    found = decision([running(requests={"cpu": "1", "memory": "500M"}, limits=large)], SMALL, memory_use=use)
    assert found.status.actuation is not None
    if limit is not None:
        assert resized(found) == {"web-1": {"limits": {"memory": limit}}}
        assert found.resizes[0].lowers_limit
        return
    assert (found.resizes, found.status.actuation.waiting) == ((), 1)
    told = f"container app uses {used if used < 1000 else 2}{'M' if used < 1000 else 'G'} of memory"
    assert found.status.actuation.message == f"pod web-1: {told}, too near to the limit that it is to have"
    assert found.recheck_after == dt.timedelta(minutes=1)


def test_only_what_lowers_a_memory_limit_is_said_to() -> None:
    assert not decision([running()]).resizes[0].lowers_limit
    more_cpu = {"requests": LARGER, "limits": {"cpu": "3", "memory": "4Gi"}}
    assert not decision([running(limits={"cpu": "4", "memory": "2Gi"})], more_cpu).resizes[0].lowers_limit


def test_the_next_step_down_waits_until_the_pod_has_the_last_one() -> None:
    small = {"requests": {"cpu": "1", "memory": "100M"}, "limits": {"cpu": "1", "memory": "500M"}}
    had = {"requests": {"cpu": "1", "memory": "100M"}, "limits": {"cpu": "1", "memory": "1G"}}
    asked = running(requests=had["requests"], limits={"cpu": "1", "memory": "800M"}, has=had)
    assert not decision([asked], small).resizes


def test_a_limit_that_nobody_scales_is_kept_and_raised_only_for_the_request() -> None:
    """A LimitRange gave the limit, the pod template has none."""
    given_limits = running(limits={"cpu": "1500m", "memory": "4Gi"})
    assert resized(decision([given_limits])) == {
        "web-1": {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": "2"}}
    }


def test_of_several_containers_only_those_that_differ_are_resized() -> None:
    """One that the desired size does not name keeps what it has, and the QoS class is of all of them."""
    both = running(change={"spec": {"containers": [container(), container("log", {"cpu": "100m"})]}})
    (asked,) = decision([both]).resizes
    assert [one["name"] for one in asked.body["spec"]["containers"]] == ["app"]  # type: ignore[index]
    untold = running("web-1", LARGER, change={"status": {"containerStatuses": []}})
    found = decision([untold])
    assert found.status.actuation is not None
    assert found.status.actuation.resized == "1/1"  # it starts with what its spec says


def test_a_limit_without_a_request_of_the_same_is_kept() -> None:
    cpu_only = {"requests": {"cpu": "2"}}
    one = running(requests={"cpu": "1"}, limits={"memory": "1Gi"})
    assert resized(decision([one], cpu_only)) == {"web-1": {"requests": {"cpu": "2"}}}
    assert resized(decision([running()], cpu_only)) == {"web-1": {"requests": {"cpu": "2"}}}


def test_containers_that_restart_are_limited_by_what_may_be_unavailable() -> None:
    restarting = {"resizePolicy": RESTARTS}
    pods = [running(f"web-{number}", more=restarting) for number in range(8)]
    assert list(resized(decision(pods))) == ["web-0", "web-1"]
    assert list(resized(decision(pods, strategy={"maxUnavailable": 1}))) == ["web-0"]
    under_way = running("web-0", LARGER, {"requests": REQUESTS}, more=restarting)
    assert list(resized(decision([under_way, *pods[1:]]))) == ["web-1"]
    down = running("web-0", ready=False, more=restarting)
    assert list(resized(decision([down, *pods[1:]], strategy={"maxUnavailable": 1}))) == ["web-0"]
    assert list(resized(decision(pods[:1]))) == ["web-0"]  # a single replica is resized


def test_a_resize_that_restarts_nothing_is_not_limited() -> None:
    cpu_only = {"requests": {"cpu": "2", "memory": "1Gi"}}
    pods = [running(f"web-{number}", more={"resizePolicy": RESTARTS}) for number in range(8)]
    assert len(resized(decision(pods, cpu_only))) == 8


def test_what_was_refused_is_asked_for_again_after_a_while_only() -> None:
    or_rollout = {"type": "InPlaceOrRollout"}
    first = decision([running()])
    (asked,) = first.resizes
    for count, minutes, waits in (
        (1, 0.5, True),
        (1, 1.5, False),
        (2, 1.5, True),
        (99, 59, True),
        (99, 61, False),
    ):
        refused = RefusedResize("web-1", asked.body, "no room", at(minutes=-minutes), count)
        found = decision([running()], strategy=or_rollout, refused_resizes=(refused,))
        assert (not found.resizes) == waits
        assert (ready_of(found) == ("PodsNotResized", "pod web-1: no room")) == waits
    other = RefusedResize("web-1", {}, "no room", NOW)
    assert decision([running()], refused_resizes=(other,)).resizes


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_pods_that_have_ended_do_not_count(phase: str) -> None:
    gone = running("web-2", change={"metadata": {"deletionTimestamp": stamp(NOW)}})
    ended = running("web-3", change={"status": {"phase": phase}})
    found = decision([running("web-1", LARGER), gone, ended])
    assert found.status.actuation is not None
    assert found.status.actuation.resized == "1/1"


@pytest.mark.parametrize(
    ("owners", "labels", "governed"),
    [
        ([{"kind": "Deployment", "name": "web", "uid": "w", "controller": True}], {}, True),
        (
            [{"kind": "ReplicaSet", "name": "web-5d", "uid": "r", "controller": True}],
            {"pod-template-hash": "5d"},
            True,
        ),
        (
            [{"kind": "ReplicaSet", "name": "web2-5d", "uid": "r", "controller": True}],
            {"pod-template-hash": "5d"},
            False,
        ),
        ([{"kind": "ReplicaSet", "name": "web-", "uid": "r", "controller": True}], {}, False),
        (
            [{"kind": "Job", "name": "web-5d", "uid": "j", "controller": True}],
            {"pod-template-hash": "5d"},
            False,
        ),
        ([{"kind": "Deployment", "name": "web", "uid": "w"}], {}, False),
        ([], {}, False),
    ],
)
def test_only_the_workloads_own_pods_are_resized(
    owners: Sequence[Mapping[str, Any]], labels: Mapping[str, str], governed: bool
) -> None:
    metadata = {"ownerReferences": owners, "labels": {"app": "web", **labels}}
    assert is_governed(pod(change={"metadata": metadata}), workload()) == governed


@pytest.mark.parametrize(
    ("requests", "limits", "whole", "expected"),
    [
        ({}, None, None, "BestEffort"),
        ({"cpu": "0"}, None, None, "BestEffort"),
        ({"cpu": "1"}, None, None, "Burstable"),
        ({"cpu": "1"}, {"cpu": "1"}, None, "Burstable"),
        (REQUESTS, REQUESTS, None, "Guaranteed"),
        ({}, REQUESTS, None, "Guaranteed"),
        (REQUESTS, {"cpu": "2", "memory": "1Gi"}, None, "Burstable"),
        (REQUESTS, REQUESTS, {"requests": {"cpu": "4"}}, "Burstable"),
    ],
)
def test_the_qos_class(
    requests: Mapping[str, str],
    limits: Mapping[str, str] | None,
    whole: Mapping[str, Any] | None,
    expected: str,
) -> None:
    one = pod(containers=[container(requests=requests, limits=limits)], change={"spec": {"resources": whole}})
    assert qos_class(one, one.spec.containers) == expected


amounts = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 8000).map("{}m".format),
        "memory": st.integers(1, 8192).map(lambda n: str(n * MIB)),
    }
)


@given(has=amounts, limits=st.none() | amounts, wanted=amounts, wanted_limits=st.none() | amounts)
def test_whatever_is_asked_for_the_api_server_could_take(
    has: dict[str, str],
    limits: dict[str, str] | None,
    wanted: dict[str, str],
    wanted_limits: dict[str, str] | None,
) -> None:
    """Nothing is removed, requests are not above limits, and the QoS class stays."""
    from hvpa.core.workload.containers import amounts as read

    def valid(requests: dict[str, str], bound: dict[str, str] | None) -> dict[str, str] | None:
        if bound is None:
            return None
        low, high = read(requests), read(bound)
        return {name: bound[name] if high[name] >= low[name] else requests[name] for name in bound}  # type: ignore[index]

    one = running(requests=has, limits=valid(has, limits))
    size: dict[str, Any] = {"requests": wanted}
    if (found_limits := valid(wanted, wanted_limits)) is not None:
        size["limits"] = found_limits
    for asked in resized(decision([one], size)).values():
        requests = {**has, **asked.get("requests", {})}
        bounds = {**(valid(has, limits) or {}), **asked.get("limits", {})}
        low, high = read(requests), read(bounds)
        assert all(low[name] <= high[name] for name in high)
        after = running(requests=requests, limits=bounds or None)
        assert qos_class(after, after.spec.containers) == qos_class(one, one.spec.containers)
