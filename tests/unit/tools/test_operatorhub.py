"""The bundle for OperatorHub: what the Operator Lifecycle Manager would install is what `config` installs. (Its
validator: tests/e2e/test_releases.py.)"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tools import operatorhub
from tools.dependencies.lockfile import ROOT
from tools.distributions import ReleaseError

FOLDERS = ("crd", "rbac", "manager")
SAMPLE = (ROOT / "config/samples/web.yaml").read_text()


def manifests() -> list[Any]:
    """The objects of the overlay, as they are written in its folders."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / "config" / folder).glob("*.yaml"))]
    found = [document for path in files for document in yaml.safe_load_all(path.read_text()) if document]
    return [document for document in found if document["kind"] != "Kustomization"]


@pytest.fixture(scope="module")
def files() -> dict[str, Any]:
    made = operatorhub.bundle(
        yaml.safe_dump_all(manifests()), SAMPLE, "example.com/hvpa:1", "0.1.0", "1.30.0", 0
    )
    return {name: yaml.safe_load(content) for name, content in made.items()}


def csv(files: dict[str, Any]) -> Any:
    return files["hvpa/0.1.0/manifests/hvpa.clusterserviceversion.yaml"]


def test_the_deployment_and_its_rights_are_those_of_config(files: dict[str, Any]) -> None:
    objects = {(found["kind"], found["metadata"]["name"]): found for found in manifests()}
    install = csv(files)["spec"]["install"]["spec"]
    (deployment,) = install["deployments"]
    assert deployment["spec"] == objects["Deployment", "hvpa"]["spec"]
    (cluster,), (own,) = install["clusterPermissions"], install["permissions"]
    assert cluster == {
        "serviceAccountName": "hvpa",
        "rules": objects["ClusterRole", "hvpa-operator"]["rules"],
    }
    assert own == {"serviceAccountName": "hvpa", "rules": objects["Role", "hvpa-leader-election"]["rules"]}


def test_every_other_object_is_a_file_without_namespace(files: dict[str, Any]) -> None:
    kept = {
        (content["kind"], content["metadata"]["name"])
        for name, content in files.items()
        if "/manifests/" in name and content["kind"] != "ClusterServiceVersion"
    }
    by_olm = {
        ("ClusterRole", "hvpa-operator"),
        ("ClusterRoleBinding", "hvpa-operator"),
        ("Deployment", "hvpa"),
        ("Namespace", "hvpa-system"),
        ("Role", "hvpa-leader-election"),
        ("RoleBinding", "hvpa-leader-election"),
        ("ServiceAccount", "hvpa"),
    }
    assert kept == {(found["kind"], found["metadata"]["name"]) for found in manifests()} - by_olm
    assert not [name for name, content in files.items() if "namespace" in content.get("metadata", {})]


def test_the_example_is_the_sample(files: dict[str, Any]) -> None:
    annotations = csv(files)["metadata"]["annotations"]
    (example,) = yaml.safe_load(annotations["alm-examples"])
    assert example in list(yaml.safe_load_all(SAMPLE))
    assert annotations["containerImage"] == "example.com/hvpa:1"
    assert annotations["createdAt"] == "1970-01-01T00:00:00Z"


def test_a_binding_without_its_role_is_refused() -> None:
    objects = [found for found in manifests() if found["metadata"]["name"] != "hvpa-operator"]
    binding = [found for found in manifests() if found["kind"] == "ClusterRoleBinding"]
    with pytest.raises(ReleaseError, match="hvpa-operator"):
        operatorhub.bundle(yaml.safe_dump_all([*objects, *binding]), SAMPLE, "x/hvpa:1", "0.1.0", "1.30.0", 0)
