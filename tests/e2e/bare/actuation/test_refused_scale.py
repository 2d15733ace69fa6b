"""Pods are resized in place, and a policy of the cluster refuses the replicas: the sizes go on, and nothing says that
the replicas were set."""

from __future__ import annotations

from functools import partial

from localcluster.client.api import Json
from localcluster.operator.operator import Operator
from localcluster.workloads.bare_manifests import merged, weight
from tests.e2e.bare.actuation.pods import Pods
from tests.e2e.bare.admission import FEW_BY_SCALE
from tests.e2e.bare.conftest import NewScenario

IN_PLACE: Json = {"updateStrategy": {"type": "InPlace"}}


def test_where_a_policy_refuses_the_scale_pods_are_resized_and_the_replicas_follow_once_it_is_lifted(
    operator: Operator, new_scenario: NewScenario
) -> None:
    scenario = new_scenario(changes=merged(weight(50), IN_PLACE))
    pods = Pods(scenario)
    names = [pods.start(str(number)) for number in range(2)]
    scenario.vpa_is_content()
    FEW_BY_SCALE.impose(scenario)
    try:
        scenario.hpa_wants(6)  # 4 are set
        ready = scenario.await_condition("Ready", "False", "Refused")
        assert FEW_BY_SCALE.message in ready["message"]
        scenario.vpa_recommends(cpu="1", memory="500M")
        for name in names:
            scenario.soon(partial(pods.requests, name, cpu="750m", memory="500M"), f"a resize of {name}")
            pods.resize(name)
        scenario.soon(lambda: scenario.status["actuation"]["resized"] == "2/2", "both pods resized")
        assert scenario.await_condition("Ready", "False", "Refused")["message"] == ready["message"]
        scenario.await_blocked("Refused", "horizontal")
        assert (scenario.replicas, scenario.status["desired"]["replicas"]) == (2, 2)
        counts = scenario.status["lastScaling"]["hpaStatus"]
        assert (counts["currentReplicas"], counts["desiredReplicas"]) == (2, 2)
        assert scenario.status["lastError"]["lastOperation"] == "PatchWorkload"
        lines = [each for each in operator.log_lines() if each.get("namespace") == scenario.namespace]
        steps = [each["step"] for each in lines if each["event"] == "scaled"]
        assert len(steps) == 1
        assert steps[0].startswith("cpu 500m -> 750m")
        assert (
            scenario.events("ScaledOut") == scenario.events("Scaled") == scenario.events("WriteFailed") == []
        )
    finally:
        FEW_BY_SCALE.lift(scenario)
    scenario.hpa_wants(5)  # of which 4 are set as well, and that is another number
    scenario.hpa_wants(6)
    scenario.await_replicas(4, timeout=90)
    scenario.await_event("ScaledOut", "replicas 2 -> 4")
