"""Pods of a scenario's workload, and what their kubelet does, step by step."""

from __future__ import annotations

from typing import Any

from localcluster.client.api import Json, KubeApi
from localcluster.workloads.bare_manifests import ago, condition, merged
from localcluster.workloads.scenario import Scenario

_READY = condition("Ready", "True", "")
HASH = "5d4f7c9b8"
"""Of each pod template."""
_HASH_LABELS = {"Deployment": "pod-template-hash", "Rollout": "rollouts-pod-template-hash"}
"""Of the kinds whose pods belong to a ReplicaSet: the label with which it tells its pods from those of others."""


class Pods:
    """The pods of a scenario's workload, and the kubelet of their nodes."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.api: KubeApi = scenario.api
        if self.api.find("Node", "node") is None:
            self.api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}})
            room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            self.api.patch_status("Node", "node", None, {"capacity": room, "allocatable": room})

    def start(self, name: str, **changes: Any) -> str:
        """A pod as from `begin` that runs and is ready."""
        pod = self.begin(name, **changes)
        self.run(pod)
        return pod

    def begin(self, name: str, **changes: Any) -> str:
        """A new pod of the workload, with its template and `changes` to its spec. As from the real controllers, a pod
        of a Deployment or Rollout is one of its ReplicaSet's."""
        scenario = self.scenario
        workload = scenario.target
        template = workload["spec"]["template"]
        owner = {
            "apiVersion": workload["apiVersion"],
            "kind": scenario.kind,
            "name": scenario.name,
            "uid": workload["metadata"]["uid"],
            "controller": True,
        }
        labels = template["metadata"]["labels"]
        if label := _HASH_LABELS.get(scenario.kind):
            labels = {**labels, label: HASH}
            replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{scenario.name}-{HASH}"}
            owner |= {**replica_set, "uid": f"{owner['uid']}-{HASH}"}
        metadata = {
            "name": f"{scenario.name}-{name}",
            "namespace": scenario.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        }
        spec = merged(merged(template["spec"], {"nodeName": "node"}), changes)
        made = self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return str(made["metadata"]["name"])

    def run(self, pod: str, **status: Any) -> None:
        """The kubelet: the pod runs and is ready, with these further fields of its status."""
        started = {"phase": "Running", "conditions": [_READY], **status}
        self.api.patch_status("Pod", pod, self.scenario.namespace, started)
        self.resize(pod)

    def get(self, pod: str) -> Json:
        """The pod."""
        return self.api.get("Pod", pod, self.scenario.namespace)

    def spec(self, pod: str) -> Json:
        """The resources that the pod's first container is to have."""
        resources: Json = self.get(pod)["spec"]["containers"][0]["resources"]
        return resources

    def requests(self, pod: str, **requests: str) -> bool:
        """Whether the pod's first container is to have these requests."""
        return bool(self.spec(pod)["requests"] == requests)

    def has(self, pod: str) -> bool:
        """Whether the pod's containers have what its spec has."""
        manifest = self.get(pod)
        had = [
            container_status.get("resources")
            for container_status in manifest["status"].get("containerStatuses", [])
        ]
        return had == [container["resources"] for container in manifest["spec"]["containers"]]

    def ran_out_of_memory(self, pod: str) -> None:
        """The kubelet: the first container has what its pod's spec has, and ends for want of memory."""
        self.resize(pod)
        statuses = self.get(pod)["status"]["containerStatuses"]
        ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": ago(), "startedAt": ago(minutes=1)}
        statuses[0] |= {"lastState": {"terminated": ended}, "restartCount": 1}
        self.api.patch_status("Pod", pod, self.scenario.namespace, {"containerStatuses": statuses})

    def resize(self, pod: str) -> None:
        """The kubelet: give the containers what their pod's spec has. How they ended before stays in their status."""
        manifest = self.get(pod)
        before = {
            container_status["name"]: container_status
            for container_status in manifest["status"].get("containerStatuses", [])
        }
        new = {"image": "app", "imageID": "", "ready": True, "restartCount": 0}
        statuses = [
            {
                **new,
                **before.get(container["name"], {}),
                "name": container["name"],
                "resources": container["resources"],
            }
            for container in manifest["spec"]["containers"]
        ]
        status = {"containerStatuses": statuses, "conditions": [_READY]}
        if whole := manifest["spec"].get("resources"):
            status["resources"] = whole
        self.api.patch_status("Pod", pod, self.scenario.namespace, status)

    def report(self, pod: str, kind: str, reason: str, message: str, *, of_now: bool = False) -> None:
        """The kubelet: a condition of a resize that does not get on; `of_now`: of the pod's present spec alone."""
        pod_condition = condition(kind, "True", reason)
        pod_condition["message"] = message
        if of_now:
            pod_condition["observedGeneration"] = self.get(pod)["metadata"]["generation"]
        self.api.patch_status("Pod", pod, self.scenario.namespace, {"conditions": [_READY, pod_condition]})
