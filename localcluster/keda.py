"""KEDA itself, operator and metrics server, for `make keda`:

    with Keda(cluster, folder):
        ...     # ScaledObjects work

Both are built from their Go modules, which takes long (docs/decisions/0045): no test of `make test` needs that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import yaml

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.client.pki import Authority, Pair
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import aggregated_api
from localcluster.process import Process, free_port
from localcluster.programs.build import build_keda

EXTERNAL: Final = ("external.metrics.k8s.io", "v1beta1")
NAMESPACE: Final = "keda"


class Keda:
    """A context manager: registered at the API server meanwhile, and killed at the end."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        """Nothing is started yet, but built. `folder` is for certificates and logs. Raises `BuildError`."""
        programs = build_keda()
        self._api, self._cluster = cluster.api, cluster
        self._crds = [yaml.safe_load(path.read_text()) for path in programs.shared.values()]
        self._port, grpc = free_port(), free_port()
        authority = Authority(folder / "ca", "keda")
        env = {
            **os.environ,
            "POD_NAMESPACE": NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
            "WATCH_NAMESPACE": "",
        }
        kubeconfig = cluster.kubeconfig
        operator: list[str | Path] = [
            programs["keda-operator"],
            f"--kubeconfig={kubeconfig}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            f"--metrics-service-bind-address=127.0.0.1:{grpc}",
            f"--cert-dir={_certificates(folder / 'operator', authority, authority.server('operator'))}",
        ]
        adapter: list[str | Path] = [
            programs["keda-adapter"],
            f"--kubeconfig={kubeconfig}",
            f"--lister-kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--port={free_port()}",
            f"--metrics-service-address=127.0.0.1:{grpc}",
            f"--cert-dir={_certificates(folder / 'adapter', authority, authority.client('adapter'))}",
        ]
        self.processes = [
            Process("keda-operator", operator, folder / "operator.log", env=env),
            Process("keda-adapter", adapter, folder / "adapter.log", env=env),
        ]
        self._registered: list[Json] = []

    def __enter__(self) -> Keda:
        try:
            self._cluster.apply_all(self._crds)
            self._registered += [
                self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            ]
            for process in self.processes:
                process.start()
            for one in aggregated_api("keda-metrics", *EXTERNAL, self._port):
                self._registered.append(self._api.create(one))
            wait_for(self._is_served, 120, "KEDA serves external metrics")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it from the API server, and end it."""
        for one in reversed(self._registered):
            meta = one["metadata"]
            self._api.delete(f"{one['apiVersion']}/{one['kind']}", meta["name"], meta.get("namespace"))
        for process in self.processes:
            process.kill()

    def _is_served(self) -> bool:
        for process in self.processes:
            if not process.alive:
                raise RuntimeError(f"{process.name} ended with {process.returncode}:\n{process.tail()}")
        try:
            return bool(self._api.raw("GET", "/apis/" + "/".join(EXTERNAL))["kind"] == "APIResourceList")
        except ApiError:  # 503 until the API server has looked at it
            return False


def _certificates(folder: Path, authority: Authority, pair: Pair) -> Path:
    """The folder with the files that operator and metrics server know each other by."""
    folder.mkdir()
    for name, source in (
        ("ca.crt", authority.certificate),
        ("tls.crt", pair.certificate),
        ("tls.key", pair.key),
    ):
        (folder / name).write_bytes(source.read_bytes())
    return folder
