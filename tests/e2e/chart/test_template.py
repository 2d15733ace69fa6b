"""The chart says what `config` says, object by object, for each overlay; and what is wrong with bad values. Needs Helm
and kubectl, and no cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from localcluster.operator.operator import REPOSITORY
from localcluster.programs.build import kubernetes_version
from tests.e2e.chart.command import CHART, IMAGE, Json, kustomize, run, succeed, template

CONFIG = REPOSITORY / "config"
ROLLOUTS: Final = "customKinds[0].group=argoproj.io,customKinds[0].resource=rollouts"
PROFILES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "default": (("default",), ""),
    "without-operator-policy": (("without-operator-policy",), "operatorPolicy=false"),
    "in-place": (("in-place",), "inPlaceOnly=true"),
    "sharded": (("sharded",), "replicaCount=3,shards=32"),
    "secure-metrics": (("secure-metrics",), "metrics.secure=true"),
    "size-at-creation": (("default", "size-at-creation"), "sizeAtCreation=Always"),
    "fast-signal": (("default", "fast-signal"), "fastSignal=true"),
    "node-room": (("default", "node-room"), "nodeRoom=true"),
    "rollback-metrics": (("default", "rollback-metrics"), "rollbackMetrics=true"),
    "deletion-cost": (("default", "deletion-cost"), "deletionCost=true"),
    "export": (("default", "export"), "exportRole=true"),
    "hvpa-policy": (("hvpa-policy",), "hvpaPolicies=true"),
    "policy": (("default", "policy"), "policies.target=true,policies.bounds=true"),
    "network-policy": (
        ("default", "dashboard", "network-policy"),
        "networkPolicy.enabled=true,dashboard.enabled=true",
    ),
    "flow-control": (("default", "flow-control"), "flowControl=true"),
    "monitoring": (
        ("default", "monitoring"),
        "podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true",
    ),
    "dashboard": (("default", "dashboard"), "dashboard.enabled=true"),
    "custom-kinds": (("default", "dashboard", "custom-kinds"), f"dashboard.enabled=true,{ROLLOUTS}"),
}
"""The overlays of `config`, and the values for the same (sizes at creation depend on the API server: they are off)."""
PARTS: Final = {"crd", "manager", "rbac", "operator-policy", "samples"}
"""What other overlays consist of, and examples."""
OF_THE_CHART: Final = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
}
"""Labels that Helm's conventions ask for, beside those of `config`."""


def by_name(objects: list[Json]) -> dict[tuple[str, str, str, str], Json]:
    """Objects by version, kind, namespace and name."""
    manifests = {
        (
            manifest["apiVersion"],
            manifest["kind"],
            manifest["metadata"].get("namespace", ""),
            manifest["metadata"]["name"],
        ): manifest
        for manifest in objects
    }
    assert len(manifests) == len(objects), "an object is there twice"
    return manifests


def of_kustomize(*folders: Path) -> dict[tuple[str, str, str, str], Json]:
    """The objects of overlays but for the namespace, which is the release's."""
    objects = [
        manifest for folder in folders for manifest in kustomize(folder) if manifest["kind"] != "Namespace"
    ]
    for manifest in objects:
        if manifest["kind"].startswith(
            "ValidatingAdmissionPolicy"
        ):  # in no namespace, which kustomize does not know
            manifest["metadata"].pop("namespace", None)
    return by_name([in_one_line(manifest) for manifest in objects])


def in_one_line(value: Any) -> Any:
    """A value with its CEL expressions on one line each: where a folded text has indented lines, kustomize adds an
    empty line."""
    if isinstance(value, list):
        return [in_one_line(item) for item in value]
    if isinstance(value, dict):
        return {
            key: " ".join(item.split())
            if key == "expression" and isinstance(item, str)
            else in_one_line(item)
            for key, item in value.items()
        }
    return value


def of_chart(objects: list[Json]) -> dict[tuple[str, str, str, str], Json]:
    """The objects of the chart without what it alone has: some labels, and the annotation of a CRD that stays."""
    for manifest in objects:
        labels = manifest["metadata"].get("labels", {})
        if labels:
            assert set(labels) >= OF_THE_CHART, manifest["metadata"]["name"]
        for label in OF_THE_CHART:
            labels.pop(label, None)
        if manifest["kind"] == "CustomResourceDefinition":
            manifest["metadata"].get("annotations", {}).pop("helm.sh/resource-policy", None)
    return by_name([in_one_line(manifest) for manifest in objects])


def assert_same(
    manifests: dict[tuple[str, str, str, str], Json], wanted: dict[tuple[str, str, str, str], Json]
) -> None:
    """One object at a time, since a difference of all of them can't be read."""
    assert manifests.keys() == wanted.keys()
    for key, manifest in wanted.items():
        assert manifests[key] == manifest, key


def test_every_overlay_has_its_values() -> None:
    overlays = {path.parent.name for path in CONFIG.glob("*/kustomization.yaml")}
    assert overlays - PARTS == set(PROFILES)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_chart_renders_what_the_overlay_renders(helm: Path, profile: str) -> None:
    folders, values = PROFILES[profile]
    rendered = template(helm, "--set", f"sizeAtCreation=Never,{values}".rstrip(","))
    assert_same(of_chart(rendered), of_kustomize(*(CONFIG / folder for folder in folders)))


def test_another_release_and_namespace_change_what_kustomize_changes(helm: Path, tmp_path: Path) -> None:
    bases = [os.path.relpath(CONFIG / name, tmp_path.resolve()) for name in ("default", "dashboard")]
    kustomization = {"namePrefix": "team-", "namespace": "scaling", "resources": bases}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    values = "sizeAtCreation=Never,dashboard.enabled=true"
    rendered = template(helm, "--set", values, name="team", namespace="scaling")
    assert_same(of_chart(rendered), of_kustomize(tmp_path))


@pytest.mark.parametrize("values", [f"{values}," for _, values in PROFILES.values()])
def test_no_name_is_fixed_but_those_of_the_operator_itself(helm: Path, values: str) -> None:
    names = "fullnameOverride=other,serviceAccount.name=account"
    for manifest in template(helm, "--set", f"{values}{names}".lstrip(","), namespace="elsewhere"):
        text = yaml.safe_dump(manifest)
        assert "hvpa-system" not in text
        if manifest["kind"] != "CustomResourceDefinition":
            assert manifest["metadata"]["name"].startswith("other") or manifest["kind"] == "ServiceAccount"
        for subject in manifest.get("subjects", []):
            if manifest["metadata"]["name"].endswith("-viewer"):  # of the operator's Lease, for every user
                assert subject["name"] == "system:authenticated"
                continue
            assert subject.pop("name") in ("account", "other-dashboard", "other-kubelets")
            assert subject == {"kind": "ServiceAccount", "namespace": "elsewhere"}


@pytest.mark.parametrize("profile", PROFILES)
def test_lint_finds_nothing(helm: Path, profile: str) -> None:
    version = f"--kube-version={kubernetes_version()}"
    succeed(
        helm,
        "lint",
        "--strict",
        version,
        CHART,
        *(f"--set={settings}" for settings in [PROFILES[profile][1]] if settings),
    )


def test_sizes_at_creation_follow_the_api_server(helm: Path) -> None:
    def policies(*args: str) -> int:
        return sum(manifest["kind"] == "MutatingAdmissionPolicy" for manifest in template(helm, *args))

    assert policies("--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy") == 1
    assert policies("--set=sizeAtCreation=Never") == 0
    assert policies("--set=sizeAtCreation=Always") == 1


def test_each_custom_kind_is_a_rule_and_the_dashboards_only_where_that_is_installed(helm: Path) -> None:
    second = "customKinds[1].group=apps.kruise.io,customKinds[1].resource=clonesets"
    roles = {
        manifest["metadata"]["name"]: manifest["rules"]
        for manifest in template(helm, "--set", f"{ROLLOUTS},{second}")
        if manifest["kind"] == "ClusterRole" and manifest["metadata"]["name"].endswith("-custom-kinds")
    }
    assert roles == {
        "hvpa-custom-kinds": [
            {"apiGroups": ["argoproj.io"], "resources": ["rollouts/scale"], "verbs": ["get", "patch"]},
            {"apiGroups": ["apps.kruise.io"], "resources": ["clonesets/scale"], "verbs": ["get", "patch"]},
        ]
    }


def test_values_of_the_pods_are_where_they_belong(helm: Path, tmp_path: Path) -> None:
    pod: Json = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "infra"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 2, "labelSelector": {"matchLabels": {"own": "one"}}}],
    }
    container: Json = {
        "resources": {"requests": {"cpu": "1", "memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False},
    }
    values = {
        **pod,
        "resources": {"requests": {"cpu": "1"}, "limits": None},
        "securityContext": {"readOnlyRootFilesystem": False, "capabilities": None},
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None},
        "image": {"digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
        "extraArgs": ["--hpa-tolerance=0.05"],
        "podAnnotations": {"note": "a"},
        "podLabels": {"team": "b"},
        "commonLabels": {"part": "c"},
        "serviceAccount": {"annotations": {"role": "d"}},
        "priorityClass": {"create": False, "name": "infra"},
        "podDisruptionBudget": {"enabled": False},
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    objects = template(helm, "--values", str(tmp_path / "values.yaml"))
    kinds = {manifest["kind"]: manifest for manifest in objects}
    assert {"PriorityClass", "PodDisruptionBudget"}.isdisjoint(kinds)
    assert kinds["ServiceAccount"]["metadata"]["annotations"] == {"role": "d"}
    pod_template = kinds["Deployment"]["spec"]["template"]
    assert pod_template["metadata"]["labels"] == {"app.kubernetes.io/name": "hvpa", "team": "b"}
    assert pod_template["metadata"]["annotations"]["note"] == "a"
    assert kinds["Deployment"]["metadata"]["labels"]["part"] == "c"
    (only,) = pod_template["spec"]["containers"]
    assert pod_template["spec"] == pod_template["spec"] | pod | {
        "priorityClassName": "infra",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    assert only == only | container | {
        "image": f"hvpa@sha256:{'0' * 64}",
        "imagePullPolicy": "Always",
    }
    assert only["args"][-1] == "--hpa-tolerance=0.05"


def test_the_dashboard_has_the_operators_image_and_nodes_and_values_of_its_own(
    helm: Path, tmp_path: Path
) -> None:
    pod: Json = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "infra"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
    }
    values = {
        **pod,
        "securityContext": {"capabilities": None},
        "podSecurityContext": {"runAsUser": None, "runAsGroup": 7},
        "image": {"tag": "2"},
        "commonLabels": {"part": "c"},
        "serviceAccount": {"create": False, "name": "account"},
        "podLabels": {"team": "b"},
        "dashboard": {
            "enabled": True,
            "secretName": "page",
            "extraArgs": ["--hpa-tolerance=0.05"],
            "resources": {"limits": {"memory": "1Gi"}},
        },
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    objects = template(helm, "--values", str(tmp_path / "values.yaml"))
    (account,) = (manifest for manifest in objects if manifest["kind"] == "ServiceAccount")
    assert account["metadata"]["labels"]["part"] == "c"
    (deployment,) = (
        manifest
        for manifest in objects
        if (manifest["kind"], manifest["metadata"]["name"]) == ("Deployment", "hvpa-dashboard")
    )
    pods = deployment["spec"]["template"]
    assert pods["metadata"] == {"labels": {"app.kubernetes.io/name": "hvpa-dashboard"}}
    spec = pods["spec"]
    assert spec == spec | pod | {
        "serviceAccountName": account["metadata"]["name"],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsGroup": 7,
            "fsGroup": 7,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    assert spec["volumes"][0]["secret"]["secretName"] == "page"
    (only,) = spec["containers"]
    assert (only["image"], only["args"][-1]) == ("hvpa:2", "--hpa-tolerance=0.05")
    assert only["resources"]["limits"] == {"memory": "1Gi"}
    assert only["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("shards=0", "at '/shards': minimum: got 0, want 1"),
        ("shards=257", "at '/shards': maximum: got 257, want 256"),
        ("shards=many", "at '/shards': got string, want integer"),
        ("replicaCount=-1", "at '/replicaCount': minimum: got -1, want 0"),
        ("replicas=3", "additional properties 'replicas' not allowed"),
        ("image.name=hvpa", "at '/image': additional properties 'name' not allowed"),
        ("image.tag=2", "at '/image/tag': got number, want string"),
        ("image.repository=", "image.repository: needed, since no image is published"),
        ("image.digest=sha256:abc", "at '/image/digest': 'sha256:abc' does not match pattern"),
        ("inPlaceOnly=yes", "at '/inPlaceOnly': got string, want boolean"),
        ("sizeAtCreation=auto", "at '/sizeAtCreation': value must be one of 'Auto', 'Always', 'Never'"),
        ("customKinds[0].group=argoproj.io", "at '/customKinds/0': missing property 'resource'"),
        (f"{ROLLOUTS}/scale", "at '/customKinds/0/resource': 'rollouts/scale' does not match pattern"),
        ("extraArgs={verbose}", "at '/extraArgs/0': 'verbose' does not match pattern '^--'"),
        ("podDisruptionBudget.maxUnavailable=half", "at '/podDisruptionBudget/maxUnavailable'"),
        ("podMonitor.enabled=yes", "at '/podMonitor/enabled': got string, want boolean"),
        ("podMonitor.interval=30s", "at '/podMonitor': additional properties 'interval' not allowed"),
        ("prometheusRule.labels.team=1", "at '/prometheusRule/labels/team': got number, want string"),
        ("grafanaDashboard.labels={a}", "at '/grafanaDashboard/labels': got array, want object"),
        ("dashboard.labels.a=b", "at '/dashboard': additional properties 'labels' not allowed"),
        ("dashboard.secretName=", "at '/dashboard/secretName': minLength: got 0, want 1"),
        ("networkPolicy.metricsFrom=null", "at '/networkPolicy': missing property 'metricsFrom'"),
        ("fullnameOverride=Hvpa", "at '/fullnameOverride': 'Hvpa' does not match pattern"),
        ("serviceAccount.create=false", "serviceAccount.name: needed where serviceAccount.create is false"),
    ],
)
def test_a_bad_value_is_refused_by_name(helm: Path, value: str, message: str) -> None:
    done = run(
        helm, "template", "hvpa", CHART, f"--kube-version={kubernetes_version()}", *IMAGE, "--set", value
    )
    assert done.returncode != 0
    assert message in done.stderr


def test_kubernetes_before_1_30_is_refused(helm: Path) -> None:
    done = run(helm, "template", "hvpa", CHART, "--kube-version=1.29.9")
    assert (
        "chart requires kubeVersion: >=1.30.0-0 which is incompatible with Kubernetes v1.29.9" in done.stderr
    )
