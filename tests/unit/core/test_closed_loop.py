"""The loop closes and comes to rest: at constant load writes stop (DESIGN 7.4, 7.5, 7.6, 7.7, 8)."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.core.named import named
from tests.unit.core.world import World

pytestmark = pytest.mark.untraced
HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)


def rows(*found: tuple[float, int, int]) -> list[dict[str, Any]]:
    return [
        {"vpaWeight": weight, "startReplicaCount": first, "lastReplicaCount": last}
        for weight, first, last in found
    ]


INTERVALS: dict[str, Any] = {
    "all horizontal": None,
    "a fifth vertical": [{"vpaWeight": 20}],
    "half and half": [{"vpaWeight": 50}],
    "all vertical": [{"vpaWeight": 100}],
    "gardener's first example": rows((0, 1, 2), (0.6, 3, 7), (0, 7, 10)),
    "gardener's second example": rows((1, 1, 1), (0.6, 2, 4), (0, 5, 10)),
}


@pytest.mark.parametrize("target", named({"utilization": None, "average value": 1000}))
@pytest.mark.parametrize("load", [2.0, 4.7])
@pytest.mark.parametrize("intervals", INTERVALS.values(), ids=INTERVALS)
def test_at_constant_load_writes_stop(intervals: Any, load: float, target: int | None) -> None:
    # 7.5: an HPA on utilization and a VPA on the same CPU do not chase each other.
    world = World({"weightBasedScalingIntervals": intervals}, target_value=target)
    world.run(lambda _: load, 2 * HOUR)
    settled = world.now
    world.run(lambda _: load, HOUR)
    assert [kind for when, kind in world.writes if when >= settled] == []
    assert sum(kind in ("horizontal", "vertical") for _, kind in world.writes) < 40


@pytest.mark.parametrize("intervals", [INTERVALS["half and half"], INTERVALS["gardener's first example"]])
def test_after_a_peak_it_comes_to_rest_again(intervals: Any) -> None:
    world = World({"weightBasedScalingIntervals": intervals})
    world.run(lambda since: 1.0 if since < HOUR or since > 2 * HOUR else 6.0, 4 * HOUR)
    settled = world.now
    world.run(lambda _: 1.0, HOUR)
    assert [kind for when, kind in world.writes if when >= settled] == []


def test_two_who_reckon_with_another_tolerance_do_not_write_against_each_other() -> None:
    # The HPA scales at 2 percent off, the operator holds 10 percent for enough: 1.06 x 4 pods call for 5 or for 4.
    world = World({"weightBasedScalingIntervals": None}, replicas=4, tolerance=Fraction(1, 50))
    world.run(lambda _: 2.12, HOUR)
    settled = world.now
    world.run(lambda _: 2.12, HOUR)
    assert world.replicas == 4
    assert [kind for when, kind in world.writes if when >= settled] == []
    active = next(one for one in world.seen.hvpa.status.conditions if one.type == "HpaActive")
    assert active.reason == "StaleDesiredReplicas"


def test_a_pod_pinned_at_its_nodes_headroom_escalates() -> None:
    # 7.4: usage is pinned 500m above the request, minChange is 1 core: no single step ever shows a need of 1 core more.
    least = {"minChange": {"cpu": {"value": "1"}}}
    spec = {"vpa": {"scaleUp": least}, "weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    world = World(spec, node=500, vpa_memory=0.0)
    world.run(lambda _: 9.0, dt.timedelta(minutes=16))
    assert world.cpu >= 1500, "within minChangeTimeout"
    world.run(lambda _: 9.0, 5 * HOUR)
    assert world.cpu >= 9000


def test_outside_a_window_the_hpa_cannot_reach_the_workload() -> None:
    # 7.7: the HPA writes its desired replicas into `spec.replicas`, and that is all.
    in_window = {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
    spec = {
        "hpa": {"scaleUp": in_window, "scaleDown": in_window},
        "weightBasedScalingIntervals": None,
        "maintenanceTimeWindow": {"begin": "120000+0000", "end": "130000+0000"},
    }
    world = World(spec)
    world.run(lambda _: 3.0, 2 * HOUR - MINUTE)
    assert world.replicas == 1
    assert world.written("horizontal", world.now - 3 * HOUR) == 0
    world.run(lambda _: 3.0, 2 * MINUTE)
    assert world.replicas == 6


def test_weight_100_keeps_the_hpa_away_too() -> None:
    world = World({"weightBasedScalingIntervals": [{"vpaWeight": 100}]}, target_value=500)
    world.run(lambda _: 3.0, HOUR)
    assert world.replicas == 1
    assert world.cpu == 3450  # 3 cores and the VPA's margin
