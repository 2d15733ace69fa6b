"""What joint decisions wait for where pods are replaced: larger ones until a spike is none, smaller ones for hours
(DESIGN 5.4, docs/decisions/0062)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import GIB, at, stamp
from hvpa.api.hvpa.status import to_wire
from hvpa.core import Decision, Objects
from tests.unit.core.trajectory.jointly import (
    EXACT,
    Reading,
    app,
    count,
    decide,
    held,
    one_core,
    requests,
    state,
    value,
    view,
    wanted_down,
)

OFF = {"updatePolicy": {"updateMode": "Off"}}
BUSY = {"status": {"updatedReplicas": 1}}
USUAL = {"app": {"cpu": "1", "memory": "1Gi"}}
FIXED_SIZE: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}]}


def spike(seconds: float = 3600, **rest: Any) -> Objects:
    """All 10 pods that there may be, of 1 core each, of which each uses 3 and usually 1; so long after they came."""
    status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-seconds))}}}
    readings = rest.pop("readings", [value("cpu", "1", "3")])
    return state(10, [app("1", "1Gi")], readings, USUAL, FIXED_SIZE, status=status, **rest)


def outcome(decision: Decision) -> tuple[int, int]:
    return count(decision), requests(decision)["cpu"]


# --- larger pods -----------------------------------------------------------------------------------------------------
def test_sustained_demand_holds_larger_pods_for_five_minutes_at_max_replicas() -> None:
    objects = spike()
    first = build.decided(objects)
    assert (outcome(first), held(first)) == ((10, 1000), [("up", "cpu", "SustainedDemand")])
    assert first.blocked[0].until == at(minutes=5)
    assert first.recheck_after == dt.timedelta(minutes=5)
    waiting = replace(build.apply(objects, first), pods=objects.pods)
    almost = build.decided(waiting, at(seconds=299))
    assert (outcome(almost), held(almost)) == ((10, 1000), [("up", "cpu", "SustainedDemand")])
    assert almost.recheck_after == dt.timedelta(seconds=1)
    late = build.decided(waiting, at(minutes=5))
    assert (outcome(late), held(late)) == ((10, 3000), [])


def test_sustained_demand_starts_anew_after_a_spike_that_replaced_no_pod() -> None:
    objects = spike()
    after = replace(build.apply(objects, build.decided(objects)), pods=objects.pods)
    over = replace(after, hvpa=after.hvpa, hpas=spike(readings=[value("cpu", "1", "1")]).hpas)
    calm = build.decided(over, at(minutes=4))
    assert (outcome(calm), held(calm)) == ((10, 1000), [])
    again = replace(build.apply(over, calm), pods=objects.pods, hpas=objects.hpas)
    decision = build.decided(again, at(minutes=6))
    assert outcome(decision) == (10, 1000)
    assert decision.blocked[0].until == at(minutes=11)


def test_sustained_demand_does_not_hold_more_memory() -> None:
    decision = build.decided(spike(readings=[value("memory", "1Gi", "3Gi")]))
    assert requests(decision)["memory"] == pytest.approx(3 * GIB, abs=1000)
    assert held(decision) == []


def test_sustained_demand_does_not_hold_what_the_usual_demand_calls_for() -> None:
    targets = {"app": {"cpu": "3"}}
    decision = build.decided(
        state(
            1,
            [app("1")],
            [value("cpu", "1", "3")],
            targets,
            {"weightBasedScalingIntervals": [{"vpaWeight": 100}]},
        )
    )
    assert (outcome(decision), held(decision)) == ((1, 3000), [])


def test_sustained_demand_in_place_holds_nothing() -> None:
    decision = build.decided(spike(), resizes=True)
    assert (outcome(decision), held(decision)) == ((10, 3000), [])


def test_sustained_demand_does_not_hold_sizes_that_make_up_for_held_replicas() -> None:
    spec = {"hpa": {"scaleUp": OFF}}
    decision = decide(1, "5", "1", spec)
    assert view(decision).usual is not None
    assert view(decision).items[0].usual == 1000
    assert outcome(decision) == (1, 5000)
    assert held(decision) == [("up", "replicas", "UpdatePolicy")]


def test_measurement_holds_fewer_replicas_until_the_present_ones_are_measured() -> None:
    def case(seconds: float) -> Decision:
        status = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=-seconds))}}}
        return build.decided(
            state(6, [app("1")], [value("cpu", "1", "500m")], USUAL, {"trajectory": EXACT}, status=status)
        )

    soon, late = case(20), case(60)
    assert (count(soon), held(soon)) == (6, [("down", "replicas", "Measurement")])
    assert soon.blocked[0].wanted < 6
    assert soon.blocked[0].until == at(seconds=40)
    assert count(late) < 6


@pytest.mark.parametrize("resizes", [False, True])
def test_measurement_is_not_reported_where_nothing_would_change(resizes: bool) -> None:
    """8 replicas were set and recommended, and another client made 6 of them, which would do: 8 are set again, and
    there is no change from 6 to 6 that waits."""
    axes = {
        "horizontal": {
            "lastScaleTime": stamp(at(seconds=-20)),
            "appliedFrom": {"replicas": 8, "desired": 8, "weight": 0},
        }
    }
    status = {"axes": axes, "recommended": {"replicas": 8}}
    readings = [value("cpu", "1", "1")]
    decision = build.decided(
        state(6, [app("1", "1Gi")], readings, USUAL, FIXED_SIZE, status=status, desired=8), resizes=resizes
    )
    assert (count(decision), held(decision)) == (8, [])


# --- smaller pods ----------------------------------------------------------------------------------------------------
def idle(hours: float | None, policy: dict[str, Any] | None = None, **rest: Any) -> Decision:
    """Two pods of 4 cores that usually and now use 2; less has been wanted for so long."""
    vertical: dict[str, Any] = {} if hours is None else wanted_down(hours)
    status = {"axes": {"vertical": {**vertical, "base": {"app": {"cpu": "1"}}}}}
    readings: list[Reading] = [value("cpu", "1", "2")]
    spec = {"trajectory": EXACT, "vpa": {"scaleDown": policy or {}}}
    objects = state(2, [app("4")], readings, {"app": {"cpu": "2"}}, spec, status=status)
    return build.decided(objects, **rest)


def test_sustained_demand_holds_lower_requests_for_six_hours() -> None:
    for hours, wait in ((5.5, dt.timedelta(minutes=30)), (None, dt.timedelta(hours=6))):
        soon = idle(hours)
        assert requests(soon) == {"cpu": 4000}
        assert held(soon) == [("down", "cpu", "SustainedDemand")]
        assert soon.blocked[0].until == build.NOW + wait
        assert soon.recheck_after == wait
    late = idle(6)
    assert (requests(late), held(late)) == ({"cpu": 2000}, [])


@pytest.mark.parametrize("resizes", [False, True])
def test_sustained_demand_holds_lower_unmeasured_memory_in_place_too(resizes: bool) -> None:
    def memory(hours: float, target: str, status: Any = None) -> Decision:
        readings = [value("cpu", "1", "1")]
        objects = state(
            2, [app("1", "1Gi")], readings, {"app": {"cpu": "1", "memory": target}}, status=status
        )
        return build.decided(objects, at(hours=hours), resizes=resizes)

    first = memory(0, "500Mi")
    assert (held(first), first.blocked[0].until) == ([("down", "memory", "SustainedDemand")], at(hours=6))
    status = to_wire(first.status)
    assert requests(memory(5.9, "500Mi", status))["memory"] == GIB
    assert requests(memory(6, "500Mi", status))["memory"] == 524_288_000
    between = memory(3, "1Gi", status)
    assert held(between) == []
    again = memory(4, "500Mi", to_wire(between.status))
    assert again.blocked[0].until == at(hours=10), "it was interrupted"


@pytest.mark.parametrize(
    ("duration", "hours", "request_"),
    [("1h", 0.9, 4000), ("1h", 1, 2000), ("12h", 11, 4000), ("12h", 12, 2000)],
)
def test_sustained_demand_of_lower_requests_lasts_stabilization_duration(
    duration: str, hours: float, request_: int
) -> None:
    decision = idle(hours, {"stabilizationDuration": duration})
    assert requests(decision) == {"cpu": request_}
    assert [reason for _, _, reason in held(decision)] == ["SustainedDemand"] * (request_ == 4000)


def test_sustained_demand_in_place_does_not_hold_lower_requests() -> None:
    assert requests(idle(None, resizes=True))["cpu"] < 4000


def test_sustained_demand_of_six_hours_does_not_hold_larger_pods() -> None:
    last = {"axes": {"vertical": {"lastScaleTime": stamp(at(minutes=-10))}}}
    objects = one_core(1, "5", "5", status=last)
    assert outcome(build.decided(objects)) == (4, 1667)
