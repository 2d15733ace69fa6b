"""Scheduled floors as decided, with blend Trajectory: more replicas, and sizes that stay those of the demand
(docs/decisions/0033). NOW is 10:00."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from builders import build
from builders.build import at, stamp
from hvpa.core import Decision
from tests.unit.core.named import named
from tests.unit.core.trajectory.jointly import (
    EXACT,
    count,
    held,
    one_core,
    requests,
    wanted,
)

UNTIL: Final = "at least until 2026-11-21T11:00:00Z, by entry 1 of spec.hpa.schedule"
LONG_AGO: Final = {"lastScaleTime": stamp(at(hours=-7))}
RESTED: Final = {"axes": {"horizontal": LONG_AGO, "vertical": {**LONG_AGO, "base": {"app": {"cpu": "1"}}}}}
LATELY: Final = {
    **RESTED,
    "axes": {**RESTED["axes"], "horizontal": {"lastScaleTime": stamp(at(seconds=-20))}},
}


def floor(replicas: int, **spec: Any) -> dict[str, Any]:
    """A spec with a floor from 9:00 to 11:00."""
    entry = {"schedule": "0 9 * * *", "duration": "2h", "minReplicas": replicas}
    return build.merged({"hpa": {"schedule": [entry]}, "trajectory": EXACT}, spec)


def grown(spec: Mapping[str, Any], **rest: Any) -> Decision:
    """One pod of 1 core that uses 5: the path has 3 x 1667m, and it takes 3 beside the one of 1 core."""
    return build.decided(one_core(1, "5", "5", spec, status=RESTED), **rest)


def idle(replicas: int, used: str, spec: Mapping[str, Any], **rest: Any) -> Decision:
    """Pods of 1 core of which each uses so little that one pod serves all."""
    resizes = rest.pop("resizes", False)
    return build.decided(one_core(replicas, used, used, spec, **{"status": RESTED, **rest}), resizes=resizes)


@pytest.mark.parametrize("resizes", [False, True])
def test_schedule_floor_with_trajectory_adds_replicas_and_keeps_sizes(resizes: bool) -> None:
    without, floored = grown({"trajectory": EXACT}, resizes=resizes), grown(floor(6), resizes=resizes)
    assert (count(without), count(floored)) == (3 if resizes else 4, 6)
    assert requests(floored) == requests(without)
    assert wanted(floored) == wanted(without), "the path begins where it did"
    assert floored.status.recommended is not None
    assert floored.status.recommended.replicas == 6
    assert any(step.endswith(f"6 {UNTIL}") for step in floored.steps)


@pytest.mark.parametrize(
    ("spec", "expected"),
    named({"above the floor": (floor(2), 4), "never above maxReplicas": (floor(50), 10)}),
)
def test_schedule_floor_or_demand_the_larger_count_is_set(spec: dict[str, Any], expected: int) -> None:
    assert count(grown(spec)) == expected


@pytest.mark.parametrize("resizes", [False, True])
def test_schedule_floor_keeps_the_count(resizes: bool) -> None:
    decision = idle(5, "100m", floor(5), resizes=resizes)
    assert (count(decision), held(decision)) == (5, [] if resizes else [("down", "cpu", "SustainedDemand")])
    assert count(idle(5, "100m", {"trajectory": EXACT}, resizes=resizes)) < 5


def test_measurement_holds_replicas_down_to_the_schedule_floor() -> None:
    for spec, expected in ((floor(5), []), (floor(2), [("down", "replicas", "Measurement")])):
        assert held(idle(5, "100m", spec, status=LATELY)) == expected


@pytest.mark.parametrize(
    ("least", "expected"), [(1, [("PodReplacement", 3)]), (4, [("PodReplacement", 4)]), (6, [])]
)
def test_pod_replacement_holds_replicas_down_to_the_schedule_floor(
    least: int, expected: list[tuple[str, int]]
) -> None:
    """6 pods of 1 core use 5.4: the path has 3 larger ones."""
    decision = build.decided(one_core(6, "900m", "900m", floor(least)))
    assert (count(decision), [(hold.reason, hold.wanted) for hold in decision.blocked]) == (6, expected)


@pytest.mark.parametrize(
    ("spec", "reason"),
    named(
        {
            "mode Paused": ({"mode": "Paused"}, "Paused"),
            "updateMode Off": ({"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}}, "UpdatePolicy"),
        }
    ),
)
def test_schedule_floor_is_held_by_paused_and_update_policy(spec: dict[str, Any], reason: str) -> None:
    decision = idle(1, "500m", floor(5, **spec))
    assert count(decision) == 1
    assert ("up", "replicas", reason) in held(decision)


def test_stabilization_window_does_not_hold_the_schedule_floor() -> None:
    spec = floor(5, hpa={"scaleUp": {"stabilizationDuration": "1h"}})
    assert count(idle(1, "500m", spec, status=LATELY)) == 5


def test_schedule_floor_with_trajectory_intervals_needs_no_hpa() -> None:
    rows = [{"maxReplicas": 8, "maxResources": {"cpu": "2", "memory": "2Gi"}}]
    entry = {"schedule": "0 9 * * *", "duration": "2h", "minReplicas": 5}
    spec = {
        "hpa": {"deploy": False, "selector": None, "template": None, "schedule": [entry]},
        "weightBasedScalingIntervals": None,
        "trajectory": {"intervals": rows},
    }
    objects = one_core(1, None, "500m", spec)
    alone = build.objects(objects.hvpa, objects.workload, None, objects.vpas[0], objects.pods)
    assert count(build.decided(alone)) == 5


def test_schedule_floor_is_named_in_the_event_beside_the_demand() -> None:
    events = idle(1, "500m", floor(5)).events
    [event] = [event for event in events if event.reason == "ScaledOut" and event.involved is None]
    assert "; at least 5 until 2026-11-21T11:00:00Z, by entry 1 of spec.hpa.schedule; HPA: " in event.message
    assert "until all pods" not in event.message
