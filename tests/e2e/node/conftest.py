"""A cluster with a real node, one for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.node.node import why_simulated
from localcluster.process import Process
from localcluster.programs.build import build, build_node
from localcluster.programs.toolchain import BuildError
from localcluster.workloads.real_pods import RealPods
from tests.e2e.conftest import LOGS, build_shown, of_debian
from tests.e2e.kubelets.observe import namespace_of
from tools.image import runtimes


@pytest.fixture(scope="session")
def real_nodes(request: pytest.FixtureRequest) -> None:
    """Skips where this machine can't run a real node, and builds its programs if it can."""
    if reason := why_simulated():
        pytest.skip(reason)
    try:
        build_shown(request.config, build)
        build_shown(request.config, build_node)
    except BuildError as error:
        pytest.fail(f"the node could not be built: {error}", pytrace=False)


@pytest.fixture(scope="package")
def node_cluster(request: pytest.FixtureRequest, real_nodes: None) -> Iterator[ControlPlane]:
    """A whole control plane with one real node, for the tests of this folder that need no other."""
    with ControlPlane(nodes="real") as owned:
        logs: dict[str, Process] = {f"real {name}": process for name, process in owned.processes.items()}
        request.config.stash.setdefault(LOGS, {}).update(logs)
        yield owned


@pytest.fixture(scope="session")
def runtimes_image() -> Path:
    """The file of the image with Java, Node and Python, for `ControlPlane(images=)`."""
    return of_debian(runtimes.build)


@pytest.fixture(scope="session")
def runtimes_cluster(
    request: pytest.FixtureRequest, real_nodes: None, runtimes_image: Path
) -> Iterator[ControlPlane]:
    """A node with the image of the runtimes. A module that needs it has it as its `node_cluster`."""
    with ControlPlane(nodes="real", images=[runtimes_image]) as owned:
        logs: dict[str, Process] = {f"runtimes' {name}": process for name, process in owned.processes.items()}
        request.config.stash.setdefault(LOGS, {}).update(logs)
        yield owned


@pytest.fixture
def pods(node_cluster: ControlPlane) -> Iterator[RealPods]:
    """The pods of a new namespace; it and they are deleted afterwards."""
    with namespace_of(node_cluster) as real_pods:
        assert isinstance(real_pods, RealPods)
        yield real_pods
