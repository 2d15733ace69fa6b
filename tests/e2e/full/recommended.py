"""A VPA whose recommendation a test writes, in place of the recommender."""

from __future__ import annotations

import datetime as dt

from localcluster.client.api import Json, KubeApi


def vpa(api: KubeApi, namespace: str, name: str, target: Json) -> None:
    """Create a VPA for `target` that the cluster's recommender leaves alone."""
    spec = {
        "targetRef": target,
        "updatePolicy": {"updateMode": "Off"},
        "recommenders": [{"name": "the-test"}],
    }
    kind = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}
    api.create({**kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec})


def recommend(api: KubeApi, namespace: str, name: str, memory: int) -> None:
    """Recommend so many mebibytes for the container `app`."""
    recommend_target(api, namespace, name, memory=f"{memory}Mi")


def recommend_target(
    api: KubeApi, namespace: str, name: str, others: Json | None = None, **target: str
) -> None:
    """Recommend these amounts for the container `app`, and those for `others`, and no others."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    provided = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": now}
    recommendations = [
        {"containerName": container, "target": wanted}
        for container, wanted in {"app": target, **(others or {})}.items()
    ]
    status = {"conditions": [provided], "recommendation": {"containerRecommendations": recommendations}}
    api.patch("VerticalPodAutoscaler", name, namespace, {"status": status}, subresource="status")
