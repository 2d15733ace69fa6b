"""Gates that open as time passes. (What each gate reports: `conditions/gates.py`.)"""

from __future__ import annotations

import datetime as dt
import math

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, VERTICAL_ONLY, merged
from localcluster.workloads.scenario import Scenario, parallel
from tests.e2e.bare.conftest import NewScenario

ON_TIME = 10.0
"""Seconds that a gate may open late; milliseconds on an idle machine. (At rest nothing else would open it, ever.)"""
SOON = 3
"""Seconds after which a gate opens that was seen to hold: until then it would hold for an hour."""
HOUR = dt.timedelta(hours=1)


def until(scenario: Scenario, reason: str) -> dt.datetime:
    """When that ends which holds, by the status."""
    held = scenario.blocked(reason) or {}
    return dt.datetime.fromisoformat(held["until"])


def soon_after(since: dt.datetime) -> dt.timedelta:
    """A duration in whole seconds that began at a time and is over soon."""
    return dt.timedelta(seconds=math.ceil((dt.datetime.now(dt.UTC) - since).total_seconds()) + SOON)


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

    by_window = {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}
    changes = merged(VERTICAL_ONLY, by_window)
    scenario = new_scenario(changes=changes | window(dt.datetime.now(dt.UTC) + HOUR))
    with scenario.held(operator, "MaintenanceWindow", "vertical"):
        scenario.vpa_recommends(cpu="1")
    begin = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SOON + 1)).replace(microsecond=0)
    scenario.change(window(begin))
    scenario.await_requests(cpu="1")
    late = scenario.last_scale_time("vertical") - begin
    assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)
    scenario.await_unblocked()


def test_a_scheduled_floor_begins_and_ends_by_itself_on_time(
    new_scenario: NewScenario, operator: Operator
) -> None:
    """Five replicas from the next full minute on, for some seconds; the HPA wants two all the time."""
    scenario = new_scenario(changes=HORIZONTAL_ONLY)
    scenario.hpa_wants(2)
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=SOON)
    begin, lasts = soon.replace(second=0, microsecond=0) + dt.timedelta(minutes=1), dt.timedelta(seconds=20)
    entry = {"schedule": f"{begin.minute} {begin.hour} * * *", "duration": "20s", "minReplicas": 5}
    scenario.change({"hpa": {"schedule": [entry]}})
    scenario.await_replicas(5, timeout=120)
    late = scenario.last_scale_time("horizontal") - begin
    assert dt.timedelta(0) <= late < dt.timedelta(seconds=ON_TIME)
    scenario.rollout_completes()
    scenario.hpa_wants(2)
    hpa = scenario.api.get("HorizontalPodAutoscaler", scenario.name, scenario.namespace)
    assert hpa["spec"]["minReplicas"] == 1
    scenario.later(minutes=2)
    scenario.await_replicas(2, timeout=120)
    assert scenario.last_scale_time("horizontal") >= begin + lasts
