"""The simulated kubelet against KWOK's on a real API server: a resize of a pod comes to the same end,
or waits for the same reason. (Which pods a full node lets wait, KWOK does not compute: that part of the simulator
follows the kubelet's sources alone.)"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from builders.build import MIB
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import ResourceRequirements
from hvpa.simulate.cluster.pods import Workload
from hvpa.simulate.model import ContainerModel, NodeModel, WorkloadModel
from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import MEMORY_ANNOTATION
from tests.e2e.full.test_kubelet import OnNode

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


class Real(OnNode):
    """A pod on KWOK's node."""

    def __init__(self, cluster: Cluster, namespace: str, used: int) -> None:
        resources: Json = {"requests": plain(BEFORE), "limits": plain(LIMIT)}
        super().__init__(cluster, namespace, {MEMORY_ANNOTATION: f"{used}Mi"}, {"resources": resources})

    def end(self, requests: Amounts, limits: Amounts) -> End:
        try:
            self.resize(plain(requests), plain(limits))
        except ApiError as error:
            if error.status not in (403, 422):
                raise
            return "refused"
        wait_for(lambda: self._has(requests, limits) or self._failed(), 30, lambda: f"an end: {self.get()}")
        return "error" if self._failed() else "resized"

    def _has(self, requests: Amounts, limits: Amounts) -> bool:
        return bool(self.status()["resources"] == {"requests": plain(requests), "limits": plain(limits)})

    def _failed(self) -> bool:
        """Whether the kubelet reports that it tries in vain."""
        conditions = self.get()["status"]["conditions"]
        return any(
            one["type"] == "PodResizeInProgress" and one.get("reason") == "Error" for one in conditions
        )


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
        real.annotate(memory="50Mi")
        real.soon(lambda: real.status()["resources"]["limits"] == plain(limits), "has it once less is used")
