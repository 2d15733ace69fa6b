"""An Hvpa with a fault says so, is not scaled, and harms no other."""

from __future__ import annotations

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario

FAULTY = {
    "a cron expression that never comes true": (
        {"maintenanceWindows": [{"schedule": "0 3 30 2 *", "duration": "1h"}]},
        "spec.maintenanceWindows[0].schedule",
    ),
    "a time zone that the database lacks": (
        {"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h", "timeZone": "Mars/Utopia"}]},
        "spec.maintenanceWindows[0].timeZone",
    ),
}


def untouched(plane: ControlPlane, scenario: Scenario) -> bool:
    """Whether the operator never tried to write to a scenario's workload."""
    requests = plane.audit.requests(user=USER, resource="deployments", namespace=scenario.namespace)
    return not [one for one in requests if one.name == scenario.name]


def goes_on(scenario: Scenario) -> None:
    """A valid Hvpa is scaled."""
    wanted = scenario.replicas + 2
    scenario.hpa_wants(wanted)
    scenario.await_replicas(wanted)


@pytest.mark.parametrize(("changes", "path"), FAULTY.values(), ids=FAULTY)
def test_what_no_schema_can_catch_is_told_and_a_valid_hvpa_beside_it_is_scaled(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, changes: Json, path: str
) -> None:
    faulty = new_scenario(create=False, changes=changes).create(wait=False)
    valid = new_scenario()
    told = faulty.await_condition("Ready", "False", "InvalidSpec")
    assert path in told["message"]
    assert path in faulty.await_event("InvalidSpec")["message"]
    assert faulty.events("InvalidSpec")[0]["type"] == "Warning"
    goes_on(valid)
    assert plane.api.find("HorizontalPodAutoscaler", faulty.name, faulty.namespace) is None
    faulty.change({"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h"}]})
    faulty.await_reason_gone("InvalidSpec")
    faulty.await_owned()
    goes_on(faulty)


def test_a_target_of_an_unsupported_kind_is_told(new_scenario: NewScenario, operator: Operator) -> None:
    scenario = new_scenario(create=False, changes={"targetRef": {"kind": "Job"}}).create(wait=False)
    told = scenario.await_condition("Ready", "False", "UnsupportedTarget")
    assert "Job" in told["message"]
    scenario.await_event("UnsupportedTarget")


def test_a_missing_target_is_told_and_scaled_once_it_is_there(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(create=False)
    plane.api.create(scenario.manifest)
    scenario.await_condition("Ready", "False", "TargetNotFound")
    scenario.await_event("TargetNotFound", scenario.name)
    plane.api.create(scenario.workload)
    scenario.rollout_completes()
    scenario.await_owned()
    goes_on(scenario)
    plane.api.delete("Deployment", scenario.name, scenario.namespace)
    scenario.await_condition("Ready", "False", "TargetNotFound")


def test_a_target_of_two_hvpas_is_scaled_by_neither_and_both_say_so(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    first, second = new_scenario(), new_scenario(create=False)
    second.manifest["spec"]["targetRef"]["name"] = first.name
    plane.api.create(second.manifest)
    for one, other in ((first, second), (second, first)):
        told = one.await_condition("Ready", "False", "TargetShared")
        assert other.name in told["message"]
        one.await_event("TargetShared", other.name)
    first.hpa_wants(6)
    bystander = new_scenario()
    goes_on(bystander)
    assert untouched(plane, first)
    second.delete()
    first.await_reason_gone("TargetShared")
    first.await_replicas(6)


def test_a_target_at_0_is_left_alone_and_its_mailbox_stays_usable(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(replicas=0)
    scenario.await_condition("Ready", "True", "ScaledToZero")
    scenario.hpa_wants(4)
    scenario.vpa_recommends(cpu="1")
    scenario.soon(lambda: scenario.hvpa["spec"]["replicas"] == 4, "the wish")
    goes_on(new_scenario())
    assert scenario.replicas == 0
    assert scenario.requests["cpu"] == "500m"
    assert untouched(plane, scenario)
    scenario.change_workload({"replicas": 1})
    scenario.rollout_completes()
    scenario.hpa_wants(3)
    scenario.await_replicas(3)
