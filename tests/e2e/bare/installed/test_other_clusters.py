"""`make e2e KUBECONFIG=FILE` runs on the cluster that it is told, and on none that somebody uses."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from localcluster.workloads.bare_manifests import hvpa
from tests.e2e.conftest import EXTERNAL


def test_a_cluster_with_hvpas_of_its_own_is_refused(plane: ControlPlane) -> None:
    namespace = "a-user"  # listed before other tests' namespaces: the message names the first Hvpa
    plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    plane.api.create(hvpa("web", namespace, {"mode": "Paused"}))
    try:
        argv = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "tests/e2e/anywhere"]
        environment = {**os.environ, EXTERNAL: str(plane.kubeconfig)}
        done = subprocess.run(argv, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    finally:
        plane.api.delete("Hvpa", "web", namespace)
    assert done.returncode == 2, done.stdout
    assert "is a cluster with Hvpas of its own (a-user/web): use another one" in done.stdout
    assert " passed" not in done.stdout


@pytest.mark.parametrize(
    ("argument", "environment", "is_used"),
    [(["KUBECONFIG=/given"], {}, True), ([], {"KUBECONFIG": "/given"}, False), ([], {}, False)],
    ids=["given to make", "of the shell", "none"],
)
def test_only_a_kubeconfig_that_make_is_given_is_used(
    argument: list[str], environment: dict[str, str], is_used: bool
) -> None:
    unset = {"KUBECONFIG", "MAKEFLAGS", "MAKEOVERRIDES"}
    clean = {name: value for name, value in os.environ.items() if name not in unset}
    argv = ["make", "--dry-run", "e2e", *argument]
    done = subprocess.run(argv, cwd=REPOSITORY, env=clean | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ('HVPA_E2E_KUBECONFIG="/given"' in done.stdout) == is_used
