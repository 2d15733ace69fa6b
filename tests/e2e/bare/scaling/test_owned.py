"""Which HPA and VPA an Hvpa owns, adopts, releases, uses by name, or gives way to (DESIGN 4)."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, VERTICAL_ONLY, merged, weight
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import NewScenario

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"


def foreign_hpa(scenario: Scenario, name: str, *, labels: Json | None = None, of_hvpa: bool = False) -> Json:
    """Another user's HPA for a scenario's workload, or for its Hvpa."""
    target = samples.target_of(scenario.manifest if of_hvpa else scenario.workload)
    made = samples.hpa(name, scenario.namespace, target)
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
    return next((str(one["name"]) for one in owners if one["kind"] == "Hvpa" and one["controller"]), None)


def test_what_is_deployed_is_owned_only_recommends_and_has_no_memory_of_its_own(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario()
    hpa, vpa = scenario.hpa, scenario.vpa
    assert controller(hpa) == controller(vpa) == scenario.name
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


def test_a_foreign_hpa_is_given_way_to_until_it_is_gone(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(create=False)
    foreign_hpa(scenario, "keda-hpa-x")
    scenario.create(wait=False)
    condition = scenario.await_condition("HpaActive", "False", "ForeignHpa")
    assert "keda-hpa-x" in condition["message"]
    scenario.await_event("ForeignHpa", "keda-hpa-x")
    scenario.soon(lambda: scenario.api.find(VPA, scenario.name, scenario.namespace), "the VPA")
    assert scenario.api.find(HPA, scenario.name, scenario.namespace) is None
    scenario.api.delete(HPA, "keda-hpa-x", scenario.namespace)
    scenario.await_owned()
    scenario.hpa_wants(4)
    scenario.await_replicas(4)

    foreign_hpa(scenario, "another")
    scenario.await_gone(HPA)
    scenario.await_condition("HpaActive", "False", "ForeignHpa")
    assert scenario.replicas == 4
    scenario.api.delete(HPA, "another", scenario.namespace)
    scenario.await_owned()


def test_an_hpa_and_a_vpa_that_are_named_are_used_where_they_only_recommend(
    new_scenario: NewScenario, operator: Operator
) -> None:
    changes = merged(
        weight(50), {"hpa": {"deploy": False, "name": "mine"}, "vpa": {"deploy": False, "name": "mine"}}
    )
    scenario = new_scenario(create=False, changes=changes).create(wait=False)
    scenario.await_condition("HpaActive", "False", "HpaNotFound")
    scenario.await_condition("VpaActive", "False", "VpaNotFound")
    foreign_hpa(scenario, "mine")
    foreign_vpa(scenario, "mine", mode="Recreate")
    for kind in ("HpaActive", "VpaActive"):
        scenario.await_condition(kind, "False", "NotRecommendationOnly")
    scenario.await_event("NotRecommendationOnly")
    reference = {"scaleTargetRef": samples.target_of(scenario.manifest)}
    scenario.api.patch(HPA, "mine", scenario.namespace, {"spec": reference})
    scenario.api.patch(VPA, "mine", scenario.namespace, {"spec": {"updatePolicy": {"updateMode": "Off"}}})
    scenario.vpa_recommends(name="mine", cpu="1500m")
    scenario.await_requests(cpu="1")
    scenario.hpa_wants(6, name="mine")
    scenario.await_replicas(4)
    for kind in (HPA, VPA):
        assert controller(scenario.api.get(kind, "mine", scenario.namespace)) is None
        assert scenario.api.find(kind, scenario.name, scenario.namespace) is None


def test_what_the_selector_matches_is_adopted_and_of_several_the_oldest_stays(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    scenario = new_scenario(create=False)
    labels = {"hvpa": scenario.name}
    foreign_hpa(scenario, "a", labels=labels)
    foreign_vpa(scenario, "a", mode="Recreate", labels=labels)
    foreign_vpa(scenario, "b", mode="Off", labels=labels)
    scenario.create(wait=False)
    scenario.soon(
        lambda: controller(plane.api.get(HPA, "a", scenario.namespace)) == scenario.name, "adoption"
    )
    scenario.soon(
        lambda: controller(plane.api.get(VPA, "a", scenario.namespace)) == scenario.name, "adoption"
    )
    scenario.soon(lambda: plane.api.find(VPA, "b", scenario.namespace) is None, "that one VPA stays")
    adopted = plane.api.get(HPA, "a", scenario.namespace)
    assert adopted["spec"]["scaleTargetRef"]["kind"] == "Hvpa"
    assert plane.api.get(VPA, "a", scenario.namespace)["spec"]["updatePolicy"]["updateMode"] == "Off"
    for kind in (HPA, VPA):
        assert plane.api.find(kind, scenario.name, scenario.namespace) is None
    scenario.hpa_wants(5, name="a")
    scenario.await_replicas(5)


def test_nothing_is_adopted_with_another_controller_or_without_a_selector(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator
) -> None:
    owned, unselected = (
        new_scenario(create=False),
        new_scenario(create=False, changes={"vpa": {"selector": None}}),
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0", "controller": True}
    for scenario in (owned, unselected):
        made = foreign_vpa(scenario, f"old-{scenario.name}", mode="Off", labels={"hvpa": scenario.name})
        if scenario is owned:
            body: Json = {"metadata": {"ownerReferences": [reference]}}
            plane.api.patch(VPA, made["metadata"]["name"], scenario.namespace, body)
        scenario.create()
        assert controller(plane.api.get(VPA, f"old-{scenario.name}", scenario.namespace)) is None
        assert controller(scenario.vpa) == scenario.name


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


def test_a_name_that_another_owner_holds_is_left_to_them(
    new_scenario: NewScenario, operator: Operator
) -> None:
    scenario, other = new_scenario(create=False, changes=HORIZONTAL_ONLY), new_scenario(create=False)
    scenario.api.create(other.workload)
    made = samples.hpa(scenario.name, scenario.namespace, samples.target_of(other.workload))
    scenario.api.create(made)
    scenario.create(wait=False)
    name = scenario.soon(lambda: scenario.hvpa["metadata"]["uid"], "the Hvpa")[:8]
    ours = (
        scenario.soon(lambda: scenario.api.find(HPA, f"{scenario.name}-{name}", scenario.namespace), "an HPA")
        or {}
    )
    assert controller(ours) == scenario.name
    assert scenario.hpa["spec"]["scaleTargetRef"]["kind"] == "Deployment"
