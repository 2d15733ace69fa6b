"""Policies with the real controllers: the page's own manifests, from the first look to removal."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator

import pytest
import yaml

from localcluster.client.api import Json, KubeApi, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import (
    REPOSITORY,
    Operator,
    install_crds,
    install_operator_rbac,
    install_policies,
)
from tests.e2e.full import objects
from tests.e2e.full.shells import blocks

pytestmark = pytest.mark.owned_cluster

API = "autoscaling.k8s.io/v1alpha1"
HPAS = "autoscaling/v2/HorizontalPodAutoscaler"
OWNED = (f"{API}/Hvpa", "HorizontalPodAutoscaler", "VerticalPodAutoscaler")
TEAM, EVERYWHERE = (
    yaml.safe_load(block)
    for block in re.findall(
        r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "policies.md").read_text(), re.DOTALL
    )
)
"""The manifests of the page."""
LOOK, RETURN = blocks((REPOSITORY / "docs" / "policies.md").read_text())
"""Its commands."""
TIMEOUT = 120


@pytest.fixture(scope="module", autouse=True)
def follower(cluster: ControlPlane, operator: Operator) -> Iterator[Operator]:
    """Replaces the shared operator by an operator that follows policies. If both ran, the shared operator would return
    the HPAs that the other has adopted. After the test that deletes the CRD, it would not see Hvpas for 30 seconds."""
    operator.terminate()
    try:
        kubeconfig = install_operator_rbac(cluster)
        install_policies(cluster)
        with Operator(cluster, kubeconfig, "--log-level", "debug", "--policies", name="follower") as follower:
            yield follower
    finally:
        operator.start()


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


class Adopted:
    """A workload whose HPA an Hvpa has adopted, and another workload, whose Hvpa has created its HPA."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.cluster, self.api, self.namespace = cluster, cluster.api, namespace
        deployment = objects.deployment("web", namespace)
        deployment["metadata"]["annotations"] = {"hvpa.autoscaling.k8s.io/adopt": "true"}
        self.api.create(deployment)
        self.api.create(objects.deployment("other", namespace))
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        metadata = {"name": "by-hand", "namespace": namespace, "labels": {"app": "web"}}
        spec = {"scaleTargetRef": reference, "minReplicas": 2, "maxReplicas": 7}
        kind = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
        self.before = self.api.create({**kind, "metadata": metadata, "spec": spec})
        made_by = {**TEAM, "metadata": {"name": "team", "namespace": namespace}}
        self.api.create({**made_by, "spec": {**TEAM["spec"], "stage": "Apply"}})
        self.await_targets(("Hvpa", "Hvpa"))
        wait_for(
            lambda: "selector" not in self.api.get(f"{API}/Hvpa", "web", namespace)["spec"]["hpa"],
            TIMEOUT,
            "the adoption is over",
        )

    def target(self, name: str) -> str | None:
        found = self.api.find(HPAS, name, self.namespace)
        return None if found is None else str(found["spec"]["scaleTargetRef"]["kind"])

    def await_targets(self, kinds: tuple[str | None, str | None]) -> None:
        """Wait until the two HPAs have targets of these kinds; None: there is no such HPA."""
        wait_for(
            lambda: (self.target("by-hand"), self.target("other")) == kinds,
            TIMEOUT,
            lambda: f"{self.target('by-hand')}, {self.target('other')} instead of {kinds}",
        )

    def await_return(self) -> None:
        """Wait until the adopted HPA is as before, the created HPA is gone, and so are the Hvpas."""
        self.await_targets(("Deployment", None))
        time.sleep(5)  # in which the garbage collector would delete it
        hpa = self.api.get(HPAS, "by-hand", self.namespace)
        assert hpa["spec"] == self.before["spec"]
        meta, before = hpa["metadata"], self.before["metadata"]
        assert (meta["uid"], meta["labels"]) == (before["uid"], before["labels"])
        assert "ownerReferences" not in meta
        assert "annotations" not in meta

    def delete_policy(self, how: str) -> None:
        self.cluster.kubectl("delete", "hvpapolicy", "team", "-n", self.namespace, f"--cascade={how}")


@pytest.fixture
def adopted(cluster: ControlPlane, namespace: str) -> Adopted:
    return Adopted(cluster, namespace)


def test_a_workload_that_opts_out_has_the_hpa_again_that_its_hvpa_had_adopted(adopted: Adopted) -> None:
    opt_out: Json = {"metadata": {"annotations": {"hvpa.autoscaling.k8s.io/opt-out": "true"}}}
    for name in ("web", "other"):
        adopted.api.patch("apps/v1/Deployment", name, adopted.namespace, opt_out)
    adopted.await_return()


def test_a_stage_that_goes_back_lets_the_hpa_act_again_and_apply_adopts_it_again(adopted: Adopted) -> None:
    for stage, kind in (("Recommend", "Deployment"), ("Apply", "Hvpa"), ("Recommend", "Deployment")):
        adopted.api.patch(f"{API}/HvpaPolicy", "team", adopted.namespace, {"spec": {"stage": stage}})
        adopted.await_targets((kind, "Hvpa"))
    wait_for(
        lambda: ready(adopted.api, "HvpaPolicy", "team", adopted.namespace) == "True", TIMEOUT, "the rollout"
    )
    time.sleep(5)
    hpa = adopted.api.get(HPAS, "by-hand", adopted.namespace)
    assert hpa["spec"] == adopted.before["spec"]
    assert "annotations" not in hpa["metadata"]


@pytest.mark.parametrize("how", ["background", "foreground"])
def test_a_deleted_policy_takes_no_hpa_along_that_was_there_before(adopted: Adopted, how: str) -> None:
    adopted.delete_policy(how)
    adopted.await_return()
    assert made(adopted.api, adopted.namespace)["Hvpa"] == []


def test_an_hvpa_that_somebody_deletes_comes_back_and_adopts_the_same_hpa(adopted: Adopted) -> None:
    first = adopted.api.get(f"{API}/Hvpa", "web", adopted.namespace)["metadata"]["uid"]
    adopted.api.delete(f"{API}/Hvpa", "web", adopted.namespace)

    def adopters() -> str:
        hpa = adopted.api.get(HPAS, "by-hand", adopted.namespace)
        assert hpa["metadata"]["uid"] == adopted.before["metadata"]["uid"]
        return str(hpa["metadata"].get("annotations", {}).get("hvpa.autoscaling.k8s.io/adopted", ""))

    wait_for(lambda: '"uid"' in adopters() and first not in adopters(), TIMEOUT, adopters)
    adopted.delete_policy("background")
    adopted.await_return()


def test_a_namespace_with_an_adopted_hpa_can_be_deleted(adopted: Adopted) -> None:
    adopted.cluster.kubectl("delete", "namespace", adopted.namespace, "--wait=false")
    wait_for(
        lambda: adopted.api.find("Namespace", adopted.namespace) is None, TIMEOUT, "the namespace is gone"
    )


def test_without_an_operator_the_command_of_the_page_returns_it(adopted: Adopted, follower: Operator) -> None:
    """And no annotation that is not the operator's holds that up."""
    follower.kill()
    try:
        adopted.delete_policy("background")
        adopted.await_targets(("Hvpa", None))
        forged = {"name": "a-forged", "annotations": {"hvpa.autoscaling.k8s.io/adopted": "{"}}
        adopted.api.create({**adopted.before, "metadata": {"namespace": adopted.namespace, **forged}})
        environment = {**os.environ, "KUBECONFIG": str(adopted.cluster.kubeconfig)}
        kubectl = adopted.cluster.programs["kubectl"]
        command = RETURN.replace("kubectl ", f"{kubectl} ")
        done = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
        )
        assert "by-hand replaced" in done.stdout, done.stderr
        assert len(done.stdout.splitlines()) == 1
        adopted.await_return()
        done = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    finally:
        follower.start()


def test_a_deleted_crd_takes_no_hpa_along_that_was_there_before(adopted: Adopted) -> None:
    """The last test here, because it deletes the Hvpas of all."""
    adopted.delete_policy("orphan")
    try:
        adopted.cluster.kubectl("delete", "crd", "hvpas.autoscaling.k8s.io")
        adopted.await_return()
    finally:
        install_crds(adopted.cluster)


def ready(api: KubeApi, kind: str, name: str, namespace: str) -> str:
    """Status of the policy's condition Ready."""
    status = api.get(f"{API}/{kind}", name, namespace).get("status", {})
    found = [each["status"] for each in status.get("conditions", ()) if each["type"] == "Ready"]
    return found[0] if found else "none"
