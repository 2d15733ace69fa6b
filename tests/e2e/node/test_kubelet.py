"""How a real kubelet resizes, refuses, defers and restarts: the facts that the operator and its simulated kubelets rely
on. Those that simulated nodes can show too are `tests.e2e.kubelets.facts`."""

from __future__ import annotations

import re
import time

import pytest

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.pods import MIB
from localcluster.workloads.real_pods import RealPods, applied, condition, is_resized, status
from tests.e2e.kubelets.facts import FACTS, LIMITS, SMALL, Place
from tests.e2e.kubelets.observe import Answers, observe
from tests.e2e.kubelets.table import written

pytestmark = pytest.mark.owned_cluster
LOOK = 5
"""Seconds for which a kubelet is watched."""


def late_metrics(place: Place) -> str:
    """The first metrics show also what is used beyond the request. From then on a refusal names the usage of the pod's
    cgroup, for the container as well."""
    pods = place.pods
    assert isinstance(pods, RealPods)
    pods.use("web", 150, 60)
    pods.create("web", {"cpu": "50m", "memory": "64Mi"}, {"memory": "128Mi"})
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{pods.namespace}/pods"
    assert pods.api.raw("GET", path)["items"] == []

    def used() -> int:
        return parse_cpu(pods.api.raw("GET", path)["items"][0]["containers"][0]["usage"]["cpu"])

    wait_for(lambda: used() > 75, 90, "its use is shown")
    pods.resize("web", {"memory": "30Mi"}, {"memory": "40Mi"})

    def told() -> list[int]:
        """The usage of the pod, and that of the container."""
        message = (condition(pods.get("web"), "PodResizeInProgress") or {}).get("message", "")
        return [int(amount) for amount in re.findall(r"below current usage \((\d+)\)", message)]

    wait_for(lambda: len(told()) == 2, 60, "both limits are refused")
    assert told()[0] == told()[1] == pytest.approx(pods.cgroup("web", of_pod=True).usage, rel=0.1)
    return "the pod's"


@pytest.fixture(scope="module")
def observed(node_cluster: ControlPlane) -> Answers:
    return observe(node_cluster, {"usage in a refusal": late_metrics})


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_as_the_page_says(observed: Answers, name: str) -> None:
    assert observed[name] == written()[name].real


def test_metrics_come_late_and_a_refusal_names_the_usage_of_the_whole_cgroup(observed: Answers) -> None:
    assert observed["usage in a refusal"] == "the pod's"


def test_a_resize_reaches_the_running_container(pods: RealPods) -> None:
    pods.create("web", SMALL, LIMITS)
    assert pods.in_force("web") == (200, 128 * MIB)
    pods.resize("web", {"cpu": "200m", "memory": "128Mi"}, {"cpu": "600m", "memory": "256Mi"})
    pod = pods.until("web", is_resized, "is resized")
    for of_pod in (False, True):
        cgroup = pods.cgroup("web", of_pod=of_pod)
        assert (cgroup.shares, cgroup.quota, cgroup.limit) == (204, 60000, 256 * MIB)
    assert status(pod)["restartCount"] == 0


@pytest.mark.at_length
def test_the_hpa_divides_by_the_size_that_a_pod_waits_for(pods: RealPods) -> None:
    """100m of 250m are 40 percent. Once the pod asks for 500m, they are 20, although its node has no room."""
    pods.use("web", 100, 20)
    pods.deploy("web", {"cpu": "250m", "memory": "64Mi"})
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    spec = {"scaleTargetRef": target, "maxReplicas": 1, "metrics": [{"type": "Resource", "resource": metric}]}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    pods.api.create({**kind, "metadata": {"name": "web", "namespace": pods.namespace}, "spec": spec})

    def utilization() -> int:
        hpa_status = pods.api.get("HorizontalPodAutoscaler", "web", pods.namespace).get("status", {})
        metrics = hpa_status.get("currentMetrics") or [{}]
        return int(metrics[0].get("resource", {}).get("current", {}).get("averageUtilization", 0))

    wait_for(lambda: utilization() > 30, 120, "the HPA measures 40 percent")
    pods.create("filler", {"cpu": "1200m", "memory": "16Mi"})
    name = pods.only_pod("web")
    pods.resize(name, {"cpu": "500m"})
    pods.until(name, lambda pod: condition(pod, "PodResizePending"), "waits for room")
    wait_for(lambda: 10 < utilization() < 25, 120, "the HPA measures 20 percent")
    assert applied(pods.get(name))["requests"]["cpu"] == "250m"


def test_cpu_is_lowered_only_together_with_memory_that_waits(pods: RealPods) -> None:
    """A resize is allocated as a whole or not at all: the end of a startup boost waits, too."""
    pods.create("filler", {"cpu": "50m", "memory": "128Mi"})
    pods.create("web", {"cpu": "300m", "memory": "64Mi"})
    node = pods.api.get("Node", pods.get("web")["spec"]["nodeName"])
    room = parse_memory(node["status"]["allocatable"]["memory"]) - 100 * MIB
    pods.resize("web", {"memory": str(room)})
    pods.until("web", lambda pod: condition(pod, "PodResizePending"), "waits for room")
    pods.resize("web", {"cpu": "100m"})

    def is_seen(pod: Json) -> bool:
        pending = condition(pod, "PodResizePending") or {}
        return bool(pending.get("observedGeneration") == pod["metadata"]["generation"])

    pods.until("web", is_seen, "the kubelet has seen the smaller CPU")
    time.sleep(LOOK)
    assert applied(pods.get("web"))["requests"] == {"cpu": "300m", "memory": "64Mi"}
    pods.resize("web", {"memory": "64Mi"})
    pods.until("web", is_resized, "is resized")
    assert applied(pods.get("web"))["requests"] == {"cpu": "100m", "memory": "64Mi"}
