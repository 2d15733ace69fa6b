"""etcd is restored from a backup, under a control plane of its own: what comes after is acted upon within seconds."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.client.api import wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.controlplane.etcd import away
from localcluster.operator.operator import (
    NAMESPACE,
    SERVICE_ACCOUNT,
    Operator,
    install_crds,
    install_operator_rbac,
    install_vpa_crd,
)
from localcluster.workloads.bare_manifests import weight
from localcluster.workloads.scenario import Scenario, new_namespace

SECONDS = 45
"""From the API server's return until a change is acted upon, on a machine that does other things. Before: 391."""


@pytest.fixture
def own_plane(bare_cluster: ControlPlane) -> Iterator[ControlPlane]:
    with ControlPlane(full=False, programs=bare_cluster.programs) as own:
        install_crds(own)
        install_vpa_crd(own)
        install_operator_rbac(own)
        yield own


@pytest.mark.parametrize(("writes", "elect"), [(1500, True), (40, False)])
def test_after_a_restore_of_etcd_the_operator_acts_on_the_restored_state(
    own_plane: ControlPlane, tmp_path: Path, writes: int, elect: bool
) -> None:
    plane, api = own_plane, own_plane.api
    kept = Scenario(api, new_namespace(api), changes=weight(50))
    account = plane.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT)
    # A lease that outlives a restart of the API server on a busy machine: without one, the operator exits, as it must.
    flags = ("--leader-elect", "--lease-namespace", NAMESPACE, "--lease-duration", "90") if elect else ()
    with Operator(plane, account, "--log-level", "debug", *flags) as operator:
        kept.create()
        kept.vpa_is_content()
        with away(plane) as data:
            shutil.copytree(data, tmp_path / "backup")
        kept.hpa_wants(6)
        kept.await_replicas(4)
        lost = Scenario(api, kept.namespace, changes=weight(50)).create()
        for number in range(writes):
            api.patch("Deployment", lost.name, lost.namespace, {"metadata": {"labels": {"n": str(number)}}})
        with away(plane) as data:
            shutil.rmtree(data)
            shutil.copytree(tmp_path / "backup", data)
        began = time.monotonic()
        assert kept.replicas == 2, "the step is lost"
        kept.hpa_wants(8)
        wait_for(lambda: kept.replicas == 5, SECONDS, "a step from the restored state")
        print(f"acted upon after {time.monotonic() - began:.1f} s")
        wait_for(lambda: operator.probe("readyz") == 200, SECONDS, "it is ready")
        assert operator.process.alive
        wait_for(lambda: operator.metric("hvpa_hvpas") == 1, SECONDS, "what the backup lacks is forgotten")
        assert not operator.metric("hvpa_task_failures_total")
