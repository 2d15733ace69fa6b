"""A container that ran out of memory is never held back (DESIGN 6.4)."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import ago, condition, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario

RAISED = "604858k"
"""500M and 100Mi, which is more than 20 percent, in whole kilobytes."""
MESSAGE = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
    "Container app was using 600Mi, request is 500M, has larger consumption of memory. "
)


def out_of_memory(seconds: float = 0) -> Json:
    """The status of a container that was OOMKilled so many seconds from now (kubelets report whole seconds) and runs
    again."""
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": ago(minutes=5),
        "finishedAt": ago(seconds=-seconds),
    }
    return {"state": {"running": {}}, "lastState": {"terminated": ended}}


def oom_killed(scenario: Scenario, name: str, seconds: float = 0) -> None:
    """A pod of the present template with such a container."""
    scenario.pod(name, container_status=out_of_memory(seconds))


def test_an_eviction_for_memory_counts_likewise_and_goes_to_the_vpas_target(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes=weight(0))
    scenario.vpa_recommends(memory="800M")
    scenario.await_blocked("Weight", "vertical")
    ended = [condition("DisruptionTarget", "True", "TerminationByKubelet", ago(seconds=1))]
    disk = MESSAGE.replace("memory", "ephemeral-storage")
    scenario.pod("full-disk", phase="Failed", reason="Evicted", message=disk, conditions=ended)
    scenario.pod("evicted", phase="Failed", reason="Evicted", message=MESSAGE, conditions=ended)
    scenario.await_requests(memory="800M", cpu="500m")
