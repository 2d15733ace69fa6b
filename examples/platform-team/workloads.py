"""Prints the 300 workloads of docs/platform-team.md: ten kinds, in the namespaces of twelve teams.

    python3 examples/platform-team/workloads.py              # a List for `kubectl apply -f -`
    python3 examples/platform-team/workloads.py red          # those of one team, as they would be in its repository

Some request too much and some too little. The annotations `kwok.x-k8s.io/usage-…` are the usage of simulated pods.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

TEAMS = (
    *("red", "orange", "yellow", "green", "blue", "indigo"),
    *("violet", "brown", "black", "white", "grey", "pink"),
)
KINDS = {
    "web": 3,  # a Deployment with an HPA on CPU utilization
    "api": 2,  # with an HPA on the CPU of a pod
    "queue": 1,  # with an HPA that KEDA made
    "worker": 9,  # without HPA and VPA
    "sized": 2,  # with a VPA that acts
    "store": 2,  # a StatefulSet
    "agent": 1,  # a DaemonSet
    "java": 2,  # a heap of its own
    "mesh": 2,  # a sidecar container
    "shared": 1,  # resources of the pod itself
}
"""Workloads of each kind in each namespace."""
TIERS = {"web": "web", "api": "web", "store": "data"}
SERVICE = {"cpu": "100m", "memory": "128Mi"}


def objects(team: str) -> Iterator[Json]:
    """All objects of a team."""
    number = TEAMS.index(team)
    labels = {"team": team, "cost-center": f"cc-{number % 3 + 1}"}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": labels}}
    for kind, count in KINDS.items():
        for index in range(1, count + 1):
            yield from workload(kind, f"{kind}-{index}", team, load=(number + index) % 6)
    yield cron_job(team)
    yield {**pod(team), "apiVersion": "v1", "kind": "Pod"}


def workload(kind: str, name: str, team: str, load: int) -> Iterator[Json]:
    """A workload with a load of 0 to 5, and its HPA or VPA."""
    spec: Json = {"selector": {"matchLabels": {"app": name}}, "template": template(kind, name, load)}
    if kind not in ("web", "api", "queue", "agent"):  # those have an HPA, or a pod on each node
        spec["replicas"] = 2 if kind in TIERS else 1
    if kind == "store":
        spec["serviceName"] = name
    made = {"store": "StatefulSet", "agent": "DaemonSet"}.get(kind, "Deployment")
    meta = {"name": name, "namespace": team, "labels": {"app": name, "tier": TIERS.get(kind, "back")}}
    yield {"apiVersion": "apps/v1", "kind": made, "metadata": meta, "spec": spec}
    target = {"apiVersion": "apps/v1", "kind": made, "name": name}
    if kind in ("web", "api", "queue"):
        yield hpa(kind, meta, target)
    if kind == "sized":
        yield {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {**meta, "labels": {"app": name}},
            "spec": {"targetRef": target, "updatePolicy": {"updateMode": "Recreate"}},
        }


def template(kind: str, name: str, load: int) -> Json:
    """The pod template. With a load of 0 to 3, pods use less than they request."""
    usage = {
        "kwok.x-k8s.io/usage-cpu": f"{15 + 25 * load}m",
        "kwok.x-k8s.io/usage-memory": f"{20 + 30 * load}Mi",
    }
    container: Json = {"name": "app", "image": f"example.com/{kind}:1", "resources": {"requests": SERVICE}}
    spec: Json = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    match kind:
        case "java":
            container["env"] = [{"name": "JAVA_TOOL_OPTIONS", "value": "-Xmx192m"}]
            container["resources"] = {"requests": SERVICE, "limits": {"memory": "320Mi"}}
        case "mesh":
            small = {"requests": {"cpu": "50m", "memory": "32Mi"}}
            proxy = {"name": "proxy", "image": "example.com/proxy:1", "restartPolicy": "Always"}
            spec["initContainers"] = [{**proxy, "resources": small}]
            usage |= {"kwok.x-k8s.io/usage-cpu.proxy": "20m", "kwok.x-k8s.io/usage-memory.proxy": "40Mi"}
        case "shared":
            container["resources"] = {}
            spec["resources"] = {"requests": SERVICE, "limits": {"memory": "512Mi"}}
    return {"metadata": {"labels": {"app": name}, "annotations": usage}, "spec": spec}


def hpa(kind: str, meta: Json, target: Json) -> Json:
    """The HPA of a workload."""
    value = {"type": "Utilization", "averageUtilization": 70}
    if kind == "api":
        value = {"type": "AverageValue", "averageValue": "70m"}
    made: Json = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {**meta, "labels": {"app": meta["name"], "made-by": "team"}},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 2,
            "maxReplicas": 4,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": value}}],
        },
    }
    if kind == "queue":
        owner = {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "name": meta["name"],
            "uid": meta["name"],
        }
        made["metadata"] |= {
            "name": f"keda-hpa-{meta['name']}",
            "ownerReferences": [{**owner, "controller": True}],
        }
        made["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "keda-operator"}
    return made


def pod(team: str) -> Json:
    """A pod without an owner, which nothing may resize or replace."""
    container = {"name": "app", "image": "example.com/debug:1", "resources": {"requests": SERVICE}}
    return {"metadata": {"name": "debug", "namespace": team}, "spec": {"containers": [container]}}


def cron_job(team: str) -> Json:
    """A CronJob, which an Hvpa can't scale."""
    made = {"spec": {**pod(team)["spec"], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": team},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": made}}},
    }


if __name__ == "__main__":
    chosen = sys.argv[1:] or TEAMS
    items = [each for team in chosen for each in objects(team)]
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1))
