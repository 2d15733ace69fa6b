"""What was undone, refused or failed is tried again later (DESIGN 8, 11.5)."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from typing import Any, Final

import pytest

from builders import build
from builders.build import NOW, at, condition
from hvpa.api.hvpa.status import (
    FailedChange,
    Refusal,
    RefusedChange,
    RolledBack,
    SetBack,
    VerticalAxis,
)
from hvpa.core import Decision, Objects, decide
from hvpa.core.actuation.refused import with_refusal
from hvpa.core.gates.backoff import (
    contest_wait,
    judge_contest,
    refusal_wait,
    refused_until,
    rollback_wait,
    rollbacks_after,
    rolled_back_until,
    with_rules,
    without_written,
)
from hvpa.core.model import LAST_APPLIED, ScalableObservation
from hvpa.core.path.path import ResourceKey
from hvpa.core.values.clock import Clock
from hvpa.core.workload.managers import manager_of, replicas_set_at
from hvpa.core.workload.nodes import never_resized
from tests.unit.core.trajectory import jointly

CPU: Final = ResourceKey("app", "cpu")
MEMORY: Final = ResourceKey("app", "memory")
POLICY: Final = "ValidatingAdmissionPolicy 'small' denied request"


@pytest.mark.parametrize(
    ("waits", "counts", "expected"),
    [
        (lambda n: contest_wait(n, up=False), (2, 3, 4, 5, 6, 7, 99), (5, 10, 20, 40, 60, 60, 60)),
        (lambda n: contest_wait(n, up=True), (2, 3, 4, 7, 8, 99), (1, 2, 4, 32, 60, 60)),
        (refusal_wait, (1, 2, 3, 6, 7, 8, 10**9), (1, 2, 4, 32, 60, 60, 60)),
        (rollback_wait, (0, 1, 2, 3, 5, 99), (1440, 1440, 2880, 5760, 16 * 1440, 16 * 1440)),
    ],
    ids=["contested on the way down", "contested on the way up", "refused", "rolled back"],
)
def test_contested_refused_and_rolled_back_waits_double_up_to_a_maximum(
    waits: Any, counts: Any, expected: Any
) -> None:
    assert tuple(waits(count).total_seconds() / 60 for count in counts) == expected


# --- what another client undid ----------------------------------------------------------------------------------------
def test_contested_does_not_hold_a_change_that_still_stands() -> None:
    contest = judge_contest(False, None, at(minutes=-1), Clock(NOW))
    assert contest.until(up=True) is None
    assert contest.after_step(NOW) is None
    before = SetBack(count=1, time=at(minutes=-1))
    assert judge_contest(False, before, at(minutes=-3), Clock(NOW)).until(up=True) is None
    assert judge_contest(False, before, at(minutes=-1), Clock(NOW)).after_step(NOW) == before


@pytest.mark.parametrize(
    ("record", "made_again"),
    [
        (None, at(minutes=-1)),
        (SetBack(count=3, time=at(hours=-1)), at(hours=-1)),
        (SetBack(count=4, time=at(hours=2)), at(minutes=-1)),
    ],
    ids=["nothing is recorded", "an hour has passed", "the record's clock was wrong"],
)
def test_contested_first_time_the_change_is_made_again_at_once(
    record: SetBack | None, made_again: dt.datetime
) -> None:
    contest = judge_contest(True, record, made_again, Clock(NOW))
    assert contest.until(up=False) is None
    assert contest.after_step(NOW) == SetBack(count=1, time=NOW)


@pytest.mark.parametrize("later", [0, 1, 4, 6, 59])
def test_contested_second_time_within_an_hour_the_axis_waits(later: int) -> None:
    made_again = at(minutes=-later)
    contest = judge_contest(True, SetBack(count=1, time=made_again), made_again, Clock(NOW))
    for up, wait in ((True, 1), (False, 5)):
        until = contest.until(up=up)
        assert until is not None
        assert NOW < until <= at(minutes=wait, milliseconds=1)
    assert contest.record is not None
    assert contest.record.count == 2


def test_contested_wait_ends_and_the_change_is_made_again() -> None:
    made_again = at(minutes=-10)
    set_back = SetBack(count=2, time=at(minutes=-4))
    waiting = judge_contest(True, set_back, made_again, Clock(NOW))
    assert (waiting.until(up=True), waiting.until(up=False)) == (at(minutes=-3), at(minutes=1))
    assert waiting.record == set_back
    over = judge_contest(True, set_back, made_again, Clock(at(minutes=1)))
    assert over.after_step(at(minutes=1)) == SetBack(count=2, time=at(minutes=1))


def test_contested_at_the_instant_of_the_step_is_counted_once() -> None:
    first = judge_contest(True, SetBack(count=1, time=NOW), NOW, Clock(NOW))
    assert first.record is not None
    assert first.record.count == 2
    assert judge_contest(True, first.record, NOW, Clock(NOW)) == first


def test_contested_names_the_manager_that_set_the_field_last() -> None:
    def entry(manager: str, when: str | None, fields: dict[str, object]) -> dict[str, object]:
        return {"manager": manager, **({"time": when} if when else {}), "fieldsV1": {"f:spec": fields}}

    def of_container(field: str) -> dict[str, object]:
        containers: dict[str, object] = {'k:{"name":"app"}': {field: {"f:requests": {"f:cpu": {}}}}}
        return {"f:template": {"f:spec": {"f:containers": containers}}}

    replicas: dict[str, object] = {"f:replicas": {}}
    resources = of_container("f:resources")
    entries = [
        entry("helm", "2026-11-21T09:00:00Z", replicas | resources),
        entry("kubectl-edit", "2026-11-21T09:30:00Z", resources),
        entry("kustomize", None, replicas),
        entry("kubectl-set", "2026-11-21T09:45:00Z", of_container("f:image")),
        entry("other", "2026-11-21T09:46:00Z", {}),
        entry("hvpa", "2026-11-21T09:50:00Z", replicas | resources),
    ]
    target = build.workload(change={"metadata": {"managedFields": entries}})
    assert manager_of(target, "horizontal") == "helm"
    assert manager_of(target, "vertical") == "kubectl-edit"
    assert manager_of(build.workload(), "vertical") == "an unknown client"
    assert replicas_set_at(target) == at(hours=-1)
    assert replicas_set_at(build.workload()) is None


# --- what the API server refused -------------------------------------------------------------------------------------
def refusal(
    now: int, wanted: int, key: ResourceKey | None = CPU, count: int = 1, minutes: float = 0
) -> Refusal:
    """The record of a change that was refused so many minutes ago."""
    container, resource = key or (None, None)
    change = RefusedChange(container=container, resource=resource, current=now, wanted=wanted)
    return Refusal(count=count, time=at(minutes=-minutes), message="no", changes=(change,))


@pytest.mark.parametrize(
    ("current", "wanted", "holds"),
    [
        pytest.param(1000, 3000, True, id="the same"),
        pytest.param(1000, 3100, True, id="more of it"),
        pytest.param(1000, 2900, True, id="a little less, as recommendations move"),
        pytest.param(1000, 2800, False, id="nearer by a tenth of the change"),
        pytest.param(1000, 900, False, id="the other direction"),
        pytest.param(1100, 3000, False, id="another client changed the workload"),
    ],
)
def test_refused_holds_the_same_change_or_more_of_it(current: int, wanted: int, holds: bool) -> None:
    until = refused_until(refusal(1000, 3000), Clock(NOW), current, wanted, CPU)
    assert until == (at(minutes=1) if holds else None)


@pytest.mark.parametrize(("wanted", "holds"), [(1, True), (2, True), (3, False), (9, False)])
def test_refused_holds_a_change_downwards_likewise(wanted: int, holds: bool) -> None:
    assert (refused_until(refusal(8, 2, key=None), Clock(NOW), 8, wanted) is not None) == holds


def test_refused_holds_only_the_resource_or_axis_that_was_refused() -> None:
    record = refusal(1000, 3000)
    assert refused_until(record, Clock(NOW), 1000, 3000, MEMORY) is None
    assert refused_until(record, Clock(NOW), 1000, 3000) is None
    assert refused_until(None, Clock(NOW), 1000, 3000, CPU) is None


def test_refused_wait_ends() -> None:
    record = refusal(3, 5, key=None, count=3, minutes=4)
    assert refused_until(record, Clock(NOW), 3, 5) is None
    assert refused_until(record, Clock(at(minutes=-1)), 3, 5) == NOW
    wrong_clock = refusal(3, 5, key=None, minutes=-120)
    assert refused_until(wrong_clock, Clock(NOW), 3, 5) is None


def test_refused_record_is_dropped_when_its_change_is_written() -> None:
    record = refusal(1000, 3000)
    assert without_written(record, {CPU}) is None
    assert without_written(record, {MEMORY}) == record
    assert without_written(None, {CPU}) is None


def scaling_both(cpu: str = "2") -> Objects:
    """3 replicas of 1 core, of which the HPA wants 7, so that 5 are set; the VPA wants `cpu`, of which half is set."""
    return build.objects(
        horizontal=build.hpa(desired=7, utilization=115), vertical=build.vpa({"app": {"cpu": cpu}})
    )


def seen_of(objects: Objects, now: dt.datetime = NOW) -> ScalableObservation:
    return build.scalable(objects, now)


def refused(objects: Objects, axis: Any, message: str = "denied", now: dt.datetime = NOW) -> Decision:
    """The decision once the API server has refused this axis of the first one."""
    observation = seen_of(objects, now)
    return decide(with_refusal(observation, decide(observation), axis, message))


def changes(decision: Decision) -> set[str]:
    """What of the workload's spec is patched."""
    if decision.workload_patch is None:
        return set()
    spec: Any = decision.workload_patch.body["spec"]
    return set(spec)


def annotation(decision: Decision) -> dict[str, Any]:
    """What is written to the workload's annotation."""
    assert decision.workload_patch is not None
    metadata: Any = decision.workload_patch.body["metadata"]
    record: dict[str, Any] = json.loads(metadata["annotations"][LAST_APPLIED])
    return record


def vertical_axis(decision: Decision) -> VerticalAxis:
    assert decision.status.axes is not None
    assert decision.status.axes.vertical is not None
    return decision.status.axes.vertical


def test_refused_requests_leave_the_replicas_to_be_written_alone() -> None:
    objects = scaling_both()
    assert changes(build.decided(objects)) == {"replicas", "template"}
    decision = refused(objects, "vertical", POLICY)
    assert changes(decision) == {"replicas"}
    assert decision.applied == (("horizontal", "up"),)
    assert annotation(decision)["horizontal"]["appliedFrom"]["replicas"] == 5
    assert annotation(decision)["vertical"] == {}, "nothing was written on this axis"
    axis = vertical_axis(decision)
    assert (axis.last_scale_time, axis.applied_from) == (None, ())
    assert axis.refused is not None
    assert axis.refused.changes == refusal(1000, 1500).changes


def test_refused_replicas_leave_the_requests_to_be_written_alone() -> None:
    decision = refused(scaling_both(), "horizontal")
    assert changes(decision) == {"template"}
    assert annotation(decision)["horizontal"] == {}
    assert annotation(decision)["vertical"]["appliedFrom"][0]["request"] == "1500m"
    [held] = decision.blocked
    assert (held.axis, held.reason, held.current, held.wanted) == ("horizontal", "Refused", 3, 5)


def test_refused_conditions_say_what_by_whom_and_when_it_is_tried_again() -> None:
    decision = refused(scaling_both(), "vertical", POLICY)
    reported = f"the API server refused to change requests: {POLICY}"
    ready, blocked = condition(decision, "Ready"), condition(decision, "ScalingBlocked")
    assert (ready.status, ready.reason) == ("False", "Refused")
    assert ready.message == f"{reported}; retrying at 2026-11-21T10:01:00Z"
    assert (blocked.status, blocked.reason) == ("True", "Refused")
    assert blocked.message == f"app cpu 1 -> 1500m held by Refused until 2026-11-21T10:01:00Z; {reported}"
    [held] = decision.status.last_blocked_scaling
    assert (held.reason, held.axis, held.resource, held.wanted) == ("Refused", "vertical", "cpu", "1500m")
    error = decision.status.last_error
    assert error is not None
    assert (error.last_operation, error.last_update_time, error.description) == ("PatchWorkload", NOW, POLICY)
    assert ("Warning", "Refused") in {(event.type, event.reason) for event in decision.events}
    assert decision.recheck_after == dt.timedelta(minutes=1)


def test_refused_axes_are_both_reported() -> None:
    observation = seen_of(scaling_both())
    whole = decide(observation)
    observation = with_refusal(observation, whole, "horizontal", "too many")
    decision = decide(with_refusal(observation, whole, "vertical", "too large"))
    assert decision.workload_patch is None
    message = condition(decision, "Ready").message
    assert "to change replicas: too many" in message
    assert "to change requests: too large" in message
    assert decision.status.last_error is not None
    assert {hold.reason for hold in decision.blocked} == {"Refused"}


def after(objects: Objects, decision: Decision) -> Objects:
    """The objects once the decision was written; the HPA wants the replicas that there are."""
    done = build.apply(objects, decision)
    assert done.workload is not None
    count = done.workload.spec.replicas
    return replace(done, hpas=(build.hpa(desired=count, utilization=50, replicas=count),))


def test_refused_waits_longer_each_time_and_ends_once_it_is_written() -> None:
    objects = scaling_both()
    objects = after(objects, refused(objects, "vertical"))
    assert build.decided(objects, at(seconds=59)).workload_patch is None
    now = at(minutes=1)
    assert changes(build.decided(objects, now)) == {"template"}
    second = refused(objects, "vertical", now=now)
    assert second.workload_patch is None
    assert second.recheck_after == dt.timedelta(minutes=2)
    again = vertical_axis(second).refused
    assert again is not None
    assert again.count == 2
    late = refused(objects, "vertical", now=at(hours=3))
    assert late.recheck_after == dt.timedelta(minutes=1), "hours later it is refused for the first time"
    taken = build.decided(after(objects, second), at(minutes=3))
    assert changes(taken) == {"template"}
    assert vertical_axis(taken).refused is None
    assert taken.status.last_error is None
    assert condition(taken, "Ready").reason == "Reconciled"


def test_refused_does_not_hold_another_recommendation() -> None:
    objects = scaling_both(cpu="3")
    objects = after(objects, refused(objects, "vertical"))
    for cpu, patched in (("1800m", {"template"}), ("2900m", set[str]())):
        lower = replace(objects, vpas=(build.vpa({"app": {"cpu": cpu}}),))
        assert changes(build.decided(lower, at(seconds=10))) == patched


def test_refused_change_still_waits_when_another_is_refused_meanwhile() -> None:
    objects = scaling_both()
    objects = after(objects, refused(objects, "vertical"))
    both = replace(objects, vpas=(build.vpa({"app": {"cpu": "2", "memory": "3Gi"}}),))
    decision = refused(both, "vertical", now=at(seconds=30))
    assert {held.resource for held in decision.blocked} == {"cpu", "memory"}
    assert {held.until for held in decision.blocked} == {at(seconds=30, minutes=2)}
    # Once the wait of the first is over, it was part of what was refused, or it is forgotten.
    lone = replace(objects, vpas=(build.vpa({"app": {"cpu": "1", "memory": "3Gi"}}),))
    record = vertical_axis(refused(lone, "vertical", now=at(minutes=5))).refused
    assert record is not None
    assert [change.resource for change in record.changes] == ["memory"]


def test_refused_holds_the_memory_of_a_starving_container_too() -> None:
    objects = build.objects(
        vertical=build.vpa({"app": {"memory": "3Gi"}}),
        horizontal=build.hpa(),
        pods=[build.oom_killed(at(minutes=-1))],
    )
    assert changes(build.decided(objects)) == {"template"}
    decision = refused(objects, "vertical")
    assert decision.workload_patch is None
    assert [held.reason for held in decision.blocked] == ["Refused"]


def test_refused_replicas_with_trajectory_make_pods_grow_at_once() -> None:
    """Not only after minutes, although the replicas are tried again in a minute."""
    spec = {**jointly.JOINT, "vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1m"}}}}}
    objects = build.objects(
        build.hvpa(spec),
        build.workload(replicas=3),
        jointly.hpa(3, jointly.utilization("cpu", 50, 150, "1500m")),
        build.vpa({"app": {"cpu": "1", "memory": "1Gi"}}),
    )
    whole = build.decided(objects)
    assert build.counts(whole).target > 3
    decision = refused(objects, "horizontal")
    assert build.counts(decision).target == 3
    assert decision.containers["app"].requests["cpu"] > whole.containers["app"].requests["cpu"]


# --- sizes that failed -----------------------------------------------------------------------------------------------
FAILED: Final = RolledBack(
    count=1,
    time=at(hours=-1),
    changes=(
        FailedChange(container="app", resource="memory", previous=1, failed=2),
        FailedChange(container="app", resource="cpu", previous=1000, failed=600),
    ),
)


@pytest.mark.parametrize(
    ("key", "wanted", "waits"),
    [
        (CPU, 600, True),
        (CPU, 640, True),
        (CPU, 641, False),
        (CPU, 100, True),
        (CPU, 2000, False),
        (MEMORY, 2, True),
        (MEMORY, 0, False),
        (ResourceKey("side", "cpu"), 600, False),
    ],
)
def test_rolled_back_holds_the_size_that_failed_and_sizes_beyond_it(
    key: ResourceKey, wanted: int, waits: bool
) -> None:
    until = rolled_back_until(FAILED, Clock(NOW), wanted, key, only_in_place=True)
    assert until == (at(hours=23) if waits else None)
    assert rolled_back_until(None, Clock(NOW), wanted, key, only_in_place=True) is None


STATIC = 'pod web-1: Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static": on such a node, …'


@pytest.mark.parametrize(
    ("key", "wanted", "in_place", "waits"),
    [
        (CPU, 600, True, True),
        (CPU, 2000, True, True),
        (CPU, 600, False, False),
        (MEMORY, 2, True, True),
        (MEMORY, 0, True, False),
        (MEMORY, 2, False, True),
        (ResourceKey("side", "cpu"), 600, True, False),
    ],
)
def test_rolled_back_holds_all_sizes_if_the_nodes_resize_none(
    key: ResourceKey, wanted: int, in_place: bool, waits: bool
) -> None:
    """New pods can have them."""
    record = FAILED.model_copy(update={"message": STATIC})
    until = rolled_back_until(record, Clock(NOW), wanted, key, only_in_place=in_place)
    assert until == (at(hours=23) if waits else None)


def test_rolled_back_knows_the_rules_of_nodes_while_they_wait_whatever_fails_meanwhile() -> None:
    record = FAILED.model_copy(update={"message": STATIC})
    for _ in range(3):
        message = with_rules("pod web-2: OOMKilled", record, Clock(at(hours=3)))
        assert message == 'pod web-2: OOMKilled; earlier: alongside CPU Manager policy "static"'
        record = FAILED.model_copy(update={"message": message})
        assert rolled_back_until(record, Clock(NOW), 2000, CPU, only_in_place=True) == at(hours=23)
    both = with_rules('alongside Memory Manager policy "Static"', record, Clock(NOW))
    assert never_resized(both) == {"cpu", "memory"}
    assert with_rules(STATIC, record, Clock(NOW)) == STATIC
    assert with_rules("OOMKilled", record, Clock(at(hours=24))) == "OOMKilled"
    assert with_rules("OOMKilled", None, Clock(NOW)) == "OOMKilled"


def test_rolled_back_count_starts_anew_long_after_the_last_failure() -> None:
    counts = [
        rollbacks_after(rollback, Clock(at(hours=hours)))
        for rollback, hours in ((None, 0), (FAILED, 40), (FAILED, 48))
    ]
    assert counts == [1, 2, 1]
