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


# --- workloads in the same files -------------------------------------------------------------------------------------
POLICY: dict[str, Any] = yaml.safe_load(TEAM)


def workload(name: str, kind: str = "Deployment", namespace: str = "shop", **metadata: Any) -> dict[str, Any]:
    container = {"name": "app", "image": "app"}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }


def selecting(kind: str = "HvpaPolicy", name: str = "team", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": "shop"} if kind == "HvpaPolicy" else {})
    return {
        **POLICY,
        "kind": kind,
        "metadata": metadata,
        "spec": {"template": POLICY["spec"]["template"], **spec},
    }


def findings(shell: Shell, *documents: dict[str, Any]) -> list[tuple[str, str]]:
    """Severity and reason of each finding."""
    ran = shell.run("validate", "-o", "json", "-f", shell.file(yaml.safe_dump_all(documents)))
    assert ran.code == 0
    return [(finding["severity"], finding["reason"]) for finding in ran.json["findings"]]


OPTED_OUT: dict[str, Any] = {"annotations": {"hvpa.autoscaling.k8s.io/opt-out": "true"}}


def test_a_policy_says_which_workloads_of_the_files_it_selects(shell: Shell) -> None:
    own = {
        "apiVersion": POLICY["apiVersion"],
        "kind": "Hvpa",
        "metadata": {"name": "mine", "namespace": "shop"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "own"}, "vpa": {"deploy": True}},
    }
    workloads = [
        workload("web"),
        workload("db", "StatefulSet"),
        workload("node", "DaemonSet"),
        workload("own"),
        workload("out", **OPTED_OUT),
        workload("web", namespace="lab"),
    ]
    assert findings(shell, selecting(), own, *workloads) == [
        (
            "note",
            "selects 4 of the 6 workloads in the files, and makes 2 Hvpas: shop/db, shop/web; 1 opt out; 1 have an "
            "Hvpa of their own",
        )
    ]


def test_a_policy_that_selects_none_of_the_workloads_is_a_warning(shell: Shell) -> None:
    wrong = selecting(workloads={"selector": {"matchLabels": {"tier": "bacth"}}})
    assert findings(shell, wrong, workload("web", labels={"tier": "batch"})) == [
        ("warning", "selects none of the 1 workloads in the files")
    ]
    assert findings(shell, wrong) == []  # no workloads to compare with
    assert findings(shell, wrong, workload("web", namespace="lab")) == [  # nor any of its namespace
        ("note", "selects none of the 1 workloads in the files")
    ]


def test_policies_that_select_the_same_workloads_are_named(shell: Shell) -> None:
    found = findings(
        shell, selecting(), selecting("ClusterHvpaPolicy", "all", namespaces={"all": True}), workload("web")
    )
    assert found == [
        (
            "note",
            "selects 1 of the 1 workloads in the files, and makes 1 Hvpas: shop/web; this policy wins 1 workloads over "
            "ClusterHvpaPolicy all",
        ),
        (
            "note",
            "selects none of the 1 workloads in the files; 1 workloads belong to HvpaPolicy shop/team, which is more "
            "specific",
        ),
    ]


def test_labels_of_namespaces_are_those_in_the_files(shell: Shell) -> None:
    labelled = selecting(
        "ClusterHvpaPolicy", "all", namespaces={"selector": {"matchLabels": {"hvpa": "yes"}}}
    )
    assert findings(shell, labelled, workload("web")) == [
        (
            "note",
            "selects none of the 1 workloads in the files; the files lack the labels of the namespaces shop",
        )
    ]
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"hvpa": "yes"}},
    }
    assert findings(shell, labelled, workload("web"), namespace) == [
        ("note", "selects 1 of the 1 workloads in the files, and makes 1 Hvpas: shop/web")
    ]


@pytest.mark.parametrize("broken", [{"spec": 3}, {"metadata": {"name": "web", "labels": [1]}}])
def test_workloads_that_can_t_be_read_are_left_out(shell: Shell, broken: dict[str, Any]) -> None:
    assert findings(shell, selecting(), {**workload("web"), **broken}) == []
    ((severity, _),) = findings(shell, selecting(), {**workload("web"), **broken}, workload("b"))
    assert severity == "note"
