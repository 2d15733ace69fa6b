"""The simulated kubelet against KWOK's on a real API server: a resize of a pod comes to the same end,
or waits for the same reason. (Which pods a full node lets wait, KWOK does not compute: that part of the simulator
follows the kubelet's sources alone.)"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Literal

import pytest

from builders.build import MIB
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import ResourceRequirements
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.model import ContainerModel, NodeModel, WorkloadModel
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import MEMORY_ANNOTATION

pytestmark = pytest.mark.owned_cluster
Amounts = Mapping[Resource, str]
End = Literal["resized", "refused", "error"]
ROOM: Mapping[Resource, str] = {"cpu": "64", "memory": "256Gi"}
"""What a node of the test cluster has (`localcluster.controlplane.manifests`)."""
BEFORE: Amounts = {"cpu": "200m", "memory": "128Mi"}
LIMIT: Amounts = {"memory": "256Mi"}
CASES: Mapping[str, tuple[Amounts, Amounts, int, End]] = {
    "more of both": ({"cpu": "1", "memory": "200Mi"}, LIMIT, 100, "resized"),
    "less of both": ({"cpu": "100m", "memory": "64Mi"}, LIMIT, 100, "resized"),
    "a higher limit": (BEFORE, {"memory": "512Mi"}, 100, "resized"),
    "a lower limit above what is used": (BEFORE, {"memory": "200Mi"}, 100, "resized"),
    "a lower limit below what is used": (BEFORE, {"memory": "160Mi"}, 200, "error"),
    "a lower limit of as much as is used": (BEFORE, {"memory": "200Mi"}, 200, "error"),
    "more than a node has": ({"cpu": "65", "memory": "128Mi"}, LIMIT, 100, "refused"),
    "another QoS class": (
        {"cpu": "200m", "memory": "256Mi"},
        {"cpu": "200m", "memory": "256Mi"},
        100,
        "refused",
    ),
}
"""Requests and limits that a running pod is to have, what it uses (in Mi), and what becomes of that."""


class Simulated:
    """A pod in the simulator."""

    def __init__(self, used: int) -> None:
        requests, limits = parsed(BEFORE), parsed(LIMIT)
        container = ContainerModel("app", requests, limits, memory_base=float(used * MIB))
        model = WorkloadModel("Deployment", "app", "default", 1, (container,), resize="InPlace")
        room = parsed(ROOM)
        self.state = Workload(model, NodeModel(cpu=room["cpu"], memory=room["memory"]))
        self.state.advance(0.0, 15.0, 0.0)
        (self.pod,) = self.state.pods

    def resize(self, requests: Amounts, limits: Amounts) -> End:
        self.state.resize(self.pod, {"app": ResourceRequirements(parsed(requests), parsed(limits))}, 15.0)
        if self.pod.resize is None:
            return "resized"
        return "error" if self.pod.resize.state == "Error" else "refused"


class Real:
    """A pod on KWOK's node (`localcluster/controlplane/kubelet.yaml`)."""

    def __init__(self, cluster: Cluster, namespace: str, used: int, **delays: str) -> None:
        self.api: KubeApi = cluster.api
        self.namespace = namespace
        container = {"name": "app", "image": "app", "resources": resources(BEFORE, LIMIT)}
        annotations = {
            MEMORY_ANNOTATION: f"{used}Mi",
            **{f"hvpa.test/{key}": how for key, how in delays.items()},
        }
        metadata = {"name": "pod", "namespace": namespace, "annotations": annotations}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        self.api.create(pod)
        if not delays:
            self.soon(lambda: self.has(BEFORE, LIMIT), "runs")

    def end(self, requests: Amounts, limits: Amounts) -> End:
        body = {"spec": {"containers": [{"name": "app", "resources": resources(requests, limits)}]}}
        try:
            self.api.patch("Pod", "pod", self.namespace, body, type="strategic", subresource="resize")
        except ApiError as error:
            if error.status not in (403, 422):
                raise
            return "refused"
        self.soon(lambda: self.has(requests, limits) or self._failed(), "comes to an end")
        return "error" if self._failed() else "resized"

    def uses(self, used: int) -> None:
        annotations = {MEMORY_ANNOTATION: f"{used}Mi"}
        self.api.patch("Pod", "pod", self.namespace, {"metadata": {"annotations": annotations}})

    def has(self, requests: Amounts, limits: Amounts) -> bool:
        """Whether the only container has these amounts and has not been restarted."""
        (found,) = self._status().get("containerStatuses", [{}])
        return bool(found.get("resources") == resources(requests, limits) and found["restartCount"] == 0)

    def soon(self, holds: Callable[[], bool], what: str) -> None:
        wait_for(holds, 30, lambda: f"the pod {what}: {self._status()}")

    def _failed(self) -> bool:
        """Whether the kubelet reports that it tries in vain."""
        return any(
            one["type"] == "PodResizeInProgress" and one.get("reason") == "Error"
            for one in self._status()["conditions"]
        )

    def _status(self) -> Json:
        return dict(self.api.get("Pod", "pod", self.namespace)["status"])


def resources(requests: Amounts, limits: Amounts) -> Json:
    return {"requests": plain(requests), "limits": plain(limits)}


def plain(amounts: Amounts) -> Json:
    return {str(name): value for name, value in amounts.items()}


def parsed(amounts: Amounts) -> dict[Resource, int]:
    return {name: parse_resource(name, value) for name, value in amounts.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_resize_comes_to_the_same_end(cluster: Cluster, namespace: str, case: str) -> None:
    requests, limits, used, expected = CASES[case]
    assert Simulated(used).resize(requests, limits) == expected
    real = Real(cluster, namespace, used)
    assert real.end(requests, limits) == expected
    if expected == "error":
        real.uses(50)
        real.soon(lambda: real.has(requests, limits), "has it once less is used")


def test_writes_to_a_pod_delay_neither_its_start_nor_its_resize(cluster: Cluster, namespace: str) -> None:
    """Something is written twice a second, as a load does: the pod runs after four seconds, and is resized four seconds
    after the request."""
    real = Real(cluster, namespace, 100, **{"start-up": "4s", "resize-delay": "4s"})
    numbers = itertools.count(100)

    def seconds(requests: Amounts, limits: Amounts) -> float:
        """How long it takes until the pod has these amounts."""
        began = time.monotonic()

        def holds() -> bool:
            real.uses(next(numbers))
            return real.has(requests, limits)

        wait_for(holds, 30, "the pod has what it is to have", interval=0.5)
        return time.monotonic() - began

    assert seconds(BEFORE, LIMIT) > 2, "times are in whole seconds"
    more: Amounts = {"cpu": "1", "memory": "128Mi"}
    body = {"spec": {"containers": [{"name": "app", "resources": resources(more, LIMIT)}]}}
    real.api.patch("Pod", "pod", namespace, body, type="strategic", subresource="resize")
    assert seconds(more, LIMIT) > 2
