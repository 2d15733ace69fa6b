"""Fixtures of the tests with real controllers: CRD and RBAC as `make deploy` applies them, and the operator
as a process that acts as its own ServiceAccount."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localcluster.controlplane.cluster import Cluster
from localcluster.operator.operator import NAMESPACE, Operator, install_operator_rbac
from tests.e2e.conftest import LOGS

ELECTION = ("--leader-elect", "--lease-namespace", NAMESPACE)


@pytest.fixture(scope="session")
def operator(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Operator]:
    """The operator for all namespaces, with the rights of `config/default` and no others."""
    kubeconfig = install_operator_rbac(cluster)
    with Operator(cluster, kubeconfig, "--log-level", "debug", *ELECTION) as running:
        logs = request.config.stash.setdefault(LOGS, {})
        logs["operator"] = running.process
        yield running
        logs.pop("operator", None)
