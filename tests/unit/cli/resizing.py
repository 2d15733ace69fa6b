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
    size = {"name": "app", "requests": LARGE}
    desired = {"replicas": 4, "containers": [size], "since": SINCE, "generation": 1}
    no_room = "pod web-deferred: no room"
    actuation = {"resized": "1/4", "pods": 4, "deferred": 1, "message": no_room}
    since = {"lastTransitionTime": "2026-11-21T09:58:00Z", "observedGeneration": 2}
    ready = {"type": "Ready", "status": "False", "reason": "PodsNotResized", "message": no_room, **since}
    in_place = {"desired": desired, "actuation": actuation} if kind != "Rollout" else {}
    target, strategy = {"kind": "Deployment", "name": "web"}, {"type": kind}
    return {
        "apiVersion": "autoscaling.k8s.io/v1alpha1",
        "kind": "Hvpa",
        "metadata": {"name": "web", "generation": 2, "uid": "h"},
        "spec": {
            "mode": mode,
            "targetRef": target,
            "vpa": {"name": "web"},
            "updateStrategy": strategy,
            **spec,
        },
        "status": {"conditions": [ready], **in_place, **(status or {})},
    }


def deployment(replicas: int = 4) -> Doc:
    """The workload, whose template says SMALL."""
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    pods = {"containers": [{"name": "app", "resources": {"requests": SMALL}}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pods}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "uid": "w", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"observedGeneration": 1, **dict.fromkeys(counts, replicas)},
    }


def vpa(target: Doc | None = None) -> Doc:
    """A VPA that recommends LARGE, or `target`."""
    recommended = [{"containerName": "app", "target": target or LARGE}]
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"targetRef": workload, "updatePolicy": {"updateMode": "Off"}},
        "status": {
            "recommendation": {"containerRecommendations": recommended},
            "conditions": [{"type": "RecommendationProvided", "status": "True"}],
        },
    }


def pod(name: str, asked: Doc | None = None, has: Doc | None = None, **changes: Any) -> Doc:
    """A ready pod that is `asked` to have LARGE or these requests, and `has` the same or others. Of `changes`,
    `condition` is one more condition, and the rest are fields of its metadata."""
    requests = LARGE if asked is None else asked
    condition, policy = changes.pop("condition", None), changes.pop("resizePolicy", [])
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": STARTED}]
    conditions += [condition] if condition else []
    status = {"name": "app", "restartCount": 3, "resources": {"requests": has or requests}}
    owner = {"kind": "Deployment", "name": "web", "uid": "w", "controller": True, "apiVersion": "apps/v1"}
    meta = {"name": name, "uid": name, "labels": {"app": "web"}, "ownerReferences": [owner], **changes}
    container = {"name": "app", "resources": {"requests": requests}, "resizePolicy": policy}
    running = {"phase": "Running", "startTime": STARTED, "conditions": conditions}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container]},
        "status": {**running, "containerStatuses": [status]},
    }


def resizing(kind: str, reason: str, message: str, since: str = "2026-11-21T09:59:00Z") -> Doc:
    """A condition of a pod's resize."""
    time = {"lastTransitionTime": since}
    return {"type": kind, "status": "True", "reason": reason, "message": message, **time}
