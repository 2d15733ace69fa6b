"""Scheduled floors as decided, with blend Additive (docs/decisions/0033). NOW is 10:00 on a Saturday."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any, Final

import pytest
from msgspec import structs

from builders import build
from builders.build import at, stamp
from hvpa.core import Decision, Objects
from tests.unit.core.additive.test_replicas import axis, hold, recorded, seen, step, target
from tests.unit.core.named import named

NINE: Final[dict[str, Any]] = {"schedule": "0 9 * * *", "duration": "2h", "minReplicas": 5}
"""From 9:00 to 11:00."""
UNTIL: Final = "at least until 2026-11-21T11:00:00Z, by entry 1 of spec.hpa.schedule"
WINDOW: Final = {"maintenanceTimeWindow": {"begin": "220000+0000", "end": "230000+0000"}}


def floored(
    desired: int = 2, replicas: int = 2, entries: tuple[dict[str, Any], ...] = (NINE,), **rest: Any
) -> Objects:
    """Replicas of which the HPA wants `desired`, with these floors."""
    spec = build.merged({"hpa": {"schedule": list(entries)}}, rest.pop("spec", {}))
    return seen(desired, replicas, rest.pop("weight", 0), spec, rest.pop("status", None), **rest)


def measured(objects: Objects) -> Objects:
    """The objects once the HPA has measured 5 replicas, which do the work of 2."""
    status = build.hpa(2, 20, replicas=5).status
    return replace(objects, hpas=(structs.replace(objects.hpas[0], status=status),))


def up(**policy: Any) -> dict[str, Any]:
    return {"hpa": {"scaleUp": policy}}


def entry(replicas: int, begin: str = "0 9 * * *", duration: str = "2h") -> dict[str, Any]:
    return {"schedule": begin, "duration": duration, "minReplicas": replicas}


@pytest.mark.parametrize(
    ("desired", "replicas", "entries", "expected"),
    named(
        {
            "it is raised to the floor": (2, 2, (NINE,), 5),
            "demand above it counts": (8, 2, (NINE,), 8),
            "it falls to the floor only": (2, 8, (NINE,), 5),
            "it is kept at the floor": (2, 5, (NINE,), 5),
            "the largest of those that overlap": (2, 2, (entry(3), NINE, entry(4)), 5),
            "never above maxReplicas": (2, 2, (entry(50),), 10),
            "below minReplicas it does nothing": (1, 1, (entry(1),), 1),
            "one that has not begun does nothing": (2, 2, (entry(5, "1 10 * * *"),), 2),
            "nor does one that has ended": (2, 2, (entry(5, duration="1h"),), 2),
        }
    ),
)
def test_schedule_floor_sets_the_least_replicas(
    desired: int, replicas: int, entries: tuple[dict[str, Any], ...], expected: int
) -> None:
    decision = build.decided(floored(desired, replicas, entries))
    assert target(decision) == expected
    assert decision.status.recommended is not None
    assert decision.status.recommended.replicas == expected
    assert decision.blocked == ()


@pytest.mark.parametrize("weight", [0, 50, 100])
def test_schedule_floor_counts_whatever_the_weight(weight: float) -> None:
    first, after = step(floored(weight=weight))
    assert target(first) == 5
    rest = build.decided(after)
    assert (target(rest), rest.blocked, rest.workload_patch) == (5, (), None)


def test_schedule_floor_is_explained_with_until_when() -> None:
    decision = build.decided(floored())
    assert f"replicas: 2 now, the HPA recommends 2; 5 {UNTIL}" in decision.steps
    kept = build.decided(floored(replicas=5))
    assert f"replicas: 5 now, the HPA recommends 2; 5 {UNTIL}" in kept.steps
    assert kept.workload_patch is None


def test_schedule_floor_uses_the_weight_of_the_interval_that_it_keeps() -> None:
    """From 3 replicas on all is vertical: the HPA wants fewer, but the floor does not let it."""
    weights = [{"vpaWeight": 0, "lastReplicaCount": 3}, {"vpaWeight": 100, "startReplicaCount": 4}]
    spec = {"weightBasedScalingIntervals": weights}
    assert build.decided(floored(replicas=5, spec=spec)).weight_ppm == 1_000_000
    assert build.decided(floored(replicas=5, entries=(), spec=spec)).weight_ppm == 0


def test_schedule_floor_is_not_written_to_spec_replicas_or_the_hpa() -> None:
    """A floor is not written into `spec.replicas`: the HPA, whose minReplicas is lower, would overwrite it."""
    settled = measured(build.settled(floored()))
    decision = build.decided(settled)
    assert (target(decision), decision.scale_replicas, decision.owned) == (5, None, ())
    assert settled.hpas[0].spec.min_replicas == 1


# --- gates -----------------------------------------------------------------------------------------------------------
JUST_NOW: Final = axis(at(seconds=-5), appliedFrom={"replicas": 2, "desired": 2, "weight": 0})


@pytest.mark.parametrize(
    "spec",
    named(
        {
            "the stabilization window": up(stabilizationDuration="1h"),
            "minChange": up(minChange={"replicas": {"value": 9}}),
            "the largest step": up(maxStep={"factor": 1.1, "minimum": 1}),
        }
    ),
)
def test_schedule_floor_passes_stabilization_window_min_change_and_max_step(spec: dict[str, Any]) -> None:
    assert target(build.decided(floored(spec=spec, status=JUST_NOW))) == 5


@pytest.mark.parametrize(
    ("spec", "reason", "until"),
    named(
        {
            "mode Paused": ({"mode": "Paused"}, "Paused", None),
            "updateMode Off": (up(updatePolicy={"updateMode": "Off"}), "UpdatePolicy", None),
            "a closed maintenance window": (
                {**up(updatePolicy={"updateMode": "MaintenanceWindow"}), **WINDOW},
                "MaintenanceWindow",
                at(hours=12),
            ),
        }
    ),
)
def test_schedule_floor_is_held_by_paused_update_policy_and_maintenance_window(
    spec: dict[str, Any], reason: str, until: dt.datetime | None
) -> None:
    decision = build.decided(floored(spec=spec))
    assert target(decision) == 2
    assert hold(decision) == (reason, "up", 2, 5, until)


def test_contested_holds_a_schedule_floor_that_another_client_takes_away() -> None:
    again = {"count": 2, "time": stamp(at(seconds=-30))}
    status = axis(at(seconds=-30), appliedFrom={"replicas": 5, "desired": 2, "weight": 0}, setBack=again)
    assert hold(build.decided(floored(status=status)))[:4] == ("Contested", "up", 2, 5)


def test_stabilization_window_holds_what_is_above_the_schedule_floor() -> None:
    decision = build.decided(floored(desired=8, spec=up(stabilizationDuration="1h"), status=JUST_NOW))
    assert target(decision) == 5
    assert hold(decision)[:4] == ("StabilizationWindow", "up", 2, 8)


def test_schedule_floor_is_recommended_in_mode_recommend() -> None:
    decision = build.decided(floored(spec={"mode": "Recommend"}))
    assert (target(decision), decision.blocked) == (2, ())
    assert decision.status.recommended is not None
    assert decision.status.recommended.replicas == 5


# --- as time passes --------------------------------------------------------------------------------------------------
def test_schedule_floor_is_looked_at_again_when_it_begins_and_ends() -> None:
    before = floored()
    early = build.decided(before, at(hours=-2))
    assert (target(early), early.recheck_after) == (2, dt.timedelta(hours=1))
    first, after = step(before, at(hours=-1))
    assert target(first) == 5
    after = measured(after)
    assert build.decided(after, at(minutes=1)).recheck_after == dt.timedelta(minutes=59)
    last = build.decided(after, at(minutes=59, seconds=59))
    assert (target(last), last.recheck_after) == (5, dt.timedelta(seconds=1))
    end = build.decided(after, at(hours=1))
    assert (target(end), end.recheck_after) == (2, dt.timedelta(hours=22))


@pytest.mark.parametrize("seconds", [1, 59, 3599])
def test_schedule_floor_changes_nothing_until_it_is_looked_at_again(seconds: int) -> None:
    after = build.apply(floored(), build.decided(floored()))
    later = build.decided(after, at(seconds=seconds))
    assert (later.workload_patch, later.replicas) == (None, build.decided(after, at(seconds=61)).replicas)


def test_schedule_floor_that_ends_leaves_the_way_in_to_the_usual_gates() -> None:
    down = {"hpa": {"scaleDown": {"stabilizationDuration": "3h"}}}
    first, after = step(floored(spec=down), at(minutes=-30))
    assert recorded(first) == (5, 2, 0)
    after = measured(after)
    end = build.decided(after, at(hours=1))
    assert hold(end) == ("StabilizationWindow", "down", 5, 2, at(hours=2, minutes=30))
    assert target(build.decided(after, at(hours=2, minutes=30))) == 2


def test_schedule_floor_counts_while_the_demand_is_not_known() -> None:
    """The HPA had metrics a moment ago. (2 replicas were recommended last.)"""
    silent = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric",
              "lastTransitionTime": stamp(at(seconds=-20))}  # fmt: skip
    hpa = build.hpa(2, None, {"status": {"conditions": [silent]}}, replicas=2)
    status = {"recommended": {"replicas": 2}}
    first, after = step(floored(horizontal=hpa, status=status))
    assert target(first) == 5
    assert first.status.recommended is not None
    assert first.status.recommended.replicas == 5
    rest = build.decided(after)
    assert (target(rest), rest.blocked) == (5, ())


# --- where the HPA, the VPA or the target is another one -------------------------------------------------------------
def on_a_named_hpa(change: dict[str, Any]) -> Decision:
    spec = {"hpa": {"deploy": False, "selector": None, "template": None, "name": "web"}}
    hpa = build.hpa(2, 50, build.merged({"metadata": {"ownerReferences": None}}, change), replicas=2)
    return build.decided(floored(spec=spec, horizontal=hpa))


def test_schedule_floor_of_a_named_hpa() -> None:
    assert target(on_a_named_hpa({})) == 5
    assert target(on_a_named_hpa({"spec": {"maxReplicas": 4}})) == 4


def test_schedule_floor_without_a_vpa() -> None:
    alone = floored(spec={"vpa": {"deploy": False}})
    objects = build.objects(alone.hvpa, alone.workload, alone.hpas[0])
    assert target(build.decided(objects)) == 5


def test_schedule_floor_leaves_0_replicas_alone_unless_the_hpa_may_scale_to_0() -> None:
    assert target(build.decided(floored(target=build.workload(0)))) == 0
    spec = {"replicas": 0, "hpa": {"deploy": False, "selector": None, "template": None, "name": "web"}}
    hpa = build.hpa(0, None, {"metadata": {"ownerReferences": None}, "spec": {"minReplicas": 0}}, replicas=0)
    status = axis(at(hours=-3), appliedFrom={"replicas": 0, "desired": 0, "weight": 0})
    assert (
        target(build.decided(floored(spec=spec, target=build.workload(0), horizontal=hpa, status=status)))
        == 5
    )


def test_schedule_floor_is_named_in_the_event() -> None:
    [message] = {event.message for event in build.decided(floored()).events if event.involved is None}
    by = "at least 5 until 2026-11-21T11:00:00Z, by entry 1 of spec.hpa.schedule"
    assert message.startswith(f"replicas 2 -> 5; {by}; HPA: ")
    assert "by entry" not in str(build.decided(floored(desired=8)).events)
