"""Policies with the real controllers: the page's own manifests, from the first look to removal."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
import yaml

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import (
    REPOSITORY,
    Operator,
    install_operator_rbac,
    install_policies,
)
from tests.e2e.full import objects
from tests.e2e.full.shells import blocks

pytestmark = pytest.mark.owned_cluster

API = "autoscaling.k8s.io/v1alpha1"
OWNED = (f"{API}/Hvpa", "HorizontalPodAutoscaler", "VerticalPodAutoscaler")
TEAM, EVERYWHERE = (
    yaml.safe_load(block)
    for block in re.findall(
        r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "policies.md").read_text(), re.DOTALL
    )
)
"""The manifests of the page."""
(LOOK,) = blocks((REPOSITORY / "docs" / "policies.md").read_text())
"""Its commands."""
TIMEOUT = 120


@pytest.fixture(scope="module", autouse=True)
def follower(cluster: ControlPlane) -> Iterator[None]:
    """An operator that follows policies."""
    kubeconfig = install_operator_rbac(cluster)
    install_policies(cluster)
    with Operator(cluster, kubeconfig, "--log-level", "debug", "--policies"):
        yield


def made(api: KubeApi, namespace: str) -> dict[str, list[str]]:
    """Names of Hvpas, HPAs and VPAs by kind."""
    return {
        kind.rpartition("/")[2]: sorted(each["metadata"]["name"] for each in api.list(kind, namespace))
        for kind in OWNED
    }


def test_the_hvpas_of_a_policy_come_apply_and_go_with_it(cluster: ControlPlane, namespace: str) -> None:
    api = cluster.api
    for name in ("web", "api", "worker", "db"):
        manifest = objects.deployment(name, namespace)
        manifest["metadata"]["labels"] = {"worker": {"tier": "batch"}, "db": {"tier": "database"}}.get(
            name, {}
        )
        api.create(manifest)
    policy = {**TEAM, "metadata": {"name": "team", "namespace": namespace}}
    api.create(policy)
    names = ["api", "web", "worker"]
    wanted = dict.fromkeys(("Hvpa", "HorizontalPodAutoscaler", "VerticalPodAutoscaler"), names)
    wait_for(lambda: made(api, namespace) == wanted, TIMEOUT, lambda: str(made(api, namespace)))
    shown = [
        cluster.kubectl(*command.split()[1:]).stdout
        for command in LOOK.replace("shop", namespace).splitlines()
    ]
    assert shown[0].split()[:2] == ["NAME", "STAGE"]
    assert [line.split()[0] for line in shown[1].splitlines()] == ["NAME", *names]
    least = {
        name: api.get("HorizontalPodAutoscaler", name, namespace)["spec"]["minReplicas"] for name in names
    }
    assert least == {"api": 2, "web": 2, "worker": 1}
    api.patch(f"{API}/HvpaPolicy", "team", namespace, {"spec": {"stage": "Apply"}})
    modes = {"api": "Apply", "web": "Apply", "worker": "Apply"}

    def in_mode() -> dict[str, str]:
        return {each["metadata"]["name"]: each["spec"]["mode"] for each in api.list(f"{API}/Hvpa", namespace)}

    wait_for(lambda: in_mode() == modes, TIMEOUT, lambda: str(in_mode()))
    wait_for(lambda: ready(api, "HvpaPolicy", "team", namespace) == "True", TIMEOUT, "the policy is ready")
    replicas = {name: objects.replicas(api, name, namespace) for name in (*names, "db")}
    api.delete(f"{API}/HvpaPolicy", "team", namespace)
    nothing: dict[str, list[str]] = {kind: [] for kind in wanted}
    wait_for(lambda: made(api, namespace) == nothing, TIMEOUT, lambda: str(made(api, namespace)))
    time.sleep(3)
    assert made(api, namespace) == nothing
    assert {name: objects.replicas(api, name, namespace) for name in (*names, "db")} == replicas


def test_a_cluster_policy_takes_its_hvpas_along_and_leaves_those_that_were_taken_over(
    cluster: ControlPlane, namespace: str
) -> None:
    api = cluster.api
    for name in ("web", "kept"):
        api.create(objects.deployment(name, namespace))
    api.patch("Namespace", namespace, None, {"metadata": {"labels": {"hvpa": "yes"}}})
    api.create(EVERYWHERE)
    wait_for(lambda: made(api, namespace)["Hvpa"] == ["kept", "web"], TIMEOUT, "both have an Hvpa")
    label: Json = {"metadata": {"labels": {"hvpa.autoscaling.k8s.io/from-policy": None}}}
    api.patch(f"{API}/Hvpa", "kept", namespace, label)
    wait_for(
        lambda: "ownerReferences" not in api.get(f"{API}/Hvpa", "kept", namespace)["metadata"],
        TIMEOUT,
        "the policy lets go of the Hvpa",
    )
    api.delete(f"{API}/ClusterHvpaPolicy", "everywhere")
    wait_for(lambda: made(api, namespace)["Hvpa"] == ["kept"], TIMEOUT, "one Hvpa goes with the policy")
    time.sleep(3)
    assert made(api, namespace)["Hvpa"] == ["kept"]


def test_a_workload_that_opts_out_has_the_hpa_again_that_its_hvpa_had_adopted(
    cluster: ControlPlane, namespace: str
) -> None:
    """Here the garbage collector deletes what a removed Hvpa owns."""
    api, hpas = cluster.api, "autoscaling/v2/HorizontalPodAutoscaler"
    deployment = objects.deployment("web", namespace)
    deployment["metadata"]["annotations"] = {"hvpa.autoscaling.k8s.io/adopt": "true"}
    api.create(deployment)
    api.create(objects.deployment("other", namespace))
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "by-hand", "namespace": namespace, "labels": {"app": "web"}}
    spec = {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 7}
    kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    before = api.create({**kind, "metadata": metadata, "spec": spec})["spec"]
    made_by = {**TEAM, "metadata": {"name": "team", "namespace": namespace}}
    api.create({**made_by, "spec": {**TEAM["spec"], "stage": "Apply"}})

    def target(name: str) -> str | None:
        found = api.find(hpas, name, namespace)
        return None if found is None else str(found["spec"]["scaleTargetRef"]["kind"])

    wait_for(lambda: (target("by-hand"), target("other")) == ("Hvpa", "Hvpa"), TIMEOUT, "the HPA is adopted")
    wait_for(
        lambda: "selector" not in api.get(f"{API}/Hvpa", "web", namespace)["spec"]["hpa"],
        TIMEOUT,
        "the adoption is over",
    )
    for name in ("web", "other"):
        opt_out: Json = {"metadata": {"annotations": {"hvpa.autoscaling.k8s.io/opt-out": "true"}}}
        api.patch("apps/v1/Deployment", name, namespace, opt_out)
    wait_for(
        lambda: (target("by-hand"), target("other")) == ("Deployment", None),
        TIMEOUT,
        lambda: f"{target('by-hand')}, {target('other')}",
    )
    wait_for(lambda: made(api, namespace)["Hvpa"] == [], TIMEOUT, "the Hvpas are gone")
    time.sleep(5)
    hpa = api.get(hpas, "by-hand", namespace)
    assert hpa["spec"] == before
    assert "ownerReferences" not in hpa["metadata"]


def ready(api: KubeApi, kind: str, name: str, namespace: str) -> str:
    """Status of the policy's condition Ready."""
    status = api.get(f"{API}/{kind}", name, namespace).get("status", {})
    found = [each["status"] for each in status.get("conditions", ()) if each["type"] == "Ready"]
    return found[0] if found else "none"
