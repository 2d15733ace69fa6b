"""Containers that ran out of memory: what passes which gates for them, and how often (DESIGN 6.4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from builders import build
from builders.build import GIB, MIB, at, stamp
from hvpa.api.objects.read_models import OwnerReference
from hvpa.core import Decision, Objects
from tests.unit.core.additive.vertically import (
    CLOSED,
    IN_WINDOW,
    OFF,
    app,
    applied,
    axis,
    down,
    least,
    only,
    policy,
    recommending,
    requests,
    seen,
    up,
)
from tests.unit.core.named import named

TARGET = 2_147_484_000
"""2Gi, in whole kilobytes."""
RAISED = 1_288_491_000
"""A fifth more than 1Gi."""
HOUR = up(stabilizationDuration="1h")


def starving(
    targets: Mapping[str, Any], containers: Sequence[Mapping[str, Any]] | None = None, **rest: Any
) -> Objects:
    pod_containers = list(containers or [app()])
    pods = rest.pop("pods", [build.oom_killed(at(minutes=-1), containers=pod_containers)])
    return seen(targets, pod_containers, pods=pods, **rest)


def of(memory: str, **rest: Any) -> Objects:
    """A container of 1Gi that ran out of memory, for which the VPA targets so much."""
    return starving({"memory": memory}, **rest)


ALLOWED = policy(containerName="app", maxAllowed={"memory": "1100Mi"})
ELSEWHERE = [build.oom_killed(at(minutes=-1), of="other")]


@pytest.mark.parametrize(
    ("objects", "expected"),
    named(
        {
            "the target, at full weight": (of("2Gi"), TARGET),
            "the target is not above: 20 percent more": (of("1Gi"), RAISED),
            "the target is above by a rounding: 20 percent more": (of("1073742k"), RAISED),
            "at least 100Mi more": (of("200Mi", containers=[app(memory="200Mi")]), 314_573_000),
            "past Weight": (of("2Gi", weight=0), TARGET),
            "past StabilizationWindow": (of("2Gi", spec=HOUR, status=axis(at(minutes=-2))), TARGET),
            "past Rollout": (of("2Gi", workload={"status": {"updatedReplicas": 0}}), TARGET),
            "past MinChange": (of("1030Mi", spec=up(**least(memory="1Gi"))), 1_080_034_000),
            "never beyond maxAllowed": (of("1Gi", spec=ALLOWED), 1100 * MIB),
            "nor beyond four times the target": (of("300Mi"), 1200 * MIB),
            "where the request is beyond that already, nothing": (of("200Mi"), GIB),
            "not past Paused": (of("2Gi", spec={"mode": "Paused"}), GIB),
            "not past mode Off": (of("2Gi", spec=up(**OFF)), GIB),
            "not past a closed window": (of("2Gi", spec={**up(**IN_WINDOW), **CLOSED}), GIB),
            "without a target nothing is known": (starving({"cpu": "2"}), GIB),
            "another's": (of("2Gi", pods=ELSEWHERE, weight=0), GIB),
            "a step by a wrong clock hides none": (of("2Gi", weight=0, status=axis(at(hours=1))), TARGET),
            "nor a step up": (of("1Gi", status=axis(lastScaleUpTime=stamp(at(days=3)))), RAISED),
        }
    ),
)
def test_out_of_memory_raises_memory_past_weight_rollout_and_min_change(
    objects: Objects, expected: int
) -> None:
    assert requests(build.decided(objects))["memory"] == expected


@pytest.mark.parametrize(
    ("last_up", "is_raised"),
    named(
        {
            "a step down came since": (None, True),
            "a step up came before": (-30, True),
            "a step up came since": (-10, False),
        }
    ),
)
def test_out_of_memory_is_not_erased_by_a_step_down(last_up: int | None, is_raised: bool) -> None:
    more = {} if last_up is None else {"lastScaleUpTime": stamp(at(minutes=last_up))}
    pods = [build.oom_killed(at(minutes=-20))]
    decision = build.decided(of("1Gi", pods=pods, status=axis(at(minutes=-10), **more)))
    assert (requests(decision)["memory"] > GIB) == is_raised


def test_out_of_memory_flag_is_in_the_status_while_a_container_starves() -> None:
    assert build.decided(of("2Gi")).status.override_scale_up_stabilization is True
    assert build.decided(seen({"memory": "2Gi"})).status.override_scale_up_stabilization is False


def test_recent_raise_holds_the_next_raise_for_ten_minutes() -> None:
    after = applied(of("1Gi", weight=0))

    def killed_again(when: dt.datetime) -> Decision:
        pod = build.oom_killed(when, containers=[app(memory=str(RAISED))])
        objects = build.objects(after.hvpa, after.workload, after.hpas[0], after.vpas[0], pods=[pod])
        return build.decided(objects, when)

    early, next_raise = killed_again(at(minutes=4)), 1_546_190_000  # 1288491k x 1.2 = 1546189.2k
    assert early.workload_patch is None
    held = only(early)
    assert (held.reason, held.direction, held.wanted) == ("RecentRaise", "up", next_raise)
    assert held.until == at(minutes=10)
    assert early.recommended["app"].requests["memory"] == next_raise
    assert early.recheck_after == dt.timedelta(minutes=6)
    assert requests(killed_again(at(minutes=10)))["memory"] == next_raise


def test_out_of_memory_raise_is_kept_by_min_change_for_the_same_target() -> None:
    any_change = down(**least(memory="1"))
    after = applied(of("512Mi", spec=any_change))
    for weight in (50, 100):
        spec = {**any_change, "weightBasedScalingIntervals": [{"vpaWeight": weight}]}
        hvpa = build.with_status(build.hvpa(spec), after.hvpa.status)
        calm = build.decided(build.objects(hvpa, after.workload, after.hpas[0], after.vpas[0]), at(hours=1))
        assert requests(calm)["memory"] == RAISED
        assert (only(calm).reason, only(calm).direction, only(calm).until) == ("MinChange", "down", None)
    lower = build.decided(recommending(after, {"memory": "300Mi"}), at(hours=1))
    assert requests(lower)["memory"] < RAISED, "a target that moves down by minChange counts"


def test_out_of_memory_holds_lower_memory_of_a_starving_container() -> None:
    decision = build.decided(of("256Mi", spec=policy(containerName="app", maxAllowed={"memory": "1Gi"})))
    assert requests(decision)["memory"] == GIB
    assert (only(decision).reason, only(decision).until) == ("OutOfMemory", None)


RECENT = axis(at(minutes=-3), overrides=[{"container": "app", "time": stamp(at(minutes=-3))}])
NEXT = ("RecentRaise", "up", at(minutes=7))


@pytest.mark.parametrize(
    ("target", "rest", "expected"),
    named(
        {
            "past Weight": ("2Gi", {"weight": 0}, NEXT),
            "past a longer StabilizationWindow": ("2Gi", {"spec": HOUR}, NEXT),
            "a shorter one is the usual change's": (
                "2Gi",
                {"spec": up(stabilizationDuration="5m")},
                ("StabilizationWindow", "up", at(minutes=2)),
            ),
            "instead of being lowered": ("512Mi", {}, NEXT),
            "no raise is due: it is not lowered": ("100Mi", {}, ("OutOfMemory", "down", None)),
            "gates that the raise does not pass are reported first": (
                "2Gi",
                {"spec": up(**OFF)},
                ("UpdatePolicy", "up", None),
            ),
        }
    ),
)
def test_recent_raise_is_reported_where_nothing_raises_the_memory_sooner(
    target: str, rest: dict[str, Any], expected: tuple[str, str, dt.datetime | None]
) -> None:
    decision = build.decided(of(target, status=RECENT, **rest))
    held = only(decision)
    assert (held.reason, held.direction, held.until) == expected
    assert held.until is None or decision.recheck_after == held.until - build.NOW


def test_recent_raise_does_not_hold_the_usual_raise_to_the_target() -> None:
    decision = build.decided(of("2Gi", status=RECENT))
    assert requests(decision)["memory"] > GIB
    assert not decision.blocked


@pytest.mark.parametrize(
    ("memory", "expected", "reason"),
    [("356Mi", 712 * MIB, None), ("712Mi", 712 * MIB, "RecentRaise"), ("800Mi", 800 * MIB, "RecentRaise")],
)
def test_recent_raise_holds_memory_beyond_twice_the_raise(
    memory: str, expected: int, reason: str | None
) -> None:
    """256Mi became 356Mi three minutes ago; by 30 OOMs since, the VPA's target is 4Gi."""
    raised = {"container": "app", "time": stamp(at(minutes=-3)), "memory": "356Mi"}
    recent = axis(at(minutes=-3), lastScaleUpTime=stamp(at(minutes=-3)), overrides=[raised])
    decision = build.decided(of("4Gi", containers=[app(memory=memory)], status=recent))
    assert requests(decision)["memory"] == expected
    assert [(hold.reason, hold.until) for hold in decision.blocked] == (
        [] if reason is None else [(reason, at(minutes=7))]
    )


def test_recent_raise_is_recorded_with_its_time_and_memory() -> None:
    (raised,) = build.decided(of("1Gi")).status.axes.vertical.overrides  # type: ignore[union-attr]
    assert (raised.container, raised.time, raised.memory) == ("app", build.NOW, "1288491k")


@pytest.mark.parametrize("killed", [at(hours=-24), at(days=-18)])
def test_out_of_memory_older_than_a_day_does_nothing(killed: dt.datetime) -> None:
    decision = build.decided(of("1Gi", pods=[build.oom_killed(killed)]))
    assert decision.workload_patch is None
    assert decision.status.override_scale_up_stabilization is False


def test_out_of_memory_counts_for_a_day_and_is_looked_at_again_then() -> None:
    held = of("200Mi", pods=[build.oom_killed(at(hours=-23, minutes=-50))])
    decision = build.decided(held)
    assert decision.status.override_scale_up_stabilization is True
    assert decision.recheck_after is not None
    assert decision.recheck_after <= dt.timedelta(minutes=10)


JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "migrate", "uid": "j", "controller": True}


def test_out_of_memory_in_a_pod_of_another_owner_does_not_count() -> None:
    killed = build.oom_killed(at(minutes=-1))
    metadata = structs.replace(killed.metadata, owner_references=[build.decoded(OwnerReference, JOB)])
    foreign = structs.replace(killed, metadata=metadata)
    decision = build.decided(of("1Gi", pods=[foreign, build.pod("web-2")]))
    assert decision.workload_patch is None
    assert decision.status.override_scale_up_stabilization is False


def test_out_of_memory_is_not_counted_again_by_the_other_blend() -> None:
    after = applied(of("1Gi"))
    pod = build.oom_killed(at(minutes=-1), containers=[app(memory=str(RAISED))])
    for blend in ("Additive", "Trajectory"):
        hvpa = build.with_status(build.hvpa({"blend": blend}), after.hvpa.status)
        again = build.objects(hvpa, after.workload, after.hpas[0], after.vpas[0], pods=[pod])
        assert requests(build.decided(again, at(minutes=30)))["memory"] == RAISED


def test_out_of_memory_lets_other_raises_pass_stabilization_window_and_min_change() -> None:
    both = [app(), build.container("sidecar")]
    targets = {"app": {"cpu": "1100m", "memory": "1Gi"}, "sidecar": {"cpu": "1100m", "memory": "1100Mi"}}
    decision = build.decided(starving(targets, both, status=axis(at(minutes=-2)), spec=HOUR))
    assert requests(decision)["cpu"] == 1050
    assert requests(decision, "sidecar") == {"cpu": 1050, "memory": 1_113_588_000}
    held = build.decided(starving(targets, both, weight=0)).blocked
    assert {entry.reason for entry in held} == {"Weight"}, "but not Weight"
    resources = {(entry.container, entry.resource) for entry in held}
    assert resources == {("app", "cpu"), ("sidecar", "cpu"), ("sidecar", "memory")}


def test_stabilization_window_holds_lower_requests_of_a_starving_container() -> None:
    spec = down(stabilizationDuration="1h")
    objects = starving({"cpu": "200m", "memory": "1Gi"}, status=axis(at(minutes=-2)), spec=spec)
    assert [(hold.resource, hold.reason) for hold in build.decided(objects).blocked] == [
        ("cpu", "StabilizationWindow")
    ]


def test_out_of_memory_flag_of_gardener_raises_memory_to_the_target() -> None:
    flag = {"overrideScaleUpStabilization": True}
    scaled = {**flag, "lastScaling": {"lastScaleTime": stamp(at(minutes=-1))}}

    def memory(target: str) -> int:
        return requests(build.decided(seen({"memory": target}, status=scaled, weight=0, spec=HOUR)))["memory"]

    assert memory("2Gi") == TARGET, "the target counts, at full weight"
    assert (memory("1Gi"), memory("512Mi")) == (GIB, GIB), "nothing is added to it, nor taken away"
    assert requests(build.decided(of("1Gi", status=flag)))["memory"] == RAISED, (
        "where pods show it, they count"
    )
    own = seen({"memory": "2Gi"}, status={**flag, "axes": {}}, weight=0)
    assert requests(build.decided(own))["memory"] == GIB, "one of our own statuses is judged by its pods"
