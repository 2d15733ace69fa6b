"""The replica count of a joint decision: from what is needed to what is set (DESIGN 5.4, 6)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import at, stamp
from hvpa.core import Decision, Objects
from tests.unit.core.trajectory.jointly import EXACT, app, count, held, one_core

FIXED_SIZE: dict[str, Any] = {"weightBasedScalingIntervals": [{"vpaWeight": 0}], "trajectory": EXACT}
"""All horizontal: sizes stay, so that the count is all there is."""


def needed(replicas: int, used: str, hpa: dict[str, Any] | None = None, **rest: Any) -> Objects:
    """Pods of 1 core each of which uses so much; the HPA's target is 1 core."""
    spec = {**FIXED_SIZE, "hpa": hpa or {}}
    return one_core(replicas, used, "1", spec, **rest)


def decided(*args: Any, **rest: Any) -> Decision:
    return build.decided(needed(*args, **rest))


def test_the_count_goes_all_the_way_to_what_is_needed() -> None:
    for replicas, used, expected in ((2, "2500m", 5), (5, "300m", 2), (3, "1", 3)):
        decision = decided(replicas, used)
        assert count(decision) == expected
        assert decision.steps[1] == (
            f"replicas: {replicas} now, the HPA recommends {expected}; {expected} needed by the demand"
        )


def test_the_same_count_is_needed_again_without_waiting_for_other_desired_replicas() -> None:
    applied_from = {
        "lastScaleTime": stamp(at(seconds=-20)),
        "appliedFrom": {"replicas": 2, "desired": 5, "weight": 0},
    }
    assert count(decided(2, "2500m", status={"axes": {"horizontal": applied_from}})) == 5


def test_max_step_goes_the_way_in_parts() -> None:
    steps = {"scaleUp": {"maxStep": {"factor": 2, "minimum": 1}, "minChange": {"replicas": {"value": 2}}}}
    objects = needed(1, "9", steps)
    first = build.decided(objects)
    assert count(first) == 2
    after = replace(build.apply(objects, first), pods=objects.pods)
    soon = build.decided(after, at(seconds=10))
    assert (count(soon), soon.recheck_after) == (2, dt.timedelta(seconds=5))
    assert "the next step of maxStep at" in soon.steps[1]


@pytest.mark.parametrize(("replicas", "expected"), [(1, 3), (9, 6)])
def test_stabilization_window_does_not_hold_a_count_outside_the_bounds(replicas: int, expected: int) -> None:
    held_back = {"stabilizationDuration": "1h"}
    hpa = {
        "scaleUp": held_back,
        "scaleDown": held_back,
        "template": {"spec": {"minReplicas": 3, "maxReplicas": 6}},
    }
    last = {"axes": {"horizontal": {"lastScaleTime": stamp(at(minutes=-10))}}}
    assert count(decided(replicas, "1", hpa, status=last)) == expected


def test_stabilization_window_does_not_hold_replicas_of_a_starving_container() -> None:
    window = {"scaleUp": {"stabilizationDuration": "1h"}}
    last = {"axes": {"horizontal": {"lastScaleTime": stamp(at(minutes=-10))}}}
    made = [app("1")]
    pods = [build.oom_killed(at(minutes=-1), containers=made), build.pod("web-2", containers=made)]
    assert held(decided(2, "2500m", window, status=last)) == [("up", "replicas", "StabilizationWindow")]
    assert count(decided(2, "2500m", window, status=last, pods=pods)) == 5
