"""Deletion costs are written before the replicas, and nothing waits for them."""

from __future__ import annotations

from builders import build
from hvpa.core.actuation.removal import LACKS
from hvpa.core.model import DELETION_COST, PodCost
from hvpa.reconcile.ports import Refused, Unavailable
from tests.unit.core.actuation.sized_pods import LARGER, running, size_status
from tests.unit.reconcile.fakes import Harness

BY_SIZE = {"hpa": {"deploy": False}, "updateStrategy": {"type": "InPlace", "podDeletionCost": "BySize"}}
MARK = PodCost("web-1", "web-1", "", LACKS)
UNMARK = PodCost("web-1", "web-1", "", None)


def harness(**failures: Exception) -> Harness:
    """A replica of two goes."""
    hvpa = build.hvpa(BY_SIZE, size_status(1, {"app": {"requests": LARGER}}))
    two = [running("web-0", LARGER), running("web-1")]
    return Harness(build.objects(hvpa, build.workload(2), None, build.vpa({"app": LARGER}), two), **failures)


def heal(web: Harness) -> None:
    """All replicas are written, and the marked pod has its size."""
    marked = {"metadata": {"annotations": {DELETION_COST: LACKS}}}
    web.change(
        workload=build.workload(1, change={"metadata": {"generation": 2}}),
        pods=(running("web-0", LARGER), running("web-1", LARGER, change=marked)),
    )


def test_a_mark_is_written_before_the_replicas() -> None:
    web = harness()
    assert web.reconcile().outcome == "done"
    assert web.names("event", "owned") == ["status", "costs", "workload", "resizes"]
    assert web.written("costs") == [(MARK,)]


def test_a_mark_is_removed_without_any_other_change() -> None:
    web = harness()
    web.reconcile()
    heal(web)
    web.reconcile()
    assert web.written("costs") == [(UNMARK,)]


def test_replicas_are_written_without_marks_that_are_refused() -> None:
    web = harness(costs=Refused("pods is forbidden"))
    assert web.reconcile().outcome == "done"
    assert web.names("event", "owned") == ["status", "costs", "workload", "resizes"]
    (event,) = [event for event in web.written("event") if "podDeletionCost" in event.message]
    assert (event.type, event.reason) == ("Warning", "WriteFailed")
    assert event.message.endswith("(config/deletion-cost): pods is forbidden")
    assert ("write failed", "WritePodCosts", "failed") in web.telemetry.reports


def test_refused_marks_are_tried_again_after_a_minute_and_two_and_reported_once() -> None:
    web = harness(costs=Refused("pods is forbidden"))
    web.reconcile()
    tries = []
    for _ in range(9):
        web.reconcile(seconds=20)
        tries.append(bool(web.written("costs")))
    assert tries == [False, False, True, False, False, False, False, False, True]
    assert not [event for event in web.written("event") if "podDeletionCost" in event.message]
    del web.cluster.failures["costs"]
    web.reconcile(hours=1)
    web.cluster.failures["costs"] = Unavailable("no answer")
    web.reconcile()
    (event,) = [event for event in web.written("event") if "podDeletionCost" in event.message]
    assert event.message == "podDeletionCost has no effect for now: no answer"


def test_an_hvpa_that_does_not_set_costs_writes_none() -> None:
    web = harness()
    strategy = {"updateStrategy": {"podDeletionCost": "Never"}}
    status = size_status(1, {"app": {"requests": LARGER}})
    web.change(hvpa=build.hvpa(build.merged(BY_SIZE, strategy), status))
    web.reconcile()
    assert web.names("event", "owned") == ["status", "workload", "resizes"]
