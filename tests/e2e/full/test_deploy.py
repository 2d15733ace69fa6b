"""`make install`, `make deploy` and `make undeploy`, run as a user runs them; and every sample of `config/samples`.

The pods of the deployed operator are pretended by KWOK (no container engine runs here). That they are admitted shows
that they meet the namespace's restricted pod security; that the operator works with those rights is what the tests in
`full` and `bare` show, which run it as that ServiceAccount.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY, Operator
from localcluster.workloads import samples
from tests.e2e.full import objects
from tests.e2e.making import make

SAMPLES = sorted(
    path for path in (REPOSITORY / "config/samples").glob("*.yaml") if path.name != "kustomization.yaml"
)

ADMISSION = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy"
CLUSTER_WIDE = (
    ("ClusterRole", "hvpa-operator"),
    (ADMISSION, "hvpa-operator"),
    (f"{ADMISSION}Binding", "hvpa-operator"),
    ("scheduling.k8s.io/v1/PriorityClass", "hvpa"),
    ("admissionregistration.k8s.io/v1/MutatingAdmissionPolicy", "hvpa-size-at-creation"),
    ("admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding", "hvpa-size-at-creation"),
    ("CustomResourceDefinition", "hvpasizes.autoscaling.k8s.io"),
)
"""What is in no namespace, and goes all the same."""


@pytest.mark.owned_cluster
def test_make_installs_deploys_and_undeploys(cluster: ControlPlane) -> None:
    """Comes first (`tests/shares.py`): nothing is installed yet, and no operator is at work."""
    api = cluster.api
    make(cluster, "install")
    cluster.await_crd("hvpas.autoscaling.k8s.io")
    assert api.find("Deployment", "hvpa", NAMESPACE) is None
    make(cluster, "deploy", "IMG=example.test/team/hvpa:9")
    deployed = api.get("Deployment", "hvpa", NAMESPACE)
    assert [container["image"] for container in deployed["spec"]["template"]["spec"]["containers"]] == [
        "example.test/team/hvpa:9"
    ]
    assert deployed["spec"]["replicas"] == 2
    assert api.find("PodDisruptionBudget", "hvpa", NAMESPACE) is not None
    assert [api.find(kind, name) is not None for kind, name in CLUSTER_WIDE] == [True] * len(CLUSTER_WIDE)
    # Once more changes nothing.
    make(cluster, "deploy", "IMG=example.test/team/hvpa:9")
    assert (
        api.get("Deployment", "hvpa", NAMESPACE)["metadata"]["generation"]
        == deployed["metadata"]["generation"]
    )
    make(cluster, "undeploy")
    assert [api.find(kind, name) for kind, name in CLUSTER_WIDE] == [None] * len(CLUSTER_WIDE)
    assert api.find("Namespace", NAMESPACE) is None
    assert api.find("CustomResourceDefinition", "hvpas.autoscaling.k8s.io") is not None


def test_the_deployed_pods_meet_restricted_pod_security(cluster: ControlPlane, operator: Operator) -> None:
    level = cluster.api.get("Namespace", NAMESPACE)["metadata"]["labels"][
        "pod-security.kubernetes.io/enforce"
    ]
    assert level == "restricted"
    wait_for(
        lambda: len(cluster.api.list("Pod", NAMESPACE, "app.kubernetes.io/name=hvpa")) == 2,
        90,
        "both pods are admitted",
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_a_sample_applies_and_is_understood(
    cluster: ControlPlane, operator: Operator, namespace: str, sample: Path
) -> None:
    documents = [document for document in yaml.safe_load_all(sample.read_text()) if document]
    hvpas = [document for document in documents if document["kind"] == "Hvpa"]
    assert hvpas
    cluster.kubectl("apply", "-n", namespace, "-f", str(sample))

    def ready(name: str) -> tuple[str, str]:
        return objects.conditions(cluster.api, name, namespace)["Ready"]

    for hvpa in hvpas:
        name, target = hvpa["metadata"]["name"], hvpa["spec"]["targetRef"]
        if cluster.api.find(target["kind"], target["name"], namespace) is None:
            wait_for(partial(_is, ready, name, ("False", "TargetNotFound")), 90, "its workload is missed")
            cluster.api.create(workload(target["kind"], target["name"], namespace))
        wait_for(
            partial(_is_found, ready, name),
            90,
            "its workload is found",
        )


def _is(ready: Callable[[str], tuple[str, str]], name: str, *wanted: tuple[str, str]) -> bool:
    return ready(name) in wanted


def workload(kind: str, name: str, namespace: str) -> Json:
    """The usual Deployment, or the same as a StatefulSet."""
    manifest = samples.deployment(name, namespace)
    if kind == "StatefulSet":
        manifest["kind"] = kind
        del manifest["spec"]["strategy"]
        manifest["spec"]["serviceName"] = name
    return manifest


def _is_found(ready: Callable[[str], tuple[str, str]], name: str) -> bool:
    return ready(name)[1] not in ("", "TargetNotFound")
