"""The objects of the scale benchmark: workloads with their Hvpas, and the bodies of all writes about them by the user,
the HPA controller, the VPA recommender, the Deployment controller and the kubelet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.scale.http import JSON, MERGE, Client
from hvpa.api.values.quantity import parse_cpu
from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import ago, condition, deployment, entry, hvpa, merged, weight

APPS = "/apis/apps/v1"
HPAS = "/apis/autoscaling/v2"
VPAS = "/apis/autoscaling.k8s.io/v1"
HVPAS = "/apis/autoscaling.k8s.io/v1alpha1"
PREFIX = "scale-"
"""Prefix of the namespaces' names."""
PER_NAMESPACE = 50
STEP_MILLICORES = 300
"""Increase of the CPU request by a step: half of the VPA's additional recommendation."""
MEMORY = "500M"
MAX_REPLICAS = 1000

encode = msgspec.json.encode


@dataclass(slots=True)
class Item:
    """A workload with its Hvpa, as last seen by the watch."""

    namespace: str
    name: str
    replicas: int = 2
    cpu: int = 500
    generation: int = 0
    replicas_before: int = 0
    """Replicas before the awaited step."""
    cpu_before: int = 0
    """CPU request before the awaited step."""
    sent: float = 0.0
    """When the last status was sent (perf_counter)."""
    patched: float = 0.0
    """When the workload was first seen with both changed (perf_counter)."""
    awaited: bool = False

    def path(self, api: str, plural: str, suffix: str = "") -> str:
        """Return the URL path of the object of this name."""
        return f"{api}/namespaces/{self.namespace}/{plural}/{self.name}{suffix}"

    def collection(self, api: str, plural: str) -> str:
        """Return the URL path for creating such an object."""
        return f"{api}/namespaces/{self.namespace}/{plural}"

    def expect(self) -> None:
        """Await a step from now on."""
        self.replicas_before, self.cpu_before = self.replicas, self.cpu
        self.patched, self.awaited = 0.0, True


def make_items(count: int) -> list[Item]:
    """Return `count` items, PER_NAMESPACE in each namespace."""
    return [Item(f"{PREFIX}{number // PER_NAMESPACE}", f"app-{number}") for number in range(count)]


@functools.cache
def _long_ago() -> str:
    return ago(hours=2)


def pod(item: Item, number: int, owner: Json | None = None) -> bytes:
    """Return a pod of the workload, like that of a ReplicaSet."""
    template = deployment(item.name, item.namespace)["spec"]["template"]
    metadata: Json = {
        "name": f"{item.name}-{number}",
        "namespace": item.namespace,
        "labels": {"app": item.name, "pod-template-hash": "1"},
    }
    name = f"{item.name}-1"
    made = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
    metadata["ownerReferences"] = [owner or made]
    spec = {**template["spec"], "nodeName": "node"}
    return encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@functools.cache
def pod_status() -> bytes:
    """Return the kubelet's status: running and ready."""
    running = {"running": {"startedAt": _long_ago()}}
    base = {"name": "app", "image": "app", "imageID": "", "ready": True, "restartCount": 0, "state": running}
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    status = {
        "phase": "Running",
        "startTime": _long_ago(),
        "conditions": [condition(kind, "True", "", _long_ago()) for kind in kinds],
        "containerStatuses": [base],
    }
    return encode({"status": status})


def rollout_complete(item: Item) -> bytes:
    """Return the Deployment controller's status: all pods have the current template and are available."""
    count = item.replicas
    status = {"observedGeneration": max(1, item.generation), "replicas": count, "updatedReplicas": count}
    return encode({"status": {**status, "readyReplicas": count, "availableReplicas": count}})


def hpa_status(item: Item, desired: int, pods: int) -> bytes:
    """Return the HPA controller's status: `desired` replicas, with at most `pods` measured pods."""
    counted = min(item.replicas, pods) or item.replicas
    measured = 100 if desired == item.replicas else -(-100 * desired // counted)
    current = {"averageUtilization": measured, "averageValue": f"{5 * measured}m"}
    status = {
        "currentReplicas": item.replicas,
        "desiredReplicas": desired,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
        "conditions": [condition("ScalingActive", "True", "ValidMetricFound", _long_ago())],
    }
    return encode({"status": status})


def vpa_status(cpu: int) -> bytes:
    """Return the VPA recommender's status: these millicores, as for two hours, and the initial memory request."""
    reported = entry("app", {"cpu": f"{cpu}m", "memory": MEMORY})
    provided = condition("RecommendationProvided", "True", "", _long_ago())
    status = {"conditions": [provided], "recommendation": {"containerRecommendations": [reported]}}
    return encode({"status": status})


class Writer:
    """Writes about workloads with this number of pods and these bodies of objects."""

    def __init__(self, client: Client, pods: int) -> None:
        self.client = client
        self._pods = pods

    async def create_namespace(self, name: str) -> None:
        """Create the namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.client.send("POST", "/api/v1/namespaces", encode(body), JSON)

    async def create_workload(
        self, item: Item, owner: Json | None = None, status: bytes | None = None
    ) -> None:
        """Create a Deployment and its pods (with this owner and status), as if they had run for hours."""
        body = encode(deployment(item.name, item.namespace, item.replicas))
        await self.client.send("POST", item.collection(APPS, "deployments"), body)
        await self.status(item, APPS, "deployments", rollout_complete(item))
        for number in range(self._pods):
            path = item.collection("/api/v1", "pods")
            await self.client.send("POST", path, pod(item, number, owner))
            path = f"{path}/{item.name}-{number}/status"
            await self.client.send("PATCH", path, status or pod_status(), MERGE)

    async def create_hvpa(self, item: Item, **changes: Any) -> None:
        """Create the Hvpa: HPA and VPA deployed, both axes at half weight."""
        spec = {"hpa": {"template": {"spec": {"maxReplicas": MAX_REPLICAS}}}, **changes}
        body = encode(hvpa(item.name, item.namespace, merged(weight(50), spec)))
        await self.client.send("POST", item.collection(HVPAS, "hvpas"), body)

    async def recommend(self, item: Item, cpu: int) -> None:
        """Write the VPA's status."""
        await self.status(item, VPAS, "verticalpodautoscalers", vpa_status(cpu))

    async def desire(self, item: Item, replicas: int) -> None:
        """Write the HPA's status."""
        body = hpa_status(item, replicas, self._pods)
        await self.status(item, HPAS, "horizontalpodautoscalers", body)

    async def status(self, item: Item, api: str, plural: str, body: bytes) -> None:
        """Write the status of the item's object of this kind."""
        await self.client.send("PATCH", item.path(api, plural, "/status"), body, MERGE)


# --- the watch of Deployments ---------------------------------------------------------------------------------------
class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    generation: int = 0
    resourceVersion: str = ""


class _Resources(msgspec.Struct):
    requests: dict[str, Any] = {}


class _Container(msgspec.Struct):
    resources: _Resources


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Template(msgspec.Struct):
    spec: _PodSpec


class _Spec(msgspec.Struct):
    template: _Template
    replicas: int = 1


class DeploymentFields(msgspec.Struct):
    """The fields of a Deployment that are used here."""

    metadata: _Meta
    spec: _Spec | None = None


class WatchEvent(msgspec.Struct):
    """An event of a watch."""

    type: str
    object: DeploymentFields


def millicores(quantity: object) -> int:
    """Convert a CPU request to millicores."""
    return parse_cpu(str(quantity))


decode_change: Callable[[bytes], WatchEvent] = msgspec.json.Decoder(WatchEvent).decode
