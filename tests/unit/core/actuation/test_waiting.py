"""Resizes that wait for something other than the kubelet: maintenance windows, and pods that ran out of memory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from builders.build import at, container, hvpa, merged, objects, stamp, vpa, workload
from builders.build import decided as decide
from hvpa.api.objects.read_models import Pod
from hvpa.core.model import Decision
from tests.unit.core.actuation.test_pods import LARGER, decision, resized, running

SMALLER = {"cpu": "500m", "memory": "512Mi"}
CLOSED = {"begin": "220000+0000", "end": "230000+0000"}
OPEN = {"begin": "090000+0000", "end": "110000+0000"}
STRATEGY = {"updateStrategy": {"type": "InPlaceOrRollout"}}


def scaling(direction: str, mode: str, window: Mapping[str, str] = CLOSED) -> dict[str, Any]:
    policy = {direction: {"updatePolicy": {"updateMode": mode}}}
    return {"vpa": policy, "maintenanceTimeWindow": window}


def out_of_memory(name: str = "web-1", age: float = 2, **changes: Any) -> Pod:
    """A pod whose container ran out of memory, `age` minutes ago."""
    ended = {"terminated": {"reason": "OOMKilled", "finishedAt": stamp(at(minutes=-age))}}
    found = running(name, **changes)
    (own,) = found.status.container_statuses
    has = {"requests": dict(own.resources.requests)} if own.resources else {}
    statuses = [{"name": "app", "resources": has, "lastState": ended}]
    return running(name, change={"status": {"containerStatuses": statuses}}, **changes)


@pytest.mark.parametrize(
    ("spec", "size", "why"),
    [
        (scaling("scaleUp", "MaintenanceWindow"), LARGER, "held by MaintenanceWindow until 2026-11-21T22:00:00Z"),
        (scaling("scaleUp", "MaintenanceWindow", OPEN), LARGER, ""),
        (scaling("scaleDown", "MaintenanceWindow"), LARGER, ""),
        (scaling("scaleDown", "MaintenanceWindow"), SMALLER, "held by MaintenanceWindow until 2026-11-21T22:00:00Z"),
        (scaling("scaleDown", "MaintenanceWindow", OPEN), SMALLER, ""),
        (scaling("scaleUp", "Off"), LARGER, "held by UpdatePolicy"),
        (scaling("scaleDown", "Off"), {"cpu": "2", "memory": "512Mi"}, "held by UpdatePolicy"),
    ],
)  # fmt: skip
def test_what_was_decided_before_waits_where_its_direction_may_not_be_taken_now(
    spec: Mapping[str, Any], size: Mapping[str, str], why: str
) -> None:
    found = decision([running()], {"requests": size}, spec=spec)
    assert found.status.actuation is not None
    assert (not found.resizes) == bool(why)
    assert found.status.actuation.waiting == 1
    assert found.status.actuation.message == (why and f"pod web-1: {why}")
    if "until" in why:
        assert found.recheck_after is not None
        assert found.recheck_after <= dt.timedelta(hours=12)


def test_a_pod_that_was_created_after_the_decision_gets_its_size_at_any_time() -> None:
    new = running("web-2", change={"metadata": {"creationTimestamp": stamp(at(seconds=-30))}})
    found = decision([running(), new], spec=scaling("scaleUp", "MaintenanceWindow"))
    assert list(resized(found)) == ["web-2"]


def test_a_pod_that_ran_out_of_memory_gets_its_size_at_any_time() -> None:
    found = decision([running("web-2"), out_of_memory()], spec=scaling("scaleUp", "MaintenanceWindow"))
    assert list(resized(found)) == ["web-1"]


def test_memory_is_raised_first_where_it_ran_out() -> None:
    pods = [running("web-0"), out_of_memory(), running("web-2")]
    found = decision(pods)
    assert list(resized(found)) == ["web-1"]
    assert found.status.actuation is not None
    assert found.status.actuation.message == (
        "pod web-0 (and 1 more pods): pod web-1, which ran out of memory, gets its new size first"
    )


@pytest.mark.parametrize(
    "first",
    [
        out_of_memory(requests=LARGER),
        out_of_memory(age=60),
        running("web-1", LARGER),
    ],
    ids=["has its new size", "ran out of memory long before", "did not run out of memory"],
)
def test_the_others_memory_is_raised_once_that_is_confirmed(first: Pod) -> None:
    found = resized(decision([running("web-0"), first, running("web-2")]))
    assert found.keys() - {"web-1"} == {"web-0", "web-2"}


def test_a_pod_that_can_not_be_resized_holds_up_no_other() -> None:
    stuck = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no"}
    ended = out_of_memory(requests=LARGER, has={"requests": {"cpu": "1"}}, conditions=[stuck])
    found = decision([running("web-0"), ended], strategy=STRATEGY["updateStrategy"])
    assert list(resized(found)) == ["web-0"]


def test_cpu_does_not_wait_for_memory() -> None:
    cpu_only = {"requests": {"cpu": "2", "memory": "1Gi"}}
    asked = out_of_memory(requests=LARGER, has={"requests": {"cpu": "1", "memory": "1Gi"}})
    assert "web-0" in resized(decision([running("web-0"), asked], cpu_only))


def starving(**spec: Any) -> Decision:
    """What is decided where a container ran out of memory a minute ago and the VPA wants more for it."""
    pods = [out_of_memory(age=1), running("web-0")]
    one = hvpa(merged({"hpa": {"deploy": False}, **scaling("scaleUp", "MaintenanceWindow")}, spec))
    target = workload(2, [container(requests={"cpu": "1", "memory": "1Gi"})])
    return decide(objects(one, target, None, vpa({"app": {"memory": "2Gi"}}), pods))


def test_memory_that_ran_out_is_raised_outside_of_the_window_where_no_pod_restarts_for_it() -> None:
    found = starving(updateStrategy={"type": "InPlace"})
    assert list(resized(found)) == ["web-1"]
    assert starving().workload_patch is None


def test_the_template_waits_for_the_window_as_well() -> None:
    stuck = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no"}
    pods = [running(requests=SMALLER, conditions=[stuck], has={"requests": LARGER})]
    for window, is_patched in ((CLOSED, False), (OPEN, True)):
        spec = {**scaling("scaleDown", "MaintenanceWindow", window), **STRATEGY}
        found = decision(pods, {"requests": SMALLER}, STRATEGY["updateStrategy"], spec=spec)
        assert (found.workload_patch is not None) == is_patched
