"""Trials and rollbacks of memory that no pod has."""

from __future__ import annotations

from typing import Any

import pytest

from builders.build import at, decided, hvpa, merged, objects, stamp, vpa, workload
from hvpa.core.model import Decision
from tests.unit.core.actuation.cluster_of_runtimes import JAVA, Cluster, many
from tests.unit.core.actuation.sized_pods import decision, desired, resize_condition, running, size_status


def trial(strategy: str, ready: bool) -> Decision:
    """2Gi instead of 1Gi has been tried for 15 minutes on web-1, which still has 1Gi."""
    status = size_status(2, {"app": {"requests": {"memory": "2Gi"}}}, at(minutes=-20))
    status["desired"]["canary"] = {
        "pods": ["web-1"],
        "since": stamp(at(minutes=-15)),
        "previous": [{"name": "app", "requests": {"memory": "1Gi"}}],
    }
    canary = {"pods": 1, "duration": "5m", "rollbackOn": ["NotReady"]}
    own = hvpa(
        merged({"hpa": {"deploy": False}, "updateStrategy": {"type": strategy, "canary": canary}}, JAVA),
        status,
    )
    pods = [running(ready=ready), running("web-2")]
    return decided(objects(own, workload(2), None, vpa({"app": {"cpu": "1", "memory": "2Gi"}}), pods))


@pytest.mark.parametrize("strategy", ["InPlace", "InPlaceOrRollout"])
def test_a_pod_with_the_old_memory_does_not_fail_the_new_one(strategy: str) -> None:
    """web-1 is not ready, with the memory that it always had. Today 2Gi is rolled back, and is not tried for a day."""
    assert trial(strategy, ready=False).status.rolled_back is None


def test_memory_that_no_pod_has_does_not_pass_its_trial() -> None:
    """With `InPlace`, the trial of a JVM's memory begins and ends with pods that have the old memory. After five
    minutes all new pods are created with memory that nothing has tried. (It would be honest to begin no trial, or to
    count its time only with a pod that has the memory.)"""
    canary = {"canary": {"pods": 1, "duration": "5m"}}
    cluster = Cluster(
        4, merged(JAVA, {"updateStrategy": {"type": "InPlace", **canary}}), {"cpu": "1", "memory": "2Gi"}
    )
    runs = [desired(result).canary for result in many(cluster, 10)]
    assert {cluster.memory(name) for name in cluster.pods} == {"1Gi"}
    assert [run.since for run in runs if run is not None and run.since is not None] == []


def test_a_rollout_with_a_canary_does_not_wait_for_a_trial_in_place_of_the_same_memory() -> None:
    """With `InPlaceOrRollout`, the same empty trial delays the rollout, which has a trial of its own."""
    canary = {"canary": {"pods": 1, "duration": "5m"}}
    cluster = Cluster(
        4,
        merged(JAVA, {"updateStrategy": {"type": "InPlaceOrRollout", **canary}}),
        {"cpu": "1", "memory": "2Gi"},
    )
    many(cluster, 2)
    assert cluster.rollouts == 1


@pytest.mark.parametrize("kind", ["Java", "Python"])
def test_cpu_that_no_node_has_does_not_take_memory_back(kind: str) -> None:
    """The kubelets can't give 2 CPUs. Python pods have the new memory by now, so only CPU is rolled back. Java pods
    have the old one, so 2Gi is rolled back as well: new pods get 1Gi again, and 2Gi is held back for a day."""
    memory = "1Gi" if kind == "Java" else "2Gi"
    no_cpu: dict[str, Any] = resize_condition("Pending", "Infeasible", minutes=1)
    no_cpu["message"] = "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1500"
    pods = [
        running(
            f"web-{number}",
            {"cpu": "2", "memory": memory},
            {"requests": {"cpu": "1", "memory": memory}},
            conditions=[no_cpu],
        )
        for number in (1, 2)
    ]
    result = decision(pods, spec={"runtimes": [{"container": "app", "kind": kind}]}, since=at(hours=-1))
    assert result.status.rolled_back is not None
    assert [change.resource for change in result.status.rolled_back.changes] == ["cpu"]
    (size,) = desired(result).containers
    assert size.requests["memory"] == "2Gi"
