"""`python -m localcluster.controlplane.allocator KUBECONFIG`: the part of the simulated kubelets that needs
all pods of a node. It allocates resizes that have room on their node, and defers the others (`room.py`). KWOK
then applies an allocated resize (`kubelet.yaml`).

It evaluates the resizes of a node when a pod of the node changes, and all resizes every three minutes, as a
kubelet does. It ends only by a signal; if the API server stops, it begins again.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlencode

from localcluster.client.api import ApiError, Json, KubeApi
from localcluster.client.watch import watch
from localcluster.controlplane.room import (
    DEFERRED,
    IN_PROGRESS,
    PENDING,
    NodePod,
    Verdict,
    node_pod,
    room_of,
    settle,
)

_RETRY_SECONDS = 180
"""Seconds after which all deferred resizes are evaluated again (`retryDelay` of the kubelet)."""
_PAUSE_SECONDS = 0.2
"""Seconds after an error."""
_PODS = "/api/v1/pods"
_SCHEDULED = "spec.nodeName!="
"""Field selector of the pods that have a node."""


class Allocator:
    """The pods of all nodes, and the decisions about their resizes. Raises `ApiError` and `OSError` like its
    client."""

    def __init__(self, api: KubeApi, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns the time in seconds since 1970."""
        self._api = api
        self._clock = clock
        self._nodes: dict[str, dict[str, NodePod]] = defaultdict(dict)
        """For each node, its pods by uid."""
        self._versions: dict[str, int] = {}
        """The resource version of each pod, by uid."""
        self._since: dict[str, float] = {}
        """When each deferred resize was deferred, in seconds since 1970, by the pod's uid."""

    def begin(self, pods: Iterable[Json]) -> None:
        """Replaces all pods by these, and evaluates the resizes of all nodes."""
        self._nodes.clear()
        self._versions.clear()
        for pod in pods:
            self._take(pod)
        self._since = {uid: at for uid, at in self._since.items() if uid in self._versions}
        for node in list(self._nodes):
            self._settle(node)

    def handle(self, kind: str, pod: Json) -> None:
        """Evaluates the resizes of the pod's node if this event (`ADDED`, `MODIFIED`, `DELETED`) of the pod
        is news."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if kind == "DELETED":
            self._versions.pop(uid, None)
            self._since.pop(uid, None)
            changed = self._nodes[node].pop(uid, None) is not None
        else:
            changed = self._take(pod)
        if changed:
            self._settle(node)

    def _take(self, pod: Json) -> bool:
        """Stores this version of a pod; returns whether it differs for its node from the stored version."""
        metadata = pod["metadata"]
        uid, version = metadata["uid"], int(metadata["resourceVersion"])
        if version <= self._versions.get(uid, 0):
            return False
        self._versions[uid] = version
        pods = self._nodes[pod["spec"].get("nodeName", "")]
        before, now = pods.get(uid), node_pod(pod)
        if now is None:
            pods.pop(uid, None)
        else:
            pods[uid] = now
        if now is None or not now.waits:
            self._since.pop(uid, None)
        return now != before

    def _settle(self, node: str) -> None:
        """Allocates the resizes that have room on the node, and defers the others, until nothing is left to
        write."""
        pods = self._nodes[node]
        is_writing = True
        while is_writing and any(pod.waits for pod in pods.values()):
            described = self._api.find("Node", node)
            if described is None:
                return
            is_writing = False
            for verdict in settle(list(pods.values()), room_of(described), self._since):
                status = self._status(verdict)
                if status is not None:
                    is_writing = True
                    if not self._write(verdict.pod, status):
                        break  # the decisions that follow depend on this one

    def _status(self, verdict: Verdict) -> Json | None:
        """The part of the pod's status that reports a decision; None if the pod has it already."""
        pod, shortage = verdict
        if not shortage:
            return self._allocated(pod)
        self._since.setdefault(pod.uid, self._clock())
        condition = self._deferred(pod, shortage)
        if all(pod.reported.get(key) == value for key, value in condition.items()):
            return None
        return {"conditions": [condition]}

    def _allocated(self, pod: NodePod) -> Json:
        condition = {
            "type": IN_PROGRESS,
            "status": "True",
            "reason": None,
            "message": None,
            "lastTransitionTime": self._now(),
            "observedGeneration": pod.generation,
        }
        return {
            "conditions": [{"type": PENDING, "$patch": "delete"}, condition],
            "containerStatuses": pod.statuses,
        }

    def _deferred(self, pod: NodePod, shortage: str) -> Json:
        return {
            "type": PENDING,
            "status": "True",
            "reason": DEFERRED,
            "message": shortage,
            "lastTransitionTime": pod.reported.get("lastTransitionTime", self._now()),
            "observedGeneration": pod.generation,
        }

    def _write(self, pod: NodePod, status: Json) -> bool:
        """Writes into a pod's status, unless the pod has changed: a patch replaces the statuses of all
        containers. Then it stores the new version, and returns False."""
        metadata = {"resourceVersion": str(self._versions[pod.uid])}
        body = {"metadata": metadata, "status": status}
        try:
            written = self._api.patch(
                "Pod",
                pod.name,
                pod.namespace,
                body,
                type="strategic",
                subresource="status",
                manager="kubelet",
            )
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            current = self._api.find("Pod", pod.name, pod.namespace)
            if current is not None and current["metadata"]["uid"] == pod.uid:
                self._take(current)
            else:
                del self._nodes[pod.node][pod.uid]
            return False
        self._take(written)
        return True

    def _now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))


def run(kubeconfig: Path, api: KubeApi, allocator: Allocator) -> None:
    """Follows the pods for three minutes, or until the API server ends the watch."""
    listed = api.raw("GET", f"{_PODS}?{urlencode({'fieldSelector': _SCHEDULED})}")
    allocator.begin(listed["items"])
    version = listed["metadata"]["resourceVersion"]
    for event in watch(kubeconfig, _PODS, version, _RETRY_SECONDS, _SCHEDULED):
        if event["type"] == "ERROR":
            return
        allocator.handle(event["type"], event["object"])


def main(arguments: list[str]) -> None:
    """Never returns."""
    (kubeconfig,) = map(Path, arguments)
    api = KubeApi(kubeconfig)
    allocator = Allocator(api)
    while True:
        try:
            run(kubeconfig, api, allocator)
        except (ApiError, OSError, ValueError, http.client.HTTPException) as error:
            print(repr(error), flush=True)
            time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
