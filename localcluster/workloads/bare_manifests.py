"""Manifests, statuses and times for scenarios, as plain JSON."""

from __future__ import annotations

import datetime as dt

from hvpa.api.objects.kinds import api_version_of
from localcluster.client.api import Json

AT_ONCE: Json = {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1k"}}}
"""Any change of requests is large enough."""
ROLLOUTS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "names": {"kind": "Rollout", "plural": "rollouts", "singular": "rollout"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            }
        ],
    },
}
"""A CRD like that of Argo Rollouts, whose objects may have any fields, with the subresources `status` and `scale`."""


def merged(base: Json, changes: Json) -> Json:
    """`base` with `changes` merged into it as a JSON merge patch would."""
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def deployment(name: str, namespace: str, replicas: int = 2, kind: str = "Deployment") -> Json:
    """A workload with a single container `app` that requests 500m and 500M, with limits of twice as much."""
    resources = {
        "requests": {"cpu": "500m", "memory": "500M"},
        "limits": {"cpu": "1", "memory": "1G"},
    }
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "app", "image": "app", "resources": resources}]},
        },
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    if kind == "DaemonSet":
        del spec["replicas"]
    if kind == "ReplicationController":
        spec["selector"] = {"app": name}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version_of(kind), "kind": kind, "metadata": metadata, "spec": spec}


def hvpa(name: str, namespace: str, changes: Json | None = None, kind: str = "Deployment") -> Json:
    """An Hvpa that owns HPA (1 to 10 replicas, on CPU) and VPA; without intervals, so all scaling is horizontal.
    `changes` are merged into its spec."""
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    metrics[0]["resource"]["target"]["averageUtilization"] = 100  # type: ignore[index]
    labels = {"hvpa": name}
    spec: Json = {
        "targetRef": {"apiVersion": api_version_of(kind), "kind": kind, "name": name},
        "hpa": {
            "deploy": True,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"minReplicas": 1, "maxReplicas": 10, "metrics": metrics},
            },
        },
        "vpa": {
            "deploy": True,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}},
            "scaleUp": AT_ONCE,
            "scaleDown": AT_ONCE,
        },
    }
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": name, "namespace": namespace},
        "spec": merged(spec, changes or {}),
    }


def weight(percent: float) -> Json:
    """A change of an Hvpa's spec: a single interval of this vertical weight for all counts."""
    return {"weightBasedScalingIntervals": [{"vpaWeight": percent}]}


def trajectory(*, least: Json | None = None, most: int = 20, metrics: tuple[str, ...] = ("cpu",)) -> Json:
    """A change of an Hvpa's spec: joint scaling up to `most` replicas, by an HPA on the utilization of these
    resources (100 percent of the requests) and a VPA; pods are replaced. `least` is the VPA's minAllowed, the start
    of the path."""
    target = {"type": "Utilization", "averageUtilization": 100}
    reported = [
        {"type": "Resource", "resource": {"name": resource, "target": target}} for resource in metrics
    ]
    changes: Json = {
        "blend": "Trajectory",
        "updateStrategy": {"type": "Rollout"},
        "hpa": {"template": {"spec": {"maxReplicas": most, "metrics": reported}}},
    }
    if least is None:
        return changes
    policy = {"containerPolicies": [{"containerName": "*", "minAllowed": least}]}
    return merged(changes, {"vpa": {"template": {"spec": {"resourcePolicy": policy}}}})


def request(workload: Json, **requests: str) -> None:
    """Set requests of the container `app` of a workload that is not created yet, without limits."""
    workload["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}


def closed_window() -> Json:
    """A change of an Hvpa's spec: a daily maintenance window that is closed now, and for hours."""
    opens = dt.datetime.now(dt.UTC) + dt.timedelta(hours=12)
    ends = opens + dt.timedelta(seconds=1)
    return {
        "maintenanceTimeWindow": {
            "begin": opens.strftime("%H%M%S+0000"),
            "end": ends.strftime("%H%M%S+0000"),
        }
    }


VERTICAL_ONLY: Json = {"hpa": None}
"""A change of an Hvpa's spec: no HPA, so all scaling is vertical."""
HORIZONTAL_ONLY: Json = {"vpa": None}
"""A change of an Hvpa's spec: no VPA."""


def rfc3339(when: dt.datetime) -> str:
    """A time as Kubernetes writes it."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(**age: float) -> str:
    """A time in the past, such as `ago(hours=2)`."""
    return rfc3339(dt.datetime.now(dt.UTC) - dt.timedelta(**age))


def time_of(text: str) -> dt.datetime:
    """The time of a Kubernetes timestamp."""
    return dt.datetime.fromisoformat(text)


def condition(kind: str, status: str, reason: str, since: str | None = None) -> Json:
    """A condition as controllers write it."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since or ago(minutes=1),
    }


def entry(container: str, target: Json) -> Json:
    """A container's entry of a VPA recommendation."""
    return {
        "containerName": container,
        "target": target,
        "lowerBound": target,
        "upperBound": target,
        "uncappedTarget": target,
    }
