"""Fixtures of the tests on etcd and kube-apiserver alone: the control plane with CRDs and the operator's rights, an
operator per module, scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.forked import Forker
from localcluster.operator.operator import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Operator,
    install_crds,
    install_operator_rbac,
    install_vpa_crd,
)
from localcluster.process import spawn
from localcluster.programs.build import BuildError
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.bare_manifests import ROLLOUTS, weight
from localcluster.workloads.scenario import Scenario, new_namespace

USER = f"{NAMESPACE}:{SERVICE_ACCOUNT}"
"""The operator as the audit log's filters name it."""

Start = Callable[..., Operator]
NewScenario = Callable[..., Scenario]


@pytest.fixture(scope="session", autouse=True)
def forker() -> Iterator[None]:
    """Operators are forked from a process that has imported them: there are hundreds, and imports are most of a start.
    (Demo, getting started and benchmarks start theirs as users do.)"""
    with Forker() as forker:
        Operator.starter = forker.fork
        yield
    Operator.starter = spawn


@pytest.fixture(scope="session")
def plane(bare_cluster: ControlPlane) -> ControlPlane:
    """The bare control plane with all CRDs and with what `config/default` deploys."""
    install_crds(bare_cluster)
    try:
        install_vpa_crd(bare_cluster)
    except BuildError as error:
        pytest.fail(f"the VPA's CRD is not to be had: {error}", pytrace=False)
    install_operator_rbac(bare_cluster)
    return bare_cluster


@pytest.fixture(scope="session")
def rollouts(plane: ControlPlane) -> Iterator[None]:
    """The CRD of Argo Rollouts, reduced to its subresources."""
    plane.apply_all([ROLLOUTS])
    yield
    plane.api.delete("CustomResourceDefinition", ROLLOUTS["metadata"]["name"])


@pytest.fixture(scope="session")
def account(plane: ControlPlane) -> Path:
    """A kubeconfig of the operator's own ServiceAccount."""
    return plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)


@pytest.fixture(scope="session")
def token(plane: ControlPlane) -> str:
    """A token of the operator's own ServiceAccount."""
    return plane.service_account_token(NAMESPACE, SERVICE_ACCOUNT)


@pytest.fixture(scope="module")
def operator(plane: ControlPlane, account: Path) -> Iterator[Operator]:
    """One operator for all namespaces, for a module's tests."""
    with Operator(plane, account, "--log-level", "debug") as running:
        yield running


@pytest.fixture(scope="module")
def line(plane: ControlPlane) -> Iterator[Proxy]:
    """A proxy between operators and the API server, for a module's tests."""
    with plane.proxy() as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def _no_faults_after(request: pytest.FixtureRequest) -> Iterator[None]:
    line = request.getfixturevalue("line") if "line" in request.fixturenames else None
    yield
    if line is not None:
        line.clear()


@pytest.fixture
def start(plane: ControlPlane, account: Path) -> Iterator[Start]:
    """Start operators of one's own: `start(*args, kubeconfig=…, env=…, name=…, wait=…)`; killed at the end."""
    started: list[Operator] = []

    def begin(
        *args: str,
        kubeconfig: Path = account,
        env: dict[str, str] | None = None,
        name: str = "operator",
        wait: bool = True,
    ) -> Operator:
        operator = Operator(plane, kubeconfig, "--log-level", "debug", *args, name=name, env=env)
        started.append(operator)
        operator.start(wait=wait)
        return operator

    yield begin
    for operator in started:
        operator.resume()
        operator.kill()


@pytest.fixture
def space(plane: ControlPlane) -> str:
    """A new namespace."""
    return new_namespace(plane.api)


@pytest.fixture
def new_scenario(plane: ControlPlane, space: str) -> Iterator[NewScenario]:
    """Make a scenario in this test's namespace; its Hvpa is deleted at the end."""
    made: list[Scenario] = []

    def begin(name: str | None = None, *, create: bool = True, **settings: object) -> Scenario:
        scenario = Scenario(plane.api, space, name, **settings)  # type: ignore[arg-type]
        made.append(scenario)
        return scenario.create() if create else scenario

    yield begin
    for scenario in made:
        scenario.delete()


@pytest.fixture
def new_rollout(rollouts: None, new_scenario: NewScenario) -> Callable[[], Scenario]:
    """Makes a Rollout of two pods with a paused Hvpa."""

    def make() -> Scenario:
        changes = {**weight(50), "mode": "Paused", "updateStrategy": {"type": "InPlace"}}
        scenario = new_scenario(create=False, kind="Rollout", changes=changes)
        version = {"apiVersion": "argoproj.io/v1alpha1"}
        scenario.workload |= version
        scenario.manifest["spec"]["targetRef"] |= version
        scenario.create(wait=False)
        scenario.api.patch_status(
            scenario.kind, scenario.name, scenario.namespace, {"selector": f"app={scenario.name}"}
        )
        return scenario

    return make


@pytest.fixture
def rollout(new_rollout: Callable[[], Scenario]) -> Scenario:
    """A Rollout of two pods with a paused Hvpa."""
    return new_rollout()
