"""The local cluster itself: its programs are of one version, and none of them stays behind. What else is relied on
shows wherever a test relies on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.process import Process
from localcluster.programs.build import kubernetes_version

pytestmark = pytest.mark.owned_cluster


def test_kubectl_reports_the_same_version_of_itself_and_of_the_server(cluster: ControlPlane) -> None:
    version = kubernetes_version()
    printed = cluster.kubectl("version").stdout
    assert f"Client Version: {version}\n" in printed
    assert f"Server Version: {version}\n" in printed


def pod(name: str, namespace: str, cpu: str) -> Json:
    metadata = {"name": name, "namespace": namespace}
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def test_a_quota_counts_what_is_used_and_refuses_what_is_more(cluster: Cluster, namespace: str) -> None:
    api = cluster.api
    metadata = {"name": "small", "namespace": namespace}
    spec = {"hard": {"requests.cpu": "500m"}}
    api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})

    def used() -> object:
        return api.get("ResourceQuota", "small", namespace).get("status", {}).get("used")

    wait_for(lambda: used() == {"requests.cpu": "0"}, 60, "the quota is counted")
    api.create(pod("first", namespace, "300m"))
    wait_for(lambda: used() == {"requests.cpu": "300m"}, 60, "the first pod is counted")
    with pytest.raises(
        ApiError, match=r"exceeded quota: small, requested: requests\.cpu=300m, used: requests\.cpu=300m"
    ):
        api.create(pod("second", namespace, "300m"))
    api.delete("Pod", "first", namespace)
    wait_for(lambda: used() == {"requests.cpu": "0"}, 60, "the deleted pod counts no longer")
    api.create(pod("second", namespace, "300m"))


class TestNothingStays:
    """No program outlives what started it."""

    def test_a_program_dies_with_a_starter_that_is_killed(self, tmp_path: Path) -> None:
        script = (
            "import pathlib, sys, time\n"
            "from localcluster.process import Process\n"
            f"process = Process('sleep', ['/bin/sleep', '600'], pathlib.Path({str(tmp_path / 'log')!r}))\n"
            "process.start()\n"
            "print(process.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        root = str(Path(__file__).resolve().parents[2])
        with subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=root
        ) as starter:
            assert starter.stdout is not None
            group = int(starter.stdout.readline())
            assert exists(group)
            starter.send_signal(signal.SIGKILL)
        wait_for(lambda: not exists(group), 60, "it died too")

    def test_a_program_started_from_a_short_lived_thread_lives_on(self, tmp_path: Path) -> None:
        process = Process("sleep", ["/bin/sleep", "600"], tmp_path / "log")
        thread = threading.Thread(target=process.start)
        thread.start()
        thread.join()
        try:
            time.sleep(0.3)
            assert process.alive
        finally:
            process.kill()


def exists(group: int) -> bool:
    """Whether any process of this group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
