"""`hvpa validate` with policies: those of the page, and faults by field and line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.support import Shell

PAGE = (Path(__file__).parents[4] / "docs" / "policies.md").read_text()
TEAM, EVERYWHERE = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_policies_of_the_page_are_valid(shell: Shell) -> None:
    ran = shell.run("validate", "-f", shell.file(f"{TEAM}---\n{EVERYWHERE}"))
    assert (ran.code, ran.out, ran.err) == (0, "2 policies in 1 file: valid\n", "")
    assert shell.run("validate", "-o", "json", "-f", shell.file(TEAM)).json["policies"] == 1


@pytest.mark.parametrize(
    ("manifest", "old", "new", "problem"),
    [
        (TEAM, "stage: Recommend", "stage: Off", "spec.stage: must be 'Recommend', 'Review' or 'Apply'"),
        (TEAM, "v1alpha1", "v1", "apiVersion: must be 'autoscaling.k8s.io/v1alpha1'"),
        (TEAM, "name: team", "labels: {}", "metadata.name: is required"),
        (EVERYWHERE, "exclude: [sandbox]", "exclude: sandbox", "spec.namespaces.exclude: must be a list"),
        (EVERYWHERE, "kind: Cluster", "kind: ", "spec.namespaces: unknown field"),
        (
            TEAM,
            "    blend: Trajectory",
            '    maintenanceWindows: [{schedule: "0 0 30 2 *", duration: 1h}]',
            "spec.template.maintenanceWindows[0].schedule: ",
        ),
    ],
)
def test_faults_are_reported_by_field(shell: Shell, manifest: str, old: str, new: str, problem: str) -> None:
    assert old in manifest
    path = shell.file(manifest.replace(old, new))
    ran = shell.run("validate", "-f", path)
    assert (ran.code, ran.out) == (1, "")
    finding, summary = ran.err.splitlines()
    assert finding.startswith(f"{path}:")
    assert f": {problem}" in finding
    assert summary == "1 policy in 1 file: 1 error"


def test_hvpas_beside_policies_are_counted(shell: Shell) -> None:
    policy: dict[str, Any] = yaml.safe_load(TEAM)
    spec = {**policy["spec"]["template"], "targetRef": {"kind": "Deployment", "name": "web"}}
    hvpa = {**policy, "kind": "Hvpa", "metadata": {"name": "web"}, "spec": spec}
    ran = shell.run("validate", "-f", shell.file(f"{yaml.safe_dump(hvpa)}---\n{TEAM}"))
    assert (ran.code, ran.out.partition(":")[0]) == (0, "1 Hvpa and 1 policy in 1 file")
