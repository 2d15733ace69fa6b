"""What holds a change of requests back, and for how long (DESIGN 6)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from builders import build
from builders.build import GIB, NOW, at, stamp
from hvpa.core import Decision, Objects
from hvpa.core.model import Blocked
from hvpa.core.rules import GateFigures
from tests.unit.core.additive.vertically import (
    CLOSED,
    IN_WINDOW,
    OFF,
    applied,
    axis,
    blended,
    down,
    only,
    recommending,
    requests,
    seen,
    up,
)
from tests.unit.core.named import named

TWO = {"cpu": "2"}
ROLLING = {"status": {"updatedReplicas": 2}}
SCALED = axis(at(minutes=-1))
FIGURES = {
    ("StabilizationWindow", 1500): GateFigures(
        dt.timedelta(minutes=3), source="vpa.scaleUp.stabilizationDuration"
    ),
    ("MinChange", 1150): GateFigures(dt.timedelta(minutes=15), 200),
    ("MinChange", 850): GateFigures(least=200),
    ("MinChange", 1500): GateFigures(dt.timedelta(minutes=1), 600, "vpa.scaleUp.minChange.cpu"),
}
"""The figures that a hold reports, by its reason and the request that is wanted."""
SIXTY = up(minChange={"cpu": {"percentage": 60}}, minChangeTimeout="1m")


@pytest.mark.parametrize(
    ("objects", "reason", "wanted", "until"),
    named(
        {
            "Paused": (seen(TWO, spec={"mode": "Paused"}), "Paused", 1500, None),
            "Weight: what full weight would be": (seen(TWO, weight=0), "Weight", 2000, None),
            "Weight: down": (seen({"cpu": "500m"}, weight=0), "Weight", 500, None),
            "UpdatePolicy: up is Off": (seen(TWO, spec=up(**OFF)), "UpdatePolicy", 1500, None),
            "UpdatePolicy: down is Off": (seen({"cpu": "400m"}, spec=down(**OFF)), "UpdatePolicy", 700, None),
            "StabilizationWindow: scaled a minute ago": (
                seen(TWO, spec=up(stabilizationDuration="3m"), status=SCALED),
                "StabilizationWindow",
                1500,
                at(minutes=2),
            ),
            "MaintenanceWindow: none is open": (
                seen(TWO, spec={**up(**IN_WINDOW), **CLOSED}),
                "MaintenanceWindow",
                1500,
                at(hours=12),
            ),
            "Rollout: under way": (seen(TWO, workload=ROLLING), "Rollout", 1500, None),
            "MinChange: 150m where the default asks for 200m": (
                seen({"cpu": "1300m"}),
                "MinChange",
                1150,
                at(minutes=15),
            ),
            "MinChange: down has no timeout": (seen({"cpu": "700m"}), "MinChange", 850, None),
            "MinChange: 60 percent of 1, and a shorter timeout": (
                seen(TWO, spec=SIXTY),
                "MinChange",
                1500,
                at(minutes=1),
            ),
        }
    ),
)
def test_each_gate_that_holds_a_request_is_reported_with_reason_and_until(
    objects: Objects, reason: str, wanted: int, until: dt.datetime | None
) -> None:
    decision = build.decided(objects)
    direction: Any = "up" if wanted > 1000 else "down"
    figures = FIGURES.get((reason, wanted))
    assert only(decision) == Blocked(
        "vertical", direction, reason, 1000, wanted, "app", "cpu", until, figures
    )
    assert decision.workload_patch is None
    (entry,) = decision.status.last_blocked_scaling
    assert (entry.reason, entry.axis, entry.direction) == (reason, "vertical", direction)
    assert (entry.container, entry.resource, entry.vpa_status is None) == ("app", "cpu", False)
    assert decision.recheck_after == (None if until is None else until - NOW)


@pytest.mark.parametrize(
    ("targets", "changed"),
    named(
        {
            "200m is enough CPU": ({"cpu": "1400m"}, True),
            "199.5m is 200m, as it would really be applied": ({"cpu": "1399m"}, True),
            "199m is not": ({"cpu": "1398m"}, False),
            "200M is enough memory": ({"memory": "1473741824"}, True),
            "less is not": ({"memory": "1470000000"}, False),
        }
    ),
)
def test_min_change_default_threshold(targets: dict[str, str], changed: bool) -> None:
    assert (build.decided(seen(targets)).workload_patch is not None) is changed


def test_update_policy_and_stabilization_window_hold_one_resource_and_axis_only() -> None:
    decision = build.decided(seen({"cpu": "2", "memory": "256Mi"}, spec=down(**OFF)))
    assert requests(decision) == {"cpu": 1500, "memory": GIB}
    assert (only(decision).resource, only(decision).reason) == ("memory", "UpdatePolicy")
    other = {"axes": {"horizontal": {"lastScaleTime": stamp(at(minutes=-1))}}}
    assert build.decided(seen(TWO, spec=up(stabilizationDuration="1h"), status=other)).blocked == ()


# --- minChangeTimeout ------------------------------------------------------------------------------------------------
SMALL = {"cpu": "1300m"}


def test_min_change_timeout_lets_a_small_rise_through_once_it_has_waited() -> None:
    waiting = applied(seen(SMALL))
    assert only(build.decided(waiting, at(minutes=14))).until == at(minutes=15)
    assert requests(build.decided(waiting, at(minutes=15)))["cpu"] == 1150
    held = recommending(applied(seen(TWO, workload=ROLLING)), SMALL)
    settled = build.objects(held.hvpa, build.workload(3), held.hpas[0], held.vpas[0])
    assert requests(build.decided(settled, at(minutes=15)))["cpu"] == 1150, "whatever held it before"


def test_min_change_timeout_starts_anew_after_an_interruption() -> None:
    rested = applied(recommending(applied(seen(SMALL)), {"cpu": "1"}), at(minutes=10))
    assert rested.hvpa.status.axes is not None
    assert rested.hvpa.status.axes.vertical is not None
    assert rested.hvpa.status.axes.vertical.pending == ()
    assert only(build.decided(recommending(rested, SMALL), at(minutes=11))).until == at(minutes=26)


def pending(since: dt.datetime) -> dict[str, Any]:
    entry = {"container": "app", "resource": "cpu", "direction": "up", "since": stamp(since)}
    return axis(None, pending=[entry])


def test_min_change_timeout_starts_anew_for_a_time_from_a_wrong_clock() -> None:
    assert only(build.decided(seen(SMALL, status=pending(at(hours=5))))).until == at(minutes=15)


def test_min_change_timeout_in_mode_recommend_ends_and_nothing_flaps() -> None:
    waiting = applied(seen(SMALL, spec={"mode": "Recommend"}))
    over = build.decided(waiting, at(minutes=20))
    assert (over.blocked, over.workload_patch, requests(over)["cpu"]) == ((), None, 1000)
    assert over.recommended["app"].requests["cpu"] == 1150
    later = build.decided(build.apply(waiting, over), at(minutes=40))
    assert later.status == over.status


@pytest.mark.parametrize(("small_steps", "hours"), [(6, 16), (7, 24), (10**18, 24)])
def test_min_change_timeout_doubles_with_each_small_step_up_to_a_day(small_steps: int, hours: int) -> None:
    status = blended("1", smallSteps=small_steps)
    assert only(build.decided(seen({"cpu": "1150m"}, weight=100, status=status))).until == at(hours=hours)


def test_min_change_timeout_of_0_stays_0() -> None:
    objects = seen(
        {"cpu": "1150m"}, weight=100, status=blended("1", smallSteps=3), spec=up(minChangeTimeout="0s")
    )
    assert requests(build.decided(objects))["cpu"] == 1150


@pytest.mark.parametrize(
    ("request_now", "target", "passes"),
    named(
        {
            "a millicore more": ("1", "1001m", False),
            "a tenth of the request, and half of minChange": ("1", "1100m", True),
            "less than both": ("1", "1099m", False),
            "a tenth of a small request": ("500m", "550m", True),
            "less than a tenth of it": ("500m", "549m", False),
            "half of minChange of a large request": ("4", "4100m", True),
            "less than half of minChange": ("4", "4099m", False),
        }
    ),
)
def test_min_change_timeout_lets_through_only_changes_that_are_large_enough(
    request_now: str, target: str, passes: bool
) -> None:
    made = [build.container(requests={"cpu": request_now})]
    decision = build.decided(seen({"cpu": target}, made, 100, status=pending(at(minutes=-15))))
    assert (decision.workload_patch is not None) == passes
    assert [(hold.reason, hold.until) for hold in decision.blocked] == (
        [] if passes else [("MinChange", None)]
    )


# --- the rollout's progress deadline ---------------------------------------------------------------------------------
def waits(decision: Decision) -> tuple[str, str, dt.datetime | None]:
    return only(decision).direction, only(decision).reason, only(decision).until


@pytest.mark.parametrize(
    ("request_now", "target", "direction"),
    named(
        {
            "pods too large for every node": ("64", "2", "down"),
            "pods too small to become ready": ("1", "4", "up"),
        }
    ),
)
def test_rollout_holds_a_change_that_repairs_pods_until_the_progress_deadline(
    request_now: str, target: str, direction: str
) -> None:
    def after(minutes: float) -> Decision:
        created = {"metadata": {"creationTimestamp": stamp(at(minutes=-minutes))}}
        made = [build.container(requests={"cpu": request_now})]
        pods = [build.pod(f"web-{index}", False, created, made) for index in range(3)]
        none_ready = {"status": {"readyReplicas": 0, "availableReplicas": 0}}
        return build.decided(seen({"cpu": target}, made, 100, workload=none_ready, pods=pods))

    assert waits(after(5)) == (direction, "Rollout", at(minutes=5))
    assert requests(after(10))["cpu"] == int(target) * 1000


def test_rollout_holds_requests_as_long_as_the_deployment_reports_progress() -> None:
    def after(minutes: float | None) -> Decision:
        status: dict[str, Any] = {"updatedReplicas": 2}
        if minutes is not None:
            updated = stamp(at(minutes=-minutes))
            status["conditions"] = [{"type": "Progressing", "status": "True", "lastUpdateTime": updated}]
        return build.decided(seen({"cpu": "4"}, weight=100, workload={"status": status}))

    assert waits(after(None)) == ("up", "Rollout", None)
    assert waits(after(2)) == ("up", "Rollout", at(minutes=8))
    assert requests(after(12))["cpu"] == 4000
