"""Which pods a ReplicaSet deletes at a scale-in, with the real controller manager: `updateStrategy.podDeletionCost`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import install_deletion_cost
from localcluster.workloads.load import await_pods
from tests.e2e.full import objects, recommended
from tests.e2e.full.objects import OPERATOR

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 120
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
COST = "controller.kubernetes.io/pod-deletion-cost"
SMALL = "small"
"""A node that has no room for the new size."""


@pytest.fixture
def small(cluster: ControlPlane, namespace: str) -> Iterator[None]:
    """A third node, of 1000m. The Deployment is gone before it."""
    api = cluster.api
    with cluster.node(SMALL, "1", "4Gi"):
        api.patch("Node", SMALL, "", {"spec": {"unschedulable": False}})
        wait_for(lambda: not api.get("Node", SMALL)["spec"].get("taints"), TIMEOUT, "the node takes pods")
        yield
        api.delete("Hvpa", "web", namespace)
        api.delete("Deployment", "web", namespace)
        wait_for(lambda: not api.list("Pod", namespace), TIMEOUT, "the pods are gone")


def horizontal(replicas: int) -> Json:
    """Bounds that leave no other number of replicas."""
    return objects.horizontal(least=replicas, most=replicas)


def pods_of(api: KubeApi, namespace: str) -> dict[str, Json]:
    pods = api.list("Pod", namespace, "app=web")
    return {pod["metadata"]["name"]: pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def on_small(pods: dict[str, Json]) -> set[str]:
    return {name for name, pod in pods.items() if pod["spec"].get("nodeName") == SMALL}


def costs(pods: dict[str, Json]) -> dict[str, str]:
    notes = {name: pod["metadata"].get("annotations", {}).get(COST) for name, pod in pods.items()}
    return {name: cost for name, cost in notes.items() if cost is not None}


def resized(api: KubeApi, namespace: str) -> str:
    actuation = api.get("Hvpa", "web", namespace).get("status", {}).get("actuation", {})
    return f"{actuation.get('resized')}, {actuation.get('infeasible')} infeasible"


@pytest.mark.usefixtures("operator", "small")
@pytest.mark.parametrize(
    ("policy", "other"),
    [("BySize", ""), ("BySize", "5"), ("Never", "")],
    ids=["by size", "another client sets costs", "never"],
)
def test_pods_whose_kubelet_refuses_the_size_go_first(
    cluster: ControlPlane, namespace: str, policy: str, other: str
) -> None:
    """Six pods on three nodes, of which one has no room for larger pods; then four pods are enough."""
    api = cluster.api
    install_deletion_cost(cluster)
    workload = objects.deployment("web", namespace)
    workload["spec"]["replicas"] = 6
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spread["labelSelector"] = {"matchLabels": {"app": "web"}}
    workload["spec"]["template"]["spec"]["topologySpreadConstraints"] = [spread]
    api.create(workload)
    await_pods(api, namespace, "web")
    first = pods_of(api, namespace)
    stuck = on_small(first)
    assert len(stuck) == 2
    fine = min(first.keys() - stuck)
    if other:
        api.patch("Pod", fine, namespace, {"metadata": {"annotations": {COST: other}}})
    recommended.vpa(api, namespace, "web", WEB)
    strategy = {"type": "InPlace", "podDeletionCost": policy}
    spec = {"hpa": horizontal(6), "vpa": {"name": "web"}, "updateStrategy": strategy}
    api.create(objects.hvpa("web", namespace, weightBasedScalingIntervals=[{"vpaWeight": 50}], **spec))
    recommended.recommend_target(api, namespace, "web", cpu="4", memory="128Mi")
    wait_for(lambda: resized(api, namespace) == "4/6, 2 infeasible", TIMEOUT, "four pods are larger")
    assert costs(pods_of(api, namespace)) == ({fine: other} if other else {})
    api.patch("Hvpa", "web", namespace, {"spec": {"hpa": horizontal(4)}})
    wait_for(lambda: len(pods_of(api, namespace)) == 4, TIMEOUT, "two pods go")
    left = pods_of(api, namespace)
    writes = [
        request.name
        for request in cluster.audit.requests(
            user=OPERATOR, namespace=namespace, resource="pods", writes=True
        )
        if not request.subresource
    ]
    if policy == "BySize" and not other:
        assert set(writes) == stuck
        assert len(writes) == 2, "one write for each pod"
        assert left.keys() == first.keys() - stuck
    else:
        assert writes == []
        assert costs(left).items() <= ({fine: other} if other else {}).items()
