"""`hvpa validate`: the tables of good and bad manifests, and what is printed where."""

from __future__ import annotations

import json

import pytest

from tests import manifests
from tests.manifests import Case
from tests.unit.cli.support import DATA, Doc, Shell

CRON = "spec.maintenanceWindows[0].schedule"


def changed(values: Doc) -> Doc:
    """The complete manifest with the fields at these paths replaced."""
    return manifests.changed(manifests.base(), values)


@pytest.mark.parametrize("case", manifests.good(), ids=lambda case: case.name)
def test_good_manifests_are_accepted(shell: Shell, case: Case) -> None:
    ran = shell.run("validate", "-f", shell.file(json.dumps(case.manifest)))
    assert ran.code == 0, ran.err
    assert ran.out == "1 Hvpa in 1 file: valid\n"


@pytest.mark.parametrize("case", manifests.bad(), ids=lambda case: case.name)
def test_bad_manifests_are_refused_with_the_path(shell: Shell, case: Case) -> None:
    path = shell.file(json.dumps(case.manifest))
    ran = shell.run("validate", "-f", path)
    assert (ran.code, ran.out) == (1, "")
    assert all(line.startswith(f"{path}: ") for line in ran.err.splitlines())
    assert any(f": {case.path}" in line for line in ran.err.splitlines()), ran.err


def test_files_with_all_kinds_of_objects_are_checked(shell: Shell) -> None:
    ran = shell.run("validate", "-f", str(DATA / "gardener.yaml"), "-f", shell.file(manifests.base()))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "2 Hvpas in 2 files: valid\n"


def test_standard_input_is_a_file_too(shell: Shell) -> None:
    ran = shell.run("validate", "-f", "-", stdin=json.dumps(manifests.base()))
    assert (ran.code, ran.out) == (0, "1 Hvpa in 1 file: valid\n")


def test_all_faults_of_all_files_are_told(shell: Shell) -> None:
    broken = changed({"metadata.name": "b", "metadata.namespace": "shop", "spec.mode": "Stop"})
    nameless = changed({"metadata": {}})
    first = shell.file([broken, nameless, manifests.base()], "first.yaml")
    second = shell.file("kind: [\n", "second.yaml")
    third = shell.file({"kind": "Pod"}, "third.yaml")
    ran = shell.run("validate", "-f", first, second, third)
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith(f"{first}: Hvpa shop/b: spec.mode: must be 'Apply', 'Recommend' or 'Paused'")
    assert lines[1].startswith(f"{first}: document 2: Hvpa: metadata.name: ")
    assert lines[2].startswith(f"{second}: line 2, column 1: ")
    assert lines[3] == f"{third}: no Hvpa in it"
    assert len(lines) == 4


def test_what_the_api_server_can_not_check_is_checked(shell: Shell) -> None:
    windows = [{"schedule": "61 * * * *", "duration": "1h", "timeZone": "Mars/Base"}]
    ran = shell.run("validate", "-f", shell.file(changed({"spec.maintenanceWindows": windows})))
    assert ran.code == 1
    assert f"Hvpa default/case: {CRON}: " in ran.err
    assert "Hvpa default/case: spec.maintenanceWindows[0].timeZone: " in ran.err


def test_a_warning_does_not_fail(shell: Shell) -> None:
    intervals = [
        {"vpaWeight": 20, "startReplicaCount": 1, "lastReplicaCount": 6},
        {"vpaWeight": 40, "startReplicaCount": 3, "lastReplicaCount": 10},
    ]
    overlapping = changed({"spec.weightBasedScalingIntervals": intervals})
    ran = shell.run("validate", "-f", shell.file(overlapping))
    assert (ran.code, ran.out) == (0, "1 Hvpa in 1 file: valid\n")
    assert "Hvpa default/case: warning: " in ran.err


def test_an_hvpa_of_another_version_is_refused(shell: Shell) -> None:
    ran = shell.run("validate", "-f", shell.file(changed({"apiVersion": "v1"})))
    assert (ran.code, "apiVersion: must be autoscaling.k8s.io/v1alpha1" in ran.err) == (1, True)


def test_files_are_needed(shell: Shell) -> None:
    ran = shell.run("validate")
    assert ran.code == 2
    assert ran.err == (
        "hvpa validate: error: the following arguments are required: -f/--filename (see hvpa validate --help)\n"
    )
