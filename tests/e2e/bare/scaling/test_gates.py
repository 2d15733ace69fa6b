"""Gates that open as time passes, and what goes past a gate. (What each gate reports: `conditions/gates.py`.)"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, VERTICAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario, new_namespace, parallel
from tests.e2e.bare.conftest import NewScenario

ON_TIME = 10.0
"""Seconds that a gate may open late; milliseconds on an idle machine. (At rest nothing else would open it, ever.)"""
SOON = 3
"""Seconds after which a gate opens that was seen to hold: until then it would hold for an hour."""
HOUR = dt.timedelta(hours=1)


def mode(axis: str, direction: str, mode: str) -> Json:
    return {axis: {direction: {"updatePolicy": {"updateMode": mode}}}}


@pytest.fixture(scope="module", autouse=True)
def by_cron(plane: ControlPlane, operator: Operator) -> Iterator[tuple[Scenario, dt.datetime]]:
    """A scenario whose cron window opens at the start of a minute, and when; it waits while other tests run."""

    def window(opens: dt.datetime) -> Json:
        schedule = {"schedule": f"{opens.minute} {opens.hour} * * *", "duration": "10m", "timeZone": "UTC"}
        return {"maintenanceWindows": [schedule]}

    changes = merged(HORIZONTAL_ONLY, mode("hpa", "scaleUp", "MaintenanceWindow"))
    changes |= window(dt.datetime.now(dt.UTC) + HOUR)
    scenario = Scenario(plane.api, new_namespace(plane.api), changes=changes).create()
    with scenario.held(operator, "MaintenanceWindow", "horizontal"):
        scenario.hpa_wants(5)
    opens = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=10 + 60)).replace(second=0, microsecond=0)
    scenario.change(window(opens))
    scenario.soon(lambda: until(scenario, "MaintenanceWindow") == opens, "the next minute's start")
    yield scenario, opens
    scenario.delete()


def until(scenario: Scenario, reason: str) -> dt.datetime:
    """When that ends which holds, by the status."""
    held = scenario.blocked(reason) or {}
    return dt.datetime.fromisoformat(held["until"])


def soon_after(since: dt.datetime) -> dt.timedelta:
    """A duration in whole seconds that began at a time and is over soon."""
    return dt.timedelta(seconds=math.ceil((dt.datetime.now(dt.UTC) - since).total_seconds()) + SOON)


def test_paused_holds_both_axes_until_the_mode_is_apply(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes={**weight(50), "mode": "Paused"})
    with (
        scenario.held(operator, "Paused", "horizontal"),
        scenario.held(operator, "Paused", "vertical"),
    ):
        scenario.hpa_wants(6)
        scenario.vpa_recommends(cpu="1500m")
    assert scenario.await_condition("Paused", "True", "Paused")
    scenario.await_event("Paused")
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(4)
    scenario.await_requests(cpu="1")
    scenario.await_condition("Paused", "False", "NotPaused")


def test_the_stabilization_window_opens_by_itself_on_time_and_each_axis_has_its_own(
    new_scenario: NewScenario, operator: Operator
) -> None:
    across = {"hpa": {"scaleUp": {"stabilizationDuration": "1h"}}}
    along = {"vpa": {"scaleDown": {"stabilizationDuration": "1h"}}}
    out, tall = parallel(
        [
            new_scenario(create=False, changes=merged(HORIZONTAL_ONLY, across)),
            new_scenario(create=False, changes=merged(VERTICAL_ONLY, along)),
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


def test_a_daily_maintenance_window_opens_by_itself_on_time(
    new_scenario: NewScenario, operator: Operator
) -> None:
    def window(begin: dt.datetime) -> Json:
        end = begin + dt.timedelta(minutes=10)
        times = {
            "begin": begin.strftime("%H%M%S+0000"),
            "end": (end + dt.timedelta(hours=2)).strftime("%H%M%S+0200"),
        }
        return {"maintenanceTimeWindow": times}

    changes = merged(VERTICAL_ONLY, mode("vpa", "scaleUp", "MaintenanceWindow"))
    scenario = new_scenario(changes=changes | window(dt.datetime.now(dt.UTC) + HOUR))
    with scenario.held(operator, "MaintenanceWindow", "vertical"):
        scenario.vpa_recommends(cpu="1")
    begin = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SOON + 1)).replace(microsecond=0)
    scenario.change(window(begin))
    scenario.await_requests(cpu="1")
    late = scenario.last_scale_time("vertical") - begin
    assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)
    scenario.await_unblocked()


def test_a_rollout_that_never_completes_does_not_hold_the_horizontal_axis(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes=weight(50))
    scenario.rollout(complete=False)
    with scenario.held(operator, "Rollout", "vertical", idle=False):
        scenario.vpa_recommends(cpu="1500m")
        scenario.hpa_wants(6)
        scenario.await_replicas(4)
    scenario.rollout(complete=False)
    scenario.hpa_wants(10)
    scenario.await_replicas(7)
    assert scenario.requests["cpu"] == "500m"
    assert scenario.blocked("Rollout", "vertical")


def test_a_raise_below_min_change_goes_through_after_its_timeout(
    new_scenario: NewScenario, operator: Operator
) -> None:
    timeout = {"vpa": {"scaleUp": {"minChange": {"cpu": {"value": "1"}}, "minChangeTimeout": "1h"}}}
    scenario = new_scenario(changes=merged(VERTICAL_ONLY, timeout))
    with scenario.held(operator, "MinChange", "vertical"):
        scenario.vpa_recommends(cpu="600m")
    pending = scenario.status["axes"]["vertical"]["pending"][0]
    since = dt.datetime.fromisoformat(pending["since"])
    lasts = soon_after(since)
    scenario.change({"vpa": {"scaleUp": {"minChangeTimeout": f"{lasts.seconds}s"}}})
    scenario.await_requests(cpu="600m")
    late = scenario.last_scale_time("vertical") - since - lasts
    assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)


def test_a_count_outside_its_bounds_is_brought_inside_past_the_gates(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(replicas=4, changes={"hpa": {"scaleDown": {"stabilizationDuration": "1h"}}})
    scenario.hpa_wants(8)
    scenario.await_replicas(8)
    scenario.change({"hpa": {"template": {"spec": {"maxReplicas": 6}}}})
    scenario.await_replicas(6)


def test_a_cron_window_opens_by_itself_on_time(by_cron: tuple[Scenario, dt.datetime]) -> None:
    scenario, opens = by_cron
    scenario.await_replicas(5, 150)
    assert dt.timedelta(0) <= scenario.last_scale_time("horizontal") - opens < dt.timedelta(seconds=ON_TIME)
    scenario.await_unblocked()
