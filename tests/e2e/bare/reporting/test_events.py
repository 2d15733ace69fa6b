"""What an on-call engineer reads of a step: events with the why on the Hvpa and its workload. (Of a state in which
a user must act: `test_conditions.py`.)"""

from __future__ import annotations

import pytest

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario


def events_on(scenario: Scenario, kind: str, reason: str) -> list[Json]:
    """The Events with a reason on the Hvpa or on its workload."""
    return [
        one
        for one in scenario.api.list("Event", scenario.namespace)
        if (one["involvedObject"]["kind"], one["involvedObject"]["name"]) == (kind, scenario.name)
        and one["reason"] == reason
    ]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_step_is_an_event_with_its_why_on_the_hvpa_and_on_its_workload(
    new_scenario: NewScenario, operator: Operator, kind: str
) -> None:
    scenario = new_scenario(kind=kind, changes=weight(50))
    scenario.vpa_is_content()
    scenario.hpa_wants(6)
    scenario.await_replicas(4)
    message = "replicas 2 -> 4; HPA: cpu at 300 % of its target, using 6; vpaWeight 50"
    assert scenario.await_event("ScaledOut")["message"] == message
    [event] = scenario.soon(lambda: events_on(scenario, kind, "ScaledOut"), f"an Event on the {kind}")
    assert event["message"] == f"Hvpa {scenario.name}: {message}"
    assert event["involvedObject"]["uid"] == scenario.target["metadata"]["uid"], (
        "`kubectl describe` finds it by that"
    )
    assert event["involvedObject"]["apiVersion"] == "apps/v1"
