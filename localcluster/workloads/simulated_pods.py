"""Pods of KWOK's nodes whose usage is set by their annotations."""

from __future__ import annotations

from dataclasses import dataclass, field

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import Json, KubeApi
from localcluster.controlplane.manifests import (
    CPU_ANNOTATION,
    MEMORY_ANNOTATION,
    MEMORY_LIMIT_ANNOTATION,
    PAGE_CACHE_ANNOTATION,
)
from localcluster.workloads.pods import Amounts, InForce, Pods


@dataclass
class SimulatedPods(Pods):
    """The pods of a namespace, all on the same node, which end if they use more memory than their limit."""

    api: KubeApi
    namespace: str
    node: str = "node-0"
    _usage: dict[str, Json] = field(default_factory=dict)
    """For each pod, the annotations that set its usage."""

    def use(self, name: str, cpu: int = 0, memory: int = 0, cache: int = 0) -> None:
        """Set the usage of the pods named `name`; at least 1m and 1 MiB, as without annotations."""
        self._usage[name] = {
            CPU_ANNOTATION: f"{max(1, cpu)}m",
            MEMORY_ANNOTATION: f"{max(1, memory)}Mi",
            PAGE_CACHE_ANNOTATION: f"{cache}Mi",
        }
        if self.api.find("Pod", name, self.namespace) is not None:
            self.api.patch("Pod", name, self.namespace, {"metadata": {"annotations": self._usage[name]}})

    def begin(
        self, name: str, requests: Amounts, limits: Amounts | None, priority: str, container: Json
    ) -> None:
        if name not in self._usage:
            self.use(name)
        resources = {"requests": dict(requests), **({"limits": dict(limits)} if limits else {})}
        # As a DaemonSet does, so that the scheduler places the pod, also on a node for pods of tests alone.
        its_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [self.node]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [its_node]}}
        spec: Json = {
            "affinity": {"nodeAffinity": required},
            "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "app", "image": "app", "resources": resources, **container}],
        }
        if priority:
            spec["priorityClassName"] = priority
        annotations = {**self._usage[name], MEMORY_LIMIT_ANNOTATION: "Enforced"}
        metadata = {"name": name, "namespace": self.namespace, "annotations": annotations}
        self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def await_used(self, name: str, memory: int) -> None:
        """The memory is used as soon as the annotation is set."""

    def in_force(self, name: str) -> InForce:
        """By its status, as there is no kernel."""
        limits = self.get(name)["status"]["containerStatuses"][0]["resources"].get("limits", {})
        return InForce(parse_cpu(limits.get("cpu", 0)), parse_memory(limits.get("memory", 0)))
