"""The tables of good and bad manifests, judged by a real API server with strict field validation.

Of the tables nothing is stored: the server runs all of its checks in a dry run. (kubectl would send the same, and take
a hundred times as long; what it makes of an Hvpa is tested below.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hvpa.api.hvpa.resource import HvpaObject, parse_spec, read_hvpa
from hvpa.api.hvpa.trajectory import MOST_INTERVALS
from hvpa.api.objects.read_models import RawHvpa
from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from tests.manifests import Case, Manifest, bad, base, changed, good

CRD = Path(__file__).parents[2] / "config" / "crd"
GOOD = {case.name: case for case in good()}
BAD = {case.name: case for case in bad()}
NAME = "stored"
HVPA = ("hvpa", NAME, "-n", "default")


@pytest.fixture(scope="module")
def server(bare_cluster: ControlPlane) -> ControlPlane:
    """A cluster that serves Hvpas, and where no operator is at work."""
    bare_cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", CRD)
    bare_cluster.kubectl(
        "wait", "--for=condition=Established", "--timeout=90s", "crd/hvpas.autoscaling.k8s.io"
    )
    return bare_cluster


@pytest.fixture
def stored(server: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster that holds the base manifest as the Hvpa NAME."""
    manifest = base() | {"metadata": {"name": NAME, "namespace": "default"}}
    manifest["spec"]["replicas"] = 2
    server.api.create(manifest)
    yield server
    server.api.delete("Hvpa", NAME, "default")


def create(server: ControlPlane, manifest: Manifest) -> Json:
    """What the API server would store of the manifest. Raises ApiError."""
    path = server.api.path("Hvpa", "default")
    return server.api.raw("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)


def as_read(manifest: Json) -> HvpaObject:
    return read_hvpa(msgspec.json.decode(json.dumps(manifest), type=RawHvpa))


def set_status(server: ControlPlane, status: Json) -> None:
    server.api.patch_status("Hvpa", NAME, "default", status)


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_a_good_manifest_is_accepted_and_read_back(server: ControlPlane, case: Case) -> None:
    read = as_read(create(server, case.manifest))
    assert read.problems == ()
    assert read.spec == parse_spec(case.manifest["spec"])[0]


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_is_refused_with_the_path_of_its_field(server: ControlPlane, case: Case) -> None:
    with pytest.raises(ApiError) as refused:
        create(server, case.manifest)
    refusal = str(refused.value)
    assert case.path in refusal
    if case.message:
        assert f"{case.path}: " in refusal
        assert case.message in refusal


def test_the_longest_path_is_not_too_costly_to_check(server: ControlPlane) -> None:
    intervals = [
        {"maxReplicas": count, "maxResources": {"cpu": f"{count:064}", "memory": f"{count:063}G"}}
        for count in range(1, MOST_INTERVALS + 1)
    ]
    manifest = changed(base(), {"spec.trajectory.intervals": intervals}, ["spec.weightBasedScalingIntervals"])
    assert create(server, manifest)


def test_every_field_is_explained(server: ControlPlane) -> None:
    # The API server lists what it serves a while after it serves it.
    explained = wait_for(lambda: server.kubectl("explain", "hvpa.spec.hpa").stdout, 60, "the schema")
    assert "Whether HVPA creates and owns a HorizontalPodAutoscaler" in explained
    recursive = server.kubectl("explain", "hvpa", "--recursive").stdout
    for field in (
        "weightBasedScalingIntervals",
        "targetAverageUtilization",
        "minChangeTimeout",
        "baseResourcesPerReplica",
        "observedGeneration",
    ):
        assert field in recursive


def test_the_list_shows_target_readiness_mode_replicas_and_what_blocks(stored: ControlPlane) -> None:
    status = {
        "replicas": 3,
        "hpaWeight": 40,
        "vpaWeight": 60,
        "recommended": {"replicas": 5},
        "actuation": {"resized": "2/3", "pods": 3},
        "desired": {
            "replicas": 4,
            "containers": [
                {"name": "app", "requests": {"cpu": "800m", "memory": "600M"}},
                {"name": "sidecar", "requests": {"cpu": "10m"}},
            ],
            "since": "2026-11-21T10:00:00Z",
        },
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "HeldBack", "message": ""},
            {"type": "ScalingBlocked", "status": "True", "reason": "MinChange", "message": ""},
        ],
    }
    set_status(stored, status)
    header, row = stored.kubectl("get", *HVPA).stdout.splitlines()
    assert header.split() == [
        "NAME", "TARGET", "READY", "MODE", "CURRENT", "DESIRED", "RESIZED", "BLOCKED", "AGE"
    ]  # fmt: skip
    assert row.split()[:-1] == [NAME, "app", "True", "Apply", "3", "5", "2/3", "MinChange"]
    wide = stored.kubectl("get", *HVPA, "-o", "wide").stdout.splitlines()
    assert wide[0].split()[-7:-1] == ["DECIDED", "CPU", "MEMORY", "REASON", "HPA-WEIGHT", "VPA-WEIGHT"]
    assert wide[1].split()[-7:-1] == ["4", "800m", "600M", "HeldBack", "40", "60"]


def test_the_scale_subresource_sets_spec_replicas(stored: ControlPlane) -> None:
    stored.kubectl("scale", *HVPA, "--replicas=5")
    assert stored.api.get("Hvpa", NAME, "default")["spec"]["replicas"] == 5


def test_a_status_of_gardeners_controller_does_not_stop_a_change_of_the_spec(stored: ControlPlane) -> None:
    blocked = {"reason": "Weight", "scalingStatus": {"hpaStatus": {}, "vpaStatus": {}}}
    set_status(stored, {"lastBlockedScaling": [blocked]})
    stored.kubectl("patch", *HVPA, "--type=merge", "-p", '{"spec":{"mode":"Paused"}}')
    read = as_read(stored.api.get("Hvpa", NAME, "default"))
    assert read.spec is not None
    assert read.spec.mode == "Paused"
    assert read.unreadable_status == ("lastBlockedScaling",)
