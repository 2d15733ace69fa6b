"""The fast signal on a real node: the operator polls the kubelet with the token of an account that may only read
metrics, and raises running containers before the VPA has measured their load; what it lacks, a condition says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.client.pki import Authority
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_fast_signal, install_operator_rbac
from localcluster.process import free_port
from localcluster.workloads.real_pods import RealPods
from tests.e2e.full import objects
from tests.e2e.node.in_place import start

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]
RESOURCES = {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {}}


@pytest.fixture(autouse=True)
def without_hvpa(pods: RealPods) -> Iterator[None]:
    """No other test's operator polls a kubelet for what is left of these."""
    yield
    pods.api.delete("Hvpa", "web", pods.namespace)


def await_condition(pods: RealPods, status: str, reason: str, name: str = "web") -> str:
    """Wait until the Hvpa's `FastSignal` has this status and reason; returns its message."""

    def found() -> bool:
        return objects.conditions(pods.api, name, pods.namespace).get("FastSignal") == (status, reason)

    wait_for(found, 60, f"FastSignal is {status} {reason}")
    conditions: list[Json] = pods.api.get("Hvpa", name, pods.namespace)["status"]["conditions"]
    return str(next(entry["message"] for entry in conditions if entry["type"] == "FastSignal"))


def shown(pods: RealPods) -> Json:
    """The Hvpa's `status.fastSignal`."""
    status: Json = pods.api.get("Hvpa", "web", pods.namespace)["status"].get("fastSignal", {})
    return status


def test_containers_grow_for_load_that_nothing_else_has_measured(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    """metrics-server has ended when the load comes."""
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    pods.use("web", 100, 20)
    with Operator(node_cluster, kubeconfig, *install_fast_signal(node_cluster)) as operator:
        start(pods, "web", RESOURCES, fastSignal={"mode": "Raise"})
        name = pods.only_pod("web")
        wait_for(
            lambda: objects.conditions(pods.api, "web", pods.namespace).get("VpaActive", ("",))[0] == "True",
            90,
            "the VPA recommends",
        )
        await_condition(pods, "True", "Reporting")
        before = pods.cgroup(name).shares
        with node_cluster.stopped("metrics-server"):
            pods.use("web", 800, 20)
            wait_for(lambda: pods.cgroup(name).shares > 2 * before, 90, "it has more than twice as much CPU")
        assert operator.metric("hvpa_fast_raises_total") >= 1
        assert (operator.metric("hvpa_kubelets_polled"), operator.metric("hvpa_kubelets_silent")) == (1, 0)
        wait_for(lambda: "samplingSeconds" in shown(pods), 180, "how often the kubelet samples is known")
    assert "the kubelets report" in operator.log.read_text()
    signal = shown(pods)
    assert (signal["source"], signal["nodes"], signal.get("silent", 0)) == ("/metrics/resource", 1, 0)
    assert 10 <= signal["samplingSeconds"] <= 20


def test_what_is_missing_is_named(node_cluster: ControlPlane, pods: RealPods, tmp_path: Path) -> None:
    """In turn: the port, and the trust. (A missing right would be a denied request, which no test may leave.)"""
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    flags = install_fast_signal(node_cluster)
    other = Authority(tmp_path / "other").certificate
    cases = {
        "no connection to port": (*flags[2:], "--kubelet-port", str(free_port())),
        "its certificate is not trusted": (*flags, "--kubelet-certificate-authority", str(other)),
    }
    pods.use("web", 20, 20)
    start(pods, "web", RESOURCES, fastSignal={"mode": "Raise"})
    for text, arguments in cases.items():
        with Operator(node_cluster, kubeconfig, *arguments):
            wait_for(
                lambda text=text: text in await_condition(pods, "False", "KubeletsSilent"),  # type: ignore[misc]
                60,
                text,
            )
    with Operator(node_cluster, kubeconfig, *flags):
        await_condition(pods, "True", "Reporting")
