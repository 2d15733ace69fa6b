"""More CPU for the start of pods (`spec.startupBoost`), with real controllers and the scheduler: what a boost would
keep from running is created, and runs, without it."""

from __future__ import annotations

import pytest

from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import START_UP_ANNOTATION
from localcluster.workloads import samples
from localcluster.workloads.load import await_pods, is_ready
from localcluster.workloads.real_pods import Versions, asked
from tests.e2e.full import objects, recommended
from tests.e2e.full.creation import created_now

pytestmark = [pytest.mark.owned_cluster, pytest.mark.usefixtures("operator")]
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
TIMEOUT = 60
START_UP = 4
"""Seconds until a new pod is ready."""
SIZE, BOOSTED = {"cpu": "200m", "memory": "128Mi"}, {"cpu": "600m", "memory": "128Mi"}


def start(api: KubeApi, namespace: str, cpu: str = "600m") -> None:
    """A Deployment with a ready pod, and an Hvpa that is in charge of it and boosts further pods."""
    annotations = {START_UP_ANNOTATION: f"{START_UP}s"}
    api.create(samples.deployment("web", namespace, annotations=annotations))
    recommended.vpa(api, namespace, "web", WEB)
    recommended.recommend_target(api, namespace, "web", cpu="200m")
    await_pods(api, namespace, "web")
    api.create(
        objects.hvpa(
            "web",
            namespace,
            hpa={"deploy": False},
            vpa={"name": "web"},
            updateStrategy={"type": "InPlace"},
            startupBoost=[{"container": "app", "cpu": {"value": cpu}}],
        )
    )
    wait_for(lambda: entry(api, namespace) == f"web; app {cpu}: :", TIMEOUT, "an entry")
    wait_for(lambda: is_in_force(api, namespace, cpu), TIMEOUT, "new pods with the entry")


def is_in_force(api: KubeApi, namespace: str, cpu: str) -> bool:
    """Whether the entry would apply to a new pod now."""
    try:
        created = created_now(api, namespace, "web")
    except ApiError as error:
        return "exceeded quota" in str(error)  # it has room for a pod without a boost
    return bool(asked(created)["requests"]["cpu"] == cpu)


def entry(api: KubeApi, namespace: str) -> str:
    """The size with which new pods are created."""
    sizes = api.find("HvpaSizes", "hvpa", namespace)
    return "" if sizes is None else str(sizes["sizes"].get("Deployment.apps/web", ""))


def reported(api: KubeApi, namespace: str) -> tuple[str, str]:
    """How many pods have their size, and why others don't, by the status."""
    progress = api.get("Hvpa", "web", namespace)["status"]["actuation"]
    return progress["resized"], progress.get("message", "")


def scale(api: KubeApi, namespace: str, replicas: int) -> None:
    api.patch("Deployment", "web", namespace, {"spec": {"replicas": replicas}})


def pods(api: KubeApi, namespace: str) -> list[Json]:
    return api.list("Pod", namespace, "app=web")


def all_have_their_size(api: KubeApi, namespace: str, replicas: int) -> bool:
    listed = pods(api, namespace)
    return len(listed) == replicas and all(is_ready(pod) and asked(pod)["requests"] == SIZE for pod in listed)


def test_a_new_pod_has_the_boost_until_it_is_ready(cluster: ControlPlane, namespace: str) -> None:
    api = cluster.api
    start(api, namespace)
    with Versions(cluster.kubeconfig, namespace) as seen:
        scale(api, namespace, 2)
        wait_for(lambda: all_have_their_size(api, namespace, 2), TIMEOUT, "two pods of their size")
        new = max(pods(api, namespace), key=lambda pod: pod["metadata"]["creationTimestamp"])
        versions = [pod for _, pod in seen.of(new["metadata"]["name"])]
    requests = [(is_ready(pod), asked(pod)["requests"]["cpu"]) for pod in versions]
    assert [cpu for ready, cpu in requests if not ready] == ["600m"] * sum(not ready for ready, _ in requests)
    assert new["metadata"]["generation"] == 2  # one resize
    wait_for(lambda: reported(api, namespace) == ("2/2", ""), TIMEOUT, "the status")


def test_a_pod_that_no_node_takes_with_the_boost_runs_without_it(
    cluster: ControlPlane, namespace: str
) -> None:
    """A simulated node has 64 cores."""
    api = cluster.api
    start(api, namespace, "65")
    scale(api, namespace, 3)
    wait_for(lambda: all_have_their_size(api, namespace, 3), TIMEOUT, "three pods of their size")


def test_a_quota_that_refuses_the_boost_does_not_keep_pods_from_being_created(
    cluster: ControlPlane, namespace: str
) -> None:
    api = cluster.api
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": namespace}}
    api.create({**quota, "spec": {"hard": {"requests.cpu": "700m"}}})
    start(api, namespace)
    wait_for(lambda: api.get("ResourceQuota", "q", namespace).get("status", {}).get("used"), TIMEOUT, "usage")
    scale(api, namespace, 3)
    wait_for(lambda: all_have_their_size(api, namespace, 3), TIMEOUT, "three pods of their size")
