"""`hvpa explain KIND/NAME` with a server: the objects that it reads, and missing rights."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.cli.api_server import Api
from tests.unit.cli.resizing import deployment, hvpa, vpa
from tests.unit.cli.support import NOW, Doc, Shell

TEMPLATE = {"template": {"vpa": {"deploy": True}}}


def policy(kind: str, name: str, **spec: object) -> Doc:
    api_version = "autoscaling.k8s.io/v1alpha1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": TEMPLATE | spec}


TEAM = policy("HvpaPolicy", "team")
EVERYWHERE = policy("ClusterHvpaPolicy", "all", namespaces={"all": True})


def test_the_policies_of_the_namespace_and_of_the_cluster_count(
    shell: Shell, api: Api, kubeconfig: str
) -> None:
    api.put([deployment(2), TEAM])
    api.put([EVERYWHERE], "")
    api.put([{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}], "")
    assert shell.run("explain", "deployments/web", "--kubeconfig", kubeconfig).out.splitlines() == [
        "Deployment default/web",
        "- HvpaPolicy default/team: selects it",
        "- ClusterHvpaPolicy all: selects it, too, but HvpaPolicy default/team is more specific",
        "- HvpaPolicy default/team makes its Hvpa next",
    ]


@pytest.mark.parametrize("label", [True, False])
def test_an_hvpa_that_a_policy_makes_names_it_unless_somebody_took_it_over(shell: Shell, label: bool) -> None:
    made = hvpa()
    owner = {
        "apiVersion": TEAM["apiVersion"],
        "kind": "HvpaPolicy",
        "name": "team",
        "uid": "p",
        "controller": True,
    }
    labels = {"hvpa.autoscaling.k8s.io/from-policy": "team"} if label else {}
    made["metadata"] |= {"ownerReferences": [owner], "labels": labels}
    ran = shell.run(
        "explain", "-f", shell.file(yaml.safe_dump_all([made, deployment(2), vpa()])), "--now", NOW
    )
    note = (
        "Note: HvpaPolicy team makes this Hvpa, so change the policy; hvpa explain deployment/web shows why"
    )
    assert (note in ran.out.splitlines()) is label


def test_what_may_not_be_read_is_said(shell: Shell, api: Api, kubeconfig: str) -> None:
    api.put([deployment(2), TEAM])
    api.put([EVERYWHERE], "")
    api.fail["namespaces"] = 403
    ran = shell.run("explain", "deploy/web", "--kubeconfig", kubeconfig)
    assert "- ClusterHvpaPolicy all: can't tell whether it selects the namespace" in ran.out
    api.fail["clusterhvpapolicies"] = 403
    ran = shell.run("explain", "deploy/web", "--kubeconfig", kubeconfig)
    assert "Note: you may not list ClusterHvpaPolicies, so they are left out" in ran.out
    api.fail["hvpapolicies"] = 404
    ran = shell.run("explain", "deploy/web", "--kubeconfig", kubeconfig)
    assert ran.out.splitlines()[1:] == [
        "No policy makes an Hvpa: policies are not installed (config/hvpa-policy)"
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("job/web",), "job/web: policies select deployment/NAME, statefulset/NAME and daemonset/NAME"),
        (("deploy/",), "deploy/: policies select"),
        (("deploy/a/b",), "deploy/a/b: policies select"),
        (("deploy/web", "-o", "json"), "deploy/web: -o and --plot need the name of an Hvpa"),
    ],
)
def test_what_no_policy_selects_is_refused(shell: Shell, arguments: tuple[str, ...], why: str) -> None:
    ran = shell.run("explain", *arguments)
    assert ran.code == 2
    assert why in ran.err


def test_a_workload_that_does_not_exist_is_an_error(shell: Shell, api: Api, kubeconfig: str) -> None:
    ran = shell.run("explain", "ds/none", "--kubeconfig", kubeconfig)
    assert ran.code != 0
    assert "DaemonSet default/none does not exist" in ran.err
