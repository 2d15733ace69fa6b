"""How a real kubelet resizes, refuses, defers and restarts: the facts that the operator and its simulated kubelets rely
on. Times are generous: the order and the values count."""

from __future__ import annotations

import re
import time

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads.load import is_ready
from localcluster.workloads.real_pods import (
    MIB,
    RealPods,
    Versions,
    applied,
    asked,
    await_error,
    condition,
    is_resized,
    status,
)

pytestmark = pytest.mark.owned_cluster

IN_PROGRESS, PENDING = "PodResizeInProgress", "PodResizePending"
SMALL = {"cpu": "100m", "memory": "64Mi"}
TWICE = {"cpu": "200m", "memory": "128Mi"}


def milli(amount: str) -> int:
    return int(amount[:-1]) if amount.endswith("m") else int(amount) * 1000


def allocatable(cluster: ControlPlane) -> int:
    """What pods may request of the node, in millicores."""
    return milli(cluster.api.get("Node", cluster.nodes[0].name)["status"]["allocatable"]["cpu"])


def in_progress(pod: Json) -> Json | None:
    return condition(pod, IN_PROGRESS)


def is_killed(pod: Json) -> bool:
    """Whether its container does not run, since it was killed for memory."""
    return bool(status(pod)["state"].get("terminated", {}).get("reason") == "OOMKilled")


class TestResize:
    def test_it_reaches_the_running_container(self, pods: RealPods) -> None:
        pods.create("web", SMALL, TWICE)
        assert (pods.cgroup("web").quota, pods.cgroup("web").limit) == (20000, 128 * MIB)
        pods.resize("web", TWICE, {"cpu": "600m", "memory": "256Mi"})
        pod = pods.until("web", is_resized, "is resized")
        for of_pod in (False, True):
            found = pods.cgroup("web", of_pod=of_pod)
            assert (found.shares, found.quota, found.limit) == (204, 60000, 256 * MIB)
        assert status(pod)["restartCount"] == 0

    def test_there_are_three_versions_of_the_pod(self, node_cluster: ControlPlane, pods: RealPods) -> None:
        """Asked for; allocated, and in progress without a reason; there."""
        pods.create("web", SMALL)
        with Versions(node_cluster.kubeconfig, pods.namespace) as versions:
            time.sleep(0.5)
            since = time.time()
            pods.resize("web", {"cpu": "300m"})
            pods.until("web", is_resized, "is resized")
            wait_for(
                lambda: any(is_resized(pod) for _, pod in versions.of("web", since)),
                10,
                "the watch has shown it",
            )
        found = [pod for _, pod in versions.of("web", since) if asked(pod)["requests"]["cpu"] == "300m"]
        allocated = [status(pod)["allocatedResources"]["cpu"] for pod in found]
        had = [applied(pod)["requests"]["cpu"] for pod in found]
        told = [None if (one := in_progress(pod)) is None else one.get("reason", "") for pod in found]
        steps = list(dict.fromkeys(zip(allocated, had, told, strict=True)))
        assert steps == [("100m", "100m", None), ("300m", "100m", ""), ("300m", "300m", None)]

    @pytest.mark.parametrize(
        ("cpu", "memory"), [("1m", "36254k"), ("7m", "60M"), ("123m", "61234567"), ("333m", "700M")]
    )
    def test_amounts_come_back_as_they_were_written(self, pods: RealPods, cpu: str, memory: str) -> None:
        pods.create("web", SMALL)
        pods.resize("web", {"cpu": cpu, "memory": memory})
        pod = pods.until("web", is_resized, "is resized")
        assert applied(pod)["requests"] == {"cpu": cpu, "memory": memory}

    def test_more_than_a_node_has_is_refused_by_the_api_server(
        self, node_cluster: ControlPlane, pods: RealPods
    ) -> None:
        pods.create("web", SMALL)
        error = await_error(lambda: pods.resize("web", {"cpu": "64"}))
        assert error.status == 403
        assert "node didn't have enough allocatable resources: cpu, requested: 64000" in error.message


class TestMemoryLimit:
    def test_a_limit_below_usage_blocks_all_else_until_it_is_put_back(self, pods: RealPods) -> None:
        pods.use("web", 20, 60)
        pods.create("web", SMALL, TWICE)
        wait_for(lambda: pods.cgroup("web").usage > 60 * MIB, 30, "its memory is used")
        pods.resize("web", {"memory": "30Mi"}, {"memory": "40Mi"})
        pod = pods.until("web", lambda one: (in_progress(one) or {}).get("reason") == "Error", "is refused")
        message = (in_progress(pod) or {})["message"]
        assert "cannot decrease memory limits" in message
        assert f"({40 * MIB}) below current usage (" in message
        assert pods.cgroup("web").limit == 128 * MIB

        pods.resize("web", {"cpu": "250m"}, {"cpu": "500m"})
        pods.until(
            "web", lambda one: status(one)["allocatedResources"]["cpu"] == "250m", "has more allocated"
        )
        time.sleep(3)
        assert pods.cgroup("web").quota == 20000
        assert applied(pods.get("web"))["limits"]["cpu"] == "200m"

        pods.resize("web", {"memory": "64Mi"}, {"memory": "128Mi"})
        pods.until("web", is_resized, "is resized")
        assert (pods.cgroup("web").quota, pods.cgroup("web").limit) == (50000, 128 * MIB)


class TestOutOfMemory:
    def test_it_backs_off_and_a_larger_limit_ends_that(self, pods: RealPods) -> None:
        pods.use("web", 10, 20)
        pods.create("web", {"cpu": "50m", "memory": "32Mi"}, {"memory": "64Mi"})
        pods.use("web", 10, 100)
        killed = "has been killed twice"
        pod = pods.until("web", lambda one: status(one)["restartCount"] == 2 and is_killed(one), killed, 90)
        ended = status(pod)["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        assert not is_ready(pod)
        began = time.time()
        pods.resize("web", {"memory": "128Mi"}, {"memory": "256Mi"})
        pods.until("web", is_ready, "is ready")
        assert time.time() - began < 15, "the second back-off lasts for 20 s"
        assert pods.cgroup("web").limit == 256 * MIB


RESTARTS = [
    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
    {"resourceName": "memory", "restartPolicy": "RestartContainer"},
]


class TestRestartContainer:
    def test_memory_restarts_the_container_and_cpu_does_not(self, pods: RealPods) -> None:
        first = status(pods.create("web", SMALL, TWICE, resizePolicy=RESTARTS))["containerID"]
        pods.resize("web", {"cpu": "150m"}, {"cpu": "300m"})
        assert status(pods.until("web", is_resized, "is resized"))["containerID"] == first
        pods.resize("web", {"memory": "80Mi"}, {"memory": "160Mi"})
        pod = pods.until(
            "web", lambda one: is_resized(one) and status(one)["restartCount"] == 1, "is restarted"
        )
        assert status(pod)["containerID"] != first
        assert status(pod)["lastState"]["terminated"]["exitCode"] == 0

    def test_a_limit_below_usage_is_not_refused_there(self, pods: RealPods) -> None:
        pods.use("web", 10, 60)
        pods.create("web", SMALL, TWICE, resizePolicy=RESTARTS)
        wait_for(lambda: pods.cgroup("web").usage > 60 * MIB, 30, "its memory is used")
        pods.resize("web", {"memory": "30Mi"}, {"memory": "40Mi"})
        pod = pods.until(
            "web",
            lambda one: status(one).get("lastState", {}).get("terminated", {}).get("reason") == "OOMKilled",
            "is killed for memory",
        )
        assert (in_progress(pod) or {}).get("reason") != "Error"


class TestRoom:
    @pytest.fixture
    def free(self, node_cluster: ControlPlane) -> int:
        """Millicores of the empty node."""
        return allocatable(node_cluster)

    def test_a_resize_is_deferred_until_there_is_room(self, pods: RealPods, free: int) -> None:
        pods.create("web", {"cpu": "200m", "memory": "32Mi"})
        pods.create("other", {"cpu": f"{free - 400}m", "memory": "32Mi"})
        pods.resize("web", {"cpu": "600m"})
        pod = pods.until("web", lambda one: condition(one, PENDING), "is deferred")
        told = condition(pod, PENDING) or {}
        assert told["reason"] == "Deferred"
        assert told["message"].startswith("Node didn't have enough resource: cpu, requested: 600, used: ")
        assert status(pod)["allocatedResources"]["cpu"] == "200m"
        pods.resize("other", {"cpu": "100m"})
        pods.until("web", is_resized, "is resized")
        assert pods.cgroup("web").shares == 614

    def test_the_larger_priority_is_served_first(
        self, node_cluster: ControlPlane, pods: RealPods, free: int
    ) -> None:
        for name, value in (("low", 10), ("high", 1000)):
            node_cluster.api.apply(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": f"test-{name}"},
                    "value": value,
                }
            )
        small, other = {"cpu": "100m", "memory": "32Mi"}, free - 350
        pods.create("none", small)
        pods.create("low", small, priority="test-low")
        pods.create("high", small, priority="test-high")
        pods.create("other", {"cpu": f"{other}m", "memory": "32Mi"}, priority="test-high")
        for name in ("none", "low", "high"):
            pods.resize(name, {"cpu": "300m"})
            pods.until(name, lambda one: condition(one, PENDING), "is deferred")
        for turn, name in enumerate(("high", "low", "none"), 1):
            pods.resize("other", {"cpu": f"{other - 200 * turn}m"})
            pods.until(name, is_resized, "is resized")
            waiting = [one for one in ("high", "low", "none") if not is_resized(pods.get(one))]
            assert waiting == ["high", "low", "none"][turn:]


def test_metrics_come_late_and_a_refusal_names_the_usage_of_the_whole_cgroup(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    """The first metrics are those of a sample that the kubelet takes 10 to 20 s later, and show also what is used
    beyond the request. Until then a refusal names a usage of 0. It names the pod's usage for each container."""
    pods.use("web", 200, 60)
    pods.create("web", {"cpu": "50m", "memory": "64Mi"}, {"memory": "128Mi"})
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{pods.namespace}/pods"
    assert node_cluster.api.raw("GET", path)["items"] == []

    def used() -> int:
        usage = node_cluster.api.raw("GET", path)["items"][0]["containers"][0]["usage"]["cpu"]
        return int(usage.removesuffix("n")) // 1_000_000 if usage.endswith("n") else milli(usage)

    wait_for(lambda: used() > 100, 90, "its use is shown")
    pods.resize("web", {"memory": "30Mi"}, {"memory": "40Mi"})

    def told() -> list[int]:
        """The usage of the pod, and that of the container."""
        message = (in_progress(pods.get("web")) or {}).get("message", "")
        return [int(one) for one in re.findall(r"below current usage \((\d+)\)", message)]

    wait_for(lambda: len(told()) == 2, 60, "both limits are refused")
    assert told()[0] == told()[1] == pytest.approx(pods.cgroup("web", of_pod=True).usage, rel=0.1)
