"""Each reason of a condition, from its true cause on an API server to what `kubectl get`, the conditions and
`hvpa explain` show, and back to healthy (docs/decisions/0024). Rows may be added: a row is what happens, what is
reported, and what ends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.e2e.bare.conftest import Play, Start
from tests.e2e.bare.manifests import ago, condition, entry, merged, weight
from tests.e2e.bare.stage import Stage
from tests.e2e.bare.test_explain import explained
from tests.e2e.world.controlplane import ControlPlane
from tests.e2e.world.kube import Json
from tests.e2e.world.operator import Operator

Act = Callable[[Stage], object]
GB = 1_000_000_000


class Row(NamedTuple):
    """One reason: how it comes about, what is reported, and how it goes. `ready` is the status and the reason of
    `Ready`; `condition` names another condition with its own status and reason, `text` stands in its message (that of
    `Ready` where there is none)."""

    name: str
    cause: Act
    ready: tuple[str, str]
    cure: Act
    condition: tuple[str, str, str] | None = None
    text: str = ""
    columns: Mapping[str, str] = MappingProxyType({})


def content(stage: Stage) -> None:
    """Both recommenders ask for what there is, and the rollout is complete."""
    stage.rollout_completes()
    stage.hpa_wants(stage.replicas)
    stage.vpa_recommends(**stage.requests)


def tell_workload(stage: Stage, *conditions: Json, **status: int) -> None:
    """The workload's controller writes its conditions."""
    stage.api.patch_status(
        stage.kind, stage.name, stage.namespace, {"conditions": list(conditions), **status}
    )


def reported(kind: str, status: str, reason: str, message: str) -> Json:
    return condition(kind, status, reason) | {"message": message, "lastUpdateTime": ago(minutes=1)}


def waiting_pod(stage: Stage, **status: Any) -> None:
    stage.pod("stuck", phase="Pending", **status)


def no_pods(stage: Stage) -> None:
    for one in stage.api.list("Pod", stage.namespace, f"app={stage.name}"):
        stage.api.delete("Pod", one["metadata"]["name"], stage.namespace)


def hpa_has_no_metrics(stage: Stage) -> None:
    failed = condition("ScalingActive", "False", "FailedGetResourceMetric") | {"message": "no metrics known"}
    status = {"conditions": [failed], "currentMetrics": None}
    stage.api.patch_status("HorizontalPodAutoscaler", stage.name, stage.namespace, status)


def recommender_stops(stage: Stage) -> None:
    """The recommender writes a last time; its upper bounds would move from now on."""
    moving = entry("app", stage.requests)
    moving["upperBound"] = {"memory": str(2 * GB + 1)}
    provided = condition("RecommendationProvided", "True", "", ago(hours=2))
    status = {"conditions": [provided], "recommendation": {"containerRecommendations": [moving]}}
    stage.api.patch_status("VerticalPodAutoscaler", stage.name, stage.namespace, status)


def contested(stage: Stage) -> None:
    """Somebody reverts the count twice. On the way down the operator waits for five minutes, which is long enough to
    look at it."""
    stage.hpa_wants(1)
    for _ in range(2):
        stage.await_replicas(1)
        stage.rollout_completes()
        stage.change_workload({"replicas": 2}, "gitops")


def uncontested(stage: Stage) -> None:
    stage.change_workload({"replicas": 1}, "gitops")
    content(stage)


def paused(stage: Stage) -> None:
    stage.change_workload({"paused": True})
    stage.set_requests(cpu="600m")
    stage.rollout(complete=False)
    stage.vpa_recommends(**stage.requests)


def resumed(stage: Stage) -> None:
    stage.change_workload({"paused": None})
    content(stage)


def away(stage: Stage) -> None:
    stage.api.delete(stage.kind, stage.name, stage.namespace)


def back(stage: Stage) -> None:
    stage.api.create(stage.workload)
    content(stage)


def off(stage: Stage) -> None:
    stage.change({"hpa": {"scaleUp": {"updatePolicy": {"updateMode": "Off"}}}})
    stage.hpa_wants(6)


def on(stage: Stage) -> None:
    stage.change({"hpa": {"scaleUp": None}})
    stage.await_replicas(4)
    content(stage)


def mode(name: str) -> Act:
    return lambda stage: stage.change({"mode": name})


QUOTA = 'pods "web-1" is forbidden: exceeded quota: small'
ROWS = (
    Row(
        "a quota refuses pods",
        lambda stage: tell_workload(stage, reported("ReplicaFailure", "True", "FailedCreate", QUOTA)),
        ("False", "ReplicaFailure"),
        lambda stage: tell_workload(stage, reported("ReplicaFailure", "False", "FailedCreate", "")),
        text=QUOTA,
    ),
    Row(
        "no node has room",
        lambda stage: waiting_pod(
            stage,
            conditions=[
                condition("PodScheduled", "False", "Unschedulable") | {"message": "0/3 nodes are available"}
            ],
        ),
        ("False", "PodsUnschedulable"),
        no_pods,
        text="0/3 nodes are available",
    ),
    Row(
        "an image that is not there",
        lambda stage: waiting_pod(stage, container_status={"state": {"waiting": {"reason": "ErrImagePull"}}}),
        ("False", "PodsNotStarting"),
        no_pods,
        text="ImagePullBackOff",
    ),
    Row(
        "a rollout that is stuck",
        lambda stage: tell_workload(
            stage,
            reported("Progressing", "False", "ProgressDeadlineExceeded", "it has timed out"),
            availableReplicas=1,
        ),
        ("False", "ProgressDeadlineExceeded"),
        lambda stage: tell_workload(stage, availableReplicas=2),
        text="it has timed out",
    ),
    Row(
        "a Deployment that is paused",
        paused,
        ("False", "DeploymentPaused"),
        resumed,
        text="spec.paused",
    ),
    Row(
        "the HPA has no metrics",
        hpa_has_no_metrics,
        ("False", "HpaInactive"),
        content,
        condition=("HpaActive", "False", "FailedGetResourceMetric"),
        text="no metrics known",
    ),
    Row(
        "the recommender is down",
        recommender_stops,
        ("False", "VpaInactive"),
        content,
        condition=("VpaActive", "False", "RecommendationStale"),
        text="is its recommender running",
    ),
    Row(
        "somebody reverts replicas",
        contested,
        ("False", "Contested"),
        uncontested,
        condition=("Contested", "True", "SetBack"),
        text="gitops keeps reverting replicas: remove spec.replicas from what it applies",
        columns={"BLOCKED": "Contested", "DESIRED": "1"},
    ),
    Row(
        "the target is deleted",
        away,
        ("False", "TargetNotFound"),
        back,
        text="does not exist",
        columns={"CURRENT": "", "DESIRED": "", "BLOCKED": "NotBlocked"},
    ),
    Row(
        "scaling out is switched off",
        off,
        ("True", "HeldBack"),
        on,
        condition=("ScalingBlocked", "True", "UpdatePolicy"),
        text="replicas 2 -> 4 held by UpdatePolicy",
        columns={"CURRENT": "2", "DESIRED": "4", "BLOCKED": "UpdatePolicy"},
    ),
    Row(
        "mode Recommend",
        mode("Recommend"),
        ("True", "Recommend"),
        mode("Apply"),
        columns={"MODE": "Recommend"},
    ),
    Row(
        "mode Paused",
        mode("Paused"),
        ("True", "Paused"),
        mode("Apply"),
        condition=("Paused", "True", "Paused"),
        columns={"MODE": "Paused"},
    ),
    Row(
        "a time zone that is none",
        lambda stage: stage.change(
            {"maintenanceWindows": [{"schedule": "0 3 * * *", "duration": "1h", "timeZone": "Mars/Utopia"}]}
        ),
        ("False", "InvalidSpec"),
        lambda stage: stage.change({"maintenanceWindows": None}),
        text="timeZone",
        columns={"DESIRED": ""},
    ),
    Row(
        "the VPA asks for more than maxAllowed",
        lambda stage: stage.change(
            {
                "vpa": {
                    "template": {
                        "spec": {
                            "resourcePolicy": {
                                "containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "500m"}}]
                            }
                        }
                    }
                }
            }
        ),
        ("True", "Saturated"),
        lambda stage: stage.change({"vpa": {"template": {"spec": None}}}),
        text="the VPA's target is not below maxAllowed, 500m",
    ),
)


def shown(plane: ControlPlane, stage: Stage) -> dict[str, str]:
    """What `kubectl get` shows, by column."""
    lines = plane.kubectl("get", "hvpa", stage.name, "-n", stage.namespace).stdout.splitlines()
    starts = [one.start() for one in re.finditer(r"\S+", lines[0])]
    ends = [*starts[1:], None]
    return {
        lines[0][start:end].strip(): lines[1][start:end].strip()
        for start, end in zip(starts, ends, strict=True)
    }


def agree(plane: ControlPlane, stage: Stage, kind: str, status: str, reason: str) -> None:
    """`hvpa explain` says of this condition what the status says."""
    found = next(one for one in explained(plane, stage)["conditions"] if one["type"] == kind)
    assert (found["status"], found["reason"]) == (status, reason)
    assert found["message"] == stage.condition(kind)["message"]


@pytest.fixture
def quick(start: Start, space: str) -> Operator:
    """An operator for which a recommendation is stale after three seconds."""
    return start("--namespace", space, "--vpa-recommender-interval", "1s")


def test_each_reason_comes_with_its_cause_and_goes_with_it(
    plane: ControlPlane, play: Play, quick: Operator
) -> None:
    stages = {row.name: play(create=False, changes=merged(weight(50), {})) for row in ROWS}
    for stage in stages.values():
        stage.create(wait=False)
    for stage in stages.values():
        stage.await_owned()
        content(stage)
    for stage in stages.values():
        stage.await_condition("Ready", "True", "Reconciled")
    for row in ROWS:
        row.cause(stages[row.name])
    for row in ROWS:
        stage = stages[row.name]
        ready = stage.await_condition("Ready", *row.ready)
        condition = row.condition or ("Ready", *row.ready)
        message = stage.await_condition(*condition)["message"] if row.condition else ready["message"]
        assert row.text in message, row.name
        columns = shown(plane, stage)
        assert (columns["READY"], row.name) == (row.ready[0], row.name)
        assert row.columns.items() <= columns.items(), (row.name, columns)
        if condition[2] != "RecommendationStale" and row.ready[1] != "InvalidSpec":
            agree(plane, stage, *condition)
    for row in ROWS:
        row.cure(stages[row.name])
    for row in ROWS:
        stage = stages[row.name]
        stage.await_condition("Ready", "True", "Reconciled")
        assert shown(plane, stage)["READY"] == "True", row.name
