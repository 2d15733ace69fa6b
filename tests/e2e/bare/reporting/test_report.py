"""`hvpa report` on a real API server: with rights to list alone it says what Hvpas would set, and writes nothing; with
the CRDs of Hvpa and VPA and without them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import Json
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from localcluster.workloads import samples
from localcluster.workloads.bare_manifests import ago, condition, deployment, entry, hvpa
from localcluster.workloads.scenario import new_namespace
from tests.e2e.bare.accounts import new_account, rule

WORKLOADS = rule("apps", ["deployments", "statefulsets"], ["list"])
PODS = rule("", ["pods"], ["list"])
HPAS = rule("autoscaling", ["horizontalpodautoscalers"], ["list"])
CUSTOM = rule("autoscaling.k8s.io", ["hvpas", "verticalpodautoscalers"], ["list"])


def run(kubeconfig: Path, *args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hvpa", "report", *args, "--kubeconfig", str(kubeconfig)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=REPOSITORY)


def reported(kubeconfig: Path, namespace: str) -> Json:
    ended = run(kubeconfig, "-n", namespace, "-o", "json")
    assert ended.returncode == 0, ended.stderr
    found: Json = json.loads(ended.stdout)
    return found


def only_lists(plane: ControlPlane, namespace: str, *rules: Json) -> Path:
    """A kubeconfig of a user with these rights in a namespace, and no others."""
    new_account(plane, namespace, "reader", *rules)
    return plane.service_account_kubeconfig(namespace, "reader")


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


def test_it_says_what_hvpas_would_set_and_writes_nothing(plane: ControlPlane, space: str) -> None:
    busy(plane, space)
    observed(plane, space)
    kubeconfig = only_lists(plane, space, WORKLOADS, PODS, HPAS, CUSTOM)
    before = plane.api.get("Deployment", "web", space)
    mark = plane.audit.mark()
    report = reported(kubeconfig, space)
    requests = [one for one in plane.audit.requests(mark) if one.user_agent == "hvpa-report"]
    assert {one.verb for one in requests} == {"list"}
    assert sorted(one.resource for one in requests) == sorted(
        ["deployments", "statefulsets", "horizontalpodautoscalers", "pods", "hvpas", "verticalpodautoscalers"]
    )
    assert {one.namespace for one in requests} == {space}
    assert plane.api.get("Deployment", "web", space) == before

    (web,) = report["workloads"]
    # Half of the way from 2 to 4 replicas, and from 500m to 1 core; on the path 2 cores are 2 pods of 1 core.
    assert recommended(web, "Additive") == (3, "750m")
    replicas, cpu = recommended(web, "Trajectory")
    assert (replicas, cpu) == (2, "1")
    assert [one["reason"] for one in web["risks"]] == [
        "RequestTooSmall",
        "RequestTooSmall",
        "UtilizationBesideVpa",
    ]
    assert [one["name"] for one in report["withoutRecommender"]] == ["worker"]


def test_an_hvpa_is_reported_by_its_own_spec(plane: ControlPlane, space: str) -> None:
    busy(plane, space)
    observed(plane, space)
    looks = {"mode": "Recommend", "blend": "Additive", "weightBasedScalingIntervals": [{"vpaWeight": 0}]}
    plane.api.create(hvpa("web", space, looks))
    (web,) = reported(plane.kubeconfig, space)["workloads"]
    assert web["hvpas"] == [{"name": "web", "mode": "Recommend"}]
    assert recommended(web, "Additive") == (4, "500m")
    assert (web["blends"]["Additive"]["own"], web["blends"]["Trajectory"]["own"]) == (True, False)


def test_all_namespaces_need_a_right_in_all_of_them(plane: ControlPlane, space: str) -> None:
    kubeconfig = only_lists(plane, space, WORKLOADS, PODS, HPAS, CUSTOM)
    ended = run(kubeconfig, "-A")
    assert ended.returncode == 1
    assert "no right to list deployments" in ended.stderr
    assert ended.stderr.endswith("hvpa report needs the verb list, or -n NAMESPACE for one namespace\n")
    whole = run(plane.kubeconfig, "-A")
    assert whole.returncode == 0, whole.stderr


@pytest.fixture(scope="module")
def empty() -> Iterator[ControlPlane]:
    """An API server that knows neither Hvpas nor VPAs."""
    with ControlPlane(full=False) as plane:
        yield plane


def test_neither_crd_is_needed_nor_a_right_to_them(empty: ControlPlane) -> None:
    namespace = new_namespace(empty.api)
    busy(empty, namespace)
    kubeconfig = only_lists(empty, namespace, WORKLOADS, PODS, HPAS)
    for reader in (empty.kubeconfig, kubeconfig):
        (web,) = reported(reader, namespace)["workloads"]
        assert recommended(web, "Additive") == (4, "500m")
        assert recommended(web, "Trajectory") == (4, "500m")


def test_a_missing_right_is_reported_with_its_resource(empty: ControlPlane) -> None:
    namespace = new_namespace(empty.api)
    kubeconfig = only_lists(empty, namespace, WORKLOADS, HPAS)
    ended = run(kubeconfig, "-n", namespace)
    assert ended.returncode == 1
    assert ended.stderr.startswith("hvpa: error: no right to list pods: pods is forbidden")
    assert len(ended.stderr.splitlines()) == 1
