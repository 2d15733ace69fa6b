"""Reasons that the workload gives: its pods, its rollout, its count, and that it is there."""

from __future__ import annotations

from localcluster.client.api import Json
from localcluster.workloads.bare_manifests import ago, condition
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conditions.row import Row, both, content

QUOTA = 'pods "web-1" is forbidden: exceeded quota: small'
UNSCHEDULABLE = condition("PodScheduled", "False", "Unschedulable") | {"message": "0/3 nodes are available"}
CRASHED: Json = {
    "restartCount": 3,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": ago(minutes=1)}},
}


def reports(scenario: Scenario, *conditions: Json, **status: int) -> None:
    """The workload's controller writes its status."""
    body = {**({"conditions": list(conditions)} if conditions else {}), **status}
    scenario.api.patch_status(scenario.kind, scenario.name, scenario.namespace, body)


def reported(kind: str, status: str, reason: str, message: str) -> Json:
    return condition(kind, status, reason) | {"message": message, "lastUpdateTime": ago(minutes=1)}


def no_pods(scenario: Scenario) -> None:
    for pod in scenario.api.list("Pod", scenario.namespace, f"app={scenario.name}"):
        scenario.api.delete("Pod", pod["metadata"]["name"], scenario.namespace, grace=0)


def paused(scenario: Scenario) -> None:
    scenario.change_workload({"paused": True})
    scenario.set_requests(cpu="600m")
    scenario.rollout(complete=False)
    scenario.vpa_recommends(**scenario.requests)


def on_delete(scenario: Scenario) -> None:
    """Another client raises the requests, and deletes no pod."""
    scenario.change_workload({"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}})
    generation = scenario.set_requests(cpu="600m")["metadata"]["generation"]
    reports(scenario, observedGeneration=generation, updatedReplicas=0)
    scenario.vpa_recommends(**scenario.requests)


def away(scenario: Scenario) -> None:
    scenario.api.delete(scenario.kind, scenario.name, scenario.namespace)


def back(scenario: Scenario) -> None:
    scenario.api.create(scenario.workload)
    content(scenario)


ROWS = (
    Row(
        "a quota refuses pods",
        lambda scenario: reports(scenario, reported("ReplicaFailure", "True", "FailedCreate", QUOTA)),
        ("False", "ReplicaFailure"),
        lambda scenario: reports(scenario, reported("ReplicaFailure", "False", "FailedCreate", "")),
        text=QUOTA,
        to_act=("ReplicaFailure",),
    ),
    Row(
        "a StatefulSet makes no more pods",
        lambda scenario: reports(
            scenario, replicas=1, updatedReplicas=1, readyReplicas=1, availableReplicas=1
        ),
        ("False", "PodsNotCreated"),
        content,
        text="has 1 of 2 pods",
        to_act=("PodsNotCreated",),
        start={"kind": "StatefulSet"},
    ),
    Row(
        "no node has room",
        lambda scenario: scenario.pod("waiting", phase="Pending", conditions=[UNSCHEDULABLE]),
        ("False", "PodsUnschedulable"),
        no_pods,
        text="0/3 nodes are available",
        to_act=("PodsUnschedulable",),
    ),
    Row(
        "a container that keeps terminating",
        lambda scenario: scenario.pod("crashing", container_status=CRASHED),
        ("False", "PodsNotStarting"),
        no_pods,
        text="CrashLoopBackOff: container app ended with Error",
        to_act=("PodsNotStarting",),
    ),
    Row(
        "a rollout that is stuck",
        lambda scenario: reports(
            scenario,
            reported("Progressing", "False", "ProgressDeadlineExceeded", "it has timed out"),
            availableReplicas=1,
        ),
        ("False", "ProgressDeadlineExceeded"),
        lambda scenario: reports(scenario, availableReplicas=2),
        text="it has timed out",
        to_act=("ProgressDeadlineExceeded",),
    ),
    Row(
        "a Deployment that is paused",
        paused,
        ("False", "DeploymentPaused"),
        both(lambda scenario: scenario.change_workload({"paused": None}), content),
        text="spec.paused",
        to_act=("DeploymentPaused",),
    ),
    Row(
        "a StatefulSet that replaces no pod",
        on_delete,
        ("False", "PodsNotReplaced"),
        both(no_pods, lambda scenario: scenario.rollout_completes()),
        text="0 of 2 pods have the size",
        to_act=("PodsNotReplaced",),
        start={"kind": "StatefulSet"},
    ),
    Row(
        "a count of 0",
        lambda scenario: scenario.change_workload({"replicas": 0}),
        ("True", "ScaledToZero"),
        both(lambda scenario: scenario.change_workload({"replicas": 2}), content),
        others=(("HpaActive", "False", "NoPods"),),
        text="0 replicas",
        columns={"DESIRED": "0"},
        to_act=("ScaledToZero",),
    ),
    Row(
        "the target is deleted",
        away,
        ("False", "TargetNotFound"),
        back,
        others=(("HpaActive", "False", "NotReady"), ("VpaActive", "False", "NotReady")),
        gate="TargetNotFound",
        text="does not exist",
        columns={"CURRENT": "", "DESIRED": ""},
        to_act=("TargetNotFound",),
    ),
)
