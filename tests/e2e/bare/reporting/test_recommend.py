"""An Hvpa in mode Recommend looks at a workload as it runs, and changes nothing of it (DESIGN 3.2, 4, 8)."""

from __future__ import annotations

import time
from functools import partial

from localcluster.client.api import Json
from localcluster.client.audit import Mark
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario
from tests.e2e.bare.reporting.test_explain import agrees_with_status, explained

GAUGE = "hvpa_watch_last_success_timestamp_seconds"
HPA = "HorizontalPodAutoscaler"
KEDA: Json = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "name": "web",
    "uid": "keda",
    "controller": True,
}
"""The owner of an HPA that KEDA has made; the kind need not be known."""
ADDITIVE: Json = {"mode": "Recommend", **weight(50)}
TRAJECTORY: Json = {"mode": "Recommend", "blend": "Trajectory", **weight(50)}


def looks_at(new_scenario: NewScenario, scenario: Scenario, name: str, changes: Json) -> Scenario:
    """Another Hvpa for the workload of a scenario."""
    other = new_scenario(name, create=False, changes=changes)
    other.manifest["spec"]["targetRef"]["name"] = scenario.name
    scenario.api.create(other.manifest)
    return other


def scaled_by_itself(new_scenario: NewScenario, operator: Operator) -> Scenario:
    """A workload of 2 pods that KEDA's HPA scales, and a VPA in mode Recreate; no Hvpa targets it. The operator has
    seen both: an Hvpa that it sees before them gets recommenders of its own."""
    scenario = new_scenario(create=False)
    scenario.api.create(scenario.workload)
    scenario.rollout_completes()
    target = samples.target_of(scenario.workload)
    hpa = samples.hpa("keda-hpa-web", scenario.namespace, target, utilization=100)
    hpa["metadata"]["ownerReferences"] = [KEDA]
    scenario.api.create(hpa)
    scenario.api.create(samples.vpa("theirs", scenario.namespace, target, mode="Recreate"))
    since = time.time()
    scenario.vpa_recommends(name="theirs", cpu="900m", memory="900M")
    measures(scenario, 6)
    for resource in ("horizontalpodautoscalers", "verticalpodautoscalers"):
        gauge = partial(operator.metric, GAUGE, resource=resource)
        scenario.soon(lambda gauge=gauge: gauge() >= since, resource)  # type: ignore[misc]
    return scenario


def measures(scenario: Scenario, replicas: int) -> None:
    """KEDA's HPA measures what calls for so many replicas."""
    scenario.api.patch_status(HPA, "keda-hpa-web", scenario.namespace, scenario.hpa_status(replicas))


def recommended(scenario: Scenario, replicas: int, cpu: str) -> None:
    """Wait until an Hvpa recommends this."""

    def found() -> tuple[int, str]:
        shown = scenario.status.get("recommended", {})
        return shown.get("replicas", 0), shown["containers"][0]["requests"][
            "cpu"
        ] if "containers" in shown else ""

    scenario.soon(lambda: found() == (replicas, cpu), f"{replicas} x {cpu}")


def writes(plane: ControlPlane, scenario: Scenario, since: Mark) -> set[str]:
    """What the operator wrote to in a scenario's namespace."""
    requests = plane.audit.requests(since, user=USER, writes=True, namespace=scenario.namespace)
    return {"/".join(filter(None, (request.resource, request.subresource))) for request in requests}


def test_two_blends_look_at_a_workload_that_keda_and_a_vpa_scale_and_nothing_is_written_to_it(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = scaled_by_itself(new_scenario, operator)
    mark = plane.audit.mark()
    additive = looks_at(new_scenario, scenario, "additive", ADDITIVE)
    trajectory = looks_at(new_scenario, scenario, "trajectory", TRAJECTORY)
    for each_scenario in (additive, trajectory):
        condition = each_scenario.await_condition("HpaActive", "True", "ReadAsIs")
        assert (
            condition["message"]
            == f"reading {HPA} keda-hpa-web, which scales Deployment {scenario.name} itself"
        )
        condition = each_scenario.await_condition("VpaActive", "True", "ReadAsIs")
        assert "theirs (updateMode Recreate)" in condition["message"]
        assert (
            "the workload is not changed"
            in each_scenario.await_condition("Ready", "True", "Recommend")["message"]
        )
    recommended(additive, 4, "700m")
    trajectory.soon(lambda: trajectory.status.get("recommended", {}).get("containers"), "its sizes")
    assert trajectory.status["recommended"] != additive.status["recommended"]

    scenario.change_workload({"replicas": 6}, manager="hpa")  # which goes on scaling
    scenario.rollout_completes()
    measures(scenario, 6)
    recommended(additive, 6, "700m")
    agrees_with_status(explained(plane, additive), additive)
    measures(scenario, 3)
    recommended(additive, 4, "700m")
    assert writes(plane, scenario, mark) <= {"hvpas/status", "events"}
    assert "replicas" not in additive.hvpa["spec"], "no client writes a count to it"

    additive.change({"mode": "Apply"})
    condition = additive.await_condition("HpaActive", "False", "ForeignHpa")
    assert "delete it, or set spec.hpa.selector to match" in condition["message"]
    additive.await_condition("VpaActive", "False", "ForeignVpa")
    additive.change({"mode": "Recommend"})
    additive.await_condition("HpaActive", "True", "ReadAsIs")
    recommended(additive, 4, "700m")
    assert writes(plane, scenario, mark) <= {"hvpas/status", "events"}
