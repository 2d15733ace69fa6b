"""`hvpa export` and `hvpa diff` with the rights of `config/export` on a real API server: the files are valid for
kubectl and its kustomize, and once they are applied there is no difference."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hvpa.cli.main import main
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, REPOSITORY
from localcluster.workloads.bare_manifests import deployment
from tests.e2e.bare.reporting.test_report import busy, observed
from tests.pages import every_block

HVPA = {
    "apiVersion": "autoscaling.k8s.io/v1alpha1",
    "kind": "Hvpa",
    "spec": {
        "mode": "Recommend",
        "blend": "Additive",
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "hpa": {"name": "web"},
        "vpa": {"name": "web"},
        "weightBasedScalingIntervals": [{"vpaWeight": 50}],
    },
}
WANTED = {"requests": {"cpu": "750m", "memory": "750M"}, "limits": {"cpu": "1500m", "memory": "1500M"}}
"""Half of the way from 500m to 1 core, and from 500M to 1G; the limits are twice as much."""
BEGIN, RIGHTS = [block for block in every_block() if block.page == "docs/export.md" and block.has_commands]
APPLY = ("apply", "--server-side", "--field-manager=ci")


@pytest.fixture
def job(plane: ControlPlane, space: str) -> Iterator[Callable[..., int]]:
    """Runs a command as the account of a CI job, on a web server under an Hvpa in mode Recommend."""
    busy(plane, space)
    observed(plane, space)
    plane.api.create({**HVPA, "metadata": {"name": "web", "namespace": space}})
    assert BEGIN.text.startswith("hvpa diff -n shop")
    for line in RIGHTS.text.replace("config/", f"{REPOSITORY}/config/").splitlines():
        plane.kubectl(*shlex.split(line, comments=True)[1:])
    rules = plane.api.get("ClusterRole", "hvpa-export")["rules"]
    plane.await_right(f"system:serviceaccount:{NAMESPACE}:hvpa-export", rules[-1], space)
    kubeconfig = str(plane.service_account_kubeconfig(NAMESPACE, "hvpa-export"))
    yield lambda *argv: main([*argv, "-n", space, "--kubeconfig", kubeconfig])
    plane.api.delete("ServiceAccount", "hvpa-export", NAMESPACE)
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        plane.api.delete(kind, "hvpa-export")


def container(plane: ControlPlane, space: str) -> Any:
    """The web server's container."""
    return plane.api.get("Deployment", "web", space)["spec"]["template"]["spec"]["containers"][0]


def test_it_lists_each_kind_once_and_manifests_apply(
    plane: ControlPlane,
    space: str,
    job: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mark = plane.audit.mark()
    assert job("export", "--to", str(tmp_path), "--format", "manifests") == 0
    sent = [request for request in plane.audit.requests(mark) if request.user_agent == "hvpa-export"]
    listed = [request.resource for request in sent if request.resource]
    assert {request.verb for request in sent if request.resource} == {"list"}
    assert len(listed) == len(set(listed))
    assert "pods" in listed

    assert job("diff") == 1
    before = container(plane, space)
    plane.kubectl(*APPLY, "--force-conflicts", "-f", str(tmp_path / space))
    assert container(plane, space) == {**before, "resources": WANTED}
    capsys.readouterr()
    # The next decision goes half of the rest: 875m.
    assert job("diff", "--within", "20") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("place", ["base", "overlay", "nowhere"])
def test_a_component_fits_wherever_the_namespace_is_set(
    plane: ControlPlane, space: str, job: Callable[..., int], tmp_path: Path, place: str
) -> None:
    assert job("export", "--to", str(tmp_path / "sizes")) == 0
    base, overlay = tmp_path / "base", tmp_path / "overlay"
    web = deployment("web", space)
    if place != "base":
        del web["metadata"]["namespace"]
    write(base / "web.yaml", web)
    write(base / "kustomization.yaml", {"resources": ["web.yaml"]})
    made: dict[str, Any] = {"resources": ["../base"], "components": [f"../sizes/{space}"]}
    write(overlay / "kustomization.yaml", made | ({"namespace": space} if place == "overlay" else {}))
    built = plane.kubectl("kustomize", str(overlay)).stdout
    (patched,) = yaml.safe_load_all(built)
    containers = [dict(container) for container in web["spec"]["template"]["spec"]["containers"]]
    containers[0]["resources"] = WANTED
    assert patched["spec"]["template"]["spec"]["containers"] == containers
    assert patched["spec"]["replicas"] == web["spec"]["replicas"]


def write(path: Path, content: Any) -> None:
    """Write a file of YAML."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(content))
