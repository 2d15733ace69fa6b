"""One workload with its Hvpa on a bare API server, and the parts that a test plays there by writing statuses: the HPA
controller, the VPA recommender, the Deployment controller and the kubelet."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from tests.e2e.bare.manifests import ago, condition, deployment, entry, hvpa, merged
from tests.e2e.bare.view import View
from tests.e2e.world.kube import Json, KubeApi

_numbers = itertools.count(1)


def new_namespace(api: KubeApi, prefix: str = "stage") -> str:
    """Make a namespace. It is never deleted: the API server takes nothing new in one that is going, and the world
    goes as a whole."""
    made = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{prefix}-"}})
    return str(made["metadata"]["name"])


class Stage(View):
    """A workload and an Hvpa of the same name."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str | None = None,
        *,
        kind: str = "Deployment",
        replicas: int = 2,
        changes: Json | None = None,
    ) -> None:
        """Nothing is created yet; `workload` and `manifest` may be changed before `create`."""
        super().__init__(api, namespace, name or f"app-{next(_numbers)}", kind)
        self.workload = deployment(self.name, namespace, replicas, kind)
        self.manifest = hvpa(self.name, namespace, changes, kind)

    # --- what the user does ------------------------------------------------------------------------------------------
    def create(self, *, wait: bool = True) -> Stage:
        """Create workload and Hvpa; wait until the operator has made the HPA and VPA that the Hvpa deploys."""
        self.api.create(self.workload)
        self.rollout_completes()
        self.api.create(self.manifest)
        if wait:
            self.await_owned()
        return self

    def await_owned(self) -> None:
        """Wait for the HPA and VPA that the Hvpa deploys."""
        for part, kind in (("hpa", "HorizontalPodAutoscaler"), ("vpa", "VerticalPodAutoscaler")):
            if self.manifest["spec"].get(part, {}).get("deploy"):
                self.soon(partial(self.api.find, kind, self.name, self.namespace), f"a {kind}")

    def await_gone(self, kind: str) -> None:
        """Wait until there is no HPA or VPA of the Hvpa's name."""
        self.soon(lambda: self.api.find(kind, self.name, self.namespace) is None, f"no {kind}")

    def change(self, spec: Json) -> None:
        """Merge into the Hvpa's spec."""
        self.api.patch("Hvpa", self.name, self.namespace, {"spec": spec})

    def change_workload(self, spec: Json, manager: str = "somebody") -> Json:
        """Merge into the workload's spec, as somebody else (containers by name)."""
        body = {"spec": spec}
        return self.api.patch(self.kind, self.name, self.namespace, body, type="strategic", manager=manager)

    def set_requests(self, manager: str = "somebody", **requests: str) -> Json:
        """Set requests of the container `app`, as somebody else."""
        container = {"name": "app", "resources": {"requests": requests}}
        return self.change_workload({"template": {"spec": {"containers": [container]}}}, manager)

    def delete(self) -> None:
        """Delete the Hvpa."""
        self.api.delete("Hvpa", self.name, self.namespace)

    # --- what controllers do -----------------------------------------------------------------------------------------
    def hpa_wants(self, replicas: int, *, name: str | None = None, **status: Any) -> None:
        """The HPA controller: measure what calls for so many replicas, put the wish into the Hvpa by its scale
        subresource, and tell it in the HPA's status. `status` is merged into that."""
        told = merged(self.hpa_status(replicas), status)
        self.hpa_wishes(replicas)
        self.api.patch_status("HorizontalPodAutoscaler", name or self.name, self.namespace, told)

    def hpa_wishes(self, replicas: int) -> None:
        """The HPA controller's write of its wish."""
        if self.hvpa["spec"].get("replicas") != replicas:
            body = {"spec": {"replicas": replicas}}
            self.api.patch("Hvpa", self.name, self.namespace, body, subresource="scale", manager="hpa")

    def hpa_status(self, replicas: int) -> Json:
        """The status of an HPA whose measurement calls for so many replicas."""
        workload = self.target
        present = workload["spec"]["replicas"]
        counted = workload.get("status", {}).get("readyReplicas") or present or 1
        measured = 100 if replicas == present else 100 * replicas // counted
        current = {"averageUtilization": measured, "averageValue": f"{5 * measured}m"}
        return {
            "currentReplicas": present,
            "desiredReplicas": replicas,
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
            "conditions": [condition("ScalingActive", "True", "ValidMetricFound")],
        }

    def vpa_recommends(
        self,
        *,
        container: str = "app",
        name: str | None = None,
        since: str | None = None,
        others: Json | None = None,
        **target: str,
    ) -> None:
        """The VPA recommender: recommend for one container (and `others`: container to target), as it has done
        `since` (two hours ago)."""
        told = [entry(one, wanted) for one, wanted in {container: target, **(others or {})}.items()]
        provided = condition("RecommendationProvided", "True", "", since or ago(hours=2))
        status = {"conditions": [provided], "recommendation": {"containerRecommendations": told}}
        self.api.patch_status("VerticalPodAutoscaler", name or self.name, self.namespace, status)

    def rollout_completes(self) -> None:
        """The workload's controller: all pods are of the present template and available."""
        self.rollout(complete=True)

    def rollout(self, *, complete: bool) -> None:
        """The workload's controller has seen the present template; the pods are updated and available, or not yet."""
        workload = self.target
        count = workload["spec"]["replicas"]
        status: Json = {
            "observedGeneration": workload["metadata"]["generation"],
            "replicas": count,
            "updatedReplicas": count if complete else 0,
            "readyReplicas": count,
            "availableReplicas": count,
        }
        self.api.patch_status(self.kind, self.name, self.namespace, status)

    def pod(self, name: str, *, container_status: Json | None = None, **status: Any) -> str:
        """The kubelet: a pod that runs the template as it is now, with this status of its container `app`."""
        template = self.target["spec"]["template"]
        metadata = {"name": f"{self.name}-{name}", "namespace": self.namespace}
        metadata["labels"] = template["metadata"]["labels"]
        spec = merged(template["spec"], {"nodeName": "node"})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        made = str(self.api.create(pod)["metadata"]["name"])
        told: Json = {"phase": "Running", "startTime": ago(), **status}
        if container_status is not None:
            base = {"name": "app", "image": "app", "imageID": "", "ready": True, "restartCount": 1}
            told["containerStatuses"] = [merged(base, container_status)]
        self.api.patch_status("Pod", made, self.namespace, told)
        return made


def parallel(stages: list[Stage]) -> list[Stage]:
    """Create several stages, and only then wait for their HPAs and VPAs."""
    for one in stages:
        one.create(wait=False)
    for one in stages:
        one.await_owned()
    return stages
