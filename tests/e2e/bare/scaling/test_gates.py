"""Every gate of DESIGN 6.2 is seen to block, to tell so everywhere, and then to open."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, VERTICAL_ONLY, merged, weight
from localcluster.workloads.stage import Stage, new_namespace, parallel
from tests.e2e.bare.conftest import Play

ON_TIME = 10.0
"""Seconds that a gate may open late; milliseconds on an idle machine. (At rest nothing else would open it, ever.)"""
SOON = 3
"""Seconds after which a gate opens that was seen to hold: until then it would hold for an hour."""
HOUR = dt.timedelta(hours=1)


def mode(axis: str, direction: str, mode: str) -> Json:
    return {axis: {direction: {"updatePolicy": {"updateMode": mode}}}}


@pytest.fixture(scope="module", autouse=True)
def by_cron(plane: ControlPlane, operator: Operator) -> Iterator[tuple[Stage, dt.datetime]]:
    """A stage whose cron window opens at the start of a minute, and when; it waits while other tests run."""

    def window(opens: dt.datetime) -> Json:
        schedule = {"schedule": f"{opens.minute} {opens.hour} * * *", "duration": "10m", "timeZone": "UTC"}
        return {"maintenanceWindows": [schedule]}

    changes = merged(HORIZONTAL_ONLY, mode("hpa", "scaleUp", "MaintenanceWindow"))
    changes |= window(dt.datetime.now(dt.UTC) + HOUR)
    stage = Stage(plane.api, new_namespace(plane.api), changes=changes).create()
    with stage.held(operator, "MaintenanceWindow", "horizontal"):
        stage.hpa_wants(5)
    opens = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=10 + 60)).replace(second=0, microsecond=0)
    stage.change(window(opens))
    stage.soon(lambda: until(stage, "MaintenanceWindow") == opens, "the next minute's start")
    yield stage, opens
    stage.delete()


def until(stage: Stage, reason: str) -> dt.datetime:
    """When that ends which holds, by the status."""
    held = stage.blocked(reason) or {}
    return dt.datetime.fromisoformat(held["until"])


def soon_after(since: dt.datetime) -> dt.timedelta:
    """A duration in whole seconds that began at a time and is over soon."""
    return dt.timedelta(seconds=math.ceil((dt.datetime.now(dt.UTC) - since).total_seconds()) + SOON)


def test_nothing_is_held_where_no_gate_blocks(play: Play, operator: Operator) -> None:
    stage = play(changes=weight(50))
    stage.vpa_is_content()
    stage.hpa_wants(6)
    stage.await_replicas(4)  # halfway, 2 + (6 - 2) / 2
    stage.rollout_completes()
    stage.vpa_recommends(cpu="1500m", memory="1G")
    stage.await_requests(cpu="1", memory="750M")
    assert stage.resources()["limits"] == {"cpu": "2", "memory": "1500M"}
    stage.hpa_wants(4)  # else the rest of the way waits for a measurement
    stage.rollout_completes()
    stage.await_unblocked()
    for reason in ("ScaledOut", "ScaledUp"):
        stage.await_event(reason)
    assert operator.metric("hvpa_scalings_applied_total", axis="vertical", direction="up") >= 1


def test_paused_holds_both_axes_until_the_mode_is_apply(play: Play, operator: Operator) -> None:
    stage = play(changes={**weight(50), "mode": "Paused"})
    with (
        stage.held(operator, "Paused", "horizontal"),
        stage.held(operator, "Paused", "vertical"),
    ):
        stage.hpa_wants(6)
        stage.vpa_recommends(cpu="1500m")
    assert stage.await_condition("Paused", "True", "Paused")
    stage.await_event("Paused")
    stage.change({"mode": "Apply"})
    stage.await_replicas(4)
    stage.await_requests(cpu="1")
    stage.await_condition("Paused", "False", "NotPaused")


def test_weight_0_holds_the_vertical_axis_until_the_count_is_in_another_interval(
    play: Play, operator: Operator
) -> None:
    intervals = [
        {"vpaWeight": 0, "startReplicaCount": 1, "lastReplicaCount": 2},
        {"vpaWeight": 100, "startReplicaCount": 3, "lastReplicaCount": 10},
    ]
    stage = play(changes={"weightBasedScalingIntervals": intervals})
    with stage.held(operator, "Weight", "vertical"):
        stage.vpa_recommends(cpu="1")
    stage.hpa_wants(3)
    stage.await_replicas(3)
    stage.hpa_wants(3)
    stage.rollout_completes()
    stage.await_requests(cpu="1")


def test_weight_100_holds_the_horizontal_axis_until_the_intervals_change(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(100))
    stage.vpa_is_content()
    with stage.held(operator, "Weight", "horizontal"):
        stage.hpa_wants(6)
    stage.change(weight(0))
    stage.await_replicas(6)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_update_policy_off_holds_one_direction_of_one_axis_until_it_is_auto(
    play: Play, operator: Operator, direction: str
) -> None:
    up = direction == "up"
    field = "scaleUp" if up else "scaleDown"
    changes = merged(mode("hpa", field, "Off"), mode("vpa", field, "Off"))
    stage = play(replicas=4, changes=merged(changes, weight(50)))
    with (
        stage.held(operator, "UpdatePolicy", "horizontal", direction),
        stage.held(operator, "UpdatePolicy", "vertical", direction),
    ):
        stage.hpa_wants(8 if up else 2)
        stage.vpa_recommends(cpu="1" if up else "250m")
    assert stage.status[f"hpa{field[0].upper()}{field[1:]}UpdatePolicy"] == {"updateMode": "Off"}
    stage.change(mode("hpa", field, "Auto"))
    stage.await_replicas(6 if up else 3)
    stage.rollout_completes()
    assert stage.requests["cpu"] == "500m"
    stage.change(mode("vpa", field, "Auto"))
    stage.await_requests(cpu="750m" if up else "375m")


def test_the_stabilization_window_opens_by_itself_on_time_and_each_axis_has_its_own(
    play: Play, operator: Operator
) -> None:
    across = {"hpa": {"scaleUp": {"stabilizationDuration": "1h"}}}
    along = {"vpa": {"scaleDown": {"stabilizationDuration": "1h"}}}
    out, tall = parallel(
        [
            play(create=False, changes=merged(HORIZONTAL_ONLY, across)),
            play(create=False, changes=merged(VERTICAL_ONLY, along)),
        ]
    )
    out.hpa_wants(4)
    out.await_replicas(4)
    with out.held(operator, "StabilizationWindow", "horizontal"):
        out.hpa_wants(8)
    first = out.last_scale_time("horizontal")
    tall.vpa_recommends(cpu="1")
    tall.await_requests(cpu="1")
    tall.rollout_completes()
    with tall.held(operator, "StabilizationWindow", "vertical", "down"):
        tall.vpa_recommends(cpu="700m")
    earlier = tall.last_scale_time("vertical")
    assert until(out, "StabilizationWindow") == first + HOUR
    assert until(tall, "StabilizationWindow") == earlier + HOUR
    lasts, lasting = soon_after(first), soon_after(earlier)
    out.change({"hpa": {"scaleUp": {"stabilizationDuration": f"{lasts.seconds}s"}}})
    tall.change({"vpa": {"scaleDown": {"stabilizationDuration": f"{lasting.seconds}s"}}})
    out.await_replicas(8)
    tall.await_requests(cpu="700m")
    for late in (
        out.last_scale_time("horizontal") - first - lasts,
        tall.last_scale_time("vertical") - earlier - lasting,
    ):
        assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)


def test_a_daily_maintenance_window_opens_by_itself_on_time(play: Play, operator: Operator) -> None:
    def window(begin: dt.datetime) -> Json:
        end = begin + dt.timedelta(minutes=10)
        times = {
            "begin": begin.strftime("%H%M%S+0000"),
            "end": (end + dt.timedelta(hours=2)).strftime("%H%M%S+0200"),
        }
        return {"maintenanceTimeWindow": times}

    changes = merged(VERTICAL_ONLY, mode("vpa", "scaleUp", "MaintenanceWindow"))
    stage = play(changes=changes | window(dt.datetime.now(dt.UTC) + HOUR))
    with stage.held(operator, "MaintenanceWindow", "vertical"):
        stage.vpa_recommends(cpu="1")
    begin = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SOON + 1)).replace(microsecond=0)
    stage.change(window(begin))
    stage.await_requests(cpu="1")
    late = stage.last_scale_time("vertical") - begin
    assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)
    stage.await_unblocked()


def test_a_rollout_holds_the_vertical_axis_until_it_is_complete(play: Play, operator: Operator) -> None:
    stage = play(changes=VERTICAL_ONLY)
    stage.rollout(complete=False)
    with stage.held(operator, "Rollout", "vertical"):
        stage.vpa_recommends(cpu="1")
    stage.rollout_completes()
    stage.await_requests(cpu="1")


def test_a_rollout_that_never_completes_does_not_hold_the_horizontal_axis(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(50))
    stage.rollout(complete=False)
    with stage.held(operator, "Rollout", "vertical", idle=False):
        stage.vpa_recommends(cpu="1500m")
        stage.hpa_wants(6)
        stage.await_replicas(4)
    stage.rollout(complete=False)
    stage.hpa_wants(10)
    stage.await_replicas(7)
    assert stage.requests["cpu"] == "500m"
    assert stage.blocked("Rollout", "vertical")


def test_min_change_holds_until_the_change_is_large_enough(play: Play, operator: Operator) -> None:
    least = {"minChange": {"cpu": {"value": "200m"}, "memory": {"value": None, "percentage": 50}}}
    across = merged(HORIZONTAL_ONLY, {"hpa": {"scaleUp": {"minChange": {"replicas": {"value": 2}}}}})
    along = merged(VERTICAL_ONLY, {"vpa": {"scaleUp": least}})
    out, tall = parallel([play(create=False, changes=across), play(create=False, changes=along)])
    with out.held(operator, "MinChange", "horizontal"):
        out.hpa_wants(3)
    with tall.held(operator, "MinChange", "vertical"):
        tall.vpa_recommends(cpu="699m", memory="749M")
    assert {one["resource"] for one in tall.status["lastBlockedScaling"]} == {"cpu", "memory"}
    out.hpa_wants(4)
    out.await_replicas(4)
    tall.vpa_recommends(cpu="700m", memory="749M")
    tall.await_requests(cpu="700m", memory="500M")
    tall.rollout_completes()
    tall.vpa_recommends(cpu="700m", memory="750M")
    tall.await_requests(cpu="700m", memory="750M")


def test_a_raise_below_min_change_goes_through_after_its_timeout(play: Play, operator: Operator) -> None:
    timeout = {"vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1"}}, "minChangeTimeout": "1h"}}}
    stage = play(changes=merged(VERTICAL_ONLY, timeout))
    with stage.held(operator, "MinChange", "vertical"):
        stage.vpa_recommends(cpu="600m")
    pending = stage.status["axes"]["vertical"]["pending"][0]
    since = dt.datetime.fromisoformat(pending["since"])
    lasts = soon_after(since)
    stage.change({"vpa": {"scaleUp": {"minChangeTimeout": f"{lasts.seconds}s"}}})
    stage.await_requests(cpu="600m")
    late = stage.last_scale_time("vertical") - since - lasts
    assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)


def test_a_count_outside_its_bounds_is_brought_inside_past_the_gates(play: Play, operator: Operator) -> None:
    stage = play(replicas=4, changes={"hpa": {"scaleDown": {"stabilizationDuration": "1h"}}})
    stage.hpa_wants(8)
    stage.await_replicas(8)
    stage.change({"hpa": {"template": {"spec": {"maxReplicas": 6}}}})
    stage.await_replicas(6)


def test_a_cron_window_opens_by_itself_on_time(by_cron: tuple[Stage, dt.datetime]) -> None:
    stage, opens = by_cron
    stage.await_replicas(5, 150)
    assert dt.timedelta(0) <= stage.last_scale_time("horizontal") - opens < dt.timedelta(seconds=ON_TIME)
    stage.await_unblocked()
