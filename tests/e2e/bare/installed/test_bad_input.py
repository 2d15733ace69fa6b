"""What is not to be scaled is never written to, and an Hvpa beside it is scaled. (What each reports: `conditions`.)"""

from __future__ import annotations

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario


def untouched(plane: ControlPlane, scenario: Scenario) -> bool:
    """Whether the operator never tried to write to a scenario's workload."""
    requests = plane.audit.requests(user=USER, resource="deployments", namespace=scenario.namespace)
    return not [request for request in requests if request.name == scenario.name]


def test_a_target_of_two_hvpas_is_scaled_by_neither_and_both_say_so(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    first, second = new_scenario(), new_scenario(create=False)
    second.manifest["spec"]["targetRef"]["name"] = first.name
    plane.api.create(second.manifest)
    for scenario, other in ((first, second), (second, first)):
        condition = scenario.await_condition("Ready", "False", "TargetShared")
        assert other.name in condition["message"]
        scenario.await_event("TargetShared", other.name)
    first.hpa_wants(6)
    bystander = new_scenario()
    bystander.scales()
    assert untouched(plane, first)
    second.delete()
    first.await_reason_gone("TargetShared")
    first.await_replicas(6)


def test_a_target_at_0_is_left_alone_and_its_scale_replicas_stay_usable(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(replicas=0)
    scenario.await_condition("Ready", "True", "ScaledToZero")
    scenario.hpa_wants(4)
    scenario.vpa_recommends(cpu="1")
    scenario.soon(lambda: scenario.hvpa["spec"]["replicas"] == 4, "the desired replicas")
    new_scenario().scales()
    assert scenario.replicas == 0
    assert scenario.requests["cpu"] == "500m"
    assert untouched(plane, scenario)
    scenario.change_workload({"replicas": 1})
    scenario.rollout_completes()
    scenario.hpa_wants(3)
    scenario.await_replicas(3)
