"""A real node: containerd, runc and the kubelet in their own mount and PID namespace, with cgroups below the node's own
cgroup. Its process is the first of the namespace; when it ends, everything ends, containers included."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localcluster.client.api import Json
from localcluster.client.pki import KeyPair
from localcluster.node import cgroups, config
from localcluster.node.cgroups import Granted
from localcluster.node.config import Size
from localcluster.node.image import write_image
from localcluster.process import Process, free_port
from localcluster.programs.build import Programs, node_needs_compiler
from localcluster.programs.toolchain import cache_folder

PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "runc", "unfiltered-runc")
IN_IMAGE = ("load", "pause", "web")
_FOLDERS = (
    "bin",
    "cni/bin",
    "cni/net.d",
    "images",
    "kubelet",
    "pods",
    "registries/_default",
    "volume-plugins",
)
_NAMESPACES = ("--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc")
_NEEDED_HIERARCHIES = ("cpu", "cpuset", "memory", "pids")
_LEAST_CORES = 2


def why_not() -> str:
    """The reason that this machine can't run a real node, in a line; empty if it can. It changes nothing on the
    machine."""
    if sys.platform != "linux":
        return "real nodes need Linux"
    if os.geteuid() != 0:
        return "real nodes need root (cgroups and mounts)"
    missing = [name for name in ("unshare", "gcc") if shutil.which(name) is None]
    if "gcc" in missing and not node_needs_compiler():
        missing.remove("gcc")
    if missing:
        return f"real nodes need {' and '.join(missing)}"
    if reason := _why_hidden(cache_folder(), Path(tempfile.gettempdir())):
        return reason
    there = cgroups.hierarchies()
    lacking = [name for name in _NEEDED_HIERARCHIES if (cgroups.ROOT / name).resolve() not in there]
    if lacking:
        return f"real nodes need cgroup v1, with {', '.join(lacking)} in {cgroups.ROOT}"
    if not all(os.access(cgroups.ROOT / name, os.W_OK) for name in _NEEDED_HIERARCHIES):
        return f"real nodes need to write {cgroups.ROOT}"
    tried = subprocess.run(["unshare", *_NAMESPACES, "true"], capture_output=True, text=True)
    if tried.returncode:
        return f"real nodes need namespaces of their own: {tried.stderr.strip()}"
    return ""


def why_simulated() -> str:
    """The reason that a workload that scales needs simulated nodes on this machine, in a line; empty if real nodes
    suffice."""
    if reason := why_not():
        return reason
    if (cores := len(os.sched_getaffinity(0))) < _LEAST_CORES:
        return f"real nodes need {_LEAST_CORES} cores, and there is {cores}"
    return ""


def _why_hidden(*folders: Path) -> str:
    """The reason that a node would not find one of these folders, in a line; empty if it finds all."""
    for folder in folders:
        if any(folder.resolve().is_relative_to(Path(hidden).resolve()) for hidden in config.HIDDEN):
            return f"real nodes have their own {', '.join(config.HIDDEN)}: {folder} must be elsewhere"
    return ""


@dataclass(slots=True)
class Node:
    """A node that this process owns. `name` is its address on loopback (127.0.0.1, 127.0.0.2, …), which the kubelet
    uses unchanged; `serving` is its kubelet's certificate for that address, `kubeconfig` a client of the API server as
    this node. `reserved` is not for its pods. `images` are tar files of further images: no image is pulled.
    `kubelet` are further fields of the kubelet's configuration, and `housekeeping` is the flag that they lack."""

    name: str
    state: Path
    programs: Programs
    kubeconfig: Path
    authority: Path
    serving: KeyPair
    reserved: Size = field(default_factory=Size)
    images: Sequence[Path] = ()
    kubelet: Mapping[str, Any] = field(default_factory=dict)
    housekeeping: str = "10s"
    process: Process = field(init=False)
    cgroup: str = field(init=False)

    def __post_init__(self) -> None:
        """Write its files; nothing is started yet. Raises `RuntimeError` if the node would not find them."""
        if reason := _why_hidden(self.state, self.programs["kubelet"]):
            raise RuntimeError(reason)
        port = free_port()
        self.cgroup = cgroups.name_of(self.name)
        for folder in _FOLDERS:
            (self.state / folder).mkdir(parents=True, exist_ok=True)
        binaries = self.state / "bin"
        for program in PROGRAMS:
            (binaries / program).unlink(missing_ok=True)
            (binaries / program).symlink_to(self.programs[program])
        for path, value in config.TUNABLES.items():
            file = self.state / "sys" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
        texts = {
            "init.sh": config.INIT,
            "containerd.toml": config.containerd(self.state, binaries / "unfiltered-runc"),
            "cni/bin/addresses": config.PLUGIN,
            "cni/net.d/10-none.conflist": config.NETWORK,
            "registries/_default/hosts.toml": config.NO_REGISTRY,
            "kubelet.yaml": config.kubelet(
                self.state,
                self.name,
                port,
                self.authority,
                self.serving,
                self.cgroup,
                self.reserved,
                self.kubelet,
            ),
            "kubelet.kubeconfig": self.kubeconfig.read_text(),
        }
        for name, text in texts.items():
            (self.state / name).write_text(text)
        (self.state / "cni/bin/addresses").chmod(0o755)
        for number, image in enumerate(self.images):
            shutil.copy(image, self.state / "images" / f"{number}.tar")
        files = {name: self.programs[name] for name in IN_IMAGE}
        write_image(self.state / "images" / "node.tar", config.IMAGE, files, ["/bin/pause"])
        argv: Sequence[str | Path] = [
            shutil.which("unshare") or "unshare",
            *_NAMESPACES,
            "sh",
            self.state / "init.sh",
            self.state,
            self.cgroup,
            self.name,
            str(port),
            self.housekeeping,
        ]
        environment = {"HOME": str(self.state), "PATH": os.environ.get("PATH", "")}
        log = self.state / "node.log"
        self.process = Process(f"node {self.name}", argv, log, env=environment, cwd=self.state)

    def start(self) -> None:
        """Start it; its Node object is Ready some seconds later. Raises `OSError` if cgroups can't be made."""
        try:
            cgroups.make(self.cgroup)
        except OSError:
            cgroups.remove(self.cgroup)
            raise
        self.process.start()

    def remove_cgroups(self) -> list[Path]:
        """Remove its cgroups, once its process has ended; returns the cgroups that could not be removed."""
        return cgroups.remove(self.cgroup)

    def cgroup_of(self, pod_uid: str, quality: str, container: str, controller: str) -> Path:
        """The cgroup of a controller (`cpu`, `cpuacct`, `memory`) of a pod's container, of the pod if `container` is
        empty. `quality` is the pod's QoS class, `container` the id without its scheme."""
        top = cgroups.ROOT / controller / self.cgroup / "kubepods"
        pods = top if quality == "Guaranteed" else top / quality.lower()
        return pods / f"pod{pod_uid}" / container

    def granted(self, pod: Json, *, of_pod: bool = False) -> Granted:
        """The kernel's grants to the only container of a pod of this node, or to the pod as a whole. Raises `OSError`
        if that is gone, and `KeyError` or `IndexError` if it has not been started."""
        cpu, memory = (self._cgroup(pod, controller, of_pod=of_pod) for controller in ("cpu", "memory"))
        return cgroups.granted(cpu, memory)

    def first_process(self, pod: Json) -> Path:
        """The folder in /proc of the first process of a pod's only container. Raises as `granted`."""
        first, *_ = (self._cgroup(pod, "memory") / "cgroup.procs").read_text().split()
        return Path("/proc") / first

    def cpu_seconds(self, pod: Json) -> float:
        """The CPU time that a pod's only container has used. Raises as `granted`."""
        return int((self._cgroup(pod, "cpuacct") / "cpuacct.usage").read_text()) / 1e9

    def _cgroup(self, pod: Json, controller: str, *, of_pod: bool = False) -> Path:
        status = pod["status"]
        container = "" if of_pod else status["containerStatuses"][0]["containerID"].rpartition("://")[2]
        return self.cgroup_of(pod["metadata"]["uid"], status["qosClass"], container, controller)
