"""Joint decisions where the HPA says nothing, or not all, or what it says is of other pods (DESIGN 4, 5.4)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from builders import build
from builders.build import GIB, at, stamp
from hvpa.core import Decision, Objects, Settings
from hvpa.core.path.path import SlotKey
from tests.unit.core.trajectory.jointly import EXACT, Reading, app, count, scene, value, view, wanted

CPU = SlotKey("app", "cpu")
IN_PLACE = Settings(in_place=True)


def test_a_silence_of_less_than_five_minutes_changes_nothing() -> None:
    """As long as new pods may take until the HPA counts them."""

    def silent(minutes: float) -> Objects:
        since = stamp(at(minutes=-minutes))
        active = {"type": "ScalingActive", "status": "False", "reason": "No", "lastTransitionTime": since}
        return scene(4, [app("1")], [], {"app": {"cpu": "3"}}, hpa={"status": {"conditions": [active]}})

    brief = build.decided(silent(4))
    assert wanted(brief) == (4, {CPU: 1000})
    assert view(brief).because == "the HPA has no metrics: nothing changes, for five minutes"
    assert brief.recheck_after == dt.timedelta(minutes=1)
    assert wanted(build.decided(silent(5))) == (4, {CPU: 3000})


@pytest.mark.parametrize(("target", "size"), [("100m", 1000), ("3", 3000)])
def test_while_the_hpa_is_silent_nothing_shrinks_and_pods_grow_for_usual_demand(
    target: str, size: int
) -> None:
    decision = build.decided(scene(4, [app("1")], [], {"app": {"cpu": target}}))
    assert wanted(decision) == (4, {CPU: size})
    assert view(decision).because == "the HPA has no metrics: nothing shrinks"
    alone = build.decided(scene(4, [app("1")]))
    assert (wanted(alone), count(alone)) == ((4, {}), 4)


def test_a_metric_without_a_value_takes_no_replica_away() -> None:
    readings: list[Reading] = [value("cpu", "1", "100m"), value("memory", "1Gi", None)]
    seen = scene(4, [app("1", "1Gi")], readings, {"app": {"cpu": "1"}}, wish=4)
    assert count(build.decided(seen)) == 4
    assert view(build.decided(seen)).because == "nothing is taken away: a metric has no value"
    assert count(build.decided(seen, settings=IN_PLACE)) == 4


def test_replicas_stay_as_long_as_the_hpa_remembers_more() -> None:
    def held_at(wish: int, settings: Settings | None = None) -> tuple[int, str]:
        readings = [value("cpu", "1", "250m")]
        seen = scene(8, [app("1")], readings, {"app": {"cpu": "250m"}}, {"trajectory": EXACT}, wish=wish)
        decision = build.decided(seen, settings=settings)
        return count(decision), view(decision).because

    remembered = "cpu asks for 2 replicas now, and the HPA still remembers more"
    assert [held_at(wish) for wish in (2, 6, 8)] == [
        (2, "cpu asks for 2 replicas"),
        (6, remembered),
        (8, remembered),
    ]
    assert [held_at(wish, IN_PLACE)[0] for wish in (6, 8)] == [6, 8]


@pytest.mark.parametrize(("seconds", "replicas"), [(-59, 4), (-60, 2)])
def test_no_replica_goes_before_the_hpa_has_measured_the_settled_workload(
    seconds: float, replicas: int
) -> None:
    def young(name: str, since: float) -> Any:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(at(seconds=since))}
        return build.pod(name, change={"status": {"conditions": [ready]}}, containers=[app("1")])

    def decided(**rest: Any) -> Decision:
        readings = [value("cpu", "1", "500m")]
        return build.decided(
            scene(4, [app("1")], readings, {"app": {"cpu": "1"}}, {"trajectory": EXACT}, **rest)
        )

    pods = [young(f"web-{index}", seconds if index else -3600) for index in range(4)]
    assert count(decided(pods=pods)) == replicas
    scaled = {"axes": {"horizontal": {"lastScaleTime": stamp(at(seconds=seconds))}}}
    found = decided(status=scaled)
    assert count(found) == replicas
    if replicas == 4:
        assert view(found).because == (
            "nothing is taken away: the HPA has yet to measure the pods that there are now"
        )
        assert found.recheck_after is not None
        assert found.recheck_after.total_seconds() == 60 + seconds


@pytest.mark.parametrize("settings", [None, IN_PLACE])
def test_idle_pods_keep_their_memory(settings: Settings | None) -> None:
    """Their CPU is next to nothing, but the recommender's least target is not: that tells no smaller number of pods."""
    least = {"hpa": {"template": {"spec": {"minReplicas": 4}}}, "trajectory": EXACT}
    targets = {"app": {"cpu": "25m", "memory": "1Gi"}}
    seen = scene(4, [app("25m", "1Gi")], [value("cpu", "100m", "1m")], targets, least)
    decision = build.decided(seen, settings=settings)
    assert view(decision).mean_replicas == 4
    assert wanted(decision)[0] == 4
    assert wanted(decision)[1][SlotKey("app", "memory")] == pytest.approx(GIB, abs=1000)
