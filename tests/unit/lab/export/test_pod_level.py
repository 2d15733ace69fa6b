"""Exported sizes of pods with resources of their own (`spec.template.spec.resources`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.support import NOW, Doc, Ran, Shell, with_fields

RESOURCES = "spec.template.spec.resources"
CONTAINERS = "spec.template.spec.containers"
APP = {"name": "app", "resources": {"requests": {"cpu": "300m"}}}
LOGS: Doc = {"name": "logs", "resources": {}}
WHOLE = {"requests": {"cpu": "400m", "memory": "1G"}, "limits": {"cpu": "800m", "memory": "1G"}}


@pytest.fixture
def pooled() -> list[Doc]:
    """The example of docs/pod-level-resources.md: app requests CPU, and everything else is shared."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    labels = {"matchLabels": {"app": "web"}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"resources": WHOLE, "containers": [APP, LOGS]},
    }
    recommendations = [
        {"containerName": "app", "target": {"cpu": "900m", "memory": "2G"}},
        {"containerName": "logs", "target": {"cpu": "100m", "memory": "500M"}},
    ]
    provided = {
        "type": "RecommendationProvided",
        "status": "True",
        "lastTransitionTime": "2026-11-01T00:00:00Z",
    }
    return [
        {
            "apiVersion": "autoscaling.k8s.io/v1alpha1",
            "kind": "Hvpa",
            "metadata": {"name": "web", "uid": "hvpa"},
            "spec": {
                "targetRef": target,
                "vpa": {
                    "name": "web",
                    "scaleUp": {"minChange": {"cpu": {"value": "1m"}, "memory": {"value": "1"}}},
                },
                "weightBasedScalingIntervals": [{"vpaWeight": 100}],
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": 2, "selector": labels, "template": template},
        },
        {
            "apiVersion": "autoscaling.k8s.io/v1",
            "kind": "VerticalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"targetRef": target, "updatePolicy": {"updateMode": "Off"}},
            "status": {
                "conditions": [provided],
                "recommendation": {"containerRecommendations": recommendations},
            },
        },
    ]


@pytest.fixture
def exported(shell: Shell, tmp_path: Path) -> Callable[..., Any]:
    """Returns what the exported file of the Deployment contains."""

    def run(documents: list[Doc], *flags: str) -> Any:
        path = shell.file(documents, "objects.yaml")
        ran = shell.run("export", "-f", path, "--now", NOW, "--to", str(tmp_path / "sizes"), *flags)
        assert (ran.code, ran.err) == (0, "")
        return yaml.safe_load((tmp_path / "sizes/default/deployment-web.yaml").read_text())

    return run


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {RESOURCES: {"limits": WHOLE["limits"]}},
        {RESOURCES: {"requests": WHOLE["requests"]}},
        {RESOURCES: {"requests": {"cpu": "400m"}}, f"{CONTAINERS}.0.resources.requests.memory": "1G"},
        {f"{CONTAINERS}.1.resources.requests.cpu": "50m"},
        {CONTAINERS: [{"name": "app", "resources": {}}, LOGS]},
    ],
    ids=["all", "limits", "requests", "cpu", "own requests", "everything shared"],
)
def test_a_file_sets_what_the_operator_would_set(
    shell: Shell, exported: Callable[..., Any], pooled: list[Doc], fields: Doc
) -> None:
    documents = with_fields(pooled, "Deployment", "web", fields)
    patched = shell.explain(documents)["patch"]["spec"]["template"]["spec"]
    wanted = {name: content for name, content in patched.items() if content}
    assert exported(documents)["spec"] == {"template": {"spec": wanted}}


def test_a_change_that_is_forbidden_leaves_the_pods_own_resources(
    exported: Callable[..., Any], pooled: list[Doc]
) -> None:
    documents = with_fields(pooled, "Hvpa", "web", {"spec.vpa.scaleUp.updatePolicy": {"updateMode": "Off"}})
    assert exported(documents)["spec"] == {"template": {"spec": {"resources": WHOLE, "containers": [APP]}}}


def test_the_difference_to_the_cluster_is_the_pods(shell: Shell, pooled: list[Doc]) -> None:
    ran = shell.run("diff", "-f", shell.file(pooled, "objects.yaml"), "--now", NOW)
    assert (ran.code, ran.err) == (1, "")
    changed = [line.split(": ")[-1] for line in ran.out.splitlines() if line.startswith(("-   ", "+   "))]
    assert changed == ["400m", "1G", "'1'", "2500M", "800m", "1G", "'2'", "2500M", "300m", "900m"]


def test_a_limit_that_a_container_keeps_is_not_exported(
    exported: Callable[..., Any], pooled: list[Doc]
) -> None:
    rule = {"containerPolicies": [{"containerName": "logs", "controlledValues": "RequestsOnly"}]}
    documents = with_fields(pooled, "VPA", "web", {"spec.resourcePolicy": rule})
    assert "limits" not in exported(documents)["spec"]["template"]["spec"]["resources"]


def test_helm_values_have_a_path_for_the_pod(
    exported: Callable[..., Any], shell: Shell, pooled: list[Doc]
) -> None:
    def paths(**more: str) -> str:
        return shell.file([{"workloads": [{"containers": {"*": "{container}"}, **more}]}], "paths.yaml")

    flags = ("--format", "helm", "--values")
    app = {"requests": {"cpu": "900m"}}
    whole = {"requests": {"cpu": "1", "memory": "2500M"}, "limits": {"cpu": "2", "memory": "2500M"}}
    assert exported(pooled, *flags, paths(pod="a.pod")) == {"app": app, "a": {"pod": whole}}
    assert exported(pooled, *flags, paths(pod="")) == {"app": app}
    path = shell.file(pooled, "objects.yaml")
    ran: Ran = shell.run("export", "-f", path, "--to", "nowhere", "--check", *flags, paths())
    assert (ran.code, "has no path for the pod's own resources (`pod`)" in ran.err) == (2, True)
