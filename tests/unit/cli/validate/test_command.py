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
    assert ran.out.startswith("1 Hvpa in 1 file: valid")
    assert all(": warning: Hvpa " in line for line in ran.err.splitlines())


def test_bad_manifests_are_refused_with_the_path(shell: Shell) -> None:
    cases = manifests.bad()
    path = shell.file("".join(f"---\n{json.dumps(case.manifest)}\n" for case in cases))
    ran = shell.run("validate", "-f", path)
    assert (ran.code, ran.out) == (1, "")
    *findings, summary = ran.err.splitlines()
    for line, case in enumerate(cases):
        errors = [finding for finding in findings if finding.startswith(f"{path}:{2 * line + 2}: error: ")]
        assert any(f": {case.path}" in error for error in errors), (case.name, errors)
    assert summary.startswith(f"{len(cases)} Hvpas in 1 file: ")


def test_files_with_all_kinds_of_objects_are_checked(shell: Shell) -> None:
    other = changed({"metadata.namespace": "other"})
    ran = shell.run("validate", "-f", str(DATA / "gardener.yaml"), "-f", shell.file(other))
    assert ran.code == 0, ran.err
    assert ran.out.startswith("2 Hvpas in 2 files: valid, ")


def test_standard_input_is_a_file_too(shell: Shell) -> None:
    ran = shell.run("validate", "-f", "-", stdin=json.dumps(changed(QUIET)))
    assert (ran.code, ran.out, ran.err) == (0, "1 Hvpa in 1 file: valid\n", "")


def test_all_faults_of_all_files_are_reported_with_their_lines(shell: Shell) -> None:
    broken = changed({"metadata.name": "b", "metadata.namespace": "shop", "spec.mode": "Stop"})
    first = shell.file([changed({"metadata": {}}), broken], "first.yaml")
    second = shell.file("kind: [\n", "second.yaml")
    third = shell.file({"kind": "Pod"}, "third.yaml")
    ran = shell.run("validate", "-f", first, second, third)
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith(f"{first}:3: error: Hvpa: metadata.name: is required")
    number = (shell.folder / "first.yaml").read_text().splitlines().index("  mode: Stop") + 1
    assert lines[1].startswith(
        f"{first}:{number}: error: Hvpa shop/b: spec.mode: must be 'Apply', 'Review', 'Recommend' or"
    )
    assert lines[2].startswith(f"{second}:2:1: error: not YAML: ")
    assert lines[3] == "2 Hvpas in 3 files: 3 errors"
    assert len(lines) == 4


def test_an_hvpa_must_be_there(shell: Shell) -> None:
    path = shell.file({"kind": "Pod"})
    ran = shell.run("validate", "-f", path)
    assert (ran.code, ran.err.splitlines()[0]) == (1, f"{path}: error: no Hvpa in it")


def test_what_the_api_server_can_not_check_is_checked(shell: Shell) -> None:
    windows = [{"schedule": "0 0 30 2 *", "duration": "1h", "timeZone": "Mars/Base"}]
    ran = shell.run("validate", "-f", shell.file(changed({"spec.maintenanceWindows": windows})))
    assert ran.code == 1
    assert f"Hvpa default/case: {CRON}: must match" in ran.err
    assert "Hvpa default/case: spec.maintenanceWindows[0].timeZone: " in ran.err


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        (
            {"spec.maintenanceWindows": [{"schedule": "0 25 * * 1-5", "duration": "1h"}]},
            "the hour (field 2) must be 0 to 23, or a list, a range or steps of these, such as 1,3 or 1-5 or */2;"
            " it is '25'",
        ),
        ({"kind": "HVPA"}, "kind: there is no kind HVPA; did you mean Hvpa?"),
        ({"kind": "Hpva"}, "kind: there is no kind Hpva; did you mean Hvpa?"),
        ({"apiVersion": "v1"}, "apiVersion: must be autoscaling.k8s.io/v1alpha1; it is 'v1'"),
        ({"apiVersion": None}, "apiVersion: must be autoscaling.k8s.io/v1alpha1; it is missing"),
        ({"spec.hpa.scaleup": {}}, "spec.hpa.scaleup: unknown field; did you mean scaleUp?"),
        ({"spec.minReplicas": 1}, "spec.minReplicas: unknown field; it belongs in spec.hpa.template.spec"),
        ({"spec.hpa.scaleUp.updatePolicy.updateMode": False}, "or 'MaintenanceWindow'; write it in quotes"),
    ],
)
def test_an_error_says_what_may_have_been_meant(shell: Shell, changes: Doc, reported: str) -> None:
    ran = shell.run("validate", "-f", shell.file(changed(changes)))
    assert ran.code == 1
    assert reported in ran.err


HOLE = [{"vpaWeight": 20, "startReplicaCount": 1, "lastReplicaCount": 6}]
QUIET: Doc = {
    "spec.hpa.template.spec.metrics": [
        {"type": "Resource", "resource": {"name": "cpu", "targetAverageValue": "300m"}}
    ],
    "spec.weightBasedScalingIntervals": [{"vpaWeight": 50}],
}


def test_a_warning_fails_only_where_it_is_to(shell: Shell) -> None:
    path = shell.file(changed({**QUIET, "spec.weightBasedScalingIntervals": HOLE}))
    ran = shell.run("validate", "-f", path)
    assert (ran.code, ran.out) == (0, "1 Hvpa in 1 file: valid, 1 warning\n")
    assert "Hvpa default/case: spec.weightBasedScalingIntervals: no interval contains 7 to 10" in ran.err
    strict = shell.run("validate", "--strict", "-f", path)
    assert (strict.code, strict.out) == (1, "")


def test_json_is_for_programs(shell: Shell) -> None:
    path = shell.file(changed({**QUIET, "spec.weightBasedScalingIntervals": HOLE}))
    reported = shell.run("validate", "-o", "json", "-f", path).json
    assert (reported["files"], reported["hvpas"], reported["errors"], reported["warnings"]) == (1, 1, 0, 1)
    (finding,) = reported["findings"]
    lines = (shell.folder / "case.yaml").read_text().splitlines()
    assert lines[finding.pop("line") - 1] == "  weightBasedScalingIntervals:"
    assert finding.pop("reason").startswith("no interval contains 7 to 10")
    assert finding.pop("remedy")
    assert finding == {
        "severity": "warning",
        "file": path,
        "column": None,
        "object": "Hvpa default/case",
        "field": "spec.weightBasedScalingIntervals",
    }


def test_files_are_needed(shell: Shell) -> None:
    needed = "one of the arguments -f/--filename -k/--kustomize is required"
    assert needed in shell.refuses("validate", code=2)
