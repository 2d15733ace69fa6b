"""What an Hvpa has saved since its first change (`status.originalSize`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import build
from builders.build import GIB, NOW, at, stamp
from hvpa.api.hvpa.status import Axis, HvpaStatus, OriginalSize, to_wire
from hvpa.api.objects.read_models import Pod
from hvpa.core import Decision, Settings, observe
from hvpa.core.deciding import as_far_as
from hvpa.core.model import ReplicaView, ResourceRequirements
from hvpa.core.report.saved import Saved, saved
from hvpa.core.report.status import unapplied_status
from tests.unit.core.report.test_status import usual

BEFORE = {"since": stamp(NOW), "replicas": 3, "requests": {"app": {"cpu": "1"}}}
"""The original size of the usual workload, whose step is to 5 pods of 1500m. Its memory stays."""
VERTICAL = {"weightBasedScalingIntervals": [{"vpaWeight": 100}], "blend": "Additive"}
BOTH: Final[tuple[Axis, ...]] = ("horizontal", "vertical")
AMOUNTS = st.integers(0, 2**62)
COUNTS = st.integers(0, 2**31)


def original_of(decision: Decision) -> object:
    return to_wire(decision.status).get("originalSize")


@pytest.mark.parametrize("strategy", ["Rollout", "InPlace"])
def test_the_size_before_the_first_change_is_recorded_with_the_step_and_stays(strategy: str) -> None:
    objects = usual({"updateStrategy": {"type": strategy}})
    first = build.decided(objects)
    assert original_of(first) == BEFORE
    then = replace(objects, hvpa=build.with_status(objects.hvpa, first.status))
    then = then if strategy == "InPlace" else build.apply(objects, first)
    later = build.decided(then, at(seconds=30))
    assert original_of(later) == BEFORE
    assert saved(later, then.workload) == {
        "cpu": Saved(size=5 * -500, replicas=-2 * 1000),
        "memory": Saved(size=0, replicas=-2 * GIB),
    }


@pytest.mark.parametrize("mode", ["Recommend", "Paused"])
def test_an_hvpa_that_changes_nothing_saves_nothing_and_records_nothing(mode: str) -> None:
    objects = usual({"mode": mode})
    decision = build.decided(objects)
    assert original_of(decision) is None
    assert saved(decision, objects.workload) == {}


def test_a_paused_hvpa_still_saves_what_it_saved_before() -> None:
    status = HvpaStatus(original_size=OriginalSize(since=NOW, requests={"app": {"cpu": "3"}}))
    objects = usual({"mode": "Paused"}, status)
    assert saved(build.decided(objects), objects.workload)["cpu"] == Saved(3 * 2000, 0)


def test_replicas_count_only_once_hvpa_has_changed_them() -> None:
    objects = usual({"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}})
    first = build.decided(objects)
    assert original_of(first) == {key: value for key, value in BEFORE.items() if key != "replicas"}
    then = build.apply(objects, first)
    assert saved(build.decided(then), then.workload)["cpu"] == Saved(3 * -500, 0)


def test_requests_count_only_in_containers_that_hvpa_has_changed() -> None:
    containers = [build.container(), build.container("sidecar", {"cpu": "300m"})]
    target = build.workload(3, containers)
    status = HvpaStatus(original_size=OriginalSize(since=NOW, replicas=4, requests={"app": {"cpu": "2"}}))
    objects = usual({"mode": "Paused"}, status, target=target)
    parts = saved(build.decided(objects), target)
    assert parts["cpu"] == Saved(size=3 * 1000, replicas=2300)
    assert parts["memory"] == Saved(size=0, replicas=GIB), "the pod less has requested memory, too"


@pytest.mark.parametrize(("pods", "cpu"), [(None, "1"), ((), "0")])
def test_a_missing_request_was_its_limit_or_that_of_the_pods_or_nothing(
    pods: tuple[Pod, ...] | None, cpu: str
) -> None:
    target = build.workload(3, [build.container("app", {}, {"memory": "2Gi"})])
    recorded = build.decided(usual(VERTICAL, target=target, pods=pods)).status.original_size
    assert recorded is not None
    assert recorded.requests == {"app": {"cpu": cpu, "memory": "2Gi"}}


def test_a_container_that_is_gone_is_dropped_at_the_next_step_and_others_keep_their_record() -> None:
    known = {"app": {"cpu": "4"}, "gone": {"cpu": "1"}}
    status = HvpaStatus(original_size=OriginalSize(since=at(days=-9), requests=known))
    decided = build.decided(usual(status=status)).status.original_size
    assert decided == OriginalSize(since=at(days=-9), replicas=3, requests={"app": {"cpu": "4"}})


def test_a_step_that_is_carried_out_in_part_records_that_part() -> None:
    objects = usual()
    decision = build.decided(objects)
    observation = observe(objects, NOW, Settings())
    first = decision.status.original_size
    assert first is not None
    replicas, requests = (
        first.model_copy(update={"requests": {}}),
        first.model_copy(update={"replicas": None}),
    )
    cases: list[tuple[tuple[Axis, ...], OriginalSize | None]] = [
        (("horizontal",), replicas),
        (("vertical",), requests),
        ((), None),
    ]
    for axes, kept in cases:
        assert as_far_as(observation, decision, frozenset(axes)).status.original_size == kept
    before = HvpaStatus()
    assert unapplied_status(before, decision.status, BOTH).original_size is None
    assert unapplied_status(before, decision.status, {"horizontal"}).original_size == requests
    known = HvpaStatus(original_size=OriginalSize(since=at(days=-1), replicas=9))
    decided = known.model_copy(update={"original_size": OriginalSize(since=at(days=-1), replicas=9)})
    assert unapplied_status(known, decided, BOTH).original_size == known.original_size


def test_a_step_in_place_that_is_not_written_records_nothing() -> None:
    decision = build.decided(usual({"updateStrategy": {"type": "InPlace"}}))
    assert decision.status.original_size is not None
    assert unapplied_status(HvpaStatus(), decision.status, ()).original_size is None


def test_a_step_of_replicas_alone_records_no_requests() -> None:
    decision = build.decided(usual({"weightBasedScalingIntervals": None}))
    assert original_of(decision) == {"since": stamp(NOW), "replicas": 3}
    assert unapplied_status(HvpaStatus(), HvpaStatus(), {"vertical"}).original_size is None


def test_nothing_is_saved_while_the_target_is_missing() -> None:
    status = HvpaStatus(original_size=OriginalSize(since=NOW, replicas=9))
    objects = replace(usual(status=status), workload=None)
    decision = build.decided(objects)
    assert saved(decision, objects.workload) == {}
    assert decision.status.original_size == status.original_size


def test_unreadable_amounts_of_the_record_count_as_unchanged() -> None:
    status = HvpaStatus(original_size=OriginalSize(since=NOW, requests={"app": {"cpu": "many"}}))
    objects = usual({"mode": "Paused"}, status)
    assert saved(build.decided(objects), objects.workload)["cpu"] == Saved(0, 0)


@given(COUNTS, AMOUNTS, COUNTS, AMOUNTS)
def test_both_parts_together_are_all_requests_before_minus_all_now(
    replicas: int, size: int, then_replicas: int, then_size: int
) -> None:
    original = OriginalSize(since=NOW, replicas=then_replicas, requests={"app": {"memory": str(then_size)}})
    decision = Decision(
        HvpaStatus(original_size=original),
        replicas=ReplicaView(replicas, None, replicas, replicas),
        containers={"app": ResourceRequirements({"memory": size}, {})},
    )
    parts = saved(decision, build.workload())["memory"]
    assert sum(parts) == then_replicas * then_size - replicas * size
    assert parts.size == replicas * (then_size - size)
