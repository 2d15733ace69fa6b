"""`blend: Trajectory` on a real API server: both axes are solved together (DESIGN 5.4, 5.5). The test acts as the
recommenders and the workload's controller."""

from __future__ import annotations

from itertools import pairwise

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import merged, request, trajectory, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario

PATH: Json = merged(trajectory(least={"cpu": "1"}), weight(50))
"""It begins at one replica of one core; at equal factors it grows in both."""
LOAD = 5000
"""Three replicas of 1667m serve it."""


def joint(new_scenario: NewScenario, replicas: int, **changes: object) -> Scenario:
    """A scenario of so many replicas of one core."""
    scenario = new_scenario(create=False, replicas=replicas, changes={**PATH, **changes})
    request(scenario.workload, cpu="1", memory="500M")
    return scenario.create()


def test_replicas_and_sizes_go_in_one_patch(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = joint(new_scenario, 1, mode="Paused")
    scenario.under(LOAD)
    scenario.soon(lambda: scenario.recommends(3, cpu="1667m"), "a recommendation for both axes")
    assert scenario.patches(plane.audit, USER) == []
    scenario.later(days=2)  # the VPA's targets are of one pod, and so they stay for a while
    scenario.change({"mode": "Apply"})
    scenario.await_replicas(3)
    resources = {"name": "app", "resources": {"requests": {"cpu": "1667m"}}}
    patch = {"replicas": 3, "template": {"spec": {"containers": [resources]}}}
    assert scenario.patches(plane.audit, USER) == [patch]
    scenario.minutes_under(LOAD)
    scenario.await_unblocked()
    assert scenario.patches(plane.audit, USER) == [patch]


def test_requests_go_up_before_replicas_go_down(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    """Five small pods become four large ones. While old and new pods are there, as many of the smaller ones as there
    are replicas serve the load at every version of the Deployment."""
    scenario = joint(new_scenario, 5)
    scenario.replace_pods()
    scenario.under(LOAD)
    scenario.await_requests(cpu="1667m")
    scenario.rollout(complete=False)
    scenario.await_blocked("PodReplacement", "horizontal", "down")
    for _ in range(3):
        scenario.hpa_measures(LOAD)
        scenario.later(minutes=2)
    assert scenario.replicas == 5
    scenario.arrives(4, 1667, LOAD)
    scenario.await_unblocked()
    assert [set(patch) for patch in scenario.patches(plane.audit, USER)] == [{"template"}, {"replicas"}]
    versions = scenario.versions(plane.audit)
    for before, after in pairwise(versions):
        assert after.replicas * min(before.cpu, after.cpu) >= LOAD
