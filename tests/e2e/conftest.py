"""Fixtures of the end-to-end tests: the clusters, a fresh namespace, and the programs' logs where a test
fails."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from localcluster.client.api import ApiError
from localcluster.controlplane.cluster import Cluster, ExternalCluster
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.node.node import why_simulated
from localcluster.process import Process, tail
from localcluster.programs.build import (
    Programs,
    build,
    build_crane,
    build_helm,
    build_node,
    build_operator_verify,
    build_prometheus,
)
from localcluster.programs.toolchain import BuildError
from tests.e2e import whole_run
from tools.dependencies.lockfile import ROOT
from tools.image.build import Content
from tools.image.build import build as build_image
from tools.image.errors import ImageError

_T = TypeVar("_T")
LOGS = pytest.StashKey[dict[str, Process]]()
_TAIL_LINES = 10
_OWN_TAIL_LINES = 60
EXTERNAL = "HVPA_E2E_KUBECONFIG"
_OWNED = "owned_cluster"
_AT_LENGTH = "at_length"
_OURS = "test-"
"""What the names of the tests' namespaces begin with."""


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A whole control plane with nodes, metrics and recommenders, one for the session; or, where
    HVPA_E2E_KUBECONFIG names a kubeconfig, that cluster."""
    external = os.environ.get(EXTERNAL)
    if external:
        programs = _programs(request.config, full=False)
        with tempfile.TemporaryDirectory(prefix="hvpa-e2e-") as folder:
            given = ExternalCluster(Path(folder), Path(external).absolute(), programs["kubectl"])
            if others := _hvpas(given):
                pytest.exit(
                    f"{external} is a cluster with Hvpas of its own ({others[0]}): use another one", 2
                )
            yield given
        return
    with ControlPlane(programs=_programs(request.config, full=True)) as owned:
        request.config.stash.setdefault(LOGS, {}).update(owned.processes)
        yield owned


@pytest.fixture(scope="session")
def bare_cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """etcd and an API server only, one for the session: nothing moves but what a test moves."""
    with ControlPlane(full=False, programs=_programs(request.config, full=False)) as owned:
        logs = {f"bare {name}": process for name, process in owned.processes.items()}
        request.config.stash.setdefault(LOGS, {}).update(logs)
        yield owned


@pytest.fixture(scope="module")
def own_bare_cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """As `bare_cluster`, for one module alone: one that replaces CRDs."""
    with ControlPlane(full=False, programs=_programs(request.config, full=False)) as owned:
        logs = {f"own bare {name}": process for name, process in owned.processes.items()}
        request.config.stash.setdefault(LOGS, {}).update(logs)
        yield owned


@pytest.fixture(scope="session")
def image() -> Content:
    """The image of what is here now, committed or not."""
    return of_debian(lambda: build_image(ROOT))


def of_debian(build: Callable[[], _T]) -> _T:
    """Build an image of Debian packages; skips where this machine has none."""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is needed")
    try:
        return build()
    except ImageError as error:
        if "apt offers no" in str(error):  # Debian has replaced a version, or has no lists here
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest) -> Path:
    """The program Helm."""
    try:
        return build_shown(request.config, build_helm)
    except BuildError as error:
        pytest.fail(f"Helm could not be built: {error}", pytrace=False)


@pytest.fixture(scope="session")
def crane(request: pytest.FixtureRequest) -> Path:
    """The program crane."""
    try:
        return build_shown(request.config, build_crane)
    except BuildError as error:
        pytest.fail(f"crane could not be built: {error}", pytrace=False)


@pytest.fixture(scope="session")
def operator_verify(request: pytest.FixtureRequest) -> Path:
    """The program operator-verify."""
    try:
        return build_shown(request.config, build_operator_verify)
    except BuildError as error:
        pytest.fail(f"operator-verify could not be built: {error}", pytrace=False)


@pytest.fixture(scope="session")
def prometheus(request: pytest.FixtureRequest) -> Programs:
    """The programs Prometheus and promtool."""
    try:
        return build_shown(request.config, build_prometheus)
    except BuildError as error:
        pytest.fail(f"Prometheus could not be built: {error}", pytrace=False)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A new namespace in `cluster`, deleted afterwards."""
    yield from _namespace(cluster)


@pytest.fixture
def bare_namespace(bare_cluster: ControlPlane) -> Iterator[str]:
    """A new namespace in `bare_cluster`. What is in it stays: nothing there deletes a namespace's content."""
    yield from _namespace(bare_cluster)


def _programs(config: pytest.Config, *, full: bool) -> Programs:
    try:
        return _build(config, full=full)
    except BuildError as error:
        pytest.fail(f"the control plane could not be built: {error}", pytrace=False)


def _hvpas(cluster: Cluster) -> list[str]:
    """The Hvpas of a cluster that no test has made. Tests install a CRD and an operator, which must not be theirs."""
    try:
        hvpas = cluster.api.list("Hvpa")
    except ApiError:  # it has no such CRD
        return []
    places = [(hvpa["metadata"]["namespace"], hvpa["metadata"]["name"]) for hvpa in hvpas]
    return [f"{namespace}/{name}" for namespace, name in places if not namespace.startswith(_OURS)]


def _build(config: pytest.Config, *, full: bool) -> Programs:
    return build_shown(config, lambda: build(full=full))


def build_shown(config: pytest.Config, build: Callable[[], _T]) -> _T:
    capture = config.pluginmanager.getplugin("capturemanager")
    shown = capture.global_and_fixture_disabled() if capture else contextlib.nullcontext()
    with shown:  # the progress of a build is for whoever waits
        return build()


def _build_real_nodes() -> None:
    if not why_simulated():
        build()
        build_node()


def _namespace(cluster: Cluster) -> Iterator[str]:
    name = f"{_OURS}{uuid.uuid4().hex[:8]}"
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield name
    finally:
        cluster.api.delete("Namespace", name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make node` runs all tests of real nodes, `make test` those that find most in two minutes."""
    parser.addoption(
        "--at-length", action="store_true", help="also run tests that take minutes on a real node"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that keeps a test off clusters not started by the tests; judge the operator's rights at the
    end where the clusters are our own."""
    config.addinivalue_line(
        "markers", f"{_OWNED}: needs a control plane that the tests start themselves (its load, faults, log)"
    )
    config.addinivalue_line("markers", f"{_AT_LENGTH}: takes minutes on a real node: only in `make node`")
    if not os.environ.get(EXTERNAL):
        whole_run.watch(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect long tests of real nodes, unless they are wanted. If another cluster was named, skip tests that need a
    control plane of our own."""
    if not config.getoption("--at-length"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(_AT_LENGTH)])
        items[:] = [item for item in items if not item.get_closest_marker(_AT_LENGTH)]
    if os.environ.get(EXTERNAL):
        for item in items:
            if item.get_closest_marker(_OWNED):
                item.add_marker(pytest.mark.skip(reason=f"{EXTERNAL} is set"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the tests need before the first begins: a test's time limit is no limit for a compiler."""
    used = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    needed = used & {"cluster", "bare_cluster", "own_bare_cluster"}
    if needed and not session.config.option.collectonly:
        with contextlib.suppress(BuildError):  # the fixtures report it
            full = bool(used & {"plane", "own_bare_cluster"}) or (
                "cluster" in needed and not os.environ.get(EXTERNAL)
            )
            _build(session.config, full=full)
    for name, build_it in (
        ("crane", build_crane),
        ("helm", build_helm),
        ("operator_verify", build_operator_verify),
        ("prometheus", build_prometheus),
        ("real_nodes", _build_real_nodes),
    ):
        if name in used and not session.config.option.collectonly:
            with contextlib.suppress(BuildError):
                build_shown(session.config, build_it)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the ends of the programs' logs to the report of a failure, and of the logs in the clusters'
    folders (operators', say) that were written meanwhile."""
    report = yield
    if not report.failed:
        return report
    for name, process in item.config.stash.get(LOGS, {}).items():
        report.sections.append((f"log of {name}", process.tail(_TAIL_LINES)))
    clusters = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Cluster)]
    for log in sorted({log for cluster in clusters for log in cluster.folder.glob("*.log")}):
        if log.stat().st_mtime >= call.start:
            report.sections.append((log.name, tail(log, _OWN_TAIL_LINES)))
    return report
