"""SIGKILL at each fault point of the Lease: whoever dies of it, the next one leads, and no step is lost or repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hvpa.kube.leases.assignment import Names
from localcluster.client.api import Json, wait_for
from localcluster.controlplane.controlplane import ControlPlane
from localcluster.operator.fault_points import POINTS, VARIABLE
from localcluster.operator.operator import NAMESPACE, Operator
from tests.e2e.bare.accounts import bind_cluster_role, new_account
from tests.e2e.bare.conftest import USER, NewScenario
from tests.e2e.bare.leases.operators import rights
from tests.e2e.bare.outcome import dying

DURATION = 4
"""Seconds of a Lease that runs out; the next one then takes it."""
STEADY = 150
"""Seconds of one that doesn't: it is renewed every twenty seconds, and given back before that."""
Mortal = Callable[[str, int], Operator]


@pytest.fixture
def mortal(plane: ControlPlane, account: Path, space: str) -> Mortal:
    """Make an operator that dies at a point, with a Lease of so many seconds; not started yet."""

    def make(point: str, seconds: int = DURATION) -> Operator:
        flags = ("--namespace", space, "--leader-elect", "--lease-namespace", NAMESPACE)
        env = {VARIABLE: point} if point else {}
        return Operator(
            plane, account, *flags, "--lease-duration", str(seconds), env=env, name=point or "heir"
        )

    return make


def lease(plane: ControlPlane) -> Json:
    manifest = plane.api.find("Lease", "hvpa", NAMESPACE)
    return manifest["spec"] if manifest else {}


def all_die(*operators: Operator) -> None:
    """Start them at once; each dies at its point when it comes to lead, one after another."""
    with dying(operators):
        pass


def dies_giving_back(operator: Operator) -> None:
    """It leads, gets SIGTERM, and dies as it gives the Lease back."""
    try:
        operator.start()
        wait_for(lambda: operator.metric("hvpa_leader") == 1, 60, "that it leads", 0.02)
        assert operator.terminate(60) == -9, operator.process.tail()
    finally:
        operator.kill()


def test_every_point_of_the_lease_is_died_at() -> None:
    verbs = ("create", "update", "delete")
    used = {f"{when}-{verb}-leases" for when in ("before", "after") for verb in verbs}
    assert used == {point for point in POINTS if point.endswith("-leases")}


def test_a_lease_whose_holder_died_at_any_point_goes_to_the_next_and_nothing_is_done_twice(
    plane: ControlPlane, mortal: Mortal, new_scenario: NewScenario
) -> None:
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    scenario = new_scenario(create=False).create(wait=False)
    all_die(mortal("before-create-leases", DURATION))
    assert lease(plane) == {}
    all_die(mortal("after-create-leases", DURATION))
    holders = {lease(plane)["holderIdentity"]}
    assert lease(plane)["leaseTransitions"] == 0
    # The first update takes the Lease over, the second renews it.
    all_die(
        *(
            mortal(f"{when}-update-leases:{count}", DURATION)
            for when in ("before", "after")
            for count in (1, 2)
        )
    )
    assert lease(plane)["leaseTransitions"] >= 2
    holders.add(lease(plane)["holderIdentity"])
    plane.api.delete("Lease", "hvpa", NAMESPACE)
    dies_giving_back(mortal("before-update-leases", STEADY))
    holders.add(lease(plane)["holderIdentity"])
    plane.api.delete("Lease", "hvpa", NAMESPACE)  # else the next one waits for it to run out
    dies_giving_back(mortal("after-update-leases", STEADY))
    assert lease(plane)["holderIdentity"] == ""
    assert len(holders) == 3
    with mortal("", STEADY) as heir:
        wait_for(lambda: heir.metric("hvpa_leader") == 1, 60, "that the next one leads at once", 0.02)
        scenario.await_owned()
        scenario.hpa_wants(5)
        scenario.await_replicas(5)
        scenario.soon(lambda: scenario.status["axes"]["horizontal"]["appliedFrom"], "the step in the status")
    assert len(scenario.patches(plane.audit, USER)) == 1


def test_a_replica_that_dies_as_it_deletes_an_old_lease_of_a_shard_is_followed_by_one_that_does(
    plane: ControlPlane, space: str, new_scenario: NewScenario
) -> None:
    new_account(plane, space, "member", *rights())
    bind_cluster_role(plane, "hvpa-operator", space, "member")
    kubeconfig = plane.service_account_kubeconfig(space, "member")
    before = Names("hvpa", 3)  # of when there were more shards
    metadata = {"name": before.shard(0), "namespace": space, "labels": before.labels}
    plane.api.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}
    )
    scenario = new_scenario(create=False).create(wait=False)

    def member(point: str) -> Operator:
        flags = ("--namespace", space, "--lease-namespace", space, "--shards", "2")
        env = {VARIABLE: point} if point else {}
        return Operator(
            plane, kubeconfig, *flags, "--lease-duration", str(DURATION), env=env, name=point or "heir"
        )

    for point, is_left in (("before-delete-leases", True), ("after-delete-leases", False)):
        all_die(member(point))
        assert (plane.api.find("Lease", before.shard(0), space) is not None) == is_left
    with member(""):
        scenario.await_owned()
        scenario.hpa_wants(5)
        scenario.await_replicas(5)
