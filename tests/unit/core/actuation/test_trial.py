"""A new size is tried on some pods first (`spec.updateStrategy.canary`), and one that no node takes is taken back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders.build import (
    NOW,
    at,
    condition,
    container,
    decided,
    hpa,
    hvpa,
    merged,
    objects,
    stamp,
    vpa,
    workload,
)
from hvpa.api.hvpa.resource import HvpaObject
from hvpa.api.hvpa.status import (
    DesiredSize,
    FailedChange,
    HvpaStatus,
    RecommendedContainer,
    RolledBack,
)
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision, MemoryUse, RefusedResize
from tests.unit.core.actuation.test_pods import resize_condition, running
from tests.unit.core.trajectory.jointly import app, state, value

LARGE, SMALL = {"cpu": "1", "memory": "1G"}, {"cpu": "1", "memory": "500M"}
CANARY: dict[str, Any] = {"updateStrategy": {"type": "InPlace", "canary": {"pods": 2, "duration": "10m"}}}
ANY_CHANGE = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}
SPEC: dict[str, Any] = {
    "hpa": {"deploy": False},
    "vpa": {"scaleUp": ANY_CHANGE, "scaleDown": {**ANY_CHANGE, "stabilizationDuration": "0s"}},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    **CANARY,
}


def wants(
    memory: str,
    status: HvpaStatus | None = None,
    pods: Sequence[Pod] = (),
    now: dt.datetime = NOW,
    **spec: Any,
) -> Decision:
    """What is decided where the VPA wants this memory for the pods' container, which has 1 core and 1G at first."""
    one = hvpa(merged(SPEC, spec))
    if status is not None:
        one = HvpaObject(one.metadata, one.spec, one.problems, status)
    target = workload(len(pods), [container(requests=LARGE)])
    return decided(objects(one, target, None, vpa({"app": {"cpu": "1", "memory": memory}}), pods), now)


def pods_of(*requests: Mapping[str, str], **changes: Any) -> list[Pod]:
    return [running(f"web-{index}", one, **changes) for index, one in enumerate(requests)]


def resized(found: Decision) -> list[str]:
    return [one.pod for one in found.resizes]


def begun() -> HvpaStatus:
    """A size that is decided, and tried on two of four pods."""
    found = wants("500M", pods=pods_of(*[LARGE] * 4))
    assert resized(found) == ["web-0", "web-1"]
    return found.status


def confirmed_at(minutes: float) -> HvpaStatus:
    """The same once both pods have it, so many minutes ago."""
    status = begun()
    assert status.desired is not None
    assert status.desired.canary is not None
    run = status.desired.canary.model_copy(update={"since": at(minutes=-minutes)})
    desired = status.desired.model_copy(update={"canary": run, "since": at(minutes=-minutes - 1)})
    return status.model_copy(update={"desired": desired})


def test_some_pods_get_the_size_first_and_the_others_keep_what_they_have() -> None:
    desired = begun().desired
    assert desired is not None
    assert desired.containers[0].requests == {"memory": "500M"}
    assert desired.canary is not None
    assert desired.canary.pods == ("web-0", "web-1")
    assert desired.canary.previous[0].requests == {"memory": "1G"}
    assert desired.canary.since is None


def test_once_they_have_had_it_for_the_duration_the_others_get_it() -> None:
    pods = pods_of(SMALL, SMALL, LARGE, LARGE)
    first = wants("500M", begun(), pods, at(minutes=1))
    assert first.status.desired is not None
    assert first.status.desired.canary is not None
    assert first.status.desired.canary.since == at(minutes=1)
    assert (first.resizes, first.status.actuation and first.status.actuation.message) == (
        (),
        "pod web-2 (and 1 more pods): the new size is tried on other pods first",
    )
    assert first.recheck_after == dt.timedelta(minutes=10)
    after = wants("500M", first.status, pods, at(minutes=11))
    assert after.status.desired is not None
    assert after.status.desired.canary is None
    assert resized(after) == ["web-2", "web-3"]


def test_a_size_too_near_to_what_the_first_pods_use_is_taken_back() -> None:
    limits = {"cpu": "1", "memory": "1G"}
    template = workload(4, [container(requests={"cpu": "500m", "memory": "1G"}, limits=limits)])
    pods = [running(f"web-{index}", {"cpu": "500m", "memory": "1G"}, limits=limits) for index in range(4)]
    spec = merged(SPEC, {"vpa": {"template": {"spec": {"resourcePolicy": {"containerPolicies": []}}}}})
    target = vpa({"app": {"cpu": "500m", "memory": "500M"}})
    first = decided(objects(hvpa(spec), template, None, target, pods))
    assert resized(first) == ["web-0", "web-1"]
    own = hvpa(spec)
    own = HvpaObject(own.metadata, own.spec, own.problems, first.status)
    small = running("web-0", {"cpu": "500m", "memory": "500M"}, limits=limits)
    use = MemoryUse(at(minutes=1), {("web-0", "app"): 950_000_000})
    seen = objects(own, template, None, target, [small, *pods[1:]], memory_use=use)
    found = decided(seen, at(minutes=1))
    assert found.status.rolled_back is not None
    assert found.status.rolled_back.message == (
        "pod web-0: container app uses 950M of memory, too near to the limit that it is to have"
    )


def test_a_pod_that_is_gone_is_no_canary_any_more() -> None:
    pods = [running(f"web-{index}", one) for index, one in ((1, SMALL), (2, LARGE), (3, LARGE))]
    found = wants("500M", confirmed_at(5), pods)
    assert found.status.desired is not None
    assert found.status.desired.canary is not None
    assert (found.status.desired.canary.pods, found.status.desired.canary.since) == (("web-1", "web-2"), None)
    assert resized(found) == ["web-2"]


def failing(how: str, age: float = 2) -> Pod:
    """`web-0` with the new size, which has failed so many minutes ago."""
    ended = {
        "terminated": {
            "reason": "OOMKilled" if how == "OOMKilled" else "Error",
            "finishedAt": stamp(at(minutes=-age)),
        }
    }
    status: dict[str, Any] = {"name": "app", "resources": {"requests": SMALL}, "lastState": ended}
    if how == "CrashLoopBackOff":
        status["state"] = {"waiting": {"reason": how}}
    statuses = [] if how == "NotReady" else [status]
    return running(
        "web-0", SMALL, ready=how != "NotReady", change={"status": {"containerStatuses": statuses}}
    )


@pytest.mark.parametrize(
    ("how", "minutes", "why"),
    [
        ("OOMKilled", 3, "container app ran out of memory"),
        ("CrashLoopBackOff", 3, "container app ends again and again"),
        ("NotReady", 11, "it is not ready"),
    ],
)
def test_where_a_pod_fails_all_get_back_what_they_had(how: str, minutes: float, why: str) -> None:
    status = confirmed_at(minutes)
    found = wants("500M", status, [failing(how), *pods_of(SMALL, SMALL, LARGE)[1:]])
    assert found.status.rolled_back is not None
    assert found.status.rolled_back.message == f"pod web-0: {why}"
    assert found.status.desired is not None
    assert found.status.desired.canary is None
    assert found.status.desired.containers[0].requests == {"memory": "1G"}
    # A pod that ran out of memory comes before the others.
    assert resized(found) == (["web-0"] if how == "OOMKilled" else ["web-0", "web-1"])
    (told,) = [one.message for one in found.events if one.reason == "RolledBack"]
    assert told == f"memory 500M -> 1G of app: pod web-0: {why}"
    assert found.status.axes is not None
    assert found.status.axes.vertical is not None
    assert found.status.axes.vertical.applied_from == ()
    # That is the answer to the container that ran out of memory: it is not raised beyond that.
    assert not wants("500M", found.status, [failing(how), *pods_of(LARGE, LARGE)], at(minutes=1)).applied


@pytest.mark.parametrize(
    ("pod", "spec", "minutes"),
    [
        (failing("OOMKilled"), {"rollbackOn": ["NotReady"]}, 3),
        (failing("CrashLoopBackOff"), {"rollbackOn": ["OOMKilled"]}, 3),
        (failing("NotReady"), {"rollbackOn": ["OOMKilled"]}, 11),
        (failing("NotReady"), {}, 3),
        (failing("OOMKilled", age=9), {}, 3),
        (failing("Error"), {}, 3),
    ],
    ids=["OOM not named", "crash loop not named", "not ready not named", "not ready yet", "before", "ended once"],
)  # fmt: skip
def test_what_is_no_failure(pod: Pod, spec: dict[str, Any], minutes: float) -> None:
    canary: dict[str, Any] = {"updateStrategy": {"canary": spec}}
    found = wants("500M", confirmed_at(minutes), [pod, *pods_of(SMALL, SMALL, LARGE, LARGE)[1:]], **canary)
    assert found.status.rolled_back is None


def test_more_memory_that_does_not_help_is_not_taken_back() -> None:
    first = wants("2G", pods=pods_of(LARGE, LARGE, LARGE))
    assert first.status.desired is not None
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(at(minutes=1))}}
    larger = {"cpu": "1", "memory": "2G"}
    status = {"name": "app", "resources": {"requests": larger}, "lastState": ended}
    oom = running("web-0", larger, change={"status": {"containerStatuses": [status]}})
    found = wants("2G", first.status, [oom, *pods_of(larger, larger, LARGE)[1:]], at(minutes=2))
    assert found.status.rolled_back is None


def rolled_back() -> HvpaStatus:
    return wants("500M", confirmed_at(3), [failing("OOMKilled"), *pods_of(SMALL, SMALL, LARGE)[1:]]).status


@pytest.mark.parametrize(
    ("memory", "hours", "blocked"),
    [
        ("500M", 23, True),
        ("500M", 25, False),
        ("400M", 23, True),
        ("550M", 23, True),
        ("600M", 23, False),
        ("2G", 23, False),
    ],
)
def test_a_size_that_failed_is_not_tried_again_for_a_day(memory: str, hours: float, blocked: bool) -> None:
    found = wants(memory, rolled_back(), pods_of(*[LARGE] * 4), at(hours=hours))
    assert (condition(found, "ScalingBlocked").reason == "RolledBack") == blocked
    assert (not found.applied) == blocked


def test_a_larger_size_that_failed_is_no_step_up_when_it_is_taken_back() -> None:
    first = wants("2G", pods=pods_of(*[LARGE] * 3))
    larger = {"cpu": "1", "memory": "2G"}
    waiting = {
        "name": "app",
        "resources": {"requests": larger},
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    }
    ended = {"terminated": {"reason": "Error", "finishedAt": stamp(at(minutes=1))}}
    change = {"status": {"containerStatuses": [{**waiting, "lastState": ended}]}}
    found = wants(
        "2G",
        first.status,
        [running("web-0", larger, change=change), *pods_of(LARGE, LARGE)[1:]],
        at(minutes=2),
    )
    assert found.status.rolled_back is not None
    assert found.status.axes is not None
    assert found.status.axes.vertical is not None
    assert found.status.axes.vertical.last_scale_time == at(minutes=2)
    assert found.status.axes.vertical.last_scale_up_time == NOW


def test_it_waits_twice_as_long_each_time() -> None:
    status = rolled_back()
    for count in (2, 3):
        assert status.rolled_back is not None
        now = status.rolled_back.time + dt.timedelta(days=1 << (count - 2), minutes=1)
        again = wants("500M", status, pods_of(*[LARGE] * 4), now)
        assert again.applied
        ended = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(now + dt.timedelta(minutes=1))}}
        statuses = [{"name": "app", "resources": {"requests": SMALL}, "lastState": ended}]
        oom = running("web-0", SMALL, change={"status": {"containerStatuses": statuses}})
        later = now + dt.timedelta(minutes=2)
        status = wants("500M", again.status, [oom, *pods_of(SMALL, SMALL, LARGE)[1:]], later).status
        assert status.rolled_back is not None
        assert status.rolled_back.count == count
    assert status.rolled_back is not None
    late = status.rolled_back.time + dt.timedelta(days=30)
    again = wants("500M", status, pods_of(*[LARGE] * 4), late)
    assert again.applied


def test_another_change_waits_until_the_trial_is_over() -> None:
    pods = pods_of(SMALL, SMALL, LARGE)
    found = wants("250M", confirmed_at(5), pods)
    assert condition(found, "ScalingBlocked").reason == "Canary"
    assert found.recheck_after == dt.timedelta(minutes=5)
    waiting = wants("250M", begun(), pods_of(LARGE, LARGE, LARGE))
    assert condition(waiting, "ScalingBlocked").reason == "Canary"
    over = wants("250M", confirmed_at(11), pods)
    assert over.status.desired is not None
    assert over.status.desired.canary is not None
    assert over.status.desired.canary.previous[0].requests == {"memory": "500M"}


def test_a_container_that_runs_out_of_memory_does_not_wait_for_the_trial() -> None:
    """It is raised, and what the trial began from is what pods go back to."""
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(at(minutes=-1))}}
    statuses = [{"name": "app", "resources": {"requests": LARGE}, "lastState": ended}]
    oom = running("web-3", LARGE, change={"status": {"containerStatuses": statuses}})
    found = wants("2G", confirmed_at(5), [*pods_of(SMALL, SMALL, LARGE), oom])
    assert found.status.desired is not None
    assert found.status.desired.canary is not None
    assert found.status.desired.canary.pods == ("web-3", "web-0")
    assert found.status.desired.canary.previous[0].requests == {"memory": "1G"}


def test_replicas_go_on_while_a_size_is_tried() -> None:
    status = confirmed_at(5)
    one = hvpa(merged(SPEC, {"hpa": {"deploy": True}}))
    one = HvpaObject(one.metadata, one.spec, one.problems, status)
    target = workload(3, [container(requests=LARGE)])
    seen = objects(
        one, target, hpa(6), vpa({"app": {"cpu": "1", "memory": "500M"}}), pods_of(SMALL, SMALL, LARGE)
    )
    found = decided(seen)
    assert found.status.desired is not None
    assert found.status.desired.canary is not None
    assert found.replicas is not None


def test_pods_that_can_not_be_resized_are_replaced_as_their_workload_does_it() -> None:
    stuck = resize_condition("PodResizePending", "Infeasible", minutes=1)
    pods = [
        running("web-0", SMALL, {"requests": LARGE}, conditions=[stuck]),
        *pods_of(SMALL, SMALL, LARGE)[1:],
    ]
    falls = wants("500M", begun(), pods, updateStrategy={"type": "InPlaceOrRollout"})
    assert falls.status.desired is not None
    assert falls.status.desired.canary is None
    assert falls.workload_patch is not None
    assert not falls.workload_patch.is_scale


INFEASIBLE = resize_condition("PodResizePending", "Infeasible", minutes=1)
LARGER = {"cpu": "4", "memory": "2G"}


def no_node_takes(*pods: Pod, refused: int = 0, **spec: Any) -> Decision:
    """4 cores were decided for pods of one core."""
    size = RecommendedContainer(name="app", requests={"cpu": "4", "memory": "2G"})
    status = HvpaStatus(
        desired=DesiredSize(replicas=len(pods), containers=(size,), since=at(minutes=-2), generation=1)
    )
    one = hvpa(merged({**SPEC, "updateStrategy": {"type": "InPlace"}}, spec))
    one = HvpaObject(one.metadata, one.spec, one.problems, status)
    target = workload(len(pods), [container(requests=LARGE)])
    seen = objects(one, target, None, vpa({"app": {"cpu": "4", "memory": "2G"}}), pods)
    if refused:
        (asked, *_) = decided(seen).resizes
        known = RefusedResize(asked.uid, asked.body, "exceeded quota", at(seconds=-10), refused)
        seen = replace(seen, refused_resizes=(known,))
    return decided(seen)


def test_a_size_that_no_node_takes_is_taken_back() -> None:
    """What the pods have that can't have it is desired from now on: CPU 1, and of memory the larger one."""
    pods = (
        running("web-0", LARGER, {"requests": {"cpu": "1", "memory": "1500M"}}, conditions=[INFEASIBLE]),
        running("web-1", LARGER, {"requests": LARGE}, conditions=[INFEASIBLE]),
        running("web-2", LARGER),
    )
    found = no_node_takes(*pods)
    assert found.status.desired is not None
    assert found.status.desired.containers[0].requests == {"cpu": "1", "memory": "1500M"}
    assert found.status.rolled_back is not None
    assert found.status.rolled_back.message == "pod web-0: the kubelet says Infeasible"
    assert [(one.resource, one.previous, one.failed) for one in found.status.rolled_back.changes] == [
        ("cpu", 1000, 4000),
        ("memory", 1_500_000_000, 2_000_000_000),
    ]
    assert resized(found) == ["web-0", "web-1", "web-2"]
    other = no_node_takes(*pods, updateStrategy={"type": "InPlaceOrRollout"})
    assert other.status.rolled_back is None
    assert other.workload_patch is not None


@pytest.mark.parametrize(("refused", "taken_back"), [(1, False), (2, False), (3, True)])
def test_a_size_that_the_api_server_keeps_refusing_is_taken_back(refused: int, taken_back: bool) -> None:
    found = no_node_takes(*pods_of(LARGE, LARGE), refused=refused)
    assert (found.status.rolled_back is not None) == taken_back
    if taken_back:
        assert found.resizes == ()


def test_replicas_serve_in_place_of_a_size_that_no_node_takes() -> None:
    """4 pods use 4 cores of 1 each; the path has 2 pods of larger size, which no node takes: there are more of them."""
    changes = (FailedChange(container="app", resource="cpu", previous=1000, failed=1500),)
    record = RolledBack(count=1, time=at(hours=-1), message="pod web-0: no room", changes=changes)
    found, in_place = {}, {"updateStrategy": {"type": "InPlace"}}
    for name, status in (
        ("before", {}),
        ("after", {"rolledBack": record.model_dump(by_alias=True, mode="json")}),
    ):
        seen = state(
            4,
            [app("1")],
            [value("cpu", "1", "2")],
            {"app": {"cpu": "1"}},
            in_place,
            status=status,
        )
        desired = decided(seen).status.desired
        assert desired is not None
        found[name] = desired.replicas, [one.requests["cpu"] for one in desired.containers]
    assert found["after"][0] > found["before"][0]
    assert found["before"][1] != []
    assert found["after"][1] == []


def test_without_a_canary_in_the_spec_nothing_is_tried_and_nothing_waits() -> None:
    """It was there before: the trial ends, and the pods have what was decided."""
    spec: dict[str, Any] = {"updateStrategy": {"canary": None}}
    found = wants("500M", begun(), pods_of(*[LARGE] * 3), **spec)
    assert found.status.desired is not None
    assert found.status.desired.canary is None
    assert len(found.resizes) == 3
    again = wants("500M", rolled_back(), pods_of(*[LARGE] * 3), **spec)
    assert condition(again, "ScalingBlocked").reason == "RolledBack"
    fresh = wants("500M", pods=pods_of(*[LARGE] * 3), **spec)
    assert len(fresh.resizes) == 3


def test_where_there_is_nothing_to_change_nothing_is_tried() -> None:
    found = wants("1G", pods=pods_of(*[LARGE] * 3))
    assert found.status.desired is not None
    assert found.status.desired.canary is None
    assert wants("1G", found.status, pods_of(*[LARGE] * 3)).status is found.status


def test_new_pods_have_the_size_before() -> None:
    """They are created with the template's size, which is another one by now."""
    status = confirmed_at(5)
    new = running(
        "web-9", {"cpu": "1", "memory": "250M"}, change={"metadata": {"creationTimestamp": stamp(NOW)}}
    )
    found = wants("500M", status, [*pods_of(SMALL, SMALL), new])
    (asked,) = found.resizes
    assert asked.pod == "web-9"
    assert asked.body["spec"]["containers"][0]["resources"] == {"requests": {"memory": "1G"}}  # type: ignore[index]
