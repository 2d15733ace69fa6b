"""What other clients write: never lost, and not fought over for ever (DESIGN 8)."""

from __future__ import annotations

import datetime as dt

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import ago, condition, merged, trajectory, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario


def set_back(scenario: Scenario, axis: str) -> None:
    """Another client undoes a step."""
    if axis == "horizontal":
        scenario.change_workload({"replicas": 2}, "gitops")
    else:
        scenario.set_requests("gitops", cpu="500m")
        scenario.rollout_completes()


def redone(scenario: Scenario, axis: str) -> None:
    """The operator makes its step (again)."""
    if axis == "horizontal":
        scenario.await_replicas(4)
    else:
        scenario.await_requests(cpu="1")
        scenario.rollout_completes()


@pytest.mark.parametrize("axis", ["horizontal", "vertical"])
def test_what_is_set_back_twice_is_contested_and_the_other_axis_goes_on(
    new_scenario: NewScenario, operator: Operator, axis: str
) -> None:
    scenario = new_scenario(changes=weight(50))
    if axis == "horizontal":
        scenario.vpa_is_content()
        scenario.hpa_wants(6)
    else:
        scenario.vpa_recommends(cpu="1500m")
    redone(scenario, axis)
    set_back(scenario, axis)
    redone(scenario, axis)
    with scenario.held(operator, "Contested", axis, idle=False):
        set_back(scenario, axis)
    contested = scenario.await_condition("Contested", "True", "SetBack")
    assert "gitops keeps reverting" in contested["message"]
    scenario.await_event("SetBack", "gitops")
    held = scenario.blocked("Contested")
    assert held
    wait = dt.datetime.fromisoformat(held["until"]) - scenario.last_scale_time(axis)
    assert dt.timedelta(minutes=1) <= wait < dt.timedelta(minutes=3)

    scenario.rollout_completes()
    if axis == "horizontal":
        scenario.vpa_recommends(cpu="1500m")
        scenario.await_requests(cpu="1")
        assert scenario.replicas == 2
        scenario.change_workload({"replicas": 4}, "gitops")
    else:
        scenario.hpa_wants(6)
        scenario.await_replicas(4)
        assert scenario.requests["cpu"] == "500m"
        scenario.set_requests("gitops", cpu="1")
    scenario.await_condition("Contested", "False", "NotContested")


def test_pods_that_are_not_measured_yet_end_no_contest(new_scenario: NewScenario, operator: Operator) -> None:
    """Another client takes two of four pods away, and replaces the others: what pods used is no demand of theirs."""
    scenario = new_scenario(changes=merged(trajectory(), weight(0)))
    scenario.vpa_is_content()
    scenario.hpa_wants(4)
    redone(scenario, "horizontal")
    scenario.rollout_completes()
    scenario.hpa_wants(4)  # at its target, so that the measurement alone calls for two of two pods
    set_back(scenario, "horizontal")
    redone(scenario, "horizontal")
    with scenario.held(operator, "Contested", "horizontal", idle=False):
        set_back(scenario, "horizontal")
    held = scenario.blocked("Contested")
    for name in ("a", "b"):
        scenario.pod(name, conditions=[condition("Ready", "True", "", ago())])
    scenario.rollout_completes()
    scenario.settled()
    scenario.await_condition("Contested", "True", "SetBack")
    assert held is not None
    assert scenario.blocked("Contested") == held
    assert (scenario.replicas, scenario.status["recommended"]["replicas"]) == (2, 4)
    assert scenario.condition("Ready")["reason"] == "Contested"
    scenario.later(minutes=1)
    redone(scenario, "horizontal")


def test_deleting_the_hvpa_leaves_the_workload_as_it_is(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes=weight(50))
    scenario.vpa_is_content()
    scenario.hpa_wants(6)
    scenario.await_replicas(4)
    scenario.rollout_completes()
    scenario.vpa_recommends(cpu="1500m")
    scenario.await_requests(cpu="1")
    owners = [*scenario.hpa["metadata"]["ownerReferences"], *scenario.vpa["metadata"]["ownerReferences"]]
    uid = scenario.hvpa["metadata"]["uid"]
    # What they say is what the garbage collector goes by.
    assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in owners] == [
        ("Hvpa", uid, True)
    ] * 2
    for reason in ("ScaledOut", "ScaledUp"):
        scenario.await_event(reason)
    scenario.rollout_completes()
    scenario.hpa_wants(4)
    scenario.vpa_recommends(cpu="1")
    scenario.await_requests(cpu="750m")  # a target that fell by 500m, and a weight of 50
    scenario.rollout_completes()
    scenario.settled()
    scenario.await_unblocked()
    before = scenario.target
    mark = plane.audit.mark()
    scenario.delete()
    other = new_scenario()  # by the time that its HPA is there, the deletion has been seen
    other.hpa_wants(4)
    other.await_replicas(4)
    assert scenario.target == before
    assert plane.audit.requests(mark, user=USER, namespace=scenario.namespace, name=scenario.name) == []


def test_recommend_mode_patches_nothing_and_reports_what_would_be_set(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes={**weight(50), "mode": "Recommend"})
    before = scenario.target["metadata"]["generation"]
    scenario.vpa_recommends(cpu="1500m", memory="1500M")
    scenario.hpa_wants(6)
    scenario.soon(lambda: scenario.status["recommended"]["replicas"] == 4, "a recommended count")
    container = {
        "name": "app",
        "requests": {"cpu": "1", "memory": "1G"},
        "limits": {"cpu": "2", "memory": "2G"},
    }
    scenario.soon(
        lambda: scenario.status["recommended"]["containers"] == [container], "recommended resources"
    )
    scenario.await_condition("Ready", "True", "Recommend")
    assert scenario.target["metadata"]["generation"] == before
    assert plane.audit.requests(user=USER, resource="deployments", name=scenario.name) == []
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(4)
    scenario.await_requests(cpu="1", memory="1G")
