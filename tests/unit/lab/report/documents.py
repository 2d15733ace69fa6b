"""Reports on documents."""

from __future__ import annotations

from typing import Any

from tests.unit.cli import schema
from tests.unit.cli.support import NOW, Doc, Shell

STALE: dict[str, Any] = {
    "metadata.creationTimestamp": "2026-11-11T10:00:00Z",
    "metadata.managedFields": [
        {"manager": "recommender", "subresource": "status", "time": "2026-11-21T09:55:00Z"}
    ],
    "status.recommendation.containerRecommendations.0.upperBound": {"memory": "2147483649"},
}
"""Of a VPA whose recommender was silent in the last five minutes, which must have changed the upper bound."""

RESOURCES: dict[str, Any] = {"requests": {"cpu": "500m", "memory": "1Gi"}}
CONTAINERS: list[Doc] = [{"name": "app", "image": "app:1", "resources": RESOURCES}]
AGENT: Doc = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "shop", "generation": 1},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": CONTAINERS}},
    },
    "status": {
        "observedGeneration": 1,
        "desiredNumberScheduled": 4,
        "currentNumberScheduled": 4,
        "updatedNumberScheduled": 4,
        "numberReady": 4,
        "numberAvailable": 4,
    },
}
AGENT_VPA: Doc = {
    "apiVersion": "autoscaling.k8s.io/v1beta2",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "agent", "namespace": "shop", "creationTimestamp": "2026-11-01T00:00:00Z"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent"},
        "updatePolicy": {"updateMode": "Off"},
    },
    "status": {
        "conditions": [
            {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z"}
        ],
        "recommendation": {
            "containerRecommendations": [{"containerName": "app", "target": {"cpu": "900m", "memory": "2Gi"}}]
        },
    },
}
ROLLOUT: Doc = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "canary", "namespace": "shop", "generation": 2},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "canary"}},
        "template": {"metadata": {"labels": {"app": "canary"}}, "spec": {"containers": CONTAINERS}},
    },
    "status": {"replicas": 3, "selector": "app=canary"},
}
"""What the HPA `canary` of the shop scales."""
CANARY: list[Doc] = [
    ROLLOUT,
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "canary-1", "namespace": "shop", "labels": {"app": "canary"}},
        "spec": {"containers": CONTAINERS},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    },
]


def reported(shell: Shell, documents: list[Doc], *flags: str) -> Any:
    """The JSON of the report on these documents, which follows its schema."""
    ran = shell.run("report", "-f", shell.file(documents), "--now", NOW, "-o", "json", *flags)
    assert (ran.code, ran.err) == (0, ""), ran.err
    schema.check(ran.json, schema.schema_of("report"))
    return ran.json


def of(report: Any, name: str) -> Any:
    """The workload of this name."""
    return next(workload for workload in report["workloads"] if workload["name"] == name)
