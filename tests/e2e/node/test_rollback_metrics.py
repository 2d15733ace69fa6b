"""A size that makes a real service slow is taken back, by the latency that its clients measure."""

from __future__ import annotations

import math
import string
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.metrics_adapter import MetricsAdapter
from localcluster.node.config import IMAGE
from localcluster.operator.operator import Operator, install_operator_rbac, install_rollback_metrics
from localcluster.process import free_port
from localcluster.programs.build import build_node
from localcluster.workloads.load import await_pods
from localcluster.workloads.real_pods import RealPods
from localcluster.workloads.traffic import Traffic, together
from tests.e2e.full import objects, recommended

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]
WORKLOAD = Path(__file__).resolve().parents[3] / "demo/real/workload.yaml"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
RATE = 16.0
"""Requests per second, each of 5 ms of CPU: 40m for each of two pods."""
GOAL = 250
"""Milliseconds."""
SMALL = 20
"""Millicores of the size that is too small: with the limit of 40m, a request takes more than a period of 100 ms."""
SECONDS = 5
"""Over which the P99 is measured."""


def test_a_smaller_size_that_makes_requests_slow_is_rolled_back(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    api, namespace, port = pods.api, pods.namespace, free_port()
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    install_rollback_metrics(node_cluster)
    text = string.Template(WORKLOAD.read_text())
    api.create(yaml.safe_load(text.safe_substitute(NAMESPACE=namespace, IMAGE=IMAGE, PORT=port)))
    await_pods(api, namespace, "web")
    recommended.vpa(api, namespace, "web", WEB)
    traffic = Traffic(
        api, namespace, "app=web", port, build_node()["traffic"], node_cluster.folder, lambda: RATE
    )
    with MetricsAdapter(node_cluster) as adapter, Operator(node_cluster, kubeconfig), traffic:

        def p99() -> float:
            seconds = sorted(traffic.answers().items())[-SECONDS - 1 : -1]
            measured = together([answers for _, answers in seconds]).percentile(99)
            value = 0.0 if measured is None else measured
            adapter.external[(namespace, "p99")] = [({}, 10**6 if math.isinf(value) else round(value))]
            return value

        time.sleep(2 * SECONDS)
        assert p99() < GOAL
        api.create(objects.hvpa("web", namespace, **_spec()))
        recommended.recommend_target(api, namespace, "web", cpu="100m")
        wait_for(lambda: p99() < GOAL and _has_values(api, namespace), 60, "the P99 is good")
        recommended.recommend_target(api, namespace, "web", cpu=f"{SMALL}m")
        wait_for(lambda: p99() >= 0 and _cpu(api, namespace) == [SMALL, 100], 60, "a pod has less CPU")
        wait_for(lambda: p99() > GOAL, 60, "requests are slow")
        wait_for(lambda: p99() >= 0 and "rolledBack" in _status(api, namespace), 60, "HVPA takes it back")
        assert _status(api, namespace)["rolledBack"]["message"].startswith("External p99 is ")
        wait_for(lambda: _cpu(api, namespace) == [100, 100], 60, "both pods have the size before")
        wait_for(lambda: p99() < GOAL, 60, "requests are fast again")
    api.delete("Hvpa", "web", namespace)


def _spec() -> Json:
    any_change = {"minChange": {"cpu": {"value": "1m"}}}
    canary = {
        "duration": "10m",
        "rollbackOnMetrics": [{"external": {"metric": {"name": "p99"}}, "above": str(GOAL)}],
    }
    down = {**any_change, "stabilizationDuration": "0s", "minHistory": "0s"}
    return {
        "hpa": {"deploy": False},
        "vpa": {"name": "web", "scaleUp": any_change, "scaleDown": down},
        "weightBasedScalingIntervals": [{"vpaWeight": 100}],
        "updateStrategy": {"type": "InPlace", "canary": canary},
    }


def _status(api: KubeApi, namespace: str) -> Json:
    status: Json = api.get("Hvpa", "web", namespace).get("status", {})
    return status


def _has_values(api: KubeApi, namespace: str) -> bool:
    """The operator reads metrics as soon as it has seen the Hvpa."""
    return any(entry["type"] == "Ready" for entry in _status(api, namespace).get("conditions", ()))


def _cpu(api: KubeApi, namespace: str) -> Sequence[int]:
    """The CPU requests of the pods, in millicores."""
    listed = api.list("Pod", namespace, "app=web")
    return sorted(parse_cpu(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in listed)
