"""`blend: Trajectory` with the real HPA controller, metrics-server, VPA recommender and Deployment controller.

What takes hours or days is left to virtual time: the simulator's tests look at a constant load for days, since the
real recommenders can't be hurried without being others. Here it is some twenty seconds after it has settled, in
which the HPA looks ten times and the recommender as often.
"""

from __future__ import annotations

import time

import pytest

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.client.audit import Request
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import CPU_ANNOTATION, MEMORY_ANNOTATION
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from localcluster.workloads.load import PodLoad, await_pods
from tests.e2e.full import objects
from tests.e2e.full.objects import HPA_CONTROLLER, MEBI, OPERATOR

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 180
LOAD, TARGET = 1500, 70
"""Millicores that arrive, and the percentage of their requests that pods may use."""
NEEDED = LOAD * 100 / TARGET
"""Millicores of requests that this takes."""
OBSERVED = 12
"""Seconds in which nothing may be changed, after ten in which nothing was."""


def deployment(name: str, namespace: str, replicas: int, cpu: int) -> Json:
    """Pods that request 200m and 128Mi, and use so many millicores and 100Mi until they get their share of a load."""
    usage = {CPU_ANNOTATION: f"{cpu}m", MEMORY_ANNOTATION: "100Mi"}
    return samples.deployment(name, namespace, replicas=replicas, annotations=usage)


def vertical(resource: str, **bounds: Json) -> Json:
    """`spec.vpa` for one resource."""
    policy = {"containerName": "*", "controlledResources": [resource], **bounds}
    template = {
        "metadata": {"labels": {"role": "vpa"}},
        "spec": {"resourcePolicy": {"containerPolicies": [policy]}},
    }
    return objects.vertical(template=template)


def horizontal() -> Json:
    """`spec.hpa` on the utilization of CPU. It has no memory, so that nothing damps."""
    made = objects.horizontal(most=20)
    target = {"type": "Utilization", "averageUtilization": TARGET}
    spec = made["template"]["spec"]
    spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    spec["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return made


def active(api: KubeApi, name: str, namespace: str, *kinds: str) -> bool:
    """Whether these recommenders' recommendations count."""
    return {objects.conditions(api, name, namespace)[kind][0] for kind in kinds} == {"True"}


def used(api: KubeApi, name: str, namespace: str) -> int:
    """The percentage of their requests that pods use, by the HPA; 0 before it has measured."""
    measured = api.get("HorizontalPodAutoscaler", name, namespace)["status"].get("currentMetrics") or [{}]
    return int(measured[0].get("resource", {}).get("current", {}).get("averageUtilization", 0))


def writes(cluster: ControlPlane, namespace: str, name: str) -> list[Request]:
    """What the operator changed about a Deployment."""
    return cluster.audit.requests(
        user=OPERATOR, writes=True, resource="deployments", namespace=namespace, name=name, code=200
    )


def test_a_utilization_hpa_and_a_vpa_on_the_same_cpu_do_not_chase_each_other(
    cluster: ControlPlane, operator: Operator, namespace: str
) -> None:
    """DESIGN 7, case 5. Two pods of 200m use 750m each. Both recommend, then the Hvpa may act: from one pod of
    200m on, weight 50 leads to about four pods of 550m, which use 70 percent of that. One rollout (or two while the VPA
    is young: its target is of two pods, and is counted for four), a few steps of replicas, and then nothing but what
    the status learns."""
    api, name = cluster.api, "chase"
    api.create(deployment(name, namespace, replicas=2, cpu=LOAD // 2))
    spec = {
        "blend": "Trajectory",
        "updateStrategy": {"type": "Rollout"},
        "mode": "Paused",
        "hpa": horizontal(),
        "vpa": vertical("cpu", minAllowed={"cpu": "200m"}),
        "weightBasedScalingIntervals": [{"vpaWeight": 50}],
    }
    api.create(objects.hvpa(name, namespace, **spec))
    await_pods(api, namespace, name)
    with PodLoad(api, namespace, f"app={name}", cpu=LOAD, base_memory=100 * MEBI):
        wait_for(lambda: used(api, name, namespace) >= 350, TIMEOUT, "the HPA has measured the load")
        wait_for(lambda: active(api, name, namespace, "HpaActive", "VpaActive"), TIMEOUT, "both recommend")
        api.patch("Hvpa", name, namespace, {"spec": {"mode": "Apply"}})
        wait_for(lambda: objects.replicas(api, name, namespace) > 2, TIMEOUT, "the first step")

        def changes(seconds: float) -> list[str]:
            """What is changed in this time about the workload, by anybody, and about `spec.replicas` by the HPA."""
            mark = cluster.audit.mark()
            time.sleep(seconds)
            asked = cluster.audit.requests(mark, writes=True, namespace=namespace, name=name)
            specs = [
                request for request in asked if request.resource == "deployments" and not request.subresource
            ]
            desired = [
                request for request in asked if request.user == HPA_CONTROLLER and request.resource == "hvpas"
            ]
            return [str(request) for request in specs + desired]

        def allocated() -> int:
            """What all pods request together."""
            return objects.replicas(api, name, namespace) * objects.resources(api, name, namespace)[0]

        def settled() -> bool:
            """Pods are larger, and there are no more of them than the load takes, for more than an HPA's period."""
            larger = objects.resources(api, name, namespace)[0] > 200
            return larger and allocated() <= 1.4 * NEEDED and changes(16) == []

        # Replicas come first: sizes follow once the HPA has measured the pods that there are then, after a minute.
        # And nothing shrinks for a minute after each step.
        wait_for(settled, 2 * TIMEOUT, "it has settled")
        assert changes(OBSERVED) == []
    steps = [request.body["spec"] for request in writes(cluster, namespace, name)]
    assert len([step for step in steps if "template" in step]) <= 2, "rollouts"
    assert len(steps) <= 6, "replicas follow as the HPA measures the new pods"
    assert 0.9 * NEEDED <= allocated() <= 1.4 * NEEDED, "the load, one replica's rounding and the overlap"
    assert cluster.audit.writers("deployments", name, namespace)[HPA_CONTROLLER] == 0
