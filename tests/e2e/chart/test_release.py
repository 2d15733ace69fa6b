"""Installing, upgrading and uninstalling the chart on a control plane of its own (etcd and the API server: nothing runs
the Deployment's pods). No version was released yet, so the older one of the upgrade is made of this chart: a lower
version, the recorded CRD (`tests/recorded/released`) without a field, and other objects and values."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from localcluster.client.api import ApiError, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from localcluster.programs.build import monitoring_crds
from tests.e2e.chart.command import CHART, IMAGE, Json, documents, run, succeed
from tests.manifests import base
from tests.recorded import answers

pytestmark = pytest.mark.owned_cluster

NAMESPACE: Final = "hvpa-system"
CRD: Final = ("CustomResourceDefinition", "hvpas.autoscaling.k8s.io")
OLD: Final = "0.0.1"
DROPPED: Final = "hvpa-dropped"
"""A ConfigMap of the older version."""
NEW: Final = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]


class Release:
    """The chart on a control plane, by the real Helm."""

    def __init__(self, helm: Path, plane: ControlPlane) -> None:
        """Nothing is installed yet."""
        self.helm, self.plane = helm, plane

    def __call__(self, *args: str | Path) -> str:
        """Run Helm; its output."""
        return succeed(self.helm, *args, "--namespace", NAMESPACE, kubeconfig=self.plane.kubeconfig)

    def refusal(self, *args: str | Path) -> str:
        """Run Helm, which must fail; what it says."""
        done = run(self.helm, *args, "--namespace", NAMESPACE, kubeconfig=self.plane.kubeconfig)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def install(self, *args: str, chart: Path = CHART) -> list[Json]:
        """Install; the objects that the release consists of."""
        self("install", "hvpa", chart, "--create-namespace", *IMAGE, *args)
        return documents(self("get", "manifest", "hvpa"))

    def present(self, objects: list[Json]) -> set[str]:
        """Which of these objects are there, as kubectl names them."""
        manifest = yaml.safe_dump_all(objects)
        answer = self.plane.kubectl("get", "-f", "-", "--ignore-not-found", "-o", "name", input=manifest)
        return set(answer.stdout.split())


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane without anything of ours."""
    with ControlPlane(full=False) as owned:
        yield owned


@pytest.fixture
def release(helm: Path, plane: ControlPlane) -> Iterator[Release]:
    """Nothing is installed, neither before nor after."""
    release = Release(helm, plane)
    yield release
    run(helm, "uninstall", "hvpa", "--namespace", NAMESPACE, kubeconfig=plane.kubeconfig)
    plane.kubectl("delete", "--ignore-not-found", "crd", CRD[1])
    wait_for(lambda: plane.api.find(*CRD) is None, 60, "the CRD is gone")


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The chart of an older version. Its CRD is the recorded one without `spec.updateStrategy`, since the recorded
    spec has every field of today's. It installs a ConfigMap that today's chart does not have, and knows nothing of
    custom kinds and of the dashboard."""
    chart = tmp_path / "hvpa"
    shutil.copytree(CHART, chart)
    about, templates, defaults = chart / "Chart.yaml", chart / "templates", chart / "values.yaml"
    about.write_text(about.read_text().replace(NEW, OLD))
    crd = json.loads((REPOSITORY / "tests/recorded/released/crd.json").read_text())
    crd["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep"
    (version,) = crd["spec"]["versions"]
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["updateStrategy"]
    (templates / "crds.yaml").write_text(
        f"{{{{- if .Values.crds.install }}}}\n{json.dumps(crd)}\n{{{{- end }}}}\n"
    )
    for name in (
        "custom-kinds",
        "dashboard",
        "dashboard-custom-kinds",
        "dashboard-deployment",
        "grafana-dashboard",
    ):
        (templates / f"{name}.yaml").unlink()
    (templates / "NOTES.txt").unlink()
    dropped = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": DROPPED, "namespace": NAMESPACE}}
    (templates / "dropped.yaml").write_text(yaml.safe_dump(dropped))
    values = yaml.safe_load(defaults.read_text())
    for name in ("customKinds", "dashboard", "grafanaDashboard"):
        del values[name]
    defaults.write_text(yaml.safe_dump(values))
    return chart


def hvpa(name: str, **spec: object) -> Json:
    manifest = base() | {"metadata": {"name": name, "namespace": "default"}}
    manifest["spec"] |= spec
    return manifest


def stored(plane: ControlPlane) -> dict[str, Json]:
    """All Hvpas by name, which are some. While the API server begins to serve another CRD, it answers 429."""
    hvpas = wait_for(lambda: plane.api.list("Hvpa", "default"), 60, "the Hvpas")
    return {manifest["metadata"]["name"]: manifest for manifest in hvpas}


def create_recorded(plane: ControlPlane) -> dict[str, Json]:
    """Create the Hvpas that the recorded version decided about, each as it was stored last with its status; all Hvpas
    by name. Without those that have the field which the older CRD lacks."""
    for number, steps in enumerate(answers.read("released/decisions").values()):
        spec, status = steps[-1]["spec"], steps[-1]["status"]
        if "updateStrategy" not in spec:
            plane.api.create(hvpa(f"recorded-{number}") | {"spec": spec})
            plane.api.patch_status("Hvpa", f"recorded-{number}", "default", status)
    hvpas = stored(plane)
    assert sum("conditions" in manifest.get("status", {}) for manifest in hvpas.values()) > 5
    return hvpas


def image(plane: ControlPlane) -> str:
    """The image of the operator's Deployment."""
    (container,) = plane.api.get("Deployment", "hvpa", NAMESPACE)["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def refusal(plane: ControlPlane, manifest: Json) -> str:
    """Why the API server refuses an Hvpa; empty where it is stored, with all of its fields."""
    try:
        plane.api.create(manifest)
    except ApiError as error:
        return str(error)
    return ""


def test_everything_is_installed_and_uninstalled_but_the_hvpas(release: Release) -> None:
    objects = release.install()
    kinds = {manifest["kind"] for manifest in objects}
    assert {"Deployment", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy", "PriorityClass"} <= kinds
    assert len(release.present(objects)) == len(objects)
    release.plane.await_crd(CRD[1])
    release.plane.api.create(hvpa("stays"))
    release("uninstall", "hvpa")
    assert release.present(objects) == {f"customresourcedefinition.apiextensions.k8s.io/{CRD[1]}"}
    assert release.plane.api.find("Hvpa", "stays", "default") is not None
    # The same release takes the CRD that was left as its own.
    assert len(release.present(release.install())) == len(objects)


def test_the_api_server_takes_what_can_be_switched_on(release: Release) -> None:
    switched = "shards=32,metrics.secure=true,policies.target=true,policies.bounds=true,flowControl=true"
    objects = release.install("--set", f"{switched},networkPolicy.enabled=true,dashboard.enabled=true")
    assert {"FlowSchema", "NetworkPolicy"} <= {manifest["kind"] for manifest in objects}
    assert len(release.present(objects)) == len(objects)


def test_the_prometheus_operators_crds_take_what_is_for_it(release: Release) -> None:
    plane, folder = release.plane, REPOSITORY / "config/monitoring"
    switches = "podMonitor.enabled=true,prometheusRule.enabled=true,grafanaDashboard.enabled=true"
    assert 'no matches for kind "PodMonitor"' in release.refusal(
        "install", "hvpa", CHART, *IMAGE, "--set", switches
    )
    for path in monitoring_crds():
        plane.kubectl("apply", "--server-side", "-f", path)
    for kind in ("podmonitors", "prometheusrules"):
        plane.await_crd(f"{kind}.monitoring.coreos.com")
    strict = ("--server-side", "--validate=strict", "--force-conflicts")
    labels = "podMonitor.labels.team=a,prometheusRule.labels.team=b"
    secure = "metrics.secure=true,podMonitor.endpoint.interval=30s"
    objects = release.install("--set", f"{switches},{labels},{secure}")
    assert len(release.present(objects)) == len(objects)
    plane.kubectl("apply", *strict, "-f", "-", input=yaml.safe_dump_all(objects))
    (endpoint,) = plane.api.get("monitoring.coreos.com/v1/PodMonitor", "hvpa", NAMESPACE)["spec"][
        "podMetricsEndpoints"
    ]
    assert endpoint == {"port": "metrics", "honorLabels": True, "scheme": "https", "interval": "30s"}
    plane.kubectl("apply", *strict, "-k", folder)
    config = plane.api.get("monitoring.coreos.com/v1/PrometheusRule", "hvpa", NAMESPACE)
    assert config["spec"] == yaml.safe_load((folder / "prometheus_rule.yaml").read_text())["spec"]


def test_an_upgrade_brings_the_newer_crd_and_objects_and_leaves_hvpas_as_they_are(
    release: Release, older: Path
) -> None:
    plane = release.plane
    release.install("--set=replicaCount=3", chart=older)
    plane.await_crd(CRD[1])
    before = create_recorded(plane)
    new = hvpa("new", updateStrategy={"type": "InPlace"})
    assert 'unknown field "spec.updateStrategy"' in refusal(plane, new)
    # Helm would leave out defaults that the older version did not have.
    assert "nil pointer" in release.refusal("upgrade", "hvpa", CHART, "--reuse-values")
    release("upgrade", "hvpa", CHART, "--reset-then-reuse-values", "--set=dashboard.enabled=true")
    assert stored(plane) == before
    wait_for(lambda: not refusal(plane, new), 60, "the newer CRD is served")
    assert {name: manifest for name, manifest in stored(plane).items() if name != "new"} == before
    objects = documents(release("get", "manifest", "hvpa"))
    assert len(release.present(objects)) == len(objects)
    assert plane.api.find("ConfigMap", DROPPED, NAMESPACE) is None
    assert plane.api.get("Deployment", "hvpa", NAMESPACE)["spec"]["replicas"] == 3
    assert image(plane) == f"hvpa:{NEW}"
    assert [revision["chart"] for revision in yaml.safe_load(release("history", "hvpa", "-o", "yaml"))] == [
        f"hvpa-{OLD}",
        f"hvpa-{NEW}",
    ]
    release("uninstall", "hvpa")
    assert release.present(objects) == {f"customresourcedefinition.apiextensions.k8s.io/{CRD[1]}"}
    assert stored(plane).keys() == {*before, "new"}


def test_a_rollback_brings_the_older_crd_back_and_no_field_that_it_lacks(
    release: Release, older: Path
) -> None:
    plane = release.plane
    release.install(chart=older)
    plane.await_crd(CRD[1])
    before = create_recorded(plane)
    release("upgrade", "hvpa", CHART, *IMAGE, "--set=dashboard.enabled=true")
    new = hvpa("new", updateStrategy={"type": "InPlace"})
    wait_for(lambda: not refusal(plane, new), 60, "the newer CRD is served")
    made = plane.api.get("Hvpa", "new", "default")
    release("rollback", "hvpa", "1")
    wait_for(lambda: "updateStrategy" not in stored(plane)["new"]["spec"], 60, "the older CRD is served")
    after = stored(plane)
    assert after.pop("new")["metadata"]["uid"] == made["metadata"]["uid"]
    assert after == before
    assert image(plane) == f"hvpa:{OLD}"
    assert plane.api.find("ConfigMap", DROPPED, NAMESPACE) is not None
    assert plane.api.find("Deployment", "hvpa-dashboard", NAMESPACE) is None


def test_the_older_version_without_its_crd_keeps_fields_that_only_the_newer_one_has(
    release: Release, older: Path
) -> None:
    plane = release.plane
    release.install()
    plane.await_crd(CRD[1])
    plane.api.create(hvpa("new", updateStrategy={"type": "InPlace"}))
    before = stored(plane)
    release("upgrade", "hvpa", older, *IMAGE, "--set=crds.install=false")
    assert image(plane) == f"hvpa:{OLD}"
    assert stored(plane) == before
    release("upgrade", "hvpa", CHART, *IMAGE)
    assert CRD[0] in {manifest["kind"] for manifest in documents(release("get", "manifest", "hvpa"))}
    assert stored(plane) == before


def test_values_change_what_is_installed(release: Release) -> None:
    before = release.install()
    release("upgrade", "hvpa", CHART, *IMAGE, "--set", "inPlaceOnly=true,sizeAtCreation=Never,replicaCount=3")
    after = documents(release("get", "manifest", "hvpa"))
    gone = [
        manifest
        for manifest in before
        if manifest["kind"].endswith(("AdmissionPolicy", "AdmissionPolicyBinding"))
    ]
    assert len(gone) == 4
    assert release.present(gone) == set()
    assert len(release.present(after)) == len(after)
    assert release.plane.api.get("Deployment", "hvpa", NAMESPACE)["spec"]["replicas"] == 3
    rules = release.plane.api.get("ClusterRole", "hvpa-operator")["rules"]
    assert next(rule for rule in rules if "deployments" in rule["resources"])["verbs"] == ["list", "watch"]


def test_hvpas_go_with_the_release_where_that_is_said(release: Release) -> None:
    objects = release.install("--set=crds.keep=false")
    release("uninstall", "hvpa")
    wait_for(lambda: not release.present(objects), 60, "everything is gone")


def test_what_make_deploy_installed_is_taken_over(release: Release) -> None:
    plane = release.plane
    plane.kubectl("apply", "--server-side", "-k", REPOSITORY / "config/default")
    deployed = plane.api.get("Deployment", "hvpa", NAMESPACE)
    assert "cannot be imported into the current release" in release.refusal("install", "hvpa", CHART, *IMAGE)
    # Server-side, what kubectl has applied would be a conflict, now and in upgrades.
    objects = release.install("--take-ownership", "--server-side=false")
    assert len(release.present(objects)) == len(objects)
    release("upgrade", "hvpa", CHART, *IMAGE, "--set=replicaCount=3,image.tag=newer")
    taken = plane.api.get("Deployment", "hvpa", NAMESPACE)
    assert taken["metadata"]["uid"] == deployed["metadata"]["uid"]
    assert taken["spec"]["replicas"] == 3
    assert image(plane) == "hvpa:newer"


def test_a_second_release_is_refused(release: Release) -> None:
    release.install()
    assert "exists and cannot be imported" in release.refusal("install", "second", CHART, *IMAGE)
