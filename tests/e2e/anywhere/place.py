"""Workloads in a namespace of any cluster: their recommendations are written by the tests, and their pods run an image
that the nodes have already."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.node.config import IMAGE
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import ago, condition, entry
from localcluster.workloads.load import is_ready

VPA: Final = "autoscaling.k8s.io/v1/VerticalPodAutoscaler"
HPA: Final = "HorizontalPodAutoscaler"
NO_RECOMMENDER: Final = "tests-of-hvpa"
"""The recommender that the VPAs name: none has that name, so no other one writes their status."""
SMALL: Final = {"cpu": "50m", "memory": "32M"}
LARGE: Final = {"cpu": "100m", "memory": "64M"}
SOON: Final = 120


def image_of(api: KubeApi) -> str:
    """An image whose program waits: one that the nodes have (pods' sandboxes need one), or HVPA_E2E_IMAGE. Simulated
    nodes have none and run any."""
    if given := os.environ.get("HVPA_E2E_IMAGE"):
        return given
    listed = [image["names"] for node in api.list("Node") for image in node["status"].get("images", [])]
    names = [name for names in listed for name in names if "@" not in name]
    waits = [name for name in names if name == IMAGE or name.rpartition("/")[2].startswith("pause:")]
    return waits[0] if waits else "pause"


class Amounts(NamedTuple):
    """Millicores and bytes."""

    cpu: int
    memory: int


def amounts(requests: Mapping[str, str]) -> Amounts:
    """Requests as numbers: a kubelet may write `62500Ki` for the `64M` that it was given."""
    return Amounts(parse_cpu(requests["cpu"]), parse_memory(requests["memory"]))


@dataclass
class Place:
    """One namespace. `image` is that of all pods, `folder` takes files."""

    cluster: Cluster
    namespace: str
    image: str
    folder: Path

    @property
    def api(self) -> KubeApi:
        return self.cluster.api

    def start(self, name: str, **spec: Any) -> None:
        """One small pod, ready; an HPA and a VPA that want no more than that; and an Hvpa with `spec` that has read
        both."""
        workload = samples.deployment(name, self.namespace, cpu=SMALL["cpu"], memory=SMALL["memory"])
        pod = workload["spec"]["template"]["spec"]
        pod |= {"automountServiceAccountToken": False, "enableServiceLinks": False}
        pod["containers"][0] |= {"image": self.image, "imagePullPolicy": "IfNotPresent"}
        self.api.create(workload)
        target = samples.target_of(workload)
        kind = {"apiVersion": "autoscaling.k8s.io/v1alpha1", "kind": "Hvpa"}
        self.api.create(samples.hpa(name, self.namespace, {**kind, "name": name}))
        vpa = samples.vpa(name, self.namespace, target)
        vpa["spec"]["recommenders"] = [{"name": NO_RECOMMENDER}]
        self.api.create(vpa)
        self.recommend(name, **SMALL)
        change = {"minChange": {"cpu": {"value": "10m"}, "memory": {"value": "10Mi"}}}
        spec = {
            "targetRef": target,
            "hpa": {"name": name},
            "vpa": {"name": name, "scaleUp": change, "scaleDown": change},
            "weightBasedScalingIntervals": [{"vpaWeight": 100}],
            **spec,
        }
        metadata = {"name": name, "namespace": self.namespace}
        self.api.create({**kind, "metadata": metadata, "spec": spec})
        self.soon(lambda: len(self.ready(name)) == 1, f"the pod of {name} is ready")
        self.soon(lambda: self.condition(name, "Ready") == "True", f"the Hvpa {name} is Ready")

    def recommend(self, name: str, **target: str) -> None:
        """The VPA recommender: this is the target, as it has been for hours."""
        status = {
            "conditions": [condition("RecommendationProvided", "True", "", ago(hours=2))],
            "recommendation": {"containerRecommendations": [entry("app", target)]},
        }
        self.api.patch_status(VPA, name, self.namespace, status)

    def hvpa(self, name: str) -> Json:
        return self.api.get("Hvpa", name, self.namespace)

    def condition(self, name: str, kind: str) -> str:
        """The status of one of the Hvpa's conditions."""
        conditions = self.hvpa(name)["status"]["conditions"]
        return next(str(condition["status"]) for condition in conditions if condition["type"] == kind)

    def change(self, name: str, spec: Json) -> None:
        """Merge into the Hvpa's spec."""
        self.api.patch("Hvpa", name, self.namespace, {"spec": spec})

    def template(self, name: str) -> Amounts:
        """The requests of the Deployment's template."""
        container = self.api.get("Deployment", name, self.namespace)["spec"]["template"]["spec"][
            "containers"
        ][0]
        return amounts(container["resources"]["requests"])

    def ready(self, name: str) -> list[Json]:
        """The Deployment's pods that are ready and stay."""
        return [pod for pod in self.api.list("Pod", self.namespace, f"app={name}") if is_ready(pod)]

    def have(self, name: str) -> list[Amounts]:
        """The requests that the pods' containers have, by their kubelets."""
        return [
            amounts(pod["status"]["containerStatuses"][0]["resources"]["requests"])
            for pod in self.ready(name)
        ]

    def explain(self, name: str) -> str:
        """The output of `hvpa explain`."""
        argv = [sys.executable, "-m", "hvpa", "explain", name, "-n", self.namespace]
        argv += ["--kubeconfig", str(self.cluster.kubeconfig)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def bound(self, name: str, *, least: int = 1, most: int = 10) -> None:
        """Change `minReplicas` and `maxReplicas` of the HPA."""
        self.api.patch(HPA, name, self.namespace, {"spec": {"minReplicas": least, "maxReplicas": most}})

    def await_pods(self, name: str, count: int) -> None:
        """Wait until so many pods are ready."""
        self.soon(
            lambda: len(self.ready(name)) == count, lambda: f"{count} pods; {len(self.ready(name))} are"
        )

    def await_size(self, name: str, size: Json) -> None:
        """Wait until its pods' containers have such requests, by their kubelets."""
        self.soon(lambda: self.have(name) == [amounts(size)], lambda: f"{size}; they have {self.have(name)}")

    def soon(self, test: Callable[[], object], said: str | Callable[[], str]) -> None:
        """Wait until it holds."""
        wait_for(test, SOON, said, 0.2)
