"""Metrics that are neither CPU nor memory, through a metrics adapter and the real HPA controller: Object and Pods
metrics of an Hvpa's own HPA, and External ones of the HPA that KEDA points at an Hvpa (docs/keda.md)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.api.values.quantity import parse_memory
from localcluster.client.api import ApiError, Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.metrics_adapter import MetricsAdapter
from localcluster.operator.operator import Operator, install_rollback_metrics
from localcluster.programs.build import keda_crd
from localcluster.workloads.load import await_pods
from tests.e2e.full import objects, recommended
from tests.e2e.full.keda import METRIC, OWNER_LABEL, Keda
from tests.e2e.full.objects import HPA_CONTROLLER, OPERATOR_USER

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 120
PAGE = Path(__file__).resolve().parents[3] / "docs/keda.md"
(MANIFEST,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


@pytest.fixture(scope="module")
def adapter(cluster: ControlPlane) -> Iterator[MetricsAdapter]:
    with MetricsAdapter(cluster) as running:
        yield running


def of_object(target: Json) -> Json:
    described = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": "hits"}, "target": target},
    }


def of_pods(target: Json) -> Json:
    return {"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": target}}


@pytest.mark.parametrize("metric", [of_object, of_pods], ids=["Object", "Pods"])
def test_an_hvpa_follows_a_custom_metric(
    cluster: ControlPlane, operator: Operator, namespace: str, adapter: MetricsAdapter, metric: Any
) -> None:
    def hits(total: int) -> None:
        adapter.objects[(namespace, "services/web", "hits")] = adapter.pods[(namespace, "hits")] = total

    api = cluster.api
    hits(100)
    api.create(objects.deployment("web", namespace))
    hpa = objects.horizontal()
    hpa["template"]["spec"]["metrics"] = [metric({"type": "AverageValue", "averageValue": "50"})]
    api.create(objects.hvpa("web", namespace, hpa=hpa))
    await_pods(api, namespace, "web")
    hits(250)
    wait_for(lambda: objects.replicas(api, "web", namespace) == 5, TIMEOUT, "250 hits take 5 pods of 50")
    hits(100)
    wait_for(lambda: objects.replicas(api, "web", namespace) == 2, TIMEOUT, "100 hits take 2")


def test_keda_scales_an_hvpa_to_zero_and_back(
    cluster: ControlPlane, operator: Operator, namespace: str, adapter: MetricsAdapter
) -> None:
    api = cluster.api
    cluster.apply_all([yaml.safe_load(keda_crd().read_text())])
    scaled_object, hvpa = yaml.safe_load_all(MANIFEST)
    hvpa["spec"]["vpa"] = {"name": "web"}
    hvpa["spec"]["hpa"]["scaleDown"]["stabilizationDuration"] = "1s"

    def queue(length: int) -> None:
        adapter.external[(namespace, METRIC)] = [
            ({OWNER_LABEL: "web"}, length),
            ({OWNER_LABEL: "other"}, 999),
        ]

    def replicas() -> int:
        return objects.replicas(api, "web", namespace)

    queue(10)
    api.create(objects.deployment("web", namespace))
    recommended.vpa(api, namespace, "web", WEB)
    recommended.recommend(api, namespace, "web", 128)
    await_pods(api, namespace, "web")
    for manifest in (hvpa, scaled_object):
        manifest["metadata"]["namespace"] = namespace
    api.create(hvpa)
    keda = Keda(api, api.create(scaled_object))
    wait_for(lambda: _is_readable(keda), TIMEOUT, "KEDA can read the scale before there is an HPA")
    assert keda.scale()["spec"]["replicas"] == 2
    keda.create_hpa()
    wait_for(lambda: _reason(cluster, namespace) == "Recommending", TIMEOUT, "the HPA is used")

    queue(30)
    wait_for(lambda: replicas() > 2, TIMEOUT, "30 messages call for more than 2 pods")
    assert _first_step(cluster, namespace) == 4  # half of the way from 2 to 6
    queue(5)
    wait_for(lambda: replicas() < 4, TIMEOUT, "and 5 for fewer")
    queue(0)
    time.sleep(3)  # HPA periods: without KEDA's own write, one pod stays
    assert replicas() >= 1

    keda.look(active=False)
    wait_for(lambda: replicas() == 0, TIMEOUT, "KEDA scales to 0")
    wait_for(lambda: not api.list("Pod", namespace, "app=web"), TIMEOUT, "no pod is left")
    wait_for(lambda: _reason(cluster, namespace) == "NoPods", TIMEOUT, "the Hvpa says so")
    time.sleep(5)  # more than two HPA periods: no controller takes it back
    assert (replicas(), keda.scale()["spec"].get("replicas", 0)) == (0, 0)
    assert objects.conditions(api, "web", namespace)["Ready"] == ("True", "Reconciled")

    queue(30)
    keda.look(active=True)
    wait_for(lambda: replicas() >= 4, TIMEOUT, "KEDA takes it from 0, and the HPA out")
    written = cluster.audit.writers("deployments", "web", namespace)
    assert written[OPERATOR_USER] >= 4
    assert written[HPA_CONTROLLER] == 0


@pytest.mark.parametrize("blend", ["Additive", "Trajectory"])
def test_an_own_hpa_scales_to_zero_and_back_and_pods_wake_up_with_the_usual_size(
    cluster: ControlPlane, operator: Operator, namespace: str, adapter: MetricsAdapter, blend: str
) -> None:
    """minReplicas 0 with an External metric, which the API server and the HPA controller of 1.37 take."""

    def queue(length: int) -> None:
        adapter.external[(namespace, METRIC)] = [({}, length)]

    def replicas() -> int:
        return objects.replicas(api, "web", namespace)

    api = cluster.api
    queue(10)
    api.create(objects.deployment("web", namespace))
    recommended.vpa(api, namespace, "web", WEB)
    recommended.recommend(api, namespace, "web", 128)
    await_pods(api, namespace, "web")
    # With Trajectory, the HPA waits as long, by its own window.
    hpa = objects.horizontal(scaleDown={"stabilizationDuration": "1s"})
    target = {"type": "AverageValue", "averageValue": "5"}
    metrics = [{"type": "External", "external": {"metric": {"name": METRIC}, "target": target}}]
    hpa["template"]["spec"] |= {"minReplicas": 0, "metrics": metrics}
    spec = {"vpa": {"name": "web"}, "blend": blend, "updateStrategy": {"type": "Rollout"}}
    weights = [{"vpaWeight": 30}]
    api.create(objects.hvpa("web", namespace, hpa=hpa, weightBasedScalingIntervals=weights, **spec))
    wait_for(lambda: _reason(cluster, namespace) == "Recommending", TIMEOUT, "the HPA is used")

    queue(0)
    wait_for(lambda: replicas() == 0, TIMEOUT, "the HPA scales to 0")
    wait_for(lambda: not api.list("Pod", namespace, "app=web"), TIMEOUT, "no pod is left")
    wait_for(lambda: _reason(cluster, namespace) == "NoPods", TIMEOUT, "the Hvpa says so")
    assert objects.conditions(api, "web", namespace)["Ready"] == ("True", "Reconciled")
    recommended.recommend(api, namespace, "web", 512)
    time.sleep(5)  # more than two HPA periods: no controller takes it back
    assert (replicas(), api.get("Hvpa", "web", namespace)["spec"]["replicas"]) == (0, 0)

    before = len(_writes(cluster, namespace))
    queue(15)
    wait_for(lambda: replicas() >= 3, TIMEOUT, "the HPA takes it from 0")
    woken = _writes(cluster, namespace)[before]
    assert woken["replicas"] >= 1
    (container,) = woken["template"]["spec"]["containers"]
    assert parse_memory(container["resources"]["requests"]["memory"]) >= 512 * 2**20
    assert cluster.audit.writers("deployments", "web", namespace)[HPA_CONTROLLER] == 0


@pytest.mark.parametrize("strategy", ["InPlace", "Rollout"])
def test_rollback_metrics_take_a_size_back_on_the_first_pods(
    cluster: ControlPlane, operator: Operator, namespace: str, adapter: MetricsAdapter, strategy: str
) -> None:
    """The P99 is good before the trial, and bad once the first pod has the smaller size. Errors stay good."""
    api = cluster.api
    install_rollback_metrics(cluster)
    adapter.external[(namespace, "p99")] = [({"service": "web"}, 1), ({"service": "other"}, 9)]
    adapter.objects[(namespace, "deployments.apps/web", "errors")] = 0
    p99 = {"name": "p99", "selector": {"matchLabels": {"service": "web"}}}
    canary = {
        "duration": "10m",
        "rollbackOnMetrics": [
            {"external": {"metric": p99}, "above": "2"},
            {"object": {"metric": {"name": "errors"}, "describedObject": WEB}, "above": "0"},
        ],
    }
    api.create(objects.deployment("web", namespace))
    recommended.vpa(api, namespace, "web", WEB)
    at_once = {"minChange": {"memory": {"value": "1"}}, "stabilizationDuration": "0s", "minHistory": "0s"}
    vpa = {"name": "web", "scaleUp": {"minChange": at_once["minChange"]}, "scaleDown": at_once}
    spec = {"hpa": {"deploy": False}, "vpa": vpa, "updateStrategy": {"type": strategy, "canary": canary}}
    spec["weightBasedScalingIntervals"] = [{"vpaWeight": 100}]
    await_pods(api, namespace, "web")
    before = _memory_of_pods(api, namespace)
    api.create(objects.hvpa("web", namespace, **spec))
    recommended.recommend(api, namespace, "web", 32)

    def has_smaller() -> bool:
        return min(_memory_of_pods(api, namespace)) < before[0]

    wait_for(has_smaller, TIMEOUT, "the first pods have the smaller size")
    wait_for(lambda: _values(api, namespace) == ["1", "0"], TIMEOUT, "both metrics are read")
    adapter.external[(namespace, "p99")] = [({"service": "web"}, 3)]
    wait_for(lambda: _rolled_back(api, namespace), TIMEOUT, "the size is taken back")
    assert _rolled_back(api, namespace)["message"] == "External p99{service=web} is 3, above 2"
    wait_for(lambda: _memory_of_pods(api, namespace) == before, TIMEOUT, "all pods have the size before")
    assert _values(api, namespace) == []


def _memory_of_pods(api: KubeApi, namespace: str) -> list[int]:
    """The memory requests of the pods that are not about to end, in bytes."""
    pods = [
        pod for pod in api.list("Pod", namespace, "app=web") if "deletionTimestamp" not in pod["metadata"]
    ]
    return sorted(
        parse_memory(pod["spec"]["containers"][0]["resources"]["requests"]["memory"]) for pod in pods
    )


def _values(api: KubeApi, namespace: str) -> list[str]:
    status = api.get("Hvpa", "web", namespace).get("status", {})
    return [metric.get("value", "") for metric in status.get("canaryMetrics", [])]


def _rolled_back(api: KubeApi, namespace: str) -> Json:
    record: Json = api.get("Hvpa", "web", namespace).get("status", {}).get("rolledBack", {})
    return record


def _is_readable(keda: Keda) -> bool:
    try:
        return bool(keda.scale()["spec"]["replicas"] > 0)
    except ApiError:  # 500: there is no spec.replicas yet
        return False


def _reason(cluster: ControlPlane, namespace: str) -> str:
    return objects.conditions(cluster.api, "web", namespace).get("HpaActive", ("", ""))[1]


def _writes(cluster: ControlPlane, namespace: str) -> list[Json]:
    """The operator's writes into the specs of Deployments, in order."""
    found = cluster.audit.requests(
        writes=True, user=OPERATOR_USER, namespace=namespace, resource="deployments", code=200
    )
    return [request.body["spec"] for request in found if request.body.get("spec")]


def _first_step(cluster: ControlPlane, namespace: str) -> int:
    """The first count that the operator has set."""
    return next(int(spec["replicas"]) for spec in _writes(cluster, namespace) if "replicas" in spec)
