"""The operator in tests: a separate process with its own identity and rights, as in a cluster."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from hvpa.kube.server.metrics import FRESH
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.cluster import Cluster
from localcluster.operator import fault_points, shifted_clock
from localcluster.process import Process, Start, free_port, spawn
from localcluster.programs.build import build

REPOSITORY = Path(__file__).resolve().parents[2]
NAMESPACE = "hvpa-system"
SERVICE_ACCOUNT = "hvpa"
CUSTOM_KINDS = REPOSITORY / "config" / "custom-kinds"
WITH_FAULTS = "localcluster.operator.with_faults"
ROUNDING = 0.05
"""Seconds by which clocks of two processes may differ when they judge the age of a page."""
FAULTS = frozenset({fault_points.VARIABLE, shifted_clock.VARIABLE})
"""Environment variables that only WITH_FAULTS understands."""


def install_crds(cluster: Cluster) -> None:
    """Apply the CRDs of `config/crd` and wait until they are served."""
    _apply_kustomization(cluster, "crd")


def install_vpa_crd(cluster: Cluster) -> None:
    """Apply the CRD of VPAs, on a control plane without a recommender. Raises `BuildError`."""
    text = build(full=True).shared["vpa-crd.yaml"].read_text()
    cluster.apply_all([document for document in yaml.safe_load_all(text) if document])


def install_operator_rbac(cluster: Cluster, *, deployment: bool = True) -> Path:
    """Apply `config/default`, and `config/size-at-creation` if the API server supports it, as `make deploy` does, and
    return a kubeconfig of the operator's own ServiceAccount. (KWOK then simulates the operator's pods, which do
    nothing; a real node has no image for them, so `deployment` is False.)"""
    _apply_kustomization(cluster, "default", () if deployment else ("Deployment",))
    if serves_mutating_policies(cluster):
        _apply_kustomization(cluster, "size-at-creation")
    user = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
    cluster.await_right(user, _rule("autoscaling.k8s.io", "hvpas", "list"))
    cluster.await_right(user, _rule("coordination.k8s.io", "leases", "create"), NAMESPACE)
    return operator_kubeconfig(cluster)


def install_fast_signal(cluster: Cluster) -> tuple[str, ...]:
    """Apply `config/fast-signal`, and return the operator's arguments for the kubelets of real nodes (all of one node,
    since they have different ports)."""
    _apply_kustomization(cluster, "fast-signal")
    cluster.await_right(f"system:serviceaccount:{NAMESPACE}:hvpa-kubelets", _rule("", "nodes/metrics", "get"))
    port = cluster.api.list("Node")[0]["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    return ("--kubelet-port", str(port), "--lease-namespace", NAMESPACE)


def install_rollback_metrics(cluster: Cluster) -> None:
    """Apply `config/rollback-metrics`: the operator's right to read metrics of services."""
    _apply_kustomization(cluster, "rollback-metrics")
    for group in ("external.metrics.k8s.io", "custom.metrics.k8s.io"):
        cluster.await_right(
            f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}", _rule(group, "any", "get")
        )


def install_node_room(cluster: Cluster) -> None:
    """Apply `config/node-room`: the operator's right to read nodes."""
    _apply_kustomization(cluster, "node-room")
    cluster.await_right(f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}", _rule("", "nodes", "list"))


def install_policies(cluster: Cluster) -> None:
    """Apply `config/hvpa-policy` without its Deployment: CRDs of policies, and what the operator may do for them."""
    _apply_kustomization(cluster, "hvpa-policy", ("Deployment",))
    user = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
    cluster.await_right(user, _rule("autoscaling.k8s.io", "hvpapolicies", "list"))


def install_deletion_cost(cluster: Cluster) -> None:
    """Apply `config/deletion-cost`: the operator's right to set deletion costs of pods."""
    _apply_kustomization(cluster, "deletion-cost")
    cluster.await_right(f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}", _rule("", "pods", "patch"))


def install_custom_kinds(cluster: Cluster) -> None:
    """Apply the operator's part of `config/custom-kinds`: the right to read and scale Argo Rollouts."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted(CUSTOM_KINDS.glob("operator_*.yaml"))]
    cluster.apply_all(documents)
    cluster.await_right(
        f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}", _rule("argoproj.io", "rollouts/scale", "get")
    )


def serves_mutating_policies(cluster: Cluster) -> bool:
    """Whether the API server has MutatingAdmissionPolicies, as in Kubernetes 1.36 and newer."""
    known = cluster.api.raw("GET", "/apis/admissionregistration.k8s.io/v1")["resources"]
    return any(resource["name"] == "mutatingadmissionpolicies" for resource in known)


def _rule(group: str, resource: str, verb: str) -> Json:
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb]}


def operator_kubeconfig(cluster: Cluster) -> Path:
    """A kubeconfig that acts as the operator's ServiceAccount."""
    wait_for(
        lambda: cluster.api.find("ServiceAccount", SERVICE_ACCOUNT, NAMESPACE), 60, "the operator's account"
    )
    return cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)


def _apply_kustomization(cluster: Cluster, name: str, without: Container[str] = ()) -> None:
    output = cluster.kubectl("kustomize", REPOSITORY / "config" / name).stdout
    documents = [document for document in yaml.safe_load_all(output) if document]
    cluster.apply_all([document for document in documents if document["kind"] not in without])


class Operator:
    """An operator process: `python -m hvpa run`, or `with_faults` if the environment sets a variable for it. As a
    context manager it is started, and killed at the end."""

    starter: ClassVar[Start] = spawn
    """Starts the processes; tests that start many operators set it to the start of a `Forker`."""

    def __init__(
        self,
        cluster: Cluster,
        kubeconfig: Path,
        *args: str,
        name: str = "operator",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`args` are further arguments of `hvpa run`, `env` further environment."""
        self._health, self._metrics = free_port(), free_port()
        self._page_until = 0.0
        module = WITH_FAULTS if FAULTS & (env or {}).keys() else "hvpa"
        argv = [
            *(sys.executable, "-m", module, "run"),
            *("--kubeconfig", str(kubeconfig)),
            *("--health-probe-bind-address", f"127.0.0.1:{self._health}"),
            *("--metrics-bind-address", f"127.0.0.1:{self._metrics}"),
            *args,
        ]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1", **(env or {})}
        self.log = cluster.folder / f"{name}-{self._health}.log"
        starter = type(self).starter
        self.process = Process(name, argv, self.log, env=environment, cwd=REPOSITORY, start=starter)

    def __enter__(self) -> Operator:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.resume()
        self.kill()

    def start(self, *, wait: bool = True, timeout: float = 90) -> None:
        """Start it, and wait until it is ready; raises `RuntimeError` with the end of its log if it isn't."""
        self.process.start()
        if wait:
            self.await_ready(timeout)

    def await_ready(self, timeout: float = 90) -> None:
        """Wait until `/readyz` answers 200."""

        def ready() -> bool:
            if not self.process.alive:
                raise RuntimeError(
                    f"the operator ended with {self.process.returncode}:\n{self.process.tail()}"
                )
            return self.probe("readyz") == 200

        try:
            wait_for(ready, timeout, "the operator is ready", interval=0.05)
        except TimeoutError as error:
            raise RuntimeError(f"{error}\n{self.process.tail()}") from error

    def probe(self, path: str = "healthz") -> int:
        """The HTTP status of a health path; 0 if no process answers."""
        return self.health(path)[0]

    def health(self, path: str) -> tuple[int, str]:
        """HTTP status and text of a health path; 0 and empty if no process answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/{path}", timeout=5) as response:
                return int(response.status), response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    @property
    def health_address(self) -> str:
        """The address that a kubelet would probe."""
        return f"127.0.0.1:{self._health}"

    @property
    def metrics_address(self) -> str:
        """The address that Prometheus scrapes."""
        return f"127.0.0.1:{self._metrics}"

    def metrics(self) -> str:
        """Its Prometheus metrics as text, rendered now: the operator serves the same page for a second, so an earlier
        second call waits for the next page."""
        time.sleep(max(0.0, self._page_until - time.monotonic()))
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=30) as response:
            text = str(response.read().decode())
        self._page_until = time.monotonic() + FRESH + ROUNDING
        return text

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have all these labels; 0 if there are none."""
        total = 0.0
        for line in self.metrics().splitlines():
            series, _, value = line.rpartition(" ")
            own, _, rest = series.partition("{")
            if own == name and all(f'{key}="{wanted}"' in rest for key, wanted in labels.items()):
                total += float(value)
        return total

    def log_lines(self) -> list[dict[str, Any]]:
        """Its log so far; a line that is no JSON becomes {"text": …}."""
        lines: list[dict[str, Any]] = []
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            lines.append(entry if isinstance(entry, dict) else {"text": line})
        return lines

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.process.kill()

    def terminate(self, timeout: float = 60) -> int:
        """SIGTERM; returns its exit code (-9 if it had to be killed after `timeout` seconds)."""
        return self.process.terminate(timeout)

    def pause(self) -> None:
        """SIGSTOP: it hangs, as on a node that hangs."""
        self.process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self.process.signal(signal.SIGCONT)
