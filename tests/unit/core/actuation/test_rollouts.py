"""Rollouts that the operator begins: held at the end of a maintenance window, tried on the first pods, taken back."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

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
from hvpa.api.hvpa.status import ROLLOUT
from hvpa.api.objects.read_models import Pod, Workload
from hvpa.core.model import Decision
from tests.unit.core.actuation.sized_pods import ended, owned, resize_condition, rolled_back, running

SMALL, LARGE = {"cpu": "1", "memory": "500M"}, {"cpu": "1", "memory": "1G"}
ANY_CHANGE = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}, "stabilizationDuration": "0s"}
IN_WINDOW = {**ANY_CHANGE, "updatePolicy": {"updateMode": "MaintenanceWindow"}}
OPEN, CLOSED, NEXT = NOW, at(hours=1), at(days=1)
"""The window opens half an hour before NOW and closes half an hour after it."""
BASE: Final[dict[str, Any]] = {
    "hpa": {"deploy": False},
    "vpa": {"scaleUp": ANY_CHANGE, "scaleDown": ANY_CHANGE},
    "weightBasedScalingIntervals": [{"vpaWeight": 100}],
}
BOTH_AXES: Final = {"hpa": {"deploy": True}, "weightBasedScalingIntervals": [{"vpaWeight": 50}]}
IN_WINDOWS: Final = {
    **BASE,
    "maintenanceTimeWindow": {"begin": "093000+0000", "end": "103000+0000"},
    "vpa": {"scaleUp": IN_WINDOW, "scaleDown": IN_WINDOW},
}
CANARY: Final = {"updateStrategy": {"canary": {"pods": 1, "duration": "10m"}}}
TRIED: Final = merged(BASE, CANARY)
PODS: Final = 4


def pods_of(kind: str, *requests: Mapping[str, str], created: dt.datetime = NOW, **changes: Any) -> list[Pod]:
    metadata = owned(kind, creationTimestamp=stamp(created))
    return [running(f"web-{index}", size, change=metadata, **changes) for index, size in enumerate(requests)]


class Rollout:
    """A workload of four pods whose memory is to fall from 1G to 500M, with the operator's writes to it."""

    def __init__(self, spec: Mapping[str, Any], kind: str = "Deployment", change: Any = None) -> None:
        self.kind = kind
        self.reference = {"targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}
        target = workload(PODS, [container(requests=LARGE)], change, kind)
        pods = pods_of(kind, *[LARGE] * PODS)
        self.seen = objects(hvpa(merged(spec, self.reference)), target, None, None, pods)
        self.wants("500M")

    @property
    def target(self) -> Workload:
        assert self.seen.workload is not None
        return self.seen.workload

    def wants(self, memory: str) -> None:
        target = vpa({"app": {"cpu": "1", "memory": memory}}, change={"spec": self.reference})
        self.seen = replace(self.seen, vpas=(target,))

    def has_spec(self, spec: Mapping[str, Any]) -> None:
        """The user changes the Hvpa."""
        self.seen = replace(self.seen, hvpa=with_status(hvpa(spec), self.seen.hvpa.status))

    def wants_replicas(self, count: int) -> None:
        self.seen = replace(self.seen, hpas=(hpa(count, 100, replicas=PODS),))

    def decide(self, now: dt.datetime = NOW) -> Decision:
        """Decide, and write what was decided."""
        decision = decided(self.seen, now)
        self.seen = replace(self.seen, hvpa=with_status(self.seen.hvpa, decision.status))
        if decision.workload_patch is not None:
            self.patch(decision.workload_patch.body)
        return decision

    def patch(self, body: Mapping[str, Any]) -> None:
        """A write to the workload, the operator's or another client's."""
        document = msgspec.to_builtins(self.target)
        spec = dict(body.get("spec", {}))
        for entry in spec.pop("template", {"spec": {"containers": []}})["spec"]["containers"]:
            for present in document["spec"]["template"]["spec"]["containers"]:
                if present["name"] == entry["name"]:
                    present["resources"] = merged(present["resources"], entry["resources"])
        annotations = body.get("metadata", {}).get("annotations", {})
        change = {"spec": spec, "metadata": {"annotations": annotations}}
        document = merged(document, change)
        document["metadata"]["generation"] += bool(body.get("spec"))
        self.seen = replace(self.seen, workload=msgspec.convert(document, Workload))

    def replaced(self, updated: int, pods: Sequence[Pod] | None = None) -> None:
        """So many pods are replaced by now, by the workload's controller."""
        document = msgspec.to_builtins(self.target)
        generation = document["metadata"]["generation"]
        document["status"] |= {"observedGeneration": generation, "updatedReplicas": updated}
        present_pods = pods or pods_of(self.kind, *[SMALL] * updated, *[LARGE] * (PODS - updated))
        self.seen = replace(self.seen, workload=msgspec.convert(document, Workload), pods=tuple(present_pods))

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self.target.metadata.annotations[ROLLOUT])
        return record

    @property
    def is_recorded(self) -> bool:
        return ROLLOUT in self.target.metadata.annotations

    @property
    def memory(self) -> object:
        return self.target.spec.template.spec.containers[0].resources.requests["memory"]


def begun(
    spec: Mapping[str, Any] = IN_WINDOWS, kind: str = "Deployment", change: Any = None, updated: int = 1
) -> Rollout:
    """A rollout that has replaced one pod by now, inside its window."""
    rollout = Rollout(spec, kind, change)
    rollout.decide(OPEN)
    rollout.replaced(updated)
    return rollout


def held(spec: Mapping[str, Any] = IN_WINDOWS, kind: str = "Deployment", change: Any = None) -> Rollout:
    """The same when the window has closed and the rollout is held."""
    rollout = begun(spec, kind, change)
    rollout.decide(CLOSED)
    rollout.replaced(1)
    return rollout


def tried(
    spec: Mapping[str, Any] = TRIED, kind: str = "Deployment", pods: Sequence[Pod] | None = None
) -> Rollout:
    """A rollout whose first pod has the new size since a minute, so that it is held; `pods` are there from then on."""
    rollout = begun(spec, kind)
    rollout.decide(at(minutes=1))
    rollout.replaced(1, pods)
    return rollout


def written(decision: Decision) -> dict[str, Any]:
    """The fields of the workload's spec that a decision writes."""
    assert decision.workload_patch is not None
    spec: Any = decision.workload_patch.body["spec"]
    return dict(spec)


def events(decision: Decision) -> list[str]:
    return [event.reason for event in decision.events if event.reason.startswith("Rollout")]


@pytest.mark.parametrize(("spec", "kind"), [(BASE, "Deployment"), (IN_WINDOWS, "ReplicaSet")])
def test_rollout_is_not_recorded_without_maintenance_windows_and_canary(
    spec: Mapping[str, Any], kind: str
) -> None:
    rollout = Rollout(spec, kind)
    rollout.decide()
    assert (rollout.memory, rollout.is_recorded) == ("500M", False)


# --- at the end of a maintenance window ------------------------------------------------------------------------------
def test_maintenance_window_end_holds_a_rollout_that_goes_on_in_the_next() -> None:
    rollout = begun()
    assert (rollout.record["up"], rollout.record["down"], rollout.record["held"]) == (False, True, False)
    assert rollout.decide(OPEN).workload_patch is None
    decision = rollout.decide(CLOSED)
    assert written(decision) == {"paused": True}
    assert decision.status.rollout is not None
    assert (decision.status.rollout.reason, decision.status.rollout.until) == (
        "MaintenanceWindow",
        at(hours=23.5),
    )
    assert events(decision) == ["RolloutHeld"]
    assert condition(decision, "ScalingBlocked").message == (
        "rollout held by MaintenanceWindow until 2026-11-22T09:30:00Z: 1 of 4 pods are replaced; the others follow in "
        "the next maintenance window"
    )
    rollout.replaced(1)
    later = rollout.decide(CLOSED + dt.timedelta(hours=3))
    assert later.workload_patch is None
    assert condition(later, "Ready").status == "True"
    on = rollout.decide(NEXT)
    assert written(on) == {"paused": None}
    assert on.status.rollout is None
    assert events(on) == ["RolloutResumed"]
    rollout.replaced(PODS)
    assert rollout.decide(CLOSED + dt.timedelta(days=1)).workload_patch is None


def another_client_changes(rollout: Rollout, **spec: Any) -> Rollout:
    """Another client changes the workload, a new image, say; its controller has seen it."""
    rollout.patch({"spec": spec})
    rollout.replaced(1)
    return rollout


def unseen() -> Rollout:
    rollout = Rollout(IN_WINDOWS)
    rollout.decide(OPEN)
    return rollout


ON_DELETE: Final = {"spec": {"updateStrategy": {"type": "OnDelete"}}}


@pytest.mark.parametrize(
    "rollout",
    [
        begun(updated=PODS),
        unseen(),
        another_client_changes(begun(), progressDeadlineSeconds=60),
        another_client_changes(held(), paused=False),
        another_client_changes(begun(), paused=True),
        begun(kind="StatefulSet", change=ON_DELETE),
        begun(kind="DaemonSet", change=ON_DELETE),
    ],
    ids=[
        "it is through",
        "its controller has not seen it yet",
        "it is another client's",
        "another client let it go on",
        "its user paused the workload",
        "pods of a StatefulSet are replaced by hand",
        "pods of a DaemonSet are replaced by hand",
    ],
)
def test_maintenance_window_end_does_not_hold_finished_or_foreign_rollouts(rollout: Rollout) -> None:
    decision = rollout.decide(CLOSED)
    assert (decision.workload_patch, decision.status.rollout) == (None, None)
    assert rollout.decide(NEXT).workload_patch is None


def _by_partition(count: int) -> dict[str, Any]:
    return {"updateStrategy": {"rollingUpdate": {"partition": count}}}


@pytest.mark.parametrize(
    ("kind", "own", "holds", "goes_on"),
    [
        ("Deployment", {}, {"paused": True}, {"paused": None}),
        ("StatefulSet", _by_partition(1), _by_partition(3), _by_partition(1)),
        (
            "DaemonSet",
            {},
            {"updateStrategy": {"type": "OnDelete"}},
            {"updateStrategy": {"type": "RollingUpdate"}},
        ),
    ],
)
def test_maintenance_window_end_holds_each_kind_in_its_own_way(
    kind: str, own: Mapping[str, Any], holds: Mapping[str, Any], goes_on: Mapping[str, Any]
) -> None:
    assert written(begun(kind=kind, change={"spec": own}).decide(CLOSED)) == holds
    rollout = held(kind=kind, change={"spec": own})
    assert rollout.decide(CLOSED + dt.timedelta(hours=1)).workload_patch is None
    assert written(rollout.decide(NEXT)) == goes_on
    rollout.replaced(3 if kind == "StatefulSet" else PODS)
    assert rollout.decide(CLOSED + dt.timedelta(days=1)).workload_patch is None, "it is through"
    changed = another_client_changes(held(kind=kind, change={"spec": own}), minReadySeconds=1)
    assert written(changed.decide(NEXT)) == goes_on, "though another client changed the workload"


def test_paused_leaves_a_held_rollout_alone_and_says_so() -> None:
    rollout = held()
    rollout.has_spec({**IN_WINDOWS, "mode": "Paused"})
    decision = rollout.decide(NEXT)
    assert decision.workload_patch is None
    assert decision.status.rollout is not None
    assert (decision.status.rollout.reason, decision.status.rollout.message) == (
        "Paused",
        "1 of 4 pods are replaced; the others follow in mode Apply",
    )


def test_update_policy_off_keeps_a_held_rollout_held() -> None:
    rollout = held()
    rollout.has_spec(merged(IN_WINDOWS, {"vpa": {"scaleDown": {"updatePolicy": {"updateMode": "Off"}}}}))
    assert rollout.decide(NEXT).workload_patch is None


def test_maintenance_window_held_rollout_goes_on_for_a_change_in_mode_auto() -> None:
    rollout = held(merged(IN_WINDOWS, {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "Auto"}}}}))
    rollout.wants("2G")
    decision = rollout.decide(CLOSED + dt.timedelta(hours=1))
    assert (rollout.memory, written(decision)["paused"]) == ("2G", None)
    assert (rollout.record["up"], rollout.record["held"]) == (True, False)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"generation": -1}', '{"generation": "x", "since": 3}', "[" * 99_999]
)
def test_rollout_record_that_cannot_be_read_counts_as_none(text: str) -> None:
    rollout = begun()
    rollout.patch({"metadata": {"annotations": {ROLLOUT: text}}})
    assert rollout.decide(CLOSED).workload_patch is None


# --- a size is tried on the first pods -------------------------------------------------------------------------------
def test_canary_of_a_rollout_holds_it_after_the_first_pods() -> None:
    rollout = Rollout(TRIED)
    rollout.decide()
    assert rollout.record["previous"] == [{"name": "app", "requests": {"memory": "1G"}, "limits": {}}]
    assert rollout.decide().workload_patch is None, "no pod is replaced yet"
    rollout.replaced(1)
    first = rollout.decide(at(minutes=1))
    assert written(first) == {"paused": True}
    assert first.status.rollout is not None
    assert (first.status.rollout.reason, first.status.rollout.until) == ("Canary", at(minutes=10))
    rollout.replaced(1)
    assert rollout.decide(at(minutes=2)).status == first.status, "at rest while nothing changes"
    rollout.wants("400M")
    waits = rollout.decide(at(minutes=5))
    assert (waits.workload_patch, [hold.reason for hold in waits.blocked]) == (None, ["Canary"])
    rollout.wants("500M")
    on = rollout.decide(at(minutes=11))
    assert (written(on), on.status.rollout) == ({"paused": None}, None)
    assert "previous" not in rollout.record
    rollout.replaced(2)
    assert rollout.decide(at(minutes=12)).workload_patch is None


def test_canary_of_a_stateful_set_replaces_only_the_first_pods() -> None:
    assert (
        written(Rollout(TRIED, "StatefulSet").decide())["updateStrategy"]
        == _by_partition(3)["updateStrategy"]
    )
    assert written(tried(kind="StatefulSet").decide(at(minutes=11))) == _by_partition(0)


def test_canary_holds_nothing_where_all_pods_are_replaced_at_once() -> None:
    rollout = begun(TRIED, updated=PODS)
    assert rollout.decide(at(minutes=1)).workload_patch is None
    over = rollout.decide(at(minutes=11))
    assert (written(over), "previous" in rollout.record) == ({}, False)
    assert rollout.target.metadata.generation == 2


def first_pod(kind: str = "Deployment", **changes: Any) -> list[Pod]:
    """All pods, of which the first has the new size, and is changed."""
    return [*pods_of(kind, SMALL, **changes), *pods_of(kind, SMALL, LARGE, LARGE, LARGE)[1:]]


def out_of_memory(kind: str = "Deployment") -> list[Pod]:
    return first_pod(kind, status=ended(at(minutes=2)))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_rolled_back_rollout_is_not_tried_again_for_a_day(kind: str) -> None:
    rollout = tried(kind=kind, pods=out_of_memory(kind))
    decision = rollout.decide(at(minutes=3))
    assert rollout.memory == "1G"
    assert not rollout.target.spec.paused
    assert rollout.record["held"] is False
    why = "pod web-0: container app ran out of memory"
    assert rolled_back(decision).message == why
    assert [event.message for event in decision.events if event.reason == "RolledBack"] == [
        f"memory 500M -> 1G of app: {why}"
    ]
    rollout.replaced(PODS, pods_of(kind, *[LARGE] * PODS))
    waits = rollout.decide(at(hours=1))
    assert (waits.workload_patch, waits.status.last_blocked_scaling[0].reason) == (None, "RolledBack")
    again = rollout.decide(at(days=1, minutes=4))
    assert (rollout.memory, again.workload_patch is None) == ("500M", False)


def test_rolled_back_is_known_after_the_operator_was_killed_before_the_status() -> None:
    rollout = tried(pods=out_of_memory())
    before = rollout.seen.hvpa
    rollout.decide(at(minutes=3))
    rollout.seen = replace(rollout.seen, hvpa=before)
    rollout.replaced(PODS, pods_of("Deployment", *[LARGE] * PODS))
    decision = rollout.decide(at(minutes=4))
    assert decision.workload_patch is None
    assert rolled_back(decision).count == 1


def test_rolled_back_containers_are_only_those_that_were_changed() -> None:
    rollout = Rollout(TRIED)
    rollout.seen = replace(
        rollout.seen, workload=workload(PODS, [container(requests=LARGE), container("second")])
    )
    rollout.decide()
    assert [entry["name"] for entry in rollout.record["previous"]] == ["app"]
    first, *others = out_of_memory()
    document = msgspec.to_builtins(first)
    document["spec"]["containers"].append(container("second"))
    rollout.replaced(1, [msgspec.convert(document, Pod), *others])
    decision = rollout.decide(at(minutes=3))
    assert [entry["name"] for entry in written(decision)["template"]["spec"]["containers"]] == ["app"]


def test_rolled_back_where_a_canary_pod_is_not_ready_in_time() -> None:
    rollout = tried(pods=first_pod(ready=False))
    assert rollout.decide(at(minutes=9)).workload_patch is None
    rollout.decide(at(minutes=11))
    assert rollout.memory == "1G"


def test_maintenance_window_does_not_hold_a_size_that_is_rolled_back() -> None:
    rollout = tried(merged(IN_WINDOWS, CANARY), pods=out_of_memory())
    decision = rollout.decide(CLOSED)
    assert (rollout.memory, decision.status.rollout) == ("1G", None)
    rollout.replaced(2, pods_of("Deployment", LARGE, LARGE, SMALL, SMALL))
    assert rollout.decide(CLOSED).workload_patch is None


def test_maintenance_window_holds_the_other_pods_after_the_canary() -> None:
    rollout = tried(merged(IN_WINDOWS, CANARY))
    over = rollout.decide(CLOSED)
    assert (written(over), "previous" in rollout.record, rollout.record["held"]) == ({}, False, True)
    assert over.status.rollout is not None
    assert over.status.rollout.reason == "MaintenanceWindow"
    assert written(rollout.decide(NEXT)) == {"paused": None}


def test_canary_removed_from_the_spec_lets_the_rollout_go_on() -> None:
    rollout = tried()
    rollout.has_spec(BASE)
    assert written(rollout.decide(at(minutes=2))) == {"paused": None}


def test_canary_that_holds_a_rollout_does_not_hold_replicas() -> None:
    rollout = tried(merged(TRIED, BOTH_AXES))
    rollout.wants_replicas(8)
    assert written(rollout.decide(at(minutes=2))) == {"replicas": 6}
    assert rollout.record["generation"] == rollout.target.metadata.generation
    assert (rollout.record["held"], rollout.target.spec.paused) == (True, True)


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_canary_is_impossible_for_kinds_that_never_replace_pods(kind: str) -> None:
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    manifest = hvpa({**TRIED, "targetRef": {"apiVersion": version, "kind": kind, "name": "web"}})
    decision = decided(objects(manifest, workload(PODS, kind=kind)))
    assert condition(decision, "Ready").message.startswith(
        f"spec.updateStrategy.canary: a {kind} never replaces pods, so HVPA can't try a size on some of them first"
    )


# --- InPlaceOrRollout: pods that can't be resized --------------------------------------------------------------------
def fallen(spec: Mapping[str, Any], memory: str = "500M") -> tuple[Rollout, list[Pod]]:
    """Pods that their kubelets do not resize: the template is patched, and one pod is replaced. Also the old pods."""
    rollout = Rollout(merged(spec, {"updateStrategy": {"type": "InPlaceOrRollout", "timeout": "1s"}}))
    stuck = resize_condition("Pending", "Infeasible", generation=0)
    old = pods_of("Deployment", *[LARGE] * PODS, created=at(hours=-2), conditions=[stuck])
    rollout.seen = replace(rollout.seen, pods=tuple(old))
    rollout.decide()
    size = {"cpu": "1", "memory": memory}
    has = {"status": {"containerStatuses": [{"name": "app", "resources": {"requests": LARGE}}]}}
    change = {"spec": {"containers": [container(requests=size)]}, **has}
    asked = [msgspec.convert(merged(msgspec.to_builtins(pod), change), Pod) for pod in old]
    rollout.seen = replace(rollout.seen, pods=tuple(asked))
    decision = rollout.decide(at(seconds=30))
    assert (rollout.memory, decision.workload_patch is None) == (memory, False)
    rollout.replaced(1, [*pods_of("Deployment", size), *asked[1:]])
    return rollout, asked


def test_maintenance_window_end_holds_a_fall_to_the_template_as_well() -> None:
    rollout, asked = fallen(IN_WINDOWS)
    assert (rollout.record["down"], rollout.record["held"]) == (True, False)
    assert written(rollout.decide(CLOSED)) == {"paused": True}
    rollout.replaced(1, [*pods_of("Deployment", SMALL), *asked[1:]])
    on = rollout.decide(NEXT)
    assert (written(on), on.status.rollout) == ({"paused": None}, None)


def test_replicas_that_are_written_during_a_fall_carry_its_record_on() -> None:
    rollout, _ = fallen(merged(IN_WINDOWS, BOTH_AXES), "750M")
    rollout.wants_replicas(8)
    decision = rollout.decide(at(minutes=1))
    assert written(decision) == {"replicas": 6}
    assert decision.workload_patch is not None
    assert not decision.workload_patch.is_scale
    assert rollout.record["generation"] == rollout.target.metadata.generation


def test_rolled_back_after_a_fall_to_the_template_too() -> None:
    rollout, asked = fallen(TRIED)
    assert written(rollout.decide(at(minutes=1))) == {"paused": True}
    rollout.replaced(1, [out_of_memory()[0], *asked[1:]])
    before = rollout.seen
    decision = rollout.decide(at(minutes=3))
    assert (rollout.memory, rollout.target.spec.paused) == ("1G", False)
    assert decision.status.desired is None, "pods are replaced from the fall on"
    # Killed after the write of the status: the template is taken back by the next decision, and counted once.
    rollout.seen = replace(before, hvpa=with_status(before.hvpa, decision.status))
    again = rollout.decide(at(minutes=4))
    assert (rollout.memory, rolled_back(again)) == ("1G", rolled_back(decision))


# --- a size that no node takes ---------------------------------------------------------------------------------------
def unschedulable(name: str, since: dt.datetime) -> Pod:
    """A pod of the larger size that waits for a node."""
    scheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient memory.",
        "lastTransitionTime": stamp(since),
    }
    change = merged(owned(), {"status": {"phase": "Pending", "conditions": [scheduled]}})
    return running(name, LARGE, ready=False, change=change)


@pytest.mark.parametrize(
    ("minutes", "strategy", "small", "is_taken_back"),
    [
        (7, "Rollout", 3, True),
        (7, "InPlaceOrRollout", 3, True),
        (4, "Rollout", 3, False),
        (7, "Rollout", 0, False),
    ],
)
def test_rolled_back_rollout_of_a_size_that_no_node_takes(
    minutes: int, strategy: str, small: int, is_taken_back: bool
) -> None:
    """Pods of 1G wait for a node, others run with 500M. Where none runs with less, nothing better is known."""
    rollout = Rollout(merged(BASE, {"updateStrategy": {"type": strategy}}))
    waiting = [unschedulable(f"new-{index}", at(minutes=-minutes)) for index in range(PODS - small)]
    rollout.wants("1G")
    rollout.replaced(PODS - small, [*pods_of("Deployment", *[SMALL] * small), *waiting])
    decision = rollout.decide()
    assert (decision.status.rolled_back is not None) == is_taken_back
    if is_taken_back:
        assert rolled_back(decision).message.startswith("pod new-0: 0/3 nodes are available")
        assert rollout.memory == "500M"
        rollout.replaced(PODS)
        assert rollout.decide(at(hours=1)).workload_patch is None, "not tried again for a day"


def test_replicas_go_on_with_the_size_that_is_rolled_back() -> None:
    rollout = Rollout(merged(BASE, BOTH_AXES))
    rollout.wants("1G")
    rollout.wants_replicas(8)
    rollout.replaced(1, [*pods_of("Deployment", *[SMALL] * 3), unschedulable("new-0", at(minutes=-7))])
    decision = rollout.decide()
    assert decision.applied == (("horizontal", "up"),)
    assert (written(decision)["replicas"], rollout.memory) == (5, "500M")
    assert decision.events[0].message.startswith("replicas 4 -> 5, memory 1G -> 500M of app")


def test_rolled_back_also_where_running_pods_were_to_be_resized_first() -> None:
    """A pod's spec names the size that it was to be resized to. It has what the kubelet says, which is 500M."""
    rollout = Rollout(merged(BASE, {"updateStrategy": {"type": "InPlaceOrRollout"}}))
    small = [running(f"old-{index}", LARGE, {"requests": SMALL}) for index in range(PODS - 1)]
    rollout.wants("1G")
    rollout.replaced(1, [*small, unschedulable("new-0", at(minutes=-7))])
    assert rolled_back(rollout.decide()).message.startswith("pod new-0: 0/3 nodes are available")
    assert rollout.memory == "500M"
