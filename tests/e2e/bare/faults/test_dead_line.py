"""A line that swallows packets: what was connected is dead without a word, and new connections get through, as when a
load balancer fails or a machine on the way forgets its connections. The lease is kept, the operator does not end,
scaling goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, Operator
from localcluster.proxy.packets import why_not
from localcluster.proxy.wire import Wire
from tests.e2e.bare.faults.workloads import Workloads

WORKLOADS = 24
"""More workloads than there are writes at once: so as many connections as there can be have just been used."""
DURATION = 15
"""Seconds of a lease; the default."""


@pytest.fixture
def wire(plane: ControlPlane) -> Iterator[Wire]:
    if reason := why_not():
        pytest.skip(reason)
    with Wire(plane.server) as wire:
        yield wire


def is_renewed(plane: ControlPlane, before: Json, name: str, namespace: str) -> bool:
    now = plane.api.get("Lease", name, namespace)["spec"]
    return bool(now["renewTime"] != before["renewTime"])


def test_a_leader_keeps_its_lease_when_all_its_connections_die(
    plane: ControlPlane, wire: Wire, account: Path
) -> None:
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    kubeconfig = wire.kubeconfig(account)
    flags = ("--leader-elect", "--lease-namespace", NAMESPACE, "--lease-duration", str(DURATION))
    with Operator(plane, kubeconfig, "--log-level", "debug", *flags) as leader:
        wait_for(lambda: leader.metric("hvpa_leader") == 1, 60, "that it leads")
        workloads = Workloads(plane, WORKLOADS)
        workloads.stands(workloads.recommend_next())
        before = plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]
        wire.lose_connections()
        wait_for(partial(is_renewed, plane, before, "hvpa", NAMESPACE), 60, "a renewal", 0.05)
        workloads.stands(workloads.recommend_next())  # long after the lease would have been lost
        after = plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]
        for field in ("holderIdentity", "leaseTransitions", "acquireTime"):
            assert after[field] == before[field]
        assert leader.process.alive
        assert leader.metric("hvpa_leader") == 1
        workloads.delete()
        assert leader.terminate() == 0
