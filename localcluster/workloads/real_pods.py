"""Pods of real nodes whose usage is set by a file, their resizes, and their cgroups."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcluster.client.api import Json, KubeApi, read_kubeconfig, wait_for
from localcluster.node.cgroups import Granted
from localcluster.node.config import IMAGE
from localcluster.node.node import Node
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB, Amounts, InForce, Pods


@dataclass
class Versions:
    """All versions of a namespace's pods from a watch, with their arrival times."""

    kubeconfig: Path
    namespace: str
    versions: list[tuple[float, Json]] = field(default_factory=list)
    _is_ending: bool = False

    def __enter__(self) -> Versions:
        credentials = read_kubeconfig(self.kubeconfig)
        url = urlsplit(credentials.server)
        self._connection = http.client.HTTPSConnection(
            url.hostname or "", url.port, context=credentials.tls, timeout=600
        )
        self._connection.request("GET", f"/api/v1/namespaces/{self.namespace}/pods?watch=true")
        self._response = self._connection.getresponse()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_ending = True
        if self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self._thread.join(10)
        self._connection.close()

    def of(self, name: str, since: float = 0.0) -> list[tuple[float, Json]]:
        """The versions of a pod from then on (`time.time`)."""
        return [
            (at, pod) for at, pod in list(self.versions) if at >= since and pod["metadata"]["name"] == name
        ]

    def _read(self) -> None:
        while True:
            try:
                line = self._response.readline()
                if not line:
                    return
                self.versions.append((time.time(), json.loads(line)["object"]))
            except (OSError, ValueError, http.client.HTTPException):
                if self._is_ending:  # the end of a connection is read without TLS
                    return
                raise


@dataclass
class RealPods(Pods):
    """The pods of a single namespace on real nodes."""

    api: KubeApi
    nodes: Sequence[Node]
    namespace: str
    control: Path
    """The folder with a file for each pod, which sets its usage."""

    def use(self, name: str, cpu: int = 0, memory: int = 0, cache: int = 0) -> None:
        """Set the usage of the pods named `name`: millicores, MiB, and MiB of page cache."""
        (self.control / name).write_text(f"cpu={cpu} memory={memory} cache={cache}\n")

    def spec(
        self,
        name: str,
        requests: Amounts,
        limits: Amounts | None = None,
        *,
        own_address: bool = False,
        **container: Any,
    ) -> Json:
        """The spec of a pod, or of a template of pods, whose usage is set by the file `name`, unless further fields of
        its container set another command. Without an address of its own, a pod has its node's."""
        resources = {"requests": dict(requests), **({"limits": dict(limits)} if limits else {})}
        app = {
            "name": "app",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["/bin/load", f"/ctl/{name}"],
            "resources": resources,
            "volumeMounts": [{"name": "ctl", "mountPath": "/ctl"}],
            **container,
        }
        return {
            "hostNetwork": not own_address,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [app],
            "volumes": [{"name": "ctl", "hostPath": {"path": str(self.control)}}],
        }

    def begin(
        self, name: str, requests: Amounts, limits: Amounts | None, priority: str, container: Json
    ) -> None:
        if not (self.control / name).exists():
            self.use(name)
        spec = self.spec(name, requests, limits, **container)
        if priority:
            spec["priorityClassName"] = priority
        metadata = {"name": name, "namespace": self.namespace}
        self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def deploy(
        self,
        app: str,
        requests: Amounts,
        limits: Amounts | None = None,
        replicas: int = 1,
        **container: Any,
    ) -> Json:
        """Create a Deployment of pods with the spec of these arguments."""
        labels = {"app": app}
        template = {"metadata": {"labels": labels}, "spec": self.spec(app, requests, limits, **container)}
        return self.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": app, "namespace": self.namespace},
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            }
        )

    def only_pod(self, app: str) -> str:
        """The name of a Deployment's pod, once it is ready."""

        def ready_pod() -> str:
            ready = [pod for pod in self.api.list("Pod", self.namespace, f"app={app}") if is_ready(pod)]
            return str(ready[0]["metadata"]["name"]) if ready else ""

        return wait_for(ready_pod, 60, f"the pod of {app} is ready")

    def await_used(self, name: str, memory: int) -> None:
        wait_for(lambda: self.cgroup(name).usage > memory * MIB, 30, f"{memory} MiB are used")

    def in_force(self, name: str) -> InForce:
        granted = self.cgroup(name)
        return InForce(granted.quota // 100, granted.limit)

    def cgroup(self, name: str, *, of_pod: bool = False) -> Granted:
        """The kernel's grants to the container, or to the pod as a whole."""
        pod = self.get(name)
        return self.node_of(pod).granted(pod, of_pod=of_pod)

    def node_of(self, pod: Json) -> Node:
        """The node of a pod that has been placed."""
        (node,) = (node for node in self.nodes if node.name == pod["spec"]["nodeName"])
        return node


def status(pod: Json) -> Json:
    """The status of its container; empty if it has none yet."""
    statuses: list[Json] = pod.get("status", {}).get("containerStatuses") or [{}]
    return statuses[0]


def applied(pod: Json) -> Json:
    """The actual resources of its container, reported by the kubelet."""
    resources: Json = status(pod).get("resources") or {}
    return resources


def asked(pod: Json) -> Json:
    """The requested resources of its container."""
    resources: Json = pod["spec"]["containers"][0].get("resources") or {}
    return resources


def condition(pod: Json, type_: str) -> Json | None:
    """A condition of the pod."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == type_), None)


def is_resized(pod: Json) -> bool:
    """Whether its container has the requested resources, and the kubelet reports no resize."""
    conditions = [condition(pod, kind) for kind in ("PodResizeInProgress", "PodResizePending")]
    return asked(pod) == applied(pod) and not any(conditions)
