"""The resources of a pod itself on a real node: what its kubelet does when they are resized, and that the operator
resizes them with what the containers need."""

from __future__ import annotations

import re
from functools import partial

import pytest

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import Operator, install_fast_signal, install_operator_rbac
from localcluster.workloads.load import await_pods, is_ready
from localcluster.workloads.pods import Amounts
from localcluster.workloads.real_pods import RealPods, condition, status
from tests.e2e.full import objects, recommended
from tests.e2e.full.creation import created_now

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]

OWN: Json = {"requests": {"cpu": "200m", "memory": "128M"}, "limits": {"cpu": "400m", "memory": "128M"}}
LARGER: Json = {"requests": {"cpu": "500m", "memory": "192M"}, "limits": {"cpu": "1", "memory": "192M"}}
WEB: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
ANY: Json = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}}


def spec(pods: RealPods, requests: Amounts | None = None) -> Json:
    """A pod of two containers that share its resources. `requests`: those of its first container."""
    pods.use("web", 50, 20)
    made = pods.spec("web", requests or {})
    (app,) = made["containers"]
    return made | {"resources": OWN, "containers": [app, app | {"name": "side", "resources": {}}]}


def has(pods: RealPods, name: str, size: Json) -> bool:
    """Whether the pod's spec, its kubelet and the kernel have this size."""
    pod = pods.get(name)
    granted = pods.cgroup(name, of_pod=True)
    limits = parse_cpu(size["limits"]["cpu"]) * 100, parse_memory(size["limits"]["memory"])
    return bool(
        pod["spec"]["resources"] == size
        and numbers(pod["status"].get("resources", {})) == numbers(size)
        and (granted.quota, granted.limit) == limits
        and not any(condition(pod, kind) for kind in ("PodResizeInProgress", "PodResizePending"))
    )


def numbers(size: Json) -> list[int]:
    pairs = [
        (part.get("cpu", 0), part.get("memory", 0))
        for part in (size.get("requests", {}), size.get("limits", {}))
    ]
    return [amount for cpu, memory in pairs for amount in (parse_cpu(cpu), parse_memory(memory))]


def test_the_kubelet_resizes_a_pod_whose_containers_have_no_requests(pods: RealPods) -> None:
    metadata = {"name": "web", "namespace": pods.namespace}
    pods.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(pods)})
    pods.until("web", is_ready, "is ready")
    wait_for(lambda: has(pods, "web", OWN), 30, "the size of its template")
    for size in (LARGER, OWN):
        body = {"spec": {"resources": size}}
        pods.api.patch("Pod", "web", pods.namespace, body, subresource="resize")
        wait_for(partial(has, pods, "web", size), 60, f"{size}")
    assert status(pods.get("web"))["restartCount"] == 0


def deployed(pods: RealPods, requests: Amounts | None = None) -> str:
    """Create the Deployment and its VPA; return the name of its pod."""
    api, namespace = pods.api, pods.namespace
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec(pods, requests)}
    content = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": namespace}
    api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": content})
    await_pods(api, namespace, "web")
    recommended.vpa(api, namespace, "web", WEB)
    return pods.only_pod("web")


def test_the_operator_resizes_running_pods_and_new_ones_have_the_size(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    api, namespace = pods.api, pods.namespace
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    first = deployed(pods)
    recommended.recommend_target(
        api, namespace, "web", {"side": {"cpu": "100m", "memory": "64M"}}, cpu="400m", memory="128M"
    )
    with Operator(node_cluster, kubeconfig):
        api.create(
            objects.hvpa(
                "web",
                namespace,
                hpa={"deploy": False},
                vpa={"name": "web", "scaleUp": ANY, "scaleDown": ANY},
                weightBasedScalingIntervals=[{"vpaWeight": 100}],
                updateStrategy={"type": "InPlace"},
            )
        )
        wait_for(lambda: has(pods, first, LARGER), 90, "the size of a running pod")
        assert status(pods.get(first))["restartCount"] == 0
        assert all("requests" not in one["resources"] for one in pods.get(first)["spec"]["containers"])
        wait_for(lambda: api.find("HvpaSizes", "hvpa", namespace), 60, "an entry for new pods")

        def is_created() -> bool:  # the API server's policies look at a copy
            api.patch("Deployment", "web", namespace, {"spec": {"replicas": 1}})
            wait_for(lambda: len(api.list("Pod", namespace, "app=web")) == 1, 60, "one pod")
            api.patch("Deployment", "web", namespace, {"spec": {"replicas": 2}})
            await_pods(api, namespace, "web")
            return all(pod["spec"]["resources"] == LARGER for pod in api.list("Pod", namespace, "app=web"))

        wait_for(is_created, 120, "a new pod of that size")
        assert api.get("Deployment", "web", namespace)["spec"]["template"]["spec"]["resources"] == OWN
    api.delete("Hvpa", "web", namespace)


def test_new_pods_have_more_cpu_for_the_start_of_what_their_containers_share(
    node_cluster: ControlPlane, pods: RealPods
) -> None:
    api, namespace = pods.api, pods.namespace
    wait_for(lambda: not api.list("Pod"), 60, "no pod of an earlier test, so that the node has room")
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    first = deployed(pods)
    boosted = {"requests": {**OWN["requests"], "cpu": "600m"}, "limits": {**OWN["limits"], "cpu": "1200m"}}
    boost = {"container": "app", "cpu": {"factor": 3}, "after": "20s"}
    with Operator(node_cluster, kubeconfig):
        own = {"hpa": {"deploy": False}, "vpa": {"name": "web"}, "updateStrategy": {"type": "InPlace"}}
        api.create(objects.hvpa("web", namespace, **own, startupBoost=[boost]))
        wait_for(
            lambda: created_now(api, namespace, "web")["spec"]["resources"] == boosted,
            120,
            "the boost of new pods",
        )
        api.patch("Deployment", "web", namespace, {"spec": {"replicas": 2}})
        wait_for(lambda: len(api.list("Pod", namespace, "app=web")) == 2, 60, "a new pod")
        names = [pod["metadata"]["name"] for pod in api.list("Pod", namespace, "app=web")]
        (new,) = [name for name in names if name != first]
        wait_for(partial(has, pods, new, boosted), 60, "the boost in force")
        wait_for(partial(has, pods, new, OWN), 60, "the usual size in force")
        assert status(pods.get(new))["restartCount"] == 0
        assert pods.get(new)["metadata"]["generation"] == 2  # one resize
    api.delete("Hvpa", "web", namespace)


@pytest.mark.parametrize("requests", [{}, {"cpu": "100m"}], ids=["none has a request", "app has a request"])
def test_the_fast_signal_raises_what_containers_share(
    node_cluster: ControlPlane, pods: RealPods, requests: Amounts
) -> None:
    """There is no HPA, and the test writes the VPA's recommendation: nothing else measures the load."""
    api, namespace = pods.api, pods.namespace
    kubeconfig = install_operator_rbac(node_cluster, deployment=False)
    first = deployed(pods, requests)
    part = {"cpu": "100m", "memory": "64M"}
    recommended.recommend_target(api, namespace, "web", {"side": part}, **part)

    def is_raised() -> bool:
        size = pods.get(first)["spec"]["resources"]
        return parse_cpu(size["requests"]["cpu"]) >= 600 and has(pods, first, size)

    with Operator(node_cluster, kubeconfig, *install_fast_signal(node_cluster)):
        own = {"hpa": {"deploy": False}, "vpa": {"name": "web"}, "updateStrategy": {"type": "InPlace"}}
        api.create(
            objects.hvpa(
                "web",
                namespace,
                **own,
                fastSignal={"mode": "Raise"},
                weightBasedScalingIntervals=[{"vpaWeight": 100}],
            )
        )
        wait_for(
            lambda: objects.conditions(api, "web", namespace).get("FastSignal") == ("True", "Reporting"),
            60,
            "its kubelet reports",
        )
        assert has(pods, first, OWN)
        pods.use("web", 350, 20)  # 700m together, more than the pod's limit
        wait_for(is_raised, 120, "three times as much CPU")
        pods.use("web", 50, 20)
        wait_for(lambda: has(pods, first, OWN), 400, "the size before the load")
        pods.use("web", 50, 57)  # 114 MiB together, of a limit of 122 MiB
        wait_for(lambda: pods.cgroup(first, of_pod=True).limit > parse_memory("200M"), 120, "more memory")
        events = [event["message"] for event in api.list("Event", namespace)]
        for amount in (r"\d+m", r"\d+Mi of a limit of 128M"):  # of CPU, and of memory
            text = rf"the kubelets report [^;]*\b{amount} for \(shared\)"
            assert any(re.search(text, event) for event in events), events
    pod = pods.get(first)
    assert [one["restartCount"] for one in pod["status"]["containerStatuses"]] == [0, 0]
    assert [one["resources"].get("requests", {}) for one in pod["spec"]["containers"]] == [requests, {}]
    api.delete("Hvpa", "web", namespace)
