"""The tables of good and bad manifests, judged by a real API server with strict field validation.

Nothing is stored: the server runs all of its checks in a dry run.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from hvpa.api.hvpa.resource import parse_spec, read_hvpa
from hvpa.api.objects.read_models import RawHvpa
from hvpa.api.schema.fields import LIST_LENGTH
from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from tests.manifests import Case, Manifest, bad, base, changed, good

CRD = Path(__file__).parents[2] / "config" / "crd"
GOOD = {case.name: case for case in good()}
BAD = {case.name: case for case in bad()}


@pytest.fixture(scope="module")
def server(bare_cluster: ControlPlane) -> ControlPlane:
    """A cluster that serves Hvpas, and where no operator is at work."""
    bare_cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", CRD)
    bare_cluster.kubectl(
        "wait", "--for=condition=Established", "--timeout=90s", "crd/hvpas.autoscaling.k8s.io"
    )
    return bare_cluster


def create(server: ControlPlane, manifest: Manifest) -> tuple[int, str, str]:
    """Return code, standard output and error of creating the manifest, without storing it."""
    done = server.kubectl(
        *("create", "--dry-run=server", "--validate=strict", "--namespace=default", "-o", "json", "-f", "-"),
        input=json.dumps(manifest),
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_a_good_manifest_is_accepted_and_read_back(server: ControlPlane, case: Case) -> None:
    code, stored, refusal = create(server, case.manifest)
    assert code == 0, refusal
    read = read_hvpa(msgspec.json.decode(stored, type=RawHvpa))
    assert read.problems == ()
    assert read.spec == parse_spec(case.manifest["spec"])[0]


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_is_refused_with_the_path_of_its_field(server: ControlPlane, case: Case) -> None:
    code, _, refusal = create(server, case.manifest)
    assert code != 0
    assert case.path in refusal
    if case.message:
        assert f"{case.path}: " in refusal
        assert case.message in refusal


def test_the_longest_path_is_not_too_costly_to_check(server: ControlPlane) -> None:
    intervals = [
        {"maxReplicas": count, "maxResources": {"cpu": f"{count:064}", "memory": f"{count:063}G"}}
        for count in range(1, LIST_LENGTH + 1)
    ]
    manifest = changed(base(), {"spec.trajectory.intervals": intervals}, ["spec.weightBasedScalingIntervals"])
    code, _, refusal = create(server, manifest)
    assert code == 0, refusal


def test_every_field_is_explained(server: ControlPlane) -> None:
    # The API server tells what it serves a while after it serves it.
    explained = wait_for(lambda: server.kubectl("explain", "hvpa.spec.hpa").stdout, 60, "the schema")
    assert "Whether a HorizontalPodAutoscaler is created from the template" in explained
    recursive = server.kubectl("explain", "hvpa", "--recursive").stdout
    for field in (
        "weightBasedScalingIntervals",
        "targetAverageUtilization",
        "minChangeTimeout",
        "baseResourcesPerReplica",
        "observedGeneration",
    ):
        assert field in recursive


def test_the_list_shows_target_readiness_mode_replicas_and_what_blocks(server: ControlPlane) -> None:
    name = "printed"
    manifest = base() | {"metadata": {"name": name, "namespace": "default"}}
    server.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    try:
        status = {
            "replicas": 3,
            "hpaWeight": 40,
            "vpaWeight": 60,
            "recommended": {"replicas": 5},
            "actuation": {"resized": "2/3", "pods": 3},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "HeldBack", "message": ""},
                {"type": "ScalingBlocked", "status": "True", "reason": "MinChange", "message": ""},
            ],
        }
        patch = json.dumps({"status": status})
        server.kubectl(
            "patch", "hvpa", name, "-n", "default", "--subresource=status", "--type=merge", "-p", patch
        )
        header, row = server.kubectl("get", "hvpa", name, "-n", "default").stdout.splitlines()
        assert header.split() == [
            "NAME", "TARGET", "READY", "MODE", "CURRENT", "DESIRED", "RESIZED", "BLOCKED", "AGE"
        ]  # fmt: skip
        assert row.split()[:-1] == [name, "app", "True", "Apply", "3", "5", "2/3", "MinChange"]
        wide = server.kubectl("get", "hvpa", name, "-n", "default", "-o", "wide").stdout.splitlines()
        assert wide[0].split()[-4:-1] == ["REASON", "HPA-WEIGHT", "VPA-WEIGHT"]
        assert wide[1].split()[-4:-1] == ["HeldBack", "40", "60"]
    finally:
        server.kubectl("delete", "hvpa", name, "-n", "default")


def test_the_scale_subresource_speaks_for_the_mailbox(server: ControlPlane) -> None:
    name = "scaled"
    manifest = base() | {"metadata": {"name": name, "namespace": "default"}}
    manifest["spec"]["replicas"] = 2
    server.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    try:
        server.kubectl("scale", "hvpa", name, "-n", "default", "--replicas=5")
        scale_replicas = server.kubectl(
            "get", "hvpa", name, "-n", "default", "-o", "jsonpath={.spec.replicas}"
        ).stdout
        assert scale_replicas == "5"
    finally:
        server.kubectl("delete", "hvpa", name, "-n", "default")


def test_a_status_of_gardeners_controller_does_not_stop_a_change_of_the_spec(server: ControlPlane) -> None:
    name = "migrated"
    manifest = base() | {"metadata": {"name": name, "namespace": "default"}}
    server.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    try:
        old = {
            "lastBlockedScaling": [{"reason": "Weight", "scalingStatus": {"hpaStatus": {}, "vpaStatus": {}}}]
        }
        patch = json.dumps({"status": old})
        server.kubectl(
            "patch", "hvpa", name, "-n", "default", "--subresource=status", "--type=merge", "-p", patch
        )
        server.kubectl(
            "patch", "hvpa", name, "-n", "default", "--type=merge", "-p", '{"spec":{"mode":"Paused"}}'
        )
        stored = server.kubectl("get", "hvpa", name, "-n", "default", "-o", "json").stdout
        read = read_hvpa(msgspec.json.decode(stored, type=RawHvpa))
        assert read.spec is not None
        assert read.spec.mode == "Paused"
        assert read.unreadable_status == ("lastBlockedScaling",)
    finally:
        server.kubectl("delete", "hvpa", name, "-n", "default")
