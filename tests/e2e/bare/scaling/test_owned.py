"""Which HPA and VPA an Hvpa owns, adopts and releases (DESIGN 4). (What it uses by name or gives way to:
`conditions/recommenders.py`.)"""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import VERTICAL_ONLY
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"


def foreign_hpa(scenario: Scenario, name: str, *, labels: Json | None = None) -> Json:
    """Another user's HPA for a scenario's workload."""
    made = samples.hpa(name, scenario.namespace, samples.target_of(scenario.workload))
    made["metadata"]["labels"] = labels or {}
    return scenario.api.create(made)


def foreign_vpa(scenario: Scenario, name: str, *, mode: str, labels: Json | None = None) -> Json:
    """Another user's VPA for a scenario's workload."""
    made = samples.vpa(name, scenario.namespace, samples.target_of(scenario.workload), mode=mode)
    made["metadata"]["labels"] = labels or {}
    return scenario.api.create(made)


def controller(made: Json) -> str | None:
    """Name of the Hvpa that controls an object."""
    owners = made["metadata"].get("ownerReferences", [])
    return next(
        (str(owner["name"]) for owner in owners if owner["kind"] == "Hvpa" and owner["controller"]), None
    )


def test_what_is_deployed_is_owned_only_recommends_and_has_no_memory_of_its_own(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario()
    hpa, vpa = scenario.hpa, scenario.vpa
    assert controller(hpa) == controller(vpa) == scenario.name
    owners = [owner for made in (hpa, vpa) for owner in made["metadata"]["ownerReferences"]]
    assert [owner["uid"] for owner in owners] == [scenario.hvpa["metadata"]["uid"]] * 2, (
        "for the garbage collector"
    )
    assert hpa["metadata"]["labels"] == vpa["metadata"]["labels"] == {"hvpa": scenario.name}
    assert hpa["spec"]["scaleTargetRef"] == samples.target_of(scenario.manifest)
    assert {
        hpa["spec"]["behavior"][way]["stabilizationWindowSeconds"] for way in ("scaleUp", "scaleDown")
    } == {0}
    assert vpa["spec"]["targetRef"] == samples.target_of(scenario.workload)
    assert vpa["spec"]["updatePolicy"]["updateMode"] == "Off"
    assert hpa["metadata"]["managedFields"][0]["manager"] == "hvpa"
    scenario.soon(lambda: scenario.hvpa["spec"]["replicas"] == scenario.status["replicas"] == 2, "the counts")
    scale = scenario.api.get("Hvpa", scenario.name, scenario.namespace, subresource="scale")
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 2
    assert scale["status"]["selector"] == f"app={scenario.name}"


def test_a_changed_template_is_applied_and_drift_is_repaired(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario()
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "2"}}]}
    scenario.change(
        {"hpa": {"template": {"spec": {"maxReplicas": 7}, "metadata": {"annotations": {"a": "b"}}}}}
    )
    scenario.change({"vpa": {"template": {"spec": {"resourcePolicy": policy}}}})
    scenario.soon(lambda: scenario.hpa["spec"]["maxReplicas"] == 7, "the new maximum")
    assert scenario.hpa["metadata"]["annotations"]["a"] == "b"
    scenario.soon(lambda: scenario.vpa["spec"].get("resourcePolicy") == policy, "the new policy")

    scenario.api.patch(HPA, scenario.name, scenario.namespace, {"spec": {"maxReplicas": 99}})
    scenario.api.patch(
        VPA, scenario.name, scenario.namespace, {"spec": {"updatePolicy": {"updateMode": "Recreate"}}}
    )
    scenario.soon(lambda: scenario.hpa["spec"]["maxReplicas"] == 7, "the repair of the HPA")
    scenario.soon(
        lambda: scenario.vpa["spec"]["updatePolicy"]["updateMode"] == "Off", "the repair of the VPA"
    )
    scenario.api.delete(HPA, scenario.name, scenario.namespace)
    scenario.api.delete(VPA, scenario.name, scenario.namespace)
    scenario.await_owned()


def test_what_acts_is_adopted_without_an_owner_and_of_several_that_recommend_the_oldest_stays(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(create=False)
    labels = {"hvpa": scenario.name}
    foreign_hpa(scenario, "a", labels=labels)
    foreign_vpa(scenario, "a", mode="Recreate", labels=labels)
    foreign_vpa(scenario, "b", mode="Off", labels=labels)
    scenario.create(wait=False)
    for kind in (HPA, VPA):
        scenario.soon(
            lambda kind=kind: (
                "hvpa.autoscaling.k8s.io/adopted"  # type: ignore[misc]
                in plane.api.get(kind, "a", scenario.namespace)["metadata"].get("annotations", {})
            ),
            "adoption",
        )
        assert "ownerReferences" not in plane.api.get(kind, "a", scenario.namespace)["metadata"]
    scenario.soon(lambda: plane.api.find(VPA, "b", scenario.namespace) is None, "that one VPA stays")
    adopted = plane.api.get(HPA, "a", scenario.namespace)
    assert adopted["spec"]["scaleTargetRef"]["kind"] == "Hvpa"
    assert plane.api.get(VPA, "a", scenario.namespace)["spec"]["updatePolicy"]["updateMode"] == "Off"
    for kind in (HPA, VPA):
        assert plane.api.find(kind, scenario.name, scenario.namespace) is None
    scenario.hpa_wants(5, name="a")
    scenario.await_replicas(5)


def test_what_loses_its_labels_is_released_and_replaced(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(changes=VERTICAL_ONLY)
    plane.api.patch(VPA, scenario.name, scenario.namespace, {"metadata": {"labels": {"hvpa": "elsewhere"}}})
    scenario.soon(lambda: controller(scenario.vpa) is None, "the release")
    uid = scenario.hvpa["metadata"]["uid"]
    successor = f"{scenario.name}-{uid[:8]}"
    made = (
        scenario.soon(lambda: plane.api.find(VPA, successor, scenario.namespace), "a VPA in its stead") or {}
    )
    assert controller(made) == scenario.name
    assert scenario.vpa["spec"]["updatePolicy"]["updateMode"] == "Off"
    scenario.vpa_recommends(name=successor, cpu="1")
    scenario.await_requests(cpu="1")
