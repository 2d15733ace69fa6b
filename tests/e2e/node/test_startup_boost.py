"""A real process that needs CPU before it is ready gets more of it for its start (`spec.startupBoost`)."""

from __future__ import annotations

import copy
import string
import time
from pathlib import Path

import pytest
import yaml

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.node.config import IMAGE
from localcluster.operator.operator import Operator, install_operator_rbac
from localcluster.process import free_port
from localcluster.workloads.load import await_pods, is_ready
from localcluster.workloads.real_pods import RealPods, Versions, asked, condition
from tests.e2e.full import objects, recommended

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]
WORKLOAD = Path(__file__).resolve().parents[3] / "demo/real/workload.yaml"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
START = "-start=1s"
"""CPU time before the service answers: 5 s with a limit of 200m, 1 s with a limit of 1 core."""
NEVER = "-start=1h"
SIZE = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
BOOSTED = {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
TIMEOUT = 90


def test_a_service_starts_faster_and_then_has_its_size(node_cluster: ControlPlane, pods: RealPods) -> None:
    api, namespace = pods.api, pods.namespace
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    text = string.Template(WORKLOAD.read_text())
    target = yaml.safe_load(text.safe_substitute(NAMESPACE=namespace, IMAGE=IMAGE, PORT=free_port()))
    target["spec"] |= {"replicas": 1, "progressDeadlineSeconds": 600}
    (app,) = target["spec"]["template"]["spec"]["containers"]
    app["command"].append(START)
    with Versions(node_cluster.kubeconfig, namespace) as seen:
        api.create(target)
        await_pods(api, namespace, "web")
        recommended.vpa(api, namespace, "web", WEB)
        recommended.recommend_target(api, namespace, "web", cpu="100m")
        (first,) = api.list("Pod", namespace, "app=web")
        with Operator(node_cluster, kubeconfig):
            api.create(
                objects.hvpa(
                    "web",
                    namespace,
                    hpa={"deploy": False},
                    vpa={"name": "web"},
                    updateStrategy={"type": "InPlace"},
                    startupBoost=[{"container": "app", "cpu": {"factor": 5}, "atMost": "20s"}],
                )
            )
            wait_for(lambda: api.find("HvpaSizes", "hvpa", namespace), TIMEOUT, "an entry for new pods")
            time.sleep(1)  # the API server's policies look at a copy
            api.patch("Deployment", "web", namespace, {"spec": {"replicas": 2}})
            await_pods(api, namespace, "web")
            wait_for(lambda: _sizes(pods) == [SIZE, SIZE], TIMEOUT, "two pods of their size")
            second = next(pod for pod in api.list("Pod", namespace, "app=web") if _name(pod) != _name(first))
            wait_for(lambda: pods.in_force(_name(second)).cpu == 200, TIMEOUT, "the limit in force")
            _stays_ready(pods, second)

            # A pod that is never ready, and whose container has ended meanwhile.
            never = copy.deepcopy(app)
            never["command"][-1] = NEVER
            change = {"template": {"spec": {"containers": [never]}}}
            api.patch("Deployment", "web", namespace, {"spec": change})
            wait_for(lambda: BOOSTED in _sizes(pods), TIMEOUT, "a new pod with the boost")
            wait_for(lambda: all(size == SIZE for size in _sizes(pods)), TIMEOUT, "and then without it")
            assert not all(map(is_ready, api.list("Pod", namespace, "app=web")))
        versions = {_name(pod): [version for _, version in seen.of(_name(pod))] for pod in (first, second)}
    api.delete("Hvpa", "web", namespace)
    before, after = [_seconds_to_ready(versions[_name(pod)]) for pod in (first, second)]
    assert after < before, "the boost has not made the start faster"
    assert [asked(version) for version in versions[_name(second)] if not is_ready(version)][:1] == [BOOSTED]
    resizes = versions[_name(second)][-1]["metadata"]["generation"] - 1
    assert resizes == 1


def _name(pod: Json) -> str:
    return str(pod["metadata"]["name"])


def _sizes(pods: RealPods) -> list[Json]:
    """The requested resources of the pods that are not being deleted."""
    listed = pods.api.list("Pod", pods.namespace, "app=web")
    return [asked(pod) for pod in listed if "deletionTimestamp" not in pod["metadata"]]


def _seconds_to_ready(versions: list[Json]) -> float:
    """From the start of the process to the readiness of the pod, in whole seconds."""
    ready = next(version for version in versions if is_ready(version))
    started = ready["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    became = condition(ready, "Ready")
    assert became is not None
    form = "%Y-%m-%dT%H:%M:%SZ"
    return time.mktime(time.strptime(became["lastTransitionTime"], form)) - time.mktime(
        time.strptime(started, form)
    )


def _stays_ready(pods: RealPods, pod: Json) -> None:
    """The end of the boost restarts nothing."""
    now = pods.get(_name(pod))
    assert now["status"]["containerStatuses"][0]["restartCount"] == 0
    assert is_ready(now)
