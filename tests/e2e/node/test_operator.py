"""The operator resizes real containers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from hvpa.api.values.quantity import parse_cpu, parse_memory
from hvpa.cli.main import main
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_operator_rbac
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB
from localcluster.workloads.real_pods import RealPods, Versions, applied, asked, condition, is_resized
from tests.e2e.full import objects, recommended
from tests.e2e.node.in_place import AT_ONCE, SMALL, both_axes, decided, is_recommending, ready_pods, start

pytestmark = pytest.mark.owned_cluster
LOOK = 15
"""Seconds for which a pod is watched."""


@pytest.fixture(scope="module")
def operator(node_cluster: ControlPlane) -> Iterator[Operator]:
    """The operator as a process beside the node, with the rights of its ServiceAccount."""
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    with Operator(node_cluster, kubeconfig) as running:
        yield running


@pytest.mark.at_length
def test_page_cache_in_the_way_of_a_limit_keeps_no_cpu_from_a_pod(
    node_cluster: ControlPlane, operator: Operator, pods: RealPods
) -> None:
    """250 MiB of page cache are no usage for the VPA, and usage for the kubelet: it refuses the limit that follows the
    target. The CPU that is wanted then has to come all the same."""
    pods.use("web", 60, 20, cache=250)
    requests, limits = {"cpu": "100m", "memory": "160Mi"}, {"cpu": "200m", "memory": "320Mi"}
    start(pods, "web", {"requests": requests, "limits": limits})
    name = pods.only_pod("web")
    quota = pods.cgroup(name).quota
    with Versions(node_cluster.kubeconfig, pods.namespace) as versions:

        def is_refused() -> bool:
            reports = [condition(pod, "PodResizeInProgress") or {} for _, pod in versions.of(name)]
            return any(report.get("reason") == "Error" for report in reports)

        wait_for(is_refused, 90, "the kubelet refuses a limit")
    pods.until(name, is_resized, "has its limit put back", 30)
    assert pods.cgroup(name).limit > 270 * MIB
    pods.use("web", 500, 20, cache=250)
    wait_for(lambda: pods.cgroup(name).quota > 2 * quota, 60, "it has more CPU")
    pods.until(name, is_resized, "is resized")
    assert pods.cgroup(name).limit > 270 * MIB


def test_a_container_that_is_killed_for_memory_gets_more_at_once(operator: Operator, pods: RealPods) -> None:
    """Killed once, then it has what it needs: no CrashLoopBackOff."""
    pods.use("leak", 20, 40)
    start(pods, "leak", {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "96Mi"}})
    name = pods.only_pod("leak")
    pods.use("leak", 20, 150)
    wait_for(lambda: pods.cgroup(name).limit > 170 * MIB, 60, "its limit is larger")
    pod = pods.until(name, is_ready, "is ready")
    assert pod["status"]["containerStatuses"][0]["restartCount"] <= 2


def test_less_cpu_does_not_wait_for_memory_that_has_no_room(operator: Operator, pods: RealPods) -> None:
    """The kubelet allocates a resize as a whole (`test_kubelet`), so the operator takes the memory out for a moment."""
    pods.create("filler", {"cpu": "50m", "memory": "128Mi"})
    pods.use("web", 20, 20)
    pods.deploy("web", {"cpu": "300m", "memory": "64Mi"}, {}, 1)
    name, api = pods.only_pod("web"), pods.api
    node = api.get("Node", pods.get(name)["spec"]["nodeName"])
    room = parse_memory(node["status"]["allocatable"]["memory"]) - 100 * MIB
    memory = str(room)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    recommended.vpa(api, pods.namespace, "web", reference)
    recommended.recommend_target(api, pods.namespace, "web", cpu="300m", memory=memory)
    vertical = {"name": "web", "scaleUp": {"minChange": SMALL}, "scaleDown": {**AT_ONCE, "minHistory": "0s"}}
    weights = {"hpa": {"deploy": False}, "weightBasedScalingIntervals": [{"vpaWeight": 100}]}
    in_place = {"updateStrategy": {"type": "InPlace"}}
    api.create(objects.hvpa("web", pods.namespace, vpa=vertical, **weights, **in_place))

    def waits(pod: Json) -> bool:
        pending = condition(pod, "PodResizePending")
        return pending is not None and parse_memory(asked(pod)["requests"]["memory"]) > room // 2

    pods.until(name, waits, "waits for room")
    recommended.recommend_target(api, pods.namespace, "web", cpu="100m", memory=memory)
    pods.until(name, lambda pod: applied(pod)["requests"]["cpu"] == "100m", "has less CPU")
    pod = pods.until(name, waits, "waits for room again")
    assert applied(pod)["requests"] == {"cpu": "100m", "memory": "64Mi"}
    assert pods.cgroup(name).shares == 102


@pytest.mark.at_length
def test_undo_returns_real_containers_to_their_cpu_and_new_pods_have_it(
    node_cluster: ControlPlane, operator: Operator, pods: RealPods
) -> None:
    """The load stays, and so would the larger size without the undo."""
    pods.use("web", 60, 20)
    start(pods, "web", {"requests": {"cpu": "100m", "memory": "160Mi"}, "limits": {"cpu": "200m"}})
    name = pods.only_pod("web")
    pods.use("web", 500, 20)
    wait_for(lambda: pods.cgroup(name).quota > 40_000, 90, "it has more CPU")

    def undone() -> bool:  # the VPA's target still moves, so another step may come in between
        return main([*command, "--kubeconfig", str(node_cluster.kubeconfig)]) == 0

    command = ["undo", "web", "-n", pods.namespace]
    wait_for(undone, 60, "an undo")
    before = pods.api.get("Hvpa", "web", pods.namespace)["status"]["previousSize"]["containers"][0]
    quota = 100 * parse_cpu(before["limits"]["cpu"])
    wait_for(lambda: pods.cgroup(name).quota == quota, 30, "it has its former CPU")
    pods.api.delete("Pod", name, pods.namespace)
    wait_for(lambda: name not in ready_pods(pods, "web") and ready_pods(pods, "web"), 90, "another pod")
    newer = pods.only_pod("web")
    wait_for(lambda: pods.cgroup(newer).quota == quota, 30, "the new pod has it, too")
    time.sleep(LOOK)  # the operator decides every few seconds, as the VPA writes
    assert pods.cgroup(newer).quota == quota
    assert asked(pods.get(newer))["requests"] == before["requests"]


@pytest.mark.at_length
def test_a_size_beyond_the_node_becomes_replicas_at_once(operator: Operator, pods: RealPods) -> None:
    """600m at a target of 35 percent call for 1714m, at weight 100 of one pod. Its node has 1500m, so that the API
    server refuses the resize (403), and replicas of the size before are added."""
    pods.use("big", 60, 20)
    requests = {"cpu": "250m", "memory": "64Mi"}
    start(pods, "big", {"requests": requests, "limits": {}}, **both_axes(1, 4, 100, 35))
    pods.only_pod("big")
    wait_for(lambda: is_recommending(pods, "big"), 90, "both recommend")
    pods.use("big", 600, 20)

    def taken_back() -> str:
        rollback = pods.api.get("Hvpa", "big", pods.namespace)["status"].get("rolledBack", {})
        return str(rollback.get("message", ""))

    wait_for(taken_back, 90, "the size is taken back")  # refused again and again, it took 3 minutes
    assert "node didn't have enough allocatable resources: cpu" in taken_back()
    wait_for(lambda: decided(pods, "big")[0] > 1, 10, "more replicas")


@pytest.mark.at_length
def test_replicas_and_their_size_fit_together_while_new_ones_start(
    node_cluster: ControlPlane, operator: Operator, pods: RealPods
) -> None:
    """Two pods of 250m use 100m each of their 50 percent, and then 450m together: 3 x 300m. There is room for these,
    and not for two larger pods that serve alone until the third has started. HVPA may not change anything before the
    HPA has measured all of the load: for 390m, pods would stay at 250m and become four."""
    pods.use("web", 100, 20)
    requests = {"cpu": "250m", "memory": "64Mi"}
    pods.create("filler", {"cpu": "500m", "memory": "16Mi"})
    start(pods, "web", {"requests": requests, "limits": {}}, replicas=2, **both_axes(2, 6, 50, 50))
    wait_for(lambda: is_recommending(pods, "web"), 90, "both recommend")
    pods.api.patch("Hvpa", "web", pods.namespace, {"spec": {"mode": "Recommend"}})
    pods.use("web", 225, 20)
    wait_for(lambda: _utilization(pods, "web") > 80, 90, "the HPA has measured both pods")
    with Versions(node_cluster.kubeconfig, pods.namespace) as versions:
        pods.api.patch("Hvpa", "web", pods.namespace, {"spec": {"mode": "Apply"}})
        wait_for(lambda: len(ready_pods(pods, "web")) == 3, 90, "the third pod is ready", 0.1)
        replicas = decided(pods, "web")[0]
        pods.use("web", 150, 20)
        time.sleep(20)
        web_pods = [
            pod for _, pod in versions.versions if pod["metadata"].get("labels", {}).get("app") == "web"
        ]
    assert max(parse_cpu(asked(pod)["requests"]["cpu"]) for pod in web_pods) <= 340
    assert replicas == 3


def _utilization(pods: RealPods, name: str) -> int:
    """The percentage of the pods' CPU requests that the HPA has measured."""
    hpa = pods.api.get("HorizontalPodAutoscaler", name, pods.namespace)
    return int(hpa["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"])
