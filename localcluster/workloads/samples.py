"""Small workloads and recommenders for tests, as manifests."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def deployment(
    name: str,
    namespace: str,
    *,
    replicas: int = 1,
    cpu: str = "200m",
    memory: str = "128Mi",
    limits: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Json:
    """A Deployment of one container, `app`, that replaces its pods without waiting for one another; its pods
    are labelled `app: NAME`, and `annotations` are those of its pods."""
    resources: Json = {"requests": {"cpu": cpu, "memory": memory}}
    if limits:
        resources["limits"] = limits
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "app", "image": "app", "resources": resources}],
                },
            },
        },
    }


def hpa(name: str, namespace: str, target: Json, *, most: int = 10, utilization: int = 50) -> Json:
    """An HPA on CPU utilization without stabilization, for `target` {apiVersion, kind, name}."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": utilization},
                    },
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def vpa(name: str, namespace: str, target: Json, *, mode: str = "Off") -> Json:
    """A VPA for `target` {apiVersion, kind, name}."""
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"targetRef": target, "updatePolicy": {"updateMode": mode}},
    }


def target_of(workload: Json) -> Json:
    """The reference to a workload as HPAs and VPAs hold it."""
    return {
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "name": workload["metadata"]["name"],
    }
