"""Rollouts that the operator begins, with the real Deployment and StatefulSet controllers: held at the end of their
maintenance window, tried on the first pods, taken back where those fail. The test writes the VPA's recommendation in
place of the recommender; KWOK acts as the kubelet."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from hvpa.api.values.quantity import parse_memory
from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.manifests import MEMORY_ANNOTATION, START_UP_ANNOTATION
from localcluster.operator.operator import Operator
from localcluster.workloads import samples
from tests.e2e.full import objects, recommended

pytestmark = pytest.mark.owned_cluster
TIMEOUT = 120
PODS = 4
BEFORE, AFTER = 100, 150
"""Mebibytes."""
KINDS = ["Deployment", "StatefulSet"]
SMALL = {"memory": {"value": "1Mi"}}


def begin(
    api: KubeApi, namespace: str, name: str, kind: str, spec: dict[str, Any], start_up: str = "4s"
) -> None:
    """A workload with four pods of 100Mi, which use 50Mi, an Hvpa that scales memory, and a VPA that the test speaks
    for. A pod that uses more than its limit runs out of memory."""
    annotations = {
        MEMORY_ANNOTATION: "50Mi",
        START_UP_ANNOTATION: start_up,
        "hvpa.test/memory-limit": "Enforced",
    }
    limits = {"memory": f"{BEFORE}Mi"}
    made = samples.deployment(
        name, namespace, replicas=PODS, memory=f"{BEFORE}Mi", limits=limits, annotations=annotations
    )
    if kind == "StatefulSet":
        made["kind"] = kind
        del made["spec"]["strategy"]
        made["spec"] |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    else:
        made["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    api.create(made)
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    recommended.vpa(api, namespace, name, reference)
    await_ready(api, namespace, name, kind)
    rules = {"minChange": SMALL, "stabilizationDuration": "0s"}
    vertical = {"name": name, "scaleUp": rules, "scaleDown": {**rules, "minHistory": "0s"}}
    hvpa = objects.hvpa(name, namespace, targetRef=reference, hpa={"deploy": False})
    hvpa["spec"] |= {"vpa": vertical, "weightBasedScalingIntervals": [{"vpaWeight": 100}], **spec}
    api.create(hvpa)


def await_ready(api: KubeApi, namespace: str, name: str, kind: str) -> None:
    def ready() -> bool:
        return bool(api.get(kind, name, namespace).get("status", {}).get("readyReplicas", 0) >= PODS)

    wait_for(ready, TIMEOUT, "the pods are ready")


def sizes(api: KubeApi, namespace: str, name: str) -> list[int]:
    """What the pods that are not being deleted request, in mebibytes."""
    return sorted(
        parse_memory(pod["spec"]["containers"][0]["resources"]["requests"]["memory"]) // objects.MEBI
        for pod in api.list("Pod", namespace, f"app={name}")
        if "deletionTimestamp" not in pod["metadata"]
    )


def held(api: KubeApi, namespace: str, name: str) -> str:
    """What holds the rollout, by the Hvpa's status."""
    rollout: Json = api.get("Hvpa", name, namespace).get("status", {}).get("rollout", {})
    return str(rollout.get("reason", ""))


def in_window(closes: float) -> dict[str, Any]:
    """Requests change in a maintenance window that has been open for an hour, and closes after so many seconds."""
    now = dt.datetime.now(dt.UTC)
    begin, end = now - dt.timedelta(hours=1), now + dt.timedelta(seconds=closes)
    return {"begin": begin.strftime("%H%M%S+0000"), "end": end.strftime("%H%M%S+0000")}


WINDOWED = {
    "vpa": {
        direction: {"updatePolicy": {"updateMode": "MaintenanceWindow"}}
        for direction in ("scaleUp", "scaleDown")
    }
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollout_is_held_where_its_window_ends_and_goes_on_in_the_next(
    cluster: ControlPlane, operator: Operator, namespace: str, kind: str
) -> None:
    """The rollout takes half a minute, and its window closes after 12 seconds."""
    api, name = cluster.api, f"windowed-{kind.lower()}"
    begin(api, namespace, name, kind, {}, start_up="8s")
    api.patch("Hvpa", name, namespace, {"spec": {**WINDOWED, "maintenanceTimeWindow": in_window(12)}})
    recommended.recommend(api, namespace, name, AFTER)
    wait_for(lambda: AFTER in sizes(api, namespace, name), TIMEOUT, "the rollout has begun")
    wait_for(lambda: held(api, namespace, name) == "MaintenanceWindow", TIMEOUT, "the rollout is held")
    await_ready(api, namespace, name, kind)
    pod_sizes = sizes(api, namespace, name)
    assert {BEFORE, AFTER} == set(pod_sizes), pod_sizes
    assert objects.conditions(api, name, namespace)["Ready"][0] == "True"
    api.patch("Hvpa", name, namespace, {"spec": {"maintenanceTimeWindow": in_window(3600)}})
    wait_for(
        lambda: sizes(api, namespace, name) == [AFTER] * PODS,
        TIMEOUT,
        "the rollout goes on in the next window",
    )
    wait_for(lambda: held(api, namespace, name) == "", TIMEOUT, "the status says so")

    def reasons() -> set[str]:
        events = api.list("Event", namespace)
        return {event["reason"] for event in events if event["involvedObject"]["name"] == name}

    wait_for(lambda: {"RolloutHeld", "RolloutResumed"} <= reasons(), TIMEOUT, "both have their Event")


@pytest.mark.parametrize("kind", KINDS)
def test_a_size_that_fails_on_the_first_pods_is_taken_back(
    cluster: ControlPlane, operator: Operator, namespace: str, kind: str
) -> None:
    """The pods use 50Mi, and 40Mi are recommended: the first of them runs out of memory."""
    api, name = cluster.api, f"failed-{kind.lower()}"
    begin(api, namespace, name, kind, {"updateStrategy": {"canary": {"duration": "60s"}}})
    recommended.recommend(api, namespace, name, 40)
    wait_for(
        lambda: "rolledBack" in api.get("Hvpa", name, namespace)["status"], TIMEOUT, "the size is taken back"
    )
    wait_for(lambda: sizes(api, namespace, name) == [BEFORE] * PODS, TIMEOUT, "all pods have the size before")
    status = api.get("Hvpa", name, namespace)["status"]
    assert "container app ran out of memory" in status["rolledBack"]["message"]

    def blocked() -> bool:
        scalings = api.get("Hvpa", name, namespace)["status"].get("lastBlockedScaling", [])
        return [scaling["reason"] for scaling in scalings] == ["RolledBack"]

    wait_for(blocked, TIMEOUT, "the size is not tried again")
    assert not api.get(kind, name, namespace)["spec"].get("paused")
