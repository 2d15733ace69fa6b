"""Objects of a workload whose pods are resized in place, as a cluster holds them."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.support import Doc

SINCE = "2026-11-21T09:57:00Z"
STARTED = "2026-11-21T08:00:00Z"
SMALL = {"cpu": "500m", "memory": "500M"}
LARGE = {"cpu": "800m", "memory": "600M"}


def hvpa(kind: str = "InPlace", mode: str = "Apply", status: Doc | None = None, **spec: Any) -> Doc:
    """An Hvpa that was decided to have 4 pods of LARGE."""
    desired = {
        "replicas": 4,
        "containers": [{"name": "app", "requests": LARGE}],
        "since": SINCE,
        "generation": 1,
    }
    actuation = {"resized": "1/4", "pods": 4, "deferred": 1, "message": "pod web-deferred: no room"}
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "PodsNotResized",
        "message": "pod web-deferred: no room",
        "lastTransitionTime": "2026-11-21T09:58:00Z",
        "observedGeneration": 2,
    }
    in_place = {"desired": desired, "actuation": actuation} if kind != "Rollout" else {}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web", "generation": 2, "uid": "h"},
        "spec": {
            "mode": mode,
            "targetRef": {"kind": "Deployment", "name": "web"},
            "vpa": {"name": "web"},
            "updateStrategy": {"type": kind},
            **spec,
        },
        "status": {"conditions": [ready], **in_place, **(status or {})},
    }


def deployment(replicas: int = 4) -> Doc:
    """The workload, whose template says SMALL."""
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "uid": "w", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "resources": {"requests": SMALL}}]},
            },
        },
        "status": {"observedGeneration": 1, **dict.fromkeys(counts, replicas)},
    }


def vpa(target: Doc | None = None) -> Doc:
    """A VPA that recommends LARGE, or `target`."""
    recommended = [{"containerName": "app", "target": target or LARGE}]
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "Off"},
        },
        "status": {
            "recommendation": {"containerRecommendations": recommended},
            "conditions": [{"type": "RecommendationProvided", "status": "True"}],
        },
    }


def pod(name: str, asked: Doc | None = None, has: Doc | None = None, **changes: Any) -> Doc:
    """A ready pod that is `asked` to have LARGE or these requests, and `has` the same or others. Of `changes`,
    `condition` is one more condition, and the rest are fields of its metadata."""
    requests = LARGE if asked is None else asked
    condition = changes.pop("condition", None)
    policy = changes.pop("resizePolicy", [])
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": STARTED}]
    status = {"name": "app", "restartCount": 3, "resources": {"requests": has or requests}}
    owner = {"kind": "Deployment", "name": "web", "uid": "w", "controller": True, "apiVersion": "apps/v1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {"app": "web"},
            "ownerReferences": [owner],
            **changes,
        },
        "spec": {
            "containers": [{"name": "app", "resources": {"requests": requests}, "resizePolicy": policy}]
        },
        "status": {
            "phase": "Running",
            "startTime": STARTED,
            "conditions": [*conditions, *([condition] if condition else [])],
            "containerStatuses": [status],
        },
    }


def resizing(kind: str, reason: str, message: str, since: str = "2026-11-21T09:59:00Z") -> Doc:
    """A condition of a pod's resize."""
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }
