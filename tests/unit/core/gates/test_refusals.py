"""What the API server refused is held back, on its axis alone, and tried again later (DESIGN 8)."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import NOW, at
from hvpa.api.hvpa.status import Refusal, RefusedChange
from hvpa.core import Decision, Objects, Observation, Settings, decide, observe
from hvpa.core.gates.refusals import refused_until, wait_of, with_refusal, without_written
from hvpa.core.model import LAST_APPLIED
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from tests.unit.core.trajectory import jointly

CPU = ResourceKey("app", "cpu")
MEMORY = ResourceKey("app", "memory")


def refusal(
    *changes: tuple[int, int],
    key: ResourceKey | None = CPU,
    count: int = 1,
    ago: dt.timedelta = dt.timedelta(),
) -> Refusal:
    """A record of these changes (from, to)."""
    container, resource = key or (None, None)
    found = [
        RefusedChange(container=container, resource=resource, current=now, wanted=wanted)
        for now, wanted in changes
    ]
    return Refusal(count=count, time=NOW - ago, message="no", changes=tuple(found))


def scaling_both(cpu: str = "2") -> Objects:
    """3 replicas of 1 core, of which the HPA wants 7, so that 5 are set; the VPA wants `cpu`, of which half is set."""
    return build.objects(
        horizontal=build.hpa(desired=7, utilization=115), vertical=build.vpa({"app": {"cpu": cpu}})
    )


def seen_of(one: Objects, now: dt.datetime = NOW) -> Observation:
    return observe(one, now, Settings())


def refused(one: Objects, axis: Any, message: str = "denied", now: dt.datetime = NOW) -> Decision:
    """The decision once the API server has refused this axis of the first one."""
    seen = seen_of(one, now)
    return decide(with_refusal(seen, decide(seen), axis, message))


def changes(decision: Decision) -> set[str]:
    """What of the workload's spec is patched."""
    if decision.workload_patch is None:
        return set()
    spec: Any = decision.workload_patch.body["spec"]
    return set(spec)


def condition(decision: Decision, kind: str) -> tuple[str, str, str]:
    found = next(one for one in decision.status.conditions if one.type == kind)
    return found.status, found.reason, found.message


@pytest.mark.parametrize(
    ("current", "wanted", "holds"),
    [
        (1000, 3000, True),  # the same
        (1000, 3100, True),  # more of it
        (1000, 2900, True),  # a little less, as recommendations move
        (1000, 2800, False),  # nearer by a tenth of the change
        (1000, 900, False),  # the other direction
        (1100, 3000, False),  # somebody changed the workload
    ],
)
def test_a_change_waits_where_it_is_the_refused_one(current: int, wanted: int, holds: bool) -> None:
    until = refused_until(refusal((1000, 3000)), Clock(NOW), current, wanted, CPU)
    assert until == (at(minutes=1) if holds else None)


@pytest.mark.parametrize(("wanted", "holds"), [(1, True), (2, True), (3, False), (9, False)])
def test_a_change_downwards_waits_likewise(wanted: int, holds: bool) -> None:
    record = refusal((8, 2), key=None)
    assert (refused_until(record, Clock(NOW), 8, wanted) is not None) == holds


def test_only_what_was_refused_waits() -> None:
    record = refusal((1000, 3000))
    assert refused_until(record, Clock(NOW), 1000, 3000, MEMORY) is None
    assert refused_until(record, Clock(NOW), 1000, 3000) is None
    assert refused_until(None, Clock(NOW), 1000, 3000, CPU) is None


def test_the_wait_doubles_up_to_an_hour() -> None:
    minutes = [wait_of(count).total_seconds() / 60 for count in (1, 2, 3, 6, 7, 8, 10**9)]
    assert minutes == [1, 2, 4, 32, 60, 60, 60]


def test_the_wait_ends() -> None:
    record = refusal((3, 5), key=None, count=3, ago=dt.timedelta(minutes=4))
    assert refused_until(record, Clock(NOW), 3, 5) is None
    assert refused_until(record, Clock(at(minutes=-1)), 3, 5) == NOW


def test_a_time_of_a_clock_that_was_wrong_holds_nothing_back() -> None:
    assert refused_until(refusal((3, 5), key=None, ago=dt.timedelta(hours=-2)), Clock(NOW), 3, 5) is None


def test_without_the_refused_requests_the_replicas_are_written_alone() -> None:
    one = scaling_both()
    assert changes(build.decided(one)) == {"replicas", "template"}
    decision = refused(one, "vertical", "ValidatingAdmissionPolicy 'small' denied request")
    assert changes(decision) == {"replicas"}
    assert decision.applied == (("horizontal", "up"),)
    assert decision.workload_patch is not None
    metadata: Any = decision.workload_patch.body["metadata"]
    record = json.loads(metadata["annotations"][LAST_APPLIED])
    assert record["horizontal"]["appliedFrom"]["replicas"] == 5
    assert record["vertical"] == {}, "nothing was written on this axis"
    axes = decision.status.axes
    assert axes is not None
    assert axes.vertical is not None
    assert (axes.vertical.last_scale_time, axes.vertical.applied_from) == (None, ())
    assert axes.vertical.refused is not None
    assert [
        (one.container, one.resource, one.current, one.wanted) for one in axes.vertical.refused.changes
    ] == [("app", "cpu", 1000, 1500)]


def test_without_the_refused_replicas_the_requests_are_written_alone() -> None:
    decision = refused(scaling_both(), "horizontal")
    assert changes(decision) == {"template"}
    assert decision.workload_patch is not None
    metadata: Any = decision.workload_patch.body["metadata"]
    record = json.loads(metadata["annotations"][LAST_APPLIED])
    assert record["horizontal"] == {}
    assert record["vertical"]["appliedFrom"][0]["request"] == "1500m"
    [held] = decision.blocked
    assert (held.axis, held.reason, held.current, held.wanted) == ("horizontal", "Refused", 3, 5)


def test_the_conditions_say_what_was_refused_and_by_whom_and_when_it_is_tried_again() -> None:
    decision = refused(scaling_both(), "vertical", "ValidatingAdmissionPolicy 'small' denied request")
    said = "the API server refused to change requests: ValidatingAdmissionPolicy 'small' denied request"
    assert condition(decision, "Ready") == (
        "False",
        "Refused",
        f"{said}; retrying at 2026-11-21T10:01:00Z",
    )
    status, reason, message = condition(decision, "ScalingBlocked")
    assert (status, reason) == ("True", "Refused")
    assert message == f"app cpu 1 -> 1500m held by Refused until 2026-11-21T10:01:00Z; {said}"
    [held] = decision.status.last_blocked_scaling
    assert (held.reason, held.axis, held.resource, held.wanted) == ("Refused", "vertical", "cpu", "1500m")
    error = decision.status.last_error
    assert error is not None
    assert (error.last_operation, error.last_update_time) == ("PatchWorkload", NOW)
    assert error.description == "ValidatingAdmissionPolicy 'small' denied request"
    assert ("Warning", "Refused") in {(one.type, one.reason) for one in decision.events}
    assert decision.recheck_after == dt.timedelta(minutes=1)


def test_of_two_refused_axes_both_are_reported() -> None:
    seen = seen_of(scaling_both())
    whole = decide(seen)
    seen = with_refusal(seen, whole, "horizontal", "too many")
    decision = decide(with_refusal(seen, whole, "vertical", "too large"))
    assert decision.workload_patch is None
    message = condition(decision, "Ready")[2]
    assert "to change replicas: too many" in message
    assert "to change requests: too large" in message
    assert decision.status.last_error is not None
    assert {one.reason for one in decision.blocked} == {"Refused"}


def after(one: Objects, decision: Decision) -> Objects:
    """The objects once the decision was written; the HPA wants what there is."""
    done = build.apply(one, decision)
    assert done.workload is not None
    count = done.workload.spec.replicas
    return replace(done, hpas=(build.hpa(desired=count, utilization=50, replicas=count),))


def test_it_waits_for_longer_each_time_and_is_forgotten_once_it_is_written() -> None:
    one = scaling_both()
    one = after(one, refused(one, "vertical"))
    assert build.decided(one, at(seconds=59)).workload_patch is None
    now = at(minutes=1)
    assert changes(build.decided(one, now)) == {"template"}
    second = refused(one, "vertical", now=now)
    assert second.workload_patch is None
    assert second.recheck_after == dt.timedelta(minutes=2)
    assert second.status.axes is not None
    assert second.status.axes.vertical is not None
    assert second.status.axes.vertical.refused is not None
    assert second.status.axes.vertical.refused.count == 2
    one = after(one, second)
    taken = build.decided(one, at(minutes=3))
    assert changes(taken) == {"template"}
    assert taken.status.axes is not None
    assert taken.status.axes.vertical is not None
    assert taken.status.axes.vertical.refused is None
    assert taken.status.last_error is None
    assert condition(taken, "Ready")[:2] == ("True", "Reconciled")


def test_what_is_refused_again_hours_later_is_refused_for_the_first_time() -> None:
    one = scaling_both()
    one = after(one, refused(one, "vertical"))
    later = refused(one, "vertical", now=at(hours=3))
    assert later.recheck_after == dt.timedelta(minutes=1)


def test_another_recommendation_goes_at_once() -> None:
    one = scaling_both(cpu="3")
    one = after(one, refused(one, "vertical"))
    lower = replace(one, vpas=(build.vpa({"app": {"cpu": "1800m"}}),))
    assert changes(build.decided(lower, at(seconds=10))) == {"template"}
    little_lower = replace(one, vpas=(build.vpa({"app": {"cpu": "2900m"}}),))
    assert changes(build.decided(little_lower, at(seconds=10))) == set()


def test_what_waits_still_waits_when_something_else_is_refused_meanwhile() -> None:
    one = scaling_both()
    one = after(one, refused(one, "vertical"))
    both = replace(one, vpas=(build.vpa({"app": {"cpu": "2", "memory": "3Gi"}}),))
    decision = refused(both, "vertical", now=at(seconds=30))
    assert {held.resource for held in decision.blocked} == {"cpu", "memory"}
    assert {held.until for held in decision.blocked} == {at(seconds=30, minutes=2)}
    # Once the wait of the first is over, it was part of what was refused, or it is forgotten.
    lone = replace(one, vpas=(build.vpa({"app": {"cpu": "1", "memory": "3Gi"}}),))
    decision = refused(lone, "vertical", now=at(minutes=5))
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    record = decision.status.axes.vertical.refused
    assert record is not None
    assert [change.resource for change in record.changes] == ["memory"]


def test_of_the_record_what_was_not_written_stays() -> None:
    record = refusal((1000, 3000))
    assert without_written(record, {CPU}) is None
    assert without_written(record, {MEMORY}) == record
    assert without_written(None, {CPU}) is None


def test_the_memory_of_a_starving_container_waits_too() -> None:
    one = build.objects(
        vertical=build.vpa({"app": {"memory": "3Gi"}}),
        horizontal=build.hpa(),
        pods=[build.oom_killed(at(minutes=-1))],
    )
    assert changes(build.decided(one)) == {"template"}
    decision = refused(one, "vertical")
    assert decision.workload_patch is None
    assert [held.reason for held in decision.blocked] == ["Refused"]


def test_with_trajectory_pods_grow_at_once_where_more_replicas_are_refused() -> None:
    """Not only after minutes, although the replicas are tried again in a minute."""
    spec = {**jointly.JOINT, "vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1m"}}}}}
    one = build.objects(
        build.hvpa(spec),
        build.workload(replicas=3),
        jointly.hpa(3, jointly.utilization("cpu", 50, 150, "1500m")),
        build.vpa({"app": {"cpu": "1", "memory": "1Gi"}}),
    )
    whole = build.decided(one)
    assert whole.replicas is not None
    assert whole.replicas.target > 3
    before = whole.containers["app"].requests["cpu"]
    decision = refused(one, "horizontal")
    assert decision.replicas is not None
    assert decision.replicas.target == 3
    assert decision.containers["app"].requests["cpu"] > before
