"""A real node leaves nothing on the machine, listens on loopback alone, and pulls no image."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane, remove_leftovers
from localcluster.workloads.real_pods import RealPods
from tests.e2e.node.leftovers import machine
from tests.e2e.node.sockets import beyond_loopback

pytestmark = [pytest.mark.owned_cluster, pytest.mark.usefixtures("real_nodes")]
ROOT = Path(__file__).resolve().parents[3]


def test_it_leaves_nothing_and_listens_on_loopback_alone(tmp_path: Path) -> None:
    before, open_before = machine(os.getpid()), beyond_loopback()
    assert (before["cgroups"], before["running"]) == ([], [])
    with ControlPlane(nodes="real") as cluster:
        pods = RealPods(cluster.api, cluster.nodes, "default", tmp_path)
        pods.use("web", 50, 20)
        pods.create("web", {"cpu": "50m", "memory": "32Mi"}, {"memory": "64Mi"})
        meanwhile = machine(os.getpid())
        assert meanwhile["cgroups"]
        assert meanwhile["running"]
        assert (meanwhile["settings"], meanwhile["mounts"]) == (before["settings"], before["mounts"])
        assert beyond_loopback() <= open_before
        assert [len(node["status"]["images"]) for node in cluster.api.list("Node")] == [1]
    assert machine(os.getpid()) == before


def test_a_killed_run_leaves_no_process_and_the_next_one_removes_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import time\n"
        "from localcluster.controlplane.controlplane import ControlPlane\n"
        "with ControlPlane(nodes='real') as cluster:\n"
        "    print(cluster.folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert machine(owner.pid)["running"]
        owner.send_signal(signal.SIGKILL)
    wait_for(lambda: not machine(owner.pid)["running"], 60, "its processes have ended")
    assert machine(owner.pid)["cgroups"]
    assert folder.parent == tmp_path
    assert folder.exists()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def removed() -> bool:
        remove_leftovers()
        return not machine(owner.pid)["cgroups"] and not folder.exists()

    wait_for(removed, 60, "nothing is left")
