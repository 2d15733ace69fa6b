"""The kubelet's part in resizes, as KWOK simulates it (`localcluster/controlplane/kubelet.yaml`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import MEMORY_ANNOTATION

pytestmark = pytest.mark.owned_cluster
DELAY, BEHAVIOUR = "hvpa.test/resize-delay", "hvpa.test/resize"
ENFORCED = {"hvpa.test/memory-limit": "Enforced"}
SMALL = {"cpu": "200m", "memory": "128Mi"}
LARGE = {"cpu": "500m", "memory": "128Mi"}


class OnNode:
    """A pod on one of KWOK's nodes."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        annotations: dict[str, str],
        container: Json | None = None,
        name: str = "pod",
    ) -> None:
        self.name = name
        self.api: KubeApi = cluster.api
        self.namespace = namespace
        resources = {"requests": SMALL, "limits": {"memory": "256Mi"}}
        spec = {"containers": [{"name": "app", "image": "app", "resources": resources, **(container or {})}]}
        metadata = {"name": name, "namespace": namespace, "annotations": annotations}
        self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        self.soon(lambda: self.has() == SMALL, "runs")

    def get(self) -> Json:
        return self.api.get("Pod", self.name, self.namespace)

    def status(self) -> Json:
        """The status of the only container."""
        (found,) = self.get()["status"].get("containerStatuses", [{}])
        return dict(found)

    def has(self) -> Json:
        return dict(self.status().get("resources", {}).get("requests", {}))

    def pending(self) -> tuple[str, int]:
        """The reason of the condition PodResizePending, and the generation that it is about."""
        found = [one for one in self.get()["status"]["conditions"] if one["type"] == "PodResizePending"]
        return (found[0]["reason"], found[0]["observedGeneration"]) if found else ("", 0)

    def annotate(self, **annotations: str | None) -> None:
        keys = {"behaviour": BEHAVIOUR, "memory": MEMORY_ANNOTATION}
        named = {keys[name]: value for name, value in annotations.items()}
        self.api.patch("Pod", self.name, self.namespace, {"metadata": {"annotations": named}})

    def resize(self, requests: Json, limits: Json | None = None) -> None:
        resources = {"requests": requests, "limits": limits or {}}
        body = {"spec": {"containers": [{"name": "app", "resources": resources}]}}
        self.api.patch("Pod", self.name, self.namespace, body, type="strategic", subresource="resize")

    def soon(self, holds: Callable[[], bool], what: str) -> None:
        wait_for(holds, 30, lambda: f"the pod {what}: {self.get()['status']}")


def test_a_resize_is_applied_after_its_delay_and_restarts_nothing(cluster: Cluster, namespace: str) -> None:
    pod = OnNode(cluster, namespace, {DELAY: "3s"})
    before = pod.status()
    pod.resize(LARGE)
    assert pod.has() == SMALL
    pod.soon(lambda: pod.has() == LARGE, "is resized")
    assert pod.status() == before | {"resources": pod.get()["spec"]["containers"][0]["resources"]}


def test_a_container_restarts_whose_policy_says_so_for_this_resource(
    cluster: Cluster, namespace: str
) -> None:
    policy = [
        {"resourceName": "cpu", "restartPolicy": "NotRequired"},
        {"resourceName": "memory", "restartPolicy": "RestartContainer"},
    ]
    pod = OnNode(cluster, namespace, {}, {"resizePolicy": policy})
    pod.resize(LARGE)
    pod.soon(lambda: pod.has() == LARGE, "is resized")
    assert pod.status()["restartCount"] == 0
    more = {"cpu": "500m", "memory": "192Mi"}
    pod.resize(more)
    pod.soon(lambda: pod.has() == more, "is resized")
    assert pod.status()["restartCount"] == 1


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_a_resize_that_waits_is_reported_until_it_is_done(
    cluster: Cluster, namespace: str, reason: str
) -> None:
    pod = OnNode(cluster, namespace, {BEHAVIOUR: reason})
    pod.resize(LARGE)
    pod.soon(lambda: pod.pending() == (reason, pod.get()["metadata"]["generation"]), "is reported")
    pod.resize({"cpu": "600m"})
    pod.soon(lambda: pod.pending() == (reason, pod.get()["metadata"]["generation"]), "is reported again")
    assert pod.has() == SMALL
    pod.annotate(behaviour=None)
    pod.soon(lambda: pod.has()["cpu"] == "600m", "is resized")
    assert pod.pending() == ("", 0)


def test_a_kubelet_can_be_silent(cluster: Cluster, namespace: str) -> None:
    pod = OnNode(cluster, namespace, {BEHAVIOUR: "Silent"})
    quick = OnNode(cluster, namespace, {}, name="quick")
    pod.resize(LARGE)
    quick.resize(LARGE)
    quick.soon(lambda: quick.has() == LARGE, "is resized")
    assert (pod.has(), pod.pending()) == (SMALL, ("", 0))


def test_what_uses_more_than_its_limit_is_ended_until_it_does_not(cluster: Cluster, namespace: str) -> None:
    pod = OnNode(cluster, namespace, {MEMORY_ANNOTATION: "200Mi", **ENFORCED})
    pod.annotate(memory="268435456")  # as much as the limit
    pod.annotate(memory="300M")
    pod.soon(lambda: pod.status()["restartCount"] > 0, "ran out of memory")
    ended = pod.status()["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
    pod.resize({}, {"memory": "512Mi"})
    pod.soon(lambda: pod.status()["resources"]["limits"]["memory"] == "512Mi", "has a higher limit")
    assert pod.status()["lastState"]["terminated"]["reason"] == "OOMKilled"
    count = pod.status()["restartCount"]
    pod.annotate(memory="250Mi")
    other = OnNode(cluster, namespace, ENFORCED, name="other")
    other.annotate(memory="300Mi")
    other.soon(lambda: other.status()["restartCount"] > 0, "ran out of memory")
    assert pod.status()["restartCount"] == count
