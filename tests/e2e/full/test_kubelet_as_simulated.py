"""The simulated kubelet against KWOK's on a real API server: a resize of a pod comes to the same end,
or waits for the same reason. (Which pods a full node lets wait, KWOK does not compute: that part of the simulator
follows the kubelet's sources alone.)"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import pytest

from builders.build import MIB
from hvpa.api.values.quantity import Resource, parse_resource
from hvpa.core.model import ResourceRequirements
from hvpa_lab.simulate.cluster.pods import SimWorkload
from hvpa_lab.simulate.model import ContainerModel, NodeModel, WorkloadModel
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import IN_VAIN_ANNOTATION, MEMORY_ANNOTATION

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
        self.state = SimWorkload(model, NodeModel(cpu=room["cpu"], memory=room["memory"]))
        self.state.advance(0.0, 15.0, 0.0)
        (self.pod,) = self.state.pods

    def resize(self, requests: Amounts, limits: Amounts) -> End:
        self.state.resize(self.pod, {"app": ResourceRequirements(parsed(requests), parsed(limits))}, 15.0)
        if self.pod.resize is None:
            return "resized"
        return "error" if self.pod.resize.state == "Error" else "refused"


class Real:
    """A pod on KWOK's node (`localcluster/controlplane/kubelet.yaml`)."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        used: int = 100,
        name: str = "pod",
        resize_policy: Json | None = None,
        **kubelet: str,
    ) -> None:
        self.api: KubeApi = cluster.api
        self.namespace = namespace
        self.name = name
        policy = [resize_policy] if resize_policy else []
        container = {
            "name": "app",
            "image": "app",
            "resources": resources(BEFORE, LIMIT),
            "resizePolicy": policy,
        }
        annotations = {
            MEMORY_ANNOTATION: f"{used}Mi",
            **{f"hvpa.test/{key.replace('_', '-')}": how for key, how in kubelet.items()},
        }
        metadata = {"name": name, "namespace": namespace, "annotations": annotations}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        self.api.create(pod)

    def runs(self) -> None:
        """Wait until it does."""
        self.soon(lambda: self.has(BEFORE, LIMIT), "runs")

    def resize(self, requests: Amounts, limits: Amounts = LIMIT) -> None:
        body = {"spec": {"containers": [{"name": "app", "resources": resources(requests, limits)}]}}
        self.api.patch("Pod", self.name, self.namespace, body, type="strategic", subresource="resize")

    def end(self, requests: Amounts, limits: Amounts) -> End:
        try:
            self.resize(requests, limits)
        except ApiError as error:
            if error.status not in (403, 422):
                raise
            return "refused"
        self.soon(lambda: self.has(requests, limits) or self._failed(), "comes to an end")
        return "error" if self._failed() else "resized"

    def uses(self, used: int) -> None:
        self.annotate(MEMORY_ANNOTATION, f"{used}Mi")

    def annotate(self, annotation: str, value: str | None) -> None:
        self.api.patch("Pod", self.name, self.namespace, {"metadata": {"annotations": {annotation: value}}})

    def has(self, requests: Amounts, limits: Amounts = LIMIT, restarts: int = 0) -> bool:
        """Whether the only container has these amounts and has been restarted so often."""
        (status,) = self._status().get("containerStatuses", [{}])
        there = status.get("resources") == resources(requests, limits)
        return bool(there and status["restartCount"] == restarts)

    def soon(self, holds: Callable[[], bool], what: str) -> None:
        wait_for(holds, 30, lambda: f"the pod {what}: {self._status()}")

    def reported(self) -> list[tuple[str, str, bool]]:
        """What its kubelet says of a resize: condition, reason, and whether it is about the present spec."""
        pod = self.api.get("Pod", self.name, self.namespace)
        generation = pod["metadata"]["generation"]
        return [
            (condition["type"], condition.get("reason", ""), condition["observedGeneration"] == generation)
            for condition in pod["status"].get("conditions", [])
            if condition["type"].startswith("PodResize")
        ]

    def says(self, what: list[tuple[str, str, bool]]) -> bool:
        """Whether its kubelet reports exactly this."""
        return self.reported() == what

    def _failed(self) -> bool:
        """Whether the kubelet reports that it tries in vain."""
        return any(report[:2] == ("PodResizeInProgress", "Error") for report in self.reported())

    def _status(self) -> Json:
        return dict(self.api.get("Pod", self.name, self.namespace)["status"])


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
    real.runs()
    assert real.end(requests, limits) == expected
    if expected == "error":
        real.uses(50)
        real.soon(lambda: real.has(requests, limits), "has it once less is used")


def test_writes_to_a_pod_delay_neither_its_start_nor_its_resize(cluster: Cluster, namespace: str) -> None:
    """Something is written twice a second, as a load does: the pod runs after four seconds, and is resized four seconds
    after the request."""
    real = Real(cluster, namespace, start_up="4s", resize_delay="4s")
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
    real.resize(more)
    assert seconds(more, LIMIT) > 2


def test_a_kubelet_resizes_in_vain_or_says_nothing_until_it_may(cluster: Cluster, namespace: str) -> None:
    pending, vain = "PodResizePending", "PodResizeInProgress"
    says = {"Deferred": pending, "Infeasible": pending, "Error": vain, "Silent": ""}
    pods = {how: Real(cluster, namespace, name=how.lower(), resize=how) for how in says}
    quick = Real(cluster, namespace, name="quick")
    for pod in (*pods.values(), quick):
        pod.runs()
    more: Amounts = {"cpu": "300m", "memory": "128Mi"}
    most: Amounts = {"cpu": "400m", "memory": "128Mi"}
    for requests in (more, most):
        for pod in (*pods.values(), quick):
            pod.resize(requests)
        quick.soon(partial(quick.has, requests), "is resized")
        for how, condition in says.items():
            expected = [(condition, how, True)] if condition else []
            pods[how].soon(partial(pods[how].says, expected), f"is {how}")
            assert pods[how].has(BEFORE)
    pods["Infeasible"].resize(BEFORE)
    pods["Infeasible"].soon(partial(pods["Infeasible"].says, []), "has its resize taken back")
    for how in ("Deferred", "Error", "Silent"):
        pods[how].annotate(IN_VAIN_ANNOTATION, None)
        pods[how].soon(partial(pods[how].has, most), "is resized after all")
        assert pods[how].says([])


def test_a_container_restarts_where_its_policy_says_so_for_the_resource(
    cluster: Cluster, namespace: str
) -> None:
    policy = {"resourceName": "memory", "restartPolicy": "RestartContainer"}
    real = Real(cluster, namespace, resize_policy=policy)
    real.runs()
    cases: tuple[tuple[Amounts, int], ...] = (
        ({"cpu": "1", "memory": "128Mi"}, 0),
        ({"cpu": "1", "memory": "192Mi"}, 1),
    )
    for requests, restarts in cases:
        real.resize(requests)
        real.soon(partial(real.has, requests, restarts=restarts), f"is resized with {restarts} restarts")


def test_metrics_of_a_pod_are_late_where_it_says_so(cluster: Cluster, namespace: str) -> None:
    for pod in (
        Real(cluster, namespace, name="quick"),
        Real(cluster, namespace, name="late", late_metrics="20s"),
    ):
        pod.runs()
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"

    def shown() -> list[str]:
        return [pod_metrics["metadata"]["name"] for pod_metrics in cluster.api.raw("GET", path)["items"]]

    assert wait_for(shown, 30, "metrics") == ["quick"]
    wait_for(lambda: len(shown()) == 2, 60, "metrics of both")
