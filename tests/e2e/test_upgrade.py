"""From gardener's controller to HVPA: Hvpas that are stored under gardener's CRD keep scaling when ours replaces it.

The control plane is a module's own, since the CRD is one for all namespaces. Under gardener's CRD each form of its
generators is stored with a status as its controller wrote it, and Hvpas with values that our CRD refuses."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

import pytest

from builders.gardener.crd import crd
from builders.gardener.manifests import FORMS, etcd, kube_apiserver
from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_crds, install_operator_rbac, install_vpa_crd
from localcluster.workloads.bare_manifests import ago
from localcluster.workloads.scenario import Scenario, new_namespace

CRD: Final = "hvpas.autoscaling.k8s.io"
REFUSED: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an update mode of an early version": (
        {"vpa": {"scaleUp": {"updatePolicy": {"updateMode": "ScaleUp"}}}},
        "spec.vpa.scaleUp.updatePolicy.updateMode",
    ),
    "a duration in words": (
        {"vpa": {"scaleUp": {"stabilizationDuration": "5 minutes"}}},
        "spec.vpa.scaleUp.stabilizationDuration",
    ),
    "a window that is empty": (
        {"maintenanceTimeWindow": {"begin": "220000+0100", "end": "220000+0100"}},
        "spec.maintenanceTimeWindow.end",
    ),
    "minReplicas above maxReplicas": (
        {"hpa": {"template": {"spec": {"minReplicas": 5, "maxReplicas": 4}}}},
        "spec.hpa.template.spec.minReplicas",
    ),
}
"""Changes of kube-apiserver's Hvpa that gardener's CRD accepts and ours refuses, and the field at fault."""


class Stored:
    """The namespace, and a scenario for each stored Hvpa."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.space = new_namespace(plane.api)
        self.forms = {name: self._store(form) for name, form in FORMS.items()}
        self.three = self._store(etcd(3))
        self.apiserver = self._store(kube_apiserver())
        self.refused = {name: self._store(kube_apiserver(), change) for name, (change, _) in REFUSED.items()}

    def _store(self, form: Json, change: Json | None = None) -> Scenario:
        manifest = copy.deepcopy(form)
        kind, replicas = manifest["spec"]["targetRef"]["kind"], _replicas(manifest)
        scenario = Scenario(self.plane.api, self.space, kind=kind, replicas=replicas)
        manifest["metadata"] |= {"name": scenario.name, "namespace": self.space}
        manifest["spec"]["targetRef"]["name"] = scenario.name
        policies = manifest["spec"]["vpa"]["template"]["spec"]["resourcePolicy"]["containerPolicies"]
        policies[0]["containerName"] = "app"
        for axis in ("hpa", "vpa"):
            manifest["spec"][axis]["selector"]["matchLabels"] = {"role": f"{scenario.name}-{axis}"}
            manifest["spec"][axis]["template"]["metadata"]["labels"] = {"role": f"{scenario.name}-{axis}"}
        scenario.manifest = manifest
        scenario.create(wait=False)
        if change is not None:
            self.plane.api.patch("Hvpa", scenario.name, self.space, {"spec": change})
        self.plane.api.patch_status("Hvpa", scenario.name, self.space, _status(replicas))
        return scenario


def _replicas(manifest: Json) -> int:
    template = manifest["spec"]["hpa"]["template"]["spec"]
    if manifest["spec"]["hpa"].get("deploy"):
        return min(3, int(template["maxReplicas"]))
    return int(template["maxReplicas"])


def _status(replicas: int) -> Json:
    """What gardener's controller wrote, an hour ago."""
    scaled: Json = {
        "lastScaleTime": ago(hours=1),
        "hpaStatus": {"currentReplicas": replicas, "desiredReplicas": replicas},
        "vpaStatus": {
            "conditions": [
                {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": ago(days=9)}
            ],
            "recommendation": {
                "containerRecommendations": [
                    {"containerName": "app", "target": {"cpu": "500m"}, "upperBound": {"cpu": 1}}
                ]
            },
        },
    }
    return {
        "replicas": replicas,
        "targetSelector": "app=kubernetes",
        "hpaScaleUpUpdatePolicy": {"updateMode": "Auto"},
        "hpaWeight": 100,
        "overrideScaleUpStabilization": False,
        "lastBlockedScaling": [{"reason": "MinChange", "scalingStatus": scaled}],
        "lastScaling": scaled,
        "lastError": {"description": "", "lastOperation": "", "lastUpdateTime": ago(hours=1)},
    }


@pytest.fixture(scope="module")
def stored(own_bare_cluster: ControlPlane) -> Iterator[Stored]:
    """All of them, with our CRD in place of gardener's, and an operator that runs since."""
    plane = own_bare_cluster
    install_vpa_crd(plane)
    plane.api.create(crd())
    plane.await_crd(CRD)
    objects = Stored(plane)
    install_crds(plane)
    _await_our_schema(plane, objects)
    with Operator(plane, install_operator_rbac(plane), "--log-level", "debug"):
        yield objects


def _await_our_schema(plane: ControlPlane, objects: Stored) -> None:
    """Wait until the API server judges by our CRD."""

    def refuses() -> bool:
        try:
            plane.api.patch("Hvpa", objects.apiserver.name, objects.space, {"spec": {"mode": "Never"}})
        except ApiError as error:
            return error.status == 422
        return False

    wait_for(refuses, 60, "our CRD to be in force")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_gardeners_generators_is_taken_over(stored: Stored, form: str) -> None:
    scenario = stored.forms[form]
    scenario.await_owned()
    scenario.soon(lambda: scenario.status.get("conditions"), "conditions")
    ready = next(condition for condition in scenario.status["conditions"] if condition["type"] == "Ready")
    assert ready["reason"] != "InvalidSpec", ready
    assert scenario.vpa["spec"]["updatePolicy"] == {"updateMode": "Off"}
    if scenario.replicas == 0:
        scenario.await_condition("Ready", "True", "ScaledToZero")


def test_kube_apiserver_scales_out_to_the_interval_at_maxReplicas_and_in_from_it(stored: Stored) -> None:
    scenario = stored.apiserver
    scenario.await_owned()
    scenario.hpa_wants(4)
    scenario.await_replicas(4)
    scenario.rollout_completes()
    # At maxReplicas the weight is 100: requests follow the VPA, past minChange (80 percent of 500m, or 300m).
    scenario.vpa_recommends(cpu="1", memory="1G")
    scenario.await_requests(cpu="1", memory="1G")
    scenario.rollout_completes()
    scenario.hpa_wants(
        2
    )  # with 4 pods at 50 percent of what they request, where 80 percent are wanted: 3 will do
    scenario.await_replicas(3)


def test_etcd_without_an_hpa_follows_its_vpa(stored: Stored) -> None:
    for scenario in (stored.three, stored.forms["etcd"]):
        scenario.await_owned()
        scenario.vpa_recommends(cpu="1", memory="1G")
        scenario.await_requests(cpu="1", memory="1G")
        assert scenario.api.find("HorizontalPodAutoscaler", scenario.name, scenario.namespace) is None


def test_a_hibernated_etcd_is_scaled_once_it_wakes_up(stored: Stored) -> None:
    scenario = stored.forms["etcd of a hibernated Shoot"]
    scenario.await_condition("Ready", "True", "ScaledToZero")
    scenario.vpa_recommends(cpu="1", memory="1G")
    scenario.change_workload({"replicas": 1})
    scenario.rollout_completes()
    scenario.await_requests(cpu="1", memory="1G")


@pytest.mark.parametrize("name", REFUSED)
def test_a_stored_value_that_our_crd_refuses_is_reported_and_can_be_mended(stored: Stored, name: str) -> None:
    scenario, (_, path) = stored.refused[name], REFUSED[name]
    assert path in scenario.await_condition("Ready", "False", "InvalidSpec")["message"]
    # All that does not touch the field is accepted: finalizers and labels, and another field of the spec.
    kept = {"metadata": {"finalizers": ["example.com/kept"], "labels": {"a": "b"}}}
    scenario.api.patch("Hvpa", scenario.name, scenario.namespace, kept)
    scenario.api.patch("Hvpa", scenario.name, scenario.namespace, {"metadata": {"finalizers": None}})
    scenario.change({"mode": "Apply"})
    assert not scenario.hvpa["metadata"].get("finalizers")
    mended = kube_apiserver()["spec"]
    scenario.change(
        {
            "vpa": {"scaleUp": mended["vpa"]["scaleUp"]},
            "hpa": {"template": {"spec": mended["hpa"]["template"]["spec"]}},
            "maintenanceTimeWindow": None,
        }
    )
    scenario.await_owned()
    scenario.hpa_wants(4)
    scenario.await_replicas(4)


def test_a_stored_object_that_our_crd_refuses_can_be_deleted(stored: Stored) -> None:
    scenario = stored.refused["a duration in words"]
    scenario.delete()
    scenario.soon(lambda: scenario.api.find("Hvpa", scenario.name, scenario.namespace) is None, "no Hvpa")
