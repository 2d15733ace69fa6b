"""What the operator remembers about an Hvpa between reconciles: refusals, memory usage, recent demand, a step."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import NOW, at
from hvpa.core import decide
from hvpa.core.gates.backoff import refusal_wait
from hvpa.core.model import Decision, MemoryUse, Objects, Observation, RefusedResize
from hvpa.reconcile.record import Record

PATCH = {"spec": {"containers": [{"name": "app"}]}}
JOINT_IN_PLACE = {"blend": "Trajectory", "updateStrategy": {"type": "InPlace"}}


def refusal(when: dt.datetime = NOW, uid: str = "web-0", **rest: Any) -> RefusedResize:
    return RefusedResize(uid, rest.pop("body", PATCH), "no room", when, **rest)


def joint() -> Objects:
    return build.objects(
        build.hvpa(JOINT_IN_PLACE), None, build.hpa(6, 100), build.vpa({"app": {"cpu": "4"}})
    )


def stepped(replicas: int = 5) -> tuple[Observation, Decision]:
    """A decision that scales pods out and resizes them in place."""
    hvpa = build.hvpa({"updateStrategy": {"type": "InPlace"}})
    observation = build.scalable(
        build.objects(hvpa, None, build.hpa(replicas, 100), build.vpa({"app": {"cpu": "4"}}))
    )
    return observation, decide(observation)


# --- refused resizes ------------------------------------------------------------------------------------------------
def test_the_same_refused_resize_counts_once_more() -> None:
    record = Record()
    record.add_refused([refusal()])
    record.add_refused([refusal(at(minutes=1))])
    (kept,) = record.refused
    assert (kept.count, kept.time) == (2, at(minutes=1))


def test_another_resize_of_the_pod_or_another_pod_is_a_refusal_of_its_own() -> None:
    record = Record()
    record.add_refused([refusal()])
    record.add_refused([refusal(body={}), refusal(uid="web-1")])
    assert [kept.count for kept in record.refused] == [1, 1, 1]


def test_memory_that_the_kubelet_found_in_use_is_kept_for_each_container() -> None:
    record = Record()
    record.add_refused([refusal(used={"app": 100, "agent": 7})])
    record.add_refused([refusal(used={"app": 200})])
    assert [kept.used for kept in record.refused] == [{"app": 200, "agent": 7}]


@given(count=st.integers(1, 12))
def test_a_refusal_expires_after_twice_its_wait(count: int) -> None:
    record, inputs = Record(), build.objects()
    record.add_refused([refusal(count=count)])
    end = NOW + 2 * refusal_wait(count)
    assert record.added_to(inputs, end - dt.timedelta(seconds=1)).refused_resizes == record.refused != ()
    assert record.added_to(inputs, end).refused_resizes == ()


def test_refusals_of_pods_that_are_gone_are_forgotten() -> None:
    record = Record()
    record.add_refused([refusal(uid="gone"), refusal()])
    assert [kept.uid for kept in record.added_to(build.objects(), NOW).refused_resizes] == ["web-0"]


# --- memory usage ---------------------------------------------------------------------------------------------------
def test_measured_memory_usage_counts_for_a_minute() -> None:
    record = Record(memory_use=MemoryUse(NOW, {("web-0", "app"): 1}))
    assert record.added_to(build.objects(), at(seconds=59)).memory_use is record.memory_use is not None
    assert record.added_to(build.objects(), at(seconds=60)).memory_use is None


# --- recent demand --------------------------------------------------------------------------------------------------
def test_recent_demand_is_kept_only_for_joint_decisions_in_place() -> None:
    record = Record()
    decision = build.decided(joint())
    assert decision.called_for
    inputs = record.added_to(joint(), NOW)
    record.add_demand(inputs, decision, at(minutes=1))
    assert record.lately is not None
    assert record.lately.now == decision.called_for
    assert record.added_to(joint(), at(minutes=2)).lately is record.lately
    assert record.added_to(build.objects(), at(minutes=2)).lately is None
    assert record.lately is None, "replaced pods: the demand of before would be too old later"


# --- the step that is not reported yet ------------------------------------------------------------------------------
def test_a_step_is_reported_on_each_axis_once_its_write_was_accepted() -> None:
    record, (observation, decision) = Record(), stepped()
    assert {axis for axis, _ in decision.applied} == {"horizontal", "vertical"}
    record.begin_step(observation, decision)
    scaled = record.carried_out(decision, only_scaled=True)
    assert scaled is not None
    assert [axis for axis, _ in scaled.applied] == ["horizontal"]
    resized = record.carried_out(decision, only_scaled=False)
    assert resized is not None
    assert [axis for axis, _ in resized.applied] == ["vertical"]
    assert record.carried_out(decision, only_scaled=False) is None, "both are reported"


def test_replicas_that_a_later_decision_changed_are_not_reported() -> None:
    record, (observation, decision) = Record(), stepped()
    record.begin_step(observation, decision)
    _, later = stepped(replicas=7)
    assert build.counts(later).target != build.counts(decision).target
    assert record.carried_out(later, only_scaled=True) is None


def test_nothing_is_reported_without_a_step() -> None:
    record, (_, decision) = Record(), stepped()
    assert record.carried_out(decision, only_scaled=False) is None
