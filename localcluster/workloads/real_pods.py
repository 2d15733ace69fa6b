"""Pods of real nodes that read their usage from a file, their resizes, and their cgroups."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcluster.client.api import ApiError, Json, KubeApi, read_kubeconfig, wait_for
from localcluster.node.cgroups import Granted
from localcluster.node.config import IMAGE
from localcluster.node.node import Node
from localcluster.workloads.load import is_ready
from localcluster.workloads.pods import MIB, Amounts, InForce, Pods


@dataclass
class Versions:
    """All versions of a namespace's pods from a watch, each with the time at which it came."""

    kubeconfig: Path
    namespace: str
    found: list[tuple[float, Json]] = field(default_factory=list)
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
        """Return the versions of a pod since a time (`time.time`)."""
        return [(at, pod) for at, pod in list(self.found) if at >= since and pod["metadata"]["name"] == name]

    def _read(self) -> None:
        while True:
            try:
                line = self._response.readline()
                if not line:
                    return
                self.found.append((time.time(), json.loads(line)["object"]))
            except (OSError, ValueError, http.client.HTTPException):
                if self._is_ending:  # ending a connection means reading it without TLS
                    return
                raise


@dataclass
class RealPods(Pods):
    """The pods of a namespace on real nodes."""

    api: KubeApi
    nodes: Sequence[Node]
    namespace: str
    control: Path
    """The folder with a file for each pod, which sets its usage."""

    def use(self, name: str, cpu: int = 0, memory: int = 0, cache: int = 0) -> None:
        """Set the usage of `name` in millicores, MiB, and MiB of page cache."""
        (self.control / name).write_text(f"cpu={cpu} memory={memory} cache={cache}\n")

    def spec(self, name: str, requests: Amounts, limits: Amounts | None = None, **container: Any) -> Json:
        """Return the spec of a pod, or of a pod template, that reads its usage from the file `name`."""
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
            "hostNetwork": True,
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

    def deploy(self, app: str, requests: Amounts, limits: Amounts | None = None, replicas: int = 1) -> Json:
        """Create a Deployment whose pods read their usage from the file `app`."""
        labels = {"app": app}
        template = {"metadata": {"labels": labels}, "spec": self.spec(app, requests, limits)}
        return self.api.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": app, "namespace": self.namespace},
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            }
        )

    def only_pod(self, app: str) -> str:
        """Return the name of a Deployment's only pod once it is ready."""

        def found() -> str:
            ready = [one for one in self.api.list("Pod", self.namespace, f"app={app}") if is_ready(one)]
            return str(ready[0]["metadata"]["name"]) if ready else ""

        return wait_for(found, 60, f"the pod of {app} is ready")

    def await_used(self, name: str, memory: int) -> None:
        wait_for(lambda: self.cgroup(name).usage > memory * MIB, 30, f"{memory} MiB are used")

    def in_force(self, name: str) -> InForce:
        granted = self.cgroup(name)
        return InForce(granted.quota // 100, granted.limit)

    def cgroup(self, name: str, *, of_pod: bool = False) -> Granted:
        """Return the kernel's settings for the container, or for the pod."""
        pod = self.get(name)
        return self.node_of(pod).granted(pod, of_pod=of_pod)

    def node_of(self, pod: Json) -> Node:
        """Return the node of a scheduled pod."""
        (node,) = (one for one in self.nodes if one.name == pod["spec"]["nodeName"])
        return node


def status(pod: Json) -> Json:
    """Return the status of its container; empty if it has none yet."""
    found: list[Json] = pod.get("status", {}).get("containerStatuses") or [{}]
    return found[0]


def applied(pod: Json) -> Json:
    """Return the resources of its container that the kubelet reports."""
    found: Json = status(pod).get("resources") or {}
    return found


def asked(pod: Json) -> Json:
    """Return the resources in the spec of its container."""
    found: Json = pod["spec"]["containers"][0].get("resources") or {}
    return found


def condition(pod: Json, type_: str) -> Json | None:
    """Return a condition of the pod."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == type_), None)


def is_resized(pod: Json) -> bool:
    """Whether its container has the resources of its spec, and the kubelet reports no resize."""
    conditions = [condition(pod, one) for one in ("PodResizeInProgress", "PodResizePending")]
    return asked(pod) == applied(pod) and not any(conditions)


def await_error(action: Callable[[], object]) -> ApiError:
    """Return the error of a refused request, once it is refused."""
    try:
        action()
    except ApiError as error:
        return error
    raise AssertionError("it was not refused")
