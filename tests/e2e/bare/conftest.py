"""Fixtures of the tests on etcd and kube-apiserver alone: the world with CRDs and the operator's rights, an operator
per module, scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Operator,
    install_crds,
    install_operator_rbac,
)
from localcluster.programs.build import BuildError, build
from localcluster.workloads.scenario import Scenario, new_namespace

USER = f"{NAMESPACE}:{SERVICE_ACCOUNT}"
"""The operator as the audit log's filters name it."""

Start = Callable[..., Operator]
NewScenario = Callable[..., Scenario]


@pytest.fixture(scope="session")
def plane(bare_cluster: ControlPlane) -> ControlPlane:
    """The bare control plane with all CRDs and with what `config/default` deploys."""
    install_crds(bare_cluster)
    try:
        crds = build(full=True).shared["vpa-crd.yaml"]
    except BuildError as error:
        pytest.fail(f"the VPA's CRD is not to be had: {error}", pytrace=False)
    bare_cluster.apply_all([one for one in yaml.safe_load_all(crds.read_text()) if one])
    install_operator_rbac(bare_cluster)
    return bare_cluster


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
        one = Operator(plane, kubeconfig, "--log-level", "debug", *args, name=name, env=env)
        started.append(one)
        one.start(wait=wait)
        return one

    yield begin
    for one in started:
        one.resume()
        one.kill()


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
