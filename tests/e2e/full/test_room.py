"""A simulated node has no more room than its size, as a real node does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster.client.api import ApiError, Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.real_pods import condition, is_resized
from localcluster.workloads.simulated_pods import SimulatedPods

pytestmark = pytest.mark.owned_cluster
NODE = "small"
SIZE = {"cpu": "1", "memory": "1Gi"}


@pytest.fixture
def pods(cluster: ControlPlane, namespace: str) -> Iterator[SimulatedPods]:
    """The pods of a node with 1000m and 1 GiB; they are deleted afterwards."""
    with cluster.node(NODE, SIZE["cpu"], SIZE["memory"]):
        pods = SimulatedPods(cluster.api, namespace, NODE)
        try:
            yield pods
        finally:
            for pod in cluster.api.list("Pod", namespace):
                pods.delete(pod["metadata"]["name"])


def pending(pod: Json) -> tuple[str, str] | None:
    """Reason and message of the condition of a resize that waits."""
    reported = condition(pod, "PodResizePending")
    return None if reported is None else (reported["reason"], reported["message"])


def test_a_resize_without_room_is_deferred_until_another_pod_is_deleted(pods: SimulatedPods) -> None:
    """The node has 1000m, and pods of 500m and 300m. The first asks for 800m: that has no room beside 300m, but does
    beside 200m, or alone."""
    pods.create("web", {"cpu": "500m", "memory": "128Mi"})
    pods.create("other", {"cpu": "300m", "memory": "128Mi"})
    pods.resize("web", {"cpu": "800m"})
    deferred = pods.until("web", pending, "is deferred")
    message = "Node didn't have enough resource: cpu, requested: 800, used: 300, capacity: 1000"
    assert pending(deferred) == ("Deferred", message)
    assert not is_resized(deferred)
    pods.delete("other")
    resized = pods.until("web", is_resized, "is resized")
    assert resized["status"]["containerStatuses"][0]["allocatedResources"]["cpu"] == "800m"


def test_memory_has_no_more_room_than_the_node_either(pods: SimulatedPods) -> None:
    pods.create("web", {"cpu": "100m", "memory": "256Mi"})
    pods.create("other", {"cpu": "100m", "memory": "512Mi"})
    pods.resize("web", {"memory": "768Mi"})
    _, message = pending(pods.until("web", pending, "is deferred")) or ("", "")
    assert "enough resource: memory, requested: 805306368, used: 536870912, capacity: 1073741824" in message
    pods.resize("web", {"memory": "512Mi"})
    pods.until("web", is_resized, "is resized")
    with pytest.raises(ApiError) as refused:
        pods.resize("web", {"memory": "2Gi"})
    assert refused.value.causes == ("NodeCapacity",)
