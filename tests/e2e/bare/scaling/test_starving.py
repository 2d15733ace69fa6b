"""A container that ran out of memory is never held back (DESIGN 6.4)."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import ago, condition, merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario

RAISED = "604858k"
"""500M and 100Mi, which is more than 20 percent, in whole kilobytes."""
RAISED_AGAIN = "725830k"
"""A fifth more than that."""
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


def test_an_oom_killed_container_gets_memory_past_all_gates_but_not_twice_in_ten_minutes(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes=merged(weight(0), {"vpa": {"scaleUp": {"stabilizationDuration": "1h"}}}))
    scenario.rollout(complete=False)
    scenario.vpa_recommends(cpu="900m", memory="400M")
    scenario.await_blocked("Weight", "vertical")
    oom_killed(scenario, "a")
    scenario.await_requests(memory=RAISED, cpu="500m")
    assert scenario.resources()["limits"] == {"cpu": "1", "memory": "1209716k"}
    assert scenario.record["vertical"]["overrides"][0]["container"] == "app"
    scenario.soon(lambda: scenario.status["overrideScaleUpStabilization"] is False, "no more override")

    oom_killed(scenario, "b", 2)  # with the new resources, after the step
    scenario.soon(lambda: scenario.status["overrideScaleUpStabilization"] is True, "the override again")
    scenario.vpa_recommends(cpu="901m", memory="400M")
    scenario.soon(
        lambda: (scenario.blocked("Weight", "vertical", "up") or {})["wanted"] == "901m", "the next decision"
    )
    assert scenario.requests == {"cpu": "500m", "memory": RAISED}
    waits = scenario.await_blocked("RecentRaise", "vertical")
    assert (waits["container"], waits["resource"], waits["wanted"]) == ("app", "memory", RAISED_AGAIN)
    scenario.await_event("ScalingBlocked", "held by RecentRaise until 2")
    assert "held by RecentRaise until 2" in scenario.condition("ScalingBlocked")["message"]


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


def test_out_of_memory_with_other_resources_than_the_templates_is_history(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes=weight(0))
    old = scenario.pod("old")
    scenario.set_requests(memory="600M")
    scenario.set_container_status(old, out_of_memory())
    scenario.vpa_recommends(memory="800M")
    scenario.await_blocked("Weight", "vertical")
    scenario.soon(lambda: scenario.status["overrideScaleUpStabilization"] is False, "no override")
    assert scenario.requests["memory"] == "600M"


def test_while_a_container_starves_scaling_out_passes_its_stabilization_window(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes={"hpa": {"scaleUp": {"stabilizationDuration": "1h"}}})
    scenario.hpa_wants(4)
    scenario.await_replicas(4)
    scenario.hpa_wants(6)
    scenario.await_blocked("StabilizationWindow", "horizontal")
    oom_killed(scenario, "a")
    scenario.await_replicas(6)
    assert scenario.requests["memory"] == "500M"
