"""KEDA itself, operator and metrics server, for `make keda`:

    with Keda(cluster, folder):
        ...  # ScaledObjects work

Both run as KEDA's ServiceAccount, with the roles that KEDA installs. Building them from their Go modules takes long
(docs/decisions/0045): no test of `make test` needs that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import yaml

from localcluster.client.api import ApiError, Json, wait_for
from localcluster.client.pki import Authority, KeyPair
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.manifests import aggregated_api
from localcluster.process import Process, free_port
from localcluster.programs.build import build_keda

EXTERNAL: Final = ("external.metrics.k8s.io", "v1beta1")
NAMESPACE: Final = "keda"
SERVICE_ACCOUNT: Final = "keda-operator"
USER: Final = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"


class Keda:
    """A context manager: registered at the API server inside the block, and killed at its end."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        """Builds the programs, and starts nothing yet. `folder` is for certificates and logs. Raises `BuildError`."""
        self._programs = build_keda()
        self._api, self._cluster, self._folder = cluster.api, cluster, folder
        self._port, self._grpc = free_port(), free_port()
        self._authority = Authority(folder / "ca", "keda")
        self.processes: list[Process] = []
        self._registered: list[Json] = []

    def __enter__(self) -> Keda:
        try:
            self._registered.append(
                self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            )
            self._install()
            kubeconfig = self._cluster.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
            for name, argv in (
                ("operator", self._operator(kubeconfig)),
                ("adapter", self._adapter(kubeconfig)),
            ):
                self.processes.append(self._process(name, argv))
                self.processes[-1].start()
            for manifest in aggregated_api("keda-metrics", *EXTERNAL, self._port):
                self._registered.append(self._api.create(manifest))
            wait_for(self._is_served, 120, "KEDA serves external metrics")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove it from the API server, and end it. CRDs and roles stay."""
        self._cluster.delete_all(self._registered)
        for process in self.processes:
            process.kill()

    def _install(self) -> None:
        """The CRDs, the ServiceAccount and its roles, from KEDA's module."""
        for path in self._programs.shared.values():
            self._cluster.apply_all(
                [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest]
            )
        watching = {"apiGroups": ["keda.sh"], "resources": ["scaledobjects"], "verbs": ["watch"]}
        self._cluster.await_right(USER, watching)

    def _process(self, name: str, argv: list[str | Path]) -> Process:
        names = ("POD_NAMESPACE", "KEDA_CLUSTER_OBJECT_NAMESPACE")
        env = {**os.environ, **dict.fromkeys(names, NAMESPACE), "WATCH_NAMESPACE": ""}
        return Process(f"keda-{name}", argv, self._folder / f"{name}.log", env=env)

    def _operator(self, kubeconfig: Path) -> list[str | Path]:
        return [
            self._programs["keda-operator"],
            f"--kubeconfig={kubeconfig}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            f"--metrics-service-bind-address=127.0.0.1:{self._grpc}",
            f"--cert-dir={self._certificates('operator', self._authority.server('operator'))}",
        ]

    def _adapter(self, kubeconfig: Path) -> list[str | Path]:
        return [
            self._programs["keda-adapter"],
            f"--kubeconfig={kubeconfig}",
            f"--lister-kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--port={free_port()}",
            f"--metrics-service-address=127.0.0.1:{self._grpc}",
            f"--cert-dir={self._certificates('adapter', self._authority.client('adapter'))}",
        ]

    def _certificates(self, name: str, pair: KeyPair) -> Path:
        """The folder with the files by which operator and metrics server authenticate each other."""
        folder = self._folder / name
        folder.mkdir()
        for file, source in (
            ("ca.crt", self._authority.certificate),
            ("tls.crt", pair.certificate),
            ("tls.key", pair.key),
        ):
            (folder / file).write_bytes(source.read_bytes())
        return folder

    def _is_served(self) -> bool:
        for process in self.processes:
            if not process.alive:
                raise RuntimeError(f"{process.name} ended with {process.returncode}:\n{process.tail()}")
        try:
            return bool(self._api.raw("GET", "/apis/" + "/".join(EXTERNAL))["kind"] == "APIResourceList")
        except ApiError:  # 503 until the API server has checked it
            return False
