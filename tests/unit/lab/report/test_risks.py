"""Each risk, from what causes it to the sentence, and that a healthy workload has none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.support import Doc, Shell, with_fields, without
from tests.unit.lab.report.documents import STALE, of, reported

HPA, VPA = "HPA", "VPA"
OFF = {"spec.updatePolicy.updateMode": "Off"}
APP = "spec.template.spec.containers.0"
TEMPLATE = f"{APP}.resources"
ACTIVE = {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}
CPU_BUSY = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 180}}}


@pytest.fixture
def healthy(shop: list[Doc]) -> list[Doc]:
    """The web server, with nothing to complain of."""
    documents = with_fields(
        shop,
        VPA,
        "web",
        OFF
        | {
            "status.recommendation.containerRecommendations": [
                {
                    "containerName": "app",
                    "target": {"cpu": "500m", "memory": "900Mi"},
                    "lowerBound": {"cpu": "300m", "memory": "500Mi"},
                }
            ]
        },
    )
    documents = with_fields(
        documents,
        HPA,
        "web",
        {
            "spec.maxReplicas": 20,
            "status.conditions": [ACTIVE],
            "status.currentMetrics.0.resource.current": {"averageUtilization": 80, "averageValue": "400m"},
        },
    )
    return [document for document in documents if document["metadata"]["name"] == "web"]


def found(shell: Shell, documents: list[Doc], *flags: str) -> dict[str, str]:
    """The risks of the web server: message by reason."""
    return {
        risk["reason"]: risk["message"] for risk in of(reported(shell, documents, *flags), "web")["risks"]
    }


def test_a_healthy_workload_has_none(shell: Shell, healthy: list[Doc]) -> None:
    assert found(shell, healthy) == {}


CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("LimitTooSmall", "Deployment", {f"{TEMPLATE}.limits.memory": "512Mi"},
     "the memory limit of container app is 0.50 GiB, and its VPA recommends 0.88 GiB: it is likely to be killed; raise "
     "the limit"),
    ("RequestTooSmall", "Deployment", {f"{TEMPLATE}.requests.cpu": "200m"},
     "container app requests 0.20 cores, less than its VPA's lower bound of 0.30 cores: it depends on capacity that "
     "other pods leave unused; raise the request"),
    ("RequestTooSmall", HPA, {"status.currentMetrics": [CPU_BUSY]},
     "pods use 180 % of the cpu that they request: they depend on capacity that other pods leave unused; raise the "
     "request"),
    ("NoRequest", "Deployment", {f"{TEMPLATE}.requests": {"memory": "1Gi"}},
     "container app requests no cpu, so the HPA has no cpu utilization to scale on; set a request, or a target of type "
     "AverageValue"),
    ("NoRequest", "Deployment", {TEMPLATE: {"requests": {"cpu": "500m"}}},
     "container app requests no memory: it is evicted first, and these costs leave out its usage; set a request"),
    ("UtilizationBesideVpa", VPA, {"spec.updatePolicy": {"updateMode": "Recreate"}},
     "HPA web scales on cpu utilization, and VPA web changes the cpu requests that utilization is relative to, so they "
     "chase each other; let one Hvpa use both, or set the VPA's updateMode to Off"),
    ("NoRecommendation", VPA, {"status": {}},
     "the VPA is not used: VerticalPodAutoscaler web has no recommendation yet"),
    ("LowConfidence", VPA, {"status.conditions": [
        {"type": "RecommendationProvided", "status": "True"},
        {"type": "LowConfidence", "status": "True", "message": "two samples"}]},
     "the VPA is not used: two samples"),
    ("FailedGetResourceMetric", HPA, {"status.conditions": [
        {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"}]},
     "the HPA is not used: no metrics"),
    ("FixedReplicas", HPA, {"spec.minReplicas": 6, "spec.maxReplicas": 6},
     "minReplicas and maxReplicas of HPA web are both 6, so it can't scale; raise maxReplicas"),
    ("AtMaxReplicas", HPA, {"spec.maxReplicas": 6, "status.conditions": [
        ACTIVE, {"type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"}]},
     "HPA web needs more than maxReplicas, 6; raise it, or let pods grow"),
    ("HeapTooLarge", "Deployment", {f"{APP}.command": ["java", "-Xmx2g"], f"{TEMPLATE}.limits.memory": "1Gi"},
     "-Xmx2g in the command lets the heap of container app grow beyond its memory limit of 1.00 GiB: it is killed "
     "there; lower the heap, or raise the limit"),
    ("HeapFixed", "Deployment", {f"{APP}.env": [{"name": "NODE_OPTIONS", "value": "--max-old-space-size=256"}]},
     "--max-old-space-size=256 in NODE_OPTIONS in container app needs about 0.31 GiB, and its VPA recommends 0.88 GiB: "
     "more memory does not enlarge the heap; replace the size by a share of the limit"),
    ("ScaledToZero", "Deployment", {"spec.replicas": 0},
     "the workload has 0 replicas: an Hvpa leaves it alone until something else scales it up"),
    ("SingleReplica", "Deployment", {"spec.replicas": 1},
     "the workload has a single replica, so no pod serves while it is replaced; run two"),
    ("RolloutIncomplete", "Deployment", {"status.availableReplicas": 4},
     "the last rollout is not complete: 4 of 6 pods are available"),
    ("RolloutStuck", "Deployment", {"status.conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}]},
     "the last rollout is not progressing (ProgressDeadlineExceeded): timed out"),
    ("Keda", HPA, {"metadata.labels": {"app.kubernetes.io/managed-by": "keda-operator"}},
     "HPA web is KEDA's, which also scales to 0 and back: an Hvpa can watch it (mode Recommend); before mode Apply, "
     "point the ScaledObject at the Hvpa"),
    ("Keda", HPA, {"metadata.ownerReferences": [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
                                                 "name": "web", "uid": "k", "controller": True}]},
     "HPA web is KEDA's, which also scales to 0 and back: an Hvpa can watch it (mode Recommend); before mode Apply, "
     "point the ScaledObject at the Hvpa"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "kind", "fields", "message"), CASES)
def test_a_risk_is_reported_with_its_reason_and_remedy(
    shell: Shell, healthy: list[Doc], reason: str, kind: str, fields: dict[str, Any], message: str
) -> None:
    assert found(shell, with_fields(healthy, kind, "web", fields))[reason] == message


@pytest.mark.parametrize(
    ("created", "since", "age"),
    [
        ("2026-11-21T09:59:20Z", "2026-11-21T09:59:30Z", "30s"),
        ("2026-11-01T00:00:00Z", "2026-11-21T08:00:00Z", "2h"),
        ("2026-11-20T10:30:00Z", "2026-11-01T00:00:00Z", "23h 30m"),
        ("2026-11-20T09:59:00Z", "2026-11-20T10:00:00Z", None),
    ],
)
def test_a_recommendation_of_less_than_a_day_is_a_risk(
    shell: Shell, healthy: list[Doc], created: str, since: str, age: str | None
) -> None:
    provided = {"type": "RecommendationProvided", "status": "True", "lastTransitionTime": since}
    fields = {"metadata.creationTimestamp": created, "status.conditions": [provided]}
    risks = found(shell, with_fields(healthy, VPA, "web", fields))
    if age is None:
        assert risks == {}
    else:
        assert risks["YoungRecommendation"].startswith(f"VPA web has recommended for {age}, less than a day")


QUEUE: Doc = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": 30}},
}


@pytest.mark.parametrize(
    "entry", [None, {"type": ""}, {"type": "External", "external": {"metric": {"name": "queue"}}}]
)
def test_a_metric_without_a_value_is_a_risk(shell: Shell, healthy: list[Doc], entry: Doc | None) -> None:
    """Beside others that have one; where none has a value, the HPA does not count, which is another risk."""
    hpa = next(document for document in healthy if document["kind"] == "HorizontalPodAutoscaler")
    fields = {"spec.metrics": [*hpa["spec"]["metrics"], QUEUE]}
    if entry is not None:
        fields["status.currentMetrics"] = [*hpa["status"]["currentMetrics"], entry]
    risks = found(shell, with_fields(healthy, HPA, "web", fields))
    assert risks["UnknownMetric"].startswith("HPA web has no value for queue (kubectl shows <unknown>)")
    none = found(shell, with_fields(healthy, HPA, "web", {"status.currentMetrics": []}))
    assert list(none) == ["NoMetrics"]


def pod(name: str, ready: bool, **status: Any) -> Doc:
    """A pod of the web server."""
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-11-21T09:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "resources": resources}]},
        "status": {"phase": "Running", "conditions": [condition], **status},
    }


def test_a_container_that_ran_out_of_memory_comes_first(shell: Shell, healthy: list[Doc]) -> None:
    killed = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-11-21T09:55:00Z"}}
    status = [{"name": "app", "lastState": killed}]
    risks = found(shell, [*healthy, pod("web-1", True, containerStatuses=status)])
    assert next(iter(risks)) == "OutOfMemory"
    assert risks["OutOfMemory"] == (
        "container app ran out of memory at 2026-11-21T09:55:00Z with the request and limit that it has now; raise both"
    )


def test_pods_that_are_not_ready_are_named(shell: Shell, healthy: list[Doc]) -> None:
    risks = found(shell, [*healthy, pod("web-1", True), pod("web-2", False)])
    assert risks["UnreadyPods"] == (
        "not ready: web-2; HVPA changes requests once these pods are ready, or have failed for long"
    )


def test_a_request_that_a_limit_range_gives_is_none_that_is_missing(shell: Shell, healthy: list[Doc]) -> None:
    documents = with_fields(healthy, "Deployment", "web", {TEMPLATE: {}})
    assert "NoRequest" in found(shell, documents)
    assert "NoRequest" not in found(shell, [*documents, pod("web-1", True)])


@pytest.mark.parametrize(
    "policy",
    [
        {"containerName": "*", "controlledResources": ["memory"]},
        {"containerName": "app", "mode": "Off"},
    ],
)
def test_a_vpa_that_leaves_cpu_alone_chases_nothing(
    shell: Shell, healthy: list[Doc], policy: dict[str, Any]
) -> None:
    acting = {"spec.updatePolicy": {"updateMode": "Recreate"}}
    documents = with_fields(healthy, VPA, "web", acting)
    assert "UtilizationBesideVpa" in found(shell, documents)
    policies = {"spec.resourcePolicy": {"containerPolicies": [policy]}}
    assert "UtilizationBesideVpa" not in found(shell, with_fields(documents, VPA, "web", policies))


def test_an_hpa_on_average_value_chases_nothing(shell: Shell, healthy: list[Doc]) -> None:
    target = {"type": "AverageValue", "averageValue": "400m"}
    documents = with_fields(healthy, VPA, "web", {"spec.updatePolicy": {"updateMode": "Recreate"}})
    documents = with_fields(documents, HPA, "web", {"spec.metrics.0.resource.target": target})
    assert "UtilizationBesideVpa" not in found(shell, documents)


def test_a_recommender_that_is_silent_for_three_of_its_intervals_is_a_risk(
    shell: Shell, healthy: list[Doc]
) -> None:
    documents = with_fields(healthy, VPA, "web", STALE)
    assert found(shell, documents)["RecommendationStale"].startswith(
        "the VPA is not used: the status of VerticalPodAutoscaler web was last updated at 2026-11-21T09:55:00Z"
    )
    assert found(shell, documents, "--vpa-recommender-interval", "2m") == {}


@pytest.mark.parametrize(("kind", "reason"), [(HPA, "SeveralHpas"), (VPA, "SeveralVpas")])
def test_two_of_a_kind_are_one_too_many(shell: Shell, healthy: list[Doc], kind: str, reason: str) -> None:
    documents = with_fields(healthy, kind, "web", {"metadata.name": "also"})
    second = [document for document in documents if document["metadata"]["name"] == "also"]
    assert "also, web" in found(shell, [*healthy, *second])[reason]


def test_what_an_hvpa_says_of_itself_is_passed_on(shell: Shell, gardener: list[Doc]) -> None:
    ready = {"type": "Ready", "status": "False", "reason": "WriteFailed", "message": "denied by a policy"}
    documents = with_fields(gardener, "Hvpa", "hvpa-sample", {"status": {"conditions": [ready]}})
    risks = reported(shell, documents)["workloads"][0]["risks"]
    assert {
        "reason": "HvpaNotReady",
        "message": "Hvpa hvpa-sample is not Ready (WriteFailed): denied by a policy",
    } in risks


def test_a_runtime_that_no_hvpa_declares_is_reported(shell: Shell, gardener: list[Doc]) -> None:
    def risks(documents: list[Doc]) -> dict[str, str]:
        (workload,) = reported(shell, documents)["workloads"]
        return {risk["reason"]: risk["message"] for risk in workload["risks"]}

    documents = with_fields(gardener, "Deployment", "resource-consumer", {f"{APP}.command": ["java"]})
    assert "is Java, which sizes its heap" in risks(documents)["RuntimeUndeclared"]
    runtimes = [{"container": "resource-consumer", "kind": "Java"}]
    declared = with_fields(documents, "Hvpa", "hvpa-sample", {"spec.runtimes": runtimes})
    assert "RuntimeUndeclared" not in risks(declared)
    assert "RuntimeUndeclared" not in risks(gardener)


def test_demand_that_the_path_has_no_room_for_is_reported(shell: Shell, healthy: list[Doc]) -> None:
    documents = with_fields(healthy, HPA, "web", {"spec.maxReplicas": 6, "status.currentMetrics": [CPU_BUSY]})
    policies = {"containerPolicies": [{"containerName": "*", "maxAllowed": {"cpu": "500m"}}]}
    risks = found(shell, with_fields(documents, VPA, "web", {"spec.resourcePolicy": policies}))
    assert risks["Saturated"].endswith("raise maxReplicas or maxAllowed")


def test_without_a_recommender_there_is_nothing_to_judge(shell: Shell, healthy: list[Doc]) -> None:
    report = reported(shell, without(healthy, HPA, VPA))
    assert report["workloads"] == []
    assert report["withoutRecommender"] == [{"kind": "Deployment", "namespace": "shop", "name": "web"}]
