"""Mode Recommend beside a real HPA that scales the workload: the HPA goes on, and the Hvpa writes only its status."""

from __future__ import annotations

import pytest

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import CPU_ANNOTATION, MEMORY_ANNOTATION
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.load import Load, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import AIM, HPA_CONTROLLER, OPERATOR, OPERATOR_USER

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 120
NAME = "watched"
HPA, VPA = "HorizontalPodAutoscaler", "VerticalPodAutoscaler"
REQUEST = 500
"""Millicores that each pod requests: more than it uses, so that the VPA recommends less."""


def theirs(namespace: str) -> list[Json]:
    """What a user had before: a Deployment of 2 pods, an HPA that scales it up to 4 and keeps replicas for 5 minutes,
    and a VPA that only recommends."""
    usage = {CPU_ANNOTATION: AIM, MEMORY_ANNOTATION: "16Mi"}
    workload = samples.deployment(NAME, namespace, replicas=2, cpu=f"{REQUEST}m", annotations=usage)
    hpa = samples.hpa("theirs", namespace, samples.target_of(workload), most=4)
    hpa["spec"]["metrics"] = objects.horizontal()["template"]["spec"]["metrics"]
    hpa["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 300}}
    return [workload, hpa, samples.vpa("theirs", namespace, samples.target_of(workload))]


def test_an_hvpa_in_recommend_shows_what_it_would_do_while_another_hpa_scales(
    cluster: ControlPlane, operator: Operator, namespace: str
) -> None:
    api = cluster.api
    for one in theirs(namespace):
        api.create(one)
    spec = {"mode": "Recommend", "hpa": objects.horizontal(), "vpa": objects.vertical()}
    api.create(objects.hvpa(NAME, namespace, **spec, weightBasedScalingIntervals=[{"vpaWeight": 50}]))
    await_pods(api, namespace, NAME)

    def recommended() -> tuple[int, str]:
        found = api.get("Hvpa", NAME, namespace)["status"].get("recommended", {})
        requests = [one.get("requests", {}) for one in found.get("containers", ())]
        return found.get("replicas", 0), requests[0].get("cpu", "") if requests else ""

    def halfway() -> str:
        """The request between the present one and the VPA's target, at weight 50."""
        status = api.get(VPA, "theirs", namespace).get("status", {})
        found = status.get("recommendation", {}).get("containerRecommendations", ())
        target = [parse_cpu(one["target"]["cpu"]) for one in found]
        return f"{(REQUEST + target[0] + 1) // 2}m" if target else "none yet"

    with Load(api, namespace, f"app={NAME}", cpu=780) as load:
        wait_for(lambda: objects.replicas(api, NAME, namespace) == 4, TIMEOUT, "their HPA scales out")
        load.cpu = 380  # 95m for each: their HPA waits for 5 minutes with 4, weight 50 leads halfway to 2
        wait_for(lambda: recommended()[0] == 3, TIMEOUT, lambda: f"3 replicas, not {recommended()}")
        wait_for(lambda: recommended()[1] == halfway(), TIMEOUT, lambda: f"{halfway()}, not {recommended()}")
        assert objects.replicas(api, NAME, namespace) == 4
        found = objects.conditions(api, NAME, namespace)

    assert found["Ready"] == ("True", "Recommend")
    assert found["HpaActive"] == found["VpaActive"] == ("True", "ReadAsIs")
    written = cluster.audit.requests(user=OPERATOR, writes=True, namespace=namespace)
    assert {(one.resource, one.subresource) for one in written} <= {("hvpas", "status"), ("events", "")}
    writers = cluster.audit.writers("deployments", NAME, namespace)
    assert writers[OPERATOR_USER] == 0
    scaled = cluster.audit.requests(user=HPA_CONTROLLER, writes=True, namespace=namespace, code=200)
    assert ("deployments", "scale") in {(one.resource, one.subresource) for one in scaled}
    assert {one.resource for one in scaled if one.subresource == "scale"} == {"deployments"}
    assert "replicas" not in api.get("Hvpa", NAME, namespace)["spec"]
    for kind in (HPA, VPA):
        assert [one["metadata"]["name"] for one in api.list(kind, namespace)] == ["theirs"]
