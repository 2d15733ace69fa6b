"""At rest the operator asks the API server for nothing (DESIGN 8), counted in the API server's own audit log."""

from __future__ import annotations

import os
import time

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE
from localcluster.workloads.bare_manifests import (
    HORIZONTAL_ONLY,
    VERTICAL_ONLY,
    closed_window,
    merged,
    weight,
)
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario, Start

SECONDS = float(os.environ.get("HVPA_REST_SECONDS", "8"))
"""How long is counted."""
RENEWALS = 2.0
"""Seconds between renewals of a lease of 15 s, as client-go's."""


def settled(new_scenario: NewScenario) -> list[Scenario]:
    """Hvpas that have come to rest in different ways: satisfied, blocked by gates with and without a time, paused,
    faulty, in the middle of a rollout, without recommendation, at 0."""
    hour = {"hpa": {"scaleUp": {"stabilizationDuration": "1h"}}}
    policy = {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "MaintenanceWindow"}}}}
    cron = {"maintenanceWindows": [{"schedule": "0 0 30 2 *", "duration": "1h"}]}
    satisfied, waiting, windowed = (
        new_scenario(changes=weight(50)),
        new_scenario(changes=hour),
        new_scenario(changes=closed_window() | policy),
    )
    paused, rolling = new_scenario(changes={"mode": "Paused"}), new_scenario(changes=VERTICAL_ONLY)
    quiet, idle = new_scenario(), new_scenario(replicas=0)
    faulty = new_scenario(create=False, changes=merged(HORIZONTAL_ONLY, cron)).create(wait=False)
    for scenario in (satisfied, waiting, paused):
        scenario.vpa_recommends(cpu="900m")
        scenario.await_condition("VpaActive", "True", "Recommending")
        scenario.hpa_wants(4)
    satisfied.await_replicas(3)
    waiting.await_replicas(4)
    waiting.hpa_wants(6)
    waiting.await_blocked("StabilizationWindow", "horizontal")
    windowed.vpa_recommends(cpu="1")
    windowed.await_blocked("Weight", "vertical")
    rolling.rollout(complete=False)
    rolling.vpa_recommends(cpu="1")
    rolling.await_blocked("Rollout", "vertical")
    paused.await_blocked("Paused", "horizontal")
    faulty.await_condition("Ready", "False", "InvalidSpec")
    satisfied.await_blocked(
        "Measurement", "horizontal"
    )  # 15 s after the step: the HPA has looked again by then
    return [satisfied, waiting, windowed, paused, rolling, quiet, idle, faulty]


def test_at_rest_there_is_no_request_but_the_lease(
    plane: ControlPlane, new_scenario: NewScenario, start: Start
) -> None:
    """For 8 s here, and for 60 s with HVPA_REST_SECONDS=60: 4 and 30 renewals of the lease, and no other request.
    (Watches are opened anew every 5 to 10 minutes.)"""
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    start("--leader-elect", "--lease-namespace", NAMESPACE)
    scenarios = settled(new_scenario)

    def quiet() -> bool:
        mark = plane.audit.mark()
        time.sleep(1.5)
        return all(request.resource == "leases" for request in plane.audit.requests(mark, user=USER))

    wait_for(quiet, 120, "all is reported")
    mark, began = plane.audit.mark(), time.monotonic()
    time.sleep(SECONDS)
    requests, lasted = plane.audit.requests(mark, user=USER), time.monotonic() - began
    others = [
        str(request) for request in requests if (request.resource, request.verb) != ("leases", "update")
    ]
    assert others == []
    assert SECONDS / RENEWALS / 2 <= len(requests) <= lasted / RENEWALS + 1
    assert len(scenarios) == 8
