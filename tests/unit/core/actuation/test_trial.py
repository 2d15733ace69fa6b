"""A new size is tried on some pods first (`spec.updateStrategy.canary`), and one that no node takes is taken back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

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
from hvpa.api.hvpa.status import FailedChange, HvpaStatus, RolledBack, VerticalAxis
from hvpa.api.objects.read_models import Pod
from hvpa.core.gates.backoff import rollbacks_after, with_waiting
from hvpa.core.model import Decision, MemoryUse, RefusedResize
from hvpa.core.values.clock import Clock
from tests.unit.core.actuation.sized_pods import (
    INFEASIBLE,
    actuation,
    canary,
    decision,
    desired,
    ended,
    patches_template,
    resize_condition,
    rolled_back,
    running,
    size_status,
)
from tests.unit.core.trajectory.jointly import app, state, value

LARGE, SMALL = {"cpu": "1", "memory": "1G"}, {"cpu": "1", "memory": "500M"}
LARGER: Final = {"cpu": "1", "memory": "2G"}
ANY_CHANGE: Final = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}
SPEC: Final[dict[str, Any]] = {
    "hpa": {"deploy": False},
    "vpa": {"scaleUp": ANY_CHANGE, "scaleDown": {**ANY_CHANGE, "stabilizationDuration": "0s"}},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
    "updateStrategy": {"type": "InPlace", "canary": {"pods": 2, "duration": "10m"}},
}


def wants(
    memory: str,
    status: HvpaStatus | None = None,
    pods: Sequence[Pod] = (),
    now: dt.datetime = NOW,
    template: Mapping[str, Any] | None = None,
    uses: Mapping[tuple[str, str], int] | None = None,
    **spec: Any,
) -> Decision:
    """What is decided where the VPA wants this memory for the pods' container, which has 1 core and 1G at first."""
    manifest = hvpa(merged(SPEC, spec))
    manifest = manifest if status is None else replace(manifest, status=status)
    target = workload(len(pods), [template or container(requests=LARGE)])
    use = None if uses is None else MemoryUse(now, uses)
    recommended = vpa({"app": {"cpu": "1", "memory": memory}})
    return decided(objects(manifest, target, None, recommended, pods, memory_use=use), now)


def pods_of(*requests: Mapping[str, str], first: int = 0, **changes: Any) -> list[Pod]:
    return [running(f"web-{index}", size, **changes) for index, size in enumerate(requests, first)]


def resized(decision: Decision) -> list[str]:
    return [resize.pod for resize in decision.resizes]


def vertical_axis(decision: Decision) -> VerticalAxis:
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    return decision.status.axes.vertical


def begun() -> HvpaStatus:
    """A size that is decided, and tried on two of four pods."""
    decision = wants("500M", pods=pods_of(*[LARGE] * 4))
    assert resized(decision) == ["web-0", "web-1"]
    return decision.status


def confirmed_at(minutes: float) -> HvpaStatus:
    """The same once both pods have it, so many minutes ago."""
    status = begun()
    assert status.desired is not None
    assert status.desired.canary is not None
    run = status.desired.canary.model_copy(update={"since": at(minutes=-minutes)})
    size = status.desired.model_copy(update={"canary": run, "since": at(minutes=-minutes - 1)})
    return status.model_copy(update={"desired": size})


def failed_at(minutes: float = 3) -> Decision:
    """The same where one of them ran out of memory: the size is taken back."""
    pods = [failing("OOMKilled"), *pods_of(SMALL, SMALL, LARGE)[1:]]
    return wants("500M", confirmed_at(minutes), pods)


def failing(how: str, minutes: float = 2, requests: Mapping[str, str] = SMALL) -> Pod:
    """`web-0` with a new size, which has failed so many minutes ago."""
    reason = "OOMKilled" if how == "OOMKilled" else "Error"
    looping = {"state": {"waiting": {"reason": how}}} if how == "CrashLoopBackOff" else {}
    if how == "NotReady":
        return running("web-0", requests, ready=False)
    return running("web-0", requests, status={**ended(at(minutes=-minutes), reason), **looping})


# --- a trial begins, goes on, ends -----------------------------------------------------------------------------------
def test_canary_pods_get_the_size_first_and_the_others_keep_what_they_have() -> None:
    decision = wants("500M", pods=pods_of(*[LARGE] * 4))
    assert desired(decision).containers[0].requests == {"memory": "500M"}
    assert canary(decision).pods == ("web-0", "web-1")
    assert canary(decision).previous[0].requests == {"memory": "1G"}
    assert canary(decision).since is None


def test_canary_duration_ends_and_the_other_pods_get_the_size() -> None:
    pods = pods_of(SMALL, SMALL, LARGE, LARGE)
    first = wants("500M", begun(), pods, at(minutes=1))
    assert canary(first).since == at(minutes=1)
    assert first.resizes == ()
    assert (
        actuation(first).message == "pod web-2 (and 1 more pods): HVPA tries the new size on other pods first"
    )
    assert first.recheck_after == dt.timedelta(minutes=10)
    after = wants("500M", first.status, pods, at(minutes=11))
    assert desired(after).canary is None
    assert resized(after) == ["web-2", "web-3"]


def test_canary_pod_that_is_gone_is_replaced_by_another() -> None:
    decision = wants("500M", confirmed_at(5), pods_of(SMALL, LARGE, LARGE, first=1))
    assert (canary(decision).pods, canary(decision).since) == (("web-1", "web-2"), None)
    assert resized(decision) == ["web-2"]


def test_canary_new_pods_have_the_size_before() -> None:
    """They are created with the template's size, which is another one by now."""
    created = {"metadata": {"creationTimestamp": stamp(NOW)}}
    new = running("web-9", {"cpu": "1", "memory": "250M"}, change=created)
    decision = wants("500M", confirmed_at(5), [*pods_of(SMALL, SMALL), new])
    (asked,) = decision.resizes
    assert asked.pod == "web-9"
    assert asked.body["spec"]["containers"][0]["resources"] == {"requests": {"memory": "1G"}}  # type: ignore[index]


def test_canary_holds_another_change_until_the_trial_is_over() -> None:
    pods = pods_of(SMALL, SMALL, LARGE)
    decision = wants("250M", confirmed_at(5), pods)
    assert condition(decision, "ScalingBlocked").reason == "Canary"
    assert decision.recheck_after == dt.timedelta(minutes=5)
    waiting = wants("250M", begun(), pods_of(LARGE, LARGE, LARGE))
    assert condition(waiting, "ScalingBlocked").reason == "Canary"
    over = wants("250M", confirmed_at(11), pods)
    assert canary(over).previous[0].requests == {"memory": "500M"}


def test_canary_does_not_hold_a_container_that_runs_out_of_memory() -> None:
    """It is raised, and what the trial began from is what pods go back to."""
    oom = running("web-3", LARGE, status=ended(at(minutes=-1)))
    decision = wants("2G", confirmed_at(5), [*pods_of(SMALL, SMALL, LARGE), oom])
    assert canary(decision).pods == ("web-3", "web-0")
    assert canary(decision).previous[0].requests == {"memory": "1G"}


def test_canary_does_not_hold_replicas() -> None:
    manifest = replace(hvpa(merged(SPEC, {"hpa": {"deploy": True}})), status=confirmed_at(5))
    target = workload(3, [container(requests=LARGE)])
    decision = decided(objects(manifest, target, hpa(6), vpa({"app": SMALL}), pods_of(SMALL, SMALL, LARGE)))
    assert desired(decision).canary is not None
    assert decision.replicas is not None


def test_canary_ends_where_pods_can_not_be_resized_and_are_replaced() -> None:
    stuck = running("web-0", SMALL, {"requests": LARGE}, conditions=[INFEASIBLE])
    pods = [stuck, *pods_of(SMALL, SMALL, LARGE)[1:]]
    falls = wants("500M", begun(), pods, updateStrategy={"type": "InPlaceOrRollout"})
    assert desired(falls).canary is None
    assert patches_template(falls)


def test_canary_removed_from_the_spec_ends_the_trial_and_tries_nothing() -> None:
    """It was there before: the trial ends, and the pods have what was decided."""
    spec: dict[str, Any] = {"updateStrategy": {"canary": None}}
    pods = pods_of(*[LARGE] * 3)
    decision = wants("500M", begun(), pods, **spec)
    assert desired(decision).canary is None
    assert len(decision.resizes) == 3
    again = wants("500M", failed_at().status, pods, **spec)
    assert condition(again, "ScalingBlocked").reason == "RolledBack"
    assert len(wants("500M", pods=pods, **spec).resizes) == 3


def test_canary_tries_nothing_where_nothing_changes() -> None:
    decision = wants("1G", pods=pods_of(*[LARGE] * 3))
    assert desired(decision).canary is None
    assert wants("1G", decision.status, pods_of(*[LARGE] * 3)).status is decision.status


# --- it fails --------------------------------------------------------------------------------------------------------
def test_rolled_back_does_not_forget_that_a_node_resizes_no_cpu() -> None:
    cpu = FailedChange(container="app", resource="cpu", previous=1000, failed=2000)
    why = 'pod web-0: Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
    record = RolledBack(count=1, time=at(hours=-1), message=why, changes=(cpu,))
    status = confirmed_at(3).model_copy(update={"rolled_back": record})
    after = rolled_back(wants("500M", status, [failing("OOMKilled"), *pods_of(SMALL, SMALL, LARGE)[1:]]))
    assert {change.resource for change in after.changes} == {"cpu", "memory"}
    assert after.message.startswith(
        "pod web-0: container app ran out of memory; earlier: alongside CPU Manager"
    )


def test_rolled_back_needs_no_approval() -> None:
    decision = wants("500M", confirmed_at(3), [failing("OOMKilled"), *pods_of(SMALL)], mode="Review")
    assert rolled_back(decision).message == "pod web-0: container app ran out of memory"
    assert desired(decision).containers[0].requests == {"memory": "1G"}


@pytest.mark.parametrize(
    ("how", "minutes", "why"),
    [
        ("OOMKilled", 3, "container app ran out of memory"),
        ("CrashLoopBackOff", 3, "container app keeps terminating"),
        ("NotReady", 11, "it is not ready"),
    ],
)
def test_rolled_back_to_the_size_before_where_a_canary_pod_fails(how: str, minutes: float, why: str) -> None:
    decision = wants("500M", confirmed_at(minutes), [failing(how), *pods_of(SMALL, SMALL, LARGE)[1:]])
    assert rolled_back(decision).message == f"pod web-0: {why}"
    assert desired(decision).canary is None
    assert desired(decision).containers[0].requests == {"memory": "1G"}
    # A pod that ran out of memory comes before the others.
    assert resized(decision) == (["web-0"] if how == "OOMKilled" else ["web-0", "web-1"])
    (message,) = [event.message for event in decision.events if event.reason == "RolledBack"]
    assert message == f"memory 500M -> 1G of app: pod web-0: {why}"
    assert vertical_axis(decision).applied_from == ()
    # That is the answer to the container that ran out of memory: it is not raised beyond that.
    assert not wants("500M", decision.status, [failing(how), *pods_of(LARGE, LARGE)], at(minutes=1)).applied


@pytest.mark.parametrize(
    ("pod", "spec", "minutes"),
    [
        (failing("OOMKilled"), {"rollbackOn": ["NotReady"]}, 3),
        (failing("CrashLoopBackOff"), {"rollbackOn": ["OOMKilled"]}, 3),
        (failing("NotReady"), {"rollbackOn": ["OOMKilled"]}, 11),
        (failing("NotReady"), {}, 3),
        (failing("OOMKilled", minutes=9), {}, 3),
        (failing("Error"), {}, 3),
    ],
    ids=["OOM not named", "crash loop not named", "not ready not named", "not ready yet", "before", "ended once"],
)  # fmt: skip
def test_canary_rollback_on_says_what_is_no_failure(pod: Pod, spec: dict[str, Any], minutes: float) -> None:
    pods = [pod, *pods_of(SMALL, SMALL, LARGE, LARGE)[1:]]
    decision = wants("500M", confirmed_at(minutes), pods, updateStrategy={"canary": spec})
    assert decision.status.rolled_back is None


@pytest.mark.parametrize(("how", "is_back"), [("OOMKilled", False), ("CrashLoopBackOff", True)])
def test_more_memory_that_does_not_help_is_not_rolled_back(how: str, is_back: bool) -> None:
    """And a larger size that failed is no step up when it is taken back."""
    first = wants("2G", pods=pods_of(*[LARGE] * 3))
    pods = [failing(how, -1, LARGER), *pods_of(LARGER, LARGER, LARGE)[1:]]
    decision = wants("2G", first.status, pods, at(minutes=2))
    assert (decision.status.rolled_back is not None) == is_back
    if is_back:
        axis = vertical_axis(decision)
        assert (axis.last_scale_time, axis.last_scale_up_time) == (at(minutes=2), NOW)


def test_rolled_back_from_a_canary_size_too_near_to_what_its_pods_use() -> None:
    limits = {"cpu": "2", "memory": "1G"}
    template, pods = container(requests=LARGE, limits=limits), pods_of(*[LARGE] * 4, limits=limits)
    first = wants("500M", pods=pods, template=template)
    assert resized(first) == ["web-0", "web-1"]
    small = running("web-0", SMALL, limits=limits)
    uses = {("web-0", "app"): 950_000_000}
    decision = wants("500M", first.status, [small, *pods[1:]], at(minutes=1), template, uses)
    near = "container app uses 950M of memory, too close to its new limit"
    assert rolled_back(decision).message == f"pod web-0: {near}"


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
def test_rolled_back_holds_a_size_that_failed_for_a_day(memory: str, hours: float, blocked: bool) -> None:
    decision = wants(memory, failed_at().status, pods_of(*[LARGE] * 4), at(hours=hours))
    assert (condition(decision, "ScalingBlocked").reason == "RolledBack") == blocked
    assert (not decision.applied) == blocked


def test_rolled_back_waits_twice_as_long_each_time() -> None:
    decision = failed_at()
    for count in (2, 3):
        minutes = (rolled_back(decision).time - NOW).total_seconds() / 60 + (1440 << (count - 2)) + 1
        again = wants("500M", decision.status, pods_of(*[LARGE] * 4), at(minutes=minutes))
        assert again.applied
        pods = [failing("OOMKilled", -minutes - 1), *pods_of(SMALL, SMALL, LARGE)[1:]]
        decision = wants("500M", again.status, pods, at(minutes=minutes + 2))
        assert rolled_back(decision).count == count
    late = rolled_back(decision).time + dt.timedelta(days=30)
    assert wants("500M", decision.status, pods_of(*[LARGE] * 4), late).applied


def test_rolled_back_counts_once_while_another_size_still_waits() -> None:
    """It fails for the same cause, which counts once; and what failed before waits on."""
    first = failed_at()
    assert rolled_back(first).count == 1
    again = wants("600M", first.status, pods_of(*[LARGE] * 4), at(minutes=3))
    assert again.applied
    small = {**LARGE, "memory": "600M"}
    pods = [failing("OOMKilled", -3.1, small), *pods_of(small, small, LARGE)[1:]]
    decision = wants("600M", again.status, pods, at(minutes=4))
    assert rolled_back(decision).count == 1
    assert rolled_back(decision).time == at(minutes=4)
    assert {(change.resource, change.failed) for change in rolled_back(decision).changes} >= {
        ("memory", 600_000_000)
    }


@pytest.mark.parametrize(("hours", "resources"), [(23, {"cpu", "memory"}), (25, {"memory"})])
def test_rolled_back_resource_waits_on_beside_one_that_fails_now(hours: float, resources: set[str]) -> None:
    clock = Clock(at(hours=hours))
    cpu = FailedChange(container="app", resource="cpu", previous=1000, failed=4000)
    memory = FailedChange(container="app", resource="memory", previous=10**9, failed=5 * 10**8)
    record = RolledBack(count=1, time=NOW, message="pod web-0: no room", changes=(cpu,))
    assert {change.resource for change in with_waiting((memory,), record, clock)} == resources
    assert rollbacks_after(record, clock) == (1 if hours < 24 else 2)
    assert with_waiting((memory,), None, clock) == (memory,)


# --- no node takes it ------------------------------------------------------------------------------------------------
FOUR_CORES: Final = {"cpu": "4", "memory": "2G"}


def no_node_takes(*pods: Pod, refused: int = 0, minutes: float = 2, **spec: Any) -> Decision:
    """4 cores were decided for pods of one core, so many minutes ago."""
    status = size_status(len(pods), {"app": {"requests": FOUR_CORES}}, at(minutes=-minutes))
    manifest = hvpa(
        merged({**SPEC, "updateStrategy": {"type": "InPlace"}}, spec), {"desired": status["desired"]}
    )
    target = workload(len(pods), [container(requests=LARGE)])
    recommender = hpa(len(pods)) if spec.get("hpa") else None
    inputs = objects(manifest, target, recommender, vpa({"app": FOUR_CORES}), pods)
    if refused:
        (asked, *_) = decided(inputs).resizes
        known = RefusedResize(asked.uid, asked.body, "exceeded quota", at(seconds=-10), refused)
        inputs = replace(inputs, refused_resizes=(known,))
    return decided(inputs)


def test_rolled_back_from_a_size_that_no_node_takes() -> None:
    """What the pods have is desired from now on: CPU 1, and of memory the larger one. Where one pod has the size, the
    others are left alone."""
    pods = (
        running("web-0", FOUR_CORES, {"requests": {"cpu": "1", "memory": "1500M"}}, conditions=[INFEASIBLE]),
        running("web-1", FOUR_CORES, {"requests": LARGE}, conditions=[INFEASIBLE]),
    )
    assert no_node_takes(*pods, running("web-2", FOUR_CORES)).status.rolled_back is None
    decision = no_node_takes(*pods)
    assert desired(decision).containers[0].requests == {"cpu": "1", "memory": "1500M"}
    assert rolled_back(decision).message == "pod web-0: the kubelet says Infeasible"
    assert [
        (change.resource, change.previous, change.failed) for change in rolled_back(decision).changes
    ] == [
        ("cpu", 1000, 4000),
        ("memory", 1_500_000_000, 2_000_000_000),
    ]
    assert resized(decision) == ["web-0", "web-1"]
    other = no_node_takes(*pods, updateStrategy={"type": "InPlaceOrRollout"})
    assert other.status.rolled_back is None
    assert other.workload_patch is not None


def test_the_size_that_pods_have_is_not_rolled_back() -> None:
    """A kubelet may refuse the way back, too, while the pod's spec still has the larger limit. If HVPA rolled back at
    each reconcile, no replicas would follow."""
    have = {"requests": LARGE, "limits": {"memory": "2G"}}
    pod = running("web-0", LARGE, have, limits={"memory": "4G"}, conditions=[INFEASIBLE])
    assert decision([pod], {**have, "limits": {"memory": "4G"}}).status.rolled_back is not None
    assert decision([pod], have).status.rolled_back is None


def test_rolled_back_holds_the_memory_raise_of_a_starving_container() -> None:
    """The raise would fail at each reconcile, since it passes other gates."""
    starving = running("web-0", LARGE, status=ended(at(minutes=-1)))
    change = {"container": "app", "resource": "memory", "previous": 10**9, "failed": 2 * 10**9}
    record = {"count": 1, "time": stamp(at(hours=-1)), "message": "no room", "changes": [change]}
    spec: dict[str, Any] = {"updateStrategy": {"type": "InPlace", "canary": None}}
    status = hvpa({}, {"rolledBack": record}).status
    raised, held = wants("2G", pods=[starving], **spec), wants("2G", status, [starving], **spec)
    assert [hold.resource for hold in raised.blocked] == []
    assert [hold.reason for hold in held.blocked] == ["RolledBack"]
    assert resized(raised) == ["web-0"]
    assert resized(held) == []


WITH_HPA: Final = {"hpa": {"deploy": True}}


def deferred(name: str, cpu: str = "1") -> Pod:
    """A pod of so many cores whose node has no room for four and 2G."""
    waits = resize_condition("Pending", "Deferred", minutes=6)
    return running(name, FOUR_CORES, {"requests": {**LARGE, "cpu": cpu}}, conditions=[waits])


@pytest.mark.parametrize(
    ("pods", "minutes", "spec", "is_back"),
    [
        ([deferred("web-0"), deferred("web-1")], 6, WITH_HPA, True),
        ([deferred("web-0"), deferred("web-1")], 4, WITH_HPA, False),
        ([deferred("web-0"), running("web-1", FOUR_CORES)], 6, WITH_HPA, False),
        ([deferred("web-0"), deferred("web-1")], 6, {}, False),
        ([deferred("web-0", "4"), deferred("web-1", "4")], 6, WITH_HPA, False),
        ([], 6, WITH_HPA, False),
    ],
    ids=["no pod", "within the timeout", "a pod has it", "no HPA adds replicas", "memory alone", "no pods"],
)
def test_rolled_back_from_a_size_without_room_after_update_strategy_timeout(
    pods: list[Pod], minutes: float, spec: dict[str, Any], is_back: bool
) -> None:
    decision = no_node_takes(*pods, minutes=minutes, **spec)
    assert (decision.status.rolled_back is not None) == is_back
    if is_back:
        assert rolled_back(decision).message == "pod web-0: the kubelet says Deferred"
        assert desired(decision).containers[0].requests == {**FOUR_CORES, "cpu": "1"}, (
            "replicas replace no memory"
        )
        assert resized(decision) == ["web-0", "web-1"]


@pytest.mark.parametrize(("refused", "taken_back"), [(1, False), (2, False), (3, True)])
def test_rolled_back_from_a_size_that_the_api_server_keeps_refusing(refused: int, taken_back: bool) -> None:
    decision = no_node_takes(*pods_of(LARGE), refused=refused)
    assert (decision.status.rolled_back is not None) == taken_back
    if taken_back:
        assert decision.resizes == ()


def test_rolled_back_size_is_made_up_for_by_more_replicas() -> None:
    """4 pods use 4 cores of 1 each; the path has 2 pods of larger size, which no node takes: there are more of them."""
    changes = (FailedChange(container="app", resource="cpu", previous=1000, failed=1500),)
    record = RolledBack(count=1, time=at(hours=-1), message="pod web-0: no room", changes=changes)
    readings, targets = [value("cpu", "1", "2")], {"app": {"cpu": "1"}}
    in_place = {"updateStrategy": {"type": "InPlace"}}
    before, after = (
        desired(decided(state(4, [app("1")], readings, targets, in_place, status=status)))
        for status in ({}, {"rolledBack": record.model_dump(by_alias=True, mode="json")})
    )
    assert after.replicas > before.replicas
    assert before.containers != ()
    assert after.containers == ()
