"""docs/joint-scaling.md: what waits, for how long, and as what it is told."""

from __future__ import annotations

import datetime as dt

import pytest

from builders import build
from hvpa.core.recommenders.estimate import SETTLING
from hvpa.core.trajectory.means import HALF_LIFE
from hvpa.core.trajectory.requests import NOT_WORTH_REPLACING, SHRINKS_AFTER
from tests.unit.core.trajectory import jointly
from tests.unit.joint_page import (
    GIGA,
    ONE_LINE,
    PLAIN,
    Usually,
    decided,
    read_pods,
    result,
    short_for,
    wanted,
)

SPIKE = read_pods("6 × 1"), 4500, Usually(3000, 3), PLAIN
"""All pods that there may be, and 9 cores needed."""
VERTICAL = {"weightBasedScalingIntervals": [{"vpaWeight": 100}]}
OVER = read_pods("3 × 1500m"), 1500, Usually(3000, 3), PLAIN
"""The spike is over: 3 cores are needed, as usual."""


def test_the_page_tells_the_times() -> None:
    assert dt.timedelta(minutes=5) == NOT_WORTH_REPLACING
    assert "CPU must have been short for 5 minutes (held by `SustainedDemand`, with the time)" in ONE_LINE
    assert "since replacing pods takes as long; then at once" in ONE_LINE
    assert "One that is shorter than 5 minutes is not served whole" in ONE_LINE
    assert dt.timedelta(hours=6) == SHRINKS_AFTER
    assert "at the earliest 6 hours after requests were last changed" in ONE_LINE
    assert "larger ones, and 6 hours later again" in ONE_LINE
    assert "the pods keep 1500m for 6 hours" in ONE_LINE
    assert dt.timedelta(seconds=60) == SETTLING
    assert "for 60 seconds after the Hvpa changed their number, or more than a tenth" in ONE_LINE
    assert dt.timedelta(days=1) == HALF_LIFE


# --- 5 minutes -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("minutes", "expected"), [(0, "6 × 1"), (4, "6 × 1"), (5, "6 × 1500m")])
def test_cpu_that_is_needed_now_waits_at_max_replicas(minutes: int, expected: str) -> None:
    decision = decided(*SPIKE, None, short_for(minutes))
    assert result(decision) == read_pods(expected)
    told = [(one.reason, one.resource, one.until) for one in decision.blocked]
    assert told == ([("SustainedDemand", "cpu", build.at(minutes=5 - minutes))] if minutes < 5 else [])


@pytest.mark.parametrize("minutes", [0, 5])
def test_and_where_the_path_is_vertical(minutes: int) -> None:
    decision = decided(read_pods("1 × 1"), 750, Usually(1000, 1), PLAIN, VERTICAL, short_for(minutes))
    assert wanted(decision) == read_pods("1 × 1500m")
    assert result(decision)[1] == (1500 if minutes == 5 else 1000)


def test_unless_usual_cpu_calls_for_larger_pods_as_well() -> None:
    decision = decided(read_pods("6 × 500m"), 4500, Usually(3000, 3), PLAIN)
    assert (result(decision), decision.blocked) == (read_pods("6 × 1500m"), ())


def test_memory_that_is_measured_does_not_wait() -> None:
    readings = [jointly.utilization("memory", 50, 75, "750M")]
    metrics = [spec for spec, _, _ in readings]
    decision = build.decided(
        jointly.state(
            6,
            [jointly.app("1", "1G")],
            readings,
            {"app": {"cpu": "500m", "memory": "500M"}},
            {"hpa": {"deploy": True, "template": {"spec": {"maxReplicas": 6, "metrics": metrics}}}},
            desired=6,
            hpa={"spec": {"maxReplicas": 6}},
        )
    )
    assert jointly.requests(decision)["memory"] == 3 * GIGA // 2
    assert not decision.blocked


# --- 6 hours ---------------------------------------------------------------------------------------------------------
def changed(hours: int) -> dict[str, dict[str, str]]:
    """The axes where requests were last changed so long ago."""
    return {"vertical": {"lastScaleTime": build.stamp(build.at(minutes=-60 * hours))}}


@pytest.mark.parametrize(
    ("wait", "hours", "opens"),
    [(None, 5, 1), (None, 6, None), ("0s", 5, 1), ("2h", 1, 1), ("2h", 2, None), ("8h", 7, 1)],
)
def test_lower_requests_wait(wait: str | None, hours: int, opens: int | None) -> None:
    change = {"vpa": {"scaleDown": {"stabilizationDuration": wait}}} if wait is not None else None
    decision = decided(*OVER, change, changed(hours))
    assert wanted(decision) == read_pods("3 × 1")
    assert result(decision) == read_pods("3 × 1" if opens is None else "3 × 1500m")
    told = [(one.reason, one.until) for one in decision.blocked]
    assert told == ([] if opens is None else [("StabilizationWindow", build.at(minutes=60 * opens))])


# --- 60 seconds ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("seconds", "expected"), [(59, 6), (60, 2)])
def test_no_replica_is_taken_away_just_after_a_step(seconds: int, expected: int) -> None:
    scaled = {"horizontal": {"lastScaleTime": build.stamp(build.at(seconds=-seconds))}}
    decision = decided(read_pods("6 × 1"), 900, Usually(3000, 3), PLAIN, None, scaled)
    assert result(decision) == (expected, 1000, GIGA)
