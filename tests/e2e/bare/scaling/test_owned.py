"""Which HPA and VPA an Hvpa owns, adopts, releases, uses by name, or gives way to (DESIGN 4)."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import HORIZONTAL_ONLY, VERTICAL_ONLY, merged, weight
from localcluster.workloads.stage import Stage
from tests.e2e.bare.conftest import USER, Play

HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"


def foreign_hpa(stage: Stage, name: str, *, labels: Json | None = None, of_hvpa: bool = False) -> Json:
    """Somebody's HPA for a stage's workload, or for its Hvpa."""
    target = samples.target_of(stage.manifest if of_hvpa else stage.workload)
    made = samples.hpa(name, stage.namespace, target)
    made["metadata"]["labels"] = labels or {}
    return stage.api.create(made)


def foreign_vpa(stage: Stage, name: str, *, mode: str, labels: Json | None = None) -> Json:
    """Somebody's VPA for a stage's workload."""
    made = samples.vpa(name, stage.namespace, samples.target_of(stage.workload), mode=mode)
    made["metadata"]["labels"] = labels or {}
    return stage.api.create(made)


def controller(made: Json) -> str | None:
    """Name of the Hvpa that controls an object."""
    owners = made["metadata"].get("ownerReferences", [])
    return next((str(one["name"]) for one in owners if one["kind"] == "Hvpa" and one["controller"]), None)


def test_what_is_deployed_is_owned_only_recommends_and_has_no_memory_of_its_own(
    play: Play, operator: Operator
) -> None:
    stage = play()
    hpa, vpa = stage.hpa, stage.vpa
    assert controller(hpa) == controller(vpa) == stage.name
    assert hpa["metadata"]["labels"] == vpa["metadata"]["labels"] == {"hvpa": stage.name}
    assert hpa["spec"]["scaleTargetRef"] == samples.target_of(stage.manifest)
    assert {
        hpa["spec"]["behavior"][way]["stabilizationWindowSeconds"] for way in ("scaleUp", "scaleDown")
    } == {0}
    assert vpa["spec"]["targetRef"] == samples.target_of(stage.workload)
    assert vpa["spec"]["updatePolicy"]["updateMode"] == "Off"
    assert hpa["metadata"]["managedFields"][0]["manager"] == "hvpa"
    stage.soon(lambda: stage.hvpa["spec"]["replicas"] == stage.status["replicas"] == 2, "the counts")
    scale = stage.api.get("Hvpa", stage.name, stage.namespace, subresource="scale")
    assert scale["spec"]["replicas"] == scale["status"]["replicas"] == 2
    assert scale["status"]["selector"] == f"app={stage.name}"


def test_a_changed_template_is_applied_and_drift_is_repaired(play: Play, operator: Operator) -> None:
    stage = play()
    policy = {"containerPolicies": [{"containerName": "app", "maxAllowed": {"cpu": "2"}}]}
    stage.change({"hpa": {"template": {"spec": {"maxReplicas": 7}, "metadata": {"annotations": {"a": "b"}}}}})
    stage.change({"vpa": {"template": {"spec": {"resourcePolicy": policy}}}})
    stage.soon(lambda: stage.hpa["spec"]["maxReplicas"] == 7, "the new maximum")
    assert stage.hpa["metadata"]["annotations"]["a"] == "b"
    stage.soon(lambda: stage.vpa["spec"].get("resourcePolicy") == policy, "the new policy")

    stage.api.patch(HPA, stage.name, stage.namespace, {"spec": {"maxReplicas": 99}})
    stage.api.patch(VPA, stage.name, stage.namespace, {"spec": {"updatePolicy": {"updateMode": "Recreate"}}})
    stage.soon(lambda: stage.hpa["spec"]["maxReplicas"] == 7, "the repair of the HPA")
    stage.soon(lambda: stage.vpa["spec"]["updatePolicy"]["updateMode"] == "Off", "the repair of the VPA")
    stage.api.delete(HPA, stage.name, stage.namespace)
    stage.api.delete(VPA, stage.name, stage.namespace)
    stage.await_owned()


def test_what_is_no_longer_deployed_is_deleted(play: Play, operator: Operator) -> None:
    stage = play()
    stage.change({"hpa": {"deploy": False}, "vpa": {"deploy": False}})
    for kind in (HPA, VPA):
        stage.await_gone(kind)
    stage.await_condition("Ready", "False", "NoRecommender")


def test_a_foreign_hpa_is_given_way_to_until_it_is_gone(play: Play, operator: Operator) -> None:
    stage = play(create=False)
    foreign_hpa(stage, "keda-hpa-x")
    stage.create(wait=False)
    told = stage.await_condition("HpaActive", "False", "ForeignHpa")
    assert "keda-hpa-x" in told["message"]
    stage.await_event("ForeignHpa", "keda-hpa-x")
    stage.soon(lambda: stage.api.find(VPA, stage.name, stage.namespace), "the VPA")
    assert stage.api.find(HPA, stage.name, stage.namespace) is None
    stage.api.delete(HPA, "keda-hpa-x", stage.namespace)
    stage.await_owned()
    stage.hpa_wants(4)
    stage.await_replicas(4)

    foreign_hpa(stage, "another")
    stage.await_gone(HPA)
    stage.await_condition("HpaActive", "False", "ForeignHpa")
    assert stage.replicas == 4
    stage.api.delete(HPA, "another", stage.namespace)
    stage.await_owned()


def test_a_foreign_vpa_that_acts_switches_the_vertical_axis_off_and_one_that_is_off_does_not(
    play: Play, operator: Operator
) -> None:
    stage = play(changes=weight(50))
    foreign_vpa(stage, "harmless", mode="Off")
    foreign_vpa(stage, "acting", mode="Recreate")
    told = stage.await_condition("VpaActive", "False", "ForeignVpa")
    assert "acting" in told["message"]
    assert "harmless" not in told["message"]
    stage.await_event("ForeignVpa", "acting")
    stage.vpa_recommends(cpu="1500m")
    stage.hpa_wants(6)
    stage.await_replicas(
        6
    )  # all of the way: the weight of an axis that is off does not count for scaling out
    assert stage.requests["cpu"] == "500m"
    stage.rollout_completes()
    stage.api.delete(VPA, "acting", stage.namespace)
    stage.await_requests(cpu="1")


def test_an_hpa_and_a_vpa_that_are_named_are_used_where_they_only_recommend(
    play: Play, operator: Operator
) -> None:
    changes = merged(
        weight(50), {"hpa": {"deploy": False, "name": "mine"}, "vpa": {"deploy": False, "name": "mine"}}
    )
    stage = play(create=False, changes=changes).create(wait=False)
    stage.await_condition("HpaActive", "False", "HpaNotFound")
    stage.await_condition("VpaActive", "False", "VpaNotFound")
    foreign_hpa(stage, "mine")
    foreign_vpa(stage, "mine", mode="Recreate")
    for kind in ("HpaActive", "VpaActive"):
        stage.await_condition(kind, "False", "NotRecommendationOnly")
    stage.await_event("NotRecommendationOnly")
    reference = {"scaleTargetRef": samples.target_of(stage.manifest)}
    stage.api.patch(HPA, "mine", stage.namespace, {"spec": reference})
    stage.api.patch(VPA, "mine", stage.namespace, {"spec": {"updatePolicy": {"updateMode": "Off"}}})
    stage.vpa_recommends(name="mine", cpu="1500m")
    stage.await_requests(cpu="1")
    stage.hpa_wants(6, name="mine")
    stage.await_replicas(4)
    for kind in (HPA, VPA):
        assert controller(stage.api.get(kind, "mine", stage.namespace)) is None
        assert stage.api.find(kind, stage.name, stage.namespace) is None


def test_what_the_selector_matches_is_adopted_and_of_several_the_oldest_stays(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(create=False)
    labels = {"hvpa": stage.name}
    foreign_hpa(stage, "a", labels=labels)
    foreign_vpa(stage, "a", mode="Recreate", labels=labels)
    foreign_vpa(stage, "b", mode="Off", labels=labels)
    stage.create(wait=False)
    stage.soon(lambda: controller(plane.api.get(HPA, "a", stage.namespace)) == stage.name, "adoption")
    stage.soon(lambda: controller(plane.api.get(VPA, "a", stage.namespace)) == stage.name, "adoption")
    stage.soon(lambda: plane.api.find(VPA, "b", stage.namespace) is None, "that one VPA stays")
    adopted = plane.api.get(HPA, "a", stage.namespace)
    assert adopted["spec"]["scaleTargetRef"]["kind"] == "Hvpa"
    assert plane.api.get(VPA, "a", stage.namespace)["spec"]["updatePolicy"]["updateMode"] == "Off"
    for kind in (HPA, VPA):
        assert plane.api.find(kind, stage.name, stage.namespace) is None
    stage.hpa_wants(5, name="a")
    stage.await_replicas(5)


def test_nothing_is_adopted_with_another_controller_or_without_a_selector(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    owned, unselected = play(create=False), play(create=False, changes={"vpa": {"selector": None}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0", "controller": True}
    for stage in (owned, unselected):
        made = foreign_vpa(stage, f"old-{stage.name}", mode="Off", labels={"hvpa": stage.name})
        if stage is owned:
            body: Json = {"metadata": {"ownerReferences": [reference]}}
            plane.api.patch(VPA, made["metadata"]["name"], stage.namespace, body)
        stage.create()
        assert controller(plane.api.get(VPA, f"old-{stage.name}", stage.namespace)) is None
        assert controller(stage.vpa) == stage.name


def test_what_loses_its_labels_is_released_and_replaced(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play(changes=VERTICAL_ONLY)
    plane.api.patch(VPA, stage.name, stage.namespace, {"metadata": {"labels": {"hvpa": "elsewhere"}}})
    stage.soon(lambda: controller(stage.vpa) is None, "the release")
    uid = stage.hvpa["metadata"]["uid"]
    successor = f"{stage.name}-{uid[:8]}"
    made = stage.soon(lambda: plane.api.find(VPA, successor, stage.namespace), "a VPA in its stead") or {}
    assert controller(made) == stage.name
    assert stage.vpa["spec"]["updatePolicy"]["updateMode"] == "Off"
    stage.vpa_recommends(name=successor, cpu="1")
    stage.await_requests(cpu="1")


def test_a_name_that_somebody_else_holds_is_left_to_them(play: Play, operator: Operator) -> None:
    stage, other = play(create=False, changes=HORIZONTAL_ONLY), play(create=False)
    stage.api.create(other.workload)
    made = samples.hpa(stage.name, stage.namespace, samples.target_of(other.workload))
    stage.api.create(made)
    stage.create(wait=False)
    name = stage.soon(lambda: stage.hvpa["metadata"]["uid"], "the Hvpa")[:8]
    ours = stage.soon(lambda: stage.api.find(HPA, f"{stage.name}-{name}", stage.namespace), "an HPA") or {}
    assert controller(ours) == stage.name
    assert stage.hpa["spec"]["scaleTargetRef"]["kind"] == "Deployment"


def test_a_wish_that_the_measurements_do_not_bear_out_is_corrected_in_the_mailbox(
    plane: ControlPlane, play: Play, operator: Operator
) -> None:
    stage = play()
    stage.hpa_wants(2)
    stage.await_condition("HpaActive", "True", "Recommending")
    stale = {"averageUtilization": 100, "averageValue": "500m"}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "current": stale}}]
    stage.hpa_wants(8, currentMetrics=metrics)
    stage.soon(lambda: stage.hvpa["spec"]["replicas"] == 2, "the mailbox set right")
    assert stage.replicas == 2
    mailbox = plane.audit.requests(user=USER, resource="hvpas", subresource="", name=stage.name, writes=True)
    assert [one.body["spec"] for one in mailbox if one.code == 200][-1] == {"replicas": 2}
