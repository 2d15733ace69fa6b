"""A control plane of real programs on loopback. Each is a child process that is ended by its handle. `build.py` builds
the programs, `flags.py` has their flags."""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, Self

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from localcluster.client import rights
from localcluster.client.api import KubeApi, wait_for
from localcluster.client.audit import Audit
from localcluster.client.kubeconfig import certificate_user, write_kubeconfig
from localcluster.client.pki import Authority
from localcluster.controlplane import flags, manifests
from localcluster.controlplane.cluster import Cluster
from localcluster.controlplane.flags import AutoscalerSettings, Files, Ports
from localcluster.node import cgroups
from localcluster.node.node import Node
from localcluster.owner import left_in, owned
from localcluster.process import Process, free_port
from localcluster.programs.build import Programs, build, build_node, to_stderr

MIB = 2**20
LEAST_FREE = 256
"""MiB on the disk of the folder: etcd takes 64 for its log at once."""
NODE_FREE = 64
"""MiB for a real node's own image. A node also copies each additional image."""
_TEMPORARY = "hvpa-cluster"
"""The prefix of temporary folders."""
_MASTERS = "system:masters"
_ALLOCATOR = "allocator"
"""The process of `allocator.py`."""
# How the programs of the control plane log in. kwok, metrics-server and the recommender have every right, since their
# rights are not under test.
_USERS = {
    "admin": ("admin", _MASTERS),
    "kube-controller-manager": ("system:kube-controller-manager",),
    "kube-scheduler": ("system:kube-scheduler",),
    "kwok": ("kwok", _MASTERS),
    "metrics-server": ("metrics-server", _MASTERS),
    "vpa-recommender": ("vpa-recommender", _MASTERS),
}


class ControlPlane(Cluster):
    """A cluster that this process owns. With `full=False` it has only etcd and kube-apiserver: no controllers, so a
    test writes the status of everything itself. With `nodes="real"` its pods are containers of this machine
    (`localcluster.node`); `why_not` there returns whether the machine can run them."""

    def __init__(
        self,
        *,
        full: bool = True,
        nodes: Literal["simulated", "real"] = "simulated",
        settings: AutoscalerSettings | None = None,
        programs: Programs | None = None,
        folder: Path | None = None,
        images: Sequence[Path] = (),
    ) -> None:
        """Nothing is started yet. `folder` keeps certificates, kubeconfigs and logs; a temporary folder by default.
        `images` are tar files of additional images for real nodes. Raises `RuntimeError` if the disk is full."""
        self.full = full
        self.settings = settings or AutoscalerSettings()
        if nodes == "real" and not full:
            raise ValueError("a bare API server has no nodes: real ones need full=True")
        self.real = nodes == "real"
        self.programs = programs or build(full=full)
        remove_leftovers()
        self._own_folder = folder is None
        folder = folder or Path(tempfile.mkdtemp(prefix=f"{owned(_TEMPORARY)}-"))
        super().__init__(folder, folder / "admin.kubeconfig", self.programs["kubectl"])
        self.logs = folder / "logs"
        self.circumstances = rights.Circumstances()
        self._stopped = False
        try:
            self._prepare(images)
        except BaseException:
            self._remove_folder()
            raise
        self.audit = Audit(self._files.audit_log, lambda: self.api)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._ports.apiserver}"

    @property
    def authority(self) -> Path:
        """The certificate authority (PEM) of the API server's certificate."""
        return self._files.authority

    @property
    def server_certificate(self) -> tuple[Path, Path]:
        """Certificate and key that clients of this cluster trust on 127.0.0.1 (for the proxy)."""
        return self._files.server.certificate, self._files.server.key

    def start(self) -> None:
        """Start everything and wait until it can be used; on failure end everything again. Raises `RuntimeError` if a
        program does not start."""
        atexit.register(self.stop)
        try:
            self.processes["etcd"].start()
            self.start_apiserver()
            if self.full:
                self._start_rest()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all programs at once (no data needs saving) and remove the folder if it is temporary. It reports
        everything that is left."""
        if self._stopped:
            return
        self._stopped = True
        atexit.unregister(self.stop)
        for process in reversed(self.processes.values()):
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # reported below
                process.kill()
        left = [
            f"{name} (process {process.pid})" for name, process in self.processes.items() if process.alive
        ]
        left += [str(cgroup) for node in self.nodes for cgroup in node.remove_cgroups()]
        try:
            if folder := os.environ.get(rights.VARIABLE):
                rights.leave(Path(folder), self._files.audit_log, self.circumstances)
        finally:
            left += self._remove_folder()
            if left:
                to_stderr(f"the control plane has ended, and has left {', '.join(left)}")

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        began = dt.datetime.now(dt.UTC)
        self.audit.restarted()
        self.processes["kube-apiserver"].start()
        self._await("kube-apiserver", lambda: self.api.raw("GET", "/readyz"), 120)
        self.circumstances.starts.append((began, dt.datetime.now(dt.UTC)))

    def stop_apiserver(self, *, graceful: bool = True) -> None:
        """End the API server: gracefully, as a node's drain does (it closes its watches), or by SIGKILL."""
        process = self.processes["kube-apiserver"]
        if graceful:
            process.terminate(15)
        else:
            process.kill()

    def restart_apiserver(self, *, graceful: bool = True, pause: float = 0) -> None:
        """End the API server and start it again on the same port with the same data, `pause` seconds
        apart."""
        self.stop_apiserver(graceful=graceful)
        time.sleep(pause)
        self.start_apiserver()

    @contextlib.contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """For the time of the block, a program (a key of `processes`) is stopped, such as `metrics-server`."""
        process = self.processes[name]
        process.kill()
        try:
            yield
        finally:
            if not self._stopped:
                process.start()

    @contextlib.contextmanager
    def node(self, name: str, cpu: str, memory: str) -> Iterator[None]:
        """For the time of the block, another simulated node of this size (allocatable resources). The
        scheduler places no pods on it: only pods with `nodeName` run there."""
        manifest = manifests.node(name, replace(self.settings, node_cpu=cpu, node_memory=memory))
        manifest["spec"] = {"unschedulable": True}
        self.api.create(manifest)
        try:
            self._await("kwok", partial(_is_ready, self.api, name), 120)
            yield
        finally:
            self.api.delete("Node", name)

    def _prepare(self, images: Sequence[Path]) -> None:
        """Write all files."""
        self.logs.mkdir(parents=True, exist_ok=True)
        number = self.settings.real_nodes if self.real else 0
        size = NODE_FREE + sum(image.stat().st_size for image in images) // MIB
        _need_room(self.folder, LEAST_FREE + number * size)
        self._ports = Ports(*(free_port() for _ in range(6)))
        self._files = self._make_files(self.folder)
        self.processes = {name: self._process(name) for name in self._names()}
        self.nodes = [self._node(node, images) for node in range(1, number + 1)]
        self.processes |= {node.process.name: node.process for node in self.nodes}

    def _remove_folder(self) -> list[str]:
        """Remove the folder if it is temporary; returns it if it stays."""
        if not self._own_folder:
            return []
        shutil.rmtree(self.folder, ignore_errors=True)
        return [str(self.folder)] if self.folder.exists() else []

    def _make_files(self, folder: Path) -> Files:
        self.pki = authority = Authority(folder / "pki")
        front_proxy = Authority(folder / "front-proxy-pki", "hvpa-test-front-proxy")
        accounts = folder / "pki" / "service-accounts.key"
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        accounts.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        files = Files(
            etcd_data=folder / "etcd",
            authority=authority.certificate,
            server=authority.server("localhost"),
            service_accounts=accounts,
            kubelet_client=authority.client("kube-apiserver-kubelet", _MASTERS),
            front_proxy_authority=front_proxy.certificate,
            front_proxy=front_proxy.client("front-proxy"),
            audit_policy=folder / "audit-policy.yaml",
            audit_log=self.logs / "audit.log",
            kwok_config=folder / "kwok.yaml",
        )
        files.audit_policy.write_text(manifests.audit_policy())
        if self.full and not self.real:
            files.kwok_config.write_text(manifests.kwok_config(self.programs))
        for name, user in _USERS.items():
            identity = certificate_user(authority.client(*user))
            write_kubeconfig(folder / f"{name}.kubeconfig", self.server, files.authority, identity)
        return files

    def _names(self) -> list[str]:
        bare = ["etcd", "kube-apiserver"]
        rest = ["kube-controller-manager", "kube-scheduler", "metrics-server", "vpa-recommender"]
        return bare + ([] if self.real else ["kwok", _ALLOCATOR]) + rest if self.full else bare

    def _process(self, name: str) -> Process:
        kubeconfig = self.folder / f"{name}.kubeconfig"
        ports, files, settings = self._ports, self._files, self.settings
        arguments: dict[str, Callable[[], list[str]]] = {
            "etcd": lambda: flags.etcd(ports, files),
            "kube-apiserver": lambda: flags.apiserver(ports, files, settings, real=self.real),
            "kwok": lambda: flags.kwok(kubeconfig, ports, files),
            "kube-controller-manager": lambda: flags.controller_manager(
                kubeconfig, files, settings, real=self.real
            ),
            "kube-scheduler": lambda: flags.scheduler(kubeconfig),
            "metrics-server": lambda: flags.metrics_server(kubeconfig, ports, files, settings),
            "vpa-recommender": lambda: flags.recommender(kubeconfig, ports, settings),
        }
        # Neither proxies nor configuration of the user's home reach the programs. GOGC: garbage collection a quarter as
        # often; the API server's start with all definitions takes 2.0 s of CPU instead of 2.8, and 190 MB more memory.
        environment = {"HOME": str(self.folder), "PATH": os.environ.get("PATH", ""), "GOGC": "400"}
        if name == _ALLOCATOR:
            return self._allocator(environment)
        argv: list[str | Path] = [self.programs[name], *arguments[name]()]
        return Process(name, argv, self.logs / f"{name}.log", env=environment, cwd=self.folder)

    def _allocator(self, environment: Mapping[str, str]) -> Process:
        """The part of the simulated kubelets that is not KWOK's, as the same user."""
        module = "localcluster.controlplane.allocator"
        argv = [sys.executable, "-m", module, str(self.folder / "kwok.kubeconfig")]
        return Process(
            _ALLOCATOR,
            argv,
            self.logs / f"{_ALLOCATOR}.log",
            env={**environment, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
            cwd=self.folder,
        )

    def _node(self, number: int, images: Sequence[Path]) -> Node:
        """A real node, with the rights of a kubelet."""
        name = f"127.0.0.{number}"
        user = certificate_user(self.pki.client(f"system:node:{name}", "system:nodes"))
        kubeconfig = self.folder / f"kubelet-{number}.kubeconfig"
        write_kubeconfig(kubeconfig, self.server, self._files.authority, user)
        return Node(
            name,
            self.folder / "nodes" / name,
            build_node(),
            kubeconfig,
            self._files.authority,
            self.pki.kubelet(name),
            self.settings.reserved,
            images,
            self.settings.kubelet,
            self.settings.housekeeping,
        )

    def _start_simulated_nodes(self) -> None:
        self.processes["kwok"].start()
        self.processes[_ALLOCATOR].start()
        names = [f"node-{number}" for number in range(self.settings.nodes)]
        for name in names:
            self.api.create(manifests.node(name, self.settings))
        self._await("kwok", lambda: all(_is_ready(self.api, name) for name in names), 120)
        self._warm_up(names[0])

    def _start_real_nodes(self) -> None:
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            self._await(node.process.name, partial(_is_ready, self.api, node.name), 120)

    def _start_rest(self) -> None:
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.processes[name].start()
        crds = [d for d in yaml.safe_load_all(self.programs.shared["vpa-crd.yaml"].read_text()) if d]
        for document in crds:
            self.api.apply(document)
        if self.real:
            self._start_real_nodes()
        else:
            self._start_simulated_nodes()
        self.processes["metrics-server"].start()
        for document in crds:
            self.await_crd(document["metadata"]["name"])
        self.processes["vpa-recommender"].start()
        self._await("metrics-server", lambda: _listens(self._ports.metrics), 120)
        for document in manifests.metrics_api(self._ports.metrics):
            self.api.create(document)
        self._await("metrics-server", lambda: self.api.list("NodeMetrics") is not None, 120)

    def _warm_up(self, node: str) -> None:
        """Request the usage of a pod from the kubelet once: KWOK fills its cache of pods at the first request, and
        answers that request without pods."""
        name, namespace = "warm-up", "default"
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "nodeName": node,
                    "containers": [{"name": name, "image": name}],
                    "terminationGracePeriodSeconds": 0,
                },
            }
        )
        url = f"https://127.0.0.1:{self._ports.kubelet}/metrics/nodes/{node}/metrics/resource"
        tls = ssl.create_default_context(cafile=self.authority)

        def shown() -> bool:
            with urllib.request.urlopen(url, timeout=5, context=tls) as response:
                return f'pod="{name}"'.encode() in response.read()

        self._await("kwok", shown, 120)
        self.api.delete("Pod", name, namespace, grace=0)

    def _await(self, name: str, ready: Callable[[], object], timeout: float) -> None:
        """Wait until a program works; raises `RuntimeError` with the end of its log if it doesn't."""
        process = self.processes[name]

        def check() -> bool:
            if not process.alive:
                raise RuntimeError(f"{name} ended with {process.returncode}:\n{process.tail()}")
            return bool(ready())

        try:
            wait_for(check, timeout, f"{name} is ready", interval=0.05)
        except TimeoutError as error:
            raise RuntimeError(f"{error}\n{process.tail()}") from error


def remove_leftovers() -> None:
    """Remove the temporary folders and the cgroups of killed runs, and report them."""
    folders = left_in(Path(tempfile.gettempdir()), _TEMPORARY)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    removed = [str(folder) for folder in folders if not folder.exists()] + cgroups.remove_stale()
    if removed:
        to_stderr(f"removed leftovers of killed runs: {', '.join(removed)}")


def _need_room(folder: Path, needed: int) -> None:
    """Raises `RuntimeError` if the disk of a folder has fewer MiB: etcd would end, and other programs would give no
    reason."""
    free = shutil.disk_usage(folder).free // MIB
    if free < needed:
        raise RuntimeError(
            f"the disk of {folder.parent} has {free} MiB left, and a control plane needs {needed}: set TMPDIR, "
            "or HVPA_CLUSTER_FOLDER for `make cluster-up`, to a folder with more"
        )


def _is_ready(api: KubeApi, node: str) -> bool:
    conditions = (api.find("Node", node) or {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
