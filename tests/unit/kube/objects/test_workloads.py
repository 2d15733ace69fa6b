"""Workloads of all kinds, read as one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hvpa.api.objects.read_models import Workload
from hvpa.core.workload.rollout import rollout_complete
from hvpa.kube.objects.resources import WORKLOADS

CONTAINER = {"name": "app", "resources": {"requests": {"cpu": "1"}}}
TEMPLATE = {"spec": {"containers": [CONTAINER]}}
LABELS = {"app": "web"}


def read(kind: str, spec: dict[str, Any], status: dict[str, Any]) -> Workload:
    metadata = {"name": "web", "namespace": "shop", "generation": 3}
    workload = WORKLOADS[kind].decode(
        json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode()
    )
    assert (workload.kind, workload.metadata.name, workload.metadata.generation) == (kind, "web", 3)
    return workload


def counts(workload: Workload) -> tuple[int, ...]:
    """Replicas wanted, there, updated, ready and available."""
    status, ready = workload.status, workload.status.ready_replicas
    return (
        workload.spec.replicas,
        status.replicas,
        status.updated_replicas,
        ready,
        status.available_replicas,
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_kind_with_rollouts_says_how_many_are_updated(kind: str) -> None:
    spec = {"replicas": 4, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}
    status = {"replicas": 4, "updatedReplicas": 1, "readyReplicas": 3, "availableReplicas": 2}
    workload = read(kind, spec, {"observedGeneration": 3, **status})
    assert counts(workload) == (4, 4, 1, 3, 2)
    assert not rollout_complete(workload)


@pytest.mark.parametrize(
    ("kind", "selector"),
    [("ReplicaSet", {"matchLabels": LABELS}), ("ReplicationController", LABELS)],
)
def test_a_kind_that_never_replaces_pods_has_no_rollout(kind: str, selector: dict[str, Any]) -> None:
    spec = {"replicas": 4, "selector": selector, "template": TEMPLATE}
    status = {"observedGeneration": 3, "replicas": 4, "readyReplicas": 4, "availableReplicas": 4}
    workload = read(kind, spec, status)
    assert counts(workload) == (4, 4, 4, 4, 4)
    assert rollout_complete(workload)
    assert workload.spec.selector.match_labels == LABELS
    assert [container.name for container in workload.spec.template.spec.containers] == ["app"]


def test_a_controller_may_leave_selector_and_template_out() -> None:
    workload = read("ReplicationController", {"replicas": 1, "selector": None, "template": None}, {})
    assert workload.spec.selector.match_labels == {}
    assert workload.spec.template.spec.containers == []


@pytest.mark.parametrize(
    ("updated", "strategy", "complete"),
    [(5, "RollingUpdate", True), (2, "RollingUpdate", False), (2, "OnDelete", True)],
)
def test_the_replicas_of_a_daemonset_are_its_nodes(updated: int, strategy: str, complete: bool) -> None:
    spec = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, "updateStrategy": {"type": strategy}}
    status = {
        "observedGeneration": 3,
        "desiredNumberScheduled": 5,
        "currentNumberScheduled": 5,
        "updatedNumberScheduled": updated,
        "numberReady": 5,
        "numberAvailable": 5,
    }
    workload = read("DaemonSet", spec, status)
    assert counts(workload) == (5, 5, updated, 5, 5)
    assert rollout_complete(workload) == complete
