"""Workloads of one pod that an Hvpa resizes in place."""

from __future__ import annotations

from typing import Final

from localcluster.client.api import Json, wait_for
from tests.e2e.full import objects
from tests.e2e.node.real_pods import RealPods, is_ready

SMALL: Final = {"cpu": {"value": "20m"}, "memory": {"value": "5M"}}
AT_ONCE: Final = {"minChange": SMALL, "minHistory": "5s", "stabilizationDuration": "0s"}


def start(pods: RealPods, name: str, resources: Json, **spec: object) -> None:
    """A Deployment of one pod that uses what the file `name` says, and an Hvpa that resizes it in place."""
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": pods.spec(name, resources["requests"], resources["limits"]),
    }
    pods.api.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": pods.namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
    )
    strategy = {"type": "InPlace", "timeout": "90s"}
    vertical = objects.vertical(scaleUp={"minChange": SMALL}, scaleDown=AT_ONCE)
    pods.api.create(objects.hvpa(name, pods.namespace, updateStrategy=strategy, vpa=vertical, **spec))


def only_pod(pods: RealPods, name: str) -> str:
    """The name of the Deployment's pod, once it is ready."""

    def found() -> str:
        ready = [one for one in pods.api.list("Pod", pods.namespace, f"app={name}") if is_ready(one)]
        return str(ready[0]["metadata"]["name"]) if ready else ""

    return wait_for(found, 60, f"the pod of {name} is ready")
