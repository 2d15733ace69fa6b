"""The operator beside any cluster, and workloads there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import ApiError
from localcluster.controlplane.cluster import Cluster
from localcluster.operator.operator import NAMESPACE, Operator, install_operator_rbac, install_vpa_crd
from tests.e2e.anywhere.place import VPA, Place, image_of
from tests.e2e.conftest import LOGS


@pytest.fixture(scope="session")
def operator(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Operator]:
    """The operator as a process of this machine, with the rights of `config/default` and no others."""
    try:
        cluster.api.list(VPA)
    except ApiError:
        install_vpa_crd(cluster)
    kubeconfig = install_operator_rbac(cluster, deployment=False)
    with Operator(cluster, kubeconfig, "--leader-elect", "--lease-namespace", NAMESPACE) as running:
        request.config.stash.setdefault(LOGS, {})["operator"] = running.process
        yield running
        request.config.stash[LOGS].pop("operator", None)


@pytest.fixture
def place(cluster: Cluster, operator: Operator, namespace: str, tmp_path: Path) -> Place:
    """A new namespace of the cluster, with the operator at work."""
    return Place(cluster, namespace, image_of(cluster.api), tmp_path)
