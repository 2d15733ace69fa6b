"""Faults of the requests for the lease, two at a time: it is had, and it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.operator import NAMESPACE, Operator
from localcluster.proxy.faults import Damage, Fault
from localcluster.proxy.proxy import Proxy
from localcluster.workloads.scenario import new_namespace
from tests.e2e.bare.conftest import NewScenario

LEASE = "/leases"
DURATION = 10
"""Seconds: a renewal may fail twice, and be late, without the lease being lost."""


def held(line: Proxy, *, answered: bool) -> Fault:
    """Lose a renewal on its way, or its answer on the way back."""
    hold = line.hold(verb="update", path=LEASE, answered=answered)
    hold.drop()
    return hold


@pytest.fixture(scope="module")
def space(plane: ControlPlane) -> str:
    return new_namespace(plane.api, "lease")


@pytest.fixture(scope="module")
def leader(plane: ControlPlane, line: Proxy, token: str, space: str) -> Iterator[Operator]:
    """An operator that has to ask for its lease several times: its looks and its creation of the lease go wrong."""
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    faults = [
        line.fail(500, verb="get", path=LEASE),
        line.damage(Damage.HALF, verb="get", path=LEASE),
        line.fail(503, verb="create", path=LEASE, retry_after="nan"),
        line.damage(Damage.SHORT, verb="create", path=LEASE),
    ]
    flags = ("--leader-elect", "--lease-namespace", NAMESPACE, "--lease-duration", str(DURATION))
    kubeconfig = line.kubeconfig_for(token)
    with Operator(plane, kubeconfig, "--namespace", space, "--log-level", "debug", *flags) as running:
        wait_for(lambda: running.metric("hvpa_leader") == 1, 60, "that it leads")
        await_hits(faults)
        yield running


def await_hits(faults: list[Fault]) -> None:
    wait_for(lambda: all(fault.hits for fault in faults), 60, lambda: f"faults: {faults}", 0.05)


def lease(plane: ControlPlane) -> Json:
    spec: Json = plane.api.get("Lease", "hvpa", NAMESPACE)["spec"]
    return spec


ROUNDS: tuple[Callable[[Proxy], list[Fault]], ...] = (
    lambda line: [line.fail(code, verb="update", path=LEASE, retry_after="3600") for code in (429, 503)],
    lambda line: [held(line, answered=answered) for answered in (True, False)],
)
"""What becomes of two renewals."""


def is_renewed(plane: ControlPlane, since: str) -> bool:
    return bool(lease(plane)["renewTime"] != since)


def test_a_lease_is_kept_whatever_becomes_of_two_renewals(
    plane: ControlPlane, line: Proxy, leader: Operator, new_scenario: NewScenario
) -> None:
    scenario = new_scenario()
    before = lease(plane)
    for go_wrong in ROUNDS:
        await_hits(go_wrong(line))
        wait_for(partial(is_renewed, plane, lease(plane)["renewTime"]), 60, "a renewal", 0.05)
    after = lease(plane)
    assert after["holderIdentity"] == before["holderIdentity"]
    assert after["leaseTransitions"] == before["leaseTransitions"]
    assert leader.process.alive
    assert leader.metric("hvpa_leader") == 1
    scenario.hpa_wants(5)
    scenario.await_replicas(5)
