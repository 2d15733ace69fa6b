"""A container that ran out of memory is never held back (DESIGN 6.4)."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import ago, condition, merged, weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import Play

RAISED = "604858k"
"""500M and 100Mi, which is more than 20 percent, in whole kilobytes."""
RAISED_AGAIN = "725830k"
"""A fifth more than that."""
MESSAGE = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
    "Container app was using 600Mi, request is 500M, has larger consumption of memory. "
)


def out_of_memory(seconds: float = 0) -> Json:
    """The status of a container that was OOMKilled so many seconds from now (kubelets tell whole seconds) and runs
    again."""
    ended = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": ago(minutes=5),
        "finishedAt": ago(seconds=-seconds),
    }
    return {"state": {"running": {}}, "lastState": {"terminated": ended}}


def oom_killed(stage: Stage, name: str, seconds: float = 0) -> None:
    """A pod of the present template with such a container."""
    stage.pod(name, container_status=out_of_memory(seconds))


def test_an_oom_killed_container_gets_memory_past_all_gates_but_not_twice_in_ten_minutes(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=merged(weight(0), {"vpa": {"scaleUp": {"stabilizationDuration": "1h"}}}))
    stage.rollout(complete=False)
    stage.vpa_recommends(cpu="900m", memory="400M")
    stage.await_blocked("Weight", "vertical")
    oom_killed(stage, "a")
    stage.await_requests(memory=RAISED, cpu="500m")
    assert stage.resources()["limits"] == {"cpu": "1", "memory": "1209716k"}
    assert stage.record["vertical"]["overrides"][0]["container"] == "app"
    stage.soon(lambda: stage.status["overrideScaleUpStabilization"] is False, "no more override")

    oom_killed(stage, "b", 2)  # with the new resources, after the step
    stage.soon(lambda: stage.status["overrideScaleUpStabilization"] is True, "the override again")
    stage.vpa_recommends(cpu="901m", memory="400M")
    stage.soon(
        lambda: (stage.blocked("Weight", "vertical", "up") or {})["wanted"] == "901m", "the next decision"
    )
    assert stage.requests == {"cpu": "500m", "memory": RAISED}
    waits = stage.await_blocked("RecentRaise", "vertical")
    assert (waits["container"], waits["resource"], waits["wanted"]) == ("app", "memory", RAISED_AGAIN)
    stage.await_event("ScalingBlocked", "held by RecentRaise until 2")
    assert "held by RecentRaise until 2" in stage.condition("ScalingBlocked")["message"]


def test_an_eviction_for_memory_counts_likewise_and_goes_to_the_vpas_target(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(0))
    stage.vpa_recommends(memory="800M")
    stage.await_blocked("Weight", "vertical")
    ended = [condition("DisruptionTarget", "True", "TerminationByKubelet", ago(seconds=1))]
    disk = MESSAGE.replace("memory", "ephemeral-storage")
    stage.pod("full-disk", phase="Failed", reason="Evicted", message=disk, conditions=ended)
    stage.pod("evicted", phase="Failed", reason="Evicted", message=MESSAGE, conditions=ended)
    stage.await_requests(memory="800M", cpu="500m")


def test_out_of_memory_with_other_resources_than_the_templates_is_history(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(0))
    old = stage.pod("old")
    stage.set_requests(memory="600M")
    stage.tell_of_container(old, out_of_memory())
    stage.vpa_recommends(memory="800M")
    stage.await_blocked("Weight", "vertical")
    stage.soon(lambda: stage.status["overrideScaleUpStabilization"] is False, "no override")
    assert stage.requests["memory"] == "600M"


def test_while_a_container_starves_scaling_out_passes_its_stabilization_window(
    play: Play, operator: Operator
) -> None:
    stage = play(changes={"hpa": {"scaleUp": {"stabilizationDuration": "1h"}}})
    stage.hpa_wants(4)
    stage.await_replicas(4)
    stage.hpa_wants(6)
    stage.await_blocked("StabilizationWindow", "horizontal")
    oom_killed(stage, "a")
    stage.await_replicas(6)
    assert stage.requests["memory"] == "500M"
