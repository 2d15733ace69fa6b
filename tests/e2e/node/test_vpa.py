"""The VPA's own updater and webhook on a real node: what the demo compares with."""

from __future__ import annotations

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.vpa import VpaActs
from localcluster.workloads.load import is_ready
from localcluster.workloads.real_pods import RealPods, asked, status

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]


def test_running_pods_are_resized_and_new_ones_begin_with_the_size(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    """Two pods of 100m use 250m each."""
    pods.use("web", 250, 20)
    pods.deploy("web", {"cpu": "100m", "memory": "32Mi"}, {"cpu": "300m", "memory": "96Mi"}, replicas=2)
    metadata = {"name": "web", "namespace": pods.namespace}
    pods.api.create(
        {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": metadata,
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "updatePolicy": {"updateMode": "InPlaceOrRecreate"},
            },
        }
    )

    def all_of(count: int) -> list[Json]:
        ready_pods = [pod for pod in pods.api.list("Pod", pods.namespace, "app=web") if is_ready(pod)]
        return (
            ready_pods
            if len(ready_pods) == count and all(asked(pod)["requests"]["cpu"] != "100m" for pod in ready_pods)
            else []
        )

    with VpaActs(node_cluster, pods.namespace):
        first = wait_for(lambda: all_of(2), 240, "both are resized")
        assert all(status(pod)["restartCount"] == 0 for pod in first)
        name = first[0]["metadata"]["name"]
        wait_for(lambda: pods.cgroup(name).shares > 200, 60, "the container has it")
        pods.api.patch("Deployment", "web", pods.namespace, {"spec": {"replicas": 3}})
        wait_for(lambda: all_of(3), 90, "the new pod begins with the size")
