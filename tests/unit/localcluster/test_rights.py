"""The verdict on a whole run of end-to-end tests: what is taken from audit logs, what is complained of, and that a
run that has something to complain of fails, in one process and in several."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from localcluster.client import rights
from localcluster.client.api import Json
from localcluster.client.rights import USER, Circumstances, Right, Summary, complaints

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
MEANS_IT = "system:serviceaccount:a:without-rights"
PATCH: Right = ("apps", "deployments", "patch")


def event(
    verb: str, resource: str, code: int = 200, *, user: str = USER, second: int = 0, namespace: str = "a"
) -> Json:
    """A line of the audit log, as a document."""
    group, _, what = resource.rpartition(".")
    plural, _, subresource = what.partition("/")
    return {
        "stage": "ResponseStarted" if verb == "watch" else "ResponseComplete",
        "verb": verb,
        "user": {"username": user},
        "objectRef": {
            "apiGroup": group,
            "resource": plural,
            "subresource": subresource,
            "namespace": namespace,
        },
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": "forbid" if code == 403 else "allow"},
        "stageTimestamp": f"2026-11-21T12:00:{second:02}.000000Z",
        "requestURI": "/",
    }


def written(folder: Path, *events: Json) -> Path:
    path = folder / "audit.log"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_what_the_operator_used_is_counted_and_what_others_did_is_not(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        event("patch", "apps.deployments"),
        event("patch", "apps.deployments", 409),
        event("watch", "pods"),
        event("delete", "pods", user="system:admin"),
        event("patch", "autoscaling.horizontalpodautoscalers", 201),
        event("patch", "autoscaling.k8s.io.hvpas/status", 404),
        event("get", "secrets", user="a user who quotes " + USER),
        event("list", "coordination.k8s.io.leases", user="replica"),
    )
    summary = rights.summary(log, Circumstances(operators={USER, "replica"}))
    assert summary.used == {
        PATCH: 2,
        ("", "pods", "watch"): 1,
        ("autoscaling", "horizontalpodautoscalers", "patch"): 1,
        ("autoscaling", "horizontalpodautoscalers", "create"): 1,
        ("autoscaling.k8s.io", "hvpas/status", "patch"): 1,
        ("coordination.k8s.io", "leases", "list"): 1,
    }
    assert (summary.denied, summary.private) == ([], [])


def test_denials_and_reads_of_secrets_are_kept_with_what_they_were(tmp_path: Path) -> None:
    log = written(tmp_path, event("list", "secrets"), event("delete", "apps.deployments", 403))
    summary = rights.summary(log, Circumstances())
    assert summary.used == {("", "secrets", "list"): 1}
    assert summary.private == [f"12:00:00.000000 {USER} list secrets a/ 200"]
    assert summary.denied == [f"12:00:00.000000 {USER} delete deployments a/ 403"]


def test_denials_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    known = Circumstances(starts=[(NOON, NOON + dt.timedelta(seconds=2))], meant={"meant", MEANS_IT})
    known.operators.add(MEANS_IT)
    log = written(
        tmp_path,
        event("list", "pods", 403, second=1),
        event("list", "pods", 403, second=5, namespace="meant"),
        event("list", "pods", 403, second=5, user=MEANS_IT),
        event("list", "pods", 403, second=5),
    )
    assert rights.summary(log, known).denied == [f"12:00:05.000000 {USER} list pods a/ 403"]


def test_a_namespace_that_is_going_is_no_denial(tmp_path: Path) -> None:
    refused = event("create", "events", 403) | {"annotations": {"authorization.k8s.io/decision": "allow"}}
    assert rights.summary(written(tmp_path, refused), Circumstances()).denied == []


def test_summaries_of_several_control_planes_add_up(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    log = written(tmp_path, event("patch", "apps.deployments"), event("list", "pods", 403))
    for _ in range(2):
        rights.leave(folder, log, Circumstances())
    rights.leave(folder, tmp_path / "none.log", Circumstances())
    rights.leave(tmp_path / "gone", log, Circumstances())
    summary = rights.collect(folder)
    assert summary.used == {PATCH: 2}
    assert len(summary.denied) == 2


def test_the_rights_of_config_are_those_that_are_bound_to_the_operator() -> None:
    permissions = rights.granted()
    assert permissions >= {
        PATCH,
        ("autoscaling.k8s.io", "hvpas/status", "patch"),
        ("coordination.k8s.io", "leases", "update"),
        ("authentication.k8s.io", "tokenreviews", "create"),
    }
    assert ("autoscaling.k8s.io", "hvpas", "deletecollection") not in permissions  # the editors'


def test_what_is_complained_of() -> None:
    allowed = {PATCH, ("", "pods", "list")}
    fine = Summary(Counter({PATCH: 1, ("", "pods", "list"): 1}))
    assert complaints(fine, allowed, whole=True) == []
    narrow = Summary(Counter({PATCH: 1}))
    assert complaints(narrow, allowed, whole=False) == []
    assert complaints(narrow, allowed, whole=True) == [
        "1 rights in config/ that no end-to-end test used: needless, or not tested:",
        "  list pods (core)",
    ]
    bad = Summary(fine.used, denied=[f"denied {number}" for number in range(12)], private=["get secrets"])
    reported = complaints(bad, allowed, whole=True)
    assert reported[0].startswith("12 requests of the operator were denied")
    assert reported[1:12] == [*(f"  denied {number}" for number in range(10)), "  … and 2 more"]
    assert reported[12].startswith("1 requests of the operator for secrets or configmaps")


CONFTEST = """
from tests.e2e import whole_run

def pytest_configure(config):
    whole_run.watch(config)
"""
ALL_THERE_IS = """
import pathlib
whole_run.HERE = pathlib.Path(__file__).resolve().parent
"""
"""As if the temporary folder held all end-to-end tests."""
TEST = """
import json, os, pathlib, pytest

@pytest.mark.parametrize("number", range(4))
def test_leaves_a_summary(number):
    content = {content}
    path = pathlib.Path(os.environ["HVPA_E2E_RIGHTS"]) / (str(number) + ".json")
    path.write_text(json.dumps(content))
"""


def run(folder: Path, content: Json, *flags: str, conftest: str = CONFTEST) -> tuple[int, str]:
    """Exit code and output of pytest with a test that leaves this as the summary of four control planes."""
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_it.py").write_text(TEST.replace("{content}", repr(content)))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *flags, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop(rights.VARIABLE, None)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout


@pytest.mark.parametrize("flags", [[], ["-n", "2"]], ids=["one process", "several"])
def test_a_run_in_which_something_was_denied_fails(tmp_path: Path, flags: list[str]) -> None:
    code, reported = run(tmp_path, {"used": [[*PATCH, 2]], "denied": ["delete nodes"], "private": []}, *flags)
    assert code == 1
    assert "4 passed" in reported
    assert "4 requests of the operator were denied" in reported
    assert "  delete nodes" in reported
    assert "rights: 8 requests of the operator used 1 of " in reported


def test_a_part_of_the_tests_is_not_blamed_for_what_it_did_not_use(tmp_path: Path) -> None:
    code, reported = run(tmp_path, {"used": [[*PATCH, 1]], "denied": [], "private": []})
    assert code == 0, reported
    assert "not all end-to-end tests passed" in reported


@pytest.mark.parametrize("flags", [[], ["-k", "leaves"]], ids=["all", "narrowed down"])
def test_all_of_them_are_blamed(tmp_path: Path, flags: list[str]) -> None:
    content = {"used": [[*PATCH, 1]], "denied": [], "private": []}
    code, reported = run(tmp_path, content, *flags, conftest=CONFTEST + ALL_THERE_IS)
    blamed = "rights in config/ that no end-to-end test used" in reported
    assert (code, blamed) == ((0, False) if flags else (1, True))
