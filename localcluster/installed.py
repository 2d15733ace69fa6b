"""What runs in a real cluster once HVPA is installed, as processes beside a control plane whose pods are simulated: the
operator of the Deployment, and a Prometheus that has watched the workload for two weeks (docs/first-day.md)."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

from localcluster.controlplane.cluster import ExternalCluster
from localcluster.controlplane.keeper import state_folder
from localcluster.monitoring import scraping_operator, write_quick_rules
from localcluster.operator.operator import NAMESPACE
from localcluster.prometheus import Prometheus
from localcluster.workloads import history

DEPLOYMENT: Final = "hvpa"
"""What `make deploy` and a Helm release `hvpa` make."""
DAY: Final = 86400
"""Seconds that the operator's token lasts."""


def become_operator(state: Mapping[str, Any], metrics_port: int) -> NoReturn:
    """Become what a pod of the operator's Deployment runs: its arguments, with the rights of its ServiceAccount. Of its
    ports there is the one for metrics, at 127.0.0.1. Raises `ApiError` where nothing is installed."""
    kubeconfig, programs = Path(state["kubeconfig"]), Path(state["programs"])
    cluster = ExternalCluster(state_folder(), kubeconfig, programs / "kubectl")
    pod = cluster.api.get("Deployment", DEPLOYMENT, NAMESPACE)["spec"]["template"]["spec"]
    own = cluster.service_account_kubeconfig(NAMESPACE, pod["serviceAccountName"], DAY)
    addresses = ("--metrics-bind-address", f"127.0.0.1:{metrics_port}", "--health-probe-bind-address", "0")
    where = ("--kubeconfig", str(own), "--lease-namespace", NAMESPACE)
    argv = [sys.executable, "-m", "hvpa", *pod["containers"][0]["args"], *where, *addresses]
    os.execv(sys.executable, argv)


@contextmanager
def prometheus(port: int, metrics_port: int) -> Iterator[Prometheus]:
    """A Prometheus at 127.0.0.1 with the two weeks of `localcluster.workloads.history` until now. It scrapes the
    operator at `metrics_port`, and its alerts wait for seconds in place of minutes. Raises `BuildError`, or
    `RuntimeError` where it does not start."""
    folder = state_folder() / "prometheus"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rules = write_quick_rules(folder / "rules.yaml")
    server = Prometheus(folder, scraping_operator(f"127.0.0.1:{metrics_port}"), rules=[rules], port=port)
    server.backfill(history.lines(int(time.time()) // history.EVERY * history.EVERY))
    with server:
        yield server
