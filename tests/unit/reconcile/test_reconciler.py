"""One Hvpa's reconcile, with a cluster and a clock that are fakes, and without an event loop."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import replace

import pytest

from builders import build
from hvpa.api.hvpa.status import LastError
from hvpa.core import Objects
from hvpa.reconcile.ports import Conflict, Overloaded, Unavailable, WriteError
from hvpa.reconcile.reconciler import Result
from tests.unit.reconcile.fakes import KEY, World, scaling_out

FAILED, CONFLICT = Result("failed"), Result("conflict")


def settled(one: Objects, times: int = 1) -> Objects:
    for _ in range(times):
        one = build.apply(one, build.decided(one))
    return one


def test_nothing_is_kept_of_an_hvpa_that_is_gone() -> None:
    world = World(settled(scaling_out()))
    world.reconcile()
    pods = world.one.pods
    kept = sys.getrefcount(pods)
    world.cluster.one = None
    assert world.reconcile() == Result("gone")
    assert world.telemetry.reports == [("forgotten", KEY)]
    assert sys.getrefcount(pods) < kept - 1, "one of them was the cluster's"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"unlisted": ""}, id="until its target's kind is listed"),
        pytest.param(
            {"hvpa": build.hvpa(metadata={"deletionTimestamp": build.LONG_AGO})}, id="being deleted"
        ),
    ],
)
def test_an_hvpa_is_left_alone(change: dict[str, object]) -> None:
    world = World(replace(scaling_out(), **change))  # type: ignore[arg-type]
    assert world.reconcile() == Result("done")
    assert world.cluster.writes == []


def test_the_workload_is_written_first_then_the_status_then_the_rest() -> None:
    world = World(scaling_out())
    assert world.reconcile().outcome == "done"
    order = ["workload", "status", "scale_replicas", "owned", "event"]
    assert world.names() == sorted(world.names(), key=order.index)
    assert world.names()[:2] == ["workload", "status"]
    assert ("applied", "horizontal", "up") in world.telemetry.reports


def test_nothing_is_written_when_nothing_changed() -> None:
    world = World(settled(scaling_out(), 3))
    assert world.reconcile().outcome == "done"
    assert world.names("owned") == []


def test_a_field_of_the_old_status_that_can_t_be_read_is_removed() -> None:
    one = settled(scaling_out(), 3)
    world = World(replace(one, hvpa=replace(one.hvpa, unreadable_status=("lastBlockedScaling", "axes"))))
    world.reconcile()
    assert world.written("status") == [{"lastBlockedScaling": None}]


def test_the_status_patch_holds_only_the_difference() -> None:
    one = settled(scaling_out())
    world = World(one)
    world.cluster.status_is(one.hvpa.status.model_copy(update={"replicas": 99}))
    world.reconcile()
    [patch] = world.written("status")
    assert patch["replicas"] == 6
    assert "targetSelector" not in patch


@pytest.mark.parametrize("write", ["workload", "status", "owned"])
def test_after_a_conflict_no_status_is_written_and_the_key_comes_back(write: str) -> None:
    world = World(scaling_out(), **{write: Conflict("changed")})
    assert world.reconcile() == CONFLICT
    assert "status" not in world.names() or write == "owned"
    assert ("event" in world.names()) == (write != "workload"), "events of a step that was made are not lost"


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
    for _ in range(4):
        assert world.reconcile() == CONFLICT
        assert "WriteFailed" not in world.events()
    assert world.reconcile() == CONFLICT
    assert world.events().count("WriteFailed") == 1
    assert world.conditions()["Ready"] == ("False", "WriteFailed")
    assert world.conditions()["VpaActive"] == ("False", "NoRecommendation")
    error = world.status.last_error
    assert error is not None
    assert error.last_operation == operation
    assert error.description.startswith("conflicts repeat")
    assert error.description.endswith("the object has been modified")

    world.change(vpas=())
    world.reconcile()
    assert world.conditions()["Ready"] == ("False", "WriteFailed")
    assert world.conditions()["VpaActive"] == ("False", "VpaCreated")
    assert "WriteFailed" not in world.events()

    del world.cluster.failures[write]
    assert world.reconcile().outcome == "done"
    assert world.conditions()["Ready"][1] != "WriteFailed"
    assert world.status.last_error is None


@pytest.mark.parametrize(
    ("error", "unreported"),
    [
        pytest.param(Conflict("changed"), 4, id="conflicts"),
        pytest.param(Unavailable("no answer in time"), 2, id="no response"),
    ],
)
def test_failures_in_a_row_are_counted_anew_after_a_write_that_gets_through(
    error: WriteError, unreported: int
) -> None:
    world = World(scaling_out())
    for _ in range(3):
        world.cluster.failures["workload"] = error
        for _ in range(unreported):
            assert world.reconcile() in (CONFLICT, FAILED)
            assert world.names() == []
        del world.cluster.failures["workload"]
        assert world.reconcile().outcome == "done"
        assert "WriteFailed" not in world.events()
        assert all("lastError" not in patch for patch in world.written("status"))
        world.change(hvpa=scaling_out().hvpa)


def test_conflicts_of_the_status_itself_are_an_event() -> None:
    world = World(scaling_out(), status=Conflict("the object has been modified"))
    found = []
    for _ in range(8):
        assert world.reconcile() == CONFLICT
        found += [one.message for one in world.written("event") if one.reason == "WriteFailed"]
    [message] = found
    assert message.startswith("PatchStatus: conflicts repeat")


def test_an_overloaded_server_is_given_the_time_it_asks_for() -> None:
    wait = dt.timedelta(seconds=7)
    world = World(scaling_out(), workload=Overloaded("slow down", wait))
    assert world.reconcile() == Result("overloaded", wait)
    assert world.names() == []


def test_a_failed_write_is_reported_in_the_status_once() -> None:
    world = World(scaling_out(), workload=WriteError("denied by webhook"))
    assert world.reconcile() == FAILED
    assert world.names() == ["status", "event"]
    [patch] = world.written("status")
    assert patch["lastError"] == {
        "description": "denied by webhook",
        "lastOperation": "PatchWorkload",
        "lastUpdateTime": "2026-11-21T10:00:00Z",
    }
    assert world.conditions()["Ready"] == ("False", "WriteFailed")
    assert world.conditions()["HpaActive"] == ("True", "Recommending")
    assert "lastScaling" not in patch
    assert "horizontal" not in patch["axes"], "nothing was scaled"
    [event] = world.written("event")
    assert (event.type, event.reason) == ("Warning", "WriteFailed")
    assert world.reconcile(minutes=1) == FAILED
    assert world.names() == []


def test_conditions_go_on_while_a_write_keeps_failing() -> None:
    world = World(scaling_out(), workload=WriteError("denied"))
    world.reconcile()
    silent = [{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}]
    hpa = build.hpa(desired=6, utilization=None, change={"status": {"conditions": silent}})
    world.change(hpas=(hpa,), vpas=(build.vpa({"app": {"cpu": "3"}}),))
    assert world.reconcile() == FAILED
    assert world.conditions()["HpaActive"] == ("False", "FailedGetResourceMetric")
    assert world.conditions()["Ready"] == ("False", "WriteFailed")


def test_a_write_without_an_answer_is_reported_after_three_failures_in_a_row() -> None:
    world = World(scaling_out(), workload=Unavailable("no answer in time"))
    for names in ([], [], ["status", "event"]):
        assert world.reconcile() == FAILED
        assert world.names() == names


def test_an_error_is_taken_back_only_when_every_write_got_through() -> None:
    world = World(build.objects(vertical=build.vpa()), owned=WriteError("quota"))  # the HPA is to be created
    error = LastError(description="quota", last_operation="ChangeOwned", last_update_time=build.NOW)
    world.cluster.status_is(world.status.model_copy(update={"last_error": error}))
    assert world.reconcile() == FAILED
    assert all("lastError" not in patch for patch in world.written("status"))
    del world.cluster.failures["owned"]
    assert world.reconcile().outcome == "done"
    assert world.written("status")[-1]["lastError"] is None


def test_a_failed_status_write_is_not_answered_with_another() -> None:
    world = World(scaling_out(), status=WriteError("no"))
    assert world.reconcile() == FAILED
    assert world.names()[0] == "workload"
    assert "status" not in world.names()


def test_an_exception_of_the_port_stays_with_its_hvpa() -> None:
    world = World(scaling_out(), objects=RuntimeError("bug"))
    assert world.reconcile() == Result("crashed")
    assert ("write failed", "Decide", "crashed") in world.telemetry.reports


def test_an_exception_while_deciding_is_reported_in_the_status() -> None:
    one = scaling_out()
    world = World(replace(one, hvpa=replace(one.hvpa, spec="not a spec")))  # type: ignore[arg-type]
    assert world.reconcile() == Result("crashed")
    [patch] = world.written("status")
    assert patch["lastError"]["lastOperation"] == "Decide"


def test_a_block_is_counted_when_it_begins() -> None:
    spec = {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    world = World(replace(scaling_out(), hvpa=build.hvpa(spec)))
    for _ in range(2):
        world.reconcile()
        blocked = [one for one in world.telemetry.reports if one[0] == "blocked"]
        assert blocked == [("blocked", "horizontal", "up", "UpdatePolicy")]
