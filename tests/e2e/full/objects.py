"""What the tests with real controllers have in common: Hvpas as manifests, and looking at what becomes of them."""

from __future__ import annotations

from typing import Any

from hvpa.api.values.quantity import parse_cpu, parse_memory
from localcluster.client.api import Json, KubeApi
from localcluster.controlplane.manifests import CPU_ANNOTATION, MEMORY_ANNOTATION
from localcluster.operator.operator import NAMESPACE, SERVICE_ACCOUNT
from localcluster.workloads import samples

MEBI = 2**20
AIM = "200m"
"""The average CPU that the tests' HPAs aim at."""
OPERATOR = f"{NAMESPACE}:{SERVICE_ACCOUNT}"
"""The operator as the audit log's filters name it."""
OPERATOR_USER = f"system:serviceaccount:{OPERATOR}"
HPA_CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


def deployment(name: str, namespace: str, limits: dict[str, str] | None = None) -> Json:
    """Two replicas that use what the HPA aims at until they get their share of the load: a measurement before that
    must not scale anything."""
    usage = {CPU_ANNOTATION: AIM, MEMORY_ANNOTATION: "16Mi"}
    return samples.deployment(name, namespace, replicas=2, limits=limits, annotations=usage)


def hvpa(name: str, namespace: str, **spec: Any) -> Json:
    """An Hvpa `name` for the Deployment of the same name."""
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, **spec},
    }


def horizontal(*, most: int = 10, least: int = 1, **directions: Any) -> Json:
    """`spec.hpa`: an owned HPA on an average value of CPU."""
    target = {"type": "AverageValue", "averageValue": AIM}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    template = {
        "metadata": {"labels": {"role": "hpa"}},
        "spec": {"minReplicas": least, "maxReplicas": most, "metrics": [metric]},
    }
    return {
        "deploy": True,
        "selector": {"matchLabels": {"role": "hpa"}},
        "template": template,
        **directions,
    }


def vertical(**change: Any) -> Json:
    """`spec.vpa`: an owned VPA that may lower requests soon and by little."""
    small = {"cpu": {"value": "20m"}, "memory": {"value": "5M"}}
    return {
        "deploy": True,
        "selector": {"matchLabels": {"role": "vpa"}},
        "template": {"metadata": {"labels": {"role": "vpa"}}},
        "scaleUp": {"minChange": small},
        "scaleDown": {"minChange": small, "minHistory": "5s"},
        **change,
    }


def replicas(api: KubeApi, name: str, namespace: str) -> int:
    """What the Deployment's spec asks for."""
    return int(api.get("Deployment", name, namespace)["spec"]["replicas"])


def resources(api: KubeApi, name: str, namespace: str) -> tuple[int, int, int, int]:
    """CPU (millicores) and memory (bytes) of the first container: requests, then limits; 0 where none is set."""
    amounts = api.get("Deployment", name, namespace)["spec"]["template"]["spec"]["containers"][0]["resources"]
    requests, limits = amounts.get("requests", {}), amounts.get("limits", {})
    return (
        parse_cpu(requests.get("cpu", 0)),
        parse_memory(requests.get("memory", 0)),
        parse_cpu(limits.get("cpu", 0)),
        parse_memory(limits.get("memory", 0)),
    )


def conditions(api: KubeApi, name: str, namespace: str) -> dict[str, tuple[str, str]]:
    """The Hvpa's conditions: status and reason by type."""
    entries = api.get("Hvpa", name, namespace).get("status", {}).get("conditions", [])
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in entries}


def axes(api: KubeApi, name: str, namespace: str) -> Json:
    """`status.axes` of the Hvpa."""
    axes_status: Json = api.get("Hvpa", name, namespace).get("status", {}).get("axes", {})
    return axes_status
