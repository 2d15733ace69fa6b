"""What a cluster shows that is known by its kubeconfig alone, on a real node (`make e2e KUBECONFIG=FILE`)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import REPOSITORY
from tests.e2e.conftest import EXTERNAL

pytestmark = [pytest.mark.owned_cluster, pytest.mark.at_length]


def test_the_scenarios_pass_with_a_kubeconfig_alone(node_cluster: ControlPlane) -> None:
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/e2e/anywhere"]
    environment = {**os.environ, EXTERNAL: str(node_cluster.kubeconfig)}
    done = subprocess.run(argv, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
