"""What changes in the control plane while the operator runs: its own CRD, and the certificate that it logs in with.
(API server restarts are in `test_convergence.py`, tokens and exec plugins in `test_auth.py`.)"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.client.kubeconfig import write_kubeconfig
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.hasty import hasten
from localcluster.operator.operator import Operator, install_crds
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import deployment, hvpa
from localcluster.workloads.scenario import Scenario
from tests.e2e.bare.conftest import USER, NewScenario, Start

ROOT = Path(__file__).parents[4]
CRD = "hvpas.autoscaling.k8s.io"
FIELD = "fromTheFuture"
LIFETIME = dt.timedelta(seconds=8)
"""Of a client certificate: long enough to start an operator with it."""


@pytest.fixture(scope="module")
def operator(plane: ControlPlane, line: Proxy, token: str) -> Iterator[Operator]:
    """An operator that looks soon again for what was not served."""
    with hasten(Operator(plane, line.kubeconfig_for(token), "--log-level", "debug")) as running:
        yield running


@pytest.fixture
def crd_as_it_was(plane: ControlPlane) -> Iterator[None]:
    yield
    install_crds(plane)


def add_field(plane: ControlPlane) -> None:
    """Update the CRD to one whose spec has a further field."""
    crd = plane.api.get("CustomResourceDefinition", CRD)
    schema: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"][FIELD] = {"type": "string"}
    versions = {"spec": {"versions": crd["spec"]["versions"]}}
    plane.api.patch("CustomResourceDefinition", CRD, None, versions)


def has_field(scenario: Scenario) -> bool:
    """Use the field; the API server drops it until it has changed over."""
    scenario.change({FIELD: "now"})
    return FIELD in scenario.hvpa["spec"]


def delete_crd(plane: ControlPlane) -> None:
    plane.api.delete("CustomResourceDefinition", CRD)
    wait_for(lambda: plane.api.find("CustomResourceDefinition", CRD) is None, 90, "the CRD is gone")


@pytest.fixture
def next_version(plane: ControlPlane, crd_as_it_was: None) -> Iterator[None]:
    """The CRD of a later release, which serves Hvpas as v1beta1 only."""
    crd = plane.api.get("CustomResourceDefinition", CRD)
    [version] = crd["spec"]["versions"]
    delete_crd(plane)
    meta = {"name": CRD, "annotations": crd["metadata"]["annotations"]}
    spec = {**crd["spec"], "versions": [{**version, "name": "v1beta1"}]}
    plane.apply_all([{"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": meta, "spec": spec}])
    path = "/apis/autoscaling.k8s.io/v1beta1"
    wait_for(lambda: "hvpas" in str(plane.api.raw("GET", path)), 30, "it is served")
    yield
    delete_crd(plane)


def test_a_crd_of_the_next_version_is_named_and_nothing_is_changed(
    plane: ControlPlane, bare_namespace: str, token: str, line: Proxy, next_version: None, tmp_path: Path
) -> None:
    plane.api.create(deployment("web", bare_namespace))
    plane.api.create({**hvpa("web", bare_namespace), "apiVersion": "autoscaling.k8s.io/v1beta1"})
    mark = plane.audit.mark()
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    csv = tmp_path / "usage.csv"
    csv.write_text("time,replicas,cpu,memory\n")
    for command in (
        (
            "run",
            "--kubeconfig",
            str(line.kubeconfig_for(token)),
            "--metrics-bind-address",
            "0",
            "--health-probe-bind-address",
            "0",
        ),
        ("explain", "web", "-n", bare_namespace),
        ("pause", "--all", "-n", bare_namespace),
        ("init", "deployment/web", "-n", bare_namespace, "--csv", str(csv), "--out", str(tmp_path / "out")),
    ):
        argv = [sys.executable, "-m", "hvpa", *command]
        ran = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
        said = "the cluster serves Hvpas as v1beta1 only, but this hvpa supports v1alpha1"
        assert (ran.returncode, ran.stdout, said in ran.stderr) == (1, "", True), (command, ran.stderr)
    for user in (USER, "admin"):
        assert plane.audit.requests(mark, user=user, writes=True) == []
    assert not (tmp_path / "out").exists()


def test_a_field_that_only_a_newer_crd_knows_is_reported_and_only_its_hvpa_waits(
    plane: ControlPlane, line: Proxy, new_scenario: NewScenario, operator: Operator, crd_as_it_was: None
) -> None:
    scenario, other = new_scenario(), new_scenario()
    for each_scenario in (scenario, other):
        each_scenario.scales()
    add_field(plane)
    scenario.soon(partial(has_field, scenario), "the new field")
    line.cut_watches()  # the API server lets them go on, for minutes, without the new field
    scenario.change({FIELD: "and then"})
    condition = scenario.await_condition("Ready", "False", "InvalidSpec")
    assert FIELD in condition["message"]
    scenario.hpa_wants(8)
    other.scales()
    assert scenario.replicas == 4
    scenario.change({FIELD: None})
    scenario.await_replicas(8)
    scenario.await_reason_gone("InvalidSpec")
    assert operator.metric("hvpa_undecodable_objects_total") == 0


def test_a_crd_that_is_deleted_and_made_anew_leaves_the_workloads_as_they_are_and_then_goes_on(
    plane: ControlPlane, new_scenario: NewScenario, operator: Operator, crd_as_it_was: None
) -> None:
    scenario = new_scenario()
    scenario.scales()
    scenario.soon(lambda: scenario.status["axes"]["horizontal"]["appliedFrom"], "the step in the status")
    scenario.await_event("ScaledOut")
    mark = plane.audit.mark()
    delete_crd(plane)
    wait_for(partial(has_logged, operator, "not served"), 90, "it says so")
    for kind in ("HorizontalPodAutoscaler", "VerticalPodAutoscaler"):  # as the garbage collector does
        plane.api.delete(kind, scenario.name, scenario.namespace)
    assert operator.probe("healthz") == 200
    written = plane.audit.requests(mark, user=USER, writes=True)
    assert [
        request for request in written if request.resource != "events"
    ] == []  # Events of the step are written in the background
    install_crds(plane)
    plane.api.create(scenario.manifest)
    scenario.await_owned()
    scenario.scales()
    assert scenario.replicas == 6


def has_logged(operator: Operator, text: str) -> bool:
    return any(text in str(line.get("event")) for line in operator.log_lines())


def test_a_client_certificate_that_was_replaced_is_read_when_the_old_one_is_refused(
    plane: ControlPlane, new_scenario: NewScenario, start: Start, space: str, tmp_path: Path
) -> None:
    scenario, user = new_scenario(create=False).create(wait=False), f"system:serviceaccount:{USER}"
    issued = dt.datetime.now(dt.UTC)
    pair = plane.pki.client(user, lifetime=LIFETIME)
    files = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", plane.server, plane.authority, files)
    mine = start("--namespace", space, kubeconfig=kubeconfig)
    plane.pki.client(user)  # long before it is needed
    scenario.await_owned()
    scenario.scales()
    wait_for(lambda: dt.datetime.now(dt.UTC) > issued + LIFETIME + dt.timedelta(seconds=1), 30, "it ends")
    scenario.scales()
    assert mine.metric("hvpa_api_requests_total", code="401") >= 1
