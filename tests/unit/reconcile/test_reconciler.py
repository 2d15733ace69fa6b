"""One Hvpa's reconcile, with a cluster and a clock that are fakes, and without an event loop."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from hvpa.api.hvpa.status import LastError
from hvpa.core import Objects, Settings
from hvpa.reconcile.ports import Conflict, Key, Overloaded, Unavailable, WriteError
from hvpa.reconcile.reconciler import Reconciler, Result
from tests.unit.reconcile.fakes import FakeClock, FakeCluster, FakeTelemetry, drive

KEY = Key("default", "web")


class World:
    """A reconciler around fakes."""

    def __init__(self, one: Objects | None, **failures: Exception) -> None:
        self.cluster = FakeCluster(one, dict(failures))
        self.clock = FakeClock()
        self.telemetry = FakeTelemetry()
        self.reconciler = Reconciler(self.cluster, self.clock, Settings(), self.telemetry)

    def reconcile(self) -> Result:
        return drive(self.reconciler.reconcile(KEY))

    def written(self, name: str) -> list[Any]:
        return [what for kind, what in self.cluster.writes if kind == name]


def scaling_out() -> Objects:
    return build.objects(horizontal=build.hpa(desired=6, utilization=100), vertical=build.vpa())


def settled(one: Objects) -> Objects:
    return build.apply(one, build.decided(one))


def test_an_hvpa_that_is_gone_is_forgotten() -> None:
    world = World(None)
    assert world.reconcile() == Result("gone")
    assert world.telemetry.told == [("forgotten", KEY)]


def test_an_hvpa_waits_until_its_targets_kind_is_listed() -> None:
    world = World(replace(scaling_out(), unlisted=""))
    assert world.reconcile() == Result("done")
    assert world.cluster.writes == []


def test_nothing_is_kept_of_an_hvpa_that_is_gone() -> None:
    world = World(settled(scaling_out()))
    world.reconcile()
    assert world.cluster.one is not None
    pods = world.cluster.one.pods
    kept = sys.getrefcount(pods)
    world.cluster.one = None
    assert world.reconcile() == Result("gone")
    assert sys.getrefcount(pods) < kept - 1, "one of them was the cluster's"


def test_an_hvpa_that_is_being_deleted_is_left_alone() -> None:
    one = scaling_out()
    meta = build.hvpa(metadata={"deletionTimestamp": build.LONG_AGO})
    world = World(replace(one, hvpa=meta))
    assert world.reconcile() == Result("done")
    assert world.cluster.writes == []


def test_the_workload_is_written_first_then_the_status_then_the_rest() -> None:
    world = World(scaling_out())
    assert world.reconcile().outcome == "done"
    names = world.cluster.names()
    order = ["workload", "status", "scale_replicas", "owned", "event"]
    assert names == sorted(names, key=order.index)
    assert names[:2] == ["workload", "status"]
    assert ("applied", "horizontal", "up") in world.telemetry.told


def test_nothing_is_written_when_nothing_changed() -> None:
    one = scaling_out()
    for _ in range(3):
        one = settled(one)
    world = World(one)
    assert world.reconcile().outcome == "done"
    assert [name for name in world.cluster.names() if name != "owned"] == []


def test_a_field_of_the_old_status_that_can_t_be_read_is_removed() -> None:
    one = scaling_out()
    for _ in range(3):
        one = settled(one)
    world = World(replace(one, hvpa=replace(one.hvpa, unreadable_status=("lastBlockedScaling", "axes"))))
    world.reconcile()
    assert world.written("status") == [{"lastBlockedScaling": None}]


def test_the_status_patch_holds_only_the_difference() -> None:
    one = settled(scaling_out())
    status = one.hvpa.status.model_copy(update={"replicas": 99})
    world = World(replace(one, hvpa=build.with_status(one.hvpa, status)))
    world.reconcile()
    [patch] = world.written("status")
    assert patch["replicas"] == one.hvpa.status.replicas or "replicas" in patch
    assert "targetSelector" not in patch


@pytest.mark.parametrize("write", ["workload", "status", "owned"])
def test_after_a_conflict_no_status_is_written_and_the_key_comes_back(write: str) -> None:
    world = World(scaling_out(), **{write: Conflict("changed")})
    assert world.reconcile() == Result("conflict")
    later = world.cluster.names()
    assert "status" not in later or write == "owned"


def outside_bounds() -> Objects:
    """An Hvpa whose own `spec.replicas` is to be brought inside, before its HPA is created."""
    return build.objects(build.hvpa({"replicas": 99}), vertical=build.vpa())


@pytest.mark.parametrize(
    ("write", "operation", "one"),
    [
        ("workload", "PatchWorkload", scaling_out()),
        ("scale_replicas", "WriteScaleReplicas", outside_bounds()),
        ("owned", "ChangeOwned", scaling_out()),
    ],
)
def test_conflicts_that_repeat_are_reported_and_conditions_go_on(
    write: str, operation: str, one: Objects
) -> None:
    world = World(one, **{write: Conflict("the object has been modified")})
    world.cluster.keeps = True

    def found() -> dict[str, tuple[str, str]]:
        assert world.cluster.one is not None
        return {one.type: (one.status, one.reason) for one in world.cluster.one.hvpa.status.conditions}

    for _ in range(4):
        assert world.reconcile() == Result("conflict")
        assert "WriteFailed" not in [event.reason for event in world.written("event")]
    assert world.reconcile() == Result("conflict")
    assert found()["Ready"] == ("False", "WriteFailed")
    assert found()["VpaActive"] == ("False", "NoRecommendation")
    told = world.cluster.statuses[-1][1].last_error
    assert told is not None
    assert told.last_operation == operation
    assert told.description.startswith("conflicts repeat")
    assert told.description.endswith("the object has been modified")

    assert world.cluster.one is not None
    world.cluster.one = replace(world.cluster.one, vpas=())
    world.reconcile()
    assert found()["Ready"] == ("False", "WriteFailed")
    assert found()["VpaActive"] == ("False", "VpaCreated")
    assert len([event for event in world.written("event") if event.reason == "WriteFailed"]) == 1

    del world.cluster.failures[write]
    assert world.reconcile().outcome == "done"
    assert found()["Ready"][1] != "WriteFailed"
    assert world.cluster.statuses[-1][1].last_error is None


def test_conflicts_in_a_row_are_counted_anew_after_a_write_that_gets_through() -> None:
    world = World(scaling_out())
    for _ in range(3):
        world.cluster.failures["workload"] = Conflict("changed")
        for _ in range(4):
            assert world.reconcile() == Result("conflict")
        del world.cluster.failures["workload"]
        assert world.reconcile().outcome == "done"
    assert "WriteFailed" not in [event.reason for event in world.written("event")]


def test_conflicts_of_the_status_itself_are_an_event() -> None:
    world = World(scaling_out(), status=Conflict("the object has been modified"))
    for _ in range(8):
        assert world.reconcile() == Result("conflict")
    [event] = [one for one in world.written("event") if one.reason == "WriteFailed"]
    assert event.message.startswith("PatchStatus: conflicts repeat")


def test_the_events_of_a_step_are_not_lost_to_a_later_conflict() -> None:
    world = World(scaling_out(), status=Conflict("changed"))
    world.reconcile()
    assert "event" in world.cluster.names()


def test_no_events_are_recorded_for_a_step_that_failed() -> None:
    world = World(scaling_out(), workload=Conflict("changed"))
    world.reconcile()
    assert world.cluster.names() == []


def test_an_overloaded_server_is_given_the_time_it_asks_for() -> None:
    wait = dt.timedelta(seconds=7)
    world = World(scaling_out(), workload=Overloaded("slow down", wait))
    assert world.reconcile() == Result("overloaded", wait)
    assert world.cluster.names() == []


def test_a_refused_write_is_told_in_the_status_once() -> None:
    one = scaling_out()
    world = World(one, workload=WriteError("denied by webhook"))
    assert world.reconcile() == Result("failed")
    assert world.cluster.names() == ["status", "event"]
    [patch] = world.written("status")
    assert patch["lastError"] == {
        "description": "denied by webhook",
        "lastOperation": "PatchWorkload",
        "lastUpdateTime": "2026-11-21T10:00:00Z",
    }
    ready, *others = patch["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "WriteFailed")
    assert {one["type"]: one["reason"] for one in others}["HpaActive"] == "Recommending"
    assert "lastScaling" not in patch
    assert "horizontal" not in patch["axes"], "nothing was scaled"
    [event] = world.written("event")
    assert (event.type, event.reason) == ("Warning", "WriteFailed")
    [(_, status)] = world.cluster.statuses
    world.cluster.status_is(status)
    world.clock.time += dt.timedelta(minutes=1)
    world.cluster.writes.clear()
    assert world.reconcile() == Result("failed")
    assert world.cluster.names() == []


def test_conditions_go_on_while_a_write_keeps_failing() -> None:
    world = World(scaling_out(), workload=WriteError("denied"))
    world.reconcile()
    [(_, status)] = world.cluster.statuses
    world.cluster.status_is(status)
    assert world.cluster.one is not None
    silent = [{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}]
    hpa = build.hpa(desired=6, utilization=None, change={"status": {"conditions": silent}})
    taller = build.vpa({"app": {"cpu": "3"}})
    world.cluster.one = replace(world.cluster.one, hpas=(hpa,), vpas=(taller,))
    assert world.reconcile() == Result("failed")
    found = {one.type: (one.status, one.reason) for one in world.cluster.statuses[-1][1].conditions}
    assert found["HpaActive"] == ("False", "FailedGetResourceMetric")
    assert found["Ready"] == ("False", "WriteFailed")


def test_a_write_without_an_answer_is_reported_after_three_failures_in_a_row() -> None:
    world = World(scaling_out(), workload=Unavailable("no answer in time"))
    for _ in range(2):
        assert world.reconcile() == Result("failed")
        assert world.cluster.names() == []
    assert world.reconcile() == Result("failed")
    assert world.cluster.names() == ["status", "event"]


def test_a_write_that_gets_through_ends_the_row_of_failures() -> None:
    world = World(scaling_out(), workload=Unavailable("no answer in time"))
    for _ in range(3):
        world.cluster.failures["workload"] = Unavailable("no answer in time")
        for _ in range(2):
            assert world.reconcile() == Result("failed")
        del world.cluster.failures["workload"]
        assert world.reconcile().outcome == "done"
    assert "WriteFailed" not in [event.reason for event in world.written("event")]
    assert all("lastError" not in patch for patch in world.written("status"))


def test_an_error_is_taken_back_only_when_every_write_got_through() -> None:
    one = build.objects(vertical=build.vpa())  # the HPA is missing: it is to be created
    told = LastError(description="quota", last_operation="ChangeOwned", last_update_time=build.NOW)
    one = replace(
        one, hvpa=build.with_status(one.hvpa, one.hvpa.status.model_copy(update={"last_error": told}))
    )
    world = World(one, owned=WriteError("quota"))
    assert world.reconcile() == Result("failed")
    assert all("lastError" not in patch for patch in world.written("status"))
    del world.cluster.failures["owned"]
    assert world.reconcile().outcome == "done"
    assert world.written("status")[-1]["lastError"] is None


def test_a_failed_status_write_is_not_answered_with_another() -> None:
    world = World(scaling_out(), status=WriteError("no"))
    assert world.reconcile() == Result("failed")
    assert world.cluster.names()[0] == "workload"
    assert "status" not in world.cluster.names()


def test_an_exception_of_the_port_stays_with_its_hvpa() -> None:
    world = World(scaling_out(), objects=RuntimeError("bug"))
    assert world.reconcile() == Result("crashed")
    assert ("write failed", "Decide", "crashed") in world.telemetry.told


def test_an_exception_while_deciding_is_told_in_the_status() -> None:
    one = scaling_out()
    assert one.hvpa.spec is not None
    broken = replace(one, hvpa=replace(one.hvpa, spec="not a spec"))  # type: ignore[arg-type]
    world = World(broken)
    assert world.reconcile() == Result("crashed")
    [patch] = world.written("status")
    assert patch["lastError"]["lastOperation"] == "Decide"


def test_a_block_is_counted_when_it_begins() -> None:
    spec = {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    one = build.objects(
        build.hvpa(spec), horizontal=build.hpa(desired=6, utilization=100), vertical=build.vpa()
    )
    world = World(one)
    world.reconcile()
    assert ("blocked", "horizontal", "up", "UpdatePolicy") in world.telemetry.told
    world = World(settled(one))
    world.reconcile()
    assert [told for told in world.telemetry.told if told[0] == "blocked"] == []
