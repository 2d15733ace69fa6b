"""The replica count of a joint decision: from what is needed to what is set (DESIGN 5.4, 6)."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from builders import build
from builders.build import at, stamp
from hvpa.api.values.quantity import Resource
from hvpa.core import Decision, Objects
from tests.unit.core.trajectory.jointly import EXACT, app, count, held, one_core, state, value, view

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
            f"replicas: {replicas} now, the HPA asks for {expected}; {expected} needed by the demand"
        )


def test_the_same_count_is_needed_again_without_waiting_for_other_desired_replicas() -> None:
    applied_from = {
        "lastScaleTime": stamp(at(seconds=-20)),
        "appliedFrom": {"replicas": 2, "desired": 5, "weight": 0},
    }
    assert count(decided(2, "2500m", status={"axes": {"horizontal": applied_from}})) == 5


def test_max_step_goes_the_way_in_parts() -> None:
    steps = {"scaleUp": {"maxStep": {"factor": 2, "minimum": 1}, "minChange": {"replicas": {"value": 2}}}}
    seen = needed(1, "9", steps)
    first = build.decided(seen)
    assert count(first) == 2
    after = replace(build.apply(seen, first), pods=seen.pods)
    soon = build.decided(after, at(seconds=10))
    assert (count(soon), soon.recheck_after) == (2, dt.timedelta(seconds=5))
    assert "the next step of maxStep at" in soon.steps[1]


@pytest.mark.parametrize(("replicas", "expected"), [(1, 3), (9, 6)])
def test_a_count_outside_the_bounds_is_brought_inside_at_once(replicas: int, expected: int) -> None:
    held_back = {"stabilizationDuration": "1h"}
    hpa = {
        "scaleUp": held_back,
        "scaleDown": held_back,
        "template": {"spec": {"minReplicas": 3, "maxReplicas": 6}},
    }
    last = {"axes": {"horizontal": {"lastScaleTime": stamp(at(minutes=-10))}}}
    assert count(decided(replicas, "1", hpa, status=last)) == expected


def test_a_starving_container_lets_replicas_pass_the_stabilization_window() -> None:
    window = {"scaleUp": {"stabilizationDuration": "1h"}}
    last = {"axes": {"horizontal": {"lastScaleTime": stamp(at(minutes=-10))}}}
    made = [app("1")]
    pods = [build.oom_killed(at(minutes=-1), containers=made), build.pod("web-2", containers=made)]
    assert held(decided(2, "2500m", window, status=last)) == [("up", "replicas", "StabilizationWindow")]
    assert count(decided(2, "2500m", window, status=last, pods=pods)) == 5


OFF: dict[str, Any] = {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}
"""Memory is not raised, so that the count is all there is."""


def out_of_memory(
    starving: int = 3,
    minutes: int = 1,
    metric: Resource = "memory",
    limit: str | None = "3Gi",
    target: str = "2Gi",
    **spec: Any,
) -> Decision:
    """3 pods of 2Gi, of which so many ran out of memory. The HPA measures them since they began again."""
    limits = None if limit is None else {"memory": limit}
    made = [build.container("app", {"cpu": "1", "memory": "2Gi"}, limits)]
    pods = [
        build.oom_killed(at(minutes=-minutes), f"web-{number}", containers=made) for number in range(starving)
    ]
    pods += [build.pod(f"web-{number}", containers=made) for number in range(starving, 3)]
    wanted = {"cpu": "1", "memory": "2Gi"}[metric]
    readings = [value(metric, wanted, wanted if metric == "cpu" else "1800Mi")]
    targets = {"app": {"cpu": "1", "memory": target}}
    return build.decided(
        state(3, made, readings, targets, {**FIXED_SIZE, "vpa": OFF, **spec}, pods=pods),
        resizes="updateStrategy" in spec,
    )


def test_pods_that_ran_out_of_memory_count_with_what_they_had() -> None:
    decision = out_of_memory()
    assert count(decision) == 5  # 3 × 3Gi take 5 × 2Gi
    assert view(decision).because == "memory that app ran out of asks for 5 replicas"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"starving": 2}, 3),
        ({"limit": "6Gi"}, 9),
        ({"limit": "20Gi"}, 10),
        ({"limit": None}, 3),
        ({"limit": "6Gi", "target": "1Gi"}, 6),
        ({"minutes": 6}, 3),
        ({"metric": "cpu"}, 3),
        ({"updateStrategy": {"type": "InPlace"}}, 5),
    ],
    ids=[
        "a pod that did not run out of memory counts with what is measured",
        "larger limits",
        "no more than maxReplicas",
        "without a limit with the request",
        "no more than four times the usual demand",
        "minutes later the HPA has measured",
        "where no metric measures memory, replicas follow CPU",
        "in place likewise",
    ],
)
def test_how_much_pods_count_that_ran_out_of_memory(changes: dict[str, Any], expected: int) -> None:
    assert count(out_of_memory(**changes)) == expected
