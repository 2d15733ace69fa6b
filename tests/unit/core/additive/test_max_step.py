"""The largest step out, `maxStep` (DESIGN 6.5), with the numbers of Postmates' Configurable HPA."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders import build
from builders.build import NOW, at, stamp
from hvpa.api.hvpa.scaling import MaxStep
from hvpa.core import Decision, Objects
from tests.unit.core.named import named

FAST: dict[str, Any] = {"factor": 10, "minimum": 4}
"""Postmates' fast example."""
PLAIN: dict[str, Any] = {"factor": 2, "minimum": 4}
"""The pace of the plain HPA of their time."""
PERIOD = dt.timedelta(seconds=15)
AT_REST = build.vpa({"app": {"cpu": "1", "memory": "1Gi"}})
"""A VPA that recommends what is requested already."""
MAX_REPLICAS = 100


def seen(
    desired: int,
    replicas: int,
    most: Mapping[str, Any] | None,
    weight: float = 0,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Objects:
    """An Hvpa whose HPA wants `desired replicas` of `replicas` replicas, and whose metrics say so too."""
    own = {
        "replicas": desired,
        "weightBasedScalingIntervals": [{"vpaWeight": weight}],
        "hpa": {"scaleUp": {"maxStep": most}, "template": {"spec": {"maxReplicas": MAX_REPLICAS}}},
    }
    hpa = build.hpa(desired, 50 * desired // replicas, replicas=replicas)
    hvpa = build.hvpa(build.merged(own, spec or {}), status)
    return build.objects(hvpa, rest.pop("target", None) or build.workload(replicas), hpa, AT_REST, **rest)


def target(decision: Decision) -> int:
    assert decision.replicas is not None
    return decision.replicas.target


def counts(objects: Objects, periods: int, still: bool = False) -> list[int]:
    """The counts that are set, one period after the other; a period in which none is (`still`: which) is left out."""
    replica_counts = []
    for index in range(periods):
        decision = build.decided(objects, NOW + index * PERIOD)
        objects = build.apply(objects, decision)
        if still or decision.applied:
            replica_counts.append(target(decision))
    return replica_counts


@pytest.mark.parametrize(
    ("most", "current", "limit"),
    [
        # Examples of the comment in Postmates' chpa_types.go
        (PLAIN, 1, 4),
        ({"factor": 3, "minimum": 4}, 10, 30),
        (FAST, 1, 10),
        (PLAIN, 2, 4),
        (PLAIN, 3, 6),
        ({}, 1, 4),
        ({}, 8, 16),
        pytest.param({"factor": 1.5, "minimum": 1}, 3, 5, id="rounded up"),
        pytest.param({"factor": 1.1, "minimum": 1}, 10, 11, id="exact, where floats say 11.000000000000002"),
        pytest.param({"factor": 1.001, "minimum": 1}, 1, 2, id="it always grows"),
    ],
)
def test_max_step_limit_by_factor_and_minimum(most: dict[str, Any], current: int, limit: int) -> None:
    assert MaxStep.model_validate(most).limit(current) == limit


@pytest.mark.parametrize(
    ("desired", "current", "expected"),
    named(
        {
            "10 are wanted: 4": (10, 1, 4),
            "3 are wanted: 3": (3, 1, 3),
            "twice as many": (60, 20, 40),
            "scaling in is not limited": (2, 20, 2),
        }
    ),
)
def test_max_step_limits_one_step_out_and_no_step_in(desired: int, current: int, expected: int) -> None:
    decision = build.decided(seen(desired, current, PLAIN))
    assert target(decision) == expected
    assert decision.blocked == ()
    assert decision.status.recommended is not None
    assert decision.status.recommended.replicas == expected


@pytest.mark.parametrize(
    ("most", "expected"),
    named(
        {
            "CHPA": (FAST, [10, 79]),
            "the HPA's own pace": (PLAIN, [4, 8, 16, 32, 64, 79]),
            "no limit": (None, [79]),
        }
    ),
)
def test_max_step_paces_of_postmates_to_79_pods(most: dict[str, Any] | None, expected: list[int]) -> None:
    # The desired replicas stays what it is, and the HPA says nothing new: the rest follows all the same, a step in 15
    # s.
    assert counts(seen(79, 1, most), 8) == expected
    assert counts(seen(79, 1, most), len(expected), still=True) == expected


def test_max_step_does_not_limit_scaling_in() -> None:
    assert counts(seen(10, 79, PLAIN), 3) == [10]


def test_max_step_holds_the_next_step_for_15_seconds_and_is_reported() -> None:
    before = seen(40, 4, PLAIN)
    first = build.decided(before)
    assert "8 by maxStep, the rest later" in first.steps[1]
    assert target(first) == 8
    after = build.apply(before, first)
    for when in (NOW, at(seconds=14)):
        waiting = build.decided(after, when)
        assert waiting.workload_patch is None
        assert waiting.recheck_after == at(seconds=15) - when
        (held,) = waiting.blocked
        assert (held.reason, held.current, held.wanted, held.until) == ("MaxStep", 8, 40, at(seconds=15))
        assert waiting.status.recommended is not None
        assert waiting.status.recommended.replicas == 40
        assert waiting.events == ()
        assert "the next step of maxStep at 2026-11-21T10:00:15Z" in waiting.steps[1]
    assert target(build.decided(after, at(seconds=15))) == 16


@pytest.mark.parametrize("weight", [20, 50, 60])
def test_max_step_ends_where_one_step_would_have(weight: float) -> None:
    (whole,) = counts(seen(44, 4, None, weight), 3)
    assert counts(seen(44, 4, {"factor": 1.5, "minimum": 1}, weight), 7)[-1] == whole


def test_max_step_other_desired_replicas_count_from_the_present_count() -> None:
    before = seen(44, 4, PLAIN, 50)
    after = build.apply(before, build.decided(before))
    anew = build.objects(after.hvpa, after.workload, seen(12, 8, PLAIN).hpas[0], AT_REST)
    assert target(build.decided(anew, at(seconds=14))) == 8, "a further step out, within the period"
    assert target(build.decided(anew, at(seconds=15))) == 10  # 8 + 4 x 0.5


def test_max_step_drops_the_rest_when_the_desired_replicas_fall() -> None:
    before = seen(44, 4, PLAIN)
    after = build.apply(before, build.decided(before))
    fallen = build.objects(after.hvpa, after.workload, seen(6, 8, PLAIN).hpas[0])
    assert target(build.decided(fallen, at(seconds=1))) == 6, "scaling in does not wait for a period"


def test_max_step_blends_anew_when_the_hpa_has_measured_anew() -> None:
    before = seen(44, 4, PLAIN, 50)  # to 24, by 8 and 16
    after = build.apply(before, build.decided(before))
    later = build.decided(after, at(seconds=60))
    assert later.steps[1].startswith(
        "replicas: 8 now, the HPA recommends 44; 26 after weighting, 16 by maxStep"
    )


def test_max_step_rest_follows_during_a_rollout() -> None:
    before = seen(44, 4, PLAIN)
    after = build.apply(before, build.decided(before))
    assert after.workload is not None
    change = {
        "metadata": {"annotations": dict(after.workload.metadata.annotations)},
        "status": {"availableReplicas": 4},
    }
    starting = build.objects(after.hvpa, build.workload(8, change=change), after.hpas[0])
    assert target(build.decided(starting, at(seconds=15))) == 16


def test_max_step_that_is_removed_lets_the_rest_follow_at_once() -> None:
    before = seen(44, 4, PLAIN, 50)
    decision = build.decided(before)
    free = seen(44, 8, None, 50, status={"axes": _axes(decision)})
    assert target(build.decided(free)) == 24


def _axes(decision: Decision) -> dict[str, Any]:
    axes = decision.status.axes
    assert axes is not None
    return axes.model_dump(by_alias=True, exclude_none=True, mode="json")


# --- gates -----------------------------------------------------------------------------------------------------------
def test_stabilization_window_holds_the_rest_of_a_max_step() -> None:
    before = seen(44, 4, PLAIN, spec={"hpa": {"scaleUp": {"stabilizationDuration": "3m"}}})
    after = build.apply(before, build.decided(before))
    held = build.decided(after, at(seconds=20))
    (entry,) = held.blocked
    assert (entry.reason, entry.current, entry.wanted) == ("StabilizationWindow", 8, 16)
    assert entry.until == at(minutes=3)
    assert target(build.decided(after, at(minutes=3))) == 16


def test_max_step_limits_a_starving_pod_that_passes_the_stabilization_window() -> None:
    pods = [build.oom_killed(at(minutes=-1)), *(build.pod(f"web-{index}") for index in range(3))]
    off = {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}  # so that it goes on starving
    spec = {"hpa": {"scaleUp": {"stabilizationDuration": "3m"}}, "vpa": off}
    before = seen(44, 4, PLAIN, spec=spec, pods=pods)
    decision = build.decided(before)
    assert target(decision) == 8
    after = build.apply(before, decision)
    assert target(build.decided(after, at(seconds=14))) == 8
    assert target(build.decided(after, at(seconds=15))) == 16


def test_min_change_judges_the_whole_way_of_max_step() -> None:
    spec = {"hpa": {"scaleUp": {"minChange": {"replicas": {"value": 10}}}}}
    # Neither the first step, by 3, nor the last, by 4, is as large as that.
    assert counts(seen(20, 1, PLAIN, spec=spec), 5) == [4, 8, 16, 20]
    (entry,) = build.decided(seen(10, 1, PLAIN, spec=spec)).blocked
    assert (entry.reason, entry.wanted) == ("MinChange", 4)


@pytest.mark.parametrize("least", [{"value": 10}, {"percentage": 50}])
def test_min_change_ignores_the_rest_of_max_step_though_desired_replicas_move(least: dict[str, int]) -> None:
    spec = {"hpa": {"scaleUp": {"minChange": {"replicas": least}}}}
    now = seen(20, 1, PLAIN, spec=spec)
    steps = []
    for index, desired in enumerate((20, 19, 21, 22, 30)):
        assert now.workload is not None
        count = now.workload.spec.replicas
        pods = tuple(build.pod(f"web-{number}") for number in range(count))
        now = replace(now, hpas=seen(desired, count, PLAIN).hpas, pods=pods)
        decision = build.decided(now, NOW + index * PERIOD)
        now = build.apply(now, decision)
        steps.append((target(decision), [entry.reason for entry in decision.blocked]))
    # The way ends at 22; what the HPA wants after that is judged.
    assert steps == [(4, []), (8, []), (16, []), (22, []), (22, ["MinChange"])]


def test_min_change_ignores_the_rest_of_max_step_though_the_pods_have_settled() -> None:
    least = {"minChange": {"replicas": {"value": 10}}, "stabilizationDuration": "3m"}
    now = seen(20, 1, PLAIN, spec={"hpa": {"scaleUp": least}})
    replica_counts = []
    for index in range(4):
        decision = build.decided(now, at(minutes=3 * index))
        now = build.apply(now, decision)
        replica_counts.append(target(decision))
    assert replica_counts == [4, 8, 16, 20]


# --- the goal --------------------------------------------------------------------------------------------------------
def applied_from(decision: Decision) -> dict[str, Any]:
    return dict(_axes(decision)["horizontal"]["appliedFrom"])


def starting(now: Objects) -> Objects:
    """While the last pods are not yet available: the same desired replicas is not blended anew."""
    assert now.workload is not None
    status = structs.replace(now.workload.status, available_replicas=1)
    return replace(now, workload=structs.replace(now.workload, status=status))


@pytest.mark.parametrize("mode", ["Apply", "Paused"])
def test_max_step_goal_ends_when_the_hpa_no_longer_wants_out(mode: str) -> None:
    first = build.decided(seen(44, 4, PLAIN, 50))
    assert applied_from(first) == {"replicas": 8, "desired": 44, "weight": 50, "goal": 24}
    enough = build.decided(seen(8, 8, PLAIN, 50, {"mode": mode}, {"axes": _axes(first)}), at(seconds=20))
    assert applied_from(enough) == {"replicas": 8, "desired": 8, "weight": 50}
    # An hour later the same count is wanted, at another weight.
    later = starting(seen(44, 8, PLAIN, 0, status={"axes": _axes(enough)}))
    decision = build.decided(later, at(hours=1))
    assert applied_from(decision) == {"replicas": 16, "desired": 44, "weight": 0, "goal": 44}


def test_max_step_goal_outlasts_a_time_without_desired_replicas() -> None:
    before = seen(44, 4, PLAIN, 50)
    after = build.apply(before, build.decided(before))
    failed = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric"}
    silent = build.hpa(
        44, 550, {"status": {"conditions": [failed]}, "spec": {"maxReplicas": 100}}, replicas=4
    )
    assert applied_from(build.decided(replace(after, hpas=(silent,)), at(seconds=20)))["goal"] == 24


def test_max_step_goal_keeps_the_weight_that_it_was_blended_with() -> None:
    first = build.decided(seen(44, 4, PLAIN, 0))
    edited = build.decided(seen(44, 8, PLAIN, 90, status={"axes": _axes(first)}), at(seconds=15))
    assert applied_from(edited) == {"replicas": 16, "desired": 44, "weight": 0, "goal": 44}


@pytest.mark.parametrize(
    ("lowest", "left"),
    [
        (12, {"desired": 44, "weight": 50, "goal": 24}),
        (24, {"desired": 24, "weight": 0}),
        (30, {"desired": 30, "weight": 0}),
    ],
)
def test_max_step_goal_stays_when_min_replicas_is_raised(lowest: int, left: dict[str, int]) -> None:
    window = {"scaleUp": {"stabilizationDuration": "30s"}}
    first = build.decided(seen(44, 4, PLAIN, 50, {"hpa": window}))
    raised = {"hpa": {**window, "template": {"spec": {"minReplicas": lowest}}}}
    for seconds in (5, 20):
        inside = build.decided(seen(44, 8, PLAIN, 50, raised, {"axes": _axes(first)}), at(seconds=seconds))
        assert target(inside) == lowest
        assert applied_from(inside) == {"replicas": lowest, **left}


def test_max_step_has_no_goal_when_min_replicas_is_raised_before_a_step() -> None:
    just_stepped = {"axes": {"horizontal": {"lastScaleTime": stamp(NOW)}}}
    raised = {"hpa": {"scaleUp": {"stabilizationDuration": "30s"}, "template": {"spec": {"minReplicas": 12}}}}
    decision = build.decided(seen(44, 8, PLAIN, 50, raised, just_stepped), at(seconds=20))
    assert applied_from(decision) == {"replicas": 12, "desired": 12, "weight": 0}


def test_weight_of_an_interval_holds_the_rest_of_a_max_step() -> None:
    intervals = [{"vpaWeight": 0, "lastReplicaCount": 5}, {"vpaWeight": 100, "startReplicaCount": 6}]
    before = seen(44, 4, PLAIN, spec={"weightBasedScalingIntervals": intervals})
    after = build.apply(before, build.decided(before))
    held = build.decided(after, at(seconds=15))
    assert [entry.reason for entry in held.blocked] == ["Weight"]
    assert target(held) == 8


def test_max_step_does_not_limit_a_count_below_min_replicas() -> None:
    spec = {"hpa": {"template": {"spec": {"minReplicas": 30}}}}
    decision = build.decided(seen(60, 1, PLAIN, spec=spec))
    assert target(decision) == 30
    just_stepped = {
        "axes": {
            "horizontal": {
                "lastScaleTime": stamp(NOW),
                "appliedFrom": {"replicas": 1, "desired": 1, "weight": 0},
            }
        }
    }
    assert target(build.decided(seen(60, 1, PLAIN, spec=spec, status=just_stepped))) == 30


def test_max_step_starts_anew_from_a_count_of_another_client() -> None:
    before = seen(44, 4, PLAIN)
    after = build.apply(before, build.decided(before))
    assert after.workload is not None
    change = {"metadata": {"annotations": dict(after.workload.metadata.annotations)}}
    set_back = build.objects(after.hvpa, build.workload(4, change=change), before.hpas[0])
    assert target(build.decided(set_back, at(seconds=1))) == 8, "it is made again at once, once"


# --- properties ------------------------------------------------------------------------------------------------------
_COUNT = st.integers(1, MAX_REPLICAS)
_LIMITS = st.fixed_dictionaries(
    {"factor": st.floats(1.01, 10).map(lambda factor: round(factor, 2)), "minimum": st.integers(1, 20)}
)


@given(_COUNT, _COUNT, _LIMITS, st.sampled_from([0, 20, 50, 99]))
def test_max_step_goes_as_far_as_it_may_and_no_further(
    desired: int, current: int, most: dict[str, Any], weight: float
) -> None:
    free, cut = (
        target(build.decided(seen(desired, current, None, weight))),
        seen(desired, current, most, weight),
    )
    limit = MaxStep.model_validate(most).limit(current)
    assert limit > current or limit >= most["minimum"]
    assert target(build.decided(cut)) == (free if free <= current else min(free, limit))


@given(_COUNT, _COUNT, _LIMITS, st.sampled_from([0, 20, 50]))
def test_max_step_any_way_ends_where_one_step_would_have(
    desired: int, current: int, most: dict[str, Any], weight: float
) -> None:
    # Only the first 60 s: after that, the same desired replicas is one on a settled workload, and worth another step.
    whole = counts(seen(desired, current, None, weight), 4, still=True)[-1]
    parts = counts(seen(desired, current, most, weight), 4, still=True)
    assert parts == sorted(parts, reverse=desired < current)
    assert parts[-1] <= whole if desired > current else parts[-1] == whole
    if parts[-1] == parts[-2]:
        assert parts[-1] == whole
