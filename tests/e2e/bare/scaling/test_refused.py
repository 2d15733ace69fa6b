"""What a policy of the cluster refuses on one axis does not hold up the other one (DESIGN 8)."""

from __future__ import annotations

import pytest

from localcluster.client.api import Json
from localcluster.client.audit import Mark
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.admission import FEW, Policy
from tests.e2e.bare.conftest import USER, NewScenario


def wants_a_core(spec: Json) -> None:
    """A spec that asks for more CPU than is allowed."""
    resources = spec["template"]["spec"]["containers"][0]["resources"]
    resources["requests"]["cpu"] = resources["limits"]["cpu"] = "1"


SMALL = Policy(
    "object.spec.template.spec.containers.all(c, "
    "quantity(c.resources.requests['cpu']).compareTo(quantity('800m')) <= 0)",
    "at most 800m of CPU",
    wants_a_core,
)


def patches(plane: ControlPlane, scenario: Scenario, mark: Mark) -> list[tuple[set[str], int]]:
    """Which parts of the spec the operator patched since, and how each patch was answered."""
    found = plane.audit.requests(
        mark, user=USER, namespace=scenario.namespace, resource="deployments", writes=True
    )
    return [(set((one.body or {})["spec"]), one.code) for one in found if one.verb == "patch"]


def wants_both(scenario: Scenario) -> None:
    """Both recommenders want more, and one decision is to change both axes: to 4 replicas of 1 core."""
    scenario.hpa_wants(6)
    scenario.vpa_recommends(cpu="1500m")
    scenario.soon(lambda: scenario.recommends(4, cpu="1"), "what is wanted")
    scenario.change({"mode": "Apply"})


BOTH, REPLICAS, REQUESTS = {"replicas", "template"}, {"replicas"}, {"template"}


@pytest.fixture
def paused(new_scenario: NewScenario) -> Scenario:
    """Two replicas of 500m, and nothing is applied yet."""
    return new_scenario(changes={**weight(50), "mode": "Paused"})


def test_a_policy_that_refuses_requests_does_not_hold_up_replicas(
    plane: ControlPlane, operator: Operator, paused: Scenario
) -> None:
    scenario = paused
    with SMALL.imposed(scenario) as name:
        mark = plane.audit.mark()
        wants_both(scenario)
        scenario.await_replicas(4)
        message = scenario.await_condition("Ready", "False", "Refused")["message"]
        assert "the API server refused to change requests" in message
        assert name in message
        assert "at most 800m of CPU" in message
        scenario.await_event("Refused", name)
        assert name in scenario.status["lastError"]["description"]
        assert scenario.record["vertical"] == {}, "nothing was written on this axis"
        assert scenario.requests["cpu"] == "500m"
        scenario.rollout_completes()
        scenario.hpa_wants(9)
        scenario.await_replicas(7)  # 4 + (9 - 4) / 2 rounded up
        scenario.rollout_completes()
        assert patches(plane, scenario, mark) == [(BOTH, 422), (REPLICAS, 200), (REPLICAS, 200)]
        scenario.await_blocked("Refused", "vertical")
        scenario.hpa_wants(7)
        # When it is time, the requests are tried once more, and then not for two minutes.
        scenario.later(minutes=1)
        scenario.soon(
            lambda: scenario.status["axes"]["vertical"]["refused"]["count"] == 2, "a second refusal"
        )
        assert patches(plane, scenario, mark)[3:] == [(REQUESTS, 422)]
    scenario.later(minutes=2)
    scenario.await_requests(cpu="1")
    scenario.rollout_completes()
    scenario.await_ready()
    assert "lastError" not in scenario.status
    assert "refused" not in scenario.status["axes"]["vertical"]
    assert [code for _, code in patches(plane, scenario, mark)] == [422, 200, 200, 422, 200]
    assert scenario.replicas == 7


def test_a_policy_that_refuses_replicas_does_not_hold_up_requests(
    plane: ControlPlane, operator: Operator, paused: Scenario
) -> None:
    scenario = paused
    with FEW.imposed(scenario) as name:
        mark = plane.audit.mark()
        wants_both(scenario)
        scenario.await_requests(cpu="1")
        message = scenario.await_condition("Ready", "False", "Refused")["message"]
        assert "the API server refused to change replicas" in message
        assert name in message
        assert scenario.replicas == 2
        assert scenario.record["horizontal"] == {}
        assert patches(plane, scenario, mark) == [(BOTH, 422), (REPLICAS, 422), (REQUESTS, 200)]
        scenario.rollout_completes()
        scenario.vpa_recommends(cpu="2")
        scenario.await_requests(cpu="1250m")  # 1 + (2 - 1.5) / 2
        assert patches(plane, scenario, mark)[3:] == [(REQUESTS, 200)]
    scenario.rollout_completes()
    scenario.later(minutes=2)
    scenario.await_replicas(4)
    scenario.rollout_completes()
    scenario.await_ready()


def test_what_is_refused_is_not_tried_again_by_a_new_operator(
    plane: ControlPlane, operator: Operator, paused: Scenario
) -> None:
    scenario = paused
    with SMALL.imposed(scenario):
        wants_both(scenario)
        scenario.await_condition("Ready", "False", "Refused")
        scenario.await_replicas(4)
        scenario.rollout_completes()
        mark = plane.audit.mark()
        operator.restart()
        scenario.hpa_wants(9)
        scenario.await_replicas(7)
        assert patches(plane, scenario, mark) == [(REPLICAS, 200)]
