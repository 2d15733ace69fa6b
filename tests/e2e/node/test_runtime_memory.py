"""A real JVM with `spec.runtimes`: its CPU changes in place, and other memory comes with another pod, whose heap is
larger."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_operator_rbac
from localcluster.workloads import runtimes
from localcluster.workloads.load import await_pods
from localcluster.workloads.pods import MIB
from localcluster.workloads.real_pods import RealPods, asked, status
from tests.e2e.full import recommended

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]
NAME: Final = "web"
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}
REQUESTS: Final = {"cpu": "300m", "memory": "192Mi"}
LIMITS: Final = {"cpu": "600m", "memory": "384Mi"}
TIMEOUT: Final = 180
PERCENT: Final = 75
PAGE: Final = Path(__file__).parents[3] / "docs/runtimes.md"


@pytest.fixture(scope="module")
def node_cluster(runtimes_cluster: ControlPlane) -> ControlPlane:
    return runtimes_cluster


@pytest.mark.parametrize("strategy", ["InPlaceOrRollout", "InPlace"])
def test_cpu_changes_in_place_and_memory_with_another_pod(
    node_cluster: ControlPlane, pods: RealPods, strategy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """384Mi become 768Mi, and 75 percent of them are heap."""
    api, namespace = pods.api, pods.namespace
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    recommended.vpa(api, namespace, NAME, TARGET)
    recommended.recommend_target(api, namespace, NAME, cpu="600m", memory="384Mi")
    jvm = runtimes.java(pods, f"-XX:MaxRAMPercentage={PERCENT}")
    pods.deploy(NAME, REQUESTS, LIMITS, **jvm)
    await_pods(api, namespace, NAME)
    first = pods.only_pod(NAME)
    before = heap(pods.get(first))
    with Operator(node_cluster, kubeconfig):
        hvpa = shown()
        hvpa["metadata"]["namespace"] = namespace
        hvpa["spec"]["updateStrategy"]["type"] = strategy
        api.create(hvpa)
        if strategy == "InPlace":
            wait_for(lambda: pods.in_force(first).cpu == 1200, TIMEOUT, "more CPU in place")
            grown = pods.get(first)
            assert status(grown)["restartCount"] == 0
            assert memory(grown) == {"requests": "192Mi", "limits": "384Mi"}
            assert heap(grown) == before
            wait_for(
                lambda: "reads its memory when it starts" in message_of(api, namespace), TIMEOUT, "the reason"
            )
            wait_for(lambda: api.find("HvpaSizes", "hvpa", namespace), TIMEOUT, "an entry for new pods")
            api.delete("Pod", first, namespace)
        wait_for(lambda: [others(pods, first)] != [[]] and ready(pods, first), TIMEOUT, "another pod")
        after = heap(others(pods, first)[0])
        spec = api.get("Deployment", NAME, namespace)["spec"]["template"]["spec"]
        assert "replacing" not in api.get("Hvpa", NAME, namespace)["status"]
    api.delete("Hvpa", NAME, namespace)
    with capsys.disabled():
        print(f"\n{strategy}: largest heap {before / MIB:.0f} MiB before, {after / MIB:.0f} MiB after")
    assert after / before == pytest.approx(2, rel=0.05)
    is_written = spec["containers"][0]["resources"]["requests"]["memory"] != "192Mi"
    assert is_written == (strategy == "InPlaceOrRollout")


def shown() -> Json:
    """The manifest of the page."""
    (manifest,) = re.findall(r"```yaml\n(apiVersion: .*?)```", PAGE.read_text(), re.DOTALL)
    document: Json = yaml.safe_load(manifest)
    return document


def message_of(api: KubeApi, namespace: str) -> str:
    """What the Hvpa says about pods without their size."""
    return str(api.get("Hvpa", NAME, namespace)["status"]["actuation"].get("message", ""))


def heap(pod: Json) -> float:
    """The largest heap of the JVM in bytes."""
    return float(runtimes.limits(pod)["memory"])


def memory(pod: Json) -> Json:
    return {section: amounts["memory"] for section, amounts in asked(pod).items()}


def others(pods: RealPods, first: str) -> list[Json]:
    found = pods.api.list("Pod", pods.namespace, f"app={NAME}")
    living = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return [pod for pod in living if pod["metadata"]["name"] != first]


def ready(pods: RealPods, first: str) -> bool:
    return all(status(pod)["ready"] for pod in others(pods, first))
