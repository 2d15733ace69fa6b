"""`hvpa report` on a real API server: with rights to list alone it says what Hvpas would set, and writes
nothing."""

from __future__ import annotations

import json

import pytest

from hvpa.cli.main import main
from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import ago, condition, deployment, entry
from tests.e2e.bare.accounts import new_account, rule

RIGHTS = (
    rule("apps", ["deployments", "statefulsets"], ["list"]),
    rule("", ["pods"], ["list"]),
    rule("autoscaling", ["horizontalpodautoscalers"], ["list"]),
    rule("autoscaling.k8s.io", ["hvpas", "verticalpodautoscalers"], ["list"]),
)


def busy(plane: ControlPlane, namespace: str) -> None:
    """A web server of 2 pods of 500m and 500M under an HPA that wants 4, and a worker that nothing scales."""
    for name in ("web", "worker"):
        made = plane.api.create(deployment(name, namespace))
        generation = made["metadata"]["generation"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
        plane.api.patch_status("Deployment", name, namespace, {"observedGeneration": generation, **counts})
    web = samples.target_of(deployment("web", namespace))
    plane.api.create(samples.hpa("web", namespace, web, utilization=50))
    current = {"averageUtilization": 100, "averageValue": "500m"}
    status = {
        "currentReplicas": 2,
        "desiredReplicas": 4,
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": current}}],
        "conditions": [condition("ScalingActive", "True", "ValidMetricFound")],
    }
    plane.api.patch_status("HorizontalPodAutoscaler", "web", namespace, status)


def observed(plane: ControlPlane, namespace: str) -> None:
    """A VPA that acts on the web server and wants 1 core and 1G."""
    web = samples.target_of(deployment("web", namespace))
    plane.api.create(samples.vpa("web", namespace, web, mode="Recreate"))
    status = {
        "conditions": [condition("RecommendationProvided", "True", "", ago(days=2))],
        "recommendation": {"containerRecommendations": [entry("app", {"cpu": "1", "memory": "1G"})]},
    }
    plane.api.patch_status("VerticalPodAutoscaler", "web", namespace, status)


def recommended(workload: Json, blend: str) -> tuple[int, str]:
    view = workload["blends"][blend]["recommended"]
    return view["replicas"], view["containers"]["app"]["requests"]["cpu"]


def test_it_says_what_hvpas_would_set_and_writes_nothing(
    plane: ControlPlane, space: str, capsys: pytest.CaptureFixture[str]
) -> None:
    busy(plane, space)
    observed(plane, space)
    new_account(plane, space, "reader", *RIGHTS)
    kubeconfig = plane.service_account_kubeconfig(space, "reader")
    before = plane.api.get("Deployment", "web", space)
    mark = plane.audit.mark()
    assert main(["report", "-n", space, "-o", "json", "--kubeconfig", str(kubeconfig)]) == 0
    report = json.loads(capsys.readouterr().out)
    requests = [request for request in plane.audit.requests(mark) if request.user_agent == "hvpa-report"]
    [discovery] = [request for request in requests if not request.resource]
    assert (discovery.verb, discovery.uri) == ("get", "/api/v1"), "whether pods can be resized"
    requests.remove(discovery)
    assert {request.verb for request in requests} == {"list"}
    assert sorted(request.resource for request in requests) == sorted(
        ["deployments", "statefulsets", "horizontalpodautoscalers", "hvpas", "verticalpodautoscalers"]
        + ["pods"] * 2  # and their usage, which this cluster does not serve
    )
    assert report["notes"][0].startswith("The usage of pods can't be read (")
    assert {request.namespace for request in requests} == {space}
    assert plane.api.get("Deployment", "web", space) == before

    (web,) = report["workloads"]
    # Half of the way from 2 to 4 replicas, and from 500m to 1 core; on the path 2 cores are 2 pods of 1 core.
    assert recommended(web, "Additive") == (3, "750m")
    replicas, cpu = recommended(web, "Trajectory")
    assert (replicas, cpu) == (2, "1")
    assert [risk["reason"] for risk in web["risks"]] == [
        "RequestTooSmall",
        "RequestTooSmall",
        "UtilizationBesideVpa",
        "YoungRecommendation",
    ]
    assert [workload["name"] for workload in report["withoutRecommender"]] == ["worker"]
