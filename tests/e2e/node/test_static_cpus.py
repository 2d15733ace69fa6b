"""A kubelet with a static CPU manager refuses to resize the CPU of a Guaranteed pod, and all that is asked for beside
it. The operator then asks for the rest alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.flags import AutoscalerSettings
from localcluster.operator.operator import Operator, install_operator_rbac
from localcluster.workloads.pods import MIB
from localcluster.workloads.real_pods import RealPods, condition, is_resized
from tests.e2e.node.in_place import start

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]

SIZE = {"cpu": "300m", "memory": "64Mi"}
LARGER = {"cpu": "600m", "memory": "96Mi"}


@pytest.fixture(scope="module")
def node_cluster(real_nodes: None) -> Iterator[ControlPlane]:
    """A node of its own, instead of that of the folder."""
    settings = AutoscalerSettings(kubelet={"cpuManagerPolicy": "static"})
    with ControlPlane(nodes="real", settings=settings) as owned:
        yield owned


def test_memory_beside_cpu_is_refused_with_it(pods: RealPods) -> None:
    pods.create("web", SIZE, SIZE)
    pods.resize("web", LARGER, LARGER)
    pod = pods.until("web", lambda pod: condition(pod, "PodResizePending"), "is refused")
    refusal = condition(pod, "PodResizePending") or {}
    assert refusal["reason"] == "Infeasible"
    assert "static" in refusal["message"]
    assert pods.in_force("web").memory == 64 * MIB
    without_cpu = LARGER | {"cpu": SIZE["cpu"]}
    pods.resize("web", without_cpu, without_cpu)
    pods.until("web", is_resized, "has more memory")
    assert pods.in_force("web").memory == 96 * MIB


def test_the_operator_raises_memory_although_cpu_is_refused(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    pods.use("web", 280, 60)
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    with Operator(node_cluster, kubeconfig):
        size = {"cpu": "200m", "memory": "100Mi"}
        start(pods, "web", {"requests": size, "limits": size})
        name = pods.only_pod("web")
        pods.use("web", 280, 95)
        wait_for(lambda: pods.cgroup(name).limit > 104 * MIB, 120, "it has more memory")
        wait_for(lambda: "only new pods get another CPU size" in rolled_back(pods), 120, "CPU is given up")
    assert pods.cgroup(name).shares == 204  # of 200m: the kubelet refuses more


def rolled_back(pods: RealPods) -> str:
    """Why a size was rolled back, by the status."""
    status = pods.api.get("Hvpa", "web", pods.namespace).get("status", {})
    return str(status.get("rolledBack", {}).get("message", ""))
