"""Rollouts that the operator begins: held at the end of a maintenance window, tried on the first pods, taken back."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
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
    with_status,
    workload,
)
from hvpa.api.hvpa.status import ROLLOUT, HvpaStatus
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.core.model import Decision, Objects
from tests.unit.core.actuation.test_pods import resize_condition, running

SMALL, LARGE = {"cpu": "1", "memory": "500M"}, {"cpu": "1", "memory": "1G"}
ANY_CHANGE = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}, "stabilizationDuration": "0s"}
IN_WINDOW = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
OPEN, CLOSED = NOW, at(hours=1)
"""The window opens half an hour before NOW and closes half an hour after it."""
WINDOW = {"begin": "093000+0000", "end": "103000+0000"}
BASE: dict[str, Any] = {
    "hpa": {"deploy": False},
    "vpa": {"scaleUp": ANY_CHANGE, "scaleDown": ANY_CHANGE},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
}
IN_WINDOWS = merged(
    BASE,
    {
        "maintenanceTimeWindow": WINDOW,
        "vpa": {"scaleUp": {**ANY_CHANGE, **IN_WINDOW}, "scaleDown": {**ANY_CHANGE, **IN_WINDOW}},
    },
)
CANARY = {"pods": 1, "duration": "10m"}
TRIED = merged(BASE, {"updateStrategy": {"canary": CANARY}})
PODS = 4


def pods_of(kind: str, *requests: Mapping[str, str], created: dt.datetime = NOW, **changes: Any) -> list[Pod]:
    owner = {"ownerReferences": [{"kind": kind, "name": "web", "uid": "w", "controller": True}]}
    metadata = {**owner, "creationTimestamp": stamp(created)}
    return [
        running(f"web-{index}", one, change={"metadata": metadata}, **changes)
        for index, one in enumerate(requests)
    ]


class Play:
    """A workload of four pods whose memory is to fall from 1G to 500M, with the operator's writes to it."""

    def __init__(self, spec: Mapping[str, Any], kind: str = "Deployment", change: Any = None) -> None:
        reference = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}
        one = hvpa(merged(spec, reference))
        target = workload(PODS, [container(requests=LARGE)], change, kind)
        wanted = vpa({"app": SMALL}, change={"spec": reference})
        self.kind = kind
        self.seen: Objects = objects(one, target, None, wanted, pods_of(kind, *[LARGE] * PODS))
        self.asked: list[Pod] = []

    @property
    def target(self) -> Workload:
        assert self.seen.workload is not None
        return self.seen.workload

    def decide(self, now: dt.datetime = NOW) -> Decision:
        """Decide, and write what was decided."""
        found = decided(self.seen, now)
        self.seen = replace(self.seen, hvpa=with_status(self.seen.hvpa, found.status))
        if found.workload_patch is not None:
            self.patch(found.workload_patch.body)
        return found

    def patch(self, body: Mapping[str, Any]) -> None:
        document = msgspec.to_builtins(self.target)
        spec = dict(body.get("spec", {}))
        template = spec.pop("template", {"spec": {"containers": []}})
        by_name = {one["name"]: one for one in document["spec"]["template"]["spec"]["containers"]}
        for entry in template["spec"]["containers"]:
            by_name[entry["name"]] |= {
                "resources": merged(by_name[entry["name"]]["resources"], entry["resources"])
            }
        document["spec"] = merged(document["spec"], spec)
        document["metadata"]["annotations"] = {
            **document["metadata"].get("annotations", {}),
            **body["metadata"].get("annotations", {}),
        }
        document["metadata"]["generation"] += bool(body.get("spec"))
        self.seen = replace(self.seen, workload=msgspec.convert(document, Workload))

    def replaced(self, updated: int, pods: Sequence[Pod] | None = None, **status: Any) -> None:
        """So many pods are replaced by now, as the workload's controller says."""
        document = msgspec.to_builtins(self.target)
        document["status"] |= {
            "observedGeneration": document["metadata"]["generation"],
            "updatedReplicas": updated,
            **status,
        }
        found = pods or pods_of(self.kind, *[SMALL] * updated, *[LARGE] * (PODS - updated))
        self.seen = replace(self.seen, workload=msgspec.convert(document, Workload), pods=tuple(found))

    def wants(self, memory: str) -> None:
        reference = {"targetRef": {"apiVersion": "apps/v1", "kind": self.kind, "name": "web"}}
        self.seen = replace(
            self.seen, vpas=(vpa({"app": {"cpu": "1", "memory": memory}}, change={"spec": reference}),)
        )

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.target.metadata.annotations[ROLLOUT])
        return found

    @property
    def memory(self) -> object:
        return self.target.spec.template.spec.containers[0].resources.requests["memory"]


def written(found: Decision) -> dict[str, Any]:
    """The fields of the workload's spec that a decision writes."""
    assert found.workload_patch is not None
    spec: Any = found.workload_patch.body["spec"]
    return dict(spec)


def test_without_windows_and_canary_there_is_nothing_to_remember() -> None:
    play = Play(BASE)
    play.decide()
    assert (play.memory, ROLLOUT in play.target.metadata.annotations) == ("500M", False)


# --- at the end of a maintenance window ------------------------------------------------------------------------------
def test_a_rollout_that_runs_past_its_window_is_held_and_goes_on_in_the_next() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    assert (play.record["up"], play.record["down"], play.record["held"]) == (False, True, False)
    play.replaced(1)
    assert play.decide(OPEN).workload_patch is None
    held = play.decide(CLOSED)
    assert written(held) == {"paused": True}
    assert held.status.rollout is not None
    assert (held.status.rollout.reason, held.status.rollout.until) == ("MaintenanceWindow", at(hours=23.5))
    assert [one.reason for one in held.events if one.reason.startswith("Rollout")] == ["RolloutHeld"]
    assert condition(held, "ScalingBlocked").message == (
        "rollout held by MaintenanceWindow until 2026-11-22T09:30:00Z: 1 of 4 pods are replaced; the others follow in "
        "the next maintenance window"
    )
    play.replaced(1)
    later = play.decide(CLOSED + dt.timedelta(hours=3))
    assert later.workload_patch is None
    assert condition(later, "Ready").status == "True"
    on = play.decide(OPEN + dt.timedelta(days=1))
    assert written(on) == {"paused": None}
    assert on.status.rollout is None
    assert [one.reason for one in on.events if one.reason.startswith("Rollout")] == ["RolloutResumed"]
    play.replaced(PODS)
    assert play.decide(CLOSED + dt.timedelta(days=1)).workload_patch is None


def test_a_rollout_that_is_through_by_the_end_of_the_window_is_not_held() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.replaced(PODS)
    assert play.decide(CLOSED).workload_patch is None


def test_a_rollout_that_the_controller_has_not_seen_yet_is_not_held_yet() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    assert play.decide(CLOSED).workload_patch is None


def test_a_rollout_of_somebody_else_is_not_held() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.patch({"metadata": {}, "spec": {"progressDeadlineSeconds": 60}})  # a new image, say
    play.replaced(1)
    assert play.decide(CLOSED).workload_patch is None


def test_what_somebody_else_lets_go_on_is_not_held_again() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.replaced(1)
    play.decide(CLOSED)
    play.patch({"metadata": {}, "spec": {"paused": False}})
    play.replaced(2)
    found = play.decide(CLOSED)
    assert (found.workload_patch, found.status.rollout) == (None, None)


@pytest.mark.parametrize(
    ("kind", "goes_on"),
    [
        ("Deployment", {"paused": None}),
        ("StatefulSet", {"updateStrategy": {"rollingUpdate": {"partition": 0}}}),
        ("DaemonSet", {"updateStrategy": {"type": "RollingUpdate"}}),
    ],
)
def test_a_held_rollout_goes_on_though_somebody_else_changed_the_workload(
    kind: str, goes_on: Mapping[str, Any]
) -> None:
    play = Play(IN_WINDOWS, kind)
    play.decide(OPEN)
    play.replaced(1)
    play.decide(CLOSED)
    play.patch({"metadata": {}, "spec": {"minReadySeconds": 1}})
    play.replaced(1)
    assert written(play.decide(OPEN + dt.timedelta(days=1))) == goes_on


def test_a_workload_that_its_user_paused_stays_so() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.patch({"metadata": {}, "spec": {"paused": True}})
    play.replaced(1)
    assert play.decide(CLOSED).workload_patch is None
    assert play.decide(OPEN + dt.timedelta(days=1)).workload_patch is None


def test_in_another_mode_nothing_is_done_and_the_status_still_says_what_holds() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.replaced(1)
    play.decide(CLOSED)
    paused = hvpa(merged(IN_WINDOWS, {"mode": "Paused"}))
    play.seen = replace(play.seen, hvpa=with_status(paused, play.seen.hvpa.status))
    found = play.decide(OPEN + dt.timedelta(days=1))
    assert found.workload_patch is None
    assert found.status.rollout is not None
    assert (found.status.rollout.reason, found.status.rollout.message) == (
        "Paused",
        "1 of 4 pods are replaced; the others follow in mode Apply",
    )


def test_what_is_switched_off_meanwhile_stays_held() -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.replaced(1)
    play.decide(CLOSED)
    off = hvpa(merged(IN_WINDOWS, {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}))
    play.seen = replace(play.seen, hvpa=with_status(off, play.seen.hvpa.status))
    assert play.decide(OPEN + dt.timedelta(days=1)).workload_patch is None


def test_a_change_that_may_be_made_outside_of_windows_lets_the_rollout_go_on_with_it() -> None:
    spec = merged(IN_WINDOWS, {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Auto"}}}})
    play = Play(spec)
    play.decide(OPEN)
    play.replaced(1)
    play.decide(CLOSED)
    play.replaced(1)
    play.wants("2G")
    found = play.decide(CLOSED + dt.timedelta(hours=1))
    assert (play.memory, written(found)["paused"]) == ("2G", None)
    assert (play.record["up"], play.record["held"]) == (True, False)


def test_a_stateful_set_is_held_by_its_partition() -> None:
    own = {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}}
    play = Play(IN_WINDOWS, "StatefulSet", own)
    play.decide(OPEN)
    play.replaced(1)
    assert written(play.decide(CLOSED)) == {"updateStrategy": {"rollingUpdate": {"partition": 3}}}
    play.replaced(1)
    assert play.decide(CLOSED + dt.timedelta(hours=1)).workload_patch is None
    on = play.decide(OPEN + dt.timedelta(days=1))
    assert written(on) == {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
    play.replaced(3)
    assert play.decide(CLOSED + dt.timedelta(days=1)).workload_patch is None


def test_a_daemon_set_is_held_by_its_update_strategy() -> None:
    own = {"spec": {"updateStrategy": {"type": "RollingUpdate"}}}
    play = Play(IN_WINDOWS, "DaemonSet", own)
    play.decide(OPEN)
    play.replaced(1)
    assert written(play.decide(CLOSED)) == {"updateStrategy": {"type": "OnDelete"}}
    play.replaced(1)
    assert written(play.decide(OPEN + dt.timedelta(days=1))) == {"updateStrategy": {"type": "RollingUpdate"}}


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_pods_that_are_replaced_by_hand_are_no_rollout(kind: str) -> None:
    play = Play(IN_WINDOWS, kind, {"spec": {"updateStrategy": {"type": "OnDelete"}}})
    play.decide(OPEN)
    play.replaced(1)
    assert play.decide(CLOSED).workload_patch is None


def test_kinds_that_never_replace_pods_have_no_record() -> None:
    play = Play(IN_WINDOWS, "ReplicaSet")
    play.decide(OPEN)
    assert (play.memory, ROLLOUT in play.target.metadata.annotations) == ("500M", False)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"generation": -1}', '{"generation": "x", "since": 3}', "[" * 99_999]
)
def test_a_record_that_cannot_be_read_counts_as_none(text: str) -> None:
    play = Play(IN_WINDOWS)
    play.decide(OPEN)
    play.replaced(1)
    play.patch({"metadata": {"annotations": {ROLLOUT: text}}})
    assert play.decide(CLOSED).workload_patch is None


# --- a size is tried on the first pods -------------------------------------------------------------------------------
def test_the_first_pods_that_are_replaced_show_whether_the_size_is_right() -> None:
    play = Play(TRIED)
    play.decide()
    assert play.record["previous"] == [{"name": "app", "requests": {"memory": "1G"}, "limits": {}}]
    assert play.decide().workload_patch is None, "no pod is replaced yet"
    play.replaced(1)
    held = play.decide(at(minutes=1))
    assert written(held) == {"paused": True}
    assert held.status.rollout is not None
    assert (held.status.rollout.reason, held.status.rollout.until) == ("Canary", at(minutes=10))
    play.replaced(1)
    play.wants("400M")
    waits = play.decide(at(minutes=5))
    assert (waits.workload_patch, [one.reason for one in waits.blocked]) == (None, ["Canary"])
    play.wants("500M")
    on = play.decide(at(minutes=11))
    assert (written(on), on.status.rollout) == ({"paused": None}, None)
    assert "previous" not in play.record
    play.replaced(2)
    assert play.decide(at(minutes=12)).workload_patch is None


def test_a_stateful_set_replaces_no_more_than_the_first_pods() -> None:
    play = Play(TRIED, "StatefulSet")
    found = play.decide()
    assert written(found)["updateStrategy"] == {"rollingUpdate": {"partition": 3}}
    play.replaced(1)
    play.decide(at(minutes=1))
    on = play.decide(at(minutes=11))
    assert written(on) == {"updateStrategy": {"rollingUpdate": {"partition": 0}}}


def test_where_all_pods_are_replaced_at_once_nothing_is_held_and_all_are_tried() -> None:
    play = Play(TRIED)
    play.decide()
    play.replaced(PODS)
    assert play.decide(at(minutes=1)).workload_patch is None
    over = play.decide(at(minutes=11))
    assert (written(over), "previous" in play.record) == ({}, False)
    assert play.target.metadata.generation == 2


def failing(kind: str = "Deployment", **changes: Any) -> list[Pod]:
    bad = pods_of(kind, SMALL, **changes)
    return [*bad, *pods_of(kind, SMALL, LARGE, LARGE, LARGE)[1:]]


KILLED = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(at(minutes=2))}}


def out_of_memory(kind: str = "Deployment") -> list[Pod]:
    first, *others = failing(kind)
    document = msgspec.to_builtins(first)
    document["status"]["containerStatuses"][0]["lastState"] = KILLED
    return [msgspec.convert(document, Pod), *others]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_size_that_fails_is_taken_back_and_not_tried_again_for_a_day(kind: str) -> None:
    play = Play(TRIED, kind)
    play.decide()
    play.replaced(1)
    play.decide(at(minutes=1))
    play.replaced(1, out_of_memory(kind))
    found = play.decide(at(minutes=3))
    assert play.memory == "1G"
    assert not play.target.spec.paused
    assert play.record["held"] is False
    assert found.status.rolled_back is not None
    assert found.status.rolled_back.message == "pod web-0: container app ran out of memory"
    assert [one.message for one in found.events if one.reason == "RolledBack"] == [
        "memory 500M -> 1G of app: pod web-0: container app ran out of memory"
    ]
    play.replaced(PODS, pods_of(kind, *[LARGE] * PODS))
    waits = play.decide(at(hours=1))
    assert (waits.workload_patch, waits.status.last_blocked_scaling[0].reason) == (None, "RolledBack")
    again = play.decide(at(days=1, minutes=4))
    assert (play.memory, again.workload_patch is None) == ("500M", False)


def test_of_several_containers_only_those_that_were_changed_are_taken_back() -> None:
    play = Play(TRIED)
    two = [container(requests=LARGE), container("second")]
    play.seen = replace(play.seen, workload=workload(PODS, two))
    play.decide()
    assert [one["name"] for one in play.record["previous"]] == ["app"]
    first = msgspec.to_builtins(out_of_memory()[0])
    first["spec"]["containers"].append(container("second"))
    play.replaced(1, [msgspec.convert(first, Pod), *out_of_memory()[1:]])
    found = play.decide(at(minutes=3))
    assert [one["name"] for one in written(found)["template"]["spec"]["containers"]] == ["app"]


def test_what_was_taken_back_is_known_though_the_operator_was_killed_before_it_wrote_the_status() -> None:
    play = Play(TRIED)
    play.decide()
    play.replaced(1)
    play.decide(at(minutes=1))
    play.replaced(1, out_of_memory())
    before = play.seen.hvpa
    play.decide(at(minutes=3))
    play.seen = replace(play.seen, hvpa=before)
    play.replaced(PODS, pods_of("Deployment", *[LARGE] * PODS))
    found = play.decide(at(minutes=4))
    assert found.workload_patch is None
    assert found.status.rolled_back is not None
    assert found.status.rolled_back.count == 1


def test_a_pod_that_is_not_ready_in_time_fails() -> None:
    play = Play(TRIED)
    play.decide()
    play.replaced(1)
    play.decide(at(minutes=1))
    play.replaced(1, failing(ready=False))
    assert play.decide(at(minutes=9)).workload_patch is None
    play.decide(at(minutes=11))
    assert play.memory == "1G"


def test_a_size_that_is_taken_back_is_not_held_by_a_window() -> None:
    play = Play(merged(IN_WINDOWS, {"updateStrategy": {"canary": CANARY}}))
    play.decide(OPEN)
    play.replaced(1)
    play.decide(OPEN)
    play.replaced(1, out_of_memory())
    found = play.decide(CLOSED)
    assert (play.memory, found.status.rollout) == ("1G", None)
    play.replaced(2, pods_of("Deployment", LARGE, LARGE, SMALL, SMALL))
    assert play.decide(CLOSED).workload_patch is None


def test_a_size_that_was_tried_waits_for_the_window_with_the_other_pods() -> None:
    play = Play(merged(IN_WINDOWS, {"updateStrategy": {"canary": CANARY}}))
    play.decide(OPEN)
    play.replaced(1)
    play.decide(OPEN)
    play.replaced(1)
    over = play.decide(CLOSED)
    assert (written(over), "previous" in play.record, play.record["held"]) == ({}, False, True)
    assert over.status.rollout is not None
    assert over.status.rollout.reason == "MaintenanceWindow"
    assert written(play.decide(OPEN + dt.timedelta(days=1))) == {"paused": None}


def test_a_canary_that_is_taken_from_the_spec_is_over() -> None:
    play = Play(TRIED)
    play.decide()
    play.replaced(1)
    play.decide(at(minutes=1))
    play.replaced(1)
    play.seen = replace(play.seen, hvpa=with_status(hvpa(BASE), play.seen.hvpa.status))
    assert written(play.decide(at(minutes=2))) == {"paused": None}


def test_replicas_go_on_while_a_rollout_is_held_and_it_stays_the_operators() -> None:
    both = {"hpa": {"deploy": True}, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    play = Play(merged(TRIED, both))
    play.decide()
    play.replaced(1)
    play.decide(at(minutes=1))
    play.replaced(1)
    play.seen = replace(play.seen, hpas=(hpa(8, 100, replicas=PODS),))
    found = play.decide(at(minutes=2))
    assert written(found) == {"replicas": 6}
    assert play.record["generation"] == play.target.metadata.generation
    assert (play.record["held"], play.target.spec.paused) == (True, True)


# --- InPlaceOrRollout: pods that can't be resized --------------------------------------------------------------------
IN_PLACE = {"updateStrategy": {"type": "InPlaceOrRollout", "timeout": "1s"}}


def falls(spec: Mapping[str, Any], memory: str = "500M") -> Play:
    """Pods that their kubelets do not resize: all are of the old size, and the template is patched."""
    play = Play(merged(spec, IN_PLACE))
    stuck = resize_condition("PodResizePending", "Infeasible", generation=0)
    old = pods_of("Deployment", *[LARGE] * PODS, created=at(hours=-2), conditions=[stuck])
    play.seen = replace(play.seen, pods=tuple(old))
    play.decide()
    sized = {
        "spec": {"containers": [container(requests={"cpu": "1", "memory": memory})]},
        "status": {"containerStatuses": [{"name": "app", "resources": {"requests": LARGE}}]},
    }
    asked = [msgspec.convert(merged(msgspec.to_builtins(one), sized), Pod) for one in old]
    play.seen = replace(play.seen, pods=tuple(asked))
    found = play.decide(at(seconds=30))
    assert (play.memory, found.workload_patch is None) == (memory, False)
    play.asked = asked
    return play


def test_a_fall_to_the_template_is_held_at_the_end_of_its_window_as_well() -> None:
    play = falls(IN_WINDOWS)
    assert (play.record["down"], play.record["held"]) == (True, False)
    play.replaced(1, [*pods_of("Deployment", SMALL), *play.asked[1:]])
    assert written(play.decide(CLOSED)) == {"paused": True}
    play.replaced(1, [*pods_of("Deployment", SMALL), *play.asked[1:]])
    on = play.decide(OPEN + dt.timedelta(days=1))
    assert (written(on), on.status.rollout) == ({"paused": None}, None)


def test_replicas_that_are_written_during_a_fall_carry_its_record_on() -> None:
    both = {"hpa": {"deploy": True}, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
    play = falls(merged(IN_WINDOWS, both), "750M")
    play.replaced(1, [*pods_of("Deployment", {"cpu": "1", "memory": "750M"}), *play.asked[1:]])
    play.seen = replace(play.seen, hpas=(hpa(8, 100, replicas=PODS),))
    found = play.decide(at(minutes=1))
    assert (written(found), found.workload_patch and found.workload_patch.is_scale) == (
        {"replicas": 6},
        False,
    )
    assert play.record["generation"] == play.target.metadata.generation


def test_a_size_that_fails_after_the_fall_is_taken_back_in_the_template_too() -> None:
    play = falls(merged(BASE, {"updateStrategy": {"canary": CANARY}}))
    play.replaced(1, [*pods_of("Deployment", SMALL), *play.asked[1:]])
    held = play.decide(at(minutes=1))
    assert written(held) == {"paused": True}
    play.replaced(1, [*out_of_memory()[:1], *play.asked[1:]])
    before = play.seen
    found = play.decide(at(minutes=3))
    assert (play.memory, play.target.spec.paused) == ("1G", False)
    assert found.status.desired is not None
    assert found.status.desired.containers[0].requests["memory"] == "1G"
    assert found.status.rolled_back is not None
    # Killed after the write of the status: the template is taken back by the next decision, and counted once.
    play.seen = replace(before, hvpa=with_status(before.hvpa, found.status))
    again = play.decide(at(minutes=4))
    assert (play.memory, again.status.rolled_back) == ("1G", found.status.rolled_back)


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_kinds_that_never_replace_pods_can_try_no_size(kind: str) -> None:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    one = hvpa(merged(TRIED, {"targetRef": {"apiVersion": version, "kind": kind, "name": "web"}}))
    found = decided(objects(one, workload(PODS, kind=kind)))
    assert condition(found, "Ready").message.startswith(
        f"spec.updateStrategy.canary: a {kind} never replaces pods, so that no size can be tried on some first"
    )


def test_the_status_is_at_rest_while_nothing_changes() -> None:
    play = Play(TRIED)
    play.decide()
    play.replaced(1)
    status: HvpaStatus = play.decide(at(minutes=1)).status
    play.replaced(1)
    assert play.decide(at(minutes=2)).status == status
