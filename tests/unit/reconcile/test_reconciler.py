"""One Hvpa's reconcile, with a cluster and a clock that are fakes, and without an event loop."""

from __future__ import annotations

import datetime as dt
import sys
from dataclasses import replace

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from builders import build
from hvpa.api.hvpa.status import LastError
from hvpa.api.objects.read_models import Meta
from hvpa.core import Objects
from hvpa.core.invariants import Violation
from hvpa.core.model import OwnedChange
from hvpa.reconcile import reconciler
from hvpa.reconcile.ports import Conflict, Overloaded, Refused, Unavailable, WriteError
from hvpa.reconcile.reconciler import ReconcileResult
from tests.unit.core.recommenders.test_adoption import note, noted
from tests.unit.reconcile.fakes import KEY, FakeCluster, Harness, scaling_out

FAILED, CONFLICT = ReconcileResult("failed"), ReconcileResult("conflict")
UNANSWERED = ReconcileResult("failed", is_unanswered=True)


def settled(objects: Objects, times: int = 1) -> Objects:
    for _ in range(times):
        objects = build.apply(objects, build.decided(objects))
    return objects


def test_nothing_is_kept_of_an_hvpa_that_is_gone() -> None:
    harness = Harness(settled(scaling_out()))
    harness.reconcile()
    pods = harness.one.pods
    kept = sys.getrefcount(pods)
    harness.cluster.one = None
    assert harness.reconcile() == ReconcileResult("gone")
    assert harness.telemetry.reports == [("forgotten", KEY)]
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
    harness = Harness(replace(scaling_out(), **change))  # type: ignore[arg-type]
    assert harness.reconcile() == ReconcileResult("done")
    assert harness.cluster.writes == []


def test_the_workload_is_written_first_then_the_status_then_the_rest() -> None:
    harness = Harness(scaling_out())
    assert harness.reconcile().outcome == "done"
    order = ["workload", "status", "scale_replicas", "owned", "event"]
    assert harness.names() == sorted(harness.names(), key=order.index)
    assert harness.names()[:2] == ["workload", "status"]
    assert ("applied", "horizontal", "up") in harness.telemetry.reports


@pytest.mark.parametrize("checks", [True, False])
def test_a_decision_that_breaks_an_invariant_is_logged_and_reported(
    monkeypatch: pytest.MonkeyPatch, checks: bool
) -> None:
    broken = (Violation("capacity", "cpu: 2 of 3 served by 2 pods"),)
    monkeypatch.setattr(reconciler, "violations", lambda observation, decision: broken)
    harness = Harness(scaling_out())
    harness.telemetry.checks_invariants = checks
    with capture_logs() as logs:
        assert harness.reconcile().outcome == "done", "it is carried out all the same"
    assert (("violated", "capacity") in harness.telemetry.reports) is checks
    violations = [(line["namespace"], line["name"], line["found"]) for line in logs if "invariant" in line]
    assert violations == [(*KEY, broken[0].what)] * checks


def test_nothing_is_written_when_nothing_changed() -> None:
    harness = Harness(settled(scaling_out(), 3))
    assert harness.reconcile().outcome == "done"
    assert harness.names("owned") == []


def test_a_field_of_the_old_status_that_can_t_be_read_is_removed() -> None:
    objects = settled(scaling_out(), 3)
    harness = Harness(
        replace(objects, hvpa=replace(objects.hvpa, unreadable_status=("lastBlockedScaling", "axes")))
    )
    harness.reconcile()
    assert harness.written("status") == [{"lastBlockedScaling": None}]


def test_the_status_patch_holds_only_the_difference() -> None:
    objects = settled(scaling_out())
    harness = Harness(objects)
    harness.cluster.status_is(objects.hvpa.status.model_copy(update={"replicas": 99}))
    harness.reconcile()
    [patch] = harness.written("status")
    assert patch["replicas"] == 6
    assert "targetSelector" not in patch


@pytest.mark.parametrize("write", ["workload", "status", "owned"])
def test_after_a_conflict_no_status_is_written_and_the_key_comes_back(write: str) -> None:
    harness = Harness(scaling_out(), **{write: Conflict("changed")})
    assert harness.reconcile() == CONFLICT
    assert "status" not in harness.names() or write == "owned"
    assert ("event" in harness.names()) == (write != "workload"), (
        "events of a step that was made are not lost"
    )


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
    harness = Harness(one, **{write: Conflict("the object has been modified")})
    for _ in range(4):
        assert harness.reconcile() == CONFLICT
        assert "WriteFailed" not in harness.events()
    assert harness.reconcile() == CONFLICT
    assert harness.events().count("WriteFailed") == 1
    assert harness.conditions()["Ready"] == ("False", "WriteFailed")
    assert harness.conditions()["VpaActive"] == ("False", "NoRecommendation")
    error = harness.status.last_error
    assert error is not None
    assert error.last_operation == operation
    assert error.description.startswith("repeated conflicts")
    assert error.description.endswith("the object has been modified")

    harness.change(vpas=())
    harness.reconcile()
    assert harness.conditions()["Ready"] == ("False", "WriteFailed")
    assert harness.conditions()["VpaActive"] == ("False", "VpaCreated")
    assert "WriteFailed" not in harness.events()

    del harness.cluster.failures[write]
    assert harness.reconcile().outcome == "done"
    assert harness.conditions()["Ready"][1] != "WriteFailed"
    assert harness.status.last_error is None


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
    harness = Harness(scaling_out())
    for _ in range(3):
        harness.cluster.failures["workload"] = error
        for _ in range(unreported):
            assert harness.reconcile() in (CONFLICT, UNANSWERED)
            assert harness.names() == []
        del harness.cluster.failures["workload"]
        assert harness.reconcile().outcome == "done"
        assert "WriteFailed" not in harness.events()
        assert all("lastError" not in patch for patch in harness.written("status"))
        harness.change(hvpa=scaling_out().hvpa)


def test_conflicts_of_the_status_itself_are_an_event() -> None:
    harness = Harness(scaling_out(), status=Conflict("the object has been modified"))
    messages = []
    for _ in range(8):
        assert harness.reconcile() == CONFLICT
        messages += [event.message for event in harness.written("event") if event.reason == "WriteFailed"]
    [message] = messages
    assert message.startswith("PatchStatus: repeated conflicts")


def test_an_overloaded_server_is_given_the_time_it_asks_for() -> None:
    wait = dt.timedelta(seconds=7)
    harness = Harness(scaling_out(), workload=Overloaded("slow down", wait))
    assert harness.reconcile() == ReconcileResult("overloaded", wait)
    assert harness.names() == []


def test_a_failed_write_is_reported_in_the_status_once() -> None:
    harness = Harness(scaling_out(), workload=WriteError("denied by webhook"))
    assert harness.reconcile() == FAILED
    assert harness.names() == ["status", "event"]
    [patch] = harness.written("status")
    assert patch["lastError"] == {
        "description": "denied by webhook",
        "lastOperation": "PatchWorkload",
        "lastUpdateTime": "2026-11-21T10:00:00Z",
    }
    assert harness.conditions()["Ready"] == ("False", "WriteFailed")
    assert harness.conditions()["HpaActive"] == ("True", "Recommending")
    assert "lastScaling" not in patch
    assert "horizontal" not in patch["axes"], "nothing was scaled"
    [event] = harness.written("event")
    assert (event.type, event.reason) == ("Warning", "WriteFailed")
    assert harness.reconcile(minutes=1) == FAILED
    assert harness.names() == []


def test_conditions_go_on_while_a_write_keeps_failing() -> None:
    harness = Harness(scaling_out(), workload=WriteError("denied"))
    harness.reconcile()
    silent = [{"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}]
    hpa = build.hpa(desired=6, utilization=None, change={"status": {"conditions": silent}})
    harness.change(hpas=(hpa,), vpas=(build.vpa({"app": {"cpu": "3"}}),))
    assert harness.reconcile() == FAILED
    assert harness.conditions()["HpaActive"] == ("False", "FailedGetResourceMetric")
    assert harness.conditions()["Ready"] == ("False", "WriteFailed")


def test_a_write_without_an_answer_is_reported_after_three_failures_in_a_row() -> None:
    harness = Harness(scaling_out(), workload=Unavailable("no answer in time"))
    for names in ([], [], ["status", "event"]):
        assert harness.reconcile() == UNANSWERED
        assert harness.names() == names


def test_an_error_is_taken_back_only_when_every_write_got_through() -> None:
    harness = Harness(
        build.objects(vertical=build.vpa()), owned=WriteError("quota")
    )  # the HPA is to be created
    error = LastError(description="quota", last_operation="ChangeOwned", last_update_time=build.NOW)
    harness.cluster.status_is(harness.status.model_copy(update={"last_error": error}))
    assert harness.reconcile() == FAILED
    assert all("lastError" not in patch for patch in harness.written("status"))
    del harness.cluster.failures["owned"]
    assert harness.reconcile().outcome == "done"
    assert harness.written("status")[-1]["lastError"] is None


def test_a_failed_status_write_is_not_answered_with_another() -> None:
    harness = Harness(scaling_out(), status=WriteError("no"))
    assert harness.reconcile() == FAILED
    assert harness.names()[0] == "workload"
    assert "status" not in harness.names()


def test_an_exception_of_the_port_stays_with_its_hvpa() -> None:
    harness = Harness(scaling_out(), objects=RuntimeError("bug"))
    with capture_logs():
        assert harness.reconcile() == ReconcileResult("crashed")
    assert ("write failed", "Decide", "crashed") in harness.telemetry.reports


def test_an_exception_while_deciding_is_reported_in_the_status() -> None:
    objects = scaling_out()
    harness = Harness(replace(objects, hvpa=replace(objects.hvpa, spec="not a spec")))  # type: ignore[arg-type]
    assert harness.reconcile() == ReconcileResult("crashed")
    [patch] = harness.written("status")
    assert patch["lastError"]["lastOperation"] == "Decide"


def test_a_block_is_counted_when_it_begins() -> None:
    spec = {"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}
    harness = Harness(replace(scaling_out(), hvpa=build.hvpa(spec)))
    for _ in range(2):
        harness.reconcile()
        blocked = [report for report in harness.telemetry.reports if report[0] == "blocked"]
        assert blocked == [("blocked", "horizontal", "up", "UpdatePolicy")]


class RefusesHpas(FakeCluster):
    """A policy forbids all writes to HPAs."""

    async def change_owned(self, hvpa: Meta, change: OwnedChange) -> None:
        await super().change_owned(hvpa, change)
        if change.kind == "HorizontalPodAutoscaler":
            raise Refused(f"no {change.name}")


def test_a_refused_write_to_an_hpa_holds_up_neither_the_vpa_nor_the_return_of_other_hpas() -> None:
    web = Harness(replace(build.objects(), hpas=(), vpas=()), cluster=RefusesHpas)
    assert web.reconcile().outcome == "failed"
    assert [change.kind for change in web.written("owned")] == [
        "HorizontalPodAutoscaler",
        "VerticalPodAutoscaler",
    ]
    assert web.conditions()["Ready"] == ("False", "WriteFailed")

    former = noted(note(uid="former"))
    second = structs.replace(former, metadata=structs.replace(former.metadata, name="second"))
    web.change(hpas=(former, second))
    assert web.reconcile().outcome == "failed"
    assert [change.name for change in web.written("owned")] == ["by-hand", "second", "web"]
    assert web.status.last_error is not None
    assert web.status.last_error.description == "no by-hand"
