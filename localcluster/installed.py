"""The programs of a real cluster with HVPA installed, as processes next to the control plane: a Prometheus that has
watched the workload for two weeks (docs/first-day.md), and, if pods are simulated, the operator of the Deployment."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from localcluster.client.api import ApiError, KubeApi
from localcluster.controlplane.cluster import ExternalCluster
from localcluster.controlplane.keeper import running, state_folder
from localcluster.controlplane.loopback import LABEL
from localcluster.monitoring import scraping_operator, scraping_pods, write_pods, write_quick_rules
from localcluster.operator.operator import NAMESPACE
from localcluster.prometheus import Prometheus
from localcluster.workloads import history

DEPLOYMENT: Final = "hvpa"
"""The name of the Deployment that `make deploy` and a Helm release `hvpa` create."""


def become_operator(state: Mapping[str, Any], metrics_port: int) -> NoReturn:
    """Replace this process by the program of a pod of the operator's Deployment: its arguments, with the rights of its
    ServiceAccount. Only its port for metrics is served, on 127.0.0.1. Raises `ApiError` if nothing is installed."""
    kubeconfig, programs = Path(state["kubeconfig"]), Path(state["programs"])
    cluster = ExternalCluster(state_folder(), kubeconfig, programs / "kubectl")
    pod = cluster.api.get("Deployment", DEPLOYMENT, NAMESPACE)["spec"]["template"]["spec"]
    own = cluster.service_account_kubeconfig(NAMESPACE, pod["serviceAccountName"])
    addresses = ("--metrics-bind-address", f"127.0.0.1:{metrics_port}", "--health-probe-bind-address", "0")
    where = ("--kubeconfig", str(own), "--lease-namespace", NAMESPACE)
    argv = [sys.executable, "-m", "hvpa", *pod["containers"][0]["args"], *where, *addresses]
    os.execv(sys.executable, argv)


@contextmanager
def prometheus(port: int, metrics_port: int) -> Iterator[Prometheus]:
    """A Prometheus on 127.0.0.1 with the two weeks of `localcluster.workloads.history` until now. It scrapes the
    operator at `metrics_port`, or its pods if the running control plane has a real node. Its alerts wait for seconds
    instead of minutes. Raises `BuildError`, or `RuntimeError` if it does not start."""
    folder = state_folder() / "prometheus"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rules = write_quick_rules(folder / "rules.yaml")
    state = running() or {}
    is_real, targets = state.get("real", False), folder / "operator.json"
    config = scraping_pods(targets) if is_real else scraping_operator(f"127.0.0.1:{metrics_port}")
    server = Prometheus(folder, config, rules=[rules], port=port)
    server.backfill(history.lines(int(time.time()) // history.EVERY * history.EVERY))
    with server, _following(Path(state["kubeconfig"]), targets) if is_real else nullcontext():
        yield server


@contextmanager
def _following(kubeconfig: Path, targets: Path) -> Iterator[None]:
    """For the time of the block, a file has the addresses of the operator's pods."""
    end = threading.Event()
    api = KubeApi(kubeconfig)
    selector = ",".join(f"{key}={value}" for key, value in LABEL.items())

    def follow() -> None:
        while not end.wait(1):
            with suppress(ApiError, OSError):  # the API server may be away for a while
                write_pods(targets, api.list("Pod", NAMESPACE, selector))

    thread = threading.Thread(target=follow, name="targets", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(10)
