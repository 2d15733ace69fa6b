"""Workloads that an Hvpa resizes in place."""

from __future__ import annotations

from typing import Final

from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json
from localcluster.workloads.load import is_ready
from localcluster.workloads.real_pods import RealPods
from tests.e2e.full import objects

SMALL: Final = {"cpu": {"value": "20m"}, "memory": {"value": "5M"}}
AT_ONCE: Final = {"minChange": SMALL, "minHistory": "5s", "stabilizationDuration": "0s"}


def start(pods: RealPods, name: str, resources: Json, *, replicas: int = 1, **spec: object) -> None:
    """A Deployment, at first of so many pods that each use what the file `name` says, and an Hvpa in place."""
    pods.deploy(name, resources["requests"], resources["limits"], replicas)
    strategy = {"type": "InPlace", "timeout": "90s"}
    vertical = objects.vertical(scaleUp={"minChange": SMALL}, scaleDown=AT_ONCE)
    pods.api.create(objects.hvpa(name, pods.namespace, updateStrategy=strategy, vpa=vertical, **spec))


def both_axes(least: int, most: int, weight: int, percent: int) -> Json:
    """The part of an Hvpa's spec that scales replicas and CPU together, so that pods use this percentage of it."""
    horizontal = objects.horizontal(least=least, most=most)
    target = {"type": "Utilization", "averageUtilization": percent}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    horizontal["template"]["spec"]["metrics"] = [metric]
    intervals = [{"vpaWeight": weight}]
    return {"blend": "Trajectory", "weightBasedScalingIntervals": intervals, "hpa": horizontal}


def decided(pods: RealPods, name: str) -> tuple[int, int]:
    """The replicas and the millicores of each that the operator decided on; 0 if it has not."""
    size = pods.api.get("Hvpa", name, pods.namespace).get("status", {}).get("desired", {})
    requests: Json = next((container.get("requests", {}) for container in size.get("containers", [])), {})
    return size.get("replicas", 0), parse_cpu(requests.get("cpu", 0))


def is_recommending(pods: RealPods, name: str) -> bool:
    """Whether the Hvpa has both recommendations."""
    conditions = objects.conditions(pods.api, name, pods.namespace)
    return {conditions.get(kind, ("",))[0] for kind in ("HpaActive", "VpaActive")} == {"True"}


def ready_pods(pods: RealPods, name: str) -> list[str]:
    """The names of the Deployment's pods that are ready."""
    manifests = pods.api.list("Pod", pods.namespace, f"app={name}")
    return [str(pod["metadata"]["name"]) for pod in manifests if is_ready(pod)]
